//! A sample that meets a condition, so that what the condition lets through has a price.

use std::collections::HashMap;

use derive::condition::{Condition, DocumentPath, Operand, PathStep, Test};
use keys::item::Item;
use serde_dynamo::AttributeValue;

/// The item with other values in the attributes of a condition, so that it meets the condition; the item itself where it meets
/// it already. `None` where no such values are found.
pub(crate) fn meeting(condition: &Condition, item: &Item) -> Option<Item> {
    let is_met = |item: &Item| condition.holds(item);
    if is_met(item) {
        return Some(item.clone());
    }
    let mut met = item.clone();
    make(condition, true, &mut met);
    is_met(&met).then_some(met)
}

/// Changes an item until the condition has this answer, as far as one pass can.
fn make(condition: &Condition, answer: bool, item: &mut Item) {
    match condition {
        Condition::Always => {}
        Condition::Not(condition) => make(condition, !answer, item),
        Condition::And(all) | Condition::Or(all) => {
            let needs_all = matches!(condition, Condition::And(_)) == answer;
            all.iter().take(if needs_all { all.len() } else { 1 }).for_each(|condition| make(condition, answer, item));
        }
        Condition::Test(test, operands) => match operands.as_slice() {
            [Operand::Attribute(path) | Operand::Size(path)] => set(item, path, alone(*test, answer)),
            [Operand::Attribute(path), Operand::Value(value), ..] => set(item, path, beside(*test, answer, value)),
            [Operand::Size(path), Operand::Value(size), ..] => {
                let size = beside(*test, answer, size);
                let n = size.as_ref().and_then(whole).and_then(|n| usize::try_from(n).ok());
                set(item, path, n.map(|n| AttributeValue::S("x".repeat(n))));
            }
            _ => {}
        },
    }
}

/// A value for which a test without another value has this answer; `None` if that is no value.
fn alone(test: Test, answer: bool) -> Option<AttributeValue> {
    ((test == Test::Exists) == answer).then(|| AttributeValue::S("x".to_owned()))
}

/// The same of a test against a value. A missing value passes none but `<>`.
fn beside(test: Test, answer: bool, value: &AttributeValue) -> Option<AttributeValue> {
    match (test, answer) {
        (Test::Differs, false) => Some(value.clone()),
        (_, false) => None,
        (Test::Differs | Test::Above, true) => Some(moved(value, 1)),
        (Test::Below, true) => Some(moved(value, -1)),
        (Test::Type, true) => Some(of_type(value)),
        (Test::Contains, true) if !matches!(value, AttributeValue::S(_)) => {
            Some(AttributeValue::L(vec![value.clone()]))
        }
        _ => Some(value.clone()),
    }
}

/// A value of the same type beside this one: the next number, a longer or shorter text.
fn moved(value: &AttributeValue, by: i64) -> AttributeValue {
    match value {
        AttributeValue::N(_) => AttributeValue::N((whole(value).unwrap_or_default() + by).to_string()),
        AttributeValue::S(text) if by > 0 => AttributeValue::S(format!("{text}x")),
        AttributeValue::S(text) => {
            AttributeValue::S(text.chars().take(text.chars().count().saturating_sub(1)).collect())
        }
        AttributeValue::Bool(is) => AttributeValue::Bool(!is),
        other => other.clone(),
    }
}

/// A number without what is behind its point.
fn whole(value: &AttributeValue) -> Option<i64> {
    let AttributeValue::N(text) = value else { return None };
    text.split('.').next()?.parse().ok()
}

fn of_type(name: &AttributeValue) -> AttributeValue {
    let text = || "x".to_owned();
    match name {
        AttributeValue::S(name) => match name.as_str() {
            "N" => AttributeValue::N("1".to_owned()),
            "B" => AttributeValue::B(vec![0]),
            "BOOL" => AttributeValue::Bool(true),
            "NULL" => AttributeValue::Null(true),
            "L" => AttributeValue::L(Vec::new()),
            "M" => AttributeValue::M(HashMap::new()),
            "SS" => AttributeValue::Ss(vec![text()]),
            "NS" => AttributeValue::Ns(vec!["1".to_owned()]),
            "BS" => AttributeValue::Bs(vec![vec![0]]),
            _ => AttributeValue::S(text()),
        },
        _ => AttributeValue::S(text()),
    }
}

/// Sets what a path leads to, and makes the way there; removes the whole attribute for no value.
fn set(item: &mut Item, path: &DocumentPath, value: Option<AttributeValue>) {
    let held = item.remove(&path.attribute);
    if let Some(value) = value {
        item.insert(path.attribute.clone(), placed(held, &path.steps, value));
    }
}

/// What is held, with this value where the steps lead.
fn placed(held: Option<AttributeValue>, steps: &[PathStep], value: AttributeValue) -> AttributeValue {
    match steps.split_first() {
        None => value,
        Some((PathStep::Name(name), rest)) => {
            let mut map = if let Some(AttributeValue::M(map)) = held { map } else { HashMap::new() };
            let inner = placed(map.remove(name), rest, value);
            map.insert(name.clone(), inner);
            AttributeValue::M(map)
        }
        Some((PathStep::At(at), rest)) => {
            let mut list = if let Some(AttributeValue::L(list)) = held { list } else { Vec::new() };
            list.resize(list.len().max(at + 1), AttributeValue::Null(true));
            let inner = placed(list.get(*at).cloned(), rest, value);
            list.splice(*at..=*at, [inner]);
            AttributeValue::L(list)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_meets_each_test_of_a_condition() {
        let sample = Item::from([("status".to_owned(), AttributeValue::S("{status}".to_owned()))]);
        let exists = "attribute_exists";
        for condition in [
            "status = 'paid'",
            "status <> '{status}'",
            "status IN ('sent', 'paid') AND total > 0",
            "total < 10 AND NOT archived = true",
            "total BETWEEN 5 AND 7 OR status = 'x'",
            &format!("{exists}(paidOn) AND NOT {exists}(status)"),
            "begins_with(address.zip, '10') AND address.city = 'Bern'",
            "size(tags) > 2",
            "contains(tags, 7) AND lines[1].sku = 'a'",
            "attribute_type(total, 'N') AND total >= 3.5",
            &format!("NOT (status <> 'paid' OR {exists}(total))"),
        ] {
            let condition: Condition = condition.parse().unwrap();
            let met = meeting(&condition, &sample).unwrap_or_else(|| panic!("{condition}"));
            assert!(condition.holds(&met), "{condition}");
        }
        let never: Condition = "status = 'a' AND status = 'b'".parse().unwrap();
        assert_eq!(meeting(&never, &sample), None);
    }
}
