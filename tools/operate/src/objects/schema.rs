//! The JSON Schema of the objects of `--json` and of the console's addresses that end in `.json`.
//!
//! It names each object under `$defs`, by its command: `why`, `catalogue_diff`, `console_flow`. It allows no unknown
//! names, so it is exact for the release that prints it. The tests check each printed object against it.

mod commands;

use serde_json::{Map, Value, json};

/// The schema, of draft 2020-12.
#[must_use]
pub fn json_schema() -> Value {
    let printed = commands::commands().into_iter().chain(operator());
    let printed: Vec<(&str, Value)> = printed.map(|(name, form)| (name, with_version(form))).collect();
    let any_of: Vec<Value> = printed.iter().map(|(name, _)| named(name)).collect();
    let parts = parts().into_iter().chain(printed);
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

/// An object with exactly these names. Spaces separate names of one form; a name that ends in `?` is optional.
fn object<const N: usize>(forms: [(&str, Value); N]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (names, form) in forms {
        for name in names.split(' ') {
            properties.insert(name.trim_end_matches('?').to_owned(), form.clone());
            required.extend((!name.ends_with('?')).then_some(name));
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// One object with the names of both.
fn both(mut one: Value, other: &Value) -> Value {
    let more = other.get("properties").and_then(Value::as_object);
    if let (Some(properties), Some(more)) = (one.get_mut("properties").and_then(Value::as_object_mut), more) {
        properties.extend(more.clone());
    }
    let more = other.get("required").and_then(Value::as_array);
    if let (Some(required), Some(more)) = (one.get_mut("required").and_then(Value::as_array_mut), more) {
        required.extend(more.clone());
    }
    one
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

fn or_null(form: &Value) -> Value {
    json!({ "anyOf": [form, { "type": "null" }] })
}

fn any_of(forms: &[Value]) -> Value {
    json!({ "anyOf": forms })
}

// ---- Parts that several objects share ----

/// Each part with its name.
fn parts() -> Vec<(&'static str, Value)> {
    let family = words(&["additive", "level_triggered"]);
    let attribute =
        json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": words(&ATTRIBUTE_TYPES) });
    vec![
        ("key", object([("pk sk", text())])),
        ("item", map(&attribute)),
        ("family", family),
        ("time", json!({ "type": "string", "pattern": r"^\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$" })),
        ("finding", finding(false)),
        ("difference", finding(true)),
        ("effect", effect()),
        ("job", job()),
        ("unreadable_item", object([("derivation pk sk why", text())])),
        ("event_why", object([("id why", text())])),
    ]
}

/// Attribute types of DynamoDB's API.
const ATTRIBUTE_TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"];

/// A finding. A difference may also state why it is a finding or undecided.
fn finding(is_difference: bool) -> Value {
    let items = or_null(&named("item"));
    let finding = object([("derivation pk sk", text()), ("stored derived", items), ("flaw?", text())]);
    if is_difference { both(finding, &object([("why?", text())])) } else { finding }
}

fn effect() -> Value {
    let key = || named("key");
    let of = |effect: &str| [("derivation", text()), ("effect", json!({ "const": effect }))];
    let [derivation, add] = of("add");
    let add = object([derivation.clone(), add, ("item", key()), ("count", whole()), ("sum", text())]);
    let [_, measure] = of("measure");
    let measure = object([derivation.clone(), measure, ("item", key()), ("value", text())]);
    let [_, look] = of("look");
    let look = object([derivation.clone(), look, ("entity", text()), ("item", key())]);
    let [_, later] = of("refresh_later");
    let later = object([derivation.clone(), later, ("entity", text()), ("item", key()), ("at_ms", whole())]);
    let [_, find] = of("find");
    let via = ("via", or_null(&text()));
    let find = object([
        derivation.clone(),
        find,
        ("entity", text()),
        via,
        ("index", or_null(&text())),
        ("pk sk_from", text()),
    ]);
    let works = words(&["start_job", "continue_job"]);
    let works = object([derivation.clone(), ("effect", works), ("item", key())]);
    let [_, lists] = of("list");
    let lists = object([derivation.clone(), lists, ("attribute why", text())]);
    let plain = object([derivation, ("effect", words(&["unlist", "late"]))]);
    any_of(&[add, measure, look, later, find, works, lists, plain])
}

fn job() -> Value {
    let stored = [
        object([("parked_change", text())]),
        object([("possible_loss", text())]),
        object([("no_pulse", or_null(&named("time")))]),
        object([("young_pulse", named("time"))]),
        json!({ "type": "null" }),
    ];
    object([
        ("id", text()),
        ("key", named("key")),
        ("kind", words(&["fan_out", "cascade"])),
        ("derivation", text()),
        ("item", named("key")),
        ("state", words(&["running", "waiting", "paused"])),
        ("has_begun", boolean()),
        ("held_by", any_of(&stored)),
        ("touched", whole()),
        ("per_second", or_null(&whole())),
        ("pages", or_null(&object([("done all", whole())]))),
        ("left_ms", or_null(&whole())),
        ("moves", whole()),
        ("last", or_null(&named("key"))),
        ("round", or_null(&object([("until", text()), ("has_begun", boolean())]))),
        ("started_at due_at moved_at", named("time")),
    ])
}

// ---- Objects about one table: those that the console serves too, and those of an operator's commands ----

/// Each object with its name.
fn operator() -> Vec<(&'static str, Value)> {
    let repair = repair();
    vec![
        ("verify", verify()),
        ("why", why()),
        ("repair", repair.clone()),
        ("backfill", repair),
        ("parked", parked()),
        ("redrive", redrive()),
        ("jobs", jobs()),
        ("console_flow", flow()),
        ("console_cost", spent()),
        ("console_query", query()),
        ("console_pattern", pattern()),
        ("console_error", object([("error", text())])),
    ]
}

fn verify() -> Value {
    let loss = object([
        ("family", named("family")),
        ("stream shard", text()),
        ("since until", named("time")),
        ("late_ms", whole()),
        ("cleared", boolean()),
    ]);
    let compared = object([("derivation", text()), ("items", whole()), ("example", named("key")), ("why", text())]);
    object([
        ("items ignored", whole()),
        ("findings undecided waiting", list(&named("difference"))),
        ("unreadable", list(&named("unreadable_item"))),
        ("about_nothing", list(&counts_about_nothing())),
        ("compared_types", list(&compared)),
        ("unproven", whole()),
        ("read_units", number()),
        ("possible_loss", list(&loss)),
    ])
}

/// A derivation's counts about items that do not exist.
fn counts_about_nothing() -> Value {
    object([("derivation", text()), ("counts", whole()), ("examples", list(&named("key")))])
}

/// States of a derived value.
const STATES: [&str; 5] = ["right", "differs", "waits", "flawed", "undecided"];

fn why() -> Value {
    let unreadable = object([("derivation", text()), ("attribute", or_null(&text())), ("why", text())]);
    let parked = object([("id", text()), ("family", named("family")), ("item", named("key")), ("cause", text())]);
    let change = object([
        ("event", text()),
        ("name", words(&["INSERT", "MODIFY", "REMOVE"])),
        ("created_at", or_null(&named("time"))),
        ("shard sequence_number", text()),
        ("item", named("key")),
        ("effects", list(&named("effect"))),
    ]);
    let changes = object([("records concerning", whole()), ("listed", list(&change))]);
    object([
        ("item", named("key")),
        ("types", list(&text())),
        ("exists", boolean()),
        ("values", list(&value())),
        ("counters", list(&counter())),
        ("unreadable", list(&unreadable)),
        ("parked", list(&parked)),
        ("undecodable", whole()),
        ("jobs", list(&named("key"))),
        ("changes", or_null(&changes)),
        ("read_units", number()),
    ])
}

fn value() -> Value {
    let source = object([
        ("role", words(&["itself", "item", "counter", "first"])),
        ("item", or_null(&named("key"))),
        ("derivation", or_null(&text())),
        ("exists", boolean()),
        ("stored", named("item")),
    ]);
    object([
        ("derivation kind", text()),
        ("terms", list(&text())),
        ("stored derived", named("item")),
        ("differing", list(&text())),
        ("should_exist", or_null(&boolean())),
        ("sources", list(&source)),
        ("state", words(&STATES)),
        ("why", or_null(&text())),
    ])
}

fn counter() -> Value {
    let watermark = object([("name", text()), ("shard", or_null(&text())), ("sequence_number", text())]);
    let item = object([
        ("item", named("key")),
        ("count", whole()),
        ("sum", text()),
        ("revision", or_null(&text())),
        ("satellites", or_null(&whole())),
        ("watermarks", list(&watermark)),
    ]);
    let listed = object([("item", named("key")), ("count", whole()), ("sum", text())]);
    let sources = object([
        ("index", or_null(&text())),
        ("pk sk_from", text()),
        ("all_read", boolean()),
        ("number unreadable", whole()),
        ("count", whole()),
        ("sum", text()),
        ("listed", list(&listed)),
    ]);
    object([
        ("derivation kind", text()),
        ("terms", list(&text())),
        ("target", named("key")),
        ("count", whole()),
        ("sum", text()),
        ("history", boolean()),
        ("items", list(&item)),
        ("sources", or_null(&sources)),
        ("state", words(&STATES)),
        ("why", or_null(&text())),
    ])
}

fn repair() -> Value {
    let remedies = [
        object([("remedy", words(&["derive", "set_index_keys", "delete"]))]),
        object([("remedy", words(&["add"])), ("count", whole()), ("sum", text())]),
    ];
    let repair = object([
        ("finding", named("finding")),
        ("remedy", or_null(&any_of(&remedies))),
        ("outcome", words(&["would", "done", "not_needed", "refused", "overtaken"])),
        ("why", or_null(&text())),
    ]);
    let left = object([("kind", words(&["undecided", "waiting"])), ("difference", named("difference"))]);
    object([
        ("repairs", list(&repair)),
        ("items done not_needed refused would undecided waiting unproven unreadable", whole()),
        ("left", list(&left)),
    ])
}

fn parked() -> Value {
    let change = object([
        ("id", text()),
        ("family", named("family")),
        ("parked_at", named("time")),
        ("stream shard sequence_number", or_null(&text())),
        ("item", or_null(&named("key"))),
        ("cause", text()),
    ]);
    let about_change = both(change.clone(), &object([("why", list(&text()))]));
    let about = object([("pk", text()), ("sk", or_null(&text()))]);
    // A record that cannot be read is given as text.
    let whole_change = both(change.clone(), &object([("record", Value::Bool(true))]));
    let recount = object([("derivation pk sk", or_null(&text())), ("event why", text()), ("listed_at", named("time"))]);
    any_of(&[
        object([("parked", list(&change)), ("recount", list(&recount)), ("unreadable", whole())]),
        object([("parked", list(&whole_change)), ("unknown", list(&text()))]),
        object([("about", about), ("parked", list(&about_change))]),
        object([("discarded", list(&discarded())), ("unknown", list(&text()))]),
    ])
}

fn discarded() -> Value {
    let outcomes = words(&["discarded", "was_not_parked_any_more", "still_parked", "failed", "not_tried"]);
    let of_derivation = || list(&object([("derivation", text()), ("item", named("key"))]));
    object([
        ("id", text()),
        ("family", named("family")),
        ("outcome", outcomes),
        ("why", or_null(&text())),
        ("counts", of_derivation()),
        ("items", list(&named("key"))),
        ("searches cascades", of_derivation()),
        ("jobs", list(&named("key"))),
        ("unknown", or_null(&text())),
    ])
}

fn redrive() -> Value {
    let outcomes = words(&["applied", "was_not_parked_any_more", "still_parked", "failed", "not_tried"]);
    let redriven =
        object([("id", text()), ("family", named("family")), ("outcome", outcomes), ("why", or_null(&text()))]);
    object([("redriven", list(&redriven)), ("unknown", list(&text()))])
}

fn jobs() -> Value {
    let outcomes =
        ["paused", "resumed", "cancelled", "was_not_paused", "was_paused_already", "had_ended", "failed", "not_tried"];
    let ordered = object([("id", text()), ("outcome", words(&outcomes)), ("why", or_null(&text()))]);
    any_of(&[
        object([("jobs", list(&named("job"))), ("unknown?", list(&text()))]),
        object([("jobs", list(&ordered)), ("unknown", list(&text()))]),
    ])
}

/// The changes that the console's page of the flow shows.
fn flow() -> Value {
    let done = |what: &'static str| object([("derivation", text()), (what, text())]);
    let attribute = object([("name", text()), ("old", or_null(&text())), ("new", or_null(&text()))]);
    let write = object([
        ("table", words(&["main", "ledger"])),
        ("item", named("key")),
        ("effects", list(&done("what"))),
        ("at", named("time")),
        ("write_units", number()),
        ("shared_with", whole()),
    ]);
    let trouble = words(&["again", "parked", "refused", "unreadable", "killed"]);
    let trouble = object([("outcome", trouble), ("why", text())]);
    let delivery = object([
        ("function", text()),
        ("began_at", named("time")),
        ("elapsed_ms", whole()),
        ("writes", list(&write)),
        ("written", whole()),
        ("trouble", or_null(&trouble)),
    ]);
    let change = object([
        ("event", text()),
        ("name", words(&["INSERT", "MODIFY", "REMOVE"])),
        ("entity", text()),
        ("item", named("key")),
        ("created_at", or_null(&named("time"))),
        ("came_at", named("time")),
        ("changed", list(&attribute)),
        ("more_changed", whole()),
        ("asked", list(&done("effect"))),
        ("deliveries", list(&delivery)),
        ("delivered", whole()),
    ]);
    object([("changes", list(&change))])
}

/// The write units that the console's page of costs shows.
fn spent() -> Value {
    let units = || ("ripple by_hand", number());
    let written = object([("writes", whole()), ("write_units", number())]);
    let slot = object([("began_at", named("time")), units()]);
    object([
        ("write_units", object([units()])),
        ("derivations", map(&written)),
        ("ledger", written),
        ("conflicts", map(&whole())),
        ("slot_ms", whole()),
        ("slots", list(&slot)),
    ])
}

/// The result of the console's query.
fn query() -> Value {
    object([("items", list(&named("item"))), ("read_units", number()), ("more", boolean())])
}

fn pattern() -> Value {
    let read = object([
        ("operation condition", text()),
        ("items", or_null(&list(&named("item")))),
        ("read_units", or_null(&number())),
        ("error", or_null(&text())),
    ]);
    object([("id title", text()), ("values", list(&text())), ("reads", list(&read))])
}
