//! Event filters: which records of the stream a function needs, as patterns of an event source mapping.
//!
//! *Keeps true*: a record from which planning asks anything of the function's derivations passes. What is sure to ask
//! nothing is kept out where a pattern can know, so that no invocation is paid for it.
//!
//! Planning asks only the derivations that look at the entity of an image, so those entities are what a function needs.
//! A record is of one of them by its key, or by what an image says of itself:
//!
//! - `Keys`, by what a key begins with. No attribute of the item is asked, so an item with a value of another type passes
//!   as any other, and so does a record that will not decode: the function is to see it and park it. The removal of an
//!   item passes too, though it has but an old image.
//! - the type attribute of either image, where the table has one: an item that says that it is of the entity, under a
//!   key that is not, is listed for a person.
//!
//! Counters stand behind the sort key of what they count, so those that are displayed are known by the target's key. A
//! function with level-triggered derivations is driven by the records of its own jobs too. Everything else that is kept
//! beside the data stands under keys of its own, and is kept out also where a ledger shares the table, unless the keys
//! of an entity begin with a field: then no prefix can tell.
//!
//! *Example*: `follower-count` wants `USER#{FollowerId} / FOLLOWS#{FolloweeId}`: partition keys that begin with `USER#`
//! and sort keys that begin with `FOLLOWS#`.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue,
    derivation::{Derivation, Family},
    schema::Schema,
};
use keys::{
    counter::{self, COUNTER},
    entity::Definition,
    fields::Fields,
    job,
    key::Key,
    template::Template,
};
use serde_json::{Map, Value, json};

/// Patterns of an event source mapping at most. Source: Lambda's quota, which can be raised to 10.
pub const PATTERNS_MAX: usize = 5;

/// Characters of a pattern at most. Source: the API of Lambda.
pub const PATTERN_CHARACTERS_MAX: usize = 4_096;

/// The records that a function needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// None: it has no derivation, and wants no event source mapping.
    Nothing,
    /// Those that match one of these patterns.
    Matching(Vec<String>),
    /// All: no patterns of the permitted number and length tell those that ask nothing.
    Everything,
}

/// What the text of a key attribute begins with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// It may be any.
    Any,
    /// This, and then something.
    With(String),
    /// This is all of it.
    Is(String),
}

/// What the keys of some items begin with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyStart {
    pk: Start,
    sk: Start,
}

/// The records that a function of these families needs.
#[must_use]
pub fn needed(schema: &Schema, catalogue: &Catalogue, families: &[Family]) -> Needed {
    let entities = entities(catalogue, families);
    if entities.is_empty() {
        return Needed::Nothing;
    }
    let forms: BTreeSet<KeyStart> = forms(schema, catalogue, families).into_iter().map(|(_, form)| form).collect();
    let exact = by_both_keys(schema, &forms).map(|patterns| [patterns, by_type(schema, &entities)].concat());
    exact.filter(|patterns| are_permitted(patterns)).map_or(Needed::Everything, Needed::Matching)
}

/// A record that a function needs, of those that filters can tell from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededRecord {
    /// What it is, in words: `the removal of a Follow`.
    pub what: String,
    /// The record as it stands in an event, as JSON.
    pub record: String,
}

/// What a function of these families needs, by samples: whatever else an event source mapping lets through, it must let
/// these. Each kind of item is there as it is put, changed and removed.
#[must_use]
pub fn samples(schema: &Schema, catalogue: &Catalogue, families: &[Family]) -> Vec<NeededRecord> {
    const EVENTS: [(&str, &str, &[&str]); 3] = [
        ("INSERT", "a new", &["NewImage"]),
        ("MODIFY", "a change of", &["NewImage", "OldImage"]),
        ("REMOVE", "the removal of", &["OldImage"]),
    ];
    let text = |start: &Start| match start {
        Start::Any => "1".to_owned(),
        Start::With(text) => format!("{text}1"),
        Start::Is(text) => text.clone(),
    };
    let mut samples = Vec::new();
    for (name, form) in forms(schema, catalogue, families) {
        let (pk, sk) = (text(&form.pk), text(&form.sk));
        let keys = [(&schema.layout.pk, &pk), (&schema.layout.sk, &sk)];
        let keys: Map<String, Value> =
            keys.map(|(name, text)| (name.clone(), json!({ "S": text }))).into_iter().collect();
        let of_type = schema.layout.entity_type.iter().map(|attribute| (attribute.clone(), json!({ "S": name })));
        let image: Map<String, Value> = keys.clone().into_iter().chain(of_type).collect();
        for (event, done, images) in EVENTS {
            let change = images.iter().map(|side| ((*side).to_owned(), json!(image)));
            let change: Map<String, Value> = change.chain([("Keys".to_owned(), json!(keys))]).collect();
            let record = json!({ "eventName": event, "eventSource": "aws:dynamodb", "dynamodb": change });
            samples.push(NeededRecord { what: format!("{done} {name}, {pk} / {sk}"), record: record.to_string() });
        }
    }
    samples
}

/// The entities that derivations of these families look at.
fn entities<'a>(catalogue: &'a Catalogue, families: &[Family]) -> BTreeSet<&'a str> {
    let ours = catalogue.derivations().filter(|derivation| families.contains(&derivation.kind.family()));
    ours.flat_map(|derivation| derivation.kind.entities()).collect()
}

/// What the keys of the items look like that a function of these families needs, each with its entity's name.
fn forms(schema: &Schema, catalogue: &Catalogue, families: &[Family]) -> Vec<(String, KeyStart)> {
    let ours = || catalogue.derivations().filter(|derivation| families.contains(&derivation.kind.family()));
    let entities = entities(catalogue, families);
    let definitions = entities.iter().filter(|name| **name != COUNTER).filter_map(|name| schema.entity(name));
    let mut forms: Vec<_> = definitions.map(|definition| (definition.name.clone(), of_entity(definition))).collect();
    forms.extend(ours().filter_map(|derivation| Some((COUNTER.to_owned(), of_counters(schema, derivation)?))));
    if ours().any(|derivation| derivation.kind.family() == Family::LevelTriggered) {
        forms.push((job::JOB.to_owned(), KeyStart { pk: Start::With(job::PARTITION.to_owned()), sk: Start::Any }));
    }
    forms
}

fn are_permitted(patterns: &[String]) -> bool {
    patterns.len() <= PATTERNS_MAX && patterns.iter().all(|text| text.chars().count() <= PATTERN_CHARACTERS_MAX)
}

fn of_entity(definition: &Definition) -> KeyStart {
    KeyStart { pk: start(&definition.key.pk), sk: start(&definition.key.sk) }
}

/// The counters that a derivation looks at; each stands behind its target's sort key.
fn of_counters(schema: &Schema, derivation: &Derivation) -> Option<KeyStart> {
    derivation.kind.entities().contains(&COUNTER).then_some(())?;
    let target = derivation.kind.refresh().and_then(|refresh| schema.entity(refresh.target()));
    let Some(target) = target.map(of_entity) else { return Some(KeyStart { pk: Start::Any, sk: Start::Any }) };
    let sk = match target.sk {
        Start::Is(sk) => Start::With(counter::prefix(&Key::new("", sk))),
        other => other,
    };
    Some(KeyStart { sk, ..target })
}

fn start(template: &Template) -> Start {
    // A field that is not given ends the prefix, so no value can be refused.
    let text = template.prefix(&Fields::new()).unwrap_or_default();
    match (text.is_empty(), template.field_names().is_empty()) {
        (true, _) => Start::Any,
        (false, true) => Start::Is(text),
        (false, false) => Start::With(text),
    }
}

/// Patterns of the forms that tell both keys, of those that tell the partition key alone, and of those that tell the sort
/// key alone; none where a form tells neither.
fn by_both_keys(schema: &Schema, forms: &BTreeSet<KeyStart>) -> Option<Vec<String>> {
    if forms.contains(&KeyStart { pk: Start::Any, sk: Start::Any }) {
        return None;
    }
    let mut patterns = Vec::new();
    for (any_pk, any_sk) in [(false, false), (false, true), (true, false)] {
        let told_alike = |form: &&KeyStart| (form.pk == Start::Any) == any_pk && (form.sk == Start::Any) == any_sk;
        let alike = || forms.iter().filter(told_alike);
        if alike().next().is_some() {
            let [pk, sk] = [alike().map(|form| &form.pk).collect(), alike().map(|form| &form.sk).collect()];
            let keys = [(&schema.layout.pk, pk, any_pk), (&schema.layout.sk, sk, any_sk)];
            let known = keys.into_iter().filter(|(_, _, any)| !any);
            let known = known.map(|(name, starts, _)| (name.clone(), json!({ "S": alternatives(starts) })));
            patterns.push(json!({ "dynamodb": { "Keys": in_order(known.collect()) } }).to_string());
        }
    }
    Some(patterns)
}

/// What matches any of these starts, without those that another covers.
fn alternatives(starts: Vec<&Start>) -> Value {
    let starts: BTreeSet<&Start> = starts.into_iter().collect();
    let is_covered = |start: &Start| {
        let (Start::With(text) | Start::Is(text)) = start else { return false };
        starts.iter().any(|other| matches!(other, Start::With(begin) if *other != start && text.starts_with(begin)))
    };
    let value = |start: &Start| match start {
        Start::Any => None,
        Start::With(text) => Some(json!({ "prefix": text })),
        Start::Is(text) => Some(json!(text)),
    };
    starts.iter().filter(|start| !is_covered(start)).filter_map(|start| value(start)).collect()
}

/// Patterns of the items that say that they are of these entities.
fn by_type(schema: &Schema, entities: &BTreeSet<&str>) -> Vec<String> {
    let Some(attribute) = &schema.layout.entity_type else { return Vec::new() };
    let pattern = |image: &str| json!({ "dynamodb": { image: { attribute: { "S": entities } } } }).to_string();
    ["NewImage", "OldImage"].map(pattern).into()
}

/// An object with its members in order of their names, whatever order the map keeps.
fn in_order(mut members: Vec<(String, Value)>) -> Map<String, Value> {
    members.sort_by(|one, other| one.0.cmp(&other.0));
    members.into_iter().collect()
}

/// What stands in a template for these records, as YAML: `FilterCriteria` of an event source mapping.
#[must_use]
pub fn yaml(needed: &Needed) -> String {
    match needed {
        Needed::Nothing => "# It needs no record: leave its event source mapping out.\n".to_owned(),
        Needed::Everything => "# It needs every record: leave FilterCriteria out.\n".to_owned(),
        Needed::Matching(patterns) => {
            let lines = patterns.iter().map(|text| format!("    - Pattern: '{}'\n", text.replace('\'', "''")));
            ["FilterCriteria:\n  Filters:\n".to_owned()].into_iter().chain(lines).collect()
        }
    }
}

/// The same as the API takes it; without the mapping, or without its filters, where there is nothing to say.
#[must_use]
pub fn criteria(needed: &Needed) -> Value {
    match needed {
        Needed::Nothing | Needed::Everything => Value::Null,
        Needed::Matching(patterns) => {
            let filters: Vec<Value> = patterns.iter().map(|text| json!({ "Pattern": text })).collect();
            json!({ "Filters": filters })
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(manifest: &str, families: &[Family], wanted: &Expect) {
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        wanted.assert_eq(&yaml(&needed(&schema, &catalogue, families)));
    }

    /// A table of users and of follows, with keys of these forms, and the count of one's followers.
    fn manifest(type_attribute: &str, user: (&str, &str), follow: (&str, &str)) -> String {
        format!(
            r##"
            [table]
            partition-key = "pk"
            sort-key = "a"
            {type_attribute}
            [entity.User]
            partition-key = "{}"
            sort-key = "{}"
            derived-attributes = ["followers"]
            [entity.Follow]
            partition-key = "{}"
            sort-key = "{}"
            [derivation.follower-count]
            kind = "count"
            from = "Follow"
            into = "User.followers"
            link = {{ id = "to" }}
            "##,
            user.0, user.1, follow.0, follow.1
        )
    }

    const ADDITIVE: &[Family] = &[Family::Additive];
    const BOTH: &[Family] = &[Family::Additive, Family::LevelTriggered];
    const FOLLOW: (&str, &str) = ("USER#{from}", "FOLLOWS#{to}");

    #[test]
    fn a_function_needs_the_entities_of_its_derivations() {
        let typed = manifest("type = \"Kind\"", ("USER#{id}", "PROFILE"), FOLLOW);
        check(
            &typed,
            ADDITIVE,
            &expect![[r#"
            FilterCriteria:
              Filters:
                - Pattern: '{"dynamodb":{"Keys":{"a":{"S":[{"prefix":"FOLLOWS#"}]},"pk":{"S":[{"prefix":"USER#"}]}}}}'
                - Pattern: '{"dynamodb":{"NewImage":{"Kind":{"S":["Follow"]}}}}'
                - Pattern: '{"dynamodb":{"OldImage":{"Kind":{"S":["Follow"]}}}}'
        "#]],
        );
    }

    #[test]
    fn displays_need_counters_by_their_targets_keys_and_what_is_driven_by_jobs_needs_jobs() {
        let untyped = manifest("", ("USER#{id}", "PROFILE"), FOLLOW);
        check(
            &untyped,
            BOTH,
            &expect![[r##"
            FilterCriteria:
              Filters:
                - Pattern: '{"dynamodb":{"Keys":{"a":{"S":[{"prefix":"FOLLOWS#"},{"prefix":"PROFILE#COUNT#"},"PROFILE"]},"pk":{"S":[{"prefix":"USER#"}]}}}}'
                - Pattern: '{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"JOBS#"}]}}}}'
        "##]],
        );
    }

    #[test]
    fn a_key_that_begins_with_a_field_is_told_by_the_other_and_by_none_where_neither_has_text() {
        let bare = manifest("", ("{id}", "PROFILE"), ("{from}", "it's {to}"));
        check(
            &bare,
            ADDITIVE,
            &expect![[r#"
            FilterCriteria:
              Filters:
                - Pattern: '{"dynamodb":{"Keys":{"a":{"S":[{"prefix":"it''s "}]}}}}'
        "#]],
        );
        let neither = manifest("type = \"Kind\"", ("USER#{id}", "PROFILE"), ("{from}", "{to}"));
        check(
            &neither,
            ADDITIVE,
            &expect![[r"
            # It needs every record: leave FilterCriteria out.
        "]],
        );
    }

    #[test]
    fn a_function_without_derivations_needs_nothing() {
        let (schema, _) = manifest::load(&manifest("", ("USER#{id}", "PROFILE"), FOLLOW)).unwrap();
        let empty = Catalogue::new(&schema, Vec::new()).unwrap();
        assert_eq!(needed(&schema, &empty, BOTH), Needed::Nothing);
        assert_eq!(criteria(&Needed::Nothing), Value::Null);
    }

    #[test]
    fn patterns_past_what_lambda_takes_are_none() {
        let long = format!("{}{{from}}", "F".repeat(PATTERN_CHARACTERS_MAX));
        let long = manifest("", ("USER#{id}", "PROFILE"), (&long, "FOLLOWS#{to}"));
        check(
            &long,
            ADDITIVE,
            &expect![[r"
            # It needs every record: leave FilterCriteria out.
        "]],
        );
    }
}
