//! Products: what is offered, at which price, and how many are left.
//!
//! Orders take from the inventory at the same time, so it is never just set: whoever counts the stock says what they
//! found it to be before, and is refused when an order was placed meanwhile.

use std::collections::BTreeSet;

use derive::guard::Ask;
use entities::{
    ids::ProductId,
    products::{Product, ProductKey},
};
use keys::{entity::Entity, number::Decimal};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store, StoreError};

use super::{
    attempts::Sent,
    draft::{Draft, number, text},
};
use crate::{Queries, write_error::WriteError};

/// What a new product is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProduct {
    /// Name as shown.
    pub name: String,
    /// What one costs, from 0 up.
    pub price: Decimal,
    /// Where it is listed.
    pub category: String,
    /// How many are in stock.
    pub inventory: i64,
    /// What it is found by.
    pub tags: BTreeSet<String>,
}

/// What is changed of a product; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductEdit {
    /// Name as shown.
    pub name: Option<String>,
    /// What one costs, from 0 up. Orders keep the price that they were placed at.
    pub price: Option<Decimal>,
    /// Where it is listed; its index key changes with it.
    pub category: Option<String>,
}

impl<S: Store> Queries<S> {
    /// WP-15: creates a product.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`]; [`WriteError::Price`] and [`WriteError::Stock`] for one below 0.
    pub async fn create_product(&self, product_id: &ProductId, new: NewProduct) -> Result<(), WriteError> {
        let now = self.now()?;
        let product = Product {
            key: ProductKey { product_id: product_id.clone() },
            name: Some(new.name),
            price: Some(priced(product_id, new.price)?),
            category: Some(new.category),
            inventory: Some(stocked(product_id, new.inventory)?),
            tags: new.tags,
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Product::default()
        };
        self.create(&product).await
    }

    /// WP-15: changes a product; its place among the best sellers of the new category follows by D-25.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Price`] for one below 0.
    pub async fn change_product(&self, product_id: &ProductId, edit: ProductEdit) -> Result<(), WriteError> {
        let key = ProductKey { product_id: product_id.clone() };
        let price = edit.price.map(|price| priced(product_id, price)).transpose()?;
        let mut draft = Draft::of::<Product>(&key)?
            .set_some("Name", edit.name.map(text))
            .set_some("Price", price.map(number))
            .set("UpdatedAt", text(self.now()?));
        if let Some(category) = edit.category {
            draft = draft.indexed::<Product>(&self.layout, "GSI1", &key, &[("Category", &category)])?;
            draft = draft.set("Category", text(category));
        }
        self.amend(draft).await
    }

    /// WP-15: sets how many of a product are in stock, where `counted` is what the stock was said to be when it was
    /// counted.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Changed`] when it is said to be another one now; [`WriteError::Stock`]
    /// for one below 0.
    pub async fn set_inventory(&self, product_id: &ProductId, counted: i64, inventory: i64) -> Result<(), WriteError> {
        let draft = Draft::of::<Product>(&ProductKey { product_id: product_id.clone() })?
            .asking(Ask::Equal("Inventory".to_owned(), number(counted)))
            .set("Inventory", number(stocked(product_id, inventory)?))
            .set("UpdatedAt", text(self.now()?));
        let (item, mut attempts) = (draft.key().clone(), self.attempts());
        if attempts.send(&[draft.write()]).await? == Sent::Done {
            return Ok(());
        }
        Err(match attempts.item(&item).await? {
            Some(_) => WriteError::Changed { item, attribute: "Inventory" },
            None => WriteError::NotFound { item },
        })
    }

    /// WP-15: removes a product; false when there is none. Its reviews and what was bought of it stay.
    ///
    /// # Errors
    ///
    /// [`WriteError`] of a call that has no outcome.
    pub async fn remove_product(&self, product_id: &ProductId) -> Result<bool, WriteError> {
        self.delete(Product::primary_key(&ProductKey { product_id: product_id.clone() })?).await
    }

    /// WP-15: adds a tag to a product; twice is once.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn add_tag(&self, product_id: &ProductId, tag: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<Product>(&ProductKey { product_id: product_id.clone() })?;
        self.amend(draft.add("Tags", tags(tag)).set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-15: removes a tag from a product; twice is once.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn remove_tag(&self, product_id: &ProductId, tag: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<Product>(&ProductKey { product_id: product_id.clone() })?;
        self.amend(draft.take("Tags", tags(tag)).set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-15: counts a view of a product, atomically, however many count at once.
    ///
    /// An addition cannot be told from another's, so one that was not answered is not sent again: whether it was
    /// counted is then unknown, and the caller who sends it again may count it twice.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`]; [`WriteError::Busy`] when it was not answered.
    pub async fn count_product_view(&self, product_id: &ProductId) -> Result<(), WriteError> {
        let draft = Draft::of::<Product>(&ProductKey { product_id: product_id.clone() })?;
        let write = draft.add("ViewCount", number(1)).write();
        match self.store.write(&write).await {
            Ok(Outcome::Done { .. }) => Ok(()),
            Ok(Outcome::GuardFailed) => Err(WriteError::NotFound { item: write.key }),
            Err(error @ StoreError::Retry { .. }) => {
                Err(WriteError::Busy { item: write.key, n_tries: 1, is_uncertain: true, last: Some(error) })
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn tags(tag: &str) -> AttributeValue {
    AttributeValue::Ss(vec![tag.to_owned()])
}

fn priced(product_id: &ProductId, price: Decimal) -> Result<Decimal, WriteError> {
    if price < Decimal::default() {
        return Err(WriteError::Price { product_id: product_id.clone() });
    }
    Ok(price)
}

fn stocked(product_id: &ProductId, inventory: i64) -> Result<i64, WriteError> {
    if inventory < 0 {
        return Err(WriteError::Stock { product_id: product_id.clone() });
    }
    Ok(inventory)
}
