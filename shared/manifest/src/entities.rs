//! `[entity.…]`: what the table's items look like.
//!
//! Counters are items of the service's own, the same in every table, so they are added here and never declared.

use std::collections::BTreeSet;

use derive::schema::Schema;
use keys::{
    counter::{COUNTER, PARTITION_KEY, SORT_KEY, VALUE},
    entity::{Definition, KeyTemplate},
    error::TemplateError,
    index_key::{IndexKey, OnlyIf},
    layout::Layout,
    template::Template,
};

use crate::{
    error::ManifestError,
    section::{Entry, Named, Section},
};

/// Keys of `[entity.NAME]`.
pub(crate) const ENTITY: [&str; 6] =
    ["partition-key", "sort-key", "index", "attributes", "derived-attributes", "derived"];

/// Keys of `[entity.NAME.index.INDEX]`.
pub(crate) const INDEX_KEY: [&str; 3] = ["partition-key", "sort-key", "only-if"];

/// The schema of the declared entities, and of the counters.
pub(crate) fn read(root: &Section<'_>, layout: Layout) -> Result<Schema, ManifestError> {
    let mut definitions = vec![counter().map_err(|error| root.place.wrong(error.to_string()))?];
    for (name, section) in root.sections("entity")? {
        if name == COUNTER {
            return Err(section.place.wrong("is the entity of the service's own counters: it is always there"));
        }
        if name.is_empty() {
            return Err(section.place.wrong("the name of an entity is empty: items have it as their type"));
        }
        let entity = entity(name, &section, &layout)?;
        if layout.entity_type.is_none() {
            distinct(&entity, &definitions, &section)?;
        }
        definitions.push(entity);
    }
    if definitions.len() == 1 {
        return Err(root.place.wrong("there is no entity: declare one with [entity.NAME]"));
    }
    Ok(Schema::new(layout, definitions))
}

/// Without a type an item is known by its key, so no key may be of two entities.
fn distinct(entity: &Definition, others: &[Definition], section: &Section<'_>) -> Result<(), ManifestError> {
    let Some(other) = others.iter().find(|other| other.key.meets(&entity.key)) else { return Ok(()) };
    Err(section.place.wrong(format!(
        "a key of the form {} / {} may be that of a {} too, {} / {}: name the attribute that tells them apart, as in \
         [table] type = \"…\"",
        entity.key.pk, entity.key.sk, other.name, other.key.pk, other.key.sk
    )))
}

/// A counter, as the machinery writes it.
fn counter() -> Result<Definition, TemplateError> {
    Ok(Definition {
        id: COUNTER.to_owned(),
        name: COUNTER.to_owned(),
        key: KeyTemplate::parse(PARTITION_KEY, SORT_KEY)?,
        indexes: Vec::new(),
        derived: true,
        attributes: Vec::new(),
        derived_attributes: vec![VALUE.to_owned(), "Sum".to_owned()],
    })
}

fn entity(name: &str, section: &Section<'_>, layout: &Layout) -> Result<Definition, ManifestError> {
    section.only(&ENTITY)?;
    let key = key(section)?;
    let names = |key| section.get(key).map_or_else(|| Ok(Vec::new()), |entry: Entry<'_>| entry.texts());
    let (attributes, derived_attributes) = (names("attributes")?, names("derived-attributes")?);
    free(layout, &key, &attributes, &derived_attributes)?;
    let owned = |names: Vec<Named<'_>>| names.into_iter().map(|name| name.text.to_owned()).collect();
    let mut definition = Definition {
        id: name.to_owned(),
        name: name.to_owned(),
        key,
        indexes: Vec::new(),
        derived: section.get("derived").map_or(Ok(false), |entry| entry.truth())?,
        attributes: owned(attributes),
        derived_attributes: owned(derived_attributes),
    };
    for (index, section) in section.sections("index")? {
        let index = index_key(index, &section, layout, &definition)?;
        definition.indexes.push(index);
    }
    Ok(definition)
}

fn key(section: &Section<'_>) -> Result<KeyTemplate, ManifestError> {
    let template = |key: &str, purpose: &str| {
        let text = section.required(key, purpose)?.text()?;
        Template::parse(text.text).map_err(|error| text.place.wrong(error.to_string()))
    };
    Ok(KeyTemplate {
        pk: template("partition-key", "its form, as in \"USER#{userId}\"")?,
        sk: template("sort-key", "its form, as in \"ORDER#{orderedOn}#{orderId}\"")?,
    })
}

fn index_key(
    name: &str,
    section: &Section<'_>,
    layout: &Layout,
    entity: &Definition,
) -> Result<IndexKey, ManifestError> {
    section.only(&INDEX_KEY)?;
    if layout.index(name).is_none() {
        let named = Named { text: name, place: section.place.clone() };
        return Err(named.unknown("there is no index", layout.indexes.iter().map(|index| index.name.as_str())));
    }
    let key = key(section)?;
    let mut known = entity.key.field_names();
    known.extend(entity.attributes.iter().map(String::as_str));
    for part in [("partition-key", &key.pk), ("sort-key", &key.sk)] {
        if let Some(text) = part.1.field_names().into_iter().find(|field| !known.contains(field)) {
            let place = section.get(part.0).map_or_else(|| section.place.clone(), |entry| entry.place);
            return Err(Named { text, place }.unknown(&format!("{} has no field or attribute", entity.name), known));
        }
    }
    let only_if = section.get("only-if").map(|entry| entry.pair()).transpose()?;
    only_if.as_ref().map_or(Ok(()), |(attribute, _)| attribute.top_level())?;
    if let Some((attribute, _)) = only_if.as_ref().filter(|(attribute, _)| !known.contains(&attribute.text)) {
        return Err(attribute.unknown(&format!("{} has no field or attribute", entity.name), known));
    }
    let only_if = only_if
        .map(|(attribute, is)| OnlyIf::Is { attribute: attribute.text.to_owned(), any_of: vec![is.text.to_owned()] });
    Ok(IndexKey { index: name.to_owned(), key, only_if, derived: false })
}

/// Each attribute is declared once, and none of them is a key, a field of the key, the type or the time to live.
fn free(
    layout: &Layout,
    key: &KeyTemplate,
    attributes: &[Named<'_>],
    derived: &[Named<'_>],
) -> Result<(), ManifestError> {
    let mut declared = BTreeSet::new();
    for attribute in attributes.iter().chain(derived) {
        attribute.top_level()?;
        let name = attribute.text;
        let is = if layout.is_key(name) {
            "is an attribute of a key"
        } else if layout.entity_type.as_deref() == Some(name) {
            "is the attribute of the type"
        } else if layout.time_to_live.as_deref() == Some(name) {
            "is the attribute of the time to live"
        } else if key.holds(name) {
            "is a field of the key"
        } else if !declared.insert(name) {
            "is declared twice"
        } else {
            continue;
        };
        return Err(attribute.place.wrong(format!("\"{name}\" {is}: leave it out")));
    }
    Ok(())
}
