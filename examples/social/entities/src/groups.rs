//! Groups and their members.
//!
//! The application writes a membership in the user's collection; Ripple writes its mirror in the group's collection.

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
            /// Text about the group.
            description: Option<String> = "Description",
            /// When it was founded, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Display: number of members; absent for 0.
            member_count: Option<i64> = "MemberCount",
        }
    }
}

keys::entity! {
    /// The membership of a user in a group.
    ground Membership "E-10" {
        key MembershipKey("USER#{UserId}", "GROUP#{GroupId}") {
            /// The user.
            user_id: UserId = "UserId",
            /// The group.
            group_id: GroupId = "GroupId",
        }
        attributes {
            /// The member's permissions.
            role: Option<String> = "Role",
            /// When the user joined, ISO 8601 UTC in milliseconds.
            joined_at: Option<String> = "JoinedAt",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the group's name; absent while the group does not exist.
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
            /// From the membership.
            role: Option<String> = "Role",
            /// From the membership.
            joined_at: Option<String> = "JoinedAt",
            /// From the membership.
            created_at: Option<String> = "CreatedAt",
            /// From the membership.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Copy of the user's name; absent while the user does not exist.
            user_name: Option<String> = "UserName",
        }
    }
}
