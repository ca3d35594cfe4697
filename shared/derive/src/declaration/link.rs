//! Links: how the key of one item is made from the fields of another.

use keys::{entity::Definition, key::Key};

use serde_dynamo::AttributeValue;

use crate::{
    condition::document_path::root,
    schema::{Image, Unreadable},
};

/// How the key of another item is made from an item's fields: pairs of (field of that key, field of the item's key, else an
/// attribute or the path of a value inside of one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(pub Vec<(String, String)>);

impl Link {
    /// A link of these pairs.
    #[must_use]
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(to, from)| ((*to).to_owned(), (*from).to_owned())).collect())
    }

    /// The key that an item leads to; `None` when it lacks one of the fields.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] when a field is there and cannot stand in a key.
    pub fn key(&self, to: &Definition, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        self.key_with(to, image, None)
    }

    /// The same, where a list of the item stands for one of its members: the name of the list, and the member.
    pub(crate) fn key_with(
        &self,
        to: &Definition,
        image: &Image<'_>,
        member: Option<(&str, &AttributeValue)>,
    ) -> Result<Option<Key>, Unreadable> {
        let mut filled = Vec::with_capacity(self.0.len());
        for (field, from) in &self.0 {
            let value = match member {
                Some((list, member)) if list == from => Image::value_filling(from, Some(member), &to.key, field)
                    .map_err(|error| Unreadable { why: format!("has a member that {}", error.why), ..error })?,
                _ => image.filling(from, &to.key, field).map_err(|error| told(error, field, to, image))?,
            };
            let Some(value) = value else { return Ok(None) };
            filled.push((field.as_str(), value));
        }
        let unreadable = |error: keys::error::KeyError| Unreadable {
            attribute: self
                .0
                .iter()
                .find(|(to, _)| *to == error.attribute)
                .map_or(error.attribute, |(_, from)| from.clone()),
            why: error.problem.to_string(),
        };
        let value = |name: &str| filled.iter().rfind(|(field, _)| *field == name).map(|(_, value)| &**value);
        to.build_of(value).map(Some).map_err(unreadable)
    }

    /// What is wrong with the fields that make the key.
    #[must_use]
    pub fn unreadable(&self, to: &Definition, image: &Image<'_>) -> Option<Unreadable> {
        self.key(to, image).err()
    }

    /// The item's field that fills a field of the key.
    pub(crate) fn filling(&self, to: &str) -> Option<&str> {
        self.0.iter().rfind(|(name, _)| name == to).map(|(_, from)| from.as_str())
    }

    /// Names of the item's fields.
    pub fn from_fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, from)| from.as_str())
    }

    /// Checks that it makes a whole key of `to` from fields that `from` may have.
    pub(crate) fn check(&self, to: &Definition, from: &Definition) -> Result<(), String> {
        for name in to.key.field_names() {
            if !self.0.iter().any(|(field, _)| field == name) {
                return Err(format!("nothing gives {name} of the key of {}", to.name));
            }
        }
        for name in self.from_fields() {
            let mut known = from.attributes.iter().chain(&from.derived_attributes);
            if !from.key.field_names().contains(&name) && !known.any(|attribute| *attribute == root(name)) {
                return Err(format!("{} has no field or attribute {name}", from.name));
            }
        }
        // A field of a key of type B is text of hexadecimal digits, which means something else in a key of another type.
        let is_other = |(field, name): &&(String, String)| {
            from.key.holds(name) && from.key.is_of_bytes(name) != to.key.is_of_bytes(field)
        };
        match self.0.iter().find(is_other) {
            Some((field, name)) => Err(format!(
                "of {name} of the key of {} and {field} of the key of {}, one is of type B and the other is not",
                from.name, to.name
            )),
            None => Ok(()),
        }
    }
}

/// The error of an attribute that is no text, with the field of the key that wants one.
fn told(error: Unreadable, field: &str, to: &Definition, image: &Image<'_>) -> Unreadable {
    if to.key.is_of_bytes(field) {
        return error;
    }
    let written = to.key.pk.written(field).or_else(|| to.key.sk.written(field));
    match (image.attribute(&error.attribute), written) {
        (None | Some(AttributeValue::S(_)), _) | (_, None) => error,
        (Some(held), Some(written)) => Unreadable::type_of(&error.attribute, held, &format!("`{written}` wants S")),
    }
}
