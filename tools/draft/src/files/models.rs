//! Models of data: of the NoSQL Workbench, of the DynamoDB MCP server, and of `OneTable`.

use std::collections::BTreeMap;

use keys::{
    item::Item,
    tables::{KeyAttribute, KeyType},
};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{FileError, form, key_type, list, projection, required, text, texts};
use crate::{
    entities::field_names,
    files,
    shape::{Declared, DeclaredKind, Extent, IndexShape, KeyForm, Sample, SampledTable, TableShape, type_named},
};

// ---- models of the NoSQL Workbench ----
//
// Of the versions 1.0 and 3.0. Their sample items are the sample.
//
// A table has `KeyAttributes` with `PartitionKey` and `SortKey`, each with `AttributeName` and `AttributeType`; its
// `GlobalSecondaryIndexes` have the same and a `Projection`. Items are in DynamoDB's JSON in `TableData`.
//
// A model without items may declare entities: a facet in `TableFacets` has `FacetName`, `NonKeyAttributes`, and any texts
// as `PartitionKeyAlias` and `SortKeyAlias`. They are forms of keys if one of them in the table has a field, such as
// `USER#{userId}`, or if each is the name of its attribute, which stands for the value as it is.

/// The tables of a model.
pub(super) fn workbench(models: &[Value]) -> Result<Vec<SampledTable>, FileError> {
    models.iter().map(workbench_table).collect()
}

fn workbench_table(model: &Value) -> Result<SampledTable, FileError> {
    let name = text(model, "TableName").unwrap_or("unnamed").to_owned();
    let none = || FileError::Table(format!("the table {name} has no KeyAttributes.PartitionKey"));
    let pk = key(model, "PartitionKey").ok_or_else(none)?;
    let index = |index: &Value| {
        Some(IndexShape {
            name: text(index, "IndexName")?.to_owned(),
            pk: vec![key(index, "PartitionKey")?],
            sk: key(index, "SortKey").into_iter().collect(),
            projection: projection(index),
        })
    };
    let local = list(model, "LocalSecondaryIndexes").filter_map(|it| text(it, "IndexName").map(str::to_owned));
    let shape = TableShape {
        indexes: list(model, "GlobalSecondaryIndexes").filter_map(index).collect(),
        local_indexes: local.collect(),
        ..TableShape::of(&name, pk, key(model, "SortKey"))
    };
    let mut sample = Sample::default();
    for (at, item) in list(model, "TableData").enumerate() {
        let wrong = |error| FileError::Table(format!("the table {name}, TableData[{at}]: {error}"));
        sample.add(&shape, Item::deserialize(item).map_err(wrong)?);
        // The model has no other items.
        sample.extent = Extent::Whole;
    }
    let declared = if sample.items.is_empty() { facets(model, &shape) } else { None };
    Ok(SampledTable { declared, ..SampledTable::with_items(shape, sample) })
}

/// The entities that the facets of a table declare; `None` if their aliases are other texts.
fn facets(model: &Value, shape: &TableShape) -> Option<Declared> {
    let types: BTreeMap<&str, &'static str> = list(model, "NonKeyAttributes")
        .filter_map(|it| Some((text(it, "AttributeName")?, type_named(text(it, "AttributeType")))))
        .collect();
    let mut kinds = Vec::new();
    for facet in list(model, "TableFacets") {
        let form = |key: &KeyAttribute, alias: &str| -> Option<KeyForm> {
            let alias = text(facet.get("KeyAttributeAlias")?, alias)?;
            Some((alias != key.name).then(|| alias.to_owned()))
        };
        let names = list(facet, "NonKeyAttributes").filter_map(Value::as_str);
        let attributes = names.map(|name| (name.to_owned(), types.get(name).copied().unwrap_or("S"))).collect();
        let pk = form(&shape.pk, "PartitionKeyAlias")?;
        let sk = shape.sk.as_ref().map_or(Some(None), |sk| form(sk, "SortKeyAlias"))?;
        let name = text(facet, "FacetName").filter(|name| !name.is_empty())?.to_owned();
        kinds.push(DeclaredKind { name, pk, sk, attributes, ..DeclaredKind::default() });
    }
    let forms = || kinds.iter().flat_map(|kind| [&kind.pk, &kind.sk]).flatten();
    let are_forms = forms().next().is_none() || forms().any(|form| field_names(form).next().is_some());
    (are_forms && !kinds.is_empty()).then_some(Declared { type_attribute: None, kinds })
}

fn key(of: &Value, part: &str) -> Option<KeyAttribute> {
    let attribute = of.get("KeyAttributes")?.get(part)?;
    let name = text(attribute, "AttributeName")?.to_owned();
    Some(KeyAttribute { name, of: key_type(text(attribute, "AttributeType")), is_plain: true })
}

// ---- dynamodb_data_model.json, in two forms ----
//
// The DynamoDB MCP server validates one: `tables` with the parameters of `CreateTable`, and sample items as requests of
// `BatchWriteItem` in `items`. The DynamoDB skill of the AWS agent toolkit calculates costs from the other: `tables` with
// `table_name`, `key_schema`, `gsis`, and `entities` with attributes but no forms of keys. Both have `access_patterns` of
// tables, which name no entity.

/// The tables of a data model.
pub(super) fn data_model(file: &Value, tables: &[Value]) -> Result<Vec<SampledTable>, FileError> {
    let mut found = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        let path = format!("tables[{at}]");
        let is_request = ["TableName", "KeySchema"].iter().any(|name| table.get(name).is_some());
        let mut table = if is_request { created(file, table, &path)? } else { described(table, &path)? };
        let name = &table.shape.name;
        let patterns = list(file, "access_patterns").filter(|it| text(it, "table") == Some(name)).map(pattern);
        let patterns: String = patterns.collect();
        if !patterns.is_empty() {
            table.notes.push(format!("The file names no entity for its access patterns:{patterns}"));
        }
        found.push(table);
    }
    Ok(found)
}

/// A line for an access pattern.
fn pattern(of: &Value) -> String {
    let id = ["pattern", "pattern_id"].iter().find_map(|name| text(of, name)).unwrap_or("-");
    let operation =
        ["dynamodb_operation", "operation"].iter().find_map(|name| text(of, name)).unwrap_or("no operation");
    let index = text(of, "index").map(|index| format!(" of {index}")).unwrap_or_default();
    format!("\n{id}: {operation}{index}: {}", text(of, "description").unwrap_or_default().replace('\n', " "))
}

/// A table as it is created, with its items.
fn created(file: &Value, table: &Value, path: &str) -> Result<SampledTable, FileError> {
    let name = required(table, path, "TableName")?;
    let mut found = files::cloudformation_table(name, table)?;
    let mut sample = Sample::default();
    for (at, request) in file.get("items").iter().flat_map(|items| list(items, name)).enumerate() {
        let path = format!("items.{name}[{at}]");
        let item = request.get("PutRequest").and_then(|put| put.get("Item"));
        let item = item.ok_or_else(|| FileError::Table(format!("{path} has no PutRequest.Item")))?;
        let wrong = |error| FileError::Table(format!("{path}: {error}"));
        sample.add(&found.shape, Item::deserialize(item).map_err(wrong)?);
        // The model has no other items.
        sample.extent = Extent::Whole;
    }
    found.sample = sample;
    Ok(found)
}

/// A table as the skill describes it.
fn described(table: &Value, path: &str) -> Result<SampledTable, FileError> {
    let name = required(table, path, "table_name")?;
    let schema = table.get("key_schema").unwrap_or(&Value::Null);
    let schema_path = format!("{path}.key_schema");
    let mut kinds = Vec::new();
    for (at, entity) in list(table, "entities").enumerate() {
        let path = format!("{path}.entities[{at}]");
        let mut kind = DeclaredKind { name: required(entity, &path, "entity_name")?.to_owned(), ..Default::default() };
        for (at, attribute) in list(entity, "attributes").enumerate() {
            let name = required(attribute, &format!("{path}.attributes[{at}]"), "name")?;
            kind.attributes.push((name.to_owned(), type_named(text(attribute, "type"))));
        }
        kinds.push(kind);
    }
    let key = |name: &str| {
        let is_it = |it: &&Value| text(it, "attribute_name").or(text(it, "name")) == Some(name);
        let of_table = list(table, "attribute_definitions").find(is_it);
        let of_table = of_table.map(|it| key_type(text(it, "attribute_type").or(text(it, "type"))));
        let mut of_kinds = kinds.iter().flat_map(|kind| &kind.attributes);
        let of_kinds = || of_kinds.find(|(attribute, _)| attribute == name).map(|(_, of)| key_type(Some(of)));
        let of = of_table.or_else(of_kinds).unwrap_or(KeyType::S);
        KeyAttribute::plain(name, of)
    };
    let pk = key(required(schema, &schema_path, "partition_key")?);
    let sk = texts(schema, &schema_path, "sort_key")?.first().map(|name| key(name));
    let mut indexes = Vec::new();
    for (at, index) in list(table, "gsis").enumerate() {
        let path = format!("{path}.gsis[{at}]");
        let projection = index.get("projection").unwrap_or(&Value::Null);
        let is_all = text(projection, "type").is_none_or(|of| of == "ALL");
        let projected = texts(projection, &format!("{path}.projection"), "attributes")?;
        indexes.push(IndexShape {
            name: required(index, &path, "index_name")?.to_owned(),
            pk: vec![key(required(index, &path, "partition_key")?)],
            sk: texts(index, &path, "sort_key")?.iter().map(|name| key(name)).collect(),
            projection: (!is_all).then_some(projected),
        });
    }
    let shape = TableShape { indexes, ..TableShape::of(name, pk, sk) };
    let mut found = SampledTable::without_items(shape);
    if kinds.len() > 1 {
        let listed = kinds.iter().map(|kind| {
            let names = kind.attributes.iter().map(|(name, of)| format!("{name} {of}"));
            format!("\n{}: {}", kind.name, names.collect::<Vec<_>>().join(", "))
        });
        let listed: String = listed.collect();
        let why =
            "Several entities are in this table, and the file does not say the forms of their keys. Declare them:";
        found.notes.push(format!("{why}{listed}"));
        kinds.clear();
    }
    found.declared = Some(Declared { type_attribute: None, kinds });
    Ok(found)
}

// ---- a schema of OneTable as JSON, which has no items ----
//
// `indexes` names the attributes of the keys, as `hash` and `sort`, and `models` has the properties of each entity. A
// property with a `value`, as in `account#${id}`, is a key or another text that is built from properties; `map` names
// the attribute that stores it. Each item has the name of its model in `_type`, or what `params.typeField` names.

/// Its table. The schema does not name it.
pub(super) fn onetable(file: &Value, models: &Map<String, Value>) -> Result<SampledTable, FileError> {
    let params = file.get("params").unwrap_or(&Value::Null);
    let type_field = text(params, "typeField").unwrap_or("_type");
    let mut all = Vec::new();
    for (name, model) in models {
        let none = || FileError::Table(format!("models.{name} is not an object"));
        all.push(Model { name, properties: model.as_object().ok_or_else(none)?, params, type_field });
    }
    if all.is_empty() {
        return Err(FileError::Table("models has no entity".to_owned()));
    }
    let key = |name: &str| {
        let is_number = |model: &Model<'_>| model.stored_as(name).is_some_and(|(_, of)| model.type_of(of) == "N");
        let of = if all.iter().any(is_number) { KeyType::N } else { KeyType::S };
        KeyAttribute::plain(name, of)
    };
    let indexes = file.get("indexes").unwrap_or(&Value::Null);
    let primary = indexes.get("primary").unwrap_or(&Value::Null);
    let pk = required(primary, "indexes.primary", "hash")?;
    let name = text(file, "name").unwrap_or("TABLE");
    let mut shape = TableShape::of(name, key(pk), text(primary, "sort").map(key));
    shape.time_to_live = all.iter().find_map(Model::time_to_live);
    for (name, index) in indexes.as_object().into_iter().flatten().filter(|(name, _)| *name != "primary") {
        let path = format!("indexes.{name}");
        if index.get("hash").is_none() || text(index, "type") == Some("local") {
            shape.local_indexes.push(name.clone());
            continue;
        }
        let keys = [Some(required(index, &path, "hash")?), text(index, "sort")];
        let mut projected = texts(index, &path, "project")?;
        projected.retain(|it| !shape.is_own_key(it) && !keys.contains(&Some(it)));
        let projection = match text(index, "project") {
            Some("keys") => Some(Vec::new()),
            _ => index.get("project").filter(|it| it.is_array()).map(|_| projected),
        };
        let [pk, sk] = keys.map(|it| it.map(key).into_iter().collect());
        shape.indexes.push(IndexShape { name: name.clone(), pk, sk, projection });
    }
    let mut found = SampledTable::without_items(shape);
    let kinds = all.iter().map(|model| model.kind(&found.shape)).collect();
    if all.iter().any(Model::has_unique) {
        let note = "OneTable keeps an item of its own for each value that is `unique`. Ripple ignores it.";
        found.notes.push(note.to_owned());
    }
    found.declared = Some(Declared { type_attribute: Some(type_field.to_owned()), kinds });
    Ok(found)
}

/// A model of the schema.
struct Model<'v> {
    name: &'v str,
    properties: &'v Map<String, Value>,
    params: &'v Value,
    type_field: &'v str,
}

/// True if the option is set, as in `"ttl": true`.
fn is_set(property: &Value, option: &str) -> bool {
    property.get(option).is_some_and(|it| *it != Value::Bool(false) && !it.is_null())
}

/// The attribute that stores a property.
fn attribute_of<'v>(name: &'v str, property: &'v Value) -> &'v str {
    text(property, "map").map_or(name, |map| map.split('.').next().unwrap_or(map))
}

impl<'v> Model<'v> {
    /// The property that is stored in this attribute.
    fn stored_as(&self, attribute: &str) -> Option<(&'v str, &'v Value)> {
        let mut all = self.properties.iter().map(|(name, property)| (name.as_str(), property));
        all.find(|(name, property)| attribute_of(name, property) == attribute)
    }

    fn time_to_live(&self) -> Option<String> {
        let found = self.properties.iter().find(|(_, property)| is_set(property, "ttl"));
        found.map(|(name, property)| attribute_of(name, property).to_owned())
    }

    fn has_unique(&self) -> bool {
        self.properties.values().any(|property| is_set(property, "unique"))
    }

    /// The type of a property's attribute, as DynamoDB names it.
    fn type_of(&self, property: &Value) -> &'static str {
        match text(property, "type").unwrap_or("string").to_lowercase().as_str() {
            "number" => "N",
            "date" if is_set(property, "ttl") || !is_set(self.params, "isoDates") => "N",
            "boolean" => "BOOL",
            "array" | "typed-array" => "L",
            "object" => "M",
            "set" => "SS",
            "binary" | "buffer" | "arraybuffer" => "B",
            _ => "S",
        }
    }

    /// The form of a key attribute; `None` if the model has no template for it.
    fn form(&self, attribute: &str) -> KeyForm {
        let (_, property) = self.stored_as(attribute)?;
        let field = |name: &str, width: Option<&str>| {
            if name == self.type_field {
                return self.name.to_owned();
            }
            // A part of an attribute has no name of its own, so it keeps the property's.
            let of = self.properties.get(name).filter(|of| text(of, "map").is_none_or(|map| !map.contains('.')));
            let name = of.map_or(name, |of| attribute_of(name, of));
            let width = width.map(|width| format!(":{}", width.strip_suffix(":0").unwrap_or(width)));
            format!("{{{name}{}}}", width.unwrap_or_default())
        };
        text(property, "value").map(|template| form(template, "${", field))
    }

    fn kind(&self, shape: &TableShape) -> DeclaredKind {
        let is_stored = |(name, of): &(&String, &Value)| !shape.is_key(attribute_of(name, of)) && !is_set(of, "encode");
        let attributes = self.properties.iter().filter(is_stored).map(|(name, of)| {
            let is_part = text(of, "map").is_some_and(|map| map.contains('.'));
            (attribute_of(name, of).to_owned(), if is_part { "M" } else { self.type_of(of) })
        });
        let times = [("create", "createdField", "created"), ("update", "updatedField", "updated")];
        let timestamps = self.params.get("timestamps");
        let is_on = |of: &str| timestamps.is_some_and(|on| *on == Value::Bool(true) || on.as_str() == Some(of));
        let times = times.into_iter().filter(|(of, ..)| is_on(of)).map(|(_, option, name)| {
            let of = if is_set(self.params, "isoDates") { "S" } else { "N" };
            (text(self.params, option).unwrap_or(name).to_owned(), of)
        });
        // An attribute of an index key that has no template is stored as it is.
        let plain = shape.indexes.iter().flat_map(|index| index.pk.iter().chain(&index.sk));
        let plain = plain.filter_map(|key| {
            let (_, of) = self.stored_as(&key.name).filter(|(_, of)| text(of, "value").is_none())?;
            Some((key.name.clone(), self.type_of(of)))
        });
        let indexes = shape.indexes.iter().filter_map(|index| {
            let has = |key: &KeyAttribute| self.stored_as(&key.name).is_some();
            index.pk.iter().chain(&index.sk).all(has).then(|| {
                let forms = |keys: &[KeyAttribute]| keys.iter().map(|key| self.form(&key.name)).collect();
                (index.name.clone(), [forms(&index.pk), forms(&index.sk)])
            })
        });
        DeclaredKind {
            name: self.name.to_owned(),
            pk: self.form(&shape.pk.name),
            sk: shape.sk.as_ref().and_then(|sk| self.form(&sk.name)),
            attributes: attributes.chain(times).chain(plain).collect(),
            indexes: indexes.collect(),
            patterns: Vec::new(),
        }
    }
}
