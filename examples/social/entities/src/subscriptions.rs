//! Subscriptions, in the collections of who has them.

use crate::ids::{SubscriptionId, UserId};

keys::entity! {
    /// A user subscribes to a plan.
    ground Subscription "E-28" {
        key SubscriptionKey("USER#{UserId}", "SUB#{SubscriptionId}") {
            /// Who subscribes.
            user_id: UserId = "UserId",
            /// The subscription.
            subscription_id: SubscriptionId = "SubscriptionId",
        }
        attributes {
            /// What they get.
            plan: Option<String> = "Plan",
            /// Since when, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}
