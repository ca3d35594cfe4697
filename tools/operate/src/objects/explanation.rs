//! What `ripple why --json` prints. The names are stable.

use derive::tally::Tally;
use keys::{item::Item, key::Key};
use serde_json::{Value, json};

use super::{effect::effect_object, key, word};
use crate::{
    why::{
        Explanation, ValueState,
        counter::{CounterItem, CounterSources, ExplainedCounter},
        moved::{StreamChange, StreamChanges},
        value::{ExplainedAttribute, ExplainedSource, ExplainedValue, SourceRole},
    },
    words::time,
};

/// The object.
#[must_use]
pub fn explanation(why: &Explanation) -> Value {
    let unreadable = why.unreadable.iter().map(|(derivation, unreadable)| {
        json!({ "derivation": derivation, "attribute": unreadable.attribute, "why": unreadable.why })
    });
    let parked = why.pending.parked.iter().map(|parked| {
        json!({
            "id": parked.id,
            "family": word(&parked.family.to_string()),
            "item": key(&parked.item),
            "cause": parked.cause,
        })
    });
    json!({
        "item": key(&why.key),
        "types": why.entities,
        "exists": why.item.is_some(),
        "values": why.values.iter().map(|value| value_object(value, &why.key)).collect::<Vec<_>>(),
        "counters": why.counters.iter().map(|it| counter_object(it, why.changes.as_ref())).collect::<Vec<_>>(),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "parked": parked.collect::<Vec<_>>(),
        "undecodable": why.pending.n_undecodable,
        "jobs": why.pending.jobs.iter().map(|job| key(&job.key)).collect::<Vec<_>>(),
        "changes": why.changes.as_ref().map(changes_object),
        "read_units": why.read_units,
    })
}

fn state(of: &ValueState) -> (&'static str, Option<&str>) {
    match of {
        ValueState::Right => ("right", None),
        ValueState::Waits => ("waits", None),
        ValueState::Differs => ("differs", None),
        ValueState::Flawed(why) => ("flawed", Some(why)),
        ValueState::Undecided(why) => ("undecided", Some(why)),
    }
}

fn value_object(value: &ExplainedValue, item: &Key) -> Value {
    let (state, why) = state(&value.state);
    let held = |of: fn(&ExplainedAttribute) -> Option<serde_dynamo::AttributeValue>| -> Item {
        value.attributes.iter().filter_map(|it| Some((it.name.clone(), of(it)?))).collect()
    };
    let own = json!({ "role": "itself", "item": key(item), "derivation": null, "exists": true, "stored": value.own });
    let own = Some(own).filter(|_| !value.own.is_empty());
    let differing = value.attributes.iter().filter(|attribute| !attribute.is_right);
    json!({
        "derivation": value.derivation,
        "kind": value.kind,
        "terms": value.terms,
        "stored": held(|it| it.stored.clone()),
        "derived": held(|it| it.derived.clone()),
        "differing": differing.map(|attribute| &attribute.name).collect::<Vec<_>>(),
        "should_exist": value.should_exist,
        "sources": own.into_iter().chain(value.sources.iter().map(source_object)).collect::<Vec<_>>(),
        "state": state,
        "why": why,
    })
}

fn source_object(source: &ExplainedSource) -> Value {
    let (role, derivation) = match &source.role {
        SourceRole::Item => ("item", None),
        SourceRole::Counter(derivation) => ("counter", Some(derivation)),
        SourceRole::First(_) => ("first", None),
    };
    json!({
        "role": role,
        "item": source.key.as_ref().map(key),
        "derivation": derivation,
        "exists": source.is_there,
        "stored": source.gives,
    })
}

fn counter_object(counter: &ExplainedCounter, changes: Option<&StreamChanges>) -> Value {
    let (state, why) = state(&counter.state);
    let item = |CounterItem { key: of, tally, revision, watermarks }: &CounterItem| {
        let watermark = |of: &engine::ledger::watermarks::Watermark| {
            let shard = changes.and_then(|changes| changes.shards.get(&of.name));
            json!({ "name": of.name, "shard": shard, "sequence_number": of.sequence_number })
        };
        json!({
            "item": key(of),
            "count": tally.count,
            "sum": tally.sum.to_string(),
            "revision": revision,
            "watermarks": watermarks.iter().map(watermark).collect::<Vec<_>>(),
        })
    };
    json!({
        "derivation": counter.derivation,
        "kind": counter.kind,
        "terms": counter.terms,
        "target": key(&counter.target),
        "count": counter.stored.count,
        "sum": counter.stored.sum.to_string(),
        "history": counter.is_history,
        "items": counter.items.iter().map(item).collect::<Vec<_>>(),
        "sources": sources_object(&counter.sources),
        "state": state,
        "why": why,
    })
}

fn sources_object(sources: &CounterSources) -> Option<Value> {
    let CounterSources { query, listed, n_sources, n_unreadable, tally, is_whole } = sources;
    let query = query.as_ref()?;
    let source =
        |(of, Tally { count, sum }): &(Key, Tally)| json!({ "item": key(of), "count": count, "sum": sum.to_string() });
    Some(json!({
        "index": query.index,
        "pk": query.pk,
        "sk_from": query.sk.first(),
        "all_read": is_whole,
        "number": n_sources,
        "unreadable": n_unreadable,
        "count": tally.count,
        "sum": tally.sum.to_string(),
        "listed": listed.iter().map(source).collect::<Vec<_>>(),
    }))
}

fn changes_object(changes: &StreamChanges) -> Value {
    let change = |change: &StreamChange| {
        json!({
            "event": change.id,
            "name": change.event,
            "created_at": change.created_ms.map(time),
            "shard": change.shard,
            "sequence_number": change.sequence_number,
            "item": key(&change.item),
            "effects": change.effects.iter().map(effect_object).collect::<Vec<_>>(),
        })
    };
    json!({
        "records": changes.n_records,
        "concerning": changes.n_concerning,
        "listed": changes.last.iter().map(change).collect::<Vec<_>>(),
    })
}
