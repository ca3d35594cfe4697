//! Does a table fit what is declared? Its keys, the indexes that derivations need, and its stream.
//!
//! It compares a [stored table](StoredTable) with the schema and the catalogue, and gives a line for each difference,
//! which says what to change. The functions ask it when they start, the command line when it looks at a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use keys::layout::{Index, Layout};

use crate::{catalogue::Catalogue, derivation::Derivation, effect::Find, part::PartOf, schema::Schema};

/// The view type that a table's stream must have.
const BOTH_IMAGES: &str = "NEW_AND_OLD_IMAGES";

/// A table as the database describes it.
#[derive(Clone, Debug)]
pub struct StoredTable {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: StoredKey,
    /// Its global secondary indexes.
    pub indexes: Vec<StoredIndex>,
    /// Is its stream enabled?
    pub has_stream: bool,
    /// The view type of the stream that is enabled, such as `NEW_AND_OLD_IMAGES`.
    pub view: Option<String>,
}

/// A key as the database describes it: the partition key, then the sort key, each with its type. Written as
/// `PK (S) and SK (S)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey(pub Vec<(String, String)>);

/// An index as the database describes it.
#[derive(Clone, Debug)]
pub struct StoredIndex {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: StoredKey,
    /// The attributes that it projects, beside keys; `None` for all.
    pub projection: Option<BTreeSet<String>>,
}

/// How whoever asks names what is to be changed.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The application's table.
    pub table: &'static str,
    /// The ledger's table.
    pub ledger_table: &'static str,
    /// The manifest that declares the table.
    pub config: &'static str,
    /// The derivations that are switched off.
    pub disabled: &'static str,
}

/// What does not fit, in a line that says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct Misfit {
    /// Which part of the table.
    pub part: TablePart,
    /// The line.
    pub line: String,
}

/// A part of a table that must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TablePart {
    /// Its key.
    Key,
    /// The index of this name.
    Index(String),
    /// Its stream.
    Stream,
}

/// What the application's table lacks: nothing, where it fits.
#[must_use]
pub fn of_table(schema: &Schema, catalogue: &Catalogue, table: &StoredTable, names: Names) -> Vec<Misfit> {
    let mut misfits: Vec<Misfit> = of_key(&schema.layout, table, names.table, names.config).into_iter().collect();
    for need in needs(schema, catalogue) {
        let line = of_index(&need, table, names);
        let part = TablePart::Index(need.index.name.clone());
        misfits.extend(line.map(|line| Misfit { part, line }));
    }
    misfits.extend(of_stream(table));
    misfits
}

/// What the ledger's table lacks, where it is another than the application's. It has the same key, and no index.
#[must_use]
pub fn of_ledger(layout: &Layout, table: &StoredTable, names: Names) -> Option<Misfit> {
    of_key(layout, table, names.ledger_table, names.config)
}

/// The indexes that derivations need.
#[must_use]
pub fn needed_indexes(schema: &Schema, catalogue: &Catalogue) -> BTreeSet<String> {
    needs(schema, catalogue).into_iter().map(|need| need.index.name.clone()).collect()
}

/// What the stream lacks, which must have both images.
#[must_use]
pub fn of_stream(table: &StoredTable) -> Option<Misfit> {
    let name = &table.name;
    let line = match table.view.as_deref() {
        Some(BOTH_IMAGES) => return None,
        Some(view) => format!("the stream of {name} has the view type {view}: it must be {BOTH_IMAGES}"),
        None => format!("the table {name} has no stream: enable one with the view type {BOTH_IMAGES}"),
    };
    Some(Misfit { part: TablePart::Stream, line })
}

fn of_key(layout: &Layout, table: &StoredTable, named_by: &str, config: &str) -> Option<Misfit> {
    let StoredTable { name, key: stored, .. } = table;
    let declared = declared_key(&layout.pk, &layout.sk);
    let line = || {
        let has = format!("the table {name} has the key {stored}, and {declared} is declared");
        if let Some(no_text) = stored.no_text() {
            return format!("{has}: {no_text}, so name another table with {named_by}");
        }
        format!("{has}: name another table with {named_by}, or declare this one's key with {config}")
    };
    (*stored != declared).then(|| Misfit { part: TablePart::Key, line: line() })
}

fn declared_key(pk: &str, sk: &str) -> StoredKey {
    StoredKey([pk, sk].map(|name| (name.to_owned(), "S".to_owned())).to_vec())
}

impl StoredKey {
    /// Which of its attributes is no text, in words: keys are made of texts, and read as such.
    fn no_text(&self) -> Option<String> {
        let (name, of) = self.0.iter().find(|(_, of)| of != "S")?;
        Some(format!("{name} is of type {of}, and only keys of type S (text) are supported"))
    }
}

impl fmt::Display for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes: Vec<String> = self.0.iter().map(|(name, of)| format!("{name} ({of})")).collect();
        f.write_str(&attributes.join(" and "))
    }
}

/// What derivations need of an index.
struct Need<'a> {
    index: &'a Index,
    derivations: BTreeSet<String>,
    /// Attributes that they read there, those of keys left out.
    attributes: BTreeSet<String>,
}

/// What the derivations need, by index: those by which they find items, or whose keys they write.
fn needs<'a>(schema: &'a Schema, catalogue: &Catalogue) -> Vec<Need<'a>> {
    let mut needs: BTreeMap<&str, Need<'a>> = BTreeMap::new();
    for derivation in catalogue.derivations() {
        for (name, attributes) in asked(schema, derivation) {
            let Some(index) = schema.layout.index(&name) else { continue };
            let none = || Need { index, derivations: BTreeSet::new(), attributes: BTreeSet::new() };
            let need = needs.entry(&index.name).or_insert_with(none);
            need.derivations.insert(derivation.name.clone());
            need.attributes.extend(attributes);
        }
    }
    needs.into_values().collect()
}

/// The indexes that a derivation needs, each with the attributes that it reads there.
fn asked(schema: &Schema, derivation: &Derivation) -> Vec<(String, BTreeSet<String>)> {
    let kind = &derivation.kind;
    let finds = kind.outline(schema).finds.into_iter();
    let mut asked: Vec<(String, BTreeSet<String>)> =
        finds.filter_map(|find| Some((find.query.index.clone()?, read_there(schema, &find)))).collect();
    let writes = kind.reach(schema).map(|reach| reach.writes).unwrap_or_default();
    for index in &schema.layout.indexes {
        let is_key = |part: &PartOf| matches!(part, PartOf::Attribute(name) if *name == index.pk || *name == index.sk);
        if writes.iter().any(|part| is_key(&part.of)) {
            asked.push((index.name.clone(), BTreeSet::new()));
        }
    }
    asked
}

/// What a search reads of the items that it finds: by what it knows their entity, and what makes the target's key. All
/// else is read from the item itself.
fn read_there(schema: &Schema, find: &Find) -> BTreeSet<String> {
    let mut attributes: BTreeSet<String> = schema.layout.entity_type.iter().cloned().collect();
    if find.via != find.target
        && let (Some(via), Some(target)) = (schema.entity(&find.via), schema.entity(&find.target))
    {
        let fields = target.key.field_names().into_iter().filter(|name| !via.key.holds(name));
        attributes.extend(fields.map(str::to_owned));
    }
    attributes.retain(|name| *name != schema.layout.pk && *name != schema.layout.sk);
    attributes
}

fn of_index(need: &Need<'_>, table: &StoredTable, names: Names) -> Option<String> {
    let (table_name, index) = (&table.name, need.index);
    let derivations = need.derivations.iter().cloned().collect::<Vec<_>>().join(", ");
    let or = format!("or switch {derivations} off with {}", names.disabled);
    let declared = declared_key(&index.pk, &index.sk);
    let Some(stored) = table.indexes.iter().find(|stored| stored.name == index.name) else {
        let lacks = format!("the table {table_name} has no index {}, needed by {derivations}", index.name);
        return Some(format!("{lacks}: make it with the key {declared}, {or}"));
    };
    let key = &stored.key;
    if *key != declared {
        let has = format!("the index {} of {table_name} has the key {key}, and {declared} is declared", index.name);
        if let Some(no_text) = key.no_text() {
            let padded = "write it as text of a fixed width, such as 000042, into an attribute of its own";
            return Some(format!("{has}: {no_text}; {padded}, and make an index on that, {or}"));
        }
        return Some(format!("{has}: make it anew, declare its key with {}, {or}", names.config));
    }
    let lacking: Vec<&str> =
        need.attributes.iter().map(String::as_str).filter(|name| !holds(stored, name, index)).collect();
    let lacks = || {
        let lacking = lacking.join(", ");
        let lacks = format!("the index {} of {table_name} does not project {lacking}", index.name);
        format!("{lacks}, read there by {derivations}: make it anew with that, {or}")
    };
    (!lacking.is_empty()).then(lacks)
}

/// Does the index hold this attribute?
fn holds(stored: &StoredIndex, name: &str, index: &Index) -> bool {
    name == index.pk || name == index.sk || stored.projection.as_ref().is_none_or(|held| held.contains(name))
}

#[cfg(test)]
mod tests;
