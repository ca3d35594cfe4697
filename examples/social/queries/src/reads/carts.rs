//! AP-044: what a user has subscribed to, and what they mean to buy.

use derive::query::{Consistency, Query};
use entities::{
    carts::CartItem,
    ids::{CartId, UserId},
    subscriptions::Subscription,
};
use keys::fields::Fields;
use store::Store;

use super::{listing::ListPlan, ranges};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

impl<S: Store> Queries<S> {
    /// AP-044: the subscriptions of a user, by ID.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn subscriptions_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Subscription>, ReadError> {
        let query = ranges::collection::<Subscription>(&Fields::from([("UserId", user.as_str())]))?;
        self.list(&ListPlan::all("AP-044", &self.layout, query), page).await
    }

    /// AP-044: the items of a cart, by the product's ID. Consistent, since a cart is looked at right after something
    /// was put into it.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn items_of_cart(
        &self,
        user: &UserId,
        cart: &CartId,
        page: &PageRequest,
    ) -> Result<Page<CartItem>, ReadError> {
        let fields = Fields::from([("UserId", user.as_str()), ("CartId", cart.as_str())]);
        let query = Query { consistency: Consistency::Strong, ..ranges::collection::<CartItem>(&fields)? };
        self.list(&ListPlan::all("AP-044", &self.layout, query), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![AccessPattern {
        id: "AP-044",
        title: "subscriptions of a user; items of a cart",
        input: "UserId, PageRequest; or UserId, CartId, PageRequest",
        result: "Page<Subscription>; or Page<CartItem>",
        order: "SubscriptionId; or ProductId",
        sample: sample!(|queries| {
            let _page = queries.subscriptions_of(&"{UserId}".into(), &sample_page()).await?;
            let _page = queries.items_of_cart(&"{UserId}".into(), &"{CartId}".into(), &sample_page()).await?;
        }),
    }]
}
