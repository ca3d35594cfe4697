//! Subscriptions, in the collections of their users.

use crate::ids::{SubscriptionId, UserId};

keys::entity! {
    /// A subscription of a user to a plan.
    ground Subscription "E-28" {
        key SubscriptionKey("USER#{UserId}", "SUB#{SubscriptionId}") {
            /// The subscriber.
            user_id: UserId = "UserId",
            /// The subscription.
            subscription_id: SubscriptionId = "SubscriptionId",
        }
        attributes {
            /// Name of the plan.
            plan: Option<String> = "Plan",
            /// When it began, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}
