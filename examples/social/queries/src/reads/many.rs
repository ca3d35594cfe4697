//! AP-041: many items by their ids, in one call.
//!
//! The result names the missing items. This also reads the attributes that an index does not project.

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
    /// [`ReadError`] if nothing could be read.
    pub async fn users(&self, users: &[UserId], consistency: Consistency) -> Result<FoundItems<User>, ReadError> {
        self.items(users.iter().map(|user| UserKey { user_id: user.clone() }).collect(), consistency).await
    }

    /// AP-041: posts by many ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn posts(&self, posts: &[PostId], consistency: Consistency) -> Result<FoundItems<PostDetail>, ReadError> {
        self.items(posts.iter().map(|post| PostDetailKey { post_id: post.clone() }).collect(), consistency).await
    }

    /// AP-041: products by many ids.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn products(
        &self,
        products: &[ProductId],
        consistency: Consistency,
    ) -> Result<FoundItems<Product>, ReadError> {
        self.items(products.iter().map(|product| ProductKey { product_id: product.clone() }).collect(), consistency)
            .await
    }

    /// AP-041: items of any entity by their keys, such as the whole items of an index's entries.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn items<E: Entity>(
        &self,
        keys: Vec<E::Key>,
        consistency: Consistency,
    ) -> Result<FoundItems<E>, ReadError> {
        self.many(keys, consistency).await
    }
}

/// The patterns of this file.
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
