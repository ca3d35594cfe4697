//! The value of an expression for an item.

use std::borrow::Cow;

use keys::{entity::KeyTemplate, fields::Fields, item::Item};
use serde_dynamo::AttributeValue;

use crate::{
    expression::{
        DocumentPath, Expression,
        function::{Function, Refused},
    },
    schema::{Image, Unreadable},
};

/// The values that an expression can read: attributes, and the fields of the key if the entity is known. A field has
/// precedence over an attribute of its name.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    item: &'a Item,
    key: Option<(&'a KeyTemplate, &'a Fields)>,
}

impl<'a> From<&'a Item> for Values<'a> {
    fn from(item: &'a Item) -> Self {
        Self { item, key: None }
    }
}

impl<'a> From<&'a Image<'a>> for Values<'a> {
    fn from(image: &'a Image<'a>) -> Self {
        Self { item: image.item, key: Some((&image.definition.key, image.key_fields())) }
    }
}

impl<'a> Values<'a> {
    /// The value of a field, typed as its attribute would be, or else of an attribute, or inside one.
    fn get(self, path: &DocumentPath) -> Option<Cow<'a, AttributeValue>> {
        let of_key = self.key.filter(|_| path.steps.is_empty()).and_then(|(key, fields)| {
            let (name, text) = (path.attribute.as_str(), fields.get(&path.attribute)?);
            if key.holds_number(name) { Some(AttributeValue::N(text.to_owned())) } else { key.typed(name, text) }
        });
        of_key.map(Cow::Owned).or_else(|| path.value(self.item).map(Cow::Borrowed))
    }
}

impl Expression {
    /// Its value for an item; `None` if a value that it needs is missing.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if a function cannot take a value; it names the attribute.
    pub fn value<'a>(&'a self, of: Values<'a>) -> Result<Option<Cow<'a, AttributeValue>>, Unreadable> {
        let (function, arguments) = match self {
            Self::Path(path) => return Ok(of.get(path)),
            Self::Literal(value) => return Ok(Some(Cow::Borrowed(value))),
            Self::Call(function, arguments) => (*function, arguments.as_slice()),
        };
        if let (Function::IfNotExists, [value, other]) = (function, arguments) {
            return value.value(of)?.map_or_else(|| other.value(of), |value| Ok(Some(value)));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let Some(value) = argument.value(of)? else { return Ok(None) };
            values.push(value);
        }
        match function.apply(&values) {
            Ok(value) => Ok(value.map(Cow::Owned)),
            Err(refused) => Err(self.unreadable(function, arguments, &values, refused)),
        }
    }

    /// The error that a function does not take one of the values.
    fn unreadable(
        &self,
        function: Function,
        arguments: &[Self],
        values: &[Cow<'_, AttributeValue>],
        refused: Refused,
    ) -> Unreadable {
        let named = |expression: &Self| expression.paths().first().map(|path| path.name().into_owned());
        let (at, why) = match refused {
            Refused::Value(why) if matches!(self, Self::Call(_, all) if matches!(all.as_slice(), [Self::Path(_), ..])) => {
                (0, why.to_owned())
            }
            Refused::Value(why) => (0, format!("{why}, in `{self}`")),
            Refused::Type(at) => {
                let takes = function.signature().map_or(&[][..], |signature| signature.takes);
                let of = values.get(at).map_or("missing", |value| super::function::type_of(value));
                (at, format!("is {of}, and `{self}` takes {}{}", takes.join(" or "), function.hint(of)))
            }
        };
        let attribute = arguments.get(at).and_then(named).or_else(|| named(self)).unwrap_or_else(|| self.to_string());
        Unreadable { attribute, why }
    }
}
