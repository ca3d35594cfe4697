//! Equality of attribute values.
//!
//! Values are compared like in DynamoDB: a number in any form (`2.0` is `2`), a set and a map in any order. An equal
//! value is never written again.

use std::cmp::Ordering;

use serde_dynamo::AttributeValue;

use crate::{
    item::Item,
    number::{self, Decimal},
};

/// The type of a value, as DynamoDB names it.
#[must_use]
pub fn type_of(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "S",
        AttributeValue::N(_) => "N",
        AttributeValue::B(_) => "B",
        AttributeValue::Bool(_) => "BOOL",
        AttributeValue::Null(_) => "NULL",
        AttributeValue::Ss(_) => "SS",
        AttributeValue::Ns(_) => "NS",
        AttributeValue::Bs(_) => "BS",
        AttributeValue::L(_) => "L",
        AttributeValue::M(_) => "M",
    }
}

/// True if these are the same value, or both are absent.
#[must_use]
pub fn same(a: Option<&AttributeValue>, b: Option<&AttributeValue>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b || same_value(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// True if these two items have the same attributes with the same values.
#[must_use]
pub fn same_item(a: &Item, b: &Item) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|((a, a_value), (b, b_value))| a == b && same(Some(a_value), Some(b_value)))
}

/// Names of the attributes that differ between two items, or that only one of them has.
#[must_use]
pub fn differing<'a>(a: &'a Item, b: &'a Item) -> Vec<&'a str> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut names = Vec::new();
    // Both are sorted by name, so they are merged in one pass.
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return names,
        };
        let one = if order.is_le() { a.next() } else { None };
        let other = if order.is_ge() { b.next() } else { None };
        if !same(one.map(|(_, value)| value), other.map(|(_, value)| value)) {
            names.extend(one.or(other).map(|(name, _)| name));
        }
    }
}

/// True if the first is below the second. Compares binary values by bytes and numbers by value; false for other types.
#[must_use]
pub fn below(value: &AttributeValue, bound: &AttributeValue) -> bool {
    match (value, bound) {
        (AttributeValue::B(value), AttributeValue::B(bound)) => value < bound,
        (AttributeValue::N(_), AttributeValue::N(_)) => at_least(bound, value) && !at_least(value, bound),
        _ => false,
    }
}

/// True if both are numbers, and the first is at least the second.
#[must_use]
pub fn at_least(value: &AttributeValue, least: &AttributeValue) -> bool {
    match (value, least) {
        (AttributeValue::N(value), AttributeValue::N(least)) => {
            matches!((Decimal::parse(value), Decimal::parse(least)), (Some(value), Some(least)) if value >= least)
        }
        _ => false,
    }
}

/// True if this is the number 0.
#[must_use]
pub fn is_zero(value: &AttributeValue) -> bool {
    whole_number(value) == Some(0)
}

/// The whole number in a value; `None` if it is another number, not a number, or too large for a count.
#[must_use]
pub fn whole_number(value: &AttributeValue) -> Option<i64> {
    match value {
        AttributeValue::N(text) => number::whole(text),
        _ => None,
    }
}

fn same_value(a: &AttributeValue, b: &AttributeValue) -> bool {
    match (a, b) {
        (AttributeValue::N(a), AttributeValue::N(b)) => number::same(a, b),
        (AttributeValue::L(a), AttributeValue::L(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (AttributeValue::M(a), AttributeValue::M(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same_value(a, b)))
        }
        (AttributeValue::Ss(a), AttributeValue::Ss(b)) => same_set(a, b, |a, b| a == b),
        (AttributeValue::Bs(a), AttributeValue::Bs(b)) => same_set(a, b, |a, b| a == b),
        (AttributeValue::Ns(a), AttributeValue::Ns(b)) => same_set(a, b, |a, b| number::same(a, b)),
        (a, b) => a == b,
    }
}

fn same_set<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().all(|a| b.iter().any(|b| same(a, b)))
}

/// Bytes in the form of a key field of type B: each as two hexadecimal digits.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.to_owned())
    }

    #[test]
    fn values_are_compared_by_value() {
        let set = |texts: &[&str]| AttributeValue::Ns(texts.iter().map(|&text| text.to_owned()).collect());
        assert!(same(Some(&n("2.0")), Some(&n("2"))));
        assert!(same(Some(&n("1e2")), Some(&n("100"))));
        assert!(same(Some(&set(&["1", "2.0"])), Some(&set(&["2", "1"]))));
        assert!(!same(Some(&n("2")), Some(&AttributeValue::S("2".to_owned()))));
        assert!(!same(Some(&n("2")), None));
        let list = |value| AttributeValue::L(vec![value]);
        assert!(same(Some(&list(n("1.0"))), Some(&list(n("1")))));
        assert!(same(None, None));
    }

    #[test]
    fn the_names_of_what_differs_are_found_in_order() {
        let item = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, text)| ((*name).to_owned(), n(text))).collect();
        let a: Item = item(&[("A", "1"), ("B", "2"), ("C", "3"), ("E", "5")]);
        let b: Item = item(&[("B", "2.0"), ("C", "4"), ("D", "4"), ("F", "6")]);
        assert_eq!(differing(&a, &b), ["A", "C", "D", "E", "F"]);
        assert_eq!(differing(&a, &Item::new()), ["A", "B", "C", "E"]);
        assert!(differing(&a, &a).is_empty() && same_item(&a, &a) && !same_item(&a, &b));
    }

    #[test]
    fn whole_numbers_are_read_whatever_their_form() {
        assert_eq!(whole_number(&n("2.0")), Some(2));
        assert_eq!(whole_number(&n("-3E2")), Some(-300));
        assert_eq!(whole_number(&n("0.5")), None);
        assert_eq!(whole_number(&n("1e30")), None);
        assert_eq!(whole_number(&n("1e999999999")), None);
        assert!(is_zero(&n("0.00")));
    }
}
