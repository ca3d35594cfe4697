//! `ripple explain`: prints the effects that the records of a captured event would have.

use derive::{
    effect::Effect,
    family::Family,
    plan::{Planned, RecordKind, plan},
};
use engine::{
    backoff::describe,
    record::{decode, event::Lane, head},
};
use functions::declared::{Choice, declared};
use keys::key::Key;
use operate::objects::{effect_object, key};
use serde_json::{Value, json};

use crate::{
    args::Explain,
    capture::Capture,
    exit::{Completion, Usage, file_text, print},
    words::print_json,
};

pub(crate) fn run(args: &Explain) -> anyhow::Result<Completion> {
    let file = args.file.display();
    let event = file_text(&args.file)?;
    let capture = Capture::raw(&event, &Lane::default());
    let raw = capture.map_err(|error| Usage(format!("{file}: {}", describe(&error))))?.records;
    let (schema, catalogue) = declared(Choice { manifest: args.manifest.file_or_said(), ..Choice::default() })?;
    let mut explained = Vec::new();
    for record in raw {
        let head = head(record.get());
        let id = head.id.unwrap_or_else(|| "without an eventID".to_owned());
        let families = [Family::Additive, Family::LevelTriggered];
        explained.push(match decode(&schema.layout, record.get()) {
            Err(error) => {
                Explained { id, item: None, what: "parked", why: Some(error.to_string()), effects: Vec::new() }
            }
            Ok(change) => {
                let Planned { record, misfit, effects, .. } = plan(&schema, &catalogue, &families, &change);
                let (what, why) = match misfit {
                    Some(misfit) => ("unreadable", Some(misfit.to_string())),
                    None => said(record),
                };
                let effects =
                    effects.into_iter().map(|(at, effect)| (catalogue.label(at).to_owned(), effect)).collect();
                Explained { id, item: Some(change.key), what, why, effects }
            }
        });
    }
    if args.json {
        print_json(json!({ "records": explained.iter().map(Explained::as_object).collect::<Vec<_>>() }));
    } else if explained.is_empty() {
        print("the event has no records");
    } else {
        print(&explained.iter().map(Explained::as_text).collect::<Vec<_>>().join("\n"));
    }
    Ok(Completion::InStep)
}

/// The effects that a record would have.
struct Explained {
    id: String,
    /// Key of the item; a record that does not decode has none.
    item: Option<Key>,
    /// The outcome of the record, in one word. The words are stable.
    what: &'static str,
    why: Option<String>,
    /// Effects, each with the name of its derivation.
    effects: Vec<(String, Effect)>,
}

fn said(record: RecordKind) -> (&'static str, Option<String>) {
    match record {
        RecordKind::Change => ("change", None),
        RecordKind::Echo => ("echo", None),
        RecordKind::Untyped => ("ignored", Some("the item has no entity type".to_owned())),
        RecordKind::Unknown => ("ignored", Some("the item's entity type is not declared".to_owned())),
    }
}

impl Explained {
    /// The names are stable.
    fn as_object(&self) -> Value {
        json!({
            "event": self.id,
            "item": self.item.as_ref().map(key),
            "record": self.what,
            "why": self.why,
            "effects": self.effects.iter().map(effect_object).collect::<Vec<_>>(),
        })
    }

    fn as_text(&self) -> String {
        let Self { id, item, what, why, effects } = self;
        let item = item.as_ref().map(Key::to_string).unwrap_or_default();
        // The reason for a parked record is long, so it has a line of its own.
        let (why, below) = match why {
            Some(why) if *what == "parked" => (String::new(), format!("\n  {why}")),
            Some(why) => (format!(": {why}"), String::new()),
            None => Default::default(),
        };
        let head = format!("{id}  {what}{why}  {item}");
        let effects = effects.iter().map(|(name, effect)| format!("\n  {name:<24} {effect}"));
        format!("{}{below}{}", head.trim_end(), effects.collect::<String>())
    }
}
