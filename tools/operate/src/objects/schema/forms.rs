//! The parts that several objects share.

use serde_json::{Value, json};

use super::{any_of, boolean, map, named, object, or_null, text, whole, words};

/// Each part with its name.
pub(super) fn parts() -> Vec<(&'static str, Value)> {
    let family = words(&["additive", "level_triggered"]);
    let attribute =
        json!({ "type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": words(&ATTRIBUTE_TYPES) });
    vec![
        ("key", object([("pk", text()), ("sk", text())])),
        ("item", map(&attribute)),
        ("family", family),
        ("time", json!({ "type": "string", "pattern": r"^\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$" })),
        ("finding", finding(false)),
        ("difference", finding(true)),
        ("effect", effect()),
        ("job", job()),
        ("unreadable_item", object([("derivation", text()), ("pk", text()), ("sk", text()), ("why", text())])),
        ("event_why", object([("id", text()), ("why", text())])),
    ]
}

/// Attribute types of DynamoDB's API.
const ATTRIBUTE_TYPES: [&str; 10] = ["S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"];

/// A finding. A difference may also state why it is a finding or undecided.
fn finding(is_difference: bool) -> Value {
    let item = or_null(&named("item"));
    let [derivation, pk, sk] = ["derivation", "pk", "sk"].map(|name| (name, text()));
    let [stored, derived] = ["stored", "derived"].map(|name| (name, item.clone()));
    let flaw = ("flaw?", text());
    if is_difference {
        object([derivation, pk, sk, stored, derived, flaw, ("why?", text())])
    } else {
        object([derivation, pk, sk, stored, derived, flaw])
    }
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
    let query = [("index", or_null(&text())), ("pk", text()), ("sk_from", text())];
    let [index, pk, sk] = query;
    let find = object([derivation.clone(), find, ("entity", text()), via, index, pk, sk]);
    let works = words(&["start_job", "continue_job"]);
    let works = object([derivation.clone(), ("effect", works), ("item", key())]);
    let [_, lists] = of("list");
    let lists = object([derivation.clone(), lists, ("attribute", text()), ("why", text())]);
    let plain = object([derivation, ("effect", words(&["unlist", "late"]))]);
    any_of(&[add, measure, look, later, find, works, lists, plain])
}

fn job() -> Value {
    let held = [
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
        ("held_by", any_of(&held)),
        ("touched", whole()),
        ("per_second", or_null(&whole())),
        ("pages", or_null(&object([("done", whole()), ("all", whole())]))),
        ("left_ms", or_null(&whole())),
        ("moves", whole()),
        ("last", or_null(&named("key"))),
        ("round", or_null(&object([("until", text()), ("has_begun", boolean())]))),
        ("started_at", named("time")),
        ("due_at", named("time")),
        ("moved_at", named("time")),
    ])
}
