//! `schema.json`, from which the DynamoDB MCP server generates code. It has no items, but entities with access
//! patterns.
//!
//! A table has a `table_config` with `table_name`, `partition_key` and `sort_key`, a `gsi_list`, and `entities` by
//! name. An entity has `pk_template` and `sk_template`, as in `USER#{user_id}`, `gsi_mappings` with the same, `fields`
//! and `access_patterns`. The generated code stores no type, and numbers only in keys that are one field.

use std::collections::BTreeMap;

use keys::tables::{KeyAttribute, KeyType};
use serde_json::{Map, Value};

use super::{FileError, form, list, required, text, texts};
use crate::{
    entities::{field_names, is_one_field},
    names::{kebab, string},
    shape::{Declared, DeclaredKind, IndexShape, KeyForm, Pattern, SampledTable, TableShape},
};

/// The tables of a schema.
pub(super) fn tables(file: &Value, tables: &[Value]) -> Result<Vec<SampledTable>, FileError> {
    let mut found: Vec<SampledTable> =
        tables.iter().enumerate().map(|(at, it)| table(it, &format!("tables[{at}]"))).collect::<Result<_, _>>()?;
    let transactions = list(file, "cross_table_access_patterns").filter_map(|it| text(it, "name"));
    let transactions: Vec<&str> = transactions.collect();
    if let Some(last) = found.last_mut().filter(|_| !transactions.is_empty()) {
        last.notes.push(format!("Not declared, because [access] has no transactions: {}.", transactions.join(", ")));
    }
    Ok(found)
}

/// The key of the table or of an index, as attributes with the template of one entity for each.
type Parts = Vec<(String, String)>;

/// An entity of the file.
struct Entity<'v> {
    name: &'v str,
    path: String,
    of: &'v Value,
    attributes: Vec<(String, &'static str)>,
    pk: Parts,
    sk: Parts,
    indexes: Vec<(String, [Parts; 2])>,
}

fn table(table: &Value, path: &str) -> Result<SampledTable, FileError> {
    let config_path = format!("{path}.table_config");
    let config = table.get("table_config").unwrap_or(&Value::Null);
    let name = required(config, &config_path, "table_name")?;
    let pk = required(config, &config_path, "partition_key")?;
    let sk = config.get("sort_key").map(|_| required(config, &config_path, "sort_key")).transpose()?;
    let mut indexes = Vec::new();
    for (at, index) in list(table, "gsi_list").enumerate() {
        let path = format!("{path}.gsi_list[{at}]");
        let keys = [texts(index, &path, "partition_key")?, texts(index, &path, "sort_key")?];
        if keys[0].is_empty() {
            return Err(FileError::Table(format!("{path} has no partition_key")));
        }
        let projection = match text(index, "projection") {
            None | Some("ALL") => None,
            Some(_) => Some(texts(index, &path, "included_attributes")?),
        };
        indexes.push((required(index, &path, "name")?, keys, projection));
    }
    let none = Map::new();
    let entities = table.get("entities").and_then(Value::as_object).unwrap_or(&none);
    let of_index = |name: &str| indexes.iter().find(|(index, ..)| *index == name).map(|(_, keys, _)| keys);
    let read = |(name, of)| entity((name, of), &format!("{path}.entities.{name}"), [Some(pk), sk], of_index);
    let entities: Vec<Entity<'_>> = entities.iter().map(read).collect::<Result<_, _>>()?;
    // A key attribute is a number if it is one numeric field of every entity that has it.
    let mut is_number = BTreeMap::<&str, bool>::new();
    for entity in &entities {
        let of_indexes = entity.indexes.iter().flat_map(|(_, keys)| keys.iter().flatten());
        for (attribute, template) in entity.pk.iter().chain(&entity.sk).chain(of_indexes) {
            *is_number.entry(attribute).or_insert(true) &= entity.is_number(template);
        }
    }
    let key = |name: &str| {
        let of = if is_number.get(name) == Some(&true) { KeyType::N } else { KeyType::S };
        KeyAttribute::plain(name, of)
    };
    let all = |names: &[String]| names.iter().map(|name| key(name)).collect();
    let index = |(name, [pk, sk], projection): &(&str, [Vec<String>; 2], Option<Vec<String>>)| IndexShape {
        name: (*name).to_owned(),
        pk: all(pk),
        sk: all(sk),
        projection: projection.clone(),
    };
    let indexes = indexes.iter().map(index).collect();
    let shape = TableShape { indexes, ..TableShape::of(name, key(pk), sk.map(key)) };
    let (mut kinds, mut others) = (Vec::new(), Vec::new());
    for entity in entities {
        kinds.push(entity.kind(&mut others)?);
    }
    let mut found = SampledTable::without_items(shape);
    found.declared = Some(Declared { type_attribute: None, kinds });
    if !others.is_empty() {
        found.notes.push(format!("Not declared, because [access] is for reads by a key: {}.", others.join(", ")));
    }
    Ok(found)
}

fn entity<'v, 'k>(
    (name, of): (&'v String, &'v Value),
    path: &str,
    [pk, sk]: [Option<&str>; 2],
    of_index: impl Fn(&str) -> Option<&'k [Vec<String>; 2]>,
) -> Result<Entity<'v>, FileError> {
    let mut attributes = Vec::new();
    for (at, field) in list(of, "fields").enumerate() {
        let path = format!("{path}.fields[{at}]");
        attributes.push((required(field, &path, "name")?.to_owned(), type_of(required(field, &path, "type")?, &path)?));
    }
    required(of, path, "pk_template")?;
    let part = |key: Option<&str>, template: &str| {
        let templates = texts(of, path, template)?;
        Ok(key.map(str::to_owned).into_iter().zip(templates).collect())
    };
    let mut indexes = Vec::new();
    for (at, mapping) in list(of, "gsi_mappings").enumerate() {
        let path = format!("{path}.gsi_mappings[{at}]");
        let name = required(mapping, &path, "name")?;
        let keys = of_index(name).ok_or_else(|| FileError::Table(format!("{path}.name: no gsi_list has {name:?}")))?;
        let parts = |template: &str, key: &[String]| {
            let templates = texts(mapping, &path, template)?;
            if templates.len() != key.len() {
                let (n, n_key) = (templates.len(), key.len());
                let what = format!("{path}.{template} has {n} templates, and the key of {name} has {n_key} attributes");
                return Err(FileError::Table(what));
            }
            Ok(key.iter().cloned().zip(templates).collect())
        };
        indexes.push((name.to_owned(), [parts("pk_template", &keys[0])?, parts("sk_template", &keys[1])?]));
    }
    let (pk, sk) = (part(pk, "pk_template")?, part(sk, "sk_template")?);
    Ok(Entity { name, path: path.to_owned(), of, attributes, pk, sk, indexes })
}

/// The type of a field, as DynamoDB names it.
fn type_of(name: &str, path: &str) -> Result<&'static str, FileError> {
    match name {
        "string" | "uuid" => Ok("S"),
        "integer" | "decimal" => Ok("N"),
        "boolean" => Ok("BOOL"),
        "array" => Ok("L"),
        "object" => Ok("M"),
        _ => Err(FileError::Table(format!(
            "{path}.type: {name:?} is none of string, integer, decimal, boolean, array, object and uuid"
        ))),
    }
}

/// The form of a template. A number of fixed width, as in `{score:05d}`, keeps its width.
fn key_form(template: &str) -> String {
    form(template, "{", |name, format| {
        let width = format.and_then(|format| format.strip_prefix('0')?.strip_suffix('d'));
        width.map_or_else(|| format!("{{{name}}}"), |width| format!("{{{name}:{width}}}"))
    })
}

impl Entity<'_> {
    /// True for a template that is one numeric field.
    fn is_number(&self, template: &str) -> bool {
        let form = key_form(template);
        let is_number = |name: &str| self.attributes.iter().any(|(attribute, of)| attribute == name && *of == "N");
        is_one_field(&form) && !form.contains(':') && field_names(&form).all(is_number)
    }

    /// The kind of its items. `others` gets the access patterns that a manifest cannot declare.
    fn kind(self, others: &mut Vec<String>) -> Result<DeclaredKind, FileError> {
        let forms =
            |parts: &Parts| parts.iter().map(|(_, template)| Some(key_form(template))).collect::<Vec<KeyForm>>();
        let field = |(attribute, template): &(String, String)| {
            if self.is_number(template) {
                return vec![attribute.clone()];
            }
            field_names(&key_form(template)).map(str::to_owned).collect()
        };
        let fields = |parts: &Parts| parts.iter().flat_map(field).collect::<Vec<String>>();
        let fields_of = |index: Option<&str>| -> Option<KeyFields> {
            let Some(index) = index else { return Some([fields(&self.pk), fields(&self.sk)]) };
            let (_, keys) = self.indexes.iter().find(|(name, _)| name == index)?;
            Some([fields(&keys[0]), fields(&keys[1])])
        };
        let mut patterns = Vec::new();
        for (at, of) in list(self.of, "access_patterns").enumerate() {
            match pattern(of, &format!("{}.access_patterns[{at}]", self.path), fields_of)? {
                Ok(pattern) => patterns.push(pattern),
                Err(other) => others.push(other),
            }
        }
        Ok(DeclaredKind {
            name: self.name.to_owned(),
            pk: forms(&self.pk).pop().flatten(),
            sk: forms(&self.sk).pop().flatten(),
            indexes: self
                .indexes
                .iter()
                .map(|(name, keys)| (name.clone(), [forms(&keys[0]), forms(&keys[1])]))
                .collect(),
            attributes: self.attributes,
            patterns,
        })
    }
}

// ---- the access patterns, as reads of a manifest ----

/// The fields of a key in the order of its form: those of the partition key, and those of the sort key.
type KeyFields = [Vec<String>; 2];

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
        lines.push(format!("fields = {}", crate::names::list(&fields)));
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
