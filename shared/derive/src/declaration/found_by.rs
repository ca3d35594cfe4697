//! How the items that belong to a source are found: by one query, which the source's key makes.
//!
//! What the query finds are the targets themselves, or other items whose fields hold the keys of the targets.

use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    key::Key,
};

use crate::{
    change::Sight,
    declaration::{check::entity, link::Link},
    effect::{Effect, Find},
    outline::placeholders,
    query::Query,
    schema::{Image, Schema},
};

/// How the items that name a source are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBy {
    /// Entity of the items that are queried: the targets, or items whose fields hold the keys of the targets.
    pub via: String,
    /// The index that is queried; the table itself where there is none.
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

    /// The query that finds them, from the fields of the source's key; `None` when one is missing.
    #[must_use]
    pub fn query(&self, schema: &Schema, source: &Fields) -> Option<Query> {
        let field = |to: &str| source.get(self.by.filling(to)?);
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

    /// The search for all targets of a source of this key.
    pub(crate) fn find_from(&self, schema: &Schema, entity: &str, source: &Key, target: &str) -> Option<Find> {
        self.search(schema, &schema.entity(entity)?.key.parse_key(source)?, target)
    }

    fn search(&self, schema: &Schema, source: &Fields, target: &str) -> Option<Find> {
        let query = self.query(schema, source)?;
        Some(Find { query, via: self.via.clone(), target: target.to_owned() })
    }

    /// The target to which an item leads that was made, that leads elsewhere than before, or that is found otherwise.
    /// A target that is itself what is found rings when it is made, so here only when it is found otherwise.
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

    /// Did an item come to another place in the index? A search that was made before may have missed it.
    fn is_moved(&self, schema: &Schema, sight: &Sight<'_>) -> bool {
        let index = self.index.as_ref().and_then(|name| schema.layout.index(name));
        index.is_some_and(|index| [&index.pk, &index.sk].into_iter().any(|name| sight.differs_in(name)))
    }

    /// Checks that a source's key makes the query's, and that what is found leads to a target.
    pub(crate) fn check(&self, schema: &Schema, source: &Definition, target: &Definition) -> Result<(), String> {
        let template = self.template(schema)?;
        if let Some(name) = template.pk.field_names().iter().find(|name| !self.by.0.iter().any(|(to, _)| to == *name)) {
            return Err(format!("nothing gives {name} of the key by which the targets are found"));
        }
        if let Some(name) = self.by.from_fields().find(|name| !source.key.field_names().contains(name)) {
            return Err(format!("the key of {} has no {name}, by which the targets would be found", source.name));
        }
        let via = entity(schema, &self.via)?;
        let known = via.key.field_names();
        let is_known = |name: &&str| known.contains(name) || via.attributes.iter().any(|attribute| attribute == name);
        match target.key.field_names().into_iter().find(|name| !is_known(name)) {
            Some(name) => Err(format!("a found {} does not lead to a {}: it has no {name}", via.name, target.name)),
            None => Ok(()),
        }
    }
}

/// The item that a found item leads to: its key is made of the found item's fields of the same names.
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
