//! The JSON Schema of the objects of `--json` and of the console's addresses that end in `.json`.
//!
//! It names each object under `$defs`, by its command: `why`, `catalogue_diff`, `console_flow`. It allows no unknown
//! names, so it is exact for the release that prints it. The tests check each printed object against it.

mod commands;
mod forms;
mod operator;

use serde_json::{Map, Value, json};

/// The schema, of draft 2020-12.
#[must_use]
pub fn json_schema() -> Value {
    let printed = commands::commands().into_iter().chain(operator::operator());
    let printed: Vec<(&str, Value)> = printed.map(|(name, form)| (name, with_version(form))).collect();
    let any_of: Vec<Value> = printed.iter().map(|(name, _)| named(name)).collect();
    let parts = forms::parts().into_iter().chain(printed);
    let definitions: Map<String, Value> = parts.map(|(name, form)| (name.to_owned(), form)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What `ripple --json` prints and the console serves",
        "anyOf": any_of,
        "$defs": definitions,
    })
}

/// Adds the version to an object, or to each alternative of an `anyOf`.
fn with_version(mut form: Value) -> Value {
    if let Some(choices) = form.get_mut("anyOf").and_then(Value::as_array_mut) {
        for choice in choices {
            *choice = with_version(choice.take());
        }
        return form;
    }
    if let Some(properties) = form.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("version".to_owned(), json!({ "const": super::VERSION }));
    }
    if let Some(required) = form.get_mut("required").and_then(Value::as_array_mut) {
        required.push("version".into());
    }
    form
}

/// A reference to a form in `$defs`.
fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// An object with exactly these names; a name that ends in `?` is optional.
fn object<const N: usize>(names: [(&str, Value); N]) -> Value {
    let is_required = |name: &&str| !name.ends_with('?');
    let required: Vec<&str> = names.iter().map(|(name, _)| *name).filter(is_required).collect();
    let required = json!(required);
    let properties: Map<String, Value> =
        names.into_iter().map(|(name, form)| (name.trim_end_matches('?').to_owned(), form)).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// An object with arbitrary names.
fn map(each: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": each })
}

fn list(each: &Value) -> Value {
    json!({ "type": "array", "items": each })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn whole() -> Value {
    json!({ "type": "integer" })
}

fn boolean() -> Value {
    json!({ "type": "boolean" })
}

fn words(words: &[&str]) -> Value {
    json!({ "enum": words })
}

/// A form, or null.
fn or_null(form: &Value) -> Value {
    json!({ "anyOf": [form, { "type": "null" }] })
}

fn any_of(forms: &[Value]) -> Value {
    json!({ "anyOf": forms })
}
