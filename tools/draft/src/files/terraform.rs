//! The output of `terraform show -json`, of a state or a plan. It has no items.

use keys::tables::{KeyAttribute, KeyType};
use serde_json::Value;

use super::{FileError, key_type, list, text};
use crate::shape::{IndexShape, SampledTable, TableShape};

/// The tables of the root module and of all modules below it.
pub(super) fn tables(values: &Value) -> Result<Vec<SampledTable>, FileError> {
    let mut tables = Vec::new();
    let mut modules: Vec<&Value> = values.get("root_module").into_iter().collect();
    while let Some(module) = modules.pop() {
        for resource in list(module, "resources").filter(|it| text(it, "type") == Some("aws_dynamodb_table")) {
            let address = text(resource, "address").unwrap_or("aws_dynamodb_table");
            tables.push(table(address, resource.get("values").unwrap_or(&Value::Null))?);
        }
        modules.extend(list(module, "child_modules"));
    }
    Ok(tables)
}

fn table(address: &str, values: &Value) -> Result<SampledTable, FileError> {
    let attribute = |name: &str| {
        let definition = list(values, "attribute").find(|it| text(it, "name") == Some(name));
        let of = definition.map_or(KeyType::S, |it| key_type(text(it, "type")));
        KeyAttribute { name: name.to_owned(), of, is_plain: true }
    };
    let key = |of: &Value, name: &str| text(of, name).filter(|name| !name.is_empty()).map(attribute);
    let none = || FileError::Table(format!("{address} has no hash_key"));
    let index = |index: &Value| {
        let names = || list(index, "non_key_attributes").filter_map(Value::as_str).map(str::to_owned).collect();
        Some(IndexShape {
            name: text(index, "name")?.to_owned(),
            pk: vec![key(index, "hash_key")?],
            sk: key(index, "range_key").into_iter().collect(),
            projection: (text(index, "projection_type") != Some("ALL")).then(names),
        })
    };
    let local = list(values, "local_secondary_index").filter_map(|it| text(it, "name").map(str::to_owned));
    let expiry = list(values, "ttl").find(|it| it.get("enabled") == Some(&Value::Bool(true)));
    let shape = TableShape {
        // A plan does not know a computed name.
        name: text(values, "name").or(address.rsplit('.').next()).unwrap_or(address).to_owned(),
        pk: key(values, "hash_key").ok_or_else(none)?,
        sk: key(values, "range_key"),
        indexes: list(values, "global_secondary_index").filter_map(index).collect(),
        local_indexes: local.collect(),
        time_to_live: expiry.and_then(|it| text(it, "attribute_name")).filter(|it| !it.is_empty()).map(str::to_owned),
        n_items: None,
    };
    Ok(SampledTable::without_items(shape))
}
