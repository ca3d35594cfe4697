//! Ranges of sort keys, as they are asked for outside.

use serde_dynamo::AttributeValue;

use super::{KeyAttribute, KeyType, key_attribute::key_bytes};

/// What a query asks of the attributes of a key: the last of them may be a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRange {
    /// Attributes that have one value.
    pub equal: Vec<(String, AttributeValue)>,
    /// The attribute behind them that begins with a text.
    pub begins_with: Option<(String, AttributeValue)>,
    /// The attribute that is between two values, both included.
    pub between: Option<(String, [AttributeValue; 2])>,
}

impl KeyRange {
    /// What a partition key asks; `None` where no item can have it.
    #[must_use]
    pub fn partition(attributes: &[KeyAttribute], text: &str) -> Option<Self> {
        Some(Self { equal: values(attributes, text)?, ..Self::default() })
    }

    /// What all sort keys ask that begin with a text. It may find more, where the text is no whole number, so whoever asks
    /// compares what is found.
    #[must_use]
    pub fn prefix(attributes: &[KeyAttribute], text: &str) -> Self {
        let mut range = Self::default();
        let mut parts = parts(attributes, text);
        let last = parts.pop();
        for (attribute, part) in parts {
            let Some(value) = attribute.value(part) else { return range };
            range.equal.push((attribute.name.clone(), value));
        }
        match last {
            Some((attribute, part)) if attribute.of == KeyType::S && !part.is_empty() => {
                range.begins_with = attribute.value(part).map(|value| (attribute.name.clone(), value));
            }
            // Whoever knows a number or bytes knows all of them.
            Some((attribute, part)) if attribute.of != KeyType::S => {
                range.equal.extend(attribute.value(part).map(|value| (attribute.name.clone(), value)));
            }
            _ => {}
        }
        range
    }

    /// What all sort keys ask from the first text to the last. It may find more, as [`prefix`](Self::prefix) does.
    #[must_use]
    pub fn between(attributes: &[KeyAttribute], first: &str, last: &str) -> Self {
        let of = |attribute: &KeyAttribute| Some([attribute.value(first)?, attribute.value(last)?]);
        let between = match attributes {
            [only] => of(only).map(|both| (only.name.clone(), both)),
            _ => None,
        };
        Self { between, ..Self::default() }
    }
}

/// The values of a key's attributes, whose texts are joined; `None` where it is the text of none.
pub(super) fn values(attributes: &[KeyAttribute], text: &str) -> Option<Vec<(String, AttributeValue)>> {
    let parts = parts(attributes, text).into_iter();
    let values = parts.map(|(attribute, part)| Some((attribute.name.clone(), attribute.value(part)?)));
    values.collect::<Option<Vec<_>>>().filter(|values| values.len() == attributes.len())
}

/// The bytes of the longest value of a key's attributes, whose texts are joined: DynamoDB limits each of them. Those of the
/// text itself where it is the text of none.
#[must_use]
pub fn stored_bytes(attributes: &[KeyAttribute], text: &str) -> usize {
    let longest = |values: Vec<(String, AttributeValue)>| values.iter().filter_map(|(_, value)| key_bytes(value)).max();
    values(attributes, text).map_or(text.len(), |values| longest(values).unwrap_or_default())
}

/// The text of each attribute of a key, as far as there is one.
fn parts<'a>(attributes: &'a [KeyAttribute], text: &'a str) -> Vec<(&'a KeyAttribute, &'a str)> {
    match attributes {
        // A text of a declared form is one value, whatever is in it.
        [only] => vec![(only, text)],
        all => all.iter().zip(text.split('#')).collect(),
    }
}
