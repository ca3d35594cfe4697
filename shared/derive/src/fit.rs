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
mod tests {
    use keys::{
        entity::{Definition, KeyTemplate},
        index_key::IndexKey,
        tables::{EntityBy, KeyType, TableForms},
    };

    use super::*;
    use crate::{
        declaration::{FoundBy, Link},
        fixture::{derivations, schema},
        kinds::copy::Copy,
    };

    const NAMES: Names = Names {
        table: "TABLE_NAME",
        tables: "TABLES",
        ledger_table: "LEDGER_TABLE_NAME",
        config: "CONFIG",
        disabled: "DISABLED",
    };

    fn key(pk: &str, sk: &str) -> StoredKey {
        StoredKey([pk, sk].map(|name| (name.to_owned(), "S".to_owned())).to_vec())
    }

    /// An index with this key, which projects these attributes.
    fn index(name: &str, pk: &str, sk: &str, projected: Option<&[&str]>) -> StoredIndex {
        let projection = projected.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        StoredIndex { name: name.to_owned(), key: key(pk, sk), projection }
    }

    /// A table with exactly what derivations need.
    fn fitting() -> StoredTable {
        StoredTable {
            name: "shop".to_owned(),
            key: key("PK", "SK"),
            index_keys: BTreeSet::new(),
            indexes: vec![
                index("GSI1", "GSI1PK", "GSI1SK", Some(&["EntityType"])),
                index("GSI2", "GSI2PK", "GSI2SK", None),
            ],
            has_stream: true,
            is_strong_global: false,
            view: Some(BOTH_IMAGES.to_owned()),
        }
    }

    fn with_indexes(indexes: Vec<StoredIndex>) -> StoredTable {
        StoredTable { indexes, ..fitting() }
    }

    /// The lines of the misfits, for the derivations that the filter keeps.
    fn lines(table: &StoredTable, is_on: impl Fn(&str) -> bool) -> String {
        let schema = schema();
        let derivations = derivations().into_iter().filter(|derivation| is_on(&derivation.name));
        let catalogue = Catalogue::new(&schema, derivations.collect()).unwrap();
        let misfits = of_table(&schema, &catalogue, table, NAMES);
        misfits.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn all(_: &str) -> bool {
        true
    }

    #[test]
    fn a_table_that_has_what_is_declared_fits() {
        assert_eq!(lines(&fitting(), all), "");
    }

    #[test]
    fn a_key_has_the_declared_names_and_types() {
        let other = StoredTable { key: key("Id", "SK"), ..fitting() };
        expect_test::expect!["the table shop has the key Id (S) and SK (S), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG"]
        .assert_eq(&lines(&other, all));
        let mut number = fitting();
        "N".clone_into(&mut number.key.0[1].1);
        expect_test::expect!["the table shop has the key PK (S) and SK (N), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG, in [tables.NAME]"]
        .assert_eq(&lines(&number, all));
        let mut simple = fitting();
        simple.key.0.truncate(1);
        assert!(lines(&simple, all).starts_with("the table shop has the key PK (S), and "));
    }

    #[test]
    fn an_index_is_needed_by_those_who_find_by_it_or_write_its_keys() {
        let none = with_indexes(Vec::new());
        let author = |name: &str| name == "comment-author";
        expect_test::expect!["the table shop has no index GSI1, needed by comment-author: make it with the key GSI1PK (S) and GSI1SK (S), projecting KEYS_ONLY, or switch comment-author off with DISABLED"]
        .assert_eq(&lines(&none, author));
        let sellers = |name: &str| ["sale-count", "sale-shown", "best-sellers"].contains(&name);
        assert!(lines(&none, sellers).starts_with("the table shop has no index GSI2, needed by best-sellers: "));
        let path = |name: &str| name == "employee-path";
        assert!(lines(&none, path).contains(", needed by employee-path: "), "{}", lines(&none, path));
        assert_eq!(lines(&none, |name| name == "writer-count"), "", "nobody needs one");
    }

    #[test]
    fn an_index_has_the_declared_key_and_projects_what_is_read_there() {
        let author = |name: &str| name == "comment-author";
        let other = with_indexes(vec![index("GSI1", "GSI1PK", "SK", None)]);
        expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and SK (S), and GSI1PK (S) and GSI1SK (S) is declared; DynamoDB never changes an index: delete it and create it again, declare its key with CONFIG, or switch comment-author off with DISABLED"]
        .assert_eq(&lines(&other, author));
        let mut number = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", None)]);
        "N".clone_into(&mut number.indexes[0].key.0[1].1);
        expect_test::expect!["the index GSI1 of shop has the key GSI1PK (S) and GSI1SK (N), and GSI1PK (S) and GSI1SK (S) is declared; DynamoDB never changes an index: delete it and create it again, declare its key with CONFIG, in [tables.NAME], or switch comment-author off with DISABLED"].assert_eq(&lines(&number, author));
        let keys_only = with_indexes(vec![index("GSI1", "GSI1PK", "GSI1SK", Some(&[]))]);
        expect_test::expect!["the index GSI1 of shop does not project EntityType, read there by comment-author; DynamoDB never changes an index: delete it and create it again with that, or switch comment-author off with DISABLED"]
        .assert_eq(&lines(&keys_only, author));
    }

    #[test]
    fn a_stream_has_both_images() {
        for one_image in ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"] {
            let line = format!("the stream of shop has the view type {one_image}: it must be NEW_AND_OLD_IMAGES");
            assert_eq!(lines(&StoredTable { view: Some(one_image.to_owned()), ..fitting() }, all), line);
        }
        let none = "the table shop has no stream: enable one with the view type NEW_AND_OLD_IMAGES";
        assert_eq!(lines(&StoredTable { has_stream: false, view: None, ..fitting() }, all), none);
    }

    #[test]
    fn a_global_table_with_strong_consistency_refuses_transactions() {
        let table = StoredTable { is_strong_global: true, ..fitting() };
        let of_ledger = of_ledger(&schema().layout, &table, NAMES).unwrap().to_string();
        for line in [lines(&table, all), of_ledger] {
            assert!(line.starts_with("the table shop is a global table with strong consistency (MRSC)"), "{line}");
        }
    }

    #[test]
    fn a_ledger_has_the_key_of_the_table() {
        let layout = schema().layout;
        let other = StoredTable { key: key("Id", "SK"), ..fitting() };
        let line = of_ledger(&layout, &other, NAMES).unwrap().to_string();
        assert!(line.contains("name another table with LEDGER_TABLE_NAME"), "{line}");
        assert_eq!(of_ledger(&layout, &fitting(), NAMES), None);
    }

    /// A table with a numeric sort key and an index without a sort key, where the layout declares its own table forms.
    fn in_forms() -> (Schema, Catalogue) {
        let attribute = KeyAttribute::plain;
        let index = IndexForm {
            name: "byAuthor".to_owned(),
            pk: vec![attribute("authorId", KeyType::S)],
            sk: Vec::new(),
            projection: None,
            entities: vec!["Post".to_owned()],
        };
        let form = |name: &str, sk: Option<KeyAttribute>, indexes| TableForm {
            name: name.to_owned(),
            called: format!("prod-{name}"),
            pk: attribute("id", KeyType::S),
            sk,
            entity: EntityBy::Table(name.trim_end_matches('s').to_owned()),
            time_to_live: None,
            indexes,
        };
        let forms = TableForms(vec![
            form("Posts", Some(attribute("at", KeyType::N)), vec![index]),
            form("Users", None, Vec::new()),
        ]);
        let definition = |name: &str, key: (&str, &str), attributes: &[&str], indexes| Definition {
            id: name.to_owned(),
            name: name.to_owned(),
            key: KeyTemplate::parse(key.0, key.1).unwrap(),
            indexes,
            derived: false,
            attributes: attributes.iter().map(|&it| it.to_owned()).collect(),
            derived_attributes: vec!["authorName".to_owned()],
        };
        let key = KeyTemplate::parse("{authorId}", "-").unwrap();
        let by_author = IndexKey { index: "Posts.byAuthor".to_owned(), key, only_if: None, derived: false };
        let post = definition("Post", ("Posts#{id}", "{at:N}"), &["authorId"], vec![by_author]);
        let user = definition("User", ("Users#{id}", "-"), &["name"], Vec::new());
        let schema = Schema::new(forms.layout(), [post, user]);
        let copy = Copy {
            source: "User".to_owned(),
            target: "Post".to_owned(),
            link: Link::of(&[("id", "authorId")]),
            condition: crate::condition::Condition::Always,
            attributes: vec![("name".into(), "authorName".into())],
            found: FoundBy {
                via: "Post".to_owned(),
                index: Some("Posts.byAuthor".to_owned()),
                by: Link::of(&[("authorId", "id")]),
            },
        };
        let catalogue = Catalogue::new(&schema, vec![Derivation::new("D", "author", copy)]).unwrap();
        (schema, catalogue)
    }

    #[test]
    fn each_table_of_another_form_has_its_own_key_and_indexes() {
        let (schema, catalogue) = in_forms();
        let lines = |name: &str, key: &[(&str, &str)], indexes: Vec<StoredIndex>| {
            let key = StoredKey(key.iter().map(|(name, of)| ((*name).to_owned(), (*of).to_owned())).collect());
            let table = StoredTable { name: name.to_owned(), key, indexes, ..fitting() };
            let misfits = of_table(&schema, &catalogue, &table, NAMES);
            misfits.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let by_author = |of: &str| StoredIndex {
            name: "byAuthor".to_owned(),
            key: StoredKey(vec![("authorId".to_owned(), of.to_owned())]),
            projection: Some(BTreeSet::new()),
        };
        let posts = [("id", "S"), ("at", "N")];
        assert_eq!(lines("prod-Posts", &posts, vec![by_author("S")]), "");
        assert_eq!(lines("prod-Users", &[("id", "S")], Vec::new()), "");
        assert_eq!(lines("ripple", &[("RipplePK", "S"), ("RippleSK", "S")], Vec::new()), "");
        expect_test::expect!["the table prod-Posts has the key id (S) and at (S), and id (S) and at (N) is declared: name another table with TABLES, or declare this one's key with CONFIG"].assert_eq(&lines("prod-Posts", &[("id", "S"), ("at", "S")], vec![by_author("S")]));
        expect_test::expect!["the index byAuthor of prod-Posts has the key authorId (N), and authorId (S) is declared; DynamoDB never changes an index: delete it and create it again, declare its key with CONFIG, or switch author off with DISABLED"].assert_eq(&lines("prod-Posts", &posts, vec![by_author("N")]));
        expect_test::expect!["the table prod-Posts has no index byAuthor, needed by author: make it with the key authorId (S), projecting ALL, or switch author off with DISABLED"].assert_eq(&lines("prod-Posts", &posts, Vec::new()));
    }

    #[test]
    fn keys_of_indexes_that_nobody_declared_are_noted() {
        let mut schema = schema();
        let index_keys = ["PK", "SK", "GSI1PK", "GSI1SK", "gsi7pk", "gsi7sk"].map(str::to_owned).into();
        note_undeclared_keys(&mut schema, &StoredTable { index_keys, ..fitting() });
        let noted = schema.layout.undeclared_keys.get("").unwrap();
        assert_eq!(noted.iter().collect::<Vec<_>>(), ["gsi7pk", "gsi7sk"]);
    }
}
