//! Claims of email addresses: an address belongs to one user at most.
//!
//! One transaction writes the user and the claim, on the condition that the claim does not exist.

use crate::ids::UserId;

keys::entity! {
    /// An email address belongs to a user.
    ground EmailClaim "E-26" {
        key EmailClaimKey("EMAIL#{Email}", "CLAIM") {
            /// The address, as [`normalised`].
            email: String = "Email",
        }
        attributes {
            /// The owner of the address.
            user_id: Option<UserId> = "UserId",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

/// The address in the form of a claim: without surrounding blanks, in lower case. Stored, so it is stable.
#[must_use]
pub fn normalised(email: &str) -> String {
    email.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_claimed_without_blanks_and_in_lower_case() {
        assert_eq!(normalised(" Ada@Example.ORG\n"), "ada@example.org");
        assert_eq!(normalised("ada@example.org"), "ada@example.org");
        assert_eq!(normalised("  "), "");
    }
}
