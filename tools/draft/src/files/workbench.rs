//! Models of the NoSQL Workbench, of the versions 1.0 and 3.0. Their sample items are the sample.
//!
//! A table has `KeyAttributes` with `PartitionKey` and `SortKey`, each with `AttributeName` and `AttributeType`; its
//! `GlobalSecondaryIndexes` have the same and a `Projection`. Items are in DynamoDB's JSON in `TableData`.
//!
//! A model without items may declare entities: a facet in `TableFacets` has `FacetName`, `NonKeyAttributes`, and any texts
//! as `PartitionKeyAlias` and `SortKeyAlias`. They are forms of keys if one of them in the table has a field, such as
//! `USER#{userId}`, or if each is the name of its attribute, which stands for the value as it is.

use std::collections::BTreeMap;

use keys::{item::Item, tables::KeyAttribute};
use serde::Deserialize as _;
use serde_json::Value;

use super::{FileError, key_type, list, projection, text};
use crate::{
    declared::field_names,
    shape::{Declared, DeclaredKind, Extent, IndexShape, KeyForm, Sample, SampledTable, TableShape, type_named},
};

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
