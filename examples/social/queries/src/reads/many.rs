//! AP-041: many items by their ids, in one call.
//!
//! What was asked for and is not there is named; what an index left out of its projections is read here, too.

use derive::query::Consistency;
use entities::{
    ids::{PostId, ProductId, UserId},
    people::{User, UserKey},
    posts::{PostDetail, PostDetailKey},
    products::{Product, ProductKey},
};
use keys::entity::Entity;
use store::Store;

use super::found::FoundItems;
use crate::{
    Queries,
    pattern::{AccessPattern, sample},
    read_error::ReadError,
};

impl<S: Store> Queries<S> {
    /// AP-041: users by many ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`], with nothing read.
    pub async fn users(&self, users: &[UserId], consistency: Consistency) -> Result<FoundItems<User>, ReadError> {
        self.items(users.iter().map(|user| UserKey { user_id: user.clone() }).collect(), consistency).await
    }

    /// AP-041: posts by many ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`], with nothing read.
    pub async fn posts(&self, posts: &[PostId], consistency: Consistency) -> Result<FoundItems<PostDetail>, ReadError> {
        self.items(posts.iter().map(|post| PostDetailKey { post_id: post.clone() }).collect(), consistency).await
    }

    /// AP-041: products by many ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`], with nothing read.
    pub async fn products(
        &self,
        products: &[ProductId],
        consistency: Consistency,
    ) -> Result<FoundItems<Product>, ReadError> {
        self.items(products.iter().map(|product| ProductKey { product_id: product.clone() }).collect(), consistency)
            .await
    }

    /// AP-041: items of any entity by their keys, such as those of an index's projections, of which the rest is wanted.
    ///
    /// # Errors
    ///
    /// [`ReadError`], with nothing read.
    pub async fn items<E: Entity>(
        &self,
        keys: Vec<E::Key>,
        consistency: Consistency,
    ) -> Result<FoundItems<E>, ReadError> {
        self.many(keys, consistency).await
    }
}

/// This part's patterns.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![AccessPattern {
        id: "AP-041",
        title: "users, posts or products by many ids, missing ones named",
        input: "ids, Consistency",
        result: "FoundItems: items, missing keys",
        order: "as asked for",
        sample: sample!(|queries| {
            let ids = ["{Id}", "{Id 2}"];
            let _found = queries.users(&ids.map(UserId::from), Consistency::Eventual).await?;
            let _found = queries.posts(&ids.map(PostId::from), Consistency::Eventual).await?;
            let _found = queries.products(&ids.map(ProductId::from), Consistency::Eventual).await?;
        }),
    }]
}
