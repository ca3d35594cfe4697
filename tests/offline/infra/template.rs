//! A template as a value: YAML, with the short forms of its functions expanded.

use std::{fs, path::PathBuf};

use functions::handler::Function;
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// Both templates.
pub(crate) const BOTH: [&str; 2] = ["template.yaml", "attach.yaml"];

/// The functions that read the stream, with their logical ids.
pub(crate) const READERS: [(&str, Function); 3] =
    [("Aggregate", Function::Aggregate), ("Propagate", Function::Propagate), ("Combined", Function::Combined)];

pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../infra").join(name)
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn read(name: &str) -> Value {
    parsed(&text(name))
}

/// A template's text as a value.
pub(crate) fn parsed(text: &str) -> Value {
    let documents = Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error}"));
    value(documents.first().expect("a document"))
}

/// The value at a path of names.
pub(crate) fn at<'a>(template: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .fold(template, |value, name| value.get(*name).unwrap_or_else(|| panic!("there is no {}", path.join("."))))
}

/// The resources of a type, by their logical ids.
pub(crate) fn resources<'a>(template: &'a Value, of_type: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let all = at(template, &["Resources"]).as_object().expect("resources");
    let ours = all.iter().filter(move |(_, resource)| resource["Type"] == of_type);
    ours.map(|(id, resource)| (id.as_str(), &resource["Properties"]))
}

fn value(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(truth)) => json!(truth),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Sequence(all) => all.iter().map(value).collect(),
        Yaml::Mapping(map) => {
            let member =
                |(name, held): (&Yaml<'_>, &Yaml<'_>)| (name.as_str().expect("a name").to_owned(), value(held));
            Value::Object(map.iter().map(member).collect())
        }
        Yaml::Tagged(tag, node) => {
            let name = if tag.suffix == "Ref" { "Ref".to_owned() } else { format!("Fn::{}", tag.suffix) };
            Value::Object(Map::from_iter([(name, value(node))]))
        }
        other => panic!("no such thing is expected in a template: {other:?}"),
    }
}
