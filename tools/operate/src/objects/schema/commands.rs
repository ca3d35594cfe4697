//! The objects of the commands that have no page in the console.

use serde_json::{Value, json};

use super::{
    any_of, boolean, both, counts_about_nothing, list, map, named, number, object, or_null, text, whole, words,
};

/// Each object with its name.
pub(super) fn commands() -> Vec<(&'static str, Value)> {
    vec![
        ("rates", rates()),
        ("catalogue_diff", catalogue_diff()),
        ("audit", audit()),
        ("preflight", preflight()),
        ("cost", cost()),
        ("replay", replay()),
        ("explain", explain()),
        ("check", check()),
        ("wait", object([("handled_until", named("time")), ("parked", whole()), ("jobs", whole())])),
        ("design_check", design_check()),
        ("design_filters", design_filters()),
        ("demo", demo()),
        ("dev", dev()),
    ]
}

fn rates() -> Value {
    let derivation = || ("derivation", text());
    object([
        ("seconds", number()),
        ("records changes fanned_out", whole()),
        ("entities", list(&object([("entity", text()), ("a_second", number())]))),
        ("targets", list(&object([derivation(), ("targets", whole())]))),
        ("fan_outs", list(&object([derivation(), ("a_second items", number())]))),
    ])
}

fn catalogue_diff() -> Value {
    let states = ["up_to_date", "added", "renamed", "changed", "deployed", "to_fill", "undeclared", "dropped"];
    let derivation = object([
        ("derivation", text()),
        ("family", named("family")),
        ("definition", text()),
        ("version", or_null(&whole())),
        ("state", words(&states)),
        ("filled_at?", or_null(&named("time"))),
        ("renamed_from?", or_null(&text())),
        ("was?", text()),
        ("ready_at? since? dropped_at?", named("time")),
        ("items_max? write_units_max?", number()),
    ]);
    let index = object([
        ("table index", text()),
        ("state", words(&["missing", "undeclared", "differs"])),
        ("deployment", or_null(&whole())),
        ("why", or_null(&text())),
        ("derivations", list(&text())),
    ]);
    object([
        ("read_units", or_null(&number())),
        ("indexes", list(&index)),
        ("index_keys", list(&text())),
        ("derivations", list(&derivation)),
    ])
}

fn preflight() -> Value {
    let group = || object([("items", whole()), ("examples", list(&named("key")))]);
    let table = object([("name", text()), ("items bytes", whole()), ("key", text()), ("key_fits", boolean())]);
    let stream =
        object([("arn", or_null(&text())), ("view_type", or_null(&text())), ("open_shards", or_null(&whole()))]);
    let ledger = object([("name", text()), ("exists", boolean()), ("kind", or_null(&text()))]);
    let sample = object([("items segments", whole()), ("whole", boolean()), ("read_units", number())]);
    let derivation = object([("derivation", text()), ("items write_units", number())]);
    let backfill = object([
        ("read_units", number()),
        ("write_units", or_null(&number())),
        ("derivations", or_null(&list(&derivation))),
        ("history", list(&text())),
    ]);
    let of_table = object([
        ("table", table),
        ("indexes", list(&object([("name", text()), ("needed fits", boolean())]))),
        ("stream", stream),
        ("expires_by", or_null(&text())),
        ("sample", sample),
        ("entities", map(&whole())),
        ("ignored", object([("untyped unknown", group())])),
        ("unreadable", list(&unreadable_group())),
    ]);
    let link = object([("derivation", text()), ("checked missing", whole()), ("examples", list(&named("key")))]);
    let rest = object([("links", list(&link)), ("ledger", ledger), ("backfill", backfill), ("to_do", list(&text()))]);
    let own_table = object([("name", text()), ("exists", boolean())]);
    let several = object([("tables", list(&of_table)), ("own_table", own_table)]);
    json!({ "anyOf": [both(of_table, &rest), both(several, &rest)] })
}

fn cost() -> Value {
    let line = object([("what", text()), ("amount", number()), ("unit formula", text()), ("dollars", number())]);
    let ledger = object([
        ("ledger", words(&LEDGERS)),
        ("dollars write_units read_units invocations gb_seconds log_bytes", number()),
        ("lines", list(&line)),
    ]);
    let price = object([("name unit", text()), ("per dollars", number())]);
    object([
        ("region prices_noted", text()),
        ("batch", or_null(&number())),
        ("ledgers", list(&ledger)),
        ("prices", list(&price)),
    ])
}

/// Items that a derivation cannot read, for one reason.
fn unreadable_group() -> Value {
    object([("derivation why", text()), ("items", whole()), ("examples", list(&named("key")))])
}

/// Kinds of ledger.
const LEDGERS: [&str; 2] = ["receipts", "watermarks"];

fn replay() -> Value {
    let target = object([("derivation pk sk", text())]);
    let file = object([
        ("file", text()),
        ("records applied in_already before_birth without_effect in_step writes", whole()),
        ("refused", list(&object([("id why", text()), ("targets", list(&target))]))),
        ("parked", list(&object([("id cause", text())]))),
        ("undone", list(&named("event_why"))),
        ("not_tried", whole()),
    ]);
    object([("ledger", words(&LEDGERS)), ("files", list(&file))])
}

fn explain() -> Value {
    let record = object([
        ("event", text()),
        ("item", or_null(&named("key"))),
        ("record", words(&["change", "echo", "ignored", "unreadable", "parked"])),
        ("why", or_null(&text())),
        ("effects", list(&named("effect"))),
    ]);
    object([("records", list(&record))])
}

fn check() -> Value {
    let names = || list(&text());
    object([
        ("file", text()),
        ("entities indexes derivations reads", names()),
        ("notices", list(&text())),
        ("findings", list(&review_finding())),
    ])
}

fn review_finding() -> Value {
    object(["check", "subject", "what", "why", "advice"].map(|name| (name, text())))
}

fn design_check() -> Value {
    let finding = both(review_finding(), &object([("answer", or_null(&text()))]));
    object([("unanswered", whole()), ("unchecked", list(&text())), ("findings", list(&finding))])
}

/// The filters, as the Lambda API accepts them.
fn design_filters() -> Value {
    let filters = || or_null(&object([("Filters", list(&object([("Pattern", text())])))]));
    let of_several = || object([("own_table", filters()), ("tables", map(&filters()))]);
    let each = |of: Value| object([("aggregate", of.clone()), ("propagate", of.clone()), ("combined", of)]);
    json!({ "anyOf": [each(filters()), each(of_several())] })
}

fn demo() -> Value {
    let lag = || ("p50 p99 max", whole());
    let few = object([("changes", whole()), lag()]);
    let others = object([("quiet", few.clone()), ("during", few)]);
    let famous =
        object([("items renames fan_out_ms", whole()), ("items_per_second", number()), ("others", or_null(&others))]);
    let units = object([("ground derived total per_change", number()), ("by_derivation", map(&number()))]);
    object([
        ("scenario", words(&["mixed", "hot", "famous"])),
        ("seed writes refused changes echoes late_changes derived_writes", whole()),
        ("wcu", units),
        ("lag_ms", or_null(&object([lag()]))),
        ("memory_mb", or_null(&number())),
        ("parked findings", whole()),
        ("elapsed_ms", json!({ "type": "integer", "minimum": 0 })),
        ("hot?", object([("likes exact counter_items", whole()), ("wcu_per_like", number())])),
        ("famous?", famous),
    ])
}

/// Each line of `ripple dev --json`, by its event.
fn dev() -> Value {
    let event = |name: &str| ("event", words(&[name]));
    let ready = object([
        event("ready"),
        ("endpoint console", text()),
        ("tables", list(&text())),
        ("ledger", text()),
        ("data", or_null(&text())),
        ("variables", map(&text())),
    ]);
    let parked = object([("id", text()), ("item", or_null(&named("key"))), ("cause", text())]);
    let batch = object([
        event("batch"),
        ("function", text()),
        ("records changes echoes ignored late already_counted unreadable conflicts throttles", whole()),
        ("parked", list(&parked)),
        ("refused undone writes", whole()),
        ("write_units", number()),
        ("elapsed_ms", whole()),
    ]);
    let counts = object(
        ["polled", "filtered_out", "invoked", "failed", "on_failure_delivered", "dropped"].map(|it| (it, whole())),
    );
    any_of(&[
        ready,
        batch,
        object([event("problem"), ("message", text())]),
        object([event("caught_up"), ("until", named("time"))]),
        object([event("changed"), ("difference", text())]),
        object([event("stopped"), ("mappings", map(&counts))]),
    ])
}

fn audit() -> Value {
    let mend = object([("items", whole()), ("write_units", number())]);
    let band = object([
        ("stored", words(&["too_low", "too_high"])),
        ("from", whole()),
        ("below", or_null(&whole())),
        ("numbers", whole()),
    ]);
    let errors = object([("numbers", whole()), ("mean largest sum", text()), ("histogram", list(&band))]);
    let derivation = object([
        ("derivation kind", text()),
        ("values right wrong missing extra undecided unknown unreadable", whole()),
        ("errors", or_null(&errors)),
        ("cannot_tell", or_null(&text())),
        ("mend", mend.clone()),
    ]);
    let worst = object([
        ("derivation pk sk", text()),
        ("state", words(&["wrong", "missing", "extra"])),
        ("error", or_null(&text())),
        ("stored derived", or_null(&named("item"))),
    ]);
    let read = object([("began", named("time")), ("ended", named("time"))]);
    object([
        ("items ignored", whole()),
        ("derivations", list(&derivation)),
        ("worst", list(&worst)),
        ("about_nothing", list(&counts_about_nothing())),
        ("unreadable", list(&unreadable_group())),
        ("mend", mend),
        ("reads", list(&read)),
        ("bound", text()),
        ("read_units", number()),
    ])
}
