//! `kind = "copy"`: attributes of one item, carried by all items that name it.
//!
//! ```toml
//! [derivation.followed-name]
//! kind = "copy"
//! from = "User"
//! to = "Follow"
//! link = { userId = "followedId" }
//! attributes = { userName = "followedName" }
//! found = "FollowedBy"
//! ```
//!
//! `found` says how the items that carry a copy are found when its source changes: by a query for an entity that holds
//! the source's fields in its partition key, in the table or in an index, and whose fields hold the target's key. Where
//! nothing is said it is the target itself, in the table.

use derive::{
    declaration::{found_by::FoundBy, link::Link},
    derivation::Derivation,
    kinds::copy::Copy,
    schema::Schema,
};
use keys::entity::{Definition, KeyTemplate};

use super::{KindSyntax, Rule, attribute, derived_attribute, entity, link, named};
use crate::{
    error::ManifestError,
    section::{Entry, Named},
};

pub(super) const KIND: KindSyntax =
    KindSyntax { name: "copy", keys: &["from", "to", "link", "attributes", "found"], read };

/// Keys of `found`.
pub(super) const FOUND: [&str; 3] = ["through", "index", "by"];

fn read(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let source = rule.entity("from", "the entity that is copied from")?;
    let target = rule.entity("to", "the entity whose items carry the copy")?;
    let link = rule.link(source, target)?;
    let purpose = "what is copied, as in { userName = \"followedName\" }, or [\"avatar\"] where both have one name";
    let attributes = attributes(&rule.section.required("attributes", purpose)?, source, target)?;
    let found = found(rule, source, target, &link)?;
    let (source, target) = (source.name.clone(), target.name.clone());
    Ok(vec![named(rule.name, Copy { source, target, link, attributes, found })])
}

fn attributes(
    entry: &Entry<'_>,
    source: &Definition,
    target: &Definition,
) -> Result<Vec<(String, String)>, ManifestError> {
    let pairs: Vec<(Named<'_>, Named<'_>)> = if entry.is_list() {
        entry.texts()?.into_iter().map(|named| (named.clone(), named)).collect()
    } else {
        entry.pairs()?
    };
    if pairs.is_empty() {
        return Err(entry.place.wrong("names nothing to copy"));
    }
    let pair = |(from, to): &(_, _)| Ok((attribute(source, from)?, derived_attribute(target, to)?));
    pairs.iter().map(pair).collect()
}

fn found(rule: &Rule<'_>, source: &Definition, target: &Definition, link: &Link) -> Result<FoundBy, ManifestError> {
    // A found item has the fields of the target's key under the same names, so the link read backwards finds it.
    let backwards = || Link(link.0.iter().map(|(to, from)| (from.clone(), to.clone())).collect());
    let entry = rule.section.get("found");
    let found = match &entry {
        None => FoundBy { via: target.name.clone(), index: None, by: backwards() },
        Some(entry) if entry.is_text() => {
            FoundBy { via: entity(rule.schema, &entry.text()?)?.name.clone(), index: None, by: backwards() }
        }
        Some(entry) if !entry.is_table() => {
            return Err(entry.is_not("the name of an entity, or { index = \"…\" }"));
        }
        Some(entry) => {
            let section = entry.section()?;
            section.only(&FOUND)?;
            let through = section.get("through").map(|entry| entry.text()).transpose()?;
            let via = through.map_or(Ok(target), |named| entity(rule.schema, &named))?;
            let index = section.get("index").map(|entry| entry.text()).transpose()?;
            if let Some(index) = &index {
                let indexes: Vec<&str> = via.indexes.iter().map(|index| index.index.as_str()).collect();
                link::known(index, &format!("{} has no key in an index", via.name), &indexes)?;
            }
            let by = section.get("by").map(|entry| by(&entry, source)).transpose()?;
            let index = index.map(|index| index.text.to_owned());
            FoundBy { via: via.name.clone(), index, by: by.unwrap_or_else(backwards) }
        }
    };
    if let (Some(name), Some(entry)) = (&found.index, &entry)
        && let Some(missing) = not_projected(rule.schema, &found, target)
    {
        return Err(entry.place.wrong(format!(
            "{name} does not project \"{missing}\", without which the {} items that it finds lead nowhere: add it to \
             the projection of [index.{name}]",
            found.via
        )));
    }
    if let Some(missing) = not_given(rule.schema, &found) {
        let place = entry.map_or_else(|| rule.section.place.clone(), |entry| entry.place);
        let ways = ways(rule.schema, target, &found.by);
        let hint = if ways.is_empty() { "an entity or an index of it that is".to_owned() } else { ways.join(", or ") };
        return Err(place.wrong(format!(
            "a change of {} does not have {missing}, by which its {} items would be found: say found = {hint}",
            source.name, target.name
        )));
    }
    Ok(found)
}

/// Pairs of (field of the queried key, field of the source's key).
fn by(entry: &Entry<'_>, source: &Definition) -> Result<Link, ManifestError> {
    let mut pairs = Vec::new();
    for (field, value) in entry.pairs()? {
        value.top_level()?;
        link::known(&value, &format!("the key of {} has no field", source.name), &source.key.field_names())?;
        pairs.push((field.text.to_owned(), value.text.to_owned()));
    }
    Ok(Link(pairs))
}

/// A field of the queried partition key that the source does not give.
fn not_given<'a>(schema: &'a Schema, found: &FoundBy) -> Option<&'a str> {
    let via = schema.entity(&found.via)?;
    let index = found.index.as_ref().and_then(|name| via.indexes.iter().find(|index| index.index == *name));
    lacks(index.map_or(&via.key, |index| &index.key), &found.by)
}

fn lacks<'a>(key: &'a KeyTemplate, by: &Link) -> Option<&'a str> {
    key.pk.field_names().into_iter().find(|field| !by.0.iter().any(|(to, _)| to == field))
}

/// An attribute that the queried index must project, and does not: the type, or what the target's key is made of.
fn not_projected<'a>(schema: &'a Schema, found: &FoundBy, target: &'a Definition) -> Option<&'a str> {
    let index = schema.layout.index(found.index.as_ref()?)?;
    let via = schema.entity(&found.via)?;
    let beside_the_key = target.key.field_names().into_iter().filter(|field| !via.key.holds(field));
    let mut needed = schema.layout.entity_type.as_deref().into_iter().chain(beside_the_key);
    needed.find(|name| !index.projection.iter().any(|other| other == name))
}

/// The values of `found` that would do.
fn ways(schema: &Schema, target: &Definition, by: &Link) -> Vec<String> {
    let mut ways = Vec::new();
    for via in schema.entities() {
        let known = via.key.field_names();
        let has = |field: &&str| known.contains(field) || via.attributes.iter().any(|name| name == field);
        if !target.key.field_names().iter().all(has) {
            continue;
        }
        if lacks(&via.key, by).is_none() {
            ways.push(format!("\"{}\"", via.name));
        }
        for index in via.indexes.iter().filter(|index| lacks(&index.key, by).is_none()) {
            let through = if via.name == target.name { String::new() } else { format!("through = \"{}\", ", via.name) };
            ways.push(format!("{{ {through}index = \"{}\" }}", index.index));
        }
    }
    ways
}
