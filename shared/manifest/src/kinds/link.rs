//! `link`: how the key of one item is built from the fields of another.
//!
//! It pairs a field of that key with the field or attribute that gives it, such as
//! `link = { userId = "followedId" }`. A field of the same name in the item needs no pair.

use derive::{declaration::Link, expression::Input};
use keys::{entity::Definition, tables::KeyType};

use super::{Rule, attribute, given::input, known::KnownTypes};
use crate::{
    error::ManifestError,
    section::{Entry, Named},
    tables,
};

impl Rule<'_> {
    /// The link by which an item leads to the key of a `to`.
    pub(super) fn link(&self, to: &Definition, from: &Definition) -> Result<Link, ManifestError> {
        self.link_but(to, from, &[])
    }

    /// The link for all fields of the key except these.
    pub(super) fn link_but(&self, to: &Definition, from: &Definition, but: &[&str]) -> Result<Link, ManifestError> {
        let given =
            self.section.get("link").map(|entry| pairs(&entry, to, from, self.types)).transpose()?.unwrap_or_default();
        let known = fields(from);
        let mut link = Vec::new();
        for field in to.key.field_names().into_iter().filter(|field| !but.contains(field)) {
            if let Some((_, from)) = given.iter().find(|(to, _)| to == field) {
                link.push((field.to_owned(), from.clone()));
            } else if known.contains(&field) && !(field == "id" && self.schema.layout.forms.is_some()) {
                let implied = Named { text: field, place: self.section.place.clone() };
                self.types.refuse(&from.name, &implied, "a link")?;
                link.push((field.to_owned(), Input::of(field)));
            } else {
                let what = format!(
                    "nothing gives {field} of the key of {}: name the attribute of {} with its value ({}), as in link = {{ {field} = \
                     \"…\" }}",
                    to.name,
                    from.name,
                    known.join(", ")
                );
                return Err(self.section.place.wrong(what));
            }
        }
        let link = Link(link);
        self.fits(to, from, &link)?;
        Ok(link)
    }

    /// The attribute of `from` that `each` names: a list, whose members each give a key of a `to`.
    pub(super) fn each(
        &self,
        (from, to): (&Definition, &Definition),
        link: &Link,
    ) -> Result<Option<String>, ManifestError> {
        let Some(entry) = self.section.get("each") else { return Ok(None) };
        let named = entry.text()?;
        let list = attribute(from, &named)?;
        self.types.with_parts(from, &named, &list, "each takes a list or a set: name an attribute that is one")?;
        if link.filled_by(&list).is_some() {
            return Ok(Some(list));
        }
        let what = format!(
            "no field of the key of {} is a member of {list}: name the one that is ({}), as in link = {{ … = \"{list}\" }}",
            to.name,
            to.key.field_names().join(", ")
        );
        Err(entry.place.wrong(what))
    }

    /// Refuses an attribute that an index declares as type N or B, where the key has another type.
    fn fits(&self, to: &Definition, from: &Definition, link: &Link) -> Result<(), ManifestError> {
        for (field, input) in &link.0 {
            let Some(name) = input.name() else { continue };
            let Some((index, of)) = tables::type_by_index(self.schema, from, name) else { continue };
            let takes = to.key.type_of(field);
            if of != takes && of != KeyType::S {
                let place = self.section.get("link").map_or_else(|| self.section.place.clone(), |entry| entry.place);
                return Err(place.wrong(format!(
                    "{name} of {} is of type {of:?} in the index {index}, and {field} of the key of {} takes type {takes:?}: \
                     declare that key of type {of:?} without a form, or link an attribute of type {takes:?}",
                    from.name, to.name
                )));
            }
        }
        Ok(())
    }
}

/// Pairs of (field of the key of `to`, field or attribute of `from`), each of which exists.
pub(super) fn pairs(
    entry: &Entry<'_>,
    to: &Definition,
    from: &Definition,
    types: &KnownTypes<'_>,
) -> Result<Vec<(String, Input)>, ManifestError> {
    let mut pairs = Vec::new();
    for (field, value) in entry.pairs()? {
        types.refuse(&from.name, &value, "a link")?;
        if !to.key.holds(field.text) && to.key.holds(value.text) && fields(from).contains(&field.text) {
            let what = format!(
                "the sides are swapped: {0} is of the key of {1} and stands on the left, as in {{ {0} = \"{2}\" }}",
                value.text, to.name, field.text
            );
            return Err(field.place.wrong(what));
        }
        known(&field, &format!("the key of {} has no field", to.name), &to.key.field_names())?;
        let input = input(from, &value, types)?;
        fills(to, &field, &input, &value)?;
        pairs.push((field.text.to_owned(), input));
    }
    Ok(pairs)
}

/// Refuses a calculated value of another type than the field that it gives.
fn fills(to: &Definition, field: &Named<'_>, input: &Input, value: &Named<'_>) -> Result<(), ManifestError> {
    let Some(of) = input.expression().type_of() else { return Ok(()) };
    let (name, takes) = (field.text, to.key.type_of(field.text));
    let hint = match (of, takes) {
        _ if format!("{takes:?}") == of => return Ok(()),
        ("N", KeyType::S) => format!(": write text({input})"),
        ("S", KeyType::N) => format!(": write number({input})"),
        _ => String::new(),
    };
    let what = format!("is {of}, and {name} of the key of {} takes type {takes:?}{hint}", to.name);
    Err(value.place.wrong(what))
}

/// Refuses a name that is not one of these.
pub(super) fn known(named: &Named<'_>, there_is_no: &str, names: &[&str]) -> Result<(), ManifestError> {
    if names.contains(&named.text) { Ok(()) } else { Err(named.unknown(there_is_no, names.iter().copied())) }
}

/// The fields and attributes that an item can give.
pub(super) fn fields(entity: &Definition) -> Vec<&str> {
    let mut fields = entity.key.field_names();
    fields.extend(entity.attributes.iter().chain(&entity.derived_attributes).map(String::as_str));
    fields
}
