//! A JSON Schema of a manifest, for editors that use one to complete and check TOML.

use keys::counter::COUNTER;
use serde_json::{Map, Value, json};

use crate::{
    access, entities, index_keys, kinds, layout,
    syntax::{Absent, KeySyntax, ValueSyntax},
    tables,
};

/// The schema, of draft 2020-12.
#[must_use]
pub fn json_schema() -> Value {
    let entity = object(&entities::ENTITY, &[("index", named(&object(&index_keys::INDEX_KEY, &[])))]);
    let derivations: Vec<Value> = kinds::descriptions()
        .iter()
        .map(|kind| {
            let keys: Vec<KeySyntax> = kinds::COMMON.iter().chain(kind.keys).copied().collect();
            let mut derivation = object(&keys, &[("kind", json!({ "const": kind.name }))]);
            describe(&mut derivation, kind.keeps);
            derivation
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ripple manifest",
        "type": "object",
        "additionalProperties": false,
        "required": ["entity"],
        "oneOf": [{ "required": ["table"] }, { "required": ["tables"] }],
        "properties": {
            "table": object(&layout::TABLE, &[]),
            "index": named(&object(&layout::INDEX, &[])),
            "tables": named(&object(&tables::TABLES, &[("index", named(&object(&tables::TABLE_INDEX, &[])))])),
            "entity": {
                "type": "object",
                "properties": { COUNTER: object(&entities::COUNTERS, &[]) },
                "additionalProperties": entity,
            },
            "access": named(&object(&access::ACCESS, &[])),
            "derivation": named(&json!({ "type": "object", "oneOf": derivations })),
        },
    })
}

/// Tables by their names.
fn named(each: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": each })
}

/// A table with these keys; `instead` replaces the values of some of them.
fn object(keys: &[KeySyntax], instead: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let instead = instead.iter().find(|(name, _)| *name == key.name).map(|(_, value)| value.clone());
        let mut value = instead.unwrap_or_else(|| of_value(key.value));
        describe(&mut value, key.says);
        properties.insert(key.name.to_owned(), value);
    }
    let required: Vec<&str> = keys.iter().filter(|key| key.absent == Absent::Required).map(|key| key.name).collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn of_value(value: ValueSyntax) -> Value {
    let text = || json!({ "type": "string", "minLength": 1 });
    let texts = || json!({ "type": "array", "uniqueItems": true, "items": text() });
    let pairs = || json!({ "type": "object", "additionalProperties": text() });
    let one = |each: &Value| json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": each });
    match value {
        ValueSyntax::Text => text(),
        ValueSyntax::OneOf(texts) => json!({ "enum": texts }),
        ValueSyntax::Texts => texts(),
        ValueSyntax::TextOrTexts => json!({ "anyOf": [text(), texts()] }),
        ValueSyntax::Truth => json!({ "type": "boolean" }),
        ValueSyntax::WholeNumber(from, to) => json!({ "type": "integer", "minimum": from, "maximum": to }),
        ValueSyntax::Pairs => pairs(),
        ValueSyntax::Pair => one(&text()),
        ValueSyntax::PairOfTexts => one(&json!({ "anyOf": [text(), texts()] })),
        ValueSyntax::PairsOrTexts => json!({ "anyOf": [pairs(), texts()] }),
        ValueSyntax::Condition => json!({ "anyOf": [text(), one(&text())] }),
        ValueSyntax::Table(keys) => object(keys, &[]),
        ValueSyntax::TextOrTable(keys) => json!({ "anyOf": [text(), object(keys, &[])] }),
        ValueSyntax::KeyAttributes => {
            let one = json!({ "anyOf": [text(), object(&tables::KEY_ATTRIBUTE, &[])] });
            json!({ "anyOf": [one, { "type": "array", "minItems": 1, "maxItems": 4, "items": one }] })
        }
        ValueSyntax::Tables(keys) => json!({ "type": "array", "items": object(keys, &[]) }),
        ValueSyntax::Sections => json!({ "type": "object" }),
    }
}

fn describe(value: &mut Value, says: &str) {
    if let Some(object) = value.as_object_mut() {
        object.insert("description".to_owned(), says.into());
    }
}
