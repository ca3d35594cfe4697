//! Users and follows.
//!
//! The application writes a follow in the follower's collection; Ripple writes its mirror in the followee's collection.

use keys::number::Decimal;

use crate::ids::UserId;

keys::entity! {
    /// A user.
    ground User "E-01" {
        key UserKey("USER#{UserId}", "PROFILE") {
            /// The user.
            user_id: UserId = "UserId",
        }
        index "GSI1" ("EMAIL#{Email}", "USER#{UserId}");
        index "GSI2" ("USERS#{UserId%8}", "{CreatedAt}#{UserId}");
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// Email address; the index key needs it.
            email: Option<String> = "Email",
            /// URL of the user's picture.
            avatar: Option<String> = "Avatar",
            /// Number of the last edit of the profile. An edit requires that it is still the number that was read.
            version: Option<i64> = "Version",
            /// When the user joined, ISO 8601 UTC in milliseconds; the index key needs it.
            created_at: Option<String> = "CreatedAt",
            /// When the profile was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Display: number of followers; absent for 0.
            follower_count: Option<i64> = "FollowerCount",
            /// Display: number of followed users; absent for 0.
            following_count: Option<i64> = "FollowingCount",
            /// Display: number of published posts; absent for 0.
            post_count: Option<i64> = "PostCount",
            /// Display: number of orders that are not cancelled; absent for 0.
            order_count: Option<i64> = "OrderCount",
            /// Display: total price of these orders; absent for 0.
            lifetime_value: Option<Decimal> = "LifetimeValue",
        }
    }
}

keys::entity! {
    /// A follow of one user by another.
    ground Follow "E-07" {
        key FollowKey("USER#{FollowerId}", "FOLLOWS#{FolloweeId}") {
            /// The follower.
            follower_id: UserId = "FollowerId",
            /// The followee.
            followee_id: UserId = "FolloweeId",
        }
        attributes {
            /// When the follow began, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the followee's name; absent while the followee does not exist.
            followee_name: Option<String> = "FolloweeName",
        }
    }
}

keys::entity! {
    /// The mirror of a [`Follow`], in the followee's collection.
    derived Follower "E-08" {
        key FollowerKey("USER#{FolloweeId}", "FOLLOWER#{FollowerId}") {
            /// The followee.
            followee_id: UserId = "FolloweeId",
            /// The follower.
            follower_id: UserId = "FollowerId",
        }
        attributes {
            /// From the follow.
            created_at: Option<String> = "CreatedAt",
            /// From the follow.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the follower's name; absent while the follower does not exist.
            follower_name: Option<String> = "FollowerName",
        }
    }
}
