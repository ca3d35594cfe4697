//! The form in which a value is kept.

use keys::number;
use serde_dynamo::AttributeValue;

/// The value in DynamoDB's form: numbers in their one form, sets in an order of their own.
pub(super) fn canonical(value: &AttributeValue) -> AttributeValue {
    let number = |text: &String| number::canonical(text).unwrap_or_else(|| text.clone());
    match value {
        AttributeValue::N(text) => AttributeValue::N(number(text)),
        AttributeValue::Ss(set) => AttributeValue::Ss(sorted(set.clone())),
        AttributeValue::Ns(set) => AttributeValue::Ns(sorted(set.iter().map(number).collect())),
        AttributeValue::Bs(set) => AttributeValue::Bs(sorted(set.clone())),
        AttributeValue::L(list) => AttributeValue::L(list.iter().map(canonical).collect()),
        AttributeValue::M(map) => {
            AttributeValue::M(map.iter().map(|(name, value)| (name.clone(), canonical(value))).collect())
        }
        scalar => scalar.clone(),
    }
}

fn sorted<T: Ord>(mut set: Vec<T>) -> Vec<T> {
    set.sort();
    set
}
