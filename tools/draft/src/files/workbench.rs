//! Models of the NoSQL Workbench, of the versions 1.0 and 3.0. Their sample items are the sample.
//!
//! A table has `KeyAttributes` with `PartitionKey` and `SortKey`, each with `AttributeName` and `AttributeType`; its
//! `GlobalSecondaryIndexes` have the same and a `Projection`. Items are in DynamoDB's JSON in `TableData`.

use keys::{item::Item, tables::KeyAttribute};
use serde::Deserialize as _;
use serde_json::Value;

use super::{FileError, key_type, list, projection, text};
use crate::shape::{Extent, IndexShape, Sample, SampledTable, TableShape};

/// The tables of a model.
pub(super) fn tables(models: &[Value]) -> Result<Vec<SampledTable>, FileError> {
    models.iter().map(table).collect()
}

fn table(model: &Value) -> Result<SampledTable, FileError> {
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
        pk,
        sk: key(model, "SortKey"),
        indexes: list(model, "GlobalSecondaryIndexes").filter_map(index).collect(),
        local_indexes: local.collect(),
        time_to_live: None,
        n_items: None,
        name: name.clone(),
    };
    let mut sample = Sample::default();
    for (at, item) in list(model, "TableData").enumerate() {
        let wrong = |error| FileError::Table(format!("the table {name}, TableData[{at}]: {error}"));
        sample.add(&shape, Item::deserialize(item).map_err(wrong)?);
        // The model has no other items.
        sample.extent = Extent::Whole;
    }
    Ok(SampledTable::with_items(shape, sample))
}

fn key(of: &Value, part: &str) -> Option<KeyAttribute> {
    let attribute = of.get("KeyAttributes")?.get(part)?;
    let name = text(attribute, "AttributeName")?.to_owned();
    Some(KeyAttribute { name, of: key_type(text(attribute, "AttributeType")), is_plain: true })
}
