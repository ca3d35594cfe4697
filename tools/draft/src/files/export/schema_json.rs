//! A `schema.json` of the DynamoDB MCP server.

mod reads;

use std::collections::{BTreeMap, BTreeSet};

use derive::access::{Access, AccessReads};
use keys::{
    entity::Definition,
    tables::{IndexForm, KeyAttribute, KeyType, TableForm},
    template::{Piece, Template, form::Form},
};
use serde_json::{Map, Value, json};
use types::attributes::{HeldType, ValueTypes};

use super::{Losses, Table, each_once, form, object};
use crate::declared::{field_names, is_one_field};

const KEYS: &str = "key of this form";
const SPECIAL: &str = "mark of a path, or of a value with any text";
const BYTES: &str = "key of type B";
const NUMBERS: &str = "type of a key that no entity has";
const PROJECTED: &str = "projected attribute that no entity in the index has";
const EMPTY: &str = "table without entities";
const KEYLESS: &str = "read by a key that is left out";

/// The schema of these tables, without those of which it has no entity.
pub(super) fn file(tables: &[Table<'_>], known: &ValueTypes, accesses: &[Access], losses: &mut Losses) -> Value {
    let ids = reads::ids(accesses, losses);
    let (mut written, mut read) = (Vec::new(), BTreeSet::new());
    for table in tables {
        let entities = table.entities.iter().filter_map(|entity| Entity::new(table, entity, known, losses));
        let entities: Vec<Entity<'_>> = entities.collect();
        let definitions: Vec<&Definition> = entities.iter().map(|entity| entity.of).collect();
        let found = Table::distinguishable(&definitions, losses);
        let mut objects = Map::new();
        for entity in &entities {
            let is_beside =
                |it: &&&Definition| entities.iter().any(|other| other.of.name == it.name && other.pk == entity.pk);
            let beside: Vec<&str> = found.iter().filter(is_beside).map(|it| it.name.as_str()).collect();
            let mut patterns = Vec::new();
            for (access, id) in accesses.iter().zip(&ids).filter(|(access, _)| entity.is_read_by(access)) {
                read.insert(&access.name);
                patterns.extend(entity.pattern(table, (access, *id), &beside, losses));
            }
            objects.insert(entity.of.name.clone(), entity.object(&patterns));
        }
        if entities.is_empty() {
            losses.add(EMPTY, table.form.name.clone());
            continue;
        }
        lose_types(table, &entities, losses);
        let indexes = table.form.indexes.iter().map(|index| index_object(table, index, &entities, losses));
        let indexes: Vec<Value> = indexes.collect();
        written.push(json!({ "table_config": config(&table.form), "gsi_list": indexes, "entities": objects }));
    }
    for access in accesses.iter().filter(|access| !read.contains(&access.name)) {
        let what = if matches!(access.reads, AccessReads::Counts(_)) { reads::COUNTS } else { KEYLESS };
        losses.add(what, access.name.clone());
    }
    json!({ "tables": written })
}

fn config(table: &TableForm) -> Value {
    object([
        ("table_name", Some(json!(table.name))),
        ("partition_key", Some(json!(table.pk.name))),
        ("sort_key", table.sk.as_ref().map(|sk| json!(sk.name))),
    ])
}

/// An index. The form projects only attributes that an entity in the index has.
fn index_object(table: &Table<'_>, index: &IndexForm, entities: &[Entity<'_>], losses: &mut Losses) -> Value {
    let is_in = |entity: &&Entity<'_>| entity.indexes.iter().any(|(name, _)| *name == index.name);
    let entities: Vec<&Entity<'_>> = entities.iter().filter(is_in).collect();
    let has = |name: &String| entities.iter().any(|entity| entity.fields().contains(&name.as_str()));
    let projected: Option<Vec<&String>> =
        index.projection.as_ref().map(|all| all.iter().filter(|it| has(it)).collect());
    for name in index.projection.iter().flatten().filter(|name| !has(name)) {
        losses.add(PROJECTED, format!("{name} in {} of {}", index.name, table.form.name));
    }
    let projection = match &projected {
        None => "ALL",
        Some(all) if all.is_empty() => "KEYS_ONLY",
        Some(_) => "INCLUDE",
    };
    let names = |keys: &[KeyAttribute]| keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>();
    object([
        ("name", Some(json!(index.name))),
        ("partition_key", one_or_all(&names(&index.pk))),
        ("sort_key", one_or_all(&names(&index.sk))),
        ("projection", Some(json!(projection))),
        ("included_attributes", projected.filter(|all| !all.is_empty()).map(|all| json!(all))),
    ])
}

/// A text for one, a list for several, and nothing for none.
fn one_or_all(texts: &[String]) -> Option<Value> {
    match texts {
        [] => None,
        [one] => Some(json!(one)),
        all => Some(json!(all)),
    }
}

/// Notes types of keys that the fields of entities do not show.
fn lose_types(table: &Table<'_>, entities: &[Entity<'_>], losses: &mut Losses) {
    let mut keys = vec![&table.form.pk];
    keys.extend(&table.form.sk);
    keys.extend(table.form.indexes.iter().flat_map(IndexForm::parts));
    let known: BTreeSet<&str> = entities.iter().flat_map(|it| it.types.keys().map(String::as_str)).collect();
    for name in each_once(keys.iter().filter(|key| key.of == KeyType::B).map(|key| key.name.as_str())) {
        losses.add(BYTES, format!("`{name}` of {}", table.form.name));
    }
    let unknown = keys.iter().filter(|key| key.of == KeyType::N && !known.contains(key.name.as_str()));
    for name in each_once(unknown.map(|key| key.name.as_str())) {
        losses.add(NUMBERS, format!("`{name}` of {}", table.form.name));
    }
}

/// An entity whose key the form has.
struct Entity<'s> {
    of: &'s Definition,
    pk: String,
    sk: Option<String>,
    /// Its keys in indexes, by their names.
    indexes: Vec<(String, [Vec<String>; 2])>,
    /// The types of the fields of keys.
    types: BTreeMap<String, &'static str>,
    attributes: Vec<&'s str>,
    known: &'s ValueTypes,
}

impl<'s> Entity<'s> {
    fn new(table: &Table<'_>, of: &'s Definition, known: &'s ValueTypes, losses: &mut Losses) -> Option<Self> {
        let (pk, sk) = table.key(of);
        let whole = sk.iter().fold(pk.clone(), |pk, sk| format!("{pk} / {sk}"));
        let templates_of = template(&pk).zip(sk.as_deref().map_or(Some(None), |sk| template(sk).map(Some)));
        let Some((pk, sk)) = templates_of else {
            losses.add(KEYS, format!("`{whole}` of {}", of.name));
            return None;
        };
        let mut keys = vec![(vec![table.form.pk.clone()], vec![pk.clone()])];
        keys.extend(table.form.sk.iter().cloned().zip(&sk).map(|(key, sk)| (vec![key], vec![sk.clone()])));
        let mut special = is_special(&of.key.pk) || is_special(&of.key.sk);
        let mut indexes = Vec::new();
        for (index, key) in of.indexes.iter().filter_map(|key| Some((table.index(&key.index)?, key))) {
            let parts = [templates(&index.pk, &key.key.pk), templates(&index.sk, &key.key.sk)];
            let [Some(pk), Some(sk)] = parts else {
                let whole = format!("{} / {}", key.key.pk, key.key.sk).replace("!}", "}");
                losses.add(KEYS, format!("`{whole}` of {} in {}", of.name, index.name));
                continue;
            };
            special |= is_special(&key.key.pk) || is_special(&key.key.sk);
            keys.extend([(index.pk.clone(), pk.clone()), (index.sk.clone(), sk.clone())]);
            indexes.push((index.name.clone(), [pk, sk]));
        }
        if special {
            losses.add(SPECIAL, format!("`{whole}` of {}", of.name));
        }
        let keys: Vec<(KeyAttribute, String)> =
            keys.into_iter().flat_map(|(keys, all)| keys.into_iter().zip(all)).collect();
        Some(Self { of, pk, sk, indexes, types: types(&keys), attributes: table.attributes(of), known })
    }

    /// The fields of its key in the table, or in the index with this name, if it is in it.
    fn key_fields(&self, index: Option<&str>) -> Option<[Vec<&str>; 2]> {
        let (pk, sk): (Vec<&String>, Vec<&String>) = match index {
            None => (vec![&self.pk], self.sk.iter().collect()),
            Some(index) => {
                let (_, [pk, sk]) = self.indexes.iter().find(|(name, _)| name == index)?;
                (pk.iter().collect(), sk.iter().collect())
            }
        };
        Some([pk, sk].map(|parts| parts.into_iter().flat_map(|part| field_names(part)).collect()))
    }

    /// The type of a field. One that the manifest does not show is a text here.
    fn type_of(&self, field: &str) -> &'static str {
        let of_value = || match self.known.get(&self.of.name, field) {
            HeldType::Number => "decimal",
            HeldType::Boolean => "boolean",
            HeldType::Text | HeldType::Unknown => "string",
        };
        self.types.get(field).copied().unwrap_or_else(of_value)
    }

    /// The names of its fields: those of its keys, and its attributes.
    fn fields(&self) -> Vec<&str> {
        each_once(self.types.keys().map(String::as_str).chain(self.attributes.iter().copied()))
    }

    fn object(&self, patterns: &[Value]) -> Value {
        let field =
            |name: &str| json!({ "name": name, "type": self.type_of(name), "required": self.types.contains_key(name) });
        let fields: Vec<Value> = self.fields().into_iter().map(field).collect();
        let mapping = |(name, [pk, sk]): &(String, [Vec<String>; 2])| {
            object([("name", Some(json!(name))), ("pk_template", one_or_all(pk)), ("sk_template", one_or_all(sk))])
        };
        object([
            ("entity_type", Some(json!(self.of.name))),
            ("pk_template", Some(json!(self.pk))),
            ("sk_template", self.sk.as_ref().map(|sk| json!(sk))),
            ("gsi_mappings", Some(self.indexes.iter().map(mapping).collect())),
            ("fields", Some(json!(fields))),
            ("access_patterns", Some(json!(patterns))),
        ])
    }
}

/// The types of the fields of these keys.
fn types(keys: &[(KeyAttribute, String)]) -> BTreeMap<String, &'static str> {
    let mut types = BTreeMap::new();
    for (key, template) in keys {
        for name in field_names(template) {
            let is_whole = is_one_field(template) && !template.contains(':');
            let of = match key.of {
                KeyType::N => "decimal",
                KeyType::S | KeyType::B if is_whole => "string",
                KeyType::S | KeyType::B => {
                    if template.contains(&format!("{{{name}:")) {
                        "integer"
                    } else {
                        ""
                    }
                }
            };
            // A reader takes a key that is one numeric field for a number.
            let known = types.entry(name.to_owned()).or_insert(of);
            if known.is_empty() || of == "string" {
                *known = of;
            }
        }
    }
    types.values_mut().filter(|of| of.is_empty()).for_each(|of| *of = "string");
    types
}

/// The templates of a part of a key, if the form has them.
fn templates(attributes: &[KeyAttribute], of: &Template) -> Option<Vec<String>> {
    match attributes {
        [] => Some(Vec::new()),
        [only] => Some(vec![template(&form(std::slice::from_ref(only), of))?]),
        all => Some(all.iter().map(|key| format!("{{{}}}", key.name)).collect()),
    }
}

/// The template that gives each key the same text as this form; `None` if there is none.
fn template(form: &str) -> Option<String> {
    let mut text = String::new();
    for piece in Template::parse(form).ok()?.pieces() {
        match piece {
            Piece::Literal(literal) => text += literal,
            Piece::Field { name, form } => {
                let is_word = name.chars().all(|it| it.is_alphanumeric() || it == '_');
                let width = match form {
                    Form::Text | Form::Plain | Form::Path | Form::Raw => String::new(),
                    Form::Padded(width) if width.places == 0 => format!(":0{}d", width.digits),
                    _ => return None,
                };
                text += &is_word.then(|| format!("{{{name}{width}}}"))?;
            }
        }
    }
    Some(text)
}

fn is_special(template: &Template) -> bool {
    template.pieces().iter().any(|piece| matches!(piece, Piece::Field { form: Form::Path | Form::Raw, .. }))
}
