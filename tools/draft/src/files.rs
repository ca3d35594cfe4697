//! Reads descriptions of tables from files, each told apart by its shape.
//!
//! | file | where the tables are |
//! |---|---|
//! | NoSQL Workbench model | `DataModel`, with items in `TableData` |
//! | CloudFormation, SAM, `cdk.out/*.template.json` | `Resources` of the types `AWS::DynamoDB::Table` and `GlobalTable` |
//! | `serverless.yml` | the same below `resources.Resources` |
//! | `terraform show -json` | resources of the type `aws_dynamodb_table`, in all modules |

mod cloudformation;
mod terraform;
mod workbench;

use std::collections::BTreeSet;

use keys::tables::KeyType;
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Number, Value};

use crate::shape::SampledTable;

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
         Resources), a serverless.yml (with resources), or the output of `terraform show -json` (with values or \
         planned_values)"
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
    let file = parsed(text)?;
    let at = |path: &[&str]| path.iter().try_fold(&file, |value, name| value.get(name));
    let (kind, mut tables) = if let Some(models) = at(&["DataModel"]).and_then(Value::as_array) {
        ("NoSQL Workbench model", workbench::tables(models)?)
    } else if let Some(resources) = at(&["Resources"]).and_then(Value::as_object) {
        ("CloudFormation template", cloudformation::tables(resources)?)
    } else if let Some(resources) = at(&["resources", "Resources"]).and_then(Value::as_object) {
        ("serverless.yml", cloudformation::tables(resources)?)
    } else if let Some(values) = at(&["values"]).or_else(|| at(&["planned_values"])).filter(|it| it.is_object()) {
        ("terraform JSON", terraform::tables(values)?)
    } else if at(&["service"]).is_some() && at(&["provider"]).is_some() {
        return Err(FileError::NoTable("serverless.yml"));
    } else {
        return Err(FileError::Unknown);
    };
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

#[cfg(test)]
mod tests;
