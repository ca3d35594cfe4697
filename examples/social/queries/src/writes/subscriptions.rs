//! Subscriptions and carts.

use store::Store;

use super::{
    attempts::Sent,
    draft::{Draft, number, texts},
};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-19: a user subscribes to a plan.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user has a subscription with this id.
    pub async fn subscribe(&self, user_id: &str, subscription_id: &str, plan: &str) -> Result<(), WriteError> {
        let values = texts([("UserId", user_id), ("SubscriptionId", subscription_id), ("Plan", plan)]);
        self.create("Subscription", &self.now()?, values).await.map(drop)
    }

    /// WP-19: a user ends a subscription; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unsubscribe(&self, user_id: &str, subscription_id: &str) -> Result<bool, WriteError> {
        self.delete(self.key("Subscription", [("UserId", user_id), ("SubscriptionId", subscription_id)])?).await
    }

    /// WP-19: sets the number of pieces of a product in a cart, whatever it was before; a second time changes nothing.
    ///
    /// The cart's item is put if it does not exist, and changed if it does. The write starts again if another client
    /// removes the item in between.
    ///
    /// # Errors
    ///
    /// [`WriteError::Quantity`] below 1.
    pub async fn put_into_cart(
        &self,
        user_id: &str,
        cart_id: &str,
        product_id: &str,
        quantity: i64,
    ) -> Result<(), WriteError> {
        if quantity < 1 {
            return Err(WriteError::Quantity { product_id: product_id.to_owned() });
        }
        let (now, quantity) = (self.now()?, ("Quantity", number(quantity)));
        let key = texts([("UserId", user_id), ("CartId", cart_id), ("ProductId", product_id)]);
        let creation = self.creation("CartItem", &now, key.chain([quantity.clone()]))?;
        let change = Draft::of(creation.key.clone(), &now).set(quantity.0, quantity.1).write();
        let mut attempts = self.attempts();
        loop {
            for write in [&creation, &change] {
                if attempts.send(std::slice::from_ref(write)).await? == Sent::Done {
                    return Ok(());
                }
            }
            attempts.again(&creation.key).await?;
        }
    }

    /// WP-19: takes a product out of a cart; returns false if it was not in it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn take_out_of_cart(&self, user_id: &str, cart_id: &str, product_id: &str) -> Result<bool, WriteError> {
        let key = [("UserId", user_id), ("CartId", cart_id), ("ProductId", product_id)];
        self.delete(self.key("CartItem", key)?).await
    }
}
