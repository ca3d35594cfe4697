//! The JSON objects that commands print with `--json`, and that the console serves.
//!
//! One function builds an object for both, and [`schema`] describes each form, so a program may read either.
//! Names and words are stable.

pub mod schema;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use derive::{
    effect::{Effect, Ground},
    tally::Tally,
};
use engine::{
    inspect::ToRecount,
    job::{Job, Pass, Task},
    jobs::blocked::Blocker,
    loss::Mark,
    park::ParkedChange,
    record::{Lane, decode},
    redrive::discard::Concerns,
};
use keys::{item::Item, key::Key, layout::Layout};
use serde_json::{Map, Value, json};

use crate::{
    OperateError,
    parked::{About, ChangeOutcome},
    repair::{
        Mended, Summary, Sums,
        remedy::{Remedy, Repaired},
    },
    verify::{
        CountsAboutNothing, UnreadableItem,
        check::{ABOUT_NOTHING, FINDING, UNDECIDED, UNPROVEN, UNREADABLE, UnlikeItems, Verified, WAITING},
        marks::{MarkFate, Marked},
    },
    why::{
        Explanation, StreamChange, StreamChanges, ValueState,
        value::{
            CounterItem, CounterSources, ExplainedAttribute, ExplainedCounter, ExplainedSource, ExplainedValue,
            SourceRole,
        },
    },
    words::{time, visible},
};

/// The version of all objects. It rises when a name is removed or changes its meaning. Stable.
pub const VERSION: u32 = 1;

/// An object with the version.
#[must_use]
pub fn with_version(mut object: Value) -> Value {
    if let Some(names) = object.as_object_mut() {
        names.insert("version".to_owned(), VERSION.into());
    }
    object
}

/// A key as an object.
#[must_use]
pub fn key(key: &Key) -> Value {
    json!({ "pk": key.pk, "sk": key.sk })
}

/// A phrase as one word of an object: `still parked` becomes `still_parked`.
#[must_use]
pub fn word(text: &str) -> String {
    text.replace([' ', '-'], "_")
}

// ---- An effect of a change, as `ripple explain` and `ripple why` print it ----

/// The effect in one stable word, and its target.
#[must_use]
pub fn effect_object((derivation, effect): &(String, Effect)) -> Value {
    let mut object = match effect {
        Effect::Add(add) => {
            json!({ "effect": "add", "item": key(&add.target), "count": add.count, "sum": add.sum.to_string() })
        }
        Effect::Measure(measure) => {
            json!({ "effect": "measure", "item": key(&measure.bucket), "value": measure.value.to_string() })
        }
        Effect::Late => json!({ "effect": "late" }),
        Effect::Look(request) | Effect::Vacated(request) => {
            json!({ "effect": "look", "entity": request.entity, "item": key(&request.item) })
        }
        Effect::Later(request, at_ms) => {
            json!({ "effect": "refresh_later", "entity": request.entity, "item": key(&request.item), "at_ms": at_ms })
        }
        Effect::Find(find) => json!({
            "effect": "find",
            "entity": find.target,
            "via": find.via,
            "index": find.query.index,
            "pk": find.query.pk,
            "sk_from": find.query.sk.first(),
        }),
        Effect::Ground(Ground::Cascade(removal)) => json!({ "effect": "start_job", "item": key(&removal.owner) }),
        Effect::Ground(Ground::Work(job)) => json!({ "effect": "continue_job", "item": key(job) }),
        Effect::List { unreadable: Some(unreadable) } => {
            json!({ "effect": "list", "attribute": unreadable.attribute, "why": unreadable.why })
        }
        Effect::List { unreadable: None } => json!({ "effect": "unlist" }),
    };
    if let Some(names) = object.as_object_mut() {
        names.insert("derivation".to_owned(), derivation.as_str().into());
    }
    object
}

// ---- Parked changes, as `ripple parked` prints them and the console shows them ----

/// All parked changes, and the counts that need a recount.
#[must_use]
pub fn parked_list(parked: &[ParkedChange], recount: &[ToRecount], n_unreadable: usize, layout: &Layout) -> Value {
    json!({
        "parked": parked.iter().map(|change| change_object(change, layout)).collect::<Vec<_>>(),
        "recount": recount.iter().map(recount_object).collect::<Vec<_>>(),
        "unreadable": n_unreadable,
    })
}

/// A parked change with its record.
#[must_use]
pub fn whole_change(change: &ParkedChange, layout: &Layout) -> Value {
    let mut whole = change_object(change, layout);
    if let Some(fields) = whole.as_object_mut() {
        fields.insert("record".to_owned(), record(change));
    }
    whole
}

/// The parked changes about an item, each with the reasons.
#[must_use]
pub fn parked_about(about: &About, found: &[(&ParkedChange, Vec<String>)], layout: &Layout) -> Value {
    let change = |(change, why): &(&ParkedChange, Vec<String>)| {
        let mut object = change_object(change, layout);
        if let Some(fields) = object.as_object_mut() {
            fields.insert("why".to_owned(), why.as_slice().into());
        }
        object
    };
    let parked: Vec<Value> = found.iter().map(change).collect();
    json!({ "about": { "pk": about.pk, "sk": about.sk }, "parked": parked })
}

/// A discarded change with what is lost.
#[must_use]
pub fn discarded(change: &ParkedChange, lost: &Concerns, outcome: &ChangeOutcome) -> Value {
    let (name, why) = outcome.describe();
    let named = |all: &BTreeSet<(String, Key)>| -> Vec<Value> {
        all.iter().map(|(derivation, item)| json!({ "derivation": derivation, "item": key(item) })).collect()
    };
    let counts: Vec<Value> =
        lost.counts.iter().map(|it| json!({ "derivation": it.derivation, "item": key(&it.item) })).collect();
    json!({
        "id": change.id,
        "family": word(&change.family.to_string()),
        "outcome": word(name),
        "why": why,
        "counts": counts,
        "items": lost.items.iter().map(key).collect::<Vec<_>>(),
        "searches": named(&lost.searches),
        "cascades": named(&lost.cascades),
        "jobs": lost.jobs.iter().map(key).collect::<Vec<_>>(),
        "unknown": lost.unknown,
    })
}

/// The record as JSON, or as a string if it is not JSON.
#[must_use]
pub fn record(change: &ParkedChange) -> Value {
    match change.record() {
        Ok(record) => serde_json::from_str(&record).unwrap_or(Value::String(record)),
        Err(error) => Value::String(format!("it cannot be unpacked: {error}")),
    }
}

/// The item of a parked change; `None` if the change cannot be read.
#[must_use]
pub fn item(change: &ParkedChange, layout: &Layout) -> Option<Key> {
    decode(layout, &change.record().ok()?).ok().map(|change| change.key)
}

fn change_object(change: &ParkedChange, layout: &Layout) -> Value {
    let Lane { stream_arn, shard } = &change.lane;
    let sequence_number = Some(&change.sequence_number).filter(|number| !number.is_empty());
    json!({
        "id": change.id,
        "family": word(&change.family.to_string()),
        "parked_at": time(change.parked_at_ms),
        "stream": stream_arn,
        "shard": shard,
        "sequence_number": sequence_number,
        "item": item(change, layout).as_ref().map(key),
        "cause": change.cause,
    })
}

/// A count that needs a recount, as an object.
fn recount_object(listed: &ToRecount) -> Value {
    let target = listed.target.as_ref();
    json!({
        "derivation": target.map(|target| &target.derivation),
        "pk": target.map(|target| &target.item.pk),
        "sk": target.map(|target| &target.item.sk),
        "event": listed.event_id,
        "why": listed.why,
        "listed_at": time(listed.listed_at_ms),
    })
}

// ---- A repair, as `ripple repair` prints it and the console serves it ----

/// The numbers of a repair of a table with this many items.
#[must_use]
pub fn repair_sums(summary: &Summary, n_items: usize) -> Map<String, Value> {
    let Summary {
        sums: Sums { done, not_needed, refused, would },
        n_undecided,
        n_waiting,
        n_unproven,
        n_unreadable,
        ..
    } = *summary;
    let sums = [
        ("items", n_items),
        ("done", done),
        ("not_needed", not_needed),
        ("refused", refused),
        ("would", would),
        ("undecided", n_undecided),
        ("waiting", n_waiting),
        ("unproven", n_unproven),
        ("unreadable", n_unreadable),
    ];
    sums.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect()
}

/// Passes each difference that the last verification of a repair left to `act`, as JSON text.
///
/// # Errors
///
/// [`OperateError`] if the file cannot be read, or the error of `act`.
pub fn each_left(last: &Verified, mut act: impl FnMut(String) -> Result<(), OperateError>) -> Result<(), OperateError> {
    for kind in [UNDECIDED, WAITING] {
        last.each_entry(kind, |entry| act(format!("{{\"kind\":\"{kind}\",\"difference\":{entry}}}")))?;
    }
    Ok(())
}

/// The outcome for a finding.
#[must_use]
pub fn repair_object(mended: &Mended) -> Value {
    let Mended { difference, remedy, repaired } = mended;
    let (outcome, why) = match (remedy, repaired) {
        (Remedy::None { why }, _) | (_, Some(Repaired::Refused { why })) => ("refused", Some(why)),
        (_, None) => ("would", None),
        (_, Some(Repaired::Done)) => ("done", None),
        (_, Some(Repaired::NotNeeded)) => ("not_needed", None),
        (_, Some(Repaired::Overtaken)) => ("overtaken", None),
    };
    let remedy = match remedy {
        Remedy::Refresh => json!({ "remedy": "derive" }),
        Remedy::Add { count, sum } => json!({ "remedy": "add", "count": count, "sum": sum.to_string() }),
        Remedy::SetIndexKeys => json!({ "remedy": "set_index_keys" }),
        Remedy::Delete => json!({ "remedy": "delete" }),
        Remedy::None { .. } => Value::Null,
    };
    json!({ "finding": difference.finding, "remedy": remedy, "outcome": outcome, "why": why })
}

// ---- A verification, as `ripple verify` prints it and the console serves it ----

/// The lists of the object, each with the kind of its entries.
const LISTS: [(&str, &str); 4] =
    [("findings", FINDING), ("undecided", UNDECIDED), ("waiting", WAITING), ("unreadable", UNREADABLE)];

/// Writes the object piece by piece, because it may be large. Each list has at most `n_listed_max` entries.
///
/// # Errors
///
/// [`OperateError`] if the file cannot be read, or the output cannot be written.
pub fn write(
    out: &mut impl Write,
    verified: &Verified,
    marked: &[Marked],
    n_listed_max: usize,
) -> Result<(), OperateError> {
    let extent = &verified.extent;
    write!(out, "{{\"version\":{VERSION},\"items\":{},\"ignored\":{}", extent.n_items, extent.n_ignored)?;
    for (name, kind) in LISTS {
        write!(out, ",\"{name}\":[")?;
        let mut n_listed = 0;
        verified.each_entry(kind, |entry| {
            if n_listed < n_listed_max {
                let comma = if n_listed == 0 { "" } else { "," };
                write!(out, "{comma}{}", visible(entry))?;
            }
            n_listed += 1;
            Ok(())
        })?;
        write!(out, "]")?;
    }
    write!(out, ",\"about_nothing\":[")?;
    let mut comma = "";
    verified.each_entry(ABOUT_NOTHING, |entry| {
        let about: CountsAboutNothing = serde_json::from_str(entry)?;
        write!(out, "{comma}{}", visible(&about_nothing(&about).to_string()))?;
        comma = ",";
        Ok(())
    })?;
    write!(out, "],\"compared_types\":{}", visible(&compared_types(&verified.unlike()?).to_string()))?;
    write!(out, ",\"unproven\":{},\"read_units\":{}", verified.n_entries(UNPROVEN)?, verified.read_units)?;
    let marked: Vec<_> = marked.iter().map(possible_loss).collect();
    write!(out, ",\"possible_loss\":{}}}", serde_json::to_string(&marked)?)?;
    Ok(())
}

/// A derivation's counts about items that do not exist, as an object.
pub(crate) fn about_nothing(about: &CountsAboutNothing) -> Value {
    let CountsAboutNothing { derivation, counts, examples } = about;
    let examples: Vec<Value> = examples.iter().map(|(pk, sk)| key(&Key::new(pk, sk))).collect();
    json!({ "derivation": derivation, "counts": counts, "examples": examples })
}

/// Items where a condition compares two values of different types, as objects.
fn compared_types(all: &[UnlikeItems]) -> Value {
    let one = |UnlikeItems { items, example: UnreadableItem { derivation, pk, sk, why } }: &UnlikeItems| json!({ "derivation": derivation, "items": items, "example": key(&Key::new(pk, sk)), "why": why });
    all.iter().map(one).collect()
}

/// A mark of a possible loss, as an object.
fn possible_loss(marked: &Marked) -> Value {
    let Mark { family, stream, shard, since_ms, until_ms, late_ms } = &marked.mark;
    json!({
        "family": family,
        "stream": stream,
        "shard": shard,
        "since": time(*since_ms),
        "until": time(*until_ms),
        "late_ms": late_ms,
        "cleared": marked.fate == MarkFate::Removed,
    })
}

// ---- The output of `ripple why --json`. The names are stable ----

/// The explanation as an object.
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
    let item = |CounterItem { key: of, tally, revision, satellites, watermarks, .. }: &CounterItem| {
        let watermark = |of: &engine::ledger::watermarks::Watermark| {
            let shard = changes.and_then(|changes| changes.shards.get(&of.name));
            json!({ "name": of.name, "shard": shard, "sequence_number": of.sequence_number })
        };
        json!({
            "item": key(of),
            "count": tally.count,
            "sum": tally.sum.to_string(),
            "revision": revision,
            "satellites": satellites,
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

// ---- A job, as `ripple jobs` prints it and the console shows it ----

/// The paused cascades, with what blocks each.
pub type BlockedCascades = BTreeMap<Key, Blocker>;

/// All jobs as an object.
#[must_use]
pub fn jobs_list(jobs: &[Job], stored: &BlockedCascades, layout: &Layout) -> Value {
    json!({ "jobs": jobs.iter().map(|job| job_object(job, stored, layout)).collect::<Vec<_>>() })
}

/// The state of a job, in one word. The words are stable.
#[must_use]
pub fn state_of(job: &Job) -> &'static str {
    match (job.is_paused, job.is_running) {
        (true, _) => "paused",
        (false, true) => "running",
        (false, false) => "waiting",
    }
}

/// The end of the job's second round, and whether the round has begun; `None` if there is no second round.
#[must_use]
pub fn second_round(job: &Job) -> Option<(&str, bool)> {
    let Task::FanOut(fan_out) = &job.task else { return None };
    Some((fan_out.until.as_deref()?, fan_out.is_round))
}

/// Items a second that a fan-out has refreshed since it started; `None` for a cascade, and at the very beginning.
#[must_use]
pub fn per_second(job: &Job) -> Option<u64> {
    let elapsed_ms = job.moved_at_ms.saturating_sub(job.started_at_ms);
    let is_fan_out = matches!(job.task, Task::FanOut(_));
    (is_fan_out && elapsed_ms > 0).then(|| job.n_touched * 1_000 / elapsed_ms)
}

/// The pages that a cascade has deleted, and all that it has listed; `None` before it deletes. `None` for a fan-out,
/// since the dependent items of a source are not counted.
#[must_use]
pub fn pages(job: &Job) -> Option<(u64, u64)> {
    match job.task {
        Task::Cascade { pass: Pass::Deletes { page, n_pages }, .. } => Some((page, n_pages)),
        _ => None,
    }
}

/// The remaining time of a deleting cascade at its rate so far, in milliseconds.
#[must_use]
pub fn left_ms(job: &Job) -> Option<u64> {
    let (done, all) = pages(job).filter(|(done, _)| job.is_running && *done > 0)?;
    let elapsed_ms = job.moved_at_ms.saturating_sub(job.due_at_ms);
    Some(all.saturating_sub(done).saturating_mul(elapsed_ms) / done)
}

/// The last item before the cursor.
#[must_use]
pub fn last_item(job: &Job, layout: &Layout) -> Option<Key> {
    layout.key(&job.after.as_ref()?.0)
}

/// A job as an object.
#[must_use]
pub fn job_object(job: &Job, stored: &BlockedCascades, layout: &Layout) -> Value {
    let kind = match job.task {
        Task::Cascade { .. } => "cascade",
        Task::FanOut(_) => "fan_out",
    };
    json!({
        "id": job.key.sk,
        "key": key(&job.key),
        "kind": kind,
        "derivation": job.derivation,
        "item": key(job.origin()),
        "state": state_of(job),
        "has_begun": job.is_running,
        "held_by": stored.get(&job.key).map(|blocker| match blocker {
            Blocker::ParkedChange(id) => json!({ "parked_change": id }),
            Blocker::PossibleLoss(stream) => json!({ "possible_loss": stream }),
            Blocker::NoPulse(0) => json!({ "no_pulse": null }),
            Blocker::NoPulse(last_ms) => json!({ "no_pulse": time(*last_ms) }),
            Blocker::YoungPulse(until_ms) => json!({ "young_pulse": time(*until_ms) }),
        }),
        "touched": job.n_touched,
        "per_second": per_second(job),
        "pages": pages(job).map(|(done, all)| json!({ "done": done, "all": all })),
        "left_ms": left_ms(job),
        "moves": job.n_moves,
        "last": last_item(job, layout).as_ref().map(key),
        "round": second_round(job).map(|(until, has_begun)| json!({ "until": until, "has_begun": has_begun })),
        "started_at": time(job.started_at_ms),
        "due_at": time(job.due_at_ms),
        "moved_at": time(job.moved_at_ms),
    })
}

#[cfg(test)]
mod tests {
    use derive::effect::Removal;

    use super::*;

    #[test]
    fn what_a_cascade_has_still_to_do_follows_from_its_pages_and_its_time() {
        let owner = Key::new("POST#p", "METADATA");
        let removal = Removal { owner: owner.clone(), absent: vec![owner], named: Vec::new() };
        let deletes =
            |page| Task::Cascade { removal: removal.clone(), step: 0, pass: Pass::Deletes { page, n_pages: 8 } };
        let job = |page, is_running| Job {
            key: Key::new("JOBS#00", "post-cascade#8:POST%23p|METADATA"),
            derivation: "post-cascade".to_owned(),
            task: deletes(page),
            is_running,
            is_paused: false,
            started_at_ms: 0,
            due_at_ms: 10_000,
            moved_at_ms: 16_000,
            n_moves: 7,
            n_touched: 600,
            after: None,
        };
        assert_eq!(
            (pages(&job(6, true)), left_ms(&job(6, true)), per_second(&job(6, true))),
            (Some((6, 8)), Some(2_000), None)
        );
        assert_eq!((left_ms(&job(0, true)), left_ms(&job(0, false))), (None, None), "nothing to calculate it from");
    }
}
