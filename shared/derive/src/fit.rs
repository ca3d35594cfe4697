//! Checks that a table fits the declarations: its keys, the indexes that derivations need, and its stream.
//!
//! It compares a [stored table](StoredTable) with the schema and the catalogue, and returns a line for each difference,
//! with what to change. The functions check when they start, the command line when it opens a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use keys::{
    layout::{Index, Layout},
    tables::{IndexForm, KeyAttribute, TableForm},
};

use crate::{catalogue::Catalogue, derivation::Derivation, effect::Find, part::PartOf, schema::Schema};

/// The view type that a table's stream must have.
pub const BOTH_IMAGES: &str = "NEW_AND_OLD_IMAGES";

/// A table as the database describes it.
#[derive(Clone, Debug)]
pub struct StoredTable {
    /// Its name.
    pub name: String,
    /// Its key.
    pub key: StoredKey,
    /// Its global secondary indexes.
    pub indexes: Vec<StoredIndex>,
    /// The key attributes of all its indexes, including the local ones.
    pub index_keys: BTreeSet<String>,
    /// True if its stream is enabled.
    pub has_stream: bool,
    /// The view type of the enabled stream, such as `NEW_AND_OLD_IMAGES`.
    pub view: Option<String>,
    /// True if it is a global table with strong consistency (MRSC).
    pub is_strong_global: bool,
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
    /// The projected attributes, besides keys; `None` for all.
    pub projection: Option<BTreeSet<String>>,
}

/// The caller's names of the settings to change.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The application's table, or the one of Ripple's own items.
    pub table: &'static str,
    /// The tables of a manifest.
    pub tables: &'static str,
    /// The ledger's table.
    pub ledger_table: &'static str,
    /// The manifest that declares the table.
    pub config: &'static str,
    /// The disabled derivations.
    pub disabled: &'static str,
}

/// A misfit, in a line that says what to change.
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
    /// Its replicas.
    Replicas,
}

/// The misfits of a table of the application, or of the table with Ripple's own items; empty if it fits.
#[must_use]
pub fn of_table(schema: &Schema, catalogue: &Catalogue, table: &StoredTable, names: Names) -> Vec<Misfit> {
    let form = schema.layout.forms.as_ref().and_then(|forms| forms.0.iter().find(|form| form.called == table.name));
    let key = form.map_or_else(
        || declared_key(&schema.layout.pk, &schema.layout.sk),
        |form| key_of([&form.pk].into_iter().chain(&form.sk)),
    );
    let named_by = if form.is_some() { names.tables } else { names.table };
    let mut misfits: Vec<Misfit> = of_key(&key, table, named_by, names.config).into_iter().collect();
    for need in needs(schema, catalogue) {
        let Some(need) = need.of_table(&schema.layout, form) else { continue };
        let line = of_index(&need, table, names);
        let part = TablePart::Index(need.name.clone());
        misfits.extend(line.map(|line| Misfit { part, line }));
    }
    misfits.extend(of_stream(table));
    misfits.extend(of_replicas(table));
    misfits
}

/// The misfit of the ledger's table, if it is a separate one. It has the same key, and no index.
#[must_use]
pub fn of_ledger(layout: &Layout, table: &StoredTable, names: Names) -> Option<Misfit> {
    of_key(&declared_key(&layout.pk, &layout.sk), table, names.ledger_table, names.config)
        .or_else(|| of_replicas(table))
}

/// The misfit of a global table with strong consistency. Source: DynamoDB developer guide, "Multi-Region strong
/// consistency (MRSC)": transactions are not supported.
fn of_replicas(table: &StoredTable) -> Option<Misfit> {
    let line = || {
        format!(
            "the table {} is a global table with strong consistency (MRSC), which refuses transactions: use a table of one \
             Region, or a global table with eventual consistency (MREC)",
            table.name
        )
    };
    table.is_strong_global.then(|| Misfit { part: TablePart::Replicas, line: line() })
}

/// Notes which attributes are keys of this table's indexes but undeclared. Mirrors leave them out: the application sets
/// them for its own items, and a mirror with them would be in its index too.
pub fn note_undeclared_keys(schema: &mut Schema, table: &StoredTable) {
    let layout = &mut schema.layout;
    let (name, declared): (String, BTreeSet<&str>) = match &layout.forms {
        None => {
            let of_indexes = layout.indexes.iter().flat_map(|index| [&index.pk, &index.sk]);
            (String::new(), [&layout.pk, &layout.sk].into_iter().chain(of_indexes).map(String::as_str).collect())
        }
        Some(forms) => {
            let Some(form) = forms.0.iter().find(|form| form.called == table.name) else { return };
            let of_key = [&form.pk].into_iter().chain(&form.sk);
            let parts = of_key.chain(form.indexes.iter().flat_map(IndexForm::parts));
            (form.name.clone(), parts.map(|part| part.name.as_str()).collect())
        }
    };
    let undeclared = table.index_keys.iter().filter(|name| !declared.contains(name.as_str())).cloned().collect();
    Arc::make_mut(&mut layout.undeclared_keys).insert(name, undeclared);
}

/// The indexes that derivations need.
#[must_use]
pub fn needed_indexes(schema: &Schema, catalogue: &Catalogue) -> BTreeSet<String> {
    needs(schema, catalogue).into_iter().map(|need| need.index.name.clone()).collect()
}

/// The misfit of the stream, which must have both images.
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

fn of_key(declared: &StoredKey, table: &StoredTable, named_by: &str, config: &str) -> Option<Misfit> {
    let StoredTable { name, key: stored, .. } = table;
    let line = || {
        let has = format!("the table {name} has the key {stored}, and {declared} is declared");
        format!(
            "{has}: name another table with {named_by}, or declare this one's key with {config}{}",
            stored.hint(declared)
        )
    };
    (stored != declared).then(|| Misfit { part: TablePart::Key, line: line() })
}

fn declared_key(pk: &str, sk: &str) -> StoredKey {
    StoredKey([pk, sk].map(|name| (name.to_owned(), "S".to_owned())).to_vec())
}

fn key_of<'a>(attributes: impl Iterator<Item = &'a KeyAttribute>) -> StoredKey {
    StoredKey(attributes.map(|attribute| (attribute.name.clone(), format!("{:?}", attribute.of))).collect())
}

impl StoredKey {
    /// A hint where to declare another key, if the declared one is two texts and the stored one is not.
    fn hint(&self, declared: &Self) -> &'static str {
        let is_plain = |key: &Self| key.0.len() == 2 && key.0.iter().all(|(_, of)| of == "S");
        if is_plain(declared) && !is_plain(self) { ", in [tables.NAME]" } else { "" }
    }
}

impl fmt::Display for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes: Vec<String> = self.0.iter().map(|(name, of)| format!("{name} ({of})")).collect();
        f.write_str(&attributes.join(" and "))
    }
}

/// What derivations need from an index.
struct Need<'a> {
    index: &'a Index,
    derivations: BTreeSet<String>,
    /// Attributes that they read there, without those of keys.
    attributes: BTreeSet<String>,
}

/// What derivations need from an index, in the names of its table.
struct StoredNeed {
    name: String,
    key: StoredKey,
    projected: String,
    derivations: BTreeSet<String>,
    attributes: BTreeSet<String>,
}

impl Need<'_> {
    /// The need in the names of a table; `None` if the index is in another table.
    fn of_table(self, layout: &Layout, form: Option<&TableForm>) -> Option<StoredNeed> {
        let Self { index, derivations, attributes } = self;
        let Some(forms) = &layout.forms else {
            let key = declared_key(&index.pk, &index.sk);
            let projected = projected(index.projection.as_deref());
            return Some(StoredNeed { name: index.name.clone(), key, projected, derivations, attributes });
        };
        let (of, stored) = forms.index(&index.name).filter(|(of, _)| Some(*of) == form)?;
        let attributes = attributes.iter().filter_map(|name| of.stored_name(name)).filter(|name| !of.is_of_key(name));
        Some(StoredNeed {
            name: stored.name.clone(),
            key: key_of(stored.parts()),
            projected: projected(stored.projection.as_deref()),
            derivations,
            attributes: attributes.map(str::to_owned).collect(),
        })
    }
}

/// The needs by index: indexes that find items for derivations, or whose keys derivations write.
fn needs<'a>(schema: &'a Schema, catalogue: &Catalogue) -> Vec<Need<'a>> {
    let mut needs: BTreeMap<&str, Need<'a>> = BTreeMap::new();
    for derivation in catalogue.derivations() {
        for (name, attributes) in asked(schema, derivation) {
            let Some(index) = schema.layout.index(&name) else { continue };
            let none = || Need { index, derivations: BTreeSet::new(), attributes: BTreeSet::new() };
            let need = needs.entry(&index.name).or_insert_with(none);
            need.derivations.insert(derivation.label().to_owned());
            need.attributes.extend(attributes);
        }
    }
    needs.into_values().collect()
}

/// The indexes that a derivation needs, each with the attributes that it reads from it.
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

/// What a search reads of the items that it finds: the mark of their entity, and the fields of the target's key.
/// Everything else is read from the item itself.
fn read_there(schema: &Schema, find: &Find) -> BTreeSet<String> {
    let mut attributes: BTreeSet<String> = schema.mark_of(&find.via).into_iter().map(|(name, _)| name).collect();
    if find.via != find.target
        && let (Some(via), Some(target)) = (schema.entity(&find.via), schema.entity(&find.target))
    {
        let fields = target.key.field_names().into_iter().filter(|name| !via.key.holds(name));
        attributes.extend(fields.map(str::to_owned));
    }
    attributes.retain(|name| *name != schema.layout.pk && *name != schema.layout.sk);
    attributes
}

fn of_index(need: &StoredNeed, table: &StoredTable, names: Names) -> Option<String> {
    let (table_name, index, declared) = (&table.name, &need.name, &need.key);
    let derivations = need.derivations.iter().cloned().collect::<Vec<_>>().join(", ");
    let or = format!("or switch {derivations} off with {}", names.disabled);
    let Some(stored) = table.indexes.iter().find(|stored| stored.name == *index) else {
        let lacks = format!("the table {table_name} has no index {index}, needed by {derivations}");
        return Some(format!("{lacks}: make it with the key {declared}, projecting {}, {or}", need.projected));
    };
    let key = &stored.key;
    if key != declared {
        let has = format!("the index {index} of {table_name} has the key {key}, and {declared} is declared");
        let hint = key.hint(declared);
        return Some(format!("{has}{NEVER_CHANGED}, declare its key with {}{hint}, {or}", names.config));
    }
    let lacking: Vec<&str> = need.attributes.iter().map(String::as_str).filter(|name| !holds(stored, name)).collect();
    let lacks = || {
        let lacking = lacking.join(", ");
        let lacks = format!("the index {index} of {table_name} does not project {lacking}");
        format!("{lacks}, read there by {derivations}{NEVER_CHANGED} with that, {or}")
    };
    (!lacking.is_empty()).then(lacks)
}

/// A declared projection, in DynamoDB's words.
fn projected(declared: Option<&[String]>) -> String {
    match declared {
        None => "ALL".to_owned(),
        Some([]) => "KEYS_ONLY".to_owned(),
        Some(names) => format!("INCLUDE {}", names.join(", ")),
    }
}

/// The misfit of an index that only reads need, if the table lacks it.
#[must_use]
pub fn of_read_index(declared: &IndexForm, reads: &[String], table: &StoredTable) -> Option<Misfit> {
    let IndexForm { name, projection, .. } = declared;
    let lacks = !reads.is_empty() && table.indexes.iter().all(|stored| stored.name != *name);
    let line = || {
        let (reads, key, projected) = (reads.join(", "), key_of(declared.parts()), projected(projection.as_deref()));
        let lacks = format!("the table {} has no index {name}, read by {reads}", table.name);
        format!("{lacks}: make it with the key {key}, projecting {projected}")
    };
    lacks.then(|| Misfit { part: TablePart::Index(name.clone()), line: line() })
}

/// What to do about an index with another key or projection.
const NEVER_CHANGED: &str = "; DynamoDB never changes an index: delete it and create it again";

/// True if the index contains this attribute.
fn holds(stored: &StoredIndex, name: &str) -> bool {
    stored.key.0.iter().any(|(key, _)| key == name) || stored.projection.as_ref().is_none_or(|held| held.contains(name))
}

#[cfg(test)]
mod tests;
