//! The objects about one table: those that the console serves too, and those of an operator's commands.

use serde_json::Value;

use super::{any_of, boolean, list, map, named, number, object, or_null, text, whole, words};

/// Each object with its name.
pub(super) fn operator() -> Vec<(&'static str, Value)> {
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
        ("stream", text()),
        ("shard", text()),
        ("since", named("time")),
        ("until", named("time")),
        ("late_ms", whole()),
        ("cleared", boolean()),
    ]);
    let about = object([("derivation", text()), ("counts", whole()), ("examples", list(&named("key")))]);
    let compared = object([("derivation", text()), ("items", whole()), ("example", named("key")), ("why", text())]);
    let differences = list(&named("difference"));
    object([
        ("items", whole()),
        ("ignored", whole()),
        ("findings", differences.clone()),
        ("undecided", differences.clone()),
        ("waiting", differences),
        ("unreadable", list(&named("unreadable_item"))),
        ("about_nothing", list(&about)),
        ("compared_types", list(&compared)),
        ("unproven", whole()),
        ("read_units", number()),
        ("possible_loss", list(&loss)),
    ])
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
        ("shard", text()),
        ("sequence_number", text()),
        ("item", named("key")),
        ("effects", list(&named("effect"))),
    ]);
    let changes = object([("records", whole()), ("concerning", whole()), ("listed", list(&change))]);
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
        ("derivation", text()),
        ("kind", text()),
        ("terms", list(&text())),
        ("stored", named("item")),
        ("derived", named("item")),
        ("differing", list(&text())),
        ("should_exist", or_null(&boolean())),
        ("sources", list(&source)),
        ("state", words(&STATES)),
        ("why", or_null(&text())),
    ])
}

fn counter() -> Value {
    let tally = || [("count", whole()), ("sum", text())];
    let [count, sum] = tally();
    let watermark = object([("name", text()), ("shard", or_null(&text())), ("sequence_number", text())]);
    let item = object([
        ("item", named("key")),
        count.clone(),
        sum.clone(),
        ("revision", or_null(&text())),
        ("satellites", or_null(&whole())),
        ("watermarks", list(&watermark)),
    ]);
    let listed = object([("item", named("key")), count.clone(), sum.clone()]);
    let sources = object([
        ("index", or_null(&text())),
        ("pk", text()),
        ("sk_from", text()),
        ("all_read", boolean()),
        ("number", whole()),
        ("unreadable", whole()),
        count.clone(),
        sum.clone(),
        ("listed", list(&listed)),
    ]);
    object([
        ("derivation", text()),
        ("kind", text()),
        ("terms", list(&text())),
        ("target", named("key")),
        count,
        sum,
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
        ("items", whole()),
        ("done", whole()),
        ("not_needed", whole()),
        ("refused", whole()),
        ("would", whole()),
        ("undecided", whole()),
        ("waiting", whole()),
        ("unproven", whole()),
        ("unreadable", whole()),
        ("left", list(&left)),
    ])
}

fn parked() -> Value {
    let change = || {
        [
            ("id", text()),
            ("family", named("family")),
            ("parked_at", named("time")),
            ("stream", or_null(&text())),
            ("shard", or_null(&text())),
            ("sequence_number", or_null(&text())),
            ("item", or_null(&named("key"))),
            ("cause", text()),
        ]
    };
    let [id, family, parked_at, stream, shard, sequence_number, item, cause] = change();
    let reasons = ("why", list(&text()));
    let about_change = object([id, family, parked_at, stream, shard, sequence_number, item, cause, reasons]);
    let about = object([("pk", text()), ("sk", or_null(&text()))]);
    let [id, family, parked_at, stream, shard, sequence_number, item, cause] = change();
    // A record that cannot be read is given as text.
    let record = ("record", Value::Bool(true));
    let whole_change = object([id, family, parked_at, stream, shard, sequence_number, item, cause, record]);
    let recount = object([
        ("derivation", or_null(&text())),
        ("pk", or_null(&text())),
        ("sk", or_null(&text())),
        ("event", text()),
        ("why", text()),
        ("listed_at", named("time")),
    ]);
    any_of(&[
        object([("parked", list(&object(change()))), ("recount", list(&recount)), ("unreadable", whole())]),
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
        ("searches", of_derivation()),
        ("cascades", of_derivation()),
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
    let units = || [("ripple", number()), ("by_hand", number())];
    let [ripple, by_hand] = units();
    let written = object([("writes", whole()), ("write_units", number())]);
    let slot = object([("began_at", named("time")), ripple.clone(), by_hand.clone()]);
    object([
        ("write_units", object([ripple, by_hand])),
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
        ("operation", text()),
        ("condition", text()),
        ("items", or_null(&list(&named("item")))),
        ("read_units", or_null(&number())),
        ("error", or_null(&text())),
    ]);
    object([("id", text()), ("title", text()), ("values", list(&text())), ("reads", list(&read))])
}
