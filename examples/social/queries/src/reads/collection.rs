//! AP-004: all items in a user's collection.

use derive::query::{Query, SortKeys};
use entities::{
    counter::Counter,
    groups::Membership,
    ids::UserId,
    orders::Order,
    people::{Follow, Follower, User, UserKey},
    posts::{Like, Post, View},
    subscriptions::Subscription,
};
use keys::{counter, entity::Entity, error::EntityError, fields::Fields, item::Item, layout::Layout};
use store::Store;

use super::{listing::ListPlan, ranges};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

/// Declares the entities of a collection: a kind and a typed item for each, and how an item is read.
macro_rules! collected {
    ($($entity:ident),* $(,)?) => {
        /// A kind of items in a user's collection, in the order of the sort keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ItemKind {
            $(#[doc = concat!("Items of the entity [`", stringify!($entity), "`].")] $entity,)*
        }

        impl ItemKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$entity),*];
        }

        /// An item of a user's collection.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Collected {
            $(#[doc = concat!("A [`", stringify!($entity), "`].")] $entity(Box<$entity>),)*
        }

        fn collected(layout: &Layout, item: &Item) -> Result<Option<Collected>, EntityError> {
            $(if let Some(entity) = $entity::from_item(layout, item)? {
                return Ok(Some(Collected::$entity(Box::new(entity))));
            })*
            Ok(None)
        }
    };
}

collected!(Follower, Follow, Membership, Like, Order, Post, User, Counter, Subscription, View);

impl<S: Store> Queries<S> {
    /// AP-004: a user's whole collection, in the order of the sort keys.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn collection_of(&self, user: &UserId, page: &PageRequest) -> Result<Page<Collected>, ReadError> {
        let key = User::primary_key(&UserKey { user_id: user.clone() })?;
        let query = ranges::eventual(Query::prefix(None, key.pk, ""));
        let take = |item: &_| collected(&self.layout, item);
        self.list(&ListPlan::of("AP-004", query, Box::new(take)), page).await
    }

    /// AP-004: chosen kinds of a user's collection, in the order of the sort keys: one query each, as far as the page
    /// goes.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn kinds_of(
        &self,
        user: &UserId,
        kinds: &[ItemKind],
        page: &PageRequest,
    ) -> Result<Page<Collected>, ReadError> {
        let mut kinds = kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        let queries = kinds.into_iter().map(|kind| of_kind(user, kind)).collect::<Result<_, _>>()?;
        let take = |item: &_| collected(&self.layout, item);
        let listing = ListPlan { pattern: "AP-004", queries, filter: String::new(), take: Box::new(take) };
        self.list(&listing, page).await
    }
}

fn of_kind(user: &UserId, kind: ItemKind) -> Result<Query, ReadError> {
    let of = |field: &str| Fields::from([(field, user.as_str())]);
    let profile = || User::primary_key(&UserKey { user_id: user.clone() });
    match kind {
        ItemKind::Follower => ranges::collection::<Follower>(&of("FolloweeId")),
        ItemKind::Follow => ranges::collection::<Follow>(&of("FollowerId")),
        ItemKind::Membership => ranges::collection::<Membership>(&of("UserId")),
        ItemKind::Like => ranges::collection::<Like>(&of("UserId")),
        ItemKind::Order => ranges::collection::<Order>(&of("UserId")),
        ItemKind::Post => ranges::collection::<Post>(&of("AuthorId")),
        ItemKind::Subscription => ranges::collection::<Subscription>(&of("UserId")),
        ItemKind::View => ranges::collection::<View>(&of("UserId")),
        // A user's sort key is a prefix of its counters' sort keys.
        ItemKind::User => {
            let key = profile()?;
            Ok(ranges::eventual(Query::of(None, key.pk, SortKeys::Between(key.sk.clone(), key.sk))))
        }
        ItemKind::Counter => {
            let key = profile()?;
            let prefix = counter::prefix(&key);
            Ok(ranges::eventual(Query::prefix(None, key.pk, prefix)))
        }
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![AccessPattern {
        id: "AP-004",
        title: "a user's whole collection, or chosen kinds, one query each",
        input: "UserId, PageRequest; or UserId, Kinds, PageRequest",
        result: "Page<Collected>: any entity of the collection",
        order: "SK",
        sample: sample!(|queries| {
            let _page = queries.collection_of(&"{UserId}".into(), &sample_page()).await?;
            let _page = queries.kinds_of(&"{UserId}".into(), ItemKind::ALL, &sample_page()).await?;
        }),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_sort_keys() {
        let queries = ItemKind::ALL.iter().map(|kind| of_kind(&UserId::from("u"), *kind).unwrap());
        let sks: Vec<String> = queries.map(|query| query.sk.first().to_owned()).collect();
        assert!(sks.is_sorted(), "{sks:?}");
    }
}
