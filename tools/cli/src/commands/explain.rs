//! `ripple explain`: prints what the records of a captured event would do.

use anyhow::Context as _;
use derive::{
    effect::{Effect, Ground},
    family::Family,
    plan::{Planned, RecordKind, plan},
};
use engine::record::{decode, head, records};
use functions::declared::{Choice, declared};
use serde_json::{Value, json};

use crate::{
    args::Explain,
    exit::{Completion, print},
};

pub(crate) fn run(args: &Explain) -> anyhow::Result<Completion> {
    let file = args.file.display();
    let event = std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {file}"))?;
    let raw = records(&event).with_context(|| file.to_string())?;
    let (schema, catalogue) = declared(Choice { manifest: args.config.as_deref(), ..Choice::default() })?;
    let mut explained = Vec::new();
    for record in raw {
        let head = head(record.get());
        let id = head.id.unwrap_or_else(|| "without an eventID".to_owned());
        explained.push(match decode(&schema.layout, record.get()) {
            Err(error) => json!({ "event": id, "record": "parked", "cause": error.to_string() }),
            Ok(change) => {
                let planned = plan(&schema, &catalogue, &[Family::Additive, Family::LevelTriggered], &change);
                let effects: Vec<Value> = planned
                    .effects
                    .iter()
                    .map(|(at, effect)| json!({ "derivation": catalogue.name(*at), "effect": effect_text(effect) }))
                    .collect();
                json!({
                    "event": id,
                    "key": change.key.to_string(),
                    "record": record_text(&planned),
                    "effects": effects,
                })
            }
        });
    }
    if args.json {
        print(&json!({ "records": explained }).to_string());
    } else if explained.is_empty() {
        print("the event has no records");
    } else {
        print(&explained.iter().map(as_text).collect::<Vec<_>>().join("\n"));
    }
    Ok(Completion::InStep)
}

fn record_text(planned: &Planned) -> String {
    match (planned.record, &planned.misfit) {
        (_, Some(misfit)) => format!("unreadable: {misfit}"),
        (RecordKind::Change, None) => "change".to_owned(),
        (RecordKind::Echo, None) => "echo".to_owned(),
        (RecordKind::Untyped, None) => "ignored: the item has no entity type".to_owned(),
        (RecordKind::Unknown, None) => "ignored: the item's entity type is not declared".to_owned(),
    }
}

fn effect_text(effect: &Effect) -> String {
    match effect {
        Effect::Add(add) if add.sum.is_zero() => format!("adds {:+} to the count of {}", add.count, add.target),
        Effect::Add(add) => {
            format!("adds {:+} to the count and {} to the sum of {}", add.count, add.sum, add.target)
        }
        Effect::Measure(measure) => format!("adds the value {} to {}", measure.value, measure.bucket),
        Effect::Late => "nothing: a late change of an item that counts by its insert alone".to_owned(),
        Effect::Look(bell) => format!("looks at the {} {}", bell.entity, bell.item),
        Effect::Find(find) => {
            let place = find.query.index.as_deref().unwrap_or("the table");
            let (pk, prefix) = (&find.query.pk, find.query.sk.first());
            let via = if find.via == find.target { String::new() } else { format!(" through each {}", find.via) };
            format!("looks at every {} in {place} under {pk}, {prefix}…{via}", find.target)
        }
        Effect::Ground(Ground::Cascade(removal)) => format!("starts a job for what belongs to {}", removal.owner),
        Effect::Ground(Ground::Work(key)) => format!("continues the job {key}"),
        Effect::List { unreadable: Some(unreadable) } => format!("lists the item as unreadable: {unreadable}"),
        Effect::List { unreadable: None } => "removes the item from the list of unreadable items".to_owned(),
    }
}

fn as_text(record: &Value) -> String {
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    // A record that does not decode has no key.
    let head = format!("{}  {}  {}", text("event"), text("record"), text("key"));
    let mut lines = vec![head.trim_end().to_owned()];
    if let Some(cause) = record.get("cause").and_then(Value::as_str) {
        lines.push(format!("  {cause}"));
    }
    for effect in record.get("effects").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| effect.get(name).and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("  {:<24} {}", text("derivation"), text("effect")));
    }
    lines.join("\n")
}
