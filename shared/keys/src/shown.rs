//! The revision of a counter, in an attribute beside the one that shows its count.
//!
//! Its value is the counter's revision with five digits behind the point, which are a hash of the item and the attribute. So
//! a revision that was copied from another item is known, and those of one item are in their order.

use serde_dynamo::AttributeValue;

use crate::{entity::Definition, fnv::hash_64, key::Key};

/// What follows the name of the attribute that shows the count. Stored, so it is stable.
const REVISION_SUFFIX: &str = ":rev";

/// Name of the attribute with the revision of the counter whose count this attribute shows.
#[must_use]
pub fn revision_of(attribute: &str) -> String {
    format!("{attribute}{REVISION_SUFFIX}")
}

/// The revision of a counter as this item has it beside this attribute.
#[must_use]
pub fn shown_revision(item: &Key, attribute: &str, revision: &str) -> AttributeValue {
    AttributeValue::N(format!("{revision}.{}", digits(item, attribute)))
}

/// Is this value the revision of a counter that was shown in this attribute of this item, and of no other?
#[must_use]
pub fn is_shown_in(item: &Key, attribute: &str, value: &AttributeValue) -> bool {
    let AttributeValue::N(number) = value else { return false };
    let fraction = number.split_once('.').map_or("", |(_, fraction)| fraction);
    // DynamoDB stores no zeros at the end.
    format!("{fraction:0<5}") == digits(item, attribute)
}

fn digits(item: &Key, attribute: &str) -> String {
    let bytes = [&item.pk, "\0", &item.sk, "\0", attribute].into_iter().flat_map(str::bytes);
    format!("{:05}", hash_64(bytes) % 100_000)
}

/// Is this the name of such an attribute?
#[must_use]
pub fn is_revision(attribute: &str) -> bool {
    attribute.ends_with(REVISION_SUFFIX)
}

impl Definition {
    /// Does this service write an attribute of this name: a derived attribute, or the revision of one?
    #[must_use]
    pub fn derives(&self, name: &str) -> bool {
        let name = name.strip_suffix(REVISION_SUFFIX).unwrap_or(name);
        self.derived_attributes.iter().any(|derived| derived == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_of_one_attribute_of_one_item() {
        let item = Key::new("USER#bob", "PROFILE");
        let AttributeValue::N(shown) = shown_revision(&item, "FollowerCount", "1705315200001") else { unreachable!() };
        assert!(shown.starts_with("1705315200001.") && shown.len() == 19, "{shown}");
        let is_shown = |text: &str| is_shown_in(&item, "FollowerCount", &AttributeValue::N(text.to_owned()));
        assert!(is_shown(&shown) && !is_shown("1705315200001") && !is_shown("5"));
        for (pk, attribute) in [("USER#ann", "FollowerCount"), ("USER#bob", "FollowingCount")] {
            let other = Key::new(pk, "PROFILE");
            assert!(!is_shown_in(&other, attribute, &AttributeValue::N(shown.clone())));
        }
    }

    #[test]
    fn a_revision_is_known_without_the_zeros_at_its_end() {
        let with_zero = (0..1_000).map(|id| Key::new(id.to_string(), "x")).find(|key| digits(key, "n").ends_with('0'));
        let key = with_zero.unwrap();
        let AttributeValue::N(text) = shown_revision(&key, "n", "12") else { unreachable!() };
        assert!(is_shown_in(&key, "n", &AttributeValue::N(text.trim_end_matches('0').to_owned())));
    }
}
