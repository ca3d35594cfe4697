//! Document paths: an attribute of an item, or a value inside of one.
//!
//! A declaration names what it reads by a text: an attribute as it is called, or a path, which has a `.` or a `[`. No
//! attribute that is declared has one of these in its name, so each text means one of both.

use std::{borrow::Cow, str::FromStr};

use keys::item::Item;
use serde_dynamo::AttributeValue;

use crate::condition::parse::{ConditionError, Scanner, first};

/// An attribute, or a value inside of one: `address.city`, `tags[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPath {
    /// The attribute of the item.
    pub attribute: String,
    /// The way into it.
    pub steps: Vec<PathStep>,
}

/// A step into a map or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a map under this name.
    Name(String),
    /// The element of a list at this position, from 0.
    At(usize),
}

impl DocumentPath {
    /// What a declaration names: a whole attribute, or a value inside of one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let whole = || Self { attribute: name.to_owned(), steps: Vec::new() };
        if is_path(name) { name.parse().unwrap_or_else(|_| whole()) } else { whole() }
    }

    /// The value of an item; `None` where a step leads into something that is no map or list, or lacks it.
    #[must_use]
    pub fn value<'a>(&self, item: &'a Item) -> Option<&'a AttributeValue> {
        let into = |value: &'a AttributeValue, step: &PathStep| match (value, step) {
            (AttributeValue::M(map), PathStep::Name(name)) => map.get(name),
            (AttributeValue::L(list), PathStep::At(at)) => list.get(*at),
            _ => None,
        };
        self.steps.iter().try_fold(item.get(&self.attribute)?, into)
    }
}

impl FromStr for DocumentPath {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let mut scanner = Scanner { text, at: 0 };
        let path = scanner.path()?;
        match scanner.rest() {
            "" => Ok(path),
            rest => Err(scanner.wanted(&format!(
                "a dot, a bracket or the end is wanted before {}; a name with other characters than letters, digits and _ \
                 stands in double quotes",
                first(rest)
            ))),
        }
    }
}

/// Does what a declaration names lead into an attribute?
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains(['.', '['])
}

/// The attribute that what a declaration names is, or is a part of.
#[must_use]
pub(crate) fn root(name: &str) -> Cow<'_, str> {
    if is_path(name) { Cow::Owned(DocumentPath::of(name).attribute) } else { Cow::Borrowed(name) }
}

/// The value that a declaration names, of an item.
#[must_use]
pub(crate) fn value<'a>(item: &'a Item, name: &str) -> Option<&'a AttributeValue> {
    if is_path(name) { DocumentPath::of(name).value(item) } else { item.get(name) }
}

#[cfg(test)]
mod tests;
