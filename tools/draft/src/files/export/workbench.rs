//! A model of the NoSQL Workbench. An entity is a facet of its table, with the forms of its keys as their aliases.

use std::collections::BTreeMap;

use derive::access::Access;
use keys::{
    entity::Definition,
    tables::{IndexForm, KeyAttribute},
};
use serde_json::{Value, json};
use types::attributes::{HeldType, ValueTypes};

use super::{Losses, Table, each_once, object};

/// The time of the model. A file of one manifest is always the same, so it is not that of the export.
const NO_TIME: &str = "Jan 1, 1970, 12:00 AM";

const READS: &str = "read";
const INDEX_FORMS: &str = "form of a key in an index";
const SEVERAL: &str = "index with several attributes in a part of its key";

/// The model of these tables.
pub(super) fn file(tables: &[Table<'_>], types: &ValueTypes, accesses: &[Access], losses: &mut Losses) -> Value {
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
                HeldType::Number => "N",
                HeldType::Boolean => "BOOL",
                HeldType::Text | HeldType::Unknown => continue,
            };
            types.entry(name).or_insert_with(|| of.to_owned());
        }
    }
    let declared = table.entities.iter().flat_map(|entity| table.attributes(entity));
    let all = keys.into_iter().chain(table.type_attribute()).chain(declared);
    let others = each_once(all).into_iter().filter(|name| !form.is_of_key(name));
    others.map(|name| attribute(name, types.get(name).map_or("S", String::as_str))).collect()
}
