//! Reviews of products.

use keys::key::Key;
use store::Store;

use super::draft::{Draft, Edit, number, text, texts};
use crate::{
    Queries,
    write_error::{RATING_MAX, WriteError},
};

/// Changes of a review; `None` leaves an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewEdit {
    /// From 1, the worst, to [`RATING_MAX`].
    pub rating: Option<i64>,
    /// The review itself.
    pub text: Edit<String>,
}

impl<S: Store> Queries<S> {
    /// WP-16: reviews a product. Returns the review's key, which contains the time.
    ///
    /// # Errors
    ///
    /// [`WriteError::Rating`]; [`WriteError::AlreadyExists`] for a review of the same product, time and id.
    pub async fn write_review(
        &self,
        user_id: &str,
        product_id: &str,
        review_id: &str,
        rating: i64,
        says: Option<&str>,
    ) -> Result<Key, WriteError> {
        let values = [("UserId", user_id), ("ProductId", product_id), ("ReviewId", review_id)].into_iter();
        let values = texts(values.chain(says.map(|text| ("Text", text)))).chain([("Rating", number(rating))]);
        let creation = self.creation("Review", &self.now()?, values)?;
        let item = creation.key.clone();
        rated(&item, rating)?;
        if self.send(creation).await? { Ok(item) } else { Err(WriteError::AlreadyExists { item }) }
    }

    /// WP-16: edits a review. D-22 derives the product's sum of ratings.
    ///
    /// # Errors
    ///
    /// [`WriteError::Rating`]; [`WriteError::NotFound`].
    pub async fn edit_review(&self, review: &Key, edit: ReviewEdit) -> Result<(), WriteError> {
        let rating = edit.rating.map(|rating| rated(review, rating)).transpose()?;
        let draft = Draft::of(self.of("Review", review)?, &self.now()?);
        self.amend(draft.set_some("Rating", rating.map(number)).edit("Text", edit.text.map(text))).await
    }

    /// WP-16: deletes a review; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_review(&self, review: &Key) -> Result<bool, WriteError> {
        self.delete(self.of("Review", review)?).await
    }
}

fn rated(review: &Key, rating: i64) -> Result<i64, WriteError> {
    if (1..=RATING_MAX).contains(&rating) { Ok(rating) } else { Err(WriteError::Rating { item: review.clone() }) }
}
