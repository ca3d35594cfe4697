//! Users, follows, claims of email addresses, subscriptions, and a counter.

use keys::{counter::CounterKey, entity::Entity, error::EntityError, item::Item, key::Key, number::Decimal};

use super::AT;
use crate::{
    counter::Counter,
    emails::{EmailClaim, EmailClaimKey},
    people::{Follow, FollowKey, Follower, FollowerKey, User, UserKey},
    subscriptions::{Subscription, SubscriptionKey},
    table::layout,
};

pub(super) fn samples() -> Result<Vec<Item>, EntityError> {
    let layout = layout();
    Ok(vec![
        user().to_item(&layout)?,
        Follow {
            key: FollowKey { follower_id: "grace".into(), followee_id: "ada".into() },
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            followee_name: Some("Ada Lovelace".into()),
        }
        .to_item(&layout)?,
        Follower {
            key: FollowerKey { followee_id: "ada".into(), follower_id: "grace".into() },
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            follower_name: Some("Grace Hopper".into()),
        }
        .to_item(&layout)?,
        EmailClaim {
            key: EmailClaimKey { email: "ada@example.org".to_owned() },
            user_id: Some("ada".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        Subscription {
            key: SubscriptionKey { user_id: "ada".into(), subscription_id: "s-501".into() },
            plan: Some("yearly".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        Counter {
            key: CounterKey {
                target: Key::new("USER#ada", "PROFILE"),
                derivation: "order-totals".to_owned(),
                satellite: 0,
            },
            value: Some(12),
            sum: Decimal::parse("1843.5"),
        }
        .to_item(&layout)?,
    ])
}

fn user() -> User {
    User {
        key: UserKey { user_id: "ada".into() },
        name: Some("Ada Lovelace".into()),
        email: Some("ada@example.org".into()),
        avatar: Some("https://images.example.org/avatars/ada.webp".into()),
        version: Some(3),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        follower_count: Some(1_204),
        following_count: Some(87),
        post_count: Some(31),
        order_count: Some(12),
        lifetime_value: Decimal::parse("1843.5"),
    }
}
