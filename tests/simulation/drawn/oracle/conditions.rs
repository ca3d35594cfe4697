//! What a condition says of an item.

use crate::{
    drawn::description::Where,
    oracle::table::{ONE, Plain, PlainItem},
};

/// Does an item meet a condition, if there is one?
pub(super) fn is_met(condition: Option<&Where>, item: &PlainItem) -> bool {
    condition.is_none_or(|condition| holds(condition, item))
}

/// Does a condition hold? A value of another type is not equal to a text, and no number is below it.
fn holds(condition: &Where, item: &PlainItem) -> bool {
    let is = |name: &String, text: &String| matches!(item.get(name), Some(Plain::Text(word)) if word == text);
    match condition {
        Where::Is(name, text) => is(name, text),
        Where::IsNot(name, text) => !is(name, text),
        Where::OneOf(name, texts) => texts.iter().any(|text| is(name, text)),
        Where::Above(name, number) => {
            matches!(item.get(name), Some(Plain::Number(value)) if *value > i128::from(*number) * ONE)
        }
        Where::Has(name) => item.contains_key(name),
        Where::Lacks(name) => !item.contains_key(name),
        Where::Both(one, other) => holds(one, item) && holds(other, item),
        Where::Either(one, other) => holds(one, item) || holds(other, item),
        Where::Not(one) => !holds(one, item),
    }
}
