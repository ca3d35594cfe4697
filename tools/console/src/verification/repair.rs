//! The repair of a verification's findings: first the plan with its price, then, by another click, the repair itself.

use std::sync::Arc;

use ::design::price::price;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use engine::backoff::describe;
use keys::key::Key;
use maud::{Markup, html};
use operate::{
    failure::OperateError,
    objects::{each_left, repair_object, repair_sums},
    progress::Progress,
    repair::{self, Mended, RoundsReport, Summary, Sums, remedy::Remedy},
    tables::VerifyOptions,
    verify::Finding,
    words::counted,
};
use serde_json::Value;
use store::{Store, Units};

use super::{LISTED, NoFields, Stage, VerificationCounts, held};
use crate::{Console, flow::shown, frame, json};

/// The plan of a repair, or its result.
pub(super) struct RepairOutcome {
    is_applied: bool,
    /// The first outcomes.
    listed: Vec<Mended>,
    /// Number of outcomes.
    n: usize,
    /// Write units of the repair.
    units: Units,
    read_units: Units,
    summary: Summary,
    /// Items of the table.
    n_items: usize,
    /// The first differences that are left, in the object's form.
    left: Vec<Value>,
}

impl RepairOutcome {
    /// True if a repair would do something.
    pub(super) fn is_open(&self) -> bool {
        !self.is_applied && self.summary.sums.would > 0
    }
}

/// Plans a repair.
pub(crate) async fn planned<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    if let Err(refused) = console.ordered::<NoFields>(&form) {
        return refused.into_response();
    }
    begin(&console, false);
    Redirect::to("/verify").into_response()
}

/// Repairs what was planned.
pub(crate) async fn applied<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    if let Err(refused) = console.ordered::<NoFields>(&form) {
        return refused.into_response();
    }
    let is_planned = match &*console.verification.stage() {
        Stage::Repair(ended) => ended.as_ref().as_ref().is_ok_and(RepairOutcome::is_open),
        _ => false,
    };
    if !is_planned {
        let why = "A repair is planned first: load the page again, and plan it.";
        return frame::failed(StatusCode::CONFLICT, why).into_response();
    }
    begin(&console, true);
    Redirect::to("/verify").into_response()
}

fn begin<S: Store + 'static>(console: &Arc<Console<S>>, is_applied: bool) {
    let Some(counts) = console.verification.begin() else { return };
    let (console, runtime) = (Arc::clone(console), tokio::runtime::Handle::current());
    // The findings are stored in a file, whose handle stays on one thread.
    tokio::task::spawn_blocking(move || {
        let repaired = runtime.block_on(repaired(&console, is_applied, counts)).map_err(|error| describe(&error));
        *console.verification.stage() = Stage::Repair(Arc::new(repaired));
    });
}

async fn repaired<S: Store + 'static>(
    console: &Console<S>,
    is_applied: bool,
    counts: Arc<VerificationCounts>,
) -> Result<RepairOutcome, OperateError> {
    let progress = counts as Arc<dyn Progress>;
    let (mut listed, mut n, mut units) = (Vec::new(), 0, 0.0);
    let act = |mended: &Mended| {
        n += 1;
        units += price_of(console, mended);
        if listed.len() < LISTED {
            listed.push(mended.clone());
        }
        Ok(())
    };
    let options = VerifyOptions::default();
    let report = Box::pin(repair::repair(&console.opened, &options, is_applied, &progress, act)).await?;
    let RoundsReport { summary, last } = report;
    let mut left = Vec::new();
    each_left(&last, |text| {
        if left.len() < LISTED {
            left.push(serde_json::from_str(&text)?);
        }
        Ok(())
    })?;
    let (n_items, read_units) = (last.extent.n_items, last.read_units);
    Ok(RepairOutcome { is_applied, listed, n, units, read_units, summary, n_items, left })
}

/// The content of the page, as `ripple repair --json` prints it, with the first entries of each list.
pub(crate) async fn object<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let stage = console.verification.stage().clone();
    let Stage::Repair(ended) = &stage else { return json::failed(StatusCode::NOT_FOUND, NO_REPAIR) };
    let Ok(outcome) = ended.as_ref() else { return json::failed(StatusCode::NOT_FOUND, NO_REPAIR) };
    let mut object = repair_sums(&outcome.summary, outcome.n_items);
    object.insert("repairs".to_owned(), outcome.listed.iter().map(repair_object).collect());
    object.insert("left".to_owned(), outcome.left.clone().into());
    json::object(object.into())
}

/// Why there is no repair.
const NO_REPAIR: &str = "No repair was planned or made: plan one on the page Verify.";

/// Write units of a remedy, estimated from a sample of the item that it writes.
fn price_of<S>(console: &Console<S>, Mended { difference, remedy, .. }: &Mended) -> Units {
    let catalogue = &console.design.catalogue;
    let derivation = catalogue.called(&difference.finding.derivation).and_then(|at| catalogue.derivation(at));
    match remedy {
        Remedy::None { .. } => 0.0,
        Remedy::SetIndexKeys | Remedy::Delete => 1.0,
        Remedy::Refresh | Remedy::Add { .. } => {
            derivation.and_then(|derivation| price(&console.design, derivation)).map_or(1.0, |price| price.total())
        }
    }
}

/// The button that plans a repair.
pub(super) fn plan_button<S: Store>(console: &Console<S>) -> Markup {
    console.button("/verify/plan", &[], "Plan a repair")
}

/// A plan, or the result of a repair.
pub(super) fn of_outcome<S: Store>(console: &Console<S>, outcome: &RepairOutcome) -> Markup {
    let RepairOutcome { is_applied, listed, n, units, read_units, summary, .. } = outcome;
    let Summary { sums: Sums { done, not_needed, refused, would }, n_undecided, n_waiting, n_unreadable, .. } = summary;
    html! {
        h2 { @if *is_applied { "The repair" } @else { "The plan of a repair" } }
        p class=(if *is_applied && *refused == 0 { "verdict right" } else { "verdict waits" }) {
            @if *is_applied { (done) " repaired, " (not_needed) " were right already, " (refused) " left to an operator." }
            @else if *n == 0 { "There is nothing to repair." }
            @else { (would) " would be repaired, " (refused) " would be left to an operator." }
        }
        @if *n_undecided > 0 { p.waits { (counted(*n_undecided, "difference")) " may be on the way: verify again." } }
        @if *n_unreadable > 0 {
            p.waits { "Nothing is derived of " a href="/parked#unreadable" { (counted(*n_unreadable, "unreadable item")) } "." }
        }
        @if *n_waiting > 0 {
            p.waits { a href="/parked" { "A parked change" } " or a " a href="/jobs" { "job" } " explains " (counted(*n_waiting, "other difference")) "." }
        }
        @if outcome.is_open() {
            p { "It writes about " (shown::units(*units)) ", and reads the table again: this plan took " (read_units) " read units." }
            (console.button("/verify/repair", &[], "Repair"))
        }
        @if !listed.is_empty() {
            div.wide tabindex="0" { table {
                thead { tr { th { "derivation" } th { "item" } th { "stored" } th { "by its definition" } th { "remedy" } } }
                tbody { @for mended in listed { (row(mended)) } }
            } }
            @if *n > listed.len() { p { "The first " (listed.len()) " of " (n) "." } }
        }
        (json::link("/repair.json"))
    }
}

fn row(mended: &Mended) -> Markup {
    let Finding { derivation, pk, sk, stored, derived, .. } = &mended.difference.finding;
    html! {
        tr {
            th scope="row" { (derivation) }
            td { (frame::key(&Key::new(pk, sk))) }
            td { (held(stored.as_ref())) }
            td { (held(derived.as_ref())) }
            td { (mended.to_string()) }
        }
    }
}
