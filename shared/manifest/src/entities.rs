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
    syntax::{
        KeySyntax,
        ValueSyntax::{PairOfTexts, Sections, Text, Texts, Truth},
    },
};

/// Keys of `[entity.NAME]`.
pub(crate) const ENTITY: [KeySyntax; 7] = [
    KeySyntax::optional("id", Text, "the name", "its row in the table's design, as `ripple design` shows it"),
    KeySyntax::required("partition-key", Text, "form of the partition key"),
    KeySyntax::required("sort-key", Text, "form of the sort key; it may be the same"),
    KeySyntax::optional(
        "attributes",
        Texts,
        "none",
        "the application's attributes that a derivation names or an index key contains; Ripple leaves others as they are",
    ),
    KeySyntax::optional(
        "derived-attributes",
        Texts,
        "none",
        "attributes that Ripple writes; a derivation writes no others",
    ),
    KeySyntax::optional(
        "derived",
        Truth,
        "`false`",
        "`true`: Ripple creates and removes the whole item, as for a mirror",
    ),
    KeySyntax::optional("index", Sections, "", "`[entity.NAME.index.INDEX]`, below"),
];

/// Keys of `[entity.Counter]`.
pub(crate) const COUNTERS: [KeySyntax; 1] =
    [KeySyntax::required("id", Text, "the row of the counters in the table's design, as `ripple design` shows it")];

/// Keys of `[entity.NAME.index.INDEX]`.
pub(crate) const INDEX_KEY: [KeySyntax; 5] = [
    KeySyntax::required(
        "partition-key",
        Text,
        "form of the index's partition key, from fields of the key and attributes",
    ),
    KeySyntax::required("sort-key", Text, "form of its sort key"),
    KeySyntax::optional(
        "only-if",
        PairOfTexts,
        "always",
        "`{ status = \"published\" }`: the item is in the index only while the attribute has this text, or one of these",
    ),
    KeySyntax::optional("only-with", Text, "always", "the item is in the index only while it has this attribute"),
    KeySyntax::optional(
        "derived",
        Truth,
        "`false`",
        "`true`: Ripple makes the key, by a derivation of the kind `index-key`; it may name a derived number",
    ),
];

/// The schema of the declared entities, and of the counters.
pub(crate) fn read(root: &Section<'_>, layout: Layout) -> Result<Schema, ManifestError> {
    let mut counter = counter().map_err(|error| root.place.wrong(error.to_string()))?;
    let mut definitions = vec![counter.clone()];
    for (name, section) in root.sections("entity")? {
        if name == COUNTER {
            counter.id = counter_id(&section)?;
            continue;
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
    definitions.push(counter);
    Ok(Schema::new(layout, definitions.into_iter().skip(1)))
}

/// All that may be said of counters: their row in the table's design.
fn counter_id(section: &Section<'_>) -> Result<String, ManifestError> {
    match section.entries().find(|entry| entry.key != "id") {
        Some(other) => {
            Err(other.place.wrong("counters are the service's own, and always there: only their id can be said"))
        }
        None => Ok(section.required("id", "the row of the counters in the table's design")?.text()?.text.to_owned()),
    }
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
    section.follows(&ENTITY)?;
    let key = key(section)?;
    let names = |key| section.get(key).map_or_else(|| Ok(Vec::new()), |entry: Entry<'_>| entry.texts());
    let (attributes, derived_attributes) = (names("attributes")?, names("derived-attributes")?);
    free(layout, &key, &attributes, &derived_attributes)?;
    let owned = |names: Vec<Named<'_>>| names.into_iter().map(|name| name.text.to_owned()).collect();
    let mut definition = Definition {
        id: section.get("id").map_or_else(|| Ok(name), |entry| Ok(entry.text()?.text))?.to_owned(),
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
    section.follows(&INDEX_KEY)?;
    if layout.index(name).is_none() {
        let named = Named { text: name, place: section.place.clone() };
        return Err(named.unknown("there is no index", layout.indexes.iter().map(|index| index.name.as_str())));
    }
    let key = key(section)?;
    let derived = section.get("derived").map_or(Ok(false), |entry| entry.truth())?;
    let mut known = entity.key.field_names();
    known.extend(entity.attributes.iter().map(String::as_str));
    // What Ripple derives is in no key that the application makes.
    known.extend(entity.derived_attributes.iter().map(String::as_str).filter(|_| derived));
    let must_be_known = |named: &Named<'_>| {
        let is_known = known.contains(&named.text);
        let unknown = || named.unknown(&format!("{} has no field or attribute", entity.name), known.iter().copied());
        if is_known { Ok(()) } else { Err(unknown()) }
    };
    for (part, template) in [("partition-key", &key.pk), ("sort-key", &key.sk)] {
        for text in template.field_names() {
            let place = section.get(part).map_or_else(|| section.place.clone(), |entry| entry.place);
            must_be_known(&Named { text, place })?;
        }
    }
    let only_if = only_if(section)?;
    if let Some((attribute, _)) = &only_if {
        attribute.top_level()?;
        must_be_known(attribute)?;
    }
    let only_if = only_if.map(|(_, only_if)| only_if);
    Ok(IndexKey { index: name.to_owned(), key, only_if, derived })
}

/// When an item is in an index, and the attribute that says so; always where there is none.
fn only_if<'a>(section: &Section<'a>) -> Result<Option<(Named<'a>, OnlyIf)>, ManifestError> {
    let only_with = section.get("only-with").map(|entry| entry.text()).transpose()?;
    let Some(entry) = section.get("only-if") else {
        return Ok(only_with.map(|named| (named.clone(), OnlyIf::Has { attribute: named.text.to_owned() })));
    };
    if let Some(only_with) = only_with {
        return Err(only_with.place.wrong("an item is in an index by only-if or by only-with: leave one of them out"));
    }
    let (attribute, any_of) = entry.pair_of_texts()?;
    let any_of = any_of.into_iter().map(|named| named.text.to_owned()).collect();
    let only_if = OnlyIf::Is { attribute: attribute.text.to_owned(), any_of };
    Ok(Some((attribute, only_if)))
}

/// Each attribute is declared once, and none of them is a key, a field of the key or the type. Ripple writes no
/// time to live.
fn free(
    layout: &Layout,
    key: &KeyTemplate,
    attributes: &[Named<'_>],
    derived: &[Named<'_>],
) -> Result<(), ManifestError> {
    let mut declared = BTreeSet::new();
    let all = attributes.iter().map(|attribute| (attribute, false)).chain(derived.iter().map(|it| (it, true)));
    for (attribute, is_derived) in all {
        attribute.top_level()?;
        let name = attribute.text;
        let is = if layout.is_key(name) {
            "is an attribute of a key"
        } else if layout.entity_type.as_deref() == Some(name) {
            "is the attribute of the type"
        } else if is_derived && layout.time_to_live.as_deref() == Some(name) {
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
