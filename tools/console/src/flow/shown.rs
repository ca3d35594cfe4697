//! Renders the changes of the flow, their write units, and the metrics of the derivations.
//!
//! # Write units over time
//!
//! They are those of the functions, and those of plain code for the same changes. *By hand* is a function with plain
//! `ADD`, `PUT` and `SET`: for each counted change one `ADD` of one write unit on the item that displays the count, and
//! for all other derivations the same writes as here. It has no counters, no displays, and no proof that a change is
//! counted once; so it is cheaper, and counts twice when a batch is redelivered.
//!
//! # Metrics of each derivation
//!
//! They are changes a second, lag, conflicts, and the item that it writes most. *Its own lag* is the time from the
//! start of a function's batch to the response of the write; *the whole lag* begins with the application's write, or
//! with the write that caused the record. On the embedded database, the stream's times are whole seconds, rounded down,
//! so the whole lag is up to a second too long.
//!
//! # The page of one change
//!
//! It has all effects of the change, from function to function, until no work is left. The record of a write is
//! identified by its content: the watermark that the write set, or the values. A counter with receipts has neither; if
//! several changes moved it at once, the wrong record may be chosen.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use axum::{
    extract::{Query, State},
    http::StatusCode,
};
use derive::{catalogue::Catalogue, derivation::Derivation, family::Family, schema::Schema, write::Table};
use engine::account::{Commit, Contention};
use keys::{counter::COUNTER, key::Key};
use maud::{Markup, html};
use operate::words::counted;
use serde::Deserialize;
use store::{Store, Units};

use crate::{
    Console,
    flow::{
        Flow, a_second,
        entry::{ChangedAttribute, FlowDelivery, FlowEntry, FlowWrite, Trouble},
        share,
    },
    frame::{self, ConsolePage},
};

/// Writes of a change that the flow displays at once; the others unfold.
const WRITES_SHOWN: usize = 6;

/// A change, with its direct effects.
pub(crate) fn change(entry: &FlowEntry) -> Markup {
    html! {
        article.change id=(format!("change-{}", entry.event)) {
            div {
                time { (clock(entry.came_ms)) }
                a href=(frame::of_change(&entry.event)) { "what followed" }
            }
            div {
                p { (entry.entity) " " strong { (action(entry.action)) } " " (frame::key(&entry.item)) }
                @if !entry.changed.is_empty() { p.values { (changed(entry)) } }
            }
            div { (outcome(entry)) }
        }
    }
}

/// The functions' writes for it, and its troubles.
fn outcome(entry: &FlowEntry) -> Markup {
    let n_writes = entry.n_writes();
    let writes = entry.deliveries.iter().flat_map(|delivery| delivery.writes.iter().map(|it| (it, &delivery.function)));
    let writes: Vec<Markup> =
        writes.map(|(it, function)| html! { li { (write(it)) " " small { (function) } } }).collect();
    let (shown, folded) = writes.split_at(writes.len().min(WRITES_SHOWN));
    html! {
        @if n_writes > 0 {
            ul { @for write in shown { (write) } }
            @if !folded.is_empty() {
                details {
                    summary { small { "and " (n_writes - shown.len()) " more" } }
                    ul { @for write in folded { (write) } }
                }
            }
            @if n_writes > 1 { p { small { (counted(n_writes, "write")) ", " (units(entry.units())) } } }
        } @else if entry.troubles().next().is_none() {
            p { small { @if entry.asked.is_empty() { "nothing follows from it" } @else { "nothing had to be written" } } }
        }
        @if entry.is_again() {
            p { small { "delivered " (counted(entry.n_deliveries, "time")) " to " (counted(n_functions(entry), "function")) } }
        }
        @if entry.n_killed() > 0 && entry.troubles().all(|(_, trouble)| !matches!(trouble, Trouble::Killed(_))) {
            p { small { (counted(entry.n_killed(), "invocation")) " killed before that" } }
        }
        @for (function, trouble) in entry.troubles() { p.differs { (function) ": " (trouble.said()) } }
    }
}

fn n_functions(entry: &FlowEntry) -> usize {
    let functions: std::collections::BTreeSet<&str> = entry.deliveries.iter().map(|it| it.function.as_str()).collect();
    functions.len()
}

/// A write, in words.
pub(crate) fn write(write: &FlowWrite) -> Markup {
    html! {
        span {
            @if write.table == Table::Ledger { "the ledger" }
            @else if write.effects.is_empty() { "wrote " (frame::key(&write.item)) }
            @else {
                @for (at, (derivation, what)) in write.effects.iter().enumerate() {
                    @if at > 0 { ", " }
                    b { (derivation) } " " (what)
                }
                " " (frame::key(&write.item))
            }
        }
        " " small { (units(write.units)) @if write.n_others > 0 { ", shared with " (counted(write.n_others, "other change")) } }
    }
}

/// The changed attributes of the item.
pub(crate) fn changed(entry: &FlowEntry) -> Markup {
    html! {
        @for (at, attribute) in entry.changed.iter().enumerate() {
            @if at > 0 { ", " }
            (value(attribute))
        }
        @if entry.n_more > 0 { ", and " (entry.n_more) " more" }
    }
}

fn value(ChangedAttribute { name, old, new }: &ChangedAttribute) -> Markup {
    html! {
        (name) " "
        @match (old, new) {
            (Some(old), Some(new)) => { del { (old) } " → " ins { (new) } },
            (Some(old), None) => del { (old) },
            (None, Some(new)) => ins { (new) },
            (None, None) => {},
        }
    }
}

/// The event of an item, in words.
pub(crate) fn action(action: &str) -> &'static str {
    match action {
        "INSERT" => "created",
        "REMOVE" => "removed",
        _ => "changed",
    }
}

/// Write units, in words.
pub(crate) fn units(units: f64) -> String {
    match amount(units).as_str() {
        "1" => "1 write unit".to_owned(),
        number => format!("{number} write units"),
    }
}

/// A number with at most two decimals. The sum of no numbers is -0, which becomes 0.
pub(crate) fn amount(number: f64) -> String {
    let text = format!("{:.2}", number + 0.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time of the day, in UTC.
pub(crate) fn clock(ms: u64) -> String {
    let time = operate::words::time(ms);
    time.split_once('T').map_or_else(|| time.clone(), |(_, clock)| clock.trim_end_matches('Z').to_owned())
}

// ---- spent ----

/// Length of a slot, in milliseconds.
pub(crate) const SLOT_MS: u64 = 10_000;

/// Number of stored slots: ten minutes.
pub(crate) const SLOTS: usize = 60;

/// Write units of an `ADD` by hand, on an item of up to 1 KB.
const ADD_UNITS: Units = 1.0;

/// The writes of a derivation since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteTotal {
    pub(crate) n_writes: usize,
    /// Its write units; a write for several derivations is divided equally.
    pub(crate) units: Units,
}

/// Write units of the same changes, by Ripple and by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SpentUnits {
    pub(crate) ripple: Units,
    pub(crate) by_hand: Units,
}

/// Write units since the start, and of each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpentWrites {
    /// By derivation.
    pub(crate) totals: BTreeMap<String, WriteTotal>,
    /// Conflicts and throttles by derivation.
    pub(crate) conflicts: BTreeMap<String, u64>,
    /// Writes of the ledger's own items.
    pub(crate) ledger: WriteTotal,
    /// All writes.
    pub(crate) whole: SpentUnits,
    /// Number of the slot since the epoch, with its units; the oldest first.
    pub(crate) slots: VecDeque<(u64, SpentUnits)>,
}

impl SpentWrites {
    /// Adds a write. `by_hand` are the derivations that plain code [would write](written_by_hand) too.
    pub(super) fn write(&mut self, by_hand: &BTreeSet<String>, commit: &Commit) {
        let Commit { derivations, units, at_ms, .. } = commit;
        let part = units / share(derivations.len());
        let mut units_by_hand = 0.0;
        for name in derivations {
            let total = self.totals.entry(name.clone()).or_default();
            total.n_writes += 1;
            total.units += part;
            units_by_hand += if by_hand.contains(name) { part } else { 0.0 };
        }
        if derivations.is_empty() {
            self.ledger.n_writes += 1;
            self.ledger.units += units;
        }
        self.add(*at_ms, SpentUnits { ripple: *units, by_hand: units_by_hand });
    }

    /// Adds the conflicts and throttles of a batch.
    pub(super) fn conflicts(&mut self, contention: &Contention) {
        for (derivation, n_conflicts, n_throttles) in contention.by_derivation() {
            *self.conflicts.entry(derivation.to_owned()).or_default() += n_conflicts + n_throttles;
        }
    }

    /// Adds a change at its first delivery, with its number of additions.
    pub(super) fn change(&mut self, n_additions: usize, at_ms: u64) {
        let n = f64::from(u32::try_from(n_additions).unwrap_or(u32::MAX));
        self.add(at_ms, SpentUnits { ripple: 0.0, by_hand: n * ADD_UNITS });
    }

    fn add(&mut self, at_ms: u64, spent: SpentUnits) {
        self.whole.add(spent);
        // Functions run in parallel, so an older write may come later; it goes into the newest slot.
        let slot = at_ms / SLOT_MS;
        match self.slots.back_mut().filter(|(last, _)| *last >= slot) {
            Some((_, units)) => units.add(spent),
            None => self.slots.push_back((slot, spent)),
        }
        while self.slots.front().is_some_and(|(first, _)| first + SLOTS as u64 <= slot) {
            self.slots.pop_front();
        }
    }
}

impl SpentUnits {
    pub(crate) fn add(&mut self, other: Self) {
        self.ripple += other.ripple;
        self.by_hand += other.by_hand;
    }
}

/// The name of the count that a derivation displays, if any.
pub(crate) fn count_of<'a>(catalogue: &'a Catalogue, derivation: &'a Derivation) -> Option<&'a str> {
    Some(catalogue.label_of(derivation.kind.refresh()?.reads_counts().into_iter().next()?))
}

/// The derivations that plain code would write too. Counters and their displays are excluded: plain code adds to the
/// count where it is displayed.
pub(super) fn written_by_hand(schema: &Schema, catalogue: &Catalogue) -> BTreeSet<String> {
    let is_by_hand = |derivation: &&Derivation| {
        let reads = derivation.kind.reach(schema).map(|reach| reach.reads).unwrap_or_default();
        let reads_counter = reads.iter().any(|part| part.entity == COUNTER);
        derivation.kind.family() == Family::LevelTriggered && !reads_counter
    };
    catalogue.derivations().filter(is_by_hand).map(|derivation| derivation.label().to_owned()).collect()
}

// ---- figures ----

/// Time over which changes are counted, in milliseconds.
pub(super) const WINDOW_MS: u64 = 60_000;

/// Metrics of a derivation, over the stored changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct DerivationFigures {
    /// Changes a second with an effect for it, over the window.
    pub(crate) changes_a_second: f64,
    own_ms: Vec<u64>,
    whole_ms: Vec<u64>,
    targets: BTreeMap<Key, usize>,
}

impl DerivationFigures {
    /// The metrics of each derivation.
    pub(super) fn of<'a>(
        entries: impl Iterator<Item = &'a FlowEntry>,
        now_ms: u64,
        window_ms: u64,
    ) -> BTreeMap<String, Self> {
        let mut all: BTreeMap<String, Self> = BTreeMap::new();
        for entry in entries {
            let is_recent = entry.came_ms.saturating_add(window_ms) > now_ms;
            for (derivation, _) in entry.asked.iter().filter(|_| is_recent) {
                all.entry(derivation.clone()).or_default().changes_a_second += a_second(1, window_ms);
            }
            for delivery in &entry.deliveries {
                for write in &delivery.writes {
                    for (derivation, _) in &write.effects {
                        let figures = all.entry(derivation.clone()).or_default();
                        figures.own_ms.push(write.at_ms.saturating_sub(delivery.began_ms));
                        figures.whole_ms.extend(entry.created_ms.map(|created| write.at_ms.saturating_sub(created)));
                        *figures.targets.entry(write.item.clone()).or_default() += 1;
                    }
                }
            }
        }
        for figures in all.values_mut() {
            figures.own_ms.sort_unstable();
            figures.whole_ms.sort_unstable();
        }
        all
    }

    /// The median of its own lag, in milliseconds.
    pub(crate) fn own_ms(&self) -> Option<u64> {
        self.own_ms.get(self.own_ms.len() / 2).copied()
    }

    /// The median of the whole lag, in milliseconds.
    pub(crate) fn whole_ms(&self) -> Option<u64> {
        self.whole_ms.get(self.whole_ms.len() / 2).copied()
    }

    /// The item that it wrote most often, with the number of writes; `None` if it wrote none more than once.
    pub(crate) fn hottest(&self) -> Option<(&Key, usize)> {
        let repeated = self.targets.iter().filter(|(_, n)| **n > 1);
        repeated.max_by_key(|(_, n)| **n).map(|(key, n)| (key, *n))
    }
}

// ---- The page of one change ----

/// Limit on the changes that are followed.
const STEPS_MAX: usize = 200;

/// Width of the time axis, in parts.
const AXIS: f64 = 1_000.0;

/// The parameters of the page's address.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangeAddress {
    event: String,
}

/// A change in the chain, and its number of writes after the first change.
struct FollowedChange {
    entry: FlowEntry,
    depth: usize,
}

pub(crate) async fn change_page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(ChangeAddress { event }): Query<ChangeAddress>,
) -> ConsolePage {
    let steps = console.flow.as_ref().map(|flow| flow.followed(&event)).unwrap_or_default();
    match steps.first() {
        Some(first) => {
            let title = format!("{} {} {}", first.entry.entity, first.entry.item, action(first.entry.action));
            frame::page(&title, &whole(&steps))
        }
        None => frame::failed(
            StatusCode::NOT_FOUND,
            "This change is not kept: the flow of `ripple dev` keeps the last 2,000 changes since its start.",
        ),
    }
}

impl Flow {
    /// A change and all changes that it caused, each before its own effects.
    fn followed(&self, event: &str) -> Vec<FollowedChange> {
        let kept = self.kept();
        let number = |event: &str| kept.by_event.get(event).and_then(|it| usize::try_from(it - kept.first).ok());
        let (mut steps, mut taken) = (Vec::new(), BTreeSet::new());
        let mut next: Vec<(usize, usize)> = number(event).map(|at| (at, 0)).into_iter().collect();
        while let Some((at, depth)) = next.pop().filter(|_| steps.len() < STEPS_MAX) {
            let Some(entry) = kept.entries.get(at) else { continue };
            let writes: Vec<&FlowWrite> = entry.writes().collect();
            for write in writes.into_iter().rev() {
                let made = kept.entries.iter().enumerate().skip(at + 1);
                let made = made.filter(|(at, it)| !taken.contains(at) && write.made(it));
                let made: Vec<(usize, u64)> = made.map(|(at, it)| (at, it.came_ms)).collect();
                // A record comes after its write; the response may come a moment after both.
                let later = made.iter().find(|(_, came_ms)| *came_ms >= write.at_ms);
                if let Some((at, _)) = later.or(made.last()) {
                    taken.insert(*at);
                    next.push((*at, depth + 1));
                }
            }
            steps.push(FollowedChange { entry: entry.clone(), depth });
        }
        steps
    }
}

/// The displayed time range.
#[derive(Clone, Copy)]
struct Axis {
    from_ms: u64,
    until_ms: u64,
}

impl Axis {
    fn of(steps: &[FollowedChange]) -> Self {
        let deliveries = || steps.iter().flat_map(|step| &step.entry.deliveries);
        let from_ms = deliveries().map(|it| it.began_ms).min().unwrap_or(0);
        let ends = deliveries().map(|it| it.began_ms.saturating_add(it.elapsed_ms));
        let writes = deliveries().flat_map(|it| &it.writes).map(|write| write.at_ms);
        Self { from_ms, until_ms: ends.chain(writes).max().unwrap_or(from_ms).max(from_ms.saturating_add(1)) }
    }

    fn at(self, ms: u64) -> f64 {
        let part = |ms: u64| f64::from(u32::try_from(ms).unwrap_or(u32::MAX));
        AXIS * part(ms.saturating_sub(self.from_ms)) / part(self.until_ms.saturating_sub(self.from_ms))
    }

    fn bar(self, from_ms: u64, until_ms: u64, class: &str) -> Markup {
        let (x, end) = (self.at(from_ms), self.at(until_ms));
        html! {
            svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
                rect class=(class) x=(format!("{:.1}", x.min(AXIS - 4.0))) width=(format!("{:.1}", (end - x).max(4.0))) y="1" height="8" {}
            }
        }
    }
}

fn whole(steps: &[FollowedChange]) -> Markup {
    let axis = Axis::of(steps);
    let n_writes: usize = steps.iter().map(|step| step.entry.n_writes()).sum();
    let total: f64 = steps.iter().map(|step| step.entry.units()).sum();
    let is_idle =
        |it: &&FollowedChange| it.depth > 0 && it.entry.n_writes() == 0 && it.entry.troubles().next().is_none();
    let (idle, working): (Vec<_>, Vec<_>) = steps.iter().partition(is_idle);
    html! {
        p {
            (counted(n_writes, "write")) " followed, of " (units(total)) ", within "
            (axis.until_ms.saturating_sub(axis.from_ms)) " ms of the moment a function first got the change."
        }
        (table(&working, axis))
        @if !idle.is_empty() {
            details.fold {
                summary { (counted(idle.len(), "record")) " of these writes needed no work" }
                (table(&idle, axis))
            }
        }
        @if steps.len() >= STEPS_MAX { p { "The first " (steps.len()) " changes; there are more." } }
    }
}

fn table(steps: &[&FollowedChange], axis: Axis) -> Markup {
    html! {
        div.wide tabindex="0" { table.steps {
            thead { tr { th { "what happened" } th { "when, in ms" } th.axis { span { "0" } span { (axis.until_ms.saturating_sub(axis.from_ms)) } } } }
            @for step in steps { (rows(step, axis)) }
        } }
    }
}

fn rows(step: &FollowedChange, axis: Axis) -> Markup {
    let FollowedChange { entry, depth } = step;
    let class = format!("depth-{}", depth.min(&4));
    let mut deliveries: Vec<&FlowDelivery> = entry.deliveries.iter().collect();
    deliveries.sort_by_key(|delivery| delivery.began_ms);
    html! {
        tbody class=(class) {
            tr {
                th scope="rowgroup" colspan="3" {
                    (entry.entity) " " (frame::key(&entry.item)) " " strong { (action(entry.action)) }
                    @if !entry.changed.is_empty() { div.values { (changed(entry)) } }
                }
            }
            @for delivery in deliveries { (of_delivery(delivery, axis)) }
        }
    }
}

fn of_delivery(delivery: &FlowDelivery, axis: Axis) -> Markup {
    let FlowDelivery { function, began_ms, elapsed_ms, writes, n_writes, trouble, .. } = delivery;
    let since = |ms: u64| ms.saturating_sub(axis.from_ms);
    let is_killed = matches!(trouble, Some(Trouble::Killed(_)));
    html! {
        tr {
            td {
                @match trouble {
                    Some(Trouble::Killed(why)) => span.differs { (function) " was killed " (why) },
                    Some(trouble) => { (function) " handled it" div.differs { (trouble.said()) } },
                    None => { (function) " handled it" @if writes.is_empty() { ": nothing to write" } },
                }
            }
            td { (since(*began_ms)) "–" (since(began_ms.saturating_add(*elapsed_ms))) }
            td { (axis.bar(*began_ms, began_ms.saturating_add(*elapsed_ms), if is_killed { "killed" } else { "batch" })) }
        }
        @for it in writes {
            tr { td.written { (write(it)) } td { (since(it.at_ms)) } td { (axis.bar(it.at_ms, it.at_ms, "write")) } }
        }
        @if *n_writes > writes.len() { tr { td.written { "… and " (n_writes - writes.len()) " more" } td {} td {} } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_and_the_hottest_item_are_of_what_was_written() {
        let key = |name: &str| Key::new(name, "S");
        let targets = [("a", 1), ("b", 5), ("c", 3), ("d", 2), ("e", 9)].map(|(name, n)| (key(name), n));
        let figures =
            DerivationFigures { own_ms: vec![1, 4, 9], targets: targets.into(), ..DerivationFigures::default() };
        assert_eq!((figures.own_ms(), figures.whole_ms()), (Some(4), None));
        assert_eq!(figures.hottest(), Some((&key("e"), 9)));
    }

    #[test]
    fn units_are_kept_by_slot_for_ten_minutes() {
        let mut spent = SpentWrites::default();
        spent.change(2, 5);
        spent.change(1, SLOT_MS + 1);
        // A change of an earlier moment.
        spent.change(1, 7);
        let by_hand: Vec<(u64, Units)> = spent.slots.iter().map(|(slot, units)| (*slot, units.by_hand)).collect();
        assert_eq!(by_hand, [(0, 2.0), (1, 2.0)]);
        spent.change(1, SLOT_MS * SLOTS as u64);
        assert_eq!(spent.slots.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [1, SLOTS as u64]);
        assert_eq!(spent.whole, SpentUnits { ripple: 0.0, by_hand: 5.0 });
    }
}
