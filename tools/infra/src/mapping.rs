//! The event source mapping of a function, as the template deploys it with the default of each parameter, and its
//! filters: which records of the stream the function needs, as patterns.
//!
//! The template has its numbers from here.
//!
//! *Keeps true*: every record that planning needs for one of the function's derivations passes. A record that planning
//! certainly does not need is dropped if a pattern can express that, so that no invocation is paid for it.
//!
//! Planning needs a record only for derivations that read the entity of an image, so the function needs those entities.
//! A record belongs to one of them by its key, or by the type attribute of an image:
//!
//! - `Keys`: by the prefix of the keys. No attribute of the item matters, so an item with a value of a wrong type
//!   passes, and so does a record that does not decode: the function must see and park it. The removal of an item
//!   passes too, although it has only an old image.
//! - The type attribute of either image, if the table has one. An item that claims to be of the entity, but has another
//!   form of key, is listed for an operator.
//!
//! The sort key of a counter or an entry begins with the sort key of its target, so the target's key identifies those
//! that are displayed. A function with level-triggered derivations also needs the records of its own jobs. All other
//! bookkeeping has keys of its own, and is dropped even if a ledger shares the table; only if the keys of an entity
//! begin with a field, no prefix can separate them.
//!
//! With [several tables](keys::tables) each stream has filters of its own: those of the entities in its table. Where a
//! key is a value as it is, no prefix separates items, so such a table's stream has none.
//!
//! *Example*: `follower-count` needs `USER#{FollowerId} / FOLLOWS#{FolloweeId}`: partition keys that begin with
//! `USER#`, and sort keys that begin with `FOLLOWS#`.

use std::{borrow::Cow, collections::BTreeSet};

use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, schema::Schema};
use engine::ledger::LedgerKind;
use keys::{
    counter,
    entity::Definition,
    entry::{self, ENTRIES},
    fields::Fields,
    job,
    key::Key,
    tables::{KeyAttribute, TableForm},
    template::Template,
};
use serde_json::{Map, Value, json};
use stream::{
    filter::{FilterError, Filters},
    mapping::{LAMBDA_POLL_MS, Mapping, OnFailure, StartingPosition},
};

use crate::NOTHING;

/// Records of a batch.
pub const BATCH_SIZE: u32 = 500;

/// How long to gather a batch, in seconds.
pub const BATCHING_WINDOW_S: u32 = 5;

/// Length of the tumbling windows under watermarks, in seconds: only events of a tumbling window name their shard.
pub const TUMBLING_WINDOW_S: u32 = 60;

/// Lanes of a shard for a function that counts nothing.
pub const LANES: u32 = 2;

/// Age at which a record is given up, in seconds: 23 hours, one less than a stream keeps its records.
pub(crate) const RECORD_AGE_S: u64 = 82_800;

/// The mapping of a function that runs these families.
#[must_use]
pub fn mapping(name: &str, stream_arn: &str, families: &[Family], ledger: LedgerKind, filters: Filters) -> Mapping {
    let counts = families.contains(&Family::Additive);
    // Under watermarks a change that Lambda gives up would be passed by the next batch, and lost.
    let is_kept = counts && ledger == LedgerKind::Watermarks;
    Mapping {
        name: name.to_owned(),
        stream_arn: stream_arn.to_owned(),
        batch_size: usize::try_from(BATCH_SIZE).unwrap_or(usize::MAX),
        batching_window_ms: u64::from(BATCHING_WINDOW_S) * 1_000,
        tumbling_window_seconds: if is_kept { TUMBLING_WINDOW_S.into() } else { 0 },
        // Lanes would cut the batches of a function that counts into pieces, which conflict.
        parallelization_factor: if counts { 1 } else { usize::try_from(LANES).unwrap_or(1) },
        retry_attempts_max: None,
        record_age_ms_max: (!is_kept).then_some(RECORD_AGE_S * 1_000),
        report_batch_item_failures: true,
        filters,
        on_failure: Some(OnFailure::S3),
        starting_position: StartingPosition::TrimHorizon,
        idle_poll_ms: LAMBDA_POLL_MS,
    }
}

/// The filters of a mapping for a function that needs these records.
///
/// # Errors
///
/// [`FilterError`] if Lambda would refuse a pattern.
pub fn filters(needed: &Needed) -> Result<Filters, FilterError> {
    match needed {
        Needed::Nothing => Filters::new([NOTHING]),
        Needed::Matching(patterns) => Filters::new(patterns),
        Needed::Everything => Ok(Filters::default()),
    }
}

// ---- filters ----

/// Most patterns of an event source mapping. Source: Lambda's quota, which can be raised to 10.
pub const PATTERNS_MAX: usize = 5;

/// Most characters of a pattern. Source: the API of Lambda.
pub const PATTERN_CHARACTERS_MAX: usize = 4_096;

/// The records that a function needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needed {
    /// None: it has no derivation, and needs no event source mapping.
    Nothing,
    /// Records that match one of these patterns.
    Matching(Vec<String>),
    /// All records: no patterns of the permitted number and length can separate them.
    Everything,
}

/// The filters for a function that runs these families, on the stream of a table.
#[must_use]
pub fn needed(table: StreamTable<'_>, catalogue: &Catalogue, families: &[Family]) -> Needed {
    let forms = forms(table, catalogue, families);
    if forms.is_empty() {
        return Needed::Nothing;
    }
    let entities = entities(catalogue, families);
    let exact = by_both_keys(table, &forms).map(|patterns| [patterns, by_type(table, &entities)].concat());
    exact.filter(|patterns| are_permitted(patterns)).map_or(Needed::Everything, Needed::Matching)
}

/// The entities that derivations of these families read.
#[must_use]
pub fn entities<'a>(catalogue: &'a Catalogue, families: &[Family]) -> BTreeSet<&'a str> {
    let ours = catalogue.derivations().filter(|derivation| families.contains(&derivation.kind.family()));
    ours.flat_map(|derivation| derivation.kind.entities()).collect()
}

/// The beginnings of the keys of the items that a function of these families needs of a table.
fn forms(table: StreamTable<'_>, catalogue: &Catalogue, families: &[Family]) -> BTreeSet<KeyStart> {
    let schema = table.schema;
    let ours = || catalogue.derivations().filter(|derivation| families.contains(&derivation.kind.family()));
    let entities = entities(catalogue, families);
    let here = entities.iter().filter(|name| table.holds(name));
    let definitions = here.filter_map(|name| schema.entity(name)).filter(|it| !it.is_own());
    let mut forms: BTreeSet<KeyStart> = definitions.map(|it| table.start(it)).collect();
    if table.form.is_some() {
        return forms;
    }
    forms.extend(ours().filter_map(|derivation| of_own(schema, derivation)));
    if ours().any(|derivation| derivation.kind.family() == Family::LevelTriggered) {
        forms.insert(KeyStart { pk: Start::With(job::PARTITION.to_owned()), sk: Start::Any });
    }
    forms
}

fn are_permitted(patterns: &[String]) -> bool {
    patterns.len() <= PATTERNS_MAX && patterns.iter().all(|text| text.chars().count() <= PATTERN_CHARACTERS_MAX)
}

/// The counters or entries that a derivation reads; the sort key of each begins with its target's.
fn of_own(schema: &Schema, derivation: &Derivation) -> Option<KeyStart> {
    let own = |name: &&str| schema.entity(name).is_some_and(Definition::is_own);
    let entity = derivation.kind.entities().into_iter().find(own)?;
    let target = derivation.kind.refresh().and_then(|refresh| schema.entity(refresh.target()));
    // The derivation that reads entries needs the records that the one that makes them needs.
    if target.is_some_and(Definition::is_own) {
        return None;
    }
    let Some(target) = target.map(of_entity) else { return Some(KeyStart { pk: Start::Any, sk: Start::Any }) };
    let sk = match target.sk {
        Start::Is(sk) => Start::With(match entity.strip_suffix(ENTRIES) {
            Some(name) => entry::prefix(&Key::new("", sk), name),
            _ => counter::prefix(&Key::new("", sk)),
        }),
        other => other,
    };
    Some(KeyStart { sk, ..target })
}

/// Patterns for the forms with a known beginning of both keys, of the partition key only, and of the sort key only.
/// `None` if neither is known for some form.
fn by_both_keys(table: StreamTable<'_>, forms: &BTreeSet<KeyStart>) -> Option<Vec<String>> {
    if forms.contains(&KeyStart { pk: Start::Any, sk: Start::Any }) {
        return None;
    }
    let declared = table.declared();
    let mut patterns = Vec::new();
    for (any_pk, any_sk) in [(false, false), (false, true), (true, false)] {
        let has_same_keys = |form: &&KeyStart| (form.pk == Start::Any) == any_pk && (form.sk == Start::Any) == any_sk;
        let alike = || forms.iter().filter(has_same_keys);
        if alike().next().is_some() {
            let [pk, sk] = [alike().map(|form| &form.pk).collect(), alike().map(|form| &form.sk).collect()];
            let keys = [(Some(&declared.pk), pk, any_pk), (declared.sk.as_ref(), sk, any_sk)];
            let known = keys.into_iter().filter(|(_, _, any)| !any);
            let known = known.filter_map(|(attribute, starts, _)| {
                attribute.map(|it| (it.name.clone(), json!({ "S": alternatives(starts) })))
            });
            patterns.push(json!({ "dynamodb": { "Keys": in_order(known.collect()) } }).to_string());
        }
    }
    Some(patterns)
}

/// Matches any of these beginnings, without those that another one covers.
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

/// Patterns for items whose type attribute names one of these entities.
fn by_type(table: StreamTable<'_>, entities: &BTreeSet<&str>) -> Vec<String> {
    let declared = table.declared();
    let Some(attribute) = declared.type_attribute() else { return Vec::new() };
    let pattern = |image: &str| json!({ "dynamodb": { image: { attribute: { "S": entities } } } }).to_string();
    ["NewImage", "OldImage"].map(pattern).into()
}

/// An object with its members in the order of their names, whatever order the map has.
fn in_order(mut members: Vec<(String, Value)>) -> Map<String, Value> {
    members.sort_by(|one, other| one.0.cmp(&other.0));
    members.into_iter().collect()
}

/// The `FilterCriteria` of an event source mapping for these records, as a template takes them in YAML.
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

/// The same as the API takes it; null without a mapping, and empty without filters.
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

// ---- The tables whose streams are filtered, and how the keys in them begin ----

/// A table with a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamTable<'a> {
    schema: &'a Schema,
    /// One of [several](keys::tables); otherwise the table whose keys are the layout's.
    form: Option<&'a TableForm>,
}

impl<'a> StreamTable<'a> {
    /// All tables with a stream: first the one whose keys are the layout's.
    pub fn all(schema: &'a Schema) -> impl Iterator<Item = Self> {
        let forms = schema.layout.forms.iter().flat_map(|forms| &forms.0).map(Some);
        [None].into_iter().chain(forms).map(move |form| Self { schema, form })
    }

    /// The table's form, where it is one of several.
    #[must_use]
    pub fn form(&self) -> Option<&'a TableForm> {
        self.form
    }

    /// What it is like: its own form, or that of the layout.
    #[must_use]
    pub fn declared(&self) -> Cow<'a, TableForm> {
        self.form.map_or_else(|| Cow::Owned(self.schema.layout.own_table()), Cow::Borrowed)
    }

    /// Are the items of this entity in the table?
    fn holds(&self, entity: &str) -> bool {
        let Some(forms) = &self.schema.layout.forms else { return true };
        let table = self.schema.entity(entity).and_then(|definition| forms.of_entity(definition));
        table.map(|table| &table.name) == self.form.map(|form| &form.name)
    }

    /// How the keys of an entity's items begin, as they are stored.
    fn start(&self, definition: &Definition) -> KeyStart {
        let KeyStart { pk, sk } = of_entity(definition);
        let Some(form) = self.form else { return KeyStart { pk, sk } };
        let is_text = |attribute: Option<&KeyAttribute>| attribute.is_some_and(|attribute| !attribute.is_plain);
        // Inside, a partition key begins with the name of its table.
        let pk = if is_text(Some(&form.pk)) { pk.without(&format!("{}#", form.name)) } else { Start::Any };
        KeyStart { pk, sk: if is_text(form.sk.as_ref()) { sk } else { Start::Any } }
    }
}

/// The beginning of a key attribute's text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    /// Any text.
    Any,
    /// A text that begins with this, and continues.
    With(String),
    /// Exactly this text.
    Is(String),
}

/// The beginnings of the keys of some items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeyStart {
    pk: Start,
    sk: Start,
}

impl Start {
    fn without(self, prefix: &str) -> Self {
        let rest = |text: &str| text.strip_prefix(prefix).unwrap_or_default().to_owned();
        match self {
            Self::Is(text) => Self::Is(rest(&text)),
            Self::With(text) if text.len() > prefix.len() => Self::With(rest(&text)),
            Self::With(_) | Self::Any => Self::Any,
        }
    }
}

/// How the keys of an entity's items begin, inside.
fn of_entity(definition: &Definition) -> KeyStart {
    KeyStart { pk: start(&definition.key.pk), sk: start(&definition.key.sk) }
}

fn start(template: &Template) -> Start {
    // The prefix ends at the first field, and no field is given, so no value can be refused.
    let text = template.prefix(&Fields::new()).unwrap_or_default();
    match (text.is_empty(), template.field_names().is_empty()) {
        (true, _) => Start::Any,
        (false, true) => Start::Is(text),
        (false, false) => Start::With(text),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn only(schema: &Schema) -> StreamTable<'_> {
        StreamTable::all(schema).next().unwrap()
    }

    fn check(manifest: &str, families: &[Family], wanted: &Expect) {
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        wanted.assert_eq(&yaml(&needed(only(&schema), &catalogue, families)));
    }

    /// A table of users and follows with keys of these forms, and the count of a user's followers.
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
    fn a_function_needs_the_entries_that_its_derivations_read() {
        let text = r##"
            [table]
            partition-key = "pk"
            sort-key = "a"
            [entity.Product]
            partition-key = "PRODUCT#{id}"
            sort-key = "PRODUCT"
            derived-attributes = ["lowest"]
            [entity.Offer]
            partition-key = "OFFER#{offer}"
            sort-key = "OFFER"
            attributes = ["product", "price"]
            [derivation.cheapest]
            kind = "extreme"
            from = "Offer"
            into = "Product.lowest"
            link = { id = "product" }
            min = "price"
        "##;
        check(
            text,
            &[Family::LevelTriggered],
            &expect![[r#"
            FilterCriteria:
              Filters:
                - Pattern: '{"dynamodb":{"Keys":{"a":{"S":[{"prefix":"PRODUCT#RIPPLE#cheapest#"},"OFFER","PRODUCT"]},"pk":{"S":[{"prefix":"OFFER#"},{"prefix":"PRODUCT#"}]}}}}'
                - Pattern: '{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"JOBS#"}]}}}}'
        "#]],
        );
        check(text, ADDITIVE, &expect![["# It needs no record: leave its event source mapping out.\n"]]);
    }

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
    fn an_item_whose_key_begins_with_a_field_is_matched_by_its_other_key_if_that_has_text() {
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
        assert_eq!(needed(only(&schema), &empty, BOTH), Needed::Nothing);
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
