//! Does a record match a pattern? It supports the syntax of the generated patterns: objects, strings, and prefixes.

use serde_json::Value;

/// Does the record match one of these patterns?
///
/// # Panics
///
/// When a pattern has another syntax.
#[must_use]
pub fn passes(patterns: &[Value], record: &Value) -> bool {
    patterns.iter().any(|pattern| matches(pattern, record))
}

/// The patterns as values.
///
/// # Panics
///
/// When a pattern is no JSON.
#[must_use]
pub fn read(patterns: &[String]) -> Vec<Value> {
    patterns.iter().map(|text| serde_json::from_str(text).expect("a pattern is JSON")).collect()
}

fn matches(pattern: &Value, value: &Value) -> bool {
    match pattern {
        // All members of an object must match, and a missing member matches nothing.
        Value::Object(members) => members.iter().all(|(name, of)| value.get(name).is_some_and(|it| matches(of, it))),
        Value::Array(alternatives) => alternatives.iter().any(|one| is_one(one, value)),
        other => panic!("no pattern has this: {other}"),
    }
}

fn is_one(alternative: &Value, value: &Value) -> bool {
    match (alternative, alternative.get("prefix").and_then(Value::as_str)) {
        (Value::String(_), _) => alternative == value,
        (_, Some(prefix)) => value.as_str().is_some_and(|text| text.starts_with(prefix)),
        _ => panic!("no pattern has this: {alternative}"),
    }
}
