//! Names of a manifest in a template: every legal one is read again as it is, and as a text.

use proptest::prelude::*;
use serde_json::Value;

use infra::{Stack, wrapped};

use crate::infra::template::{at, parsed};

/// Names that YAML reads otherwise, or not at all, unless they are quoted.
const UGLY: [&str; 40] = [
    "@type",
    "#pk",
    "a: b",
    "on",
    "0x10",
    "null",
    "1e3",
    "=",
    "~",
    "- x",
    "? y",
    "it's",
    "say \"no\"",
    "%a",
    "`b`",
    "é",
    "日本",
    "${AWS::Region}",
    "{{pk}}",
    " before",
    "after ",
    "tab\tname",
    "line\nbreak",
    "\u{feff}",
    "\u{85}",
    "yes",
    "2024-01-15",
    "!Ref",
    "&a",
    "*a",
    "|",
    ">",
    "0o17",
    "1_000",
    "12:30:45",
    "<<",
    "{a}",
    "a #b",
    "back\\slash",
    "\u{2028}",
];

/// A text as TOML writes it: as JSON does, but for one character.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f")
}

/// A table whose key, type, time to live and index have these names; `None` if the manifest refuses one.
fn template([pk, sk, of_type, time_to_live, index, projected]: [&str; 6]) -> Option<String> {
    let [pk, sk, of_type, time_to_live, index, projected] =
        [pk, sk, of_type, time_to_live, index, projected].map(quoted);
    let manifest = format!(
        r#"
[table]
partition-key = {pk}
sort-key = {sk}
type = {of_type}
time-to-live = {time_to_live}

[index.byOther]
partition-key = {index}
sort-key = {sk}
projection = [{projected}]

[entity.Room]
partition-key = "ROOM#{{room}}"
sort-key = "ROOM"
derived-attributes = ["n"]

[entity.Seat]
partition-key = "ROOM#{{room}}"
sort-key = "SEAT#{{seat}}"

[derivation.seats]
kind = "count"
from = "Seat"
into = "Room.n"
"#
    );
    let (schema, catalogue) = manifest::load(&manifest).ok()?;
    let stack = Stack {
        schema: &schema,
        catalogue: &catalogue,
        attaches: false,
        shipped: false,
        zipped: true,
        command: "ripple infra",
    };
    Some(infra::template(&stack))
}

/// Checks that the template has these names.
fn has(text: &str, [pk, sk, of_type, time_to_live, index, projected]: [&str; 6]) {
    let template = parsed(text);
    let table = at(&template, &["Resources", "Table", "Properties"]);
    let name = |value: &Value| value["AttributeName"].as_str().map(str::to_owned);
    let key = |keys: &Value| keys.as_array().unwrap().iter().filter_map(name).collect::<Vec<_>>();
    assert_eq!(key(&table["KeySchema"]), [pk, sk]);
    assert_eq!(key(&table["AttributeDefinitions"]), [pk, sk, index]);
    let secondary = &table["GlobalSecondaryIndexes"][0];
    assert_eq!(key(&secondary["KeySchema"]), [index, sk]);
    assert_eq!(secondary["Projection"]["NonKeyAttributes"][0], projected);
    assert_eq!(table["TimeToLiveSpecification"]["AttributeName"], time_to_live);
    assert_eq!(key(at(&template, &["Resources", "LedgerTable", "Properties"]).get("KeySchema").unwrap()), [pk, sk]);
    let patterns: Vec<&str> = text.lines().filter_map(|line| line.trim_start().strip_prefix("- Pattern: ")).collect();
    assert!(!patterns.is_empty(), "{text}");
    let read = |pattern: &&str| parsed(pattern).as_str().map(|json| serde_json::from_str::<Value>(json).unwrap());
    let read: Vec<Value> = patterns.iter().filter_map(read).collect();
    assert_eq!(read.len(), patterns.len());
    assert!(read.iter().any(|pattern| names(pattern).contains(&of_type.to_owned())), "{read:?}");
}

/// All names of a JSON value.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(name, of)| [vec![name.clone()], names(of)].concat()).collect()
        }
        Value::Array(values) => values.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn ugly_names_are_read_again_as_they_are() {
    for at in 0..UGLY.len() {
        let six: [&str; 6] = std::array::from_fn(|number| UGLY[(at + number) % UGLY.len()]);
        let text = template(six).unwrap_or_else(|| panic!("{six:?} is refused"));
        has(&text, six);
    }
}

#[test]
fn a_name_stays_as_it_is_in_a_module_and_a_construct() {
    let text = template(["${a}", "%{b}", "`c`", "d", "e", "f"]).unwrap();
    let module = wrapped::terraform(&text);
    let inside = module.split("template = <<EOT\n").nth(1).unwrap().split("EOT\n").next().unwrap();
    assert!(inside.contains("AttributeName: '$${a}'") && inside.contains("AttributeName: '%%{b}'"));
    assert_eq!(inside.replace("$${", "${").replace("%%{", "%{"), text);
    let construct = wrapped::cdk(&text);
    let inside = construct.split("const TEMPLATE = `").nth(1).unwrap().strip_suffix("`;\n").unwrap();
    // Only the outputs are others.
    let resources = |text: &str| text.split("\nOutputs:\n").next().map(str::to_owned);
    let inside = inside.replace("\\${", "${").replace("\\`", "`").replace("\\\\", "\\");
    assert_eq!(resources(&inside), resources(&text));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Names with a dot or a bracket are paths, which the manifest refuses here.
    #[test]
    fn every_legal_name_is_read_again_as_it_is(all in proptest::collection::hash_set("[^.\\[\\]]{1,20}", 6)) {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let six: [&str; 6] = all.try_into().unwrap();
        if let Some(text) = template(six) {
            has(&text, six);
        }
    }
}
