//! Groups, and who is in them.
//!
//! A membership is one item of the application's, in the user's collection; its mirror in the group's is ours.

use crate::ids::{GroupId, UserId};

keys::entity! {
    /// A group.
    ground Group "E-09" {
        key GroupKey("GROUP#{GroupId}", "METADATA") {
            /// The group.
            group_id: GroupId = "GroupId",
        }
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// What it is about.
            description: Option<String> = "Description",
            /// When it was founded, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Display of how many are in it; absent for 0.
            member_count: Option<i64> = "MemberCount",
        }
    }
}

keys::entity! {
    /// A user is in a group.
    ground Membership "E-10" {
        key MembershipKey("USER#{UserId}", "GROUP#{GroupId}") {
            /// The user.
            user_id: UserId = "UserId",
            /// The group.
            group_id: GroupId = "GroupId",
        }
        attributes {
            /// What they may do there.
            role: Option<String> = "Role",
            /// Since when, ISO 8601 UTC in milliseconds.
            joined_at: Option<String> = "JoinedAt",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the group's name; absent while it does not exist.
            group_name: Option<String> = "GroupName",
        }
    }
}

keys::entity! {
    /// The mirror of a [`Membership`], in the group's collection.
    derived GroupMember "E-11" {
        key GroupMemberKey("GROUP#{GroupId}", "USER#{UserId}") {
            /// The group.
            group_id: GroupId = "GroupId",
            /// The user.
            user_id: UserId = "UserId",
        }
        attributes {
            /// The membership's.
            role: Option<String> = "Role",
            /// The membership's.
            joined_at: Option<String> = "JoinedAt",
            /// The membership's.
            created_at: Option<String> = "CreatedAt",
            /// The membership's.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the user's name; absent while they do not exist.
            user_name: Option<String> = "UserName",
        }
    }
}
