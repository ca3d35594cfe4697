//! The revision of a counter, in an attribute beside its display.
//!
//! Its value is the counter's revision with five decimal places, which are a hash of the item and the attribute. So a
//! revision that was copied from another item is detected, and those of one item keep their order.

use serde_dynamo::AttributeValue;

use crate::{entity::Definition, fnv::hash_64, key::Key};

/// Suffix of the display's attribute name. Stored, so it is stable.
const REVISION_SUFFIX: &str = ":rev";

/// Name of the attribute with the revision of the counter that this attribute displays.
#[must_use]
pub fn revision_of(attribute: &str) -> String {
    format!("{attribute}{REVISION_SUFFIX}")
}

/// The revision of a counter in the form for this item and attribute.
#[must_use]
pub fn shown_revision(item: &Key, attribute: &str, revision: &str) -> AttributeValue {
    AttributeValue::N(format!("{revision}.{}", digits(item, attribute)))
}

/// True if this value is a counter's revision in the form for this item and attribute, and no other.
#[must_use]
pub fn is_shown_in(item: &Key, attribute: &str, value: &AttributeValue) -> bool {
    let AttributeValue::N(number) = value else { return false };
    let fraction = number.split_once('.').map_or("", |(_, fraction)| fraction);
    // DynamoDB stores no trailing zeros.
    format!("{fraction:0<5}") == digits(item, attribute)
}

/// The counter's revision in a value of this form: a time in milliseconds since the epoch, plus a number of changes.
#[must_use]
pub fn revision_ms(value: &AttributeValue) -> Option<u64> {
    let AttributeValue::N(number) = value else { return None };
    number.split('.').next()?.parse().ok()
}

fn digits(item: &Key, attribute: &str) -> String {
    let bytes = [&item.pk, "\0", &item.sk, "\0", attribute].into_iter().flat_map(str::bytes);
    format!("{:05}", hash_64(bytes) % 100_000)
}

/// True for the name of a revision attribute.
#[must_use]
pub fn is_revision(attribute: &str) -> bool {
    attribute.ends_with(REVISION_SUFFIX)
}

impl Definition {
    /// True if this service writes an attribute of this name: a derived attribute, or the revision of one.
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
