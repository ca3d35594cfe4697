//! Keys of entries: items of Ripple's own beside a target, one for each item that leads to it, in the order of a value.
//!
//! The first or the last entry of a target gives its extreme or latest value with one query, wherever the items that
//! lead to it are stored, and whatever their keys look like. The form is the same in every table, as that of
//! [counters](crate::counter).
//!
//! ```
//! use keys::{entry, key::Key};
//!
//! let definition = entry::definition("cheapest")?;
//! let fields = entry::fields(&Key::new("PRODUCT#p", "PRODUCT"), "n02:15", &Key::new("OFFER#o", "OFFER"));
//! let key = definition.build(&fields).unwrap();
//! assert_eq!(key, Key::new("PRODUCT#p", "PRODUCT#RIPPLE#cheapest#n02:15#OFFER%23o#OFFER"));
//! assert_eq!(definition.key.parse_key(&key), Some(fields));
//! assert!(entry::is_entry(&key));
//! # Ok::<(), keys::error::TemplateError>(())
//! ```

use serde_dynamo::AttributeValue;

use crate::{
    counter::TARGET_PARTITION,
    entity::{Definition, KeyTemplate},
    error::TemplateError,
    fields::Fields,
    key::Key,
    number::sortable,
};

/// Suffix of the name of the derivation that keeps entries, and of their entity. Stored, so it is stable.
pub const ENTRIES: &str = "-entries";

/// Attribute with the values that an entry has of its source: a map. Stored, so it is stable.
pub const CARRIED: &str = "Carried";

/// Separates a target's sort key from the name of the derivation that reads the entries. Stored, so it is stable.
pub const MARK: &str = "#RIPPLE#";

/// The entity of the entries for the derivation of this name.
///
/// # Errors
///
/// [`TemplateError`] if the name has a character that no form takes.
pub fn definition(derivation: &str) -> Result<Definition, TemplateError> {
    let sk = format!("{{TargetSK*}}{MARK}{derivation}#{{By}}#{{SourcePK}}#{{SourceSK}}");
    let name = format!("{derivation}{ENTRIES}");
    Ok(Definition {
        id: name.clone(),
        name,
        key: KeyTemplate::parse("{TargetPK*}", &sk)?,
        indexes: Vec::new(),
        derived: true,
        attributes: vec![CARRIED.to_owned()],
        derived_attributes: Vec::new(),
    })
}

/// The fields of the key of a target's entry for this item, with the [text](by) of the value that orders it.
#[must_use]
pub fn fields(target: &Key, by: &str, source: &Key) -> Fields {
    Fields::from([
        (TARGET_PARTITION, target.pk.as_str()),
        ("TargetSK", &target.sk),
        ("By", by),
        ("SourcePK", &source.pk),
        ("SourceSK", &source.sk),
    ])
}

/// The target that an entry with these fields is beside.
#[must_use]
pub fn target(fields: &Fields) -> Option<Key> {
    Some(Key::new(fields.get(TARGET_PARTITION)?, fields.get("TargetSK")?))
}

/// The item that has an entry with these fields.
#[must_use]
pub fn source(fields: &Fields) -> Option<Key> {
    Some(Key::new(fields.get("SourcePK")?, fields.get("SourceSK")?))
}

/// The beginning of the sort keys of a target's entries.
#[must_use]
pub fn prefix(target: &Key, derivation: &str) -> String {
    format!("{}{MARK}{derivation}#", target.sk)
}

/// True if this is the key of an entry.
#[must_use]
pub fn is_entry(key: &Key) -> bool {
    let rest = key.sk.rsplitn(4, '#').nth(3).and_then(|rest| rest.rsplit_once(MARK));
    rest.is_some_and(|(target, name)| !target.is_empty() && !name.is_empty() && !name.contains('#'))
}

/// The text of a value that orders entries: numbers first, by value, and texts as DynamoDB orders them. `None` for a
/// value of another type, or a number that has [no such text](sortable).
#[must_use]
pub fn by(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::N(number) => Some(format!("n{}", sortable(number)?)),
        AttributeValue::S(text) => {
            // What follows the text in a key begins with #. So what is not above % is written as % and two digits.
            let written = |c: char| if c > '%' { c.to_string() } else { format!("%{:02X}", u32::from(c)) };
            Some(format!("s{}", text.chars().map(written).collect::<String>()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sort_key(by: &str, source: &str) -> String {
        let (target, source) = (Key::new("p", "s"), Key::new(source, source));
        let fields = fields(&target, by, &source);
        assert_eq!((super::target(&fields), super::source(&fields)), (Some(target.clone()), Some(source)));
        let key = definition("d").unwrap().build(&fields).unwrap();
        assert_eq!(definition("d").unwrap().key.parse_key(&key), Some(fields));
        assert!(is_entry(&key) && key.sk.starts_with(&prefix(&target, "d")), "{key}");
        key.sk
    }

    proptest! {
        #[test]
        fn entries_are_in_the_order_of_their_texts(one in "[ -&/0aä~\0]{0,6}", other in "[ -&/0aä~\0]{0,6}", ids in "[#%!a]{2}") {
            let of = |text: &str| by(&AttributeValue::S(text.to_owned())).unwrap();
            let [first, second] = [(&one, &ids[..1]), (&other, &ids[1..])].map(|(text, id)| sort_key(&of(text), id));
            if one != other {
                prop_assert_eq!(first.cmp(&second), one.cmp(&other), "{} {}", first, second);
            }
        }

        #[test]
        fn entries_are_in_the_order_of_their_numbers(one in -2000i32..2000, other in -2000i32..2000, ids in "[#%!a]{2}") {
            let of = |number: i32| by(&AttributeValue::N(format!("{}.{}", number / 10, number.abs() % 10))).unwrap();
            let [first, second] = [(one, &ids[..1]), (other, &ids[1..])].map(|(number, id)| sort_key(&of(number), id));
            let [one, other] = [one, other].map(|number| if number > -10 && number < 0 { -number } else { number });
            if one != other {
                prop_assert_eq!(first.cmp(&second), one.cmp(&other), "{} {}", first, second);
            }
        }
    }

    #[test]
    fn only_numbers_and_texts_order_entries() {
        for value in [AttributeValue::Bool(true), AttributeValue::Null(true), AttributeValue::L(Vec::new())] {
            assert_eq!(by(&value), None);
        }
        assert_eq!(by(&AttributeValue::N("1E120".to_owned())), None);
    }

    #[test]
    fn keys_of_others_are_no_entries() {
        for sk in ["", "PROFILE", "PROFILE#COUNT#n#00", "#RIPPLE#n#a#b#c", "a#RIPPLE#n#b#c", "a#RIPPLE##a#b#c"] {
            assert!(!is_entry(&Key::new("p", sk)), "{sk}");
        }
    }
}
