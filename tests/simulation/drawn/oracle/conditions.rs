//! What a condition says of an item.

use crate::{
    drawn::description::Where,
    oracle::table::{ONE, Plain, PlainItem},
};

/// Does an item meet a condition, if there is one? Not if it depends on a value of another type.
pub(super) fn is_met(condition: Option<&Where>, item: &PlainItem) -> bool {
    condition.is_none_or(|condition| holds(condition, item) == Ok(true))
}

/// Does a condition hold? An error where it depends on a value of another type.
fn holds(condition: &Where, item: &PlainItem) -> Result<bool, ()> {
    let word = |name: &String| match item.get(name) {
        None => Ok(None),
        Some(Plain::Text(text)) => Ok(Some(text)),
        Some(_) => Err(()),
    };
    match condition {
        Where::Is(name, text) => Ok(word(name)? == Some(text)),
        Where::IsNot(name, text) => Ok(word(name)? != Some(text)),
        Where::OneOf(name, texts) => Ok(word(name)?.is_some_and(|word| texts.contains(word))),
        Where::Above(name, number) => match item.get(name) {
            None => Ok(false),
            Some(Plain::Number(value)) => Ok(*value > i128::from(*number) * ONE),
            Some(_) => Err(()),
        },
        Where::Has(name) => Ok(item.contains_key(name)),
        Where::Lacks(name) => Ok(!item.contains_key(name)),
        Where::Both(one, other) => Ok(holds(one, item)? && holds(other, item)?),
        Where::Either(one, other) => Ok(holds(one, item)? || holds(other, item)?),
        Where::Not(one) => Ok(!holds(one, item)?),
    }
}
