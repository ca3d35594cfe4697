//! Writes the tables, entities and reads of a manifest in a form that [`tables_of`](super::tables_of) reads.
//!
//! What it keeps true: whatever the file does not contain, or contains in another way, is a [`Loss`]. A draft from the
//! file equals the manifest in everything else. A key is never changed: if the form cannot write it, the entity, or its
//! key in an index, is left out, and so are the reads by this key.
//!
//! *Example*: `schema.json` has no descending numbers. So `SCORE#{MAX-score:6}` of an index leaves the entity out of
//! this index, the loss names the key, and a read of the index becomes a loss too.

mod schema_json;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use derive::{access::Access, catalogue::Catalogue, schema::Schema};
use keys::{
    entity::Definition,
    key_forms::KeyForms,
    tables::{IndexForm, KeyAttribute, TYPE, TableForm},
    template::{
        Piece, Template,
        form::{Casing, Form},
    },
};
use serde_json::{Map, Value, json};
use types::attributes::{StoredType, ValueTypes};

use crate::entities::all_as_they_are;

/// A form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// A model of the NoSQL Workbench, of version 3.0.
    Workbench,
    /// A `schema.json` of the DynamoDB MCP server.
    SchemaJson,
}

/// The file, and what it lacks.
#[derive(Clone, Debug)]
pub struct Export {
    /// The file.
    pub file: Value,
    /// What the manifest has and the file lacks.
    pub losses: Vec<Loss>,
}

/// Parts of one kind of a manifest that a file lacks. It is displayed as a line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    form: ExportForm,
    /// What they are, in the singular.
    pub what: &'static str,
    /// Their names.
    pub names: Vec<String>,
}

/// The file of a manifest. `table` is the name of the table of `[table]`, which the manifest does not contain.
#[must_use]
pub fn export(schema: &Schema, catalogue: &Catalogue, form: ExportForm, table: &str) -> Export {
    let mut losses = Losses { form, all: Vec::new() };
    let tables = tables(schema, table);
    for table in &tables {
        table.lose(&mut losses);
    }
    let counter = schema.entities().filter(|entity| entity.is_own() && entity.id != entity.name);
    counter.for_each(|entity| losses.add(ENTITY_IDS, format!("`{}` of {}", entity.id, entity.name)));
    catalogue.declared().for_each(|derivation| losses.add("derivation", format!("`{}`", derivation.label())));
    let types = ValueTypes::of(schema, catalogue);
    let file = match form {
        ExportForm::Workbench => workbench(&tables, &types, &schema.accesses, &mut losses),
        ExportForm::SchemaJson => schema_json::file(&tables, &types, &schema.accesses, &mut losses),
    };
    Export { file, losses: losses.all }
}

impl Export {
    /// True if the form has the keys of no entity, so that the file has no table.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.get("tables").and_then(Value::as_array).is_some_and(Vec::is_empty)
    }
}

// ---- What both forms lack ----

const TYPES: &str = "attribute that names the entity of an item";
const UNTOLD: &str = "other way to distinguish items";
const TIMES_TO_LIVE: &str = "time to live";
const ESCAPES: &str = "table with unescaped keys";
const ENTITY_IDS: &str = "id of an entity";
const DERIVED: &str = "mark of what is derived";
const ABSENT: &str = "way to keep an entity out of an index of the table's own key";
const CONDITIONS: &str = "condition for being in an index";

struct Losses {
    form: ExportForm,
    all: Vec<Loss>,
}

impl Losses {
    fn add(&mut self, what: &'static str, name: String) {
        match self.all.iter_mut().find(|loss| loss.what == what) {
            Some(loss) => loss.names.push(name),
            None => self.all.push(Loss { form: self.form, what, names: vec![name] }),
        }
    }
}

/// `left out, as schema.json has no time to live: `ttl` of Post`.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            ExportForm::Workbench => "NoSQL Workbench",
            ExportForm::SchemaJson => "schema.json",
        };
        write!(f, "left out, as {form} has no {}: {}", self.what, self.names.join(", "))
    }
}

/// A table and its entities.
struct Table<'s> {
    form: TableForm,
    entities: Vec<&'s Definition>,
}

fn tables<'s>(schema: &'s Schema, table: &str) -> Vec<Table<'s>> {
    let entities = || schema.entities().filter(|entity| !entity.is_own());
    let Some(forms) = &schema.layout.forms else {
        let form = TableForm { name: table.to_owned(), ..schema.layout.own_table() };
        return vec![Table { form, entities: entities().collect() }];
    };
    let in_form = |form: &TableForm| {
        let is_in = |entity: &&Definition| forms.of_entity(entity).is_some_and(|it| it.name == form.name);
        Table { form: form.clone(), entities: entities().filter(is_in).collect() }
    };
    forms.0.iter().map(in_form).collect()
}

impl Table<'_> {
    fn lose(&self, losses: &mut Losses) {
        let name = &self.form.name;
        if let Some(attribute) = self.type_attribute() {
            losses.add(TYPES, format!("`{attribute}` of {name}"));
        }
        if let Some(attribute) = &self.form.time_to_live {
            losses.add(TIMES_TO_LIVE, format!("`{attribute}` of {name}"));
        }
        if self.entities.iter().any(|entity| is_unescaped(entity)) {
            losses.add(ESCAPES, name.clone());
        }
        for index in self.form.indexes.iter().filter(|index| self.is_of_own_key(index)) {
            let others = self.entities.iter().filter(|entity| !self.is_in(entity, index));
            others.for_each(|entity| losses.add(ABSENT, format!("{} in {}", entity.name, index.name)));
        }
        for entity in &self.entities {
            if entity.id != entity.name {
                losses.add(ENTITY_IDS, format!("`{}` of {}", entity.id, entity.name));
            }
            if entity.derived {
                losses.add(DERIVED, entity.name.clone());
            }
            for index in &entity.indexes {
                let name = self.index(&index.index).map_or_else(String::new, |form| form.name.clone());
                if index.only_if.is_some() {
                    losses.add(CONDITIONS, format!("{} in {name}", entity.name));
                }
                if index.derived {
                    losses.add(DERIVED, format!("{} in {name}", entity.name));
                }
            }
            // The attributes of a derived key of an index are derived too, and are declared by the index.
            for attribute in entity.derived_attributes.iter().filter(|name| !self.is_of_form(name)) {
                losses.add(DERIVED, format!("{}.{attribute}", entity.name));
            }
        }
    }

    /// The attribute that names the entity of an item, if the manifest declares one.
    fn type_attribute(&self) -> Option<&str> {
        self.form.type_attribute().filter(|name| *name != TYPE)
    }

    /// The index with this inner name.
    fn index(&self, inside: &str) -> Option<&IndexForm> {
        self.form.indexes.iter().find(|index| self.is_index(inside, index))
    }

    fn is_in(&self, entity: &Definition, index: &IndexForm) -> bool {
        entity.indexes.iter().any(|key| self.is_index(&key.index, index))
    }

    /// True for an index that all items of the table are in, because its key consists of theirs.
    fn is_of_own_key(&self, index: &IndexForm) -> bool {
        index.parts().all(|part| self.form.is_of_key(&part.name))
    }

    fn is_index(&self, inside: &str, index: &IndexForm) -> bool {
        index.name == inside || self.form.inside(&index.name) == inside
    }

    /// True for an attribute with texts of a form, which no entity declares, under its own or its inner name.
    fn is_of_form(&self, attribute: &str) -> bool {
        let is_inner = attribute.strip_prefix(&self.form.name).is_some_and(|rest| rest.starts_with('/'));
        let mut parts = self.form.indexes.iter().flat_map(IndexForm::parts);
        is_inner || parts.any(|part| part.name == attribute && !part.is_plain)
    }

    /// Forms of an entity's key: of the partition key, and of the sort key if the table has one.
    fn key(&self, entity: &Definition) -> (String, Option<String>) {
        let prefix = format!("{}#", self.form.name);
        let pk = form(std::slice::from_ref(&self.form.pk), &entity.key.pk);
        // A table of any form has its name in the inner form of its keys.
        let pk = pk.strip_prefix(&prefix).filter(|_| !self.form.called.is_empty()).map_or(pk.clone(), str::to_owned);
        (pk, self.form.sk.as_ref().map(|sk| form(std::slice::from_ref(sk), &entity.key.sk)))
    }

    /// The attributes of an entity, without those of keys with a form.
    fn attributes<'e>(&self, entity: &'e Definition) -> Vec<&'e str> {
        let all = entity.attributes.iter().chain(&entity.derived_attributes);
        all.filter(|name| !self.is_of_form(name)).map(String::as_str).collect()
    }

    /// The entities whose items a reader recognizes by their keys, without a type attribute. Of two entities with keys of
    /// the same form, it is the first.
    fn distinguishable<'e>(entities: &[&'e Definition], losses: &mut Losses) -> Vec<&'e Definition> {
        let mut forms = KeyForms::default();
        let is_distinguishable = |entity: &&&'e Definition| {
            let other = forms.meeting(&entity.key).next().copied();
            match other {
                Some(other) => losses.add(UNTOLD, format!("{} and {other}", entity.name)),
                None => forms.insert(&entity.key, entity.name.as_str()),
            }
            other.is_none()
        };
        entities.iter().filter(is_distinguishable).copied().collect()
    }
}

/// The form of a part of a key, as a manifest declares it.
fn form(attributes: &[KeyAttribute], template: &Template) -> String {
    match attributes {
        [only] if !only.is_plain => template.to_string().replace("!}", "}"),
        all => all_as_they_are(all),
    }
}

fn is_unescaped(entity: &Definition) -> bool {
    let of_indexes = entity.indexes.iter().map(|index| &index.key);
    let templates = [&entity.key].into_iter().chain(of_indexes).flat_map(|key| [&key.pk, &key.sk]);
    let is_bare = |form: &Form| matches!(form, Form::Plain | Form::Cased(Casing { is_escaped: false, .. }));
    templates.flat_map(Template::pieces).any(|piece| matches!(piece, Piece::Field { form, .. } if is_bare(form)))
}

/// An object of the members that have a value.
fn object<'n>(members: impl IntoIterator<Item = (&'n str, Option<Value>)>) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(members.collect::<Map<_, _>>())
}

/// The names, each once, in their first order.
fn each_once<T: Ord + Copy>(names: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(*name)).collect()
}

// ---- a model of the NoSQL Workbench: an entity is a facet of its table, with the forms of its keys as their aliases ----

/// The time of the model. A file of one manifest is always the same, so it is not that of the export.
const NO_TIME: &str = "Jan 1, 1970, 12:00 AM";

const READS: &str = "read";
const INDEX_FORMS: &str = "form of a key in an index";
const SEVERAL: &str = "index with several attributes in a part of its key";

/// The model of these tables.
fn workbench(tables: &[Table<'_>], types: &ValueTypes, accesses: &[Access], losses: &mut Losses) -> Value {
    for access in accesses {
        losses.add(READS, access.name.clone());
    }
    let models: Vec<Value> = tables.iter().map(|table| model(table, types, losses)).collect();
    json!({
        "ModelName": tables.first().map(|table| &table.form.name),
        "ModelMetadata": {
            "Author": "",
            "DateCreated": NO_TIME,
            "DateLastModified": NO_TIME,
            "Description": "",
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": models,
    })
}

fn model(table: &Table<'_>, types: &ValueTypes, losses: &mut Losses) -> Value {
    let form = &table.form;
    let mut indexes = Vec::new();
    for index in &form.indexes {
        if index.pk.len() > 1 || index.sk.len() > 1 {
            losses.add(SEVERAL, format!("{} of {}", index.name, form.name));
            continue;
        }
        let has_lost_forms = !index.is_plain() && !table.is_of_own_key(index);
        let entities = table.entities.iter().filter(|entity| has_lost_forms && table.is_in(entity, index));
        entities.for_each(|entity| losses.add(INDEX_FORMS, format!("{} in {}", entity.name, index.name)));
        let projection = match &index.projection {
            None => json!({ "ProjectionType": "ALL" }),
            Some(names) if names.is_empty() => json!({ "ProjectionType": "KEYS_ONLY" }),
            Some(names) => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": names }),
        };
        let keys = keys(index.pk.first(), index.sk.first());
        indexes.push(json!({ "IndexName": index.name, "KeyAttributes": keys, "Projection": projection }));
    }
    Table::distinguishable(&table.entities, losses);
    let facets: Vec<Value> = table.entities.iter().map(|entity| facet(table, entity)).collect();
    json!({
        "TableName": form.name,
        "KeyAttributes": keys(Some(&form.pk), form.sk.as_ref()),
        "NonKeyAttributes": attributes(table, types),
        "TableFacets": facets,
        "GlobalSecondaryIndexes": indexes,
        "TableData": [],
        "DataAccess": { "MySql": {} },
        "BillingMode": "PAY_PER_REQUEST",
    })
}

fn facet(table: &Table<'_>, entity: &Definition) -> Value {
    // An alias that is the attribute's name stands for its value as it is.
    let alias = |key: &KeyAttribute, form: String| if key.is_plain { key.name.clone() } else { form };
    let (pk, sk) = table.key(entity);
    let sk = table.form.sk.as_ref().zip(sk).map(|(key, form)| json!(alias(key, form)));
    let aliases = object([("PartitionKeyAlias", Some(json!(alias(&table.form.pk, pk)))), ("SortKeyAlias", sk)]);
    json!({
        "FacetName": entity.name,
        "KeyAttributeAlias": aliases,
        "TableData": [],
        "NonKeyAttributes": table.attributes(entity),
        "DataAccess": { "MySql": {} },
    })
}

fn keys(pk: Option<&KeyAttribute>, sk: Option<&KeyAttribute>) -> Value {
    let of = |key: Option<&KeyAttribute>| key.map(|key| attribute(&key.name, &format!("{:?}", key.of)));
    object([("PartitionKey", of(pk)), ("SortKey", of(sk))])
}

fn attribute(name: &str, of: &str) -> Value {
    json!({ "AttributeName": name, "AttributeType": of })
}

/// The attributes of a table beside its key. Those whose type a manifest does not show are texts here.
fn attributes(table: &Table<'_>, known: &ValueTypes) -> Vec<Value> {
    let form = &table.form;
    let parts = form.indexes.iter().flat_map(IndexForm::parts);
    let mut types: BTreeMap<&str, String> = parts.map(|part| (part.name.as_str(), format!("{:?}", part.of))).collect();
    types.extend(form.time_to_live.as_deref().map(|name| (name, "N".to_owned())));
    let keys: Vec<&str> = types.keys().copied().collect();
    for entity in &table.entities {
        for name in table.attributes(entity) {
            let of = match known.get(&entity.name, name) {
                StoredType::Number => "N",
                StoredType::Boolean => "BOOL",
                StoredType::Text | StoredType::Unknown => continue,
            };
            types.entry(name).or_insert_with(|| of.to_owned());
        }
    }
    let declared = table.entities.iter().flat_map(|entity| table.attributes(entity));
    let all = keys.into_iter().chain(table.type_attribute()).chain(declared);
    let others = each_once(all).into_iter().filter(|name| !form.is_of_key(name));
    others.map(|name| attribute(name, types.get(name).map_or("S", String::as_str))).collect()
}
