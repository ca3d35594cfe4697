//! The page of costs: write units by derivation and over time, compared with plain code for the same changes.

use std::{collections::BTreeMap, sync::Arc};

use ::design::cost::{NOTED, Paid, Prices, REGION, estimate::MONTH_SECONDS};
use axum::{extract::State, http::StatusCode, response::Response};
use engine::clock::{Clock as _, SystemClock};
use maud::{Markup, html};
use operate::words::time;
use serde_json::{Value, json};
use store::{Store, Units};

use crate::{
    Console,
    flow::{
        Flow,
        shown::{SLOT_MS, SLOTS, SpentUnits, SpentWrites, WriteTotal, amount, count_of},
    },
    frame::{self, ConsolePage},
    json,
};

/// Size of the picture: of a slot's bars, of the axis, and of the space above it and left of it.
const BAR: usize = 14;
const HEIGHT: f64 = 160.0;
const TOP: f64 = 12.0;
const LEFT: usize = 28;
/// Right of the bars: the numbers of the axis, where a narrow window, which begins with the newest bars, has them too.
const RIGHT: usize = 56;

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    let Some(flow) = &console.flow else {
        return frame::page(
            "Cost",
            &html! { p.empty {
                "No functions run here, so nothing is measured. The console of `ripple dev` shows what its functions write; "
                "`ripple cost` estimates what a table costs."
            } },
        );
    };
    frame::page(
        "Cost",
        &html! {
            p {
                "DynamoDB charges write units. These are the units that the functions wrote to keep derived values right, beside "
                "the application's own writes."
            }
            (frame::live_part("/cost/events", &part(&console, flow)))
            (json::link("/cost.json"))
            (frame::live_updates())
        },
    )
}

/// The content of the page, as JSON.
pub(crate) async fn object<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let Some(flow) = &console.flow else { return json::failed(StatusCode::NOT_FOUND, "No functions run here.") };
    let SpentWrites { totals, conflicts, ledger, whole, slots } = flow.spent();
    let units = |SpentUnits { ripple, by_hand }: SpentUnits| json!({ "ripple": ripple, "by_hand": by_hand });
    let written = |total: &WriteTotal| json!({ "writes": total.n_writes, "write_units": total.units });
    let totals: BTreeMap<&String, Value> = totals.iter().map(|(name, total)| (name, written(total))).collect();
    let slot = |(at, SpentUnits { ripple, by_hand }): &(u64, SpentUnits)| json!({ "began_at": time(at * SLOT_MS), "ripple": ripple, "by_hand": by_hand });
    json::object(json!({
        "write_units": units(whole),
        "derivations": totals,
        "ledger": written(&ledger),
        "conflicts": conflicts,
        "slot_ms": SLOT_MS,
        "slots": slots.iter().map(slot).collect::<Vec<_>>(),
    }))
}

/// The numbers of the page.
pub(crate) fn part<S>(console: &Console<S>, flow: &Flow) -> Markup {
    let (catalogue, spent) = (&console.opened.catalogue, flow.spent());
    let (now, SpentUnits { ripple, by_hand }) = (SystemClock.now_ms() / SLOT_MS, spent.whole);
    if spent.slots.is_empty() {
        return html! { p.empty { "Nothing was written yet: write items into the table, and their costs appear here." } };
    }
    let mut totals: BTreeMap<&str, WriteTotal> = BTreeMap::new();
    for (name, written) in &spent.totals {
        let derivation = catalogue.called(name).and_then(|at| catalogue.derivation(at));
        let total = totals.entry(derivation.and_then(|it| count_of(catalogue, it)).unwrap_or(name)).or_default();
        total.n_writes += written.n_writes;
        total.units += written.units;
    }
    html! {
        dl.watched {
            div { dt { "Ripple, since the start" } dd { (amount(ripple)) " write units" } }
            div { dt { "by hand, the same changes" } dd { (amount(by_hand)) " write units" } }
        }
        p {
            "By hand is a function with plain " code { "ADD" } ", " code { "PUT" } " and " code { "SET" }
            ". It counts again when a batch is redelivered; Ripple counts once."
        }
        h2 { "The last ten minutes" }
        (chart(&spent, now))
        (month(&spent, now))
        h2 { "By derivation" }
        p { "A count includes its displays." }
        div.wide tabindex="0" { table {
            thead { tr { th { "derivation" } th.number { "writes" } th.number { "write units" } } }
            tbody {
                @for (name, total) in &totals { (row(&html! { a href=(frame::of_flow(name)) { (name) } }, total)) }
                @if spent.ledger.n_writes > 0 { (row(&html! { "the ledger: proofs that a change is counted, and jobs" }, &spent.ledger)) }
            }
        } }
    }
}

fn row(name: &Markup, total: &WriteTotal) -> Markup {
    html! { tr { th scope="row" { (name) } td.number { (total.n_writes) } td.number { (amount(total.units)) } } }
}

/// Two bars per slot: Ripple's write units, and those of plain code.
fn chart(spent: &SpentWrites, now: u64) -> Markup {
    let first = (now + 1).saturating_sub(SLOTS as u64);
    let shown: Vec<(usize, SpentUnits)> = spent
        .slots
        .iter()
        .filter_map(|(slot, units)| Some((usize::try_from(slot.checked_sub(first)?).ok()?, *units)))
        .filter(|(at, _)| *at < SLOTS)
        .collect();
    let highest = shown.iter().map(|(_, units)| units.ripple.max(units.by_hand)).fold(1.0, f64::max);
    let top = axis_top(highest);
    let bar = |class: &str, x: usize, units: Units| {
        let height = HEIGHT * units / top;
        html! { rect class=(class) x=(x) width=(BAR / 2 - 1) y=(format!("{:.1}", TOP + HEIGHT - height)) height=(format!("{height:.1}")) {} }
    };
    html! {
        p.legend { span.ripple { "Ripple" } span.by-hand { "by hand" } small { "write units in each ten seconds" } }
        div.wide tabindex="0" {
            svg.chart viewBox=(format!("0 0 {} {}", LEFT + SLOTS * BAR + RIGHT, TOP + HEIGHT + 28.0)) role="img" aria-label="Write units of each ten seconds, by Ripple and by hand" {
                @for part in 0..=4u8 {
                    @let y = TOP + HEIGHT * (1.0 - f64::from(part) / 4.0);
                    path d=(format!("M{LEFT} {y} H{}", LEFT + SLOTS * BAR)) {}
                    text x=(LEFT + SLOTS * BAR + 8) y=(y + 4.0) { (amount(top * f64::from(part) / 4.0)) }
                }
                @for minutes in (0..=10).step_by(2) {
                    text x=(LEFT + (10 - minutes) * SLOTS * BAR / 10) y=(TOP + HEIGHT + 18.0) text-anchor="middle" {
                        @if minutes == 0 { "now" } @else { "−" (minutes) " min" }
                    }
                }
                @for (at, units) in &shown {
                    (bar("ripple", LEFT + at * BAR, units.ripple))
                    (bar("by-hand", LEFT + at * BAR + BAR / 2, units.by_hand))
                }
            }
        }
    }
}

/// The least of 4, 10, 20, 40, 100 … that is not below a number.
fn axis_top(highest: f64) -> f64 {
    let mut top = 4.0;
    while top < highest {
        top *= if top.log10().fract() < 0.5 { 2.0 } else { 2.5 };
    }
    top
}

/// The cost of a month at the rate of the last ten minutes.
fn month(spent: &SpentWrites, now: u64) -> Markup {
    let first = (now + 1).saturating_sub(SLOTS as u64);
    let mut last = SpentUnits::default();
    let recent = spent.slots.iter().filter(|(slot, _)| *slot >= first);
    let began = recent.clone().map(|(slot, _)| *slot).next().unwrap_or(now);
    recent.for_each(|(_, units)| last.add(*units));
    let slots = u32::try_from(now.saturating_sub(began) + 1).unwrap_or(u32::MAX);
    let seconds = f64::from(slots) * 10.0;
    let price = Prices::default();
    let dollars = |units: Units| price.of(Paid::WriteUnits, units / seconds * MONTH_SECONDS).1;
    html! {
        p {
            "A month at this rate, " (amount(last.ripple / seconds)) " write units a second, would cost "
            b { (money(dollars(last.ripple))) } " for these writes; by hand " (money(dollars(last.by_hand))) ". "
            small { "On-demand writes in " (REGION) ", price of " (NOTED) ". " code { "ripple cost" } " estimates the whole bill." }
        }
    }
}

fn money(dollars: f64) -> String {
    format!("${dollars:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_at_a_round_number_that_is_not_below_the_highest_bar() {
        for (highest, top) in
            [(0.0, 4.0), (4.0, 4.0), (4.1, 10.0), (37.0, 40.0), (99.0, 100.0), (101.0, 200.0), (1_500.0, 2_000.0)]
        {
            assert!((axis_top(highest) - top).abs() < f64::EPSILON, "{highest}: {}", axis_top(highest));
        }
    }
}
