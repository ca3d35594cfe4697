//! The page of one change: all its effects, from function to function, until no work is left.
//!
//! The record of a write is identified by its content: the watermark that the write set, or the values. A counter with
//! receipts has neither; if several changes moved it at once, the wrong record may be chosen.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    extract::{Query, State},
    http::StatusCode,
};
use maud::{Markup, html};
use operate::words::counted;
use serde::Deserialize;
use store::Store;

use super::{
    Flow,
    entry::{FlowDelivery, FlowEntry, FlowWrite, Trouble},
    shown,
};
use crate::{
    Console,
    frame::{self, ConsolePage},
};

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

pub(crate) async fn page<S: Store + 'static>(
    State(console): State<Arc<Console<S>>>,
    Query(ChangeAddress { event }): Query<ChangeAddress>,
) -> ConsolePage {
    let steps = console.flow.as_ref().map(|flow| flow.followed(&event)).unwrap_or_default();
    match steps.first() {
        Some(first) => {
            let title = format!("{} {} {}", first.entry.entity, first.entry.item, shown::action(first.entry.action));
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
    let units: f64 = steps.iter().map(|step| step.entry.units()).sum();
    let is_idle =
        |it: &&FollowedChange| it.depth > 0 && it.entry.n_writes() == 0 && it.entry.troubles().next().is_none();
    let (idle, working): (Vec<_>, Vec<_>) = steps.iter().partition(is_idle);
    html! {
        p {
            (counted(n_writes, "write")) " followed, of " (shown::units(units)) ", within "
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
                    (entry.entity) " " (frame::key(&entry.item)) " " strong { (shown::action(entry.action)) }
                    @if !entry.changed.is_empty() { div.values { (shown::changed(entry)) } }
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
            tr { td.written { (shown::write(it)) } td { (since(it.at_ms)) } td { (axis.bar(it.at_ms, it.at_ms, "write")) } }
        }
        @if *n_writes > writes.len() { tr { td.written { "… and " (n_writes - writes.len()) " more" } td {} td {} } }
    }
}
