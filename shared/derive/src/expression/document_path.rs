//! Document paths: an attribute of an item, or a value inside one.
//!
//! A declaration names what it reads by a text: the name of an attribute, or a path, which contains a `.` or a `[`. The
//! names of declared attributes contain neither, so each text is unambiguous.

use std::{
    borrow::Cow,
    fmt::{self, Display, Formatter, Write as _},
    str::FromStr,
};

use keys::item::Item;
use serde_dynamo::AttributeValue;

use crate::expression::{
    ExpressionError, is_plain,
    scanner::{Scanner, first},
};

/// An attribute, or a value inside one: `address.city`, `tags[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPath {
    /// The attribute of the item.
    pub attribute: String,
    /// The steps into it.
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
    /// Parses a declared name: a whole attribute, or a value inside one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let whole = || Self { attribute: name.to_owned(), steps: Vec::new() };
        if is_path(name) { name.parse().unwrap_or_else(|_| whole()) } else { whole() }
    }

    /// Its declared name: the name of the attribute as it is, or the path.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        if self.steps.is_empty() { Cow::Borrowed(&self.attribute) } else { Cow::Owned(self.to_string()) }
    }

    /// The value in an item; `None` if a step leads into something that is not a map or list, or that lacks it.
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

impl Display for DocumentPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        named(f, &self.attribute)?;
        for step in &self.steps {
            match step {
                PathStep::Name(name) => {
                    f.write_char('.')?;
                    named(f, name)?;
                }
                PathStep::At(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

fn named(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    if is_plain(name) { f.write_str(name) } else { write!(f, "\"{}\"", name.replace('"', "\"\"")) }
}

impl FromStr for DocumentPath {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let mut scanner = Scanner::of(text);
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

/// True if a declared name is a path into an attribute.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains(['.', '['])
}

/// The attribute of a declared name.
#[must_use]
pub(crate) fn root(name: &str) -> Cow<'_, str> {
    if is_path(name) { Cow::Owned(DocumentPath::of(name).attribute) } else { Cow::Borrowed(name) }
}

/// The value of a declared name in an item.
#[must_use]
pub(crate) fn value<'a>(item: &'a Item, name: &str) -> Option<&'a AttributeValue> {
    if is_path(name) { DocumentPath::of(name).value(item) } else { item.get(name) }
}

#[cfg(test)]
mod tests;
