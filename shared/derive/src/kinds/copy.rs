//! Copy: attributes of one item, carried by all items that name it.
//!
//! *Keeps true*: an item that names a source holds the source's attributes as they are; what the source lacks, the
//! item lacks, and a source that does not exist lacks everything. *From* a source whose attributes changed *to* a look
//! at all items that name it; *from* an item that was made, that names another source now, or whose copy changed, *to*
//! a look at that item.
//!
//! *Level-triggered.* The source is read when the copy is written, so the newest value wins whatever the order of
//! bells. An item that arrives before its source, or while a rename is fanned out, rings its own bell. What an item
//! takes depends on nothing of its own but the fields by which it names the source, so it can be written unread.
//!
//! *Example*: Ann becomes Anna. The change of `USER#ann / PROFILE` finds her comments by the index, `GSI1PK =
//! USER#ann` and `begins_with(GSI1SK, "COMMENT#")`, and each is looked at.

use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    derivation::{Counts, Derived, Items, Part, Reach},
    effect::{Bell, Effect, Find},
    kind::{Kind, Refresh, Shape},
    kinds::{Link, declares, entity, knows},
    outline::{Outline, placeholders},
    query::Query,
    refresh::{Computed, Source, Sources, Target},
    schema::{Image, Schema, Unreadable},
    write::Wanted,
};

/// The declaration of a copy.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Entity that is copied from.
    pub source: String,
    /// Entity that is copied to.
    pub target: String,
    /// How the source's key is made from the target's fields.
    pub link: Link,
    /// Pairs of (attribute of the source, attribute of the target).
    pub attributes: Vec<(String, String)>,
    /// How the targets of a source are found.
    pub found: Found,
}

/// How the items that name a source are found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Entity of the items that are queried: the targets, or items whose fields hold the keys of the targets.
    pub via: String,
    /// The index that is queried; the table itself where there is none.
    pub index: Option<String>,
    /// Pairs of (field of the queried key, field of the source's key).
    pub by: Link,
}

impl Found {
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

impl Copy {
    fn bell(&self, item: Key) -> Effect {
        Effect::Look(Bell { item, entity: self.target.clone(), named: Vec::new() })
    }

    /// The source changed: find all that name it.
    fn source_changed(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Effect> {
        let (old, new) = sight.entity(&self.source);
        let differs = self.attributes.iter().any(|(from, _)| sight.attribute_differs(old, new, from));
        let source = new.or(old).filter(|_| differs)?;
        self.found.find(schema, source, &self.target)
    }

    /// The target was made, names another source now, or its copy changed: look at it.
    fn target_changed(&self, sight: &Sight<'_>) -> Option<Effect> {
        let (old, new) = sight.entity(&self.target);
        let names = self.link.from_fields().chain(self.attributes.iter().map(|(_, to)| to.as_str()));
        let new = new?;
        let rings = old.is_none() || names.into_iter().any(|name| sight.attribute_differs(old, Some(new), name));
        rings.then(|| self.bell(new.key.clone()))
    }

    fn source_key(&self, schema: &Schema, image: &Image<'_>) -> Result<Option<Key>, Unreadable> {
        match schema.entity(&self.source) {
            Some(source) => self.link.key(source, image),
            None => Ok(None),
        }
    }

    fn wanted(&self, schema: &Schema, source: Option<&Key>, item: Option<&Item>) -> Vec<Wanted> {
        let source =
            source.zip(item).filter(|(key, item)| schema.image(key, item).is_some_and(|image| image.is(&self.source)));
        let wanted = |(from, to): &(String, String)| Wanted {
            name: to.clone(),
            value: source.and_then(|(_, item)| item.get(from).cloned()),
            zero_is_absent: false,
        };
        self.attributes.iter().map(wanted).collect()
    }
}

/// The item that a found item leads to: its key is made of the found item's fields of the same names.
#[must_use]
pub fn through(schema: &Schema, via: &Image<'_>, target: &str) -> Option<Key> {
    if via.is(target) {
        return Some(via.key.clone());
    }
    let definition = schema.entity(target)?;
    definition.build_of(|name| via.field(name).ok().flatten()).ok()
}

impl Kind for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check(source, target)?;
        knows(source, self.attributes.iter().map(|(from, _)| from.as_str()))?;
        declares(target, self.attributes.iter().map(|(_, to)| to.as_str()))?;
        self.found.check(schema, source, target)?;
        let mut reads = vec![Part::existence(&self.source), Part::existence(&self.target)];
        reads.extend(self.attributes.iter().map(|(from, _)| Part::attribute(&self.source, from)));
        reads.extend(self.link.from_fields().map(|name| Part::attribute(&self.target, name)));
        let writes = self.attributes.iter().map(|(_, to)| Part::attribute(&self.target, to)).collect();
        Ok(Reach { reads, writes })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let names = self.attributes.iter().map(|(from, to)| format!("{from} as {to}"));
        let target = schema.entity(&self.target);
        Outline {
            terms: vec![names.collect::<Vec<_>>().join(", ")],
            into: target.map(|target| format!("{} / {}", target.key.pk, target.key.sk)),
            finds: self.found.shown(schema, &self.source, &self.target).into_iter().collect(),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target, &self.found.via]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let led = self.found.newly_led(schema, sight, &self.target).map(|target| self.bell(target));
        let rung = [self.source_changed(schema, sight), self.target_changed(sight), led];
        rung.into_iter().flatten().collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(&self.target) {
            return None;
        }
        self.link.unreadable(schema.entity(&self.source)?, image)
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let mut derived = Vec::new();
        for (key, item) in items {
            let Some(image) = schema.image(key, item).filter(|image| image.is(&self.target)) else { continue };
            let source = self.source_key(schema, &image).ok().flatten();
            let found = source.as_ref().and_then(|source| items.get(source));
            let attributes = self.wanted(schema, source.as_ref(), found);
            derived.push(Derived::Attributes { key: key.clone(), attributes });
        }
        derived
    }
}

impl Refresh for Copy {
    fn target(&self) -> &str {
        &self.target
    }

    fn sources(&self, schema: &Schema, target: &Target<'_>) -> Vec<Source> {
        let key = target.image(schema).and_then(|image| self.source_key(schema, &image).ok().flatten());
        key.map(Source::Item).into_iter().collect()
    }

    fn taken_from(&self, schema: &Schema, source: &Key, item: &Key, sources: &Sources) -> Option<(Item, Vec<Wanted>)> {
        let (from, to) = (schema.entity(&self.source)?, schema.entity(&self.target)?);
        let (named, held) = (from.key.parse_key(source)?, to.key.parse_key(item)?);
        let mut names = Item::new();
        for field in from.key.field_names() {
            let (by, text) = (self.link.filling(field)?, named.get(field)?);
            match held.get(by) {
                Some(held) if held == text => {}
                Some(_) => return None,
                // As text; a number could stand there in many forms.
                None => drop(names.insert(by.to_owned(), AttributeValue::S(text.to_owned()))),
            }
        }
        Some((names, self.wanted(schema, Some(source), sources.item(source))))
    }

    fn compute(&self, schema: &Schema, target: &Target<'_>, sources: &Sources) -> Computed {
        let key = target.image(schema).and_then(|image| self.source_key(schema, &image).ok().flatten());
        let item = key.as_ref().and_then(|key| sources.item(key));
        Computed::Attributes(self.wanted(schema, key.as_ref(), item))
    }

    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        self.found.find_from(schema, &self.source, source, &self.target)
    }
}

#[cfg(test)]
mod tests;
