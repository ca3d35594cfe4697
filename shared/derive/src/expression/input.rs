//! Inputs: what a declaration reads from an item.

use std::{
    borrow::Cow,
    fmt::{self, Debug, Display, Formatter},
};

use keys::entity::KeyTemplate;
use serde_dynamo::AttributeValue;

use crate::{
    expression::{DocumentPath, Expression},
    schema::{Image, Unreadable},
    tally::Sum,
};

/// A value that a declaration reads: of a field of the key, an attribute, the path of a value inside one, or else of
/// another expression.
///
/// Its text is part of stored definitions, so it is stable: the name itself, or the expression as it is written.
#[derive(Clone, PartialEq)]
pub struct Input {
    text: String,
    names: Vec<String>,
    expression: Expression,
}

impl Input {
    /// The input of a declared name: a field, an attribute, or the path of a value inside one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let expression = Expression::Path(DocumentPath::of(name));
        Self { text: name.to_owned(), names: vec![name.to_owned()], expression }
    }

    /// The declared name; `None` if it is calculated, or a literal.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        matches!(self.expression, Expression::Path(_)).then_some(&self.text)
    }

    /// The names that it reads: fields, attributes and paths.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// Its value for an item; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it cannot be calculated.
    pub fn value<'a>(&'a self, image: &'a Image<'a>) -> Result<Option<Cow<'a, AttributeValue>>, Unreadable> {
        self.expression.value(image.into())
    }

    /// Why it cannot be calculated. A field or an attribute is read as it is.
    pub(crate) fn unreadable(&self, image: &Image<'_>) -> Option<Unreadable> {
        if self.name().is_some() { None } else { self.value(image).err() }
    }

    /// Its value as a number.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is no number, or cannot be calculated.
    pub(crate) fn number(&self, image: &Image<'_>) -> Result<Option<Sum>, Unreadable> {
        Sum::read(&self.text, self.value(image)?.as_deref())
    }

    /// Its value as a text.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is no text, or cannot be calculated.
    pub(crate) fn text_of<'a>(&'a self, image: &'a Image<'a>) -> Result<Option<Cow<'a, str>>, Unreadable> {
        self.filled(image, |name, value| Image::text_field(name, value).map(|text| text.map(Cow::Borrowed)))
    }

    /// Its value as a field of another item's key: of type N or B if it makes up a whole key of this type.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the value cannot be part of the key, or cannot be calculated.
    pub(crate) fn filling<'a>(
        &'a self,
        image: &'a Image<'a>,
        key: &KeyTemplate,
        to: &str,
    ) -> Result<Option<Cow<'a, str>>, Unreadable> {
        self.filled(image, |name, value| Image::value_filling(name, value, key, to))
    }

    /// The text of a field as it is; any other value as it is read.
    fn filled<'a>(
        &'a self,
        image: &'a Image<'a>,
        read: impl for<'v> Fn(&str, Option<&'v AttributeValue>) -> Result<Option<Cow<'v, str>>, Unreadable>,
    ) -> Result<Option<Cow<'a, str>>, Unreadable> {
        if let Expression::Path(path) = &self.expression {
            let field = image.key_fields().get(&self.text).map(Cow::Borrowed);
            return if field.is_some() { Ok(field) } else { read(&self.text, path.value(image.item)) };
        }
        let value = self.expression.value(image.into())?;
        Ok(read(&self.text, value.as_deref())?.map(|text| Cow::Owned(text.into_owned())))
    }
}

/// No value contains a floating-point number.
impl Eq for Input {}

impl From<&str> for Input {
    fn from(name: &str) -> Self {
        Self::of(name)
    }
}

impl From<Expression> for Input {
    fn from(expression: Expression) -> Self {
        if let Expression::Path(path) = &expression {
            return Self::of(&path.name());
        }
        let mut names: Vec<String> = Vec::new();
        for path in expression.paths() {
            let name = path.name();
            if !names.iter().any(|other| *other == name) {
                names.push(name.into_owned());
            }
        }
        Self { text: expression.to_string(), names, expression }
    }
}

impl Display for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for Input {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.text, f)
    }
}

/// Pairs of (input, attribute that it is written into).
#[must_use]
pub fn pairs(pairs: &[(&str, &str)]) -> Vec<(Input, String)> {
    pairs.iter().map(|(from, to)| (Input::of(from), (*to).to_owned())).collect()
}
