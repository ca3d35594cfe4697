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
    /// [`WriteError::AlreadyExists`] for a subscription of theirs that is there.
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

    /// WP-19: a user ends a subscription; false when there is none.
    ///
    /// # Errors
    ///
    /// [`WriteError`] of a call that has no outcome.
    pub async fn unsubscribe(&self, user_id: &UserId, subscription_id: &SubscriptionId) -> Result<bool, WriteError> {
        let key = SubscriptionKey { user_id: user_id.clone(), subscription_id: subscription_id.clone() };
        self.delete(Subscription::primary_key(&key)?).await
    }

    /// WP-19: so many of a product are in a cart from now on, however many were in it: twice is once.
    ///
    /// The cart's item is put when it is not there, and changed when it is; somebody who takes it out in between
    /// makes it begin again.
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

    /// WP-19: takes a product out of a cart; false when it was not in it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] of a call that has no outcome.
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
