//! A change in the flow, with the results of the functions.
//!
//! # Unanswered
//!
//! Invocations that ended without a response: one that was killed, or one whose function failed before it handled a
//! record.
//!
//! Lambda redelivers their records. The writes of such an invocation stay, so the flow displays them with each record.

use std::time::Duration;

use derive::{
    catalogue::Catalogue,
    change::Change,
    effect::Effect,
    family::Family,
    plan::{RecordKind, plan},
    position::DerivationAt,
    schema::Schema,
    write::{Action, Table},
};
use engine::{
    account::{Account, Commit},
    batch::Handled,
    record::{Event, decode},
};
use keys::{counter::CounterKey, item::Item, job::JobKey, key::Key, value::differing};
use operate::words::{WrittenEffect, event};
use serde_dynamo::AttributeValue;
use store::Units;

use crate::{
    flow::{Flow, share},
    item::text,
};

/// Attributes of a change that a page displays.
const ATTRIBUTES_MAX: usize = 12;

/// Characters of a value that a page displays.
const VALUE_CHARS_MAX: usize = 60;

/// Deliveries of a change that an entry keeps: the last ones.
pub(super) const DELIVERIES_MAX: usize = 4;

/// Writes of a delivery that an entry keeps: the first ones.
pub(super) const WRITES_MAX: usize = 10;

/// A change, as far as functions have handled it.
#[derive(Clone, Debug)]
pub(crate) struct FlowEntry {
    /// Number of its last update.
    pub(crate) update: u64,
    /// Id of its event.
    pub(crate) event: String,
    pub(crate) item: Key,
    /// Its entity, or a description.
    pub(crate) entity: String,
    /// DynamoDB's event name: `INSERT`, `MODIFY` or `REMOVE`.
    pub(crate) action: &'static str,
    pub(crate) record: RecordKind,
    pub(crate) changed: Vec<ChangedAttribute>,
    /// Number of other changed attributes.
    pub(crate) n_more: usize,
    /// Changed binary values, such as watermarks: not readable for people, but they identify the write.
    marks: Vec<(String, String)>,
    /// Its effects, each with the name of its derivation.
    pub(crate) asked: Vec<(String, String)>,
    /// Number of additions among its effects.
    pub(crate) n_additions: usize,
    /// Time of the write, in milliseconds since the epoch, if the stream has it.
    pub(crate) created_ms: Option<u64>,
    /// Time of the first delivery to a function, in milliseconds since the epoch.
    pub(crate) came_ms: u64,
    pub(crate) deliveries: Vec<FlowDelivery>,
    pub(crate) n_deliveries: usize,
}

/// An attribute that differs between two images, or that is in the only image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedAttribute {
    pub(crate) name: String,
    pub(crate) old: Option<String>,
    pub(crate) new: Option<String>,
}

/// One function's results for a change in one delivery.
#[derive(Clone, Debug)]
pub(crate) struct FlowDelivery {
    pub(crate) function: String,
    /// When the batch began, in milliseconds since the epoch.
    pub(crate) began_ms: u64,
    /// How long the batch took, in milliseconds.
    pub(crate) elapsed_ms: u64,
    pub(crate) writes: Vec<FlowWrite>,
    pub(crate) n_writes: usize,
    /// This change's part of their write units.
    pub(crate) units: Units,
    pub(crate) trouble: Option<Trouble>,
}

/// Why a change was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It is not done, and is redelivered.
    Again(String),
    /// The invocation was killed before it responded.
    Killed(String),
    Parked(String),
    Refused(String),
    /// The item, or a part of it, cannot be interpreted, and is listed.
    Unreadable(String),
}

/// A write caused by a change.
#[derive(Clone, Debug)]
pub(crate) struct FlowWrite {
    pub(crate) table: Table,
    pub(crate) item: Key,
    /// Its effects, each with the name of its derivation.
    pub(crate) effects: Vec<(String, String)>,
    /// The values that it set, in the form of an entry.
    sets: Vec<(String, String)>,
    /// True if it deletes the item.
    removes: bool,
    /// Time of its response, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// This change's part of its write units: several changes may share one write.
    pub(crate) units: Units,
    /// Number of other changes that share it.
    pub(crate) n_others: usize,
}

impl FlowEntry {
    pub(crate) fn new(schema: &Schema, catalogue: &Catalogue, change: &Change, came_ms: u64) -> Self {
        let planned = plan(schema, catalogue, &[Family::Additive, Family::LevelTriggered], change);
        let image = change.new_image().or(change.old_image());
        let entity = image.and_then(|item| schema.image(&change.key, item));
        let entity = entity.map_or_else(|| unknown(&change.key), |image| image.definition.name.clone());
        let (action, old, new) = (event(&change.images), change.old_image(), change.new_image());
        let names: Vec<&str> = match (old, new) {
            (Some(old), Some(new)) => differing(old, new),
            _ => image.map(|only| only.keys().collect()).unwrap_or_default(),
        };
        let value = |item: Option<&Item>, name: &str| item.and_then(|item| item.get(name)).map(told);
        let is_mark = |name: &&str| is_bytes(new.or(old), name);
        let marks = names.iter().filter(|name| is_mark(name));
        let marks = marks.filter_map(|name| Some(((*name).to_owned(), value(new, name)?))).collect();
        let layout = &schema.layout;
        let keys = [Some(&layout.pk), Some(&layout.sk), layout.entity_type.as_ref()];
        let is_told = |name: &&str| !is_mark(name) && keys.iter().flatten().all(|key| *key != name);
        let told_names: Vec<&str> = names.into_iter().filter(is_told).collect();
        let n_more = told_names.len().saturating_sub(ATTRIBUTES_MAX);
        let of = |name: &str| ChangedAttribute { name: name.to_owned(), old: value(old, name), new: value(new, name) };
        let changed = told_names.into_iter().take(ATTRIBUTES_MAX).map(of).collect();
        let asked = planned.effects.iter().map(|(at, effect)| (catalogue.label(*at).to_owned(), effect.to_string()));
        let is_addition = |(_, effect): &&(DerivationAt, Effect)| matches!(effect, Effect::Add(_) | Effect::Measure(_));
        let n_additions = planned.effects.iter().filter(is_addition).count();
        Self {
            update: 0,
            event: change.id.clone(),
            item: change.key.clone(),
            entity,
            action,
            record: planned.record,
            changed,
            n_more,
            marks,
            asked: asked.take(WRITES_MAX).collect(),
            n_additions,
            created_ms: change.created_ms,
            came_ms,
            deliveries: Vec::new(),
            n_deliveries: 0,
        }
    }

    /// Its part of the write units, over all deliveries.
    pub(crate) fn units(&self) -> Units {
        self.deliveries.iter().map(|delivery| delivery.units).sum()
    }

    /// Number of its writes, over all deliveries.
    pub(crate) fn n_writes(&self) -> usize {
        self.deliveries.iter().map(|delivery| delivery.n_writes).sum()
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = &FlowWrite> {
        self.deliveries.iter().flat_map(|delivery| &delivery.writes)
    }

    /// The troubles of its last delivery to each function.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = (&str, &Trouble)> {
        let is_last = |at: usize, function: &str| {
            self.deliveries.iter().skip(at + 1).all(|delivery| delivery.function != function)
        };
        let last = self.deliveries.iter().enumerate().filter(move |(at, it)| is_last(*at, &it.function));
        last.filter_map(|(_, delivery)| Some((delivery.function.as_str(), delivery.trouble.as_ref()?)))
    }

    /// Number of killed invocations among the stored ones.
    pub(crate) fn n_killed(&self) -> usize {
        self.deliveries.iter().filter(|delivery| matches!(delivery.trouble, Some(Trouble::Killed(_)))).count()
    }

    /// True if it has an effect or a write for this derivation.
    pub(crate) fn is_of(&self, derivation: &str) -> bool {
        let written = self.writes().flat_map(|write| &write.effects);
        self.asked.iter().chain(written).any(|(name, _)| name == derivation)
    }
}

impl FlowWrite {
    pub(crate) fn new(commit: &Commit, effects: Vec<(DerivationAt, WrittenEffect)>, catalogue: &Catalogue) -> Self {
        let said = |(at, effect): (DerivationAt, WrittenEffect)| {
            let what = match effect {
                WrittenEffect::Number { number, .. } => number,
                WrittenEffect::Alike { what, entity } => format!("{what} {entity}"),
            };
            (catalogue.label(at).to_owned(), what)
        };
        let sets = match &commit.action {
            Some(Action::Update(update)) => {
                update.set.iter().map(|(name, value)| (name.to_owned(), told(value))).collect()
            }
            _ => Vec::new(),
        };
        Self {
            table: commit.table,
            item: commit.key.clone(),
            effects: effects.into_iter().map(said).collect(),
            sets,
            removes: matches!(commit.action, Some(Action::Delete)),
            at_ms: commit.at_ms,
            units: commit.units / share(commit.causes.len()),
            n_others: commit.causes.len().saturating_sub(1),
        }
    }

    /// True if this write caused the change. The values that both contain decide.
    pub(crate) fn made(&self, entry: &FlowEntry) -> bool {
        let is_shown = |(name, value): &(String, String)| {
            let of = entry.changed.iter().find(|it| it.name == *name).map(|it| it.new.as_ref());
            let mark = || entry.marks.iter().find(|(mark, _)| mark == name).map(|(_, mark)| Some(mark));
            // A value that was already stored is in no difference.
            of.or_else(mark).is_none_or(|new| new == Some(value))
        };
        self.table == Table::Main
            && self.item == entry.item
            && self.removes == (entry.action == "REMOVE")
            && self.sets.iter().all(is_shown)
    }
}

/// Description of an item of no declared entity.
fn unknown(key: &Key) -> String {
    let what = if CounterKey::parse(key).is_some() {
        "counter"
    } else if JobKey::parse(key).is_some() {
        "job"
    } else {
        "declared nowhere"
    };
    what.to_owned()
}

/// True if the item has a binary value there.
fn is_bytes(item: Option<&Item>, name: &str) -> bool {
    matches!(item.and_then(|item| item.get(name)), Some(AttributeValue::B(_)))
}

fn told(value: &AttributeValue) -> String {
    let whole = text(value);
    if whole.chars().count() <= VALUE_CHARS_MAX {
        return whole;
    }
    whole.chars().take(VALUE_CHARS_MAX - 1).chain(['…']).collect()
}

// ---- unanswered ----

/// An invocation without a response.
#[derive(Clone, Debug)]
pub struct UnansweredInvocation {
    /// Its event.
    pub event: String,
    /// Its writes so far.
    pub commits: Vec<Commit>,
    /// Why it did not respond.
    pub why: NoAnswer,
}

/// Why an invocation did not respond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was killed, for example at the function's time-out.
    Killed,
    /// The function failed, with this message.
    Failed(String),
}

impl Flow {
    /// Adds an invocation that ended without a response, and its duration.
    pub fn take_in_unanswered(&self, function: &str, unanswered: &UnansweredInvocation, elapsed: Duration) {
        let UnansweredInvocation { event, commits, why } = unanswered;
        let Ok(event) = Event::parse(event) else { return };
        let changes = event.records.iter().map(|record| decode(&self.schema.layout, record.get()).ok()).collect();
        let account = Account { commits: commits.clone(), ..Account::default() };
        let handled = Handled { changes, account, failed_from: None, state: None };
        let trouble = match why {
            NoAnswer::Killed => {
                let items = operate::words::counted(commits.len(), "item");
                Trouble::Killed(format!("after it wrote {items}; Lambda delivers the record again"))
            }
            NoAnswer::Failed(why) => Trouble::Again(why.clone()),
        };
        self.take_in_with(function, &handled, elapsed, Some(&trouble));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use derive::{catalogue::Catalogue, schema::Schema};
    use keys::layout::Layout;

    use super::{FlowEntry, *};

    #[test]
    fn a_killed_invocation_is_shown_with_its_record_also_when_it_comes_again() {
        let schema = Arc::new(Schema::new(Layout::of("PK", "SK"), Vec::new()));
        let flow = Flow::new(&schema, &Arc::new(Catalogue::new(&schema, Vec::new()).unwrap()));
        let event = r#"{"Records": [{"eventID": "e", "eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb":
            {"Keys": {"PK": {"S": "p"}, "SK": {"S": "s"}}, "NewImage": {"PK": {"S": "p"}, "SK": {"S": "s"}},
             "SequenceNumber": "1", "StreamViewType": "NEW_AND_OLD_IMAGES"}}]}"#;
        let ended = |why| UnansweredInvocation { event: event.to_owned(), commits: Vec::new(), why };
        flow.take_in_unanswered("aggregate", &ended(NoAnswer::Killed), Duration::ZERO);
        let killed = |n: usize| flow.entries(|entry| entry.n_killed() == n, 10).0.len();
        assert_eq!(killed(1), 1);
        flow.take_in_unanswered("aggregate", &ended(NoAnswer::Failed("no".to_owned())), Duration::ZERO);
        let (entries, _) = flow.entries(FlowEntry::is_again, 10);
        let said: Vec<String> = entries[0].troubles().map(|(_, trouble)| trouble.said()).collect();
        assert_eq!((killed(1), said), (1, vec!["redelivered: no".to_owned()]));
    }
}
