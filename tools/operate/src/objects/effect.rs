//! An effect of a change, as `ripple explain` and `ripple why` print it.

use derive::effect::{Effect, Ground};
use serde_json::{Value, json};

use super::key;

/// What an effect does, in one word that is stable, and to what.
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
        Effect::Look(bell) | Effect::Vacated(bell) => {
            json!({ "effect": "look", "entity": bell.entity, "item": key(&bell.item) })
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
