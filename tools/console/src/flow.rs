//! The flow: the last changes that functions of this process handled, and their writes for each change.
//!
//! A change is identified by its event, which every function gets, and gets again after a failure. So each entry is
//! updated whenever a function responds; the number of its last update orders the entries for clients that follow the
//! flow.
//!
//! *Bounded*: at most 2,000 changes with shortened texts, so that memory does not grow.
//!
//! # Events
//!
//! Each page has one stream of server-sent events. An event's data is JSON text: the change in the page's form. Its id
//! is the number of the update, so that a browser that lost its connection continues after it.

pub mod entry;
pub(crate) mod shown;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use derive::{catalogue::Catalogue, plan::RecordKind, position::RecordAt, schema::Schema, write::Table};
use engine::{
    batch::Handled,
    clock::{Clock as _, SystemClock},
};
use futures::stream::{self, StreamExt as _};
use maud::{Markup, html};
use operate::{
    objects::key,
    words::{time, written},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Store;
use tokio::sync::watch;

use crate::{
    Console,
    flow::{
        entry::{DELIVERIES_MAX, FlowDelivery, FlowEntry, FlowWrite, Trouble, WRITES_MAX},
        shown::{DerivationFigures, SpentWrites, WINDOW_MS, written_by_hand},
    },
    frame::{self, ConsolePage},
    json,
};

/// Limit on the stored changes.
const ENTRIES_MAX: usize = 2_000;

/// The last changes, and the effects of each.
pub struct Flow {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    /// Names of the derivations that plain code would write too.
    by_hand: BTreeSet<String>,
    kept: Mutex<KeptChanges>,
    updates: watch::Sender<u64>,
}

#[derive(Default)]
struct KeptChanges {
    /// The oldest first.
    entries: VecDeque<FlowEntry>,
    /// Number of the first entry, counted from the first change ever.
    first: u64,
    /// Numbers of the entries by event.
    by_event: BTreeMap<String, u64>,
    n_updates: u64,
    spent: SpentWrites,
}

impl Flow {
    /// A flow without changes.
    #[must_use]
    pub fn new(schema: &Arc<Schema>, catalogue: &Arc<Catalogue>) -> Self {
        let (schema, catalogue) = (Arc::clone(schema), Arc::clone(catalogue));
        let by_hand = written_by_hand(&schema, &catalogue);
        Self { schema, catalogue, by_hand, kept: Mutex::default(), updates: watch::Sender::new(0) }
    }

    /// Adds a function's results for a batch, and its duration.
    pub fn take_in(&self, function: &str, handled: &Handled, elapsed: Duration) {
        self.take_in_with(function, handled, elapsed, None);
    }

    /// Adds a batch, with the trouble that all of its records had.
    fn take_in_with(&self, function: &str, handled: &Handled, elapsed: Duration, trouble: Option<&Trouble>) {
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let began_ms = SystemClock.now_ms().saturating_sub(elapsed_ms);
        let mut deliveries = self.deliveries(function, handled, began_ms, elapsed_ms);
        let mut kept = self.kept();
        kept.spent.conflicts(&handled.account.contention);
        for commit in &handled.account.commits {
            kept.spent.write(&self.by_hand, commit);
        }
        for (at, change) in handled.changes.iter().enumerate() {
            let (Some(change), Some(mut delivery)) = (change, deliveries.remove(&RecordAt(at))) else { continue };
            delivery.trouble = trouble.cloned().or(delivery.trouble);
            let new = || FlowEntry::new(&self.schema, &self.catalogue, change, began_ms);
            kept.update(&change.id, new, delivery);
        }
        let n_updates = kept.n_updates;
        drop(kept);
        self.updates.send_replace(n_updates);
    }

    /// The delivery of each record of a batch.
    fn deliveries(
        &self,
        function: &str,
        handled: &Handled,
        began_ms: u64,
        elapsed_ms: u64,
    ) -> BTreeMap<RecordAt, FlowDelivery> {
        let account = &handled.account;
        let new = |at: usize| {
            let (function, writes) = (function.to_owned(), Vec::new());
            (
                RecordAt(at),
                FlowDelivery { function, began_ms, elapsed_ms, writes, n_writes: 0, units: 0.0, trouble: None },
            )
        };
        let mut deliveries: BTreeMap<RecordAt, FlowDelivery> = (0..handled.changes.len()).map(new).collect();
        for commit in &account.commits {
            let write = FlowWrite::new(commit, written(&self.schema, &self.catalogue, commit), &self.catalogue);
            for at in &commit.causes {
                if let Some(delivery) = deliveries.get_mut(at) {
                    delivery.n_writes += 1;
                    delivery.units += write.units;
                    if delivery.writes.len() < WRITES_MAX {
                        delivery.writes.push(write.clone());
                    }
                }
            }
        }
        let undone = account.undone.iter().map(|(at, why)| (*at, Trouble::Again(why.clone())));
        let parked = account.parked.iter().map(|it| (it.position, Trouble::Parked(it.cause.clone())));
        let refused = account.refused.iter().map(|it| (it.position, Trouble::Refused(it.why.clone())));
        let unreadable = account.unreadable.iter().map(|it| (it.position, Trouble::Unreadable(it.why.to_string())));
        for (at, trouble) in unreadable.chain(refused).chain(parked).chain(undone) {
            if let Some(delivery) = deliveries.get_mut(&at) {
                delivery.trouble = Some(trouble);
            }
        }
        deliveries
    }

    /// The write units since the start.
    pub(crate) fn spent(&self) -> SpentWrites {
        self.kept().spent.clone()
    }

    /// Changes a second of items that the application wrote, over the last minute.
    pub(crate) fn changes_a_second(&self) -> f64 {
        let (kept, now_ms) = (self.kept(), SystemClock.now_ms());
        let window_ms = kept.window_ms(now_ms);
        let is_recent = |it: &&FlowEntry| it.record == RecordKind::Change && it.came_ms + window_ms > now_ms;
        a_second(kept.entries.iter().filter(is_recent).count(), window_ms)
    }

    pub(crate) fn figures(&self) -> BTreeMap<String, DerivationFigures> {
        let (kept, now_ms) = (self.kept(), SystemClock.now_ms());
        DerivationFigures::of(kept.entries.iter(), now_ms, kept.window_ms(now_ms))
    }

    /// Watches the number of the last update.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.updates.subscribe()
    }

    /// The matching entries, the newest first, and the number of the last update.
    pub(crate) fn entries(&self, is_asked: impl Fn(&FlowEntry) -> bool, n_max: usize) -> (Vec<FlowEntry>, u64) {
        let kept = self.kept();
        let found = kept.entries.iter().rev().filter(|entry| is_asked(entry)).take(n_max).cloned().collect();
        (found, kept.n_updates)
    }

    fn kept(&self) -> MutexGuard<'_, KeptChanges> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptChanges {
    /// The last minute, or less if not all of its changes are stored.
    fn window_ms(&self, now_ms: u64) -> u64 {
        let oldest = self.entries.front().filter(|_| self.first > 0);
        oldest.map_or(WINDOW_MS, |it| now_ms.saturating_sub(it.came_ms).clamp(1_000, WINDOW_MS))
    }

    /// Adds a delivery to the entry of an event, which is created if it does not exist.
    fn update(&mut self, event: &str, new: impl FnOnce() -> FlowEntry, delivery: FlowDelivery) {
        self.n_updates += 1;
        let known = self.by_event.get(event).and_then(|number| usize::try_from(number - self.first).ok());
        let at = known.unwrap_or_else(|| {
            let number = self.first + self.entries.len() as u64;
            self.by_event.insert(event.to_owned(), number);
            let entry = new();
            self.spent.change(entry.n_additions, entry.came_ms);
            self.entries.push_back(entry);
            self.entries.len() - 1
        });
        if let Some(entry) = self.entries.get_mut(at) {
            entry.update = self.n_updates;
            entry.n_deliveries += 1;
            if entry.deliveries.len() >= DELIVERIES_MAX {
                entry.deliveries.remove(0);
            }
            entry.deliveries.push(delivery);
        }
        if self.entries.len() > ENTRIES_MAX
            && let Some(oldest) = self.entries.pop_front()
        {
            self.first += 1;
            self.by_event.remove(&oldest.event);
        }
    }
}

/// A number of changes in a window, as a rate.
fn a_second(n: usize, window_ms: u64) -> f64 {
    let number = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    number(n as u64) * 1_000.0 / number(window_ms)
}

/// The number of parts of a share.
fn share(n: usize) -> f64 {
    f64::from(u32::try_from(n.max(1)).unwrap_or(u32::MAX))
}

// ---- New changes of the flow: one stream of server-sent events per page ----

/// Time between two updates of one page, so that a browser has time to render.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The parameters of the address besides the selection.
#[derive(Debug, Deserialize)]
pub(crate) struct After {
    #[serde(default)]
    after: u64,
}

pub(crate) async fn events<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(selection): Query<Selection>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Response {
    let Some(flow) = console.flow.clone() else {
        return frame::failed(StatusCode::NOT_FOUND, "There is no flow.").into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let looking = Looking { updates: flow.watch(), flow, selection, after: last.unwrap_or(after) };
    let events = stream::unfold(looking, |mut looking| async move {
        let events = looking.next().await?;
        Some((stream::iter(events.into_iter().map(Ok::<_, Infallible>)), looking))
    });
    Sse::new(events.flatten()).keep_alive(KeepAlive::default()).into_response()
}

/// One page that follows the flow.
struct Looking {
    flow: Arc<Flow>,
    updates: tokio::sync::watch::Receiver<u64>,
    selection: Selection,
    /// The last update that the page has.
    after: u64,
}

impl Looking {
    /// The new changes, the oldest first; at most as many as a page displays. `None` if the flow has ended.
    async fn next(&mut self) -> Option<Vec<Event>> {
        tokio::time::sleep(LOOK_EVERY).await;
        let after = self.after;
        self.updates.wait_for(|update| *update > after).await.ok()?;
        let is_new = |entry: &_| after < entry_update(entry) && self.selection.holds(entry);
        let (mut entries, update) = self.flow.entries(is_new, SHOWN);
        self.after = update;
        entries.reverse();
        let event = |entry: &_| {
            let html = shown::change(entry).into_string();
            let data = serde_json::to_string(&html).unwrap_or_default();
            Event::default().event("change").id(update.to_string()).data(data)
        };
        Some(entries.iter().map(event).collect())
    }
}

fn entry_update(entry: &entry::FlowEntry) -> u64 {
    entry.update
}

// ---- The page of the flow ----

/// Why there is no flow.
const NO_FLOW: &str = "No functions run here. The flow is shown by the console of `ripple dev` where it runs the \
                                  functions itself: open the address that it prints.";

/// Changes that the page displays when it is loaded.
const SHOWN: usize = 200;

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(selection): Query<Selection>,
) -> ConsolePage {
    match &console.flow {
        Some(flow) => frame::page("Flow", &whole(flow, &console, &selection)),
        None => frame::page("Flow", &html! { p.empty { (NO_FLOW) } }),
    }
}

fn whole<S: Store>(flow: &Flow, console: &Console<S>, selection: &Selection) -> Markup {
    let (entries, update) = flow.entries(|entry| selection.holds(entry), SHOWN);
    let entities = console.opened.schema.entities().map(|entity| entity.name.clone());
    let derivations = console.opened.catalogue.derivations().map(|derivation| derivation.label().to_owned());
    html! {
        p { "Each change of an item as the functions get it, the newest first, and what they write for it." }
        form action="/flow" method="get" aria-label="Which changes" {
            label { "Entity " (choice("entity", &selection.entity, entities.map(|name| (name.clone(), name)))) }
            label { "Derivation " (choice("derivation", &selection.derivation, derivations.map(|name| (name.clone(), name)))) }
            label { "Key contains " input name="key" value=(selection.key); }
            label { "Outcome " (choice("outcome", &selection.outcome, OUTCOMES.into_iter().map(|(value, name)| (value.to_owned(), name.to_owned())))) }
            label { input type="checkbox" name="echoes" value="true" checked[selection.echoes]; " also records that needed no work" }
            button { "Show" }
            button #pause type="button" aria-pressed="false" hidden { "Pause" }
        }
        p.empty #none hidden[!entries.is_empty()] {
            "Nothing yet: write an item into the table and it appears here. "
            "What the functions handled before they were started is not shown."
        }
        div #flow data-events=(format!("{}&after={update}", selection.address("/flow/events"))) {
            @for entry in &entries { (shown::change(entry)) }
        }
        (json::link(&selection.address("/flow.json")))
        script type="module" src="/flow.js" {}
    }
}

fn choice(name: &str, chosen: &str, values: impl Iterator<Item = (String, String)>) -> Markup {
    html! {
        select name=(name) {
            option value="" { "any" }
            @for (value, said) in values { option value=(value) selected[value == chosen] { (said) } }
        }
    }
}

// ---- The changes that a page selects, from its address ----

/// The parameters of the flow's address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Selection {
    /// Only changes of this entity; all if empty.
    entity: String,
    /// Only changes for this derivation; all if empty.
    derivation: String,
    /// Only changes of items whose key, in the form of a page, contains this.
    key: String,
    /// Only changes with this [outcome](OUTCOMES); all if empty.
    outcome: String,
    /// True if every record is displayed. Otherwise only records with effects, or that could not be applied.
    #[serde(skip_serializing_if = "is_false")]
    echoes: bool,
}

/// The selectable outcomes, each with its label.
const OUTCOMES: [(&str, &str); 5] = [
    ("written", "something was written"),
    ("trouble", "could not be applied"),
    ("again", "delivered again"),
    ("killed", "an invocation was killed"),
    ("nothing", "nothing to write"),
];

impl Selection {
    fn holds(&self, entry: &FlowEntry) -> bool {
        let has_trouble = entry.troubles().next().is_some();
        let is_echo = entry.record != RecordKind::Change && entry.writes().next().is_none() && !has_trouble;
        (self.echoes || !is_echo)
            && (self.entity.is_empty() || entry.entity == self.entity)
            && (self.derivation.is_empty() || entry.is_of(&self.derivation))
            && (self.key.is_empty() || entry.item.to_string().contains(&self.key))
            && match self.outcome.as_str() {
                "written" => entry.writes().next().is_some(),
                "trouble" => has_trouble,
                "again" => entry.is_again(),
                "killed" => entry.n_killed() > 0,
                "nothing" => !has_trouble && entry.writes().next().is_none(),
                _ => true,
            }
    }

    /// The address of a page with this selection.
    fn address(&self, page: &str) -> String {
        // Any text can be encoded in an address.
        format!("{page}?{}", serde_urlencoded::to_string(self).unwrap_or_default())
    }
}

impl FlowEntry {
    /// True if a function got it more than once.
    pub(crate) fn is_again(&self) -> bool {
        let of = |function: &str| self.deliveries.iter().filter(|delivery| delivery.function == function).count();
        self.deliveries.iter().any(|delivery| of(&delivery.function) > 1)
    }
}

impl Trouble {
    /// The text of the trouble.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Again(why) => format!("redelivered: {why}"),
            Self::Killed(why) => format!("killed {why}"),
            Self::Parked(why) => format!("parked: {why}"),
            Self::Refused(why) => format!("refused: {why}"),
            Self::Unreadable(why) => format!("cannot be read: {why}"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

// ---- The changes as JSON, with the selection of the page ----

pub(crate) async fn object<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(selection): Query<Selection>,
) -> Response {
    let Some(flow) = &console.flow else { return json::failed(StatusCode::NOT_FOUND, NO_FLOW) };
    let (entries, _) = flow.entries(|entry| selection.holds(entry), SHOWN);
    json::object(json!({ "changes": entries.iter().map(change).collect::<Vec<_>>() }))
}

fn change(entry: &FlowEntry) -> Value {
    let asked = entry.asked.iter().map(|(derivation, effect)| json!({ "derivation": derivation, "effect": effect }));
    let changed = entry.changed.iter().map(|it| json!({ "name": it.name, "old": it.old, "new": it.new }));
    json!({
        "event": entry.event,
        "name": entry.action,
        "entity": entry.entity,
        "item": key(&entry.item),
        "created_at": entry.created_ms.map(time),
        "came_at": time(entry.came_ms),
        "changed": changed.collect::<Vec<_>>(),
        "more_changed": entry.n_more,
        "asked": asked.collect::<Vec<_>>(),
        "deliveries": entry.deliveries.iter().map(delivery).collect::<Vec<_>>(),
        "delivered": entry.n_deliveries,
    })
}

fn delivery(delivery: &FlowDelivery) -> Value {
    let FlowDelivery { function, began_ms, elapsed_ms, writes, n_writes, trouble, .. } = delivery;
    json!({
        "function": function,
        "began_at": time(*began_ms),
        "elapsed_ms": elapsed_ms,
        "writes": writes.iter().map(write).collect::<Vec<_>>(),
        "written": n_writes,
        "trouble": trouble.as_ref().map(|trouble| {
            let (outcome, why) = of_trouble(trouble);
            json!({ "outcome": outcome, "why": why })
        }),
    })
}

fn of_trouble(trouble: &Trouble) -> (&'static str, &str) {
    match trouble {
        Trouble::Again(why) => ("again", why),
        Trouble::Killed(why) => ("killed", why),
        Trouble::Parked(why) => ("parked", why),
        Trouble::Refused(why) => ("refused", why),
        Trouble::Unreadable(why) => ("unreadable", why),
    }
}

fn write(write: &FlowWrite) -> Value {
    let effects = write.effects.iter().map(|(derivation, what)| json!({ "derivation": derivation, "what": what }));
    json!({
        "table": if write.table == Table::Main { "main" } else { "ledger" },
        "item": key(&write.item),
        "effects": effects.collect::<Vec<_>>(),
        "at": time(write.at_ms),
        "write_units": write.units,
        "shared_with": write.n_others,
    })
}

#[cfg(test)]
mod tests {
    use derive::{
        change::{Change, Images},
        schema::Schema,
    };
    use engine::account::Account;
    use keys::{key::Key, layout::Layout};

    use super::*;

    #[test]
    fn a_change_that_comes_again_is_one_entry_and_the_oldest_make_room() {
        let layout = Layout::of("PK", "SK");
        let schema = Arc::new(Schema::new(layout, Vec::new()));
        let flow = Flow::new(&schema, &Arc::new(Catalogue::new(&schema, Vec::new()).unwrap()));
        let comes = |n: usize, undone: Option<&str>| {
            let key = Key::new(format!("N#{n}"), "N");
            let images = Images::Inserted(schema.layout.key_item(&key));
            let id = format!("event-{n}");
            let change = Change { id, sequence_number: n.to_string(), created_ms: None, key, images };
            let undone = undone.map(|why| (RecordAt(0), why.to_owned())).into_iter().collect();
            let account = Account { undone, ..Account::default() };
            let handled = Handled { changes: vec![Some(change)], account, failed_from: None, state: None };
            flow.take_in("aggregate", &handled, Duration::ZERO);
        };
        comes(0, Some("a throttle"));
        let (entries, first) = flow.entries(|entry| entry.troubles().next().is_some(), 10);
        assert_eq!((entries.len(), first), (1, 1));
        comes(0, None);
        let (entries, second) = flow.entries(|_| true, 10);
        assert_eq!((entries.len(), entries[0].n_deliveries, entries[0].update, second), (1, 2, 2, 2));
        assert!(entries[0].is_again() && entries[0].troubles().next().is_none());
        (1..=ENTRIES_MAX).for_each(|n| comes(n, None));
        let (entries, _) = flow.entries(|_| true, usize::MAX);
        assert_eq!(entries.len(), ENTRIES_MAX);
        assert!(entries.iter().all(|entry| entry.event != "event-0"));
        // The remaining numbers still lead to their entries.
        comes(ENTRIES_MAX, None);
        let again = |entry: &FlowEntry| entry.event == format!("event-{ENTRIES_MAX}") && entry.is_again();
        assert_eq!(flow.entries(again, 10).0.len(), 1);
        assert_eq!(flow.entries(|_| true, usize::MAX).0.len(), ENTRIES_MAX);
        // A rate is one of the stored changes: the others are forgotten.
        let kept = flow.kept();
        let oldest_ms = kept.entries[0].came_ms;
        assert_eq!([5_000, 90_000].map(|ms| kept.window_ms(oldest_ms + ms)), [5_000, WINDOW_MS]);
    }
}
