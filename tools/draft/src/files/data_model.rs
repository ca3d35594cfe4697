//! `dynamodb_data_model.json`, in two forms.
//!
//! The DynamoDB MCP server validates one: `tables` with the parameters of `CreateTable`, and sample items as requests of
//! `BatchWriteItem` in `items`. The DynamoDB skill of the AWS agent toolkit calculates costs from the other: `tables` with
//! `table_name`, `key_schema`, `gsis`, and `entities` with attributes but no forms of keys. Both have `access_patterns` of
//! tables, which name no entity.

use keys::{
    item::Item,
    tables::{KeyAttribute, KeyType},
};
use serde::Deserialize as _;
use serde_json::Value;

use super::{FileError, cloudformation, key_type, list, required, text, texts};
use crate::shape::{Declared, DeclaredKind, Extent, IndexShape, Sample, SampledTable, TableShape, type_named};

/// The tables of a data model.
pub(super) fn tables(file: &Value, tables: &[Value]) -> Result<Vec<SampledTable>, FileError> {
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
    let mut found = cloudformation::table(name, table)?;
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
        KeyAttribute { name: name.to_owned(), of, is_plain: true }
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
    let name = name.to_owned();
    let shape = TableShape { name, pk, sk, indexes, local_indexes: Vec::new(), time_to_live: None, n_items: None };
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
