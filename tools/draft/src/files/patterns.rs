//! The access patterns of a `schema.json`, as reads of a manifest.

use serde_json::Value;

use super::{FileError, list, required, text};
use crate::{
    shape::Pattern,
    text::{kebab, string},
};

/// The fields of a key in the order of its form: those of the partition key, and those of the sort key.
pub(super) type KeyFields = [Vec<String>; 2];

/// The read of an access pattern, or the reason why a manifest cannot declare it. `fields_of` gives the fields of a key of
/// the table or of an index.
pub(super) fn pattern(
    pattern: &Value,
    path: &str,
    fields_of: impl Fn(Option<&str>) -> Option<KeyFields>,
) -> Result<Result<Pattern, String>, FileError> {
    let name = required(pattern, path, "name")?;
    let operation = required(pattern, path, "operation")?;
    let why_not = |why: &str| Ok(Err(format!("{name} ({operation}){why}")));
    let reads = match operation {
        "GetItem" => "get",
        "BatchGetItem" => "batch-get",
        "Query" => "query",
        _ => return why_not(""),
    };
    let id = pattern.get("pattern_id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    let line = |key: &str, value: &str| format!("{key} = {}", string(value));
    let mut lines: Vec<String> = id.iter().map(|id| line("id", id)).collect();
    lines.extend(text(pattern, "description").map(|about| line("about", about)));
    let is_consistent = pattern.get("consistent_read").and_then(Value::as_bool) == Some(true);
    lines.extend(is_consistent.then(|| "consistent = true".to_owned()));
    if reads == "query" {
        let index = text(pattern, "index_name");
        lines.extend(index.map(|index| line("index", index)));
        let Some(key) = fields_of(index) else {
            return why_not(&format!(", whose index {} has no key of this entity", index.unwrap_or_default()));
        };
        let filter = pattern.get("filter_expression").unwrap_or(&Value::Null);
        lines.extend(sort_key_lines(pattern, &key, filter));
        if filter.is_object() {
            let all: Option<Vec<String>> = list(filter, "conditions").map(condition).collect();
            let Some(all) = all else { return why_not(", whose filter has an unknown form") };
            let or = text(filter, "logical_operator") == Some("OR");
            lines.push(line("where", &all.join(if or { " OR " } else { " AND " })));
        }
    }
    let is_of_partition = text(pattern, "return_type") == Some("mixed_data") && text(pattern, "index_name").is_none();
    Ok(Ok(Pattern { name: kebab(&[name]), reads, is_of_partition, lines }))
}

/// The parts of the sort key that the caller gives. The parameters are in the order of the key's fields: the partition
/// key's, leading ones of the sort key, then the bounds of a range.
fn sort_key_lines(pattern: &Value, [pk, sk]: &KeyFields, filter: &Value) -> Vec<String> {
    let is_of_filter = |name: &str| {
        list(filter, "conditions").any(|condition| {
            let mut one = ["param", "param2"].iter().filter_map(|key| text(condition, key));
            one.any(|param| param == name) || list(condition, "params").any(|param| param.as_str() == Some(name))
        })
    };
    let params = list(pattern, "parameters").filter_map(|param| text(param, "name"));
    let n_given = params.filter(|name| !is_of_filter(name)).count().saturating_sub(pk.len());
    let range = text(pattern, "range_condition");
    let n_bounds = match range {
        None => 0,
        Some("between") => 2,
        Some(_) => 1,
    };
    let n_fields = n_given.saturating_sub(n_bounds);
    let fields: Vec<&str> = sk.iter().take(n_fields).map(String::as_str).collect();
    let mut lines = Vec::new();
    if !fields.is_empty() {
        lines.push(format!("fields = {}", crate::text::list(&fields)));
    }
    if let (Some(range), Some(next)) = (range, sk.get(n_fields)) {
        let remark = if range == "between" { String::new() } else { format!("  # {range}") };
        lines.push(format!("between = {}{remark}", string(next)));
    }
    lines
}

/// A condition of a filter, in DynamoDB's syntax; `None` if it has an unknown form.
fn condition(of: &Value) -> Option<String> {
    let field = text(of, "field")?;
    let is_bare = field.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    let field = if is_bare { field.to_owned() } else { format!("\"{}\"", field.replace('"', "")) };
    let param = |key: &str| text(of, key).map(|name| format!(":{name}"));
    let left = match text(of, "function") {
        None => field,
        Some("size") => format!("size({field})"),
        Some(function @ ("contains" | "begins_with")) => {
            return Some(format!("{function}({field}, {})", param("param")?));
        }
        Some(function @ ("attribute_exists" | "attribute_not_exists")) => return Some(format!("{function}({field})")),
        Some(_) => return None,
    };
    match text(of, "operator")?.to_lowercase().as_str() {
        "between" => Some(format!("{left} BETWEEN {} AND {}", param("param")?, param("param2")?)),
        "in" => {
            let all: Vec<String> =
                list(of, "params").filter_map(Value::as_str).map(|name| format!(":{name}")).collect();
            Some(format!("{left} IN ({})", all.join(", ")))
        }
        operator @ ("=" | "<>" | "<" | "<=" | ">" | ">=") => Some(format!("{left} {operator} {}", param("param")?)),
        _ => None,
    }
}
