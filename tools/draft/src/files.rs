//! Reads descriptions of tables from files, each told apart by its shape.
//!
//! | file | where the tables are |
//! |---|---|
//! | NoSQL Workbench model | `DataModel`, with items in `TableData` |
//! | CloudFormation, SAM, `cdk.out/*.template.json` | `Resources` of the types `AWS::DynamoDB::Table` and `GlobalTable` |
//! | `serverless.yml` | the same below `resources.Resources` |
//! | `terraform show -json` | resources of the type `aws_dynamodb_table`, in all modules |
//! | `schema.json` of the DynamoDB MCP server | `tables`, each with a `table_config` and its entities |
//! | `dynamodb_data_model.json` | `tables` in one of two forms, with items or with entities |
//! | OneTable schema | `models` and `indexes` |
//! | GraphQL schema of Amplify | types with `@model` |

mod amplify;
pub mod export;
mod graphql;
mod models;
mod schema_json;

use std::collections::BTreeSet;

use keys::tables::{KeyAttribute, KeyType};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Number, Value};

use crate::shape::{IndexShape, SampledTable, TableShape};

/// Tables that a file describes.
#[derive(Clone, Debug)]
pub struct FoundTables {
    /// What the file is.
    pub kind: &'static str,
    /// Its tables, each with the items in the file.
    pub tables: Vec<SampledTable>,
}

/// Why a file describes no tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is neither JSON nor YAML.
    #[error("not JSON and not YAML: {0}")]
    Syntax(String),
    /// It has none of the known shapes.
    #[error(
        "no known shape: give a NoSQL Workbench model (with DataModel), a CloudFormation, SAM or cdk.out template (with \
         Resources), a serverless.yml (with resources), the output of `terraform show -json` (with values or \
         planned_values), a schema.json or dynamodb_data_model.json (with tables), a OneTable schema (with models and \
         indexes), or a schema.graphql (with @model)"
    )]
    Unknown,
    /// It is of this kind, and has no table.
    #[error("this {0} declares no DynamoDB table")]
    NoTable(&'static str),
    /// A table lacks something, or has something of another type.
    #[error("{0}")]
    Table(String),
}

/// The tables that a file's text describes.
///
/// # Errors
///
/// [`FileError`], which names the known shapes if this is none of them.
pub fn tables_of(text: &str) -> Result<FoundTables, FileError> {
    if graphql::is_schema(text) {
        let tables = amplify::tables(&graphql::parse(text)?)?;
        return found("GraphQL schema of Amplify", tables);
    }
    let file = parsed(text)?;
    let at = |path: &[&str]| path.iter().try_fold(&file, |value, name| value.get(name));
    let (kind, tables) = if let Some(models) = at(&["DataModel"]).and_then(Value::as_array) {
        ("NoSQL Workbench model", models::workbench(models)?)
    } else if let Some(resources) = at(&["Resources"]).and_then(Value::as_object) {
        ("CloudFormation template", cloudformation(resources)?)
    } else if let Some(resources) = at(&["resources", "Resources"]).and_then(Value::as_object) {
        ("serverless.yml", cloudformation(resources)?)
    } else if let Some(values) = at(&["values"]).or_else(|| at(&["planned_values"])).filter(|it| it.is_object()) {
        ("terraform JSON", terraform(values)?)
    } else if let Some(tables) = at(&["tables"]).and_then(Value::as_array) {
        if tables.iter().any(|table| table.get("table_config").is_some()) {
            ("schema.json of the DynamoDB MCP server", schema_json::tables(&file, tables)?)
        } else {
            ("DynamoDB data model", models::data_model(&file, tables)?)
        }
    } else if let (Some(models), Some(_)) = (at(&["models"]).and_then(Value::as_object), at(&["indexes"])) {
        ("OneTable schema", vec![models::onetable(&file, models)?])
    } else if at(&["service"]).is_some() && at(&["provider"]).is_some() {
        return Err(FileError::NoTable("serverless.yml"));
    } else {
        return Err(FileError::Unknown);
    };
    found(kind, tables)
}

fn found(kind: &'static str, mut tables: Vec<SampledTable>) -> Result<FoundTables, FileError> {
    // Two stages of one table may have one name, and a manifest declares a name once.
    let mut names = BTreeSet::new();
    tables.retain(|table| names.insert(table.shape.name.clone()));
    if tables.is_empty() { Err(FileError::NoTable(kind)) } else { Ok(FoundTables { kind, tables }) }
}

fn parsed(text: &str) -> Result<Value, FileError> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| FileError::Syntax(error.to_string()));
    }
    let documents = Yaml::load_from_str(text).map_err(|error| FileError::Syntax(error.to_string()))?;
    Ok(documents.first().map_or(Value::Null, json))
}

/// YAML as JSON. A short tag, such as `!Ref Name`, becomes an object with the tag as its only name.
fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(truth)) => Value::Bool(*truth),
        Yaml::Value(Scalar::Integer(number)) => Value::Number((*number).into()),
        Yaml::Value(Scalar::FloatingPoint(number)) => {
            Number::from_f64(number.into_inner()).map_or(Value::Null, Value::Number)
        }
        Yaml::Sequence(all) => all.iter().map(json).collect(),
        Yaml::Mapping(pairs) => {
            let pairs = pairs.iter().filter_map(|(name, value)| Some((name.as_str()?.to_owned(), json(value))));
            Value::Object(pairs.collect())
        }
        Yaml::Tagged(tag, value) => Value::Object(Map::from_iter([(format!("!{}", tag.suffix), json(value))])),
        Yaml::Value(Scalar::String(text)) | Yaml::Representation(text, ..) => Value::String(text.to_string()),
        Yaml::Value(Scalar::Null) | Yaml::Alias(_) | Yaml::BadValue => Value::Null,
    }
}

// ---- Parts that several shapes have ----

/// The text at a name.
fn text<'v>(of: &'v Value, name: &str) -> Option<&'v str> {
    of.get(name).and_then(Value::as_str)
}

/// The text at a name, which the part of the file at this path has to have.
fn required<'v>(of: &'v Value, path: &str, name: &str) -> Result<&'v str, FileError> {
    match of.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        Some(_) => Err(FileError::Table(format!("{path}.{name} is not a text, or is empty"))),
        None => Err(FileError::Table(format!("{path} has no {name}"))),
    }
}

/// A text at a name, or a list of texts; empty if there is none.
fn texts(of: &Value, path: &str, name: &str) -> Result<Vec<String>, FileError> {
    let all = match of.get(name) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(all)) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        Some(one) => one.as_str().map(|text| vec![text.to_owned()]),
    };
    all.ok_or_else(|| FileError::Table(format!("{path}.{name} is neither a text nor a list of texts")))
}

/// A template such as `USER#{id}` as the form of a key in a manifest. `open` begins a field, and `field` writes one from
/// its name and from what follows a colon.
fn form(template: &str, open: &str, field: impl Fn(&str, Option<&str>) -> String) -> String {
    let (mut form, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once(open) {
        let Some((inside, next)) = after.split_once('}') else { break };
        let (name, width) = inside.split_once(':').map_or((inside, None), |(name, width)| (name, Some(width)));
        form += before;
        form += &field(name, width);
        rest = next;
    }
    form + rest
}

/// The list at a name; empty if there is none.
fn list<'v>(of: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The type that `S`, `N` or `B` names.
fn key_type(name: Option<&str>) -> KeyType {
    match name {
        Some("N") => KeyType::N,
        Some("B") => KeyType::B,
        _ => KeyType::S,
    }
}

/// Attributes that an index projects besides keys; `None` for all.
fn projection(index: &Value) -> Option<Vec<String>> {
    let projection = index.get("Projection").filter(|it| text(it, "ProjectionType") != Some("ALL"))?;
    Some(list(projection, "NonKeyAttributes").filter_map(Value::as_str).map(str::to_owned).collect())
}

// ---- CloudFormation, SAM and CDK templates, and serverless.yml, which have no items ----

/// The tables among the resources. A name that the template computes, such as by `!Sub`, is replaced by the logical id.
fn cloudformation(resources: &Map<String, Value>) -> Result<Vec<SampledTable>, FileError> {
    let mut tables = Vec::new();
    for (id, resource) in resources {
        let properties = resource.get("Properties").unwrap_or(&Value::Null);
        match text(resource, "Type") {
            Some("AWS::DynamoDB::Table" | "AWS::DynamoDB::GlobalTable") => {
                tables.push(cloudformation_table(id, properties)?);
            }
            Some("AWS::Serverless::SimpleTable") => tables.push(simple(id, properties)),
            _ => {}
        }
    }
    Ok(tables)
}

/// The table with these properties, which are also the parameters of `CreateTable`.
fn cloudformation_table(id: &str, properties: &Value) -> Result<SampledTable, FileError> {
    let key = |of: &Value, part: &str| {
        let elements = list(of, "KeySchema").filter(|it| text(it, "KeyType") == Some(part));
        let attribute = |element: &Value| {
            let name = text(element, "AttributeName")?;
            let mut definitions = list(properties, "AttributeDefinitions");
            let definition = definitions.find(|it| text(it, "AttributeName") == Some(name));
            let of = key_type(definition.and_then(|it| text(it, "AttributeType")));
            Some(KeyAttribute::plain(name, of))
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
        indexes: list(properties, "GlobalSecondaryIndexes").filter_map(index).collect(),
        local_indexes: local.collect(),
        time_to_live: expiry.and_then(|it| text(it, "AttributeName")).map(str::to_owned),
        ..TableShape::of(name(id, properties), pk, key(properties, "RANGE").into_iter().next())
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
    let pk = KeyAttribute::plain(key.and_then(|key| text(key, "Name")).unwrap_or("id"), of);
    SampledTable::without_items(TableShape::of(name(id, properties), pk, None))
}

/// The declared name if it is plain text, or else the logical id.
fn name<'v>(id: &'v str, properties: &'v Value) -> &'v str {
    let is_plain = |name: &&str| name.chars().all(|it| it.is_ascii_alphanumeric() || "_.-".contains(it));
    text(properties, "TableName").filter(is_plain).unwrap_or(id)
}

// ---- the output of terraform show -json, of a state or a plan, which has no items ----

/// The tables of the root module and of all modules below it.
fn terraform(values: &Value) -> Result<Vec<SampledTable>, FileError> {
    let mut tables = Vec::new();
    let mut modules: Vec<&Value> = values.get("root_module").into_iter().collect();
    while let Some(module) = modules.pop() {
        for resource in list(module, "resources").filter(|it| text(it, "type") == Some("aws_dynamodb_table")) {
            let address = text(resource, "address").unwrap_or("aws_dynamodb_table");
            tables.push(terraform_table(address, resource.get("values").unwrap_or(&Value::Null))?);
        }
        modules.extend(list(module, "child_modules"));
    }
    Ok(tables)
}

fn terraform_table(address: &str, values: &Value) -> Result<SampledTable, FileError> {
    let attribute = |name: &str| {
        let definition = list(values, "attribute").find(|it| text(it, "name") == Some(name));
        let of = definition.map_or(KeyType::S, |it| key_type(text(it, "type")));
        KeyAttribute::plain(name, of)
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
    // A plan does not know a computed name.
    let name = text(values, "name").or(address.rsplit('.').next()).unwrap_or(address);
    let shape = TableShape {
        indexes: list(values, "global_secondary_index").filter_map(index).collect(),
        local_indexes: local.collect(),
        time_to_live: expiry.and_then(|it| text(it, "attribute_name")).filter(|it| !it.is_empty()).map(str::to_owned),
        ..TableShape::of(name, key(values, "hash_key").ok_or_else(none)?, key(values, "range_key"))
    };
    Ok(SampledTable::without_items(shape))
}

#[cfg(test)]
mod tests;
