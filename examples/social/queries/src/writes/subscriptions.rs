//! Subscriptions and carts.

use entities::{
    carts::{CartItem, CartItemKey},
    ids::{CartId, ProductId, SubscriptionId, UserId},
    subscriptions::{Subscription, SubscriptionKey},
};
use keys::entity::Entity;
use store::Store;

use super::{
    attempts::Sent,
    draft::{Draft, number, text},
};
use crate::{Queries, write_error::WriteError};

impl<S: Store> Queries<S> {
    /// WP-19: a user subscribes to a plan.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`] if the user has a subscription with this id.
    pub async fn subscribe(
        &self,
        user_id: &UserId,
        subscription_id: &SubscriptionId,
        plan: &str,
    ) -> Result<(), WriteError> {
        let now = self.now()?;
        let subscription = Subscription {
            key: SubscriptionKey { user_id: user_id.clone(), subscription_id: subscription_id.clone() },
            plan: Some(plan.to_owned()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
        };
        self.create(&subscription).await
    }

    /// WP-19: a user ends a subscription; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn unsubscribe(&self, user_id: &UserId, subscription_id: &SubscriptionId) -> Result<bool, WriteError> {
        let key = SubscriptionKey { user_id: user_id.clone(), subscription_id: subscription_id.clone() };
        self.delete(Subscription::primary_key(&key)?).await
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
        user_id: &UserId,
        cart_id: &CartId,
        product_id: &ProductId,
        quantity: i64,
    ) -> Result<(), WriteError> {
        if quantity < 1 {
            return Err(WriteError::Quantity { product_id: product_id.clone() });
        }
        let now = self.now()?;
        let item = CartItem {
            key: cart_item(user_id, cart_id, product_id),
            quantity: Some(quantity),
            created_at: Some(now.clone()),
            updated_at: Some(now.clone()),
        };
        let creation = self.creation(&item)?;
        let change = Draft::of::<CartItem>(&item.key)?.set("Quantity", number(quantity)).set("UpdatedAt", text(now));
        let (change, mut attempts) = (change.write(), self.attempts());
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
    pub async fn take_out_of_cart(
        &self,
        user_id: &UserId,
        cart_id: &CartId,
        product_id: &ProductId,
    ) -> Result<bool, WriteError> {
        self.delete(CartItem::primary_key(&cart_item(user_id, cart_id, product_id))?).await
    }
}

fn cart_item(user_id: &UserId, cart_id: &CartId, product_id: &ProductId) -> CartItemKey {
    CartItemKey { user_id: user_id.clone(), cart_id: cart_id.clone(), product_id: product_id.clone() }
}
