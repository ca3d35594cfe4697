//! How a change looks in the flow.

use derive::write::Table;
use maud::{Markup, html};
use operate::words::counted;

use super::entry::{ChangedAttribute, FlowEntry, FlowWrite, Trouble};
use crate::frame;

/// A change, with what followed at once.
pub(crate) fn change(entry: &FlowEntry) -> Markup {
    html! {
        article.change id=(format!("change-{}", entry.event)) {
            p {
                time { (clock(entry.came_ms)) } " "
                (entry.entity) " " (frame::key(&entry.item)) " " strong { (action(entry.action)) } " "
                a href=(frame::of_change(&entry.event)) { "what followed" }
            }
            @if !entry.changed.is_empty() { p.values { (changed(entry)) } }
            (outcome(entry))
        }
    }
}

/// What functions wrote for it, and what stood in the way.
fn outcome(entry: &FlowEntry) -> Markup {
    let n_writes: usize = entry.deliveries.iter().map(|delivery| delivery.n_writes).sum();
    html! {
        @if n_writes > 0 {
            ul {
                @for delivery in &entry.deliveries { @for it in &delivery.writes { li { (write(it)) " " small { (delivery.function) } } } }
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
        @if write.table == Table::Ledger { "the ledger" }
        @else if write.effects.is_empty() { "wrote " (frame::key(&write.item)) }
        @else {
            @for (at, (derivation, what)) in write.effects.iter().enumerate() {
                @if at > 0 { ", " }
                b { (derivation) } " " (what)
            }
            " " (frame::key(&write.item))
        }
        small { " " (units(write.units)) @if write.n_others > 0 { ", shared with " (counted(write.n_others, "other change")) } }
    }
}

/// What changed of the item.
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

/// What became of an item.
pub(crate) fn action(action: &str) -> &'static str {
    match action {
        "INSERT" => "made",
        "REMOVE" => "removed",
        _ => "changed",
    }
}

/// Write units, in words.
pub(crate) fn units(units: f64) -> String {
    match format!("{units:.2}").trim_end_matches('0').trim_end_matches('.') {
        "1" => "1 write unit".to_owned(),
        number => format!("{number} write units"),
    }
}

/// A time of the day, in UTC.
pub(crate) fn clock(ms: u64) -> String {
    let time = operate::words::time(ms);
    time.split_once('T').map_or_else(|| time.clone(), |(_, clock)| clock.trim_end_matches('Z').to_owned())
}
