//! Users, and who follows whom.
//!
//! A follow is one item of the application's, in the follower's collection; its mirror in the followee's is ours.

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
            /// Address of their mail; its index key needs it.
            email: Option<String> = "Email",
            /// URL of their picture.
            avatar: Option<String> = "Avatar",
            /// Number of the profile's last edit; an edit asks that it is still the one that was read.
            version: Option<i64> = "Version",
            /// When they joined, ISO 8601 UTC in milliseconds; its index key needs it.
            created_at: Option<String> = "CreatedAt",
            /// When the profile was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Display of how many follow them; absent for 0.
            follower_count: Option<i64> = "FollowerCount",
            /// Display of how many they follow; absent for 0.
            following_count: Option<i64> = "FollowingCount",
            /// Display of how many published posts they have; absent for 0.
            post_count: Option<i64> = "PostCount",
            /// Display of how many orders they have that are not cancelled; absent for 0.
            order_count: Option<i64> = "OrderCount",
            /// Display of what those orders cost in all; absent for 0.
            lifetime_value: Option<Decimal> = "LifetimeValue",
        }
    }
}

keys::entity! {
    /// A user follows another.
    ground Follow "E-07" {
        key FollowKey("USER#{FollowerId}", "FOLLOWS#{FolloweeId}") {
            /// Who follows.
            follower_id: UserId = "FollowerId",
            /// Who is followed.
            followee_id: UserId = "FolloweeId",
        }
        attributes {
            /// Since when, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the followee's name; absent while they do not exist.
            followee_name: Option<String> = "FolloweeName",
        }
    }
}

keys::entity! {
    /// The mirror of a [`Follow`], in the collection of who is followed.
    derived Follower "E-08" {
        key FollowerKey("USER#{FolloweeId}", "FOLLOWER#{FollowerId}") {
            /// Who is followed.
            followee_id: UserId = "FolloweeId",
            /// Who follows.
            follower_id: UserId = "FollowerId",
        }
        attributes {
            /// The follow's.
            created_at: Option<String> = "CreatedAt",
            /// The follow's.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the follower's name; absent while they do not exist.
            follower_name: Option<String> = "FollowerName",
        }
    }
}
