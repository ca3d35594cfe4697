//! Reviews of products.

use entities::{
    ids::{ProductId, ReviewId, UserId},
    products::{Review, ReviewKey},
};
use keys::entity::Entity;
use store::Store;

use super::draft::{Draft, Edit, number, text};
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
        user_id: &UserId,
        product_id: &ProductId,
        review_id: &ReviewId,
        rating: i64,
        says: Option<&str>,
    ) -> Result<ReviewKey, WriteError> {
        let now = self.now()?;
        let key = ReviewKey { product_id: product_id.clone(), created_at: now.clone(), review_id: review_id.clone() };
        let review = Review {
            rating: Some(rated(&key, rating)?),
            key,
            user_id: Some(user_id.clone()),
            text: says.map(str::to_owned),
            updated_at: Some(now),
            ..Review::default()
        };
        self.create(&review).await?;
        Ok(review.key)
    }

    /// WP-16: edits a review. D-22 derives the product's sum of ratings.
    ///
    /// # Errors
    ///
    /// [`WriteError::Rating`]; [`WriteError::NotFound`].
    pub async fn edit_review(&self, review: &ReviewKey, edit: ReviewEdit) -> Result<(), WriteError> {
        let rating = edit.rating.map(|rating| rated(review, rating)).transpose()?;
        let draft = Draft::of::<Review>(review)?
            .set_some("Rating", rating.map(number))
            .edit("Text", edit.text.map(text))
            .set("UpdatedAt", text(self.now()?));
        self.amend(draft).await
    }

    /// WP-16: deletes a review; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_review(&self, review: &ReviewKey) -> Result<bool, WriteError> {
        self.delete(Review::primary_key(review)?).await
    }
}

fn rated(review: &ReviewKey, rating: i64) -> Result<i64, WriteError> {
    if (1..=RATING_MAX).contains(&rating) {
        return Ok(rating);
    }
    Err(WriteError::Rating { item: Review::primary_key(review)? })
}
