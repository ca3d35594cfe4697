//! The parts that the two templates share, and the filters in them: written once, and copied by this test.

use std::{env, fs};

use derive::{catalogue::Catalogue, schema::Schema};
use design::filters::{Needed, needed};
use functions::handler::Function;

use crate::infra::template::{BOTH, READERS, at, parsed, path, read, text};

pub(crate) fn shipped() -> (Schema, Catalogue) {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema).unwrap();
    (schema, catalogue)
}

/// The patterns of a function for the shipped table.
pub(crate) fn patterns(function: Function) -> Vec<String> {
    let (schema, catalogue) = shipped();
    match needed(&schema, &catalogue, &function.families()) {
        Needed::Matching(patterns) => patterns,
        other => panic!("{function} has patterns, and not: {other:?}"),
    }
}

/// Replaces the patterns in a resource.
fn with_filters(text: &str, resource: &str, patterns: &[String]) -> String {
    let (mut lines, mut is_ours) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("  ") && line.ends_with(':') && !line.starts_with("   ") {
            is_ours = line.trim() == format!("{resource}:");
        }
        if is_ours && line.trim().starts_with("- Pattern: ") {
            continue;
        }
        lines.push(line.to_owned());
        if is_ours && line.trim() == "- Filters:" {
            let indent = line.len() - line.trim_start().len() + 4;
            lines.extend(patterns.iter().map(|pattern| format!("{:indent$}- Pattern: '{pattern}'", "")));
        }
    }
    lines.join("\n") + "\n"
}

/// The template as it should be.
fn template() -> String {
    let all = READERS.iter();
    all.fold(text("template.yaml"), |text, (id, function)| with_filters(&text, id, &patterns(*function)))
}

const BEGIN: &str = "# >>> shared";
const END: &str = "# <<< shared";

/// The text between the marks, for each pair of marks.
fn regions(text: &str) -> Vec<String> {
    let region = |part: &str| part.split_once(END).expect("an end of what is shared").0.to_owned();
    text.split(BEGIN).skip(1).map(region).collect()
}

/// A shared part, as the template for an existing table needs it.
fn carried(region: &str) -> String {
    const TABLE: &str = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${TableName}";
    let replaced = [
        ("!GetAtt Table.StreamArn", "!Ref StreamArn"),
        // One pattern stands for all indexes.
        ("                  - !Sub ${Table.Arn}/index/GSI2\n", ""),
        ("              - !Sub ${Table.Arn}/index/GSI2\n", ""),
        ("!Sub ${Table.Arn}/index/GSI1", &format!("!Sub {TABLE}/index/*")),
        ("!Sub ${Table.Arn}", &format!("!Sub {TABLE}")),
        ("!GetAtt Table.Arn", &format!("!Sub {TABLE}")),
        (" TABLE_NAME: !Ref Table\n", " TABLE_NAME: !Ref TableName\n"),
        ("!Ref Table }", "!Ref TableName }"),
        ("${Table}", "${TableName}"),
        ("AttributeName: PK", "AttributeName: !Ref PartitionKey"),
        ("AttributeName: SK", "AttributeName: !Ref SortKey"),
    ];
    replaced.iter().fold(region.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The attaching template as it should be: its own text with the shared parts.
fn attach(template: &str) -> String {
    let held = text("attach.yaml");
    let mut parts = held.split(BEGIN);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let ours = regions(template);
    assert_eq!(parts.clone().count(), ours.len(), "as many places in both templates");
    for (part, region) in parts.zip(&ours) {
        let rest = part.split_once(END).expect("an end of what is shared").1;
        text.extend([BEGIN, &carried(region), END, rest]);
    }
    text
}

#[test]
fn filters_are_those_of_the_catalogue_and_the_attaching_template_shares_the_rest() {
    let template = template();
    let wanted = [template.clone(), attach(&template)];
    for (name, wanted) in BOTH.into_iter().zip(wanted) {
        if env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(path(name), &wanted).unwrap();
        }
        let differs = text(name).lines().zip(wanted.lines()).position(|(held, wanted)| held != wanted);
        let line = differs.map_or_else(String::new, |line| format!(" from line {} on", line + 1));
        assert!(
            text(name) == wanted,
            "infra/{name} is stale{line}: run UPDATE_EXPECT=1 cargo test -p tests --test offline infra::"
        );
    }
}

#[test]
fn a_mapping_has_its_functions_filters() {
    for (id, function) in READERS {
        let event = ["Resources", id, "Properties", "Events", "Stream", "Properties", "FilterCriteria"];
        let ours: Vec<_> = patterns(function).into_iter().map(|text| serde_json::json!({ "Pattern": text })).collect();
        for name in BOTH {
            let template = read(name);
            let choice = at(&template, &event)["Fn::If"].as_array().unwrap();
            assert_eq!(choice[0], "OwnConfig", "{name}");
            assert_eq!(choice[1]["Ref"], "AWS::NoValue", "a manifest's own table gets everything");
            assert_eq!(choice[2]["Filters"], serde_json::json!(ours), "{name}: {id}");
        }
    }
}

#[test]
fn nothing_in_the_attaching_template_names_the_main_table_of_the_other() {
    let attach = text("attach.yaml");
    for line in attach.lines() {
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        assert!(words.all(|word| !word.starts_with("Table.")) && !line.ends_with("!Ref Table"), "{line}");
    }
    assert!(parsed(&attach)["Resources"].get("Table").is_none());
}
