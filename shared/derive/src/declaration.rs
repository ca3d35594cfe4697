//! The declarations of derivations.
//!
//! The declarations of the kinds that have their own [shape](crate::kind) are here, apart from the code of the kinds,
//! because code that matches on the shape reads them. The other kinds have theirs in their own files.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    key::Key,
    template::form::Casing,
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    condition::Condition,
    effect::{BucketForm, Effect, Find},
    expression::{Input, document_path::root, time::TimeSpan},
    outline::placeholders,
    query::Query,
    schema::{Image, Schema, Unreadable},
};

// ---- The declaration of a [cascade](crate::kinds::cascade) ----

/// The declaration of a cascade.
#[derive(Clone, Debug)]
pub struct Cascade {
    /// Entity that the dependent items belong to.
    pub owner: String,
    /// Entities whose removal starts it, each with the link to the owner's key: the owner, and the source that it
    /// mirrors.
    pub starts: Vec<(String, Link)>,
    /// The dependent items, in the order in which they are deleted.
    pub hanging: Vec<Hanging>,
}

/// Dependent items of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hanging {
    /// Their entity.
    pub entity: String,
    /// How they are found.
    pub found: Way,
    /// What happens to them.
    pub fate: Fate,
}

/// How the dependent items of an owner are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a query that is built from the owner's key.
    Found(FoundBy),
    /// They are the owner's counters of this derivation.
    Counters(String),
    /// Their key is built from attributes of the removed item, in lower case and without surrounding blanks.
    Named(Link),
}

/// What happens to a dependent item when its owner is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is deleted.
    Deleted,
    /// It is deleted if this attribute still equals this field of the owner's key.
    DeletedWhere {
        /// The attribute.
        attribute: String,
        /// The field.
        field: String,
    },
    /// It stays, and this attribute is set to this text.
    Set {
        /// The attribute.
        attribute: String,
        /// The text.
        text: String,
    },
}

// ---- check ----

/// The definition of a declared entity.
pub(crate) fn entity<'a>(schema: &'a Schema, name: &str) -> Result<&'a Definition, String> {
    schema.entity(name).ok_or_else(|| format!("there is no entity {name}"))
}

/// Checks that an entity's items may have these attributes, or the attributes that contain these values.
pub(crate) fn knows<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        let mut known = definition.attributes.iter().chain(&definition.derived_attributes);
        if !known.any(|attribute| *attribute == root(name)) {
            return Err(format!("{} has no attribute {name}", definition.name));
        }
    }
    Ok(())
}

/// Checks that an entity's items may have these fields of the key and attributes, or the attributes that contain these
/// values.
pub(crate) fn gives<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    knows(definition, names.into_iter().filter(|name| !definition.key.holds(name)))
}

/// Checks that an entity declares these attributes as derived.
pub(crate) fn declares<'a>(definition: &Definition, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        if !definition.derived_attributes.iter().any(|declared| declared == name) {
            return Err(format!("{} does not declare {name} as derived", definition.name));
        }
    }
    Ok(())
}

// ---- The declaration of a [count](crate::kinds::count) ----

/// The declaration of a count.
#[derive(Clone, Debug)]
pub struct Count {
    /// Entity of the items that are counted.
    pub source: String,
    /// Which of the items are counted.
    pub condition: Condition,
    /// Entity of the target.
    pub target: String,
    /// How the target's key is built.
    pub link: Link,
    /// What is summed, if anything.
    pub sum: Option<Input>,
    /// True if it counts arrivals only.
    pub history: bool,
    /// True if an item that DynamoDB removes by its time to live stays counted.
    pub expired_stays: bool,
    /// The attribute of the counted item that lists members, if the item counts once for each different member: in the
    /// link, its name stands for the member.
    pub each: Option<String>,
}

impl Count {
    /// True if counted items may be gone, so that the existing ones give only a lower bound.
    #[must_use]
    pub fn is_lower_bound(&self) -> bool {
        self.history || self.expired_stays
    }
}

// ---- How the items that belong to a source are found: by one query, built from the source's key ----

/// How the items that name a source are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBy {
    /// Entity of the queried items: the targets, or items whose fields give the keys of the targets.
    pub via: String,
    /// The queried index; the table itself if `None`.
    pub index: Option<String>,
    /// Pairs of (field of the queried key, field of the source's key).
    pub by: Link,
}

impl FoundBy {
    fn template<'a>(&self, schema: &'a Schema) -> Result<&'a KeyTemplate, String> {
        let via = entity(schema, &self.via)?;
        let Some(name) = &self.index else { return Ok(&via.key) };
        let index = via.indexes.iter().find(|index| index.index == *name);
        index.map(|index| &index.key).ok_or_else(|| format!("{} is not in the index {name}", self.via))
    }

    /// The query that finds them, built from the fields of the source's key; `None` if one is missing.
    #[must_use]
    pub fn query(&self, schema: &Schema, source: &Fields) -> Option<Query> {
        let field = |to: &str| source.get(self.by.filling(to)?.name()?);
        let template = self.template(schema).ok()?;
        let (pk, prefix) = (template.pk.build_of(field).ok()?, template.sk.prefix_of(field).ok()?);
        Some(Query::prefix(self.index.as_deref(), pk, prefix))
    }

    /// The search for all targets of any source, with placeholders for the fields of the source's key.
    pub(crate) fn shown(&self, schema: &Schema, source: &str, target: &str) -> Option<Find> {
        self.search(schema, &placeholders(schema.entity(source)?.key.field_names()), target)
    }

    /// The search for all targets of a source.
    pub(crate) fn find(&self, schema: &Schema, source: &Image<'_>, target: &str) -> Option<Effect> {
        Some(Effect::Find(self.search(schema, source.key_fields(), target)?))
    }

    /// The search for all targets of a source with this key.
    pub(crate) fn find_from(&self, schema: &Schema, entity: &str, source: &Key, target: &str) -> Option<Find> {
        self.search(schema, &schema.entity(entity)?.key.parse_key(source)?, target)
    }

    fn search(&self, schema: &Schema, source: &Fields, target: &str) -> Option<Find> {
        let query = self.query(schema, source)?;
        Some(Find { query, via: self.via.clone(), target: target.to_owned() })
    }

    /// The target of an item that was created, that now leads to another target, or whose index key changed. A target
    /// that the search itself finds is refreshed when it is created, so only other targets are refreshed here.
    pub(crate) fn newly_led(&self, schema: &Schema, sight: &Sight<'_>, target: &str) -> Option<Key> {
        let (old, new) = sight.entity(&self.via);
        let (is_moved, is_there) = (self.is_moved(schema, sight), old.is_some() && new.is_some());
        if self.via == target {
            return new.filter(|_| is_there && is_moved).map(|image| image.key.clone());
        }
        let key = &schema.entity(target)?.key;
        if is_there && !is_moved && !sight.differing().iter().any(|name| key.holds(name)) {
            return None;
        }
        let led = through(schema, new?, target)?;
        let before = old.and_then(|old| through(schema, old, target));
        (is_moved || before.as_ref() != Some(&led)).then_some(led)
    }

    /// True if an item moved within the index. A search that ran before may have missed it.
    fn is_moved(&self, schema: &Schema, sight: &Sight<'_>) -> bool {
        let index = self.index.as_ref().and_then(|name| schema.layout.index(name));
        index.is_some_and(|index| [&index.pk, &index.sk].into_iter().any(|name| sight.differs_in(name)))
    }

    /// Checks that a text that the source's key has in one case only is in that case in the queried key too.
    pub(crate) fn check_case(&self, schema: &Schema, source: &Definition) -> Result<(), String> {
        let template = self.template(schema)?;
        for (to, from) in self.by.0.iter().filter(|(to, _)| template.holds(to)) {
            let casing = from.name().and_then(|name| source.key.casing(name));
            if casing.is_some_and(|casing| template.casing(to) != Some(casing)) {
                return Err(format!(
                    "the key of {} has {from} in lower or upper case, and the key by which its {} items are found has {to} \
                     unchanged: write {} there",
                    source.name,
                    self.via,
                    cased(casing, to)
                ));
            }
        }
        Ok(())
    }

    /// Checks that a source's key gives the query's key, and that the found items lead to a target.
    pub(crate) fn check(&self, schema: &Schema, source: &Definition, target: &Definition) -> Result<(), String> {
        let template = self.template(schema)?;
        if let Some(name) = template.pk.field_names().iter().find(|name| !self.by.0.iter().any(|(to, _)| to == *name)) {
            return Err(format!("nothing gives {name} of the key by which the targets are found"));
        }
        if let Some(name) = self.by.from_fields().find(|name| !source.key.field_names().contains(name)) {
            return Err(format!("the key of {} has no {name}, by which the targets would be found", source.name));
        }
        self.check_case(schema, source)?;
        let via = entity(schema, &self.via)?;
        let known = via.key.field_names();
        let is_known = |name: &&str| known.contains(name) || via.attributes.iter().any(|attribute| attribute == name);
        match target.key.field_names().into_iter().find(|name| !is_known(name)) {
            Some(name) => Err(format!("a found {} does not lead to a {}: it has no {name}", via.name, target.name)),
            None => Ok(()),
        }
    }
}

/// A field as it is written in a form, in this case.
pub(crate) fn cased(casing: Option<Casing>, field: &str) -> String {
    match casing {
        Some(casing) if casing.is_upper => format!("{{upper({field})}}"),
        Some(_) => format!("{{lower({field})}}"),
        None => format!("{{{field}}}"),
    }
}

/// The item that a found item leads to: its key is built from the found item's fields of the same names.
#[must_use]
pub fn through(schema: &Schema, via: &Image<'_>, target: &str) -> Option<Key> {
    if via.is(target) {
        return Some(via.key.clone());
    }
    let definition = schema.entity(target)?;
    let filled = |name| Some((name, via.filling(name, &definition.key, name).ok()??));
    let filled: Vec<_> = definition.key.field_names().into_iter().filter_map(filled).collect();
    let value = |name: &str| filled.iter().find(|(field, _)| *field == name).map(|(_, value)| &**value);
    definition.build_of(value).ok()
}

// ---- Links: how the key of one item is built from the fields of another ----

/// The fields of a key with their values.
pub(crate) type FilledFields<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// How the key of another item is built from an item's fields: pairs of (field of that key; what of the item gives it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(pub Vec<(String, Input)>);

impl Link {
    /// A link of these pairs.
    #[must_use]
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(to, from)| ((*to).to_owned(), Input::of(from))).collect())
    }

    /// The key that an item leads to; `None` if the item lacks one of the fields.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if a field exists and cannot be part of a key.
    pub fn key(&self, to: &Definition, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        self.key_with(to, image, None)
    }

    /// The keys that an item leads to: one for each member of the list `each`.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if a field or one of the members exists and cannot be part of a key.
    pub(crate) fn keys(&self, to: &Definition, image: &Image<'_>, each: &str) -> Result<BTreeSet<Key>, Unreadable> {
        let key = |member: &AttributeValue| self.key_with(to, image, Some((each, member))).transpose();
        members(each, image.attribute(each))?.iter().filter_map(key).collect()
    }

    /// The key with one member in place of a list of the item: the name of the list, and the member.
    pub(crate) fn key_with(
        &self,
        to: &Definition,
        image: &Image<'_>,
        member: Option<(&str, &AttributeValue)>,
    ) -> Result<Option<Key>, Unreadable> {
        let Some(filled) = self.filled(to, image, member)? else { return Ok(None) };
        let value = |name: &str| filled.iter().rfind(|(field, _)| *field == name).map(|(_, value)| &**value);
        to.build_of(value).map(Some).map_err(|error| self.refused(error))
    }

    /// The fields of the key that it gives; `None` if the item lacks one.
    pub(crate) fn filled<'a>(
        &'a self,
        to: &Definition,
        image: &'a Image<'a>,
        member: Option<(&str, &'a AttributeValue)>,
    ) -> Result<Option<FilledFields<'a>>, Unreadable> {
        let mut filled = Vec::with_capacity(self.0.len());
        for (field, from) in &self.0 {
            let value = match member {
                Some((list, member)) if from.name() == Some(list) => {
                    Image::value_filling(list, Some(member), &to.key, field)
                        .map_err(|error| Unreadable { why: format!("has a member that {}", error.why), ..error })?
                }
                _ => from.filling(image, &to.key, field).map_err(|error| with_wanted_type(error, field, to, image))?,
            };
            let Some(value) = value else { return Ok(None) };
            filled.push((field.as_str(), value));
        }
        Ok(Some(filled))
    }

    /// The error that the key cannot be built, about what gives the field.
    pub(crate) fn refused(&self, error: keys::error::KeyError) -> Unreadable {
        let from = self.filling(&error.attribute).map(|from| from.text().to_owned());
        Unreadable { attribute: from.unwrap_or(error.attribute), why: error.problem.to_string() }
    }

    /// What fills a field of the key.
    #[must_use]
    pub fn filling(&self, to: &str) -> Option<&Input> {
        self.0.iter().rfind(|(name, _)| name == to).map(|(_, from)| from)
    }

    /// The field of the key that the item's field or attribute of this name fills as it is.
    #[must_use]
    pub fn filled_by(&self, from: &str) -> Option<&str> {
        self.0.iter().find(|(_, input)| input.name() == Some(from)).map(|(to, _)| to.as_str())
    }

    /// Names of the item's fields and attributes that it reads.
    pub fn from_fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(_, from)| from.names())
    }

    /// Checks that a list whose members give keys is an attribute of `from`, and that a field of the key is a member.
    pub(crate) fn check_each(&self, to: &Definition, from: &Definition, each: Option<&str>) -> Result<(), String> {
        knows(from, each)?;
        match each.filter(|list| self.filled_by(list).is_none()) {
            Some(list) => Err(format!("each is {list}, and no field of the key of {} is a member of it", to.name)),
            None => Ok(()),
        }
    }

    /// Checks that it gives a whole key of `to` from fields that `from` may have.
    pub(crate) fn check(&self, to: &Definition, from: &Definition) -> Result<(), String> {
        for name in to.key.field_names() {
            if !self.0.iter().any(|(field, _)| field == name) {
                return Err(format!("nothing gives {name} of the key of {}", to.name));
            }
        }
        self.check_given(to, from)
    }

    /// Checks that it gives fields of a key of `to` from fields that `from` may have.
    pub(crate) fn check_given(&self, to: &Definition, from: &Definition) -> Result<(), String> {
        for name in self.from_fields() {
            let mut known = from.attributes.iter().chain(&from.derived_attributes);
            if !from.key.field_names().contains(&name) && !known.any(|attribute| *attribute == root(name)) {
                return Err(format!("{} has no field or attribute {name}", from.name));
            }
        }
        for (field, name) in self.0.iter().filter_map(|(field, from)| Some((field, from.name()?))) {
            let casing = from.key.casing(name).filter(|_| !from.attributes.iter().any(|attribute| attribute == name));
            if casing.is_some_and(|casing| to.key.casing(field) != Some(casing)) {
                return Err(format!(
                    "the key of {0} has {name} in lower or upper case, and the key of {1} has {field} unchanged: add {name} to the \
                     attributes of {0}, if its items have it, or write {2} in the key of {1}",
                    from.name,
                    to.name,
                    cased(casing, field)
                ));
            }
        }
        // A field of a key of type B is text of hexadecimal digits, which has another meaning in a key of another type.
        let is_other = |(field, from_input): &&(String, Input)| {
            let mut of_key = from_input.name().filter(|name| from.key.holds(name)).into_iter();
            of_key.any(|name| from.key.is_of_bytes(name) != to.key.is_of_bytes(field))
        };
        match self.0.iter().find(is_other) {
            Some((field, name)) => Err(format!(
                "{name} of the key of {} and {field} of the key of {} have different types, and one of them is B",
                from.name, to.name
            )),
            None => Ok(()),
        }
    }
}

/// The members of a list or set.
fn members(name: &str, stored: Option<&AttributeValue>) -> Result<Vec<AttributeValue>, Unreadable> {
    match stored {
        None => Ok(Vec::new()),
        Some(AttributeValue::Ss(members)) => Ok(members.iter().cloned().map(AttributeValue::S).collect()),
        Some(AttributeValue::Ns(members)) => Ok(members.iter().cloned().map(AttributeValue::N).collect()),
        Some(AttributeValue::L(members)) => Ok(members.clone()),
        Some(stored) => Err(Unreadable::type_of(name, stored, "a list or a set of texts is wanted")),
    }
}

/// The error about an attribute that is not a text, with the field of the key that needs one.
fn with_wanted_type(error: Unreadable, field: &str, to: &Definition, image: &Image<'_>) -> Unreadable {
    if to.key.is_of_bytes(field) {
        return error;
    }
    let written = to.key.pk.written(field).or_else(|| to.key.sk.written(field));
    match (image.attribute(&error.attribute), written) {
        (None | Some(AttributeValue::S(_)), _) | (_, None) => error,
        (Some(stored), Some(written)) => {
            let wanted = match stored {
                AttributeValue::N(_) => {
                    format!("`{written}` takes a text: store a text, or link by text({})", error.attribute)
                }
                _ => format!("`{written}` takes a text"),
            };
            Unreadable::type_of(&error.attribute, stored, &wanted)
        }
    }
}

// ---- The declaration of a [mirror](crate::kinds::mirror) ----

/// The declaration of a mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Entity of the sources.
    pub source: String,
    /// Entity of the mirrors.
    pub target: String,
    /// How the mirror's key is built from the source's fields.
    pub link: Link,
    /// Which sources are mirrored.
    pub condition: Condition,
    /// The attribute of the source that lists members, if each member has its own mirror: in the link, its name stands
    /// for the member.
    pub each: Option<String>,
    /// Attributes of the source that are left out.
    pub except: Vec<String>,
}

// ---- The declaration of a [roll-up](crate::kinds::rollup) ----

/// The declaration of a roll-up.
#[derive(Clone, Debug)]
pub struct Rollup {
    /// Entity of the items that are rolled up.
    pub source: String,
    /// Which of the items take part.
    pub condition: Condition,
    /// Their time, such as `2024-01-15T10:30:00.000Z`.
    pub time: Input,
    /// Their value.
    pub value: Input,
    /// The time spans of buckets, each once.
    pub grains: Vec<TimeSpan>,
    /// How the other fields of a bucket's key are built.
    pub link: Link,
    /// The field of the bucket's key for the name of the grain.
    pub grain: String,
    /// The field of the bucket's key for the start of the time span.
    pub bucket: String,
    /// Entity and attribute names of the buckets.
    pub form: Arc<BucketForm>,
}
