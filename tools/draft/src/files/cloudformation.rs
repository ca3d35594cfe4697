//! Resources of CloudFormation, SAM and CDK templates, and of a `serverless.yml`. They have no items.

use keys::tables::{KeyAttribute, KeyType};
use serde_json::{Map, Value};

use super::{FileError, key_type, list, projection, text};
use crate::shape::{IndexShape, SampledTable, TableShape};

/// The tables among the resources. A name that the template computes, such as by `!Sub`, is replaced by the logical id.
pub(super) fn tables(resources: &Map<String, Value>) -> Result<Vec<SampledTable>, FileError> {
    let mut tables = Vec::new();
    for (id, resource) in resources {
        let properties = resource.get("Properties").unwrap_or(&Value::Null);
        match text(resource, "Type") {
            Some("AWS::DynamoDB::Table" | "AWS::DynamoDB::GlobalTable") => tables.push(table(id, properties)?),
            Some("AWS::Serverless::SimpleTable") => tables.push(simple(id, properties)),
            _ => {}
        }
    }
    Ok(tables)
}

/// The table with these properties, which are also the parameters of `CreateTable`.
pub(super) fn table(id: &str, properties: &Value) -> Result<SampledTable, FileError> {
    let key = |of: &Value, part: &str| {
        let elements = list(of, "KeySchema").filter(|it| text(it, "KeyType") == Some(part));
        let attribute = |element: &Value| {
            let name = text(element, "AttributeName")?;
            let mut definitions = list(properties, "AttributeDefinitions");
            let definition = definitions.find(|it| text(it, "AttributeName") == Some(name));
            let of = key_type(definition.and_then(|it| text(it, "AttributeType")));
            Some(KeyAttribute { name: name.to_owned(), of, is_plain: true })
        };
        elements.filter_map(attribute).collect::<Vec<_>>()
    };
    let none = || FileError::Table(format!("{id} has no KeySchema with the KeyType HASH"));
    let pk = key(properties, "HASH").into_iter().next().ok_or_else(none)?;
    let index = |index: &Value| {
        let (name, pk) = (text(index, "IndexName")?.to_owned(), key(index, "HASH"));
        (!pk.is_empty()).then(|| IndexShape { name, pk, sk: key(index, "RANGE"), projection: projection(index) })
    };
    let local = list(properties, "LocalSecondaryIndexes").filter_map(|it| text(it, "IndexName").map(str::to_owned));
    let expiry = properties.get("TimeToLiveSpecification").filter(|it| it.get("Enabled") != Some(&Value::Bool(false)));
    let shape = TableShape {
        name: name(id, properties),
        pk,
        sk: key(properties, "RANGE").into_iter().next(),
        indexes: list(properties, "GlobalSecondaryIndexes").filter_map(index).collect(),
        local_indexes: local.collect(),
        time_to_live: expiry.and_then(|it| text(it, "AttributeName")).map(str::to_owned),
        n_items: None,
    };
    Ok(SampledTable::without_items(shape))
}

/// SAM's short form: a table with a partition key, which is `id` of type S if there is none.
fn simple(id: &str, properties: &Value) -> SampledTable {
    let key = properties.get("PrimaryKey");
    let of = match key.and_then(|key| text(key, "Type")) {
        Some("Number") => KeyType::N,
        Some("Binary") => KeyType::B,
        _ => KeyType::S,
    };
    let shape = TableShape {
        name: name(id, properties),
        pk: KeyAttribute { name: key.and_then(|key| text(key, "Name")).unwrap_or("id").to_owned(), of, is_plain: true },
        sk: None,
        indexes: Vec::new(),
        local_indexes: Vec::new(),
        time_to_live: None,
        n_items: None,
    };
    SampledTable::without_items(shape)
}

/// The declared name if it is plain text, or else the logical id.
fn name(id: &str, properties: &Value) -> String {
    let is_plain = |name: &&str| name.chars().all(|it| it.is_ascii_alphanumeric() || "_.-".contains(it));
    text(properties, "TableName").filter(is_plain).unwrap_or(id).to_owned()
}
