//! The templates of manifests that users write: of several tables, what each function reads of them and may do with them;
//! and with names that YAML would read otherwise.

use std::collections::BTreeSet;

use derive::{catalogue::Catalogue, schema::Schema};
use infra::{
    Stack,
    mapping::{Needed, StreamTable, criteria, needed},
    stream_events, wrapped,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::infra::{READERS, alarms::metrics_of, at, parsed, resources};

/// Names whose logical ids would be those of others: of the ledger's table, and of each other.
const NAMES_ALIKE: &str = r#"
    [tables.Ledger]
    partition-key = "id"
    [tables.my-posts]
    partition-key = { name = "at", type = "N" }
    sort-key = { name = "digest", type = "B" }
    [tables.myposts.index.byTenant]
    partition-key = ["tenant", { name = "region", type = "N" }]
    sort-key = ["at", "id"]
    projection = ["title"]
    [tables.myposts]
    partition-key = "id"
    time-to-live = "until"
    [entity.Entry]
    table = "Ledger"
    derived-attributes = ["n"]
    [entity.Post]
    table = "my-posts"
    attributes = ["entryId"]
    [entity.Note]
    table = "myposts"
    attributes = ["entryId", "tenant", "region", "at"]
    [derivation.notes]
    kind = "count"
    from = "Note"
    into = "Entry.n"
    link = { id = "entryId" }
"#;

fn loaded(name: &str) -> (Schema, Catalogue) {
    let file = format!("{}/../examples/{name}/ripple.toml", env!("CARGO_MANIFEST_DIR"));
    manifest::read(file.as_ref()).unwrap()
}

fn all() -> [(Schema, Catalogue); 3] {
    [loaded("models"), loaded("chat"), manifest::load(NAMES_ALIKE).unwrap()]
}

fn text((schema, catalogue): &(Schema, Catalogue), attaches: bool) -> String {
    infra::template(&Stack { schema, catalogue, attaches, shipped: false, zipped: true, command: "" })
}

fn template(declared: &(Schema, Catalogue), attaches: bool) -> Value {
    parsed(&text(declared, attaches))
}

/// The logical id of a table, by that of the event that reads its stream.
fn id(event: &str) -> &str {
    event.strip_suffix("Stream").unwrap()
}

#[test]
fn a_template_makes_each_table_as_it_is_declared_and_names_each_to_the_functions() {
    let made = template(&manifest::load(NAMES_ALIKE).map(|it| (it.0, it.1)).unwrap(), false);
    let table = |id: &str| at(&made, &["Resources", id, "Properties"]).clone();
    let key = |name: &str, part: &str| json!({ "AttributeName": name, "KeyType": part });
    assert_eq!(table("Ledger2Table")["KeySchema"], json!([key("id", "HASH")]));
    assert_eq!(table("MypostsTable")["KeySchema"], json!([key("at", "HASH"), key("digest", "RANGE")]));
    let defined = json!([
        { "AttributeName": "at", "AttributeType": "N" },
        { "AttributeName": "digest", "AttributeType": "B" },
    ]);
    assert_eq!(table("MypostsTable")["AttributeDefinitions"], defined);
    let index = json!([{
        "IndexName": "byTenant",
        "KeySchema": [key("tenant", "HASH"), key("region", "HASH"), key("at", "RANGE"), key("id", "RANGE")],
        "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": ["title"] },
    }]);
    assert_eq!(table("Myposts2Table")["GlobalSecondaryIndexes"], index);
    assert_eq!(table("Myposts2Table")["TimeToLiveSpecification"], json!({ "AttributeName": "until", "Enabled": true }));
    assert_eq!(table("Table")["KeySchema"], json!([key("RipplePK", "HASH"), key("RippleSK", "RANGE")]));
    assert_eq!(table("LedgerTable")["KeySchema"], table("Table")["KeySchema"]);
    let variables = at(&made, &["Globals", "Function", "Environment", "Variables"]);
    let names = "Ledger=${Ledger2Table},my-posts=${MypostsTable},myposts=${Myposts2Table}";
    assert_eq!(variables["TABLES"], json!({ "Fn::Sub": names }));
    let of = |id: &str| {
        let (given, created) =
            (json!({ "Ref": format!("{id}Stream") }), json!({ "Fn::GetAtt": format!("{id}.StreamArn") }));
        json!({ "Fn::If": [format!("Has{id}Stream"), given, created] })
    };
    let streams = ["Table", "Ledger2Table", "MypostsTable", "Myposts2Table"].map(of);
    assert_eq!(variables["STREAM_ARN"], json!({ "Fn::Join": [",", streams] }));
}

#[test]
fn an_attaching_template_makes_the_table_of_ripple_s_own_items_and_asks_for_the_others() {
    for declared in all() {
        let attached = template(&declared, true);
        let made: BTreeSet<&str> = resources(&attached, "AWS::DynamoDB::Table").map(|(id, _)| id).collect();
        assert_eq!(made, ["LedgerTable", "Table"].into());
        assert_eq!(at(&attached, &["Parameters", "TableName", "Default"]), "");
        for (_, event) in stream_events(&declared.0).iter().skip(1) {
            for asked in [format!("{}TableName", id(event)), format!("{}StreamArn", id(event))] {
                assert_eq!(at(&attached, &["Parameters", &asked]).get("Default"), None, "{asked}");
            }
        }
        assert_eq!(at(&attached, &["Parameters", "Mode", "Default"]), "observe");
        assert!(attached["Parameters"].get("PartitionKey").is_none());
    }
}

#[test]
fn a_function_reads_the_streams_that_it_needs_with_their_filters_and_has_alarms_on_each() {
    for declared in all() {
        let (schema, catalogue) = &declared;
        for template in [false, true].map(|attaches| template(&declared, attaches)) {
            for (function_id, function) in READERS {
                let events = at(&template, &["Resources", function_id, "Properties", "Events"]);
                let mut wanted = BTreeSet::new();
                for (table, event) in stream_events(schema) {
                    let needed = needed(table, catalogue, &function.families());
                    if needed == Needed::Nothing {
                        continue;
                    }
                    let filters = events[&event]["Properties"].get("FilterCriteria");
                    assert_eq!(filters, Some(&criteria(&needed)).filter(|criteria| !criteria.is_null()), "{event}");
                    let mapping = json!({ "Ref": format!("{function_id}{event}") });
                    for (alarm, dimension) in [("NotReading", "Metrics"), ("Dropped", "Dimensions")] {
                        let id = format!("{function_id}{}{alarm}Alarm", id(&event));
                        let alarm = at(&template, &["Resources", &id, "Properties", dimension]);
                        assert!(alarm.to_string().contains(&mapping.to_string()), "{id}");
                    }
                    wanted.insert(event);
                }
                let stored: BTreeSet<String> = events.as_object().unwrap().keys().cloned().collect();
                assert_eq!(stored, wanted, "{function_id}");
            }
        }
    }
}

#[test]
fn the_estimate_of_costs_counts_the_alarms_of_each_mapping() {
    for declared in all() {
        let template = template(&declared, false);
        let of_two = |id: &str| template["Resources"][id]["Condition"] != "OneReader";
        let alarms = resources(&template, "AWS::CloudWatch::Alarm").filter(|(id, _)| of_two(id));
        let n_metrics: usize = alarms.map(|(_, alarm)| metrics_of(alarm).len()).sum();
        let wanted = design::cost::estimate::alarm_metrics(&declared.0, &declared.1);
        assert_eq!(n_metrics, usize::try_from(wanted).unwrap());
    }
}

/// Each statement about the application's table in a template of one is about all tables in one of several.
#[test]
fn what_is_allowed_on_a_table_is_allowed_on_all() {
    for declared in all() {
        let tables: Vec<StreamTable<'_>> = StreamTable::all(&declared.0).collect();
        let n_indexed = tables.iter().filter(|it| it.form().is_some_and(|form| !form.indexes.is_empty())).count();
        let n_indexes: usize = tables.iter().filter_map(StreamTable::form).map(|form| form.indexes.len()).sum();
        for (attaches, n_indexes) in [(false, n_indexes), (true, n_indexed)] {
            let template = template(&declared, attaches);
            let roles = resources(&template, "AWS::IAM::Role");
            let roles = roles.flat_map(|(_, role)| role["Policies"].as_array().unwrap());
            let policies = roles.map(|policy| &policy["PolicyDocument"]);
            let people = resources(&template, "AWS::IAM::ManagedPolicy").map(|(_, it)| &it["PolicyDocument"]);
            let mut n_statements = 0;
            for statement in policies.chain(people).flat_map(|it| it["Statement"].as_array().unwrap()) {
                let n_wanted = match statement["Sid"].as_str() {
                    Some("Counters" | "DerivedItems" | "SliceAndDerivedItems" | "Table" | "Streams") => tables.len(),
                    Some("Indexes") => n_indexes,
                    _ => continue,
                };
                let stored: BTreeSet<String> =
                    statement["Resource"].as_array().unwrap().iter().map(ToString::to_string).collect();
                assert_eq!(stored.len(), n_wanted, "{statement}");
                n_statements += 1;
            }
            assert!(n_statements >= 12, "{n_statements}");
        }
    }
}

#[test]
fn logical_ids_are_used_once_and_refer_to_what_there_is() {
    for declared in all() {
        for attaches in [false, true] {
            let (text, template) = (text(&declared, attaches), template(&declared, attaches));
            let names = |part: &str| template[part].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
            let [parameters, resources] = ["Parameters", "Resources"].map(names);
            assert!(parameters.is_disjoint(&resources));
            // A map would hide an id that stands twice.
            let section = text.split("\nResources:\n").nth(1).unwrap().split("\nOutputs:\n").next().unwrap();
            let is_id =
                |line: &&str| line.starts_with("  ") && line[2..].starts_with(|c: char| c.is_ascii_alphanumeric());
            assert_eq!(section.lines().filter(is_id).count(), resources.len());
            for part in ["!Ref ", "!GetAtt "] {
                for named in text.split(part).skip(1) {
                    let id: String = named.chars().take_while(char::is_ascii_alphanumeric).collect();
                    // The transform makes the mappings.
                    let is_mapping = READERS.iter().any(|(reader, _)| id.starts_with(reader) && id.ends_with("Stream"));
                    assert!(id == "AWS" || is_mapping || parameters.contains(&id) || resources.contains(&id), "{id}");
                }
            }
            let construct = wrapped::cdk(&text);
            let alarms = resources_named(&template, "NotReadingAlarm");
            for id in alarms {
                assert!(construct.contains(&format!("      \"{id}\",\n")), "{id}");
            }
        }
    }
}

fn resources_named<'a>(template: &'a Value, ending: &'a str) -> impl Iterator<Item = &'a str> {
    resources(template, "AWS::CloudWatch::Alarm").map(|(id, _)| id).filter(move |id| id.ends_with(ending))
}

/// Most bytes of a function's variables, names and values together. Source: Lambda's quotas.
const VARIABLES_BYTES_MAX: usize = 4_096;

#[test]
fn the_variables_of_twenty_tables_with_names_of_24_characters_fit() {
    let tables = (0..20).map(|number| {
        let name = format!("{:x<22}{number:02}", "T");
        format!("[tables.{name}]\npartition-key = \"id\"\n[entity.E{number}]\ntable = \"{name}\"\n")
    });
    let manifest = tables.collect::<Vec<_>>().concat();
    let template = template(&manifest::load(&manifest).unwrap(), true);
    let called = "T".repeat(24);
    let arn = format!("arn:aws:dynamodb:ap-southeast-1:123456789012:table/{called}/stream/2026-01-01T00:00:00.000");
    let variables = at(&template, &["Globals", "Function", "Environment", "Variables"]).as_object().unwrap();
    let bytes = |value: &Value| match value.as_object().and_then(|it| it.iter().next()) {
        Some((function, of)) if function == "Ref" => {
            let default = &template["Parameters"][of.as_str().unwrap()]["Default"];
            default.as_str().map_or_else(|| default.to_string().len(), str::len).max(called.len())
        }
        Some((function, of)) if function == "Fn::Sub" => {
            let text = of.as_str().unwrap();
            text.split("${")
                .map(|part| part.split_once('}').map_or(part.len(), |(_, rest)| called.len() + rest.len()))
                .sum()
        }
        Some((function, of)) if function == "Fn::Join" => of[1].as_array().unwrap().len() * (arn.len() + 1),
        Some((function, _)) if function == "Fn::If" => "/opt/ripple.toml".len(),
        _ => panic!("{value}"),
    };
    let n_bytes: usize = variables.iter().map(|(name, value)| name.len() + bytes(value)).sum();
    assert!(n_bytes <= VARIABLES_BYTES_MAX && n_bytes > 3_000, "{n_bytes}");
}

// ---- Names of a manifest in a template: every legal one is read again as it is, and as a text ----

/// Names that YAML reads otherwise, or not at all, unless they are quoted.
#[rustfmt::skip]
const UGLY: [&str; 40] = [
    "@type", "#pk", "a: b", "on", "0x10", "null", "1e3", "=", "~", "- x", "? y", "it's", "say \"no\"", "%a", "`b`",
    "é", "日本", "${AWS::Region}", "{{pk}}", " before", "after ", "tab\tname", "line\nbreak", "\u{feff}", "\u{85}",
    "yes", "2024-01-15", "!Ref", "&a", "*a", "|", ">", "0o17", "1_000", "12:30:45", "<<", "{a}", "a #b",
    "back\\slash", "\u{2028}",
];

/// A text as TOML writes it: as JSON does, but for one character.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f")
}

/// A table whose key, type, time to live and index have these names; `None` if the manifest refuses one.
fn named([pk, sk, of_type, time_to_live, index, projected]: [&str; 6]) -> Option<String> {
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
        let text = named(six).unwrap_or_else(|| panic!("{six:?} is refused"));
        has(&text, six);
    }
}

#[test]
fn a_name_stays_as_it_is_in_a_module_and_a_construct() {
    let text = named(["${a}", "%{b}", "`c`", "d", "e", "f"]).unwrap();
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
        if let Some(text) = named(six) {
            has(&text, six);
        }
    }
}
