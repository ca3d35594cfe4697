//! Products, with their prices, their stock and their reviews.
//!
//! Orders take from the stock at the same time, so no method just sets it: a caller who counted the stock names the
//! number that was stored before, and is refused if an order was placed meanwhile.

use std::collections::BTreeSet;

use derive::{
    guard::Ask,
    write::{Action, Update},
};
use keys::{key::Key, number::Decimal};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, StoreError};

use crate::{
    Queries,
    write_error::{RATING_MAX, WriteError},
    writes::{
        Sent,
        draft::{Draft, Edit, number, text, texts, write},
    },
};

/// The attributes of a new product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProduct {
    /// Name as shown.
    pub name: String,
    /// Price of one piece, from 0 up.
    pub price: Decimal,
    /// The category that lists it.
    pub category: String,
    /// Number of pieces in stock.
    pub inventory: i64,
    /// Search words.
    pub tags: BTreeSet<String>,
}

/// Changes of a product; `None` leaves an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductEdit {
    /// Name as shown.
    pub name: Option<String>,
    /// Price of one piece, from 0 up. Orders keep the price at which they were placed.
    pub price: Option<Decimal>,
    /// The category that lists it; the index key changes with it.
    pub category: Option<String>,
}

impl<S: Store> Queries<S> {
    /// WP-15: creates a product.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`]; [`WriteError::Price`] and [`WriteError::Stock`] for one below 0.
    pub async fn create_product(&self, product_id: &str, new: NewProduct) -> Result<(), WriteError> {
        let key = texts([("ProductId", product_id), ("Name", &new.name), ("Category", &new.category)]);
        let price = number(priced(product_id, new.price)?);
        let values = key.chain([("Price", price), ("Inventory", number(stocked(product_id, new.inventory)?))]);
        // DynamoDB has no empty sets.
        let tags = (!new.tags.is_empty()).then(|| ("Tags", AttributeValue::Ss(new.tags.into_iter().collect())));
        self.create("Product", &self.now()?, values.chain(tags)).await.map(drop)
    }

    /// WP-15: changes a product. D-25 derives its place among the best sellers of the new category.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Price`] for one below 0.
    pub async fn change_product(&self, product_id: &str, edit: ProductEdit) -> Result<(), WriteError> {
        let price = edit.price.map(|price| priced(product_id, price)).transpose()?;
        let draft = Draft::of(self.product(product_id)?, &self.now()?);
        let mut draft = draft.set_some("Name", edit.name.map(text)).set_some("Price", price.map(number));
        if let Some(category) = edit.category {
            draft = self.indexed(draft, "Product", "GSI1", &[("Category", &category)])?.set("Category", text(category));
        }
        self.amend(draft).await
    }

    /// WP-15: sets the number of pieces in stock; `counted` is the number that was stored when they were counted.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Changed`] if another number is stored now; [`WriteError::Stock`] for a
    /// number below 0.
    pub async fn set_inventory(&self, product_id: &str, counted: i64, inventory: i64) -> Result<(), WriteError> {
        let draft = Draft::of(self.product(product_id)?, &self.now()?)
            .asking(Ask::Equal("Inventory".to_owned(), number(counted)))
            .set("Inventory", number(stocked(product_id, inventory)?));
        let (item, mut attempts) = (draft.key().clone(), self.attempts());
        if attempts.send(&[draft.write()]).await? == Sent::Done {
            return Ok(());
        }
        Err(match attempts.item(&item).await? {
            Some(_) => WriteError::Changed { item, attribute: "Inventory" },
            None => WriteError::NotFound { item },
        })
    }

    /// WP-15: removes a product; returns false if it does not exist. Its reviews and the order items with it stay.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn remove_product(&self, product_id: &str) -> Result<bool, WriteError> {
        self.delete(self.product(product_id)?).await
    }

    /// WP-15: adds a tag to a product; a second time changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn add_tag(&self, product_id: &str, tag: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.product(product_id)?, &self.now()?);
        self.amend(draft.add("Tags", tags(tag))).await
    }

    /// WP-15: removes a tag from a product; a second time changes nothing.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn remove_tag(&self, product_id: &str, tag: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.product(product_id)?, &self.now()?);
        self.amend(draft.take("Tags", tags(tag))).await
    }

    /// WP-15: counts a view of a product, atomically, however many clients count at once.
    ///
    /// An addition does not show who made it, so this method does not retry a call without a response. It is unknown
    /// then whether the view was counted, and a caller who retries may count it twice.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Busy`] if there was no response.
    pub async fn count_product_view(&self, product_id: &str) -> Result<(), WriteError> {
        // This is no edit of the product, so `UpdatedAt` stays.
        let view = Update { add: [("ViewCount", number(1))].into(), ..Update::default() };
        let write = write(self.product(product_id)?, Action::Update(view), vec![Ask::Present]);
        match self.store.write(&write).await {
            Ok(Outcome::Done { .. }) => Ok(()),
            Ok(Outcome::GuardFailed) => Err(WriteError::NotFound { item: write.key }),
            Err(error @ StoreError::Retry { .. }) => {
                Err(WriteError::Busy { item: write.key, n_tries: 1, is_uncertain: true, last: Some(error) })
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn product(&self, product_id: &str) -> Result<Key, WriteError> {
        self.key("Product", [("ProductId", product_id)])
    }
}

fn tags(tag: &str) -> AttributeValue {
    AttributeValue::Ss(vec![tag.to_owned()])
}

fn priced(product_id: &str, price: Decimal) -> Result<Decimal, WriteError> {
    if price < Decimal::default() {
        return Err(WriteError::Price { product_id: product_id.to_owned() });
    }
    Ok(price)
}

fn stocked(product_id: &str, inventory: i64) -> Result<i64, WriteError> {
    if inventory < 0 {
        return Err(WriteError::Stock { product_id: product_id.to_owned() });
    }
    Ok(inventory)
}

// ---- Reviews ----

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
