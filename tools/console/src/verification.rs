//! The page of a verification: started by a click, with its progress and its findings. Their repair is first planned,
//! with its price, and then, by another click, done.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use ::design::price::price;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Redirect, Response},
};
use engine::{
    backoff::describe,
    clock::{Clock as _, SystemClock},
};
use keys::{item::Item, key::Key};
use maud::{Markup, html};
use operate::{
    OperateError,
    objects::{self, each_left, repair_object, repair_sums},
    repair::{self, Mended, RoundsReport, Summary, Sums, remedy::Remedy},
    tables::VerifyOptions,
    verify::{
        Finding, Progress, UnreadableItem,
        check::{Checked, Difference, FINDING, ReadPrice, UNDECIDED, UNREADABLE, WAITING, check},
    },
    words::counted,
};
use serde::Deserialize;
use serde_json::Value;
use store::{Store, Units};
use tokio::runtime::Handle;

use crate::{Console, ConsoleWrites, flow::shown, frame, item::text, json};

/// Differences that the page lists of each kind.
const LISTED: usize = 100;

/// The last verification that this page started.
#[derive(Default)]
pub(crate) struct LastVerification(Mutex<Stage>);

#[derive(Clone, Default)]
enum Stage {
    #[default]
    Never,
    Runs(Arc<VerificationCounts>),
    Ended(Arc<Result<Found, String>>),
    /// A repair was planned, or done.
    Repair(Arc<Result<RepairOutcome, String>>),
}

#[derive(Default)]
#[expect(clippy::struct_field_names, reason = "each is a number, as everywhere")]
struct VerificationCounts {
    n_items: AtomicUsize,
    n_read: AtomicUsize,
    n_compared: AtomicUsize,
}

impl Progress for VerificationCounts {
    fn begins(&self, price: ReadPrice) {
        self.n_items.store(usize::try_from(price.n_items).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    fn read(&self, n_items: usize) {
        self.n_read.fetch_add(n_items, Ordering::Relaxed);
    }

    fn looked(&self, n_items: usize) {
        self.n_compared.fetch_add(n_items, Ordering::Relaxed);
    }
}

/// Result of a verification.
struct Found {
    ended_ms: u64,
    /// The object of `ripple verify --json`, with the first entries of each list.
    text: String,
    object: VerifyObject,
    /// Number of entries of each list.
    numbers: BTreeMap<&'static str, usize>,
}

/// The parts of the object that the page needs.
#[derive(Deserialize)]
struct VerifyObject {
    items: usize,
    ignored: usize,
    read_units: f64,
    unproven: usize,
    findings: Vec<Difference>,
    undecided: Vec<Difference>,
    waiting: Vec<Difference>,
    unreadable: Vec<UnreadableItem>,
    about_nothing: Vec<AboutNothing>,
    compared_types: Vec<ComparedTypes>,
}

impl Found {
    fn n(&self, kind: &str) -> usize {
        self.numbers.get(kind).copied().unwrap_or_default()
    }

    /// Number of differences.
    fn n_open(&self) -> usize {
        [FINDING, UNDECIDED, WAITING].map(|kind| self.n(kind)).iter().sum()
    }
}

impl LastVerification {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result in a few words.
    pub(crate) fn verdict(&self) -> &'static str {
        match &*self.stage() {
            Stage::Never => "none yet",
            Stage::Runs(_) => "running",
            Stage::Repair(_) => "a repair, or its plan",
            Stage::Ended(ended) => match ended.as_ref() {
                Ok(found) if found.n_open() + found.n(UNREADABLE) == 0 => "all right",
                _ => "see what it found",
            },
        }
    }

    /// True if the last verification found a wrong value, or ended with an error.
    pub(crate) fn has_found(&self) -> bool {
        match &*self.stage() {
            Stage::Ended(ended) => ended.as_ref().as_ref().is_ok_and(|found| found.n(FINDING) > 0) || ended.is_err(),
            Stage::Never | Stage::Runs(_) | Stage::Repair(_) => false,
        }
    }

    /// Begins a verification, unless one is running.
    fn begin(&self) -> Option<Arc<VerificationCounts>> {
        let mut stage = self.stage();
        if matches!(*stage, Stage::Runs(_)) {
            return None;
        }
        let counts = Arc::new(VerificationCounts::default());
        *stage = Stage::Runs(Arc::clone(&counts));
        Some(counts)
    }
}

/// A command without fields.
#[derive(Deserialize)]
struct NoFields {}

/// Begins a verification.
pub(crate) async fn begun<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    if let Err(refused) = console.ordered::<NoFields>(&form) {
        return refused.into_response();
    }
    begin(&console, |runtime, console, counts| {
        let found = runtime.block_on(verified(console, counts)).map_err(|error| describe(&error));
        Stage::Ended(Arc::new(found))
    });
    Redirect::to("/verify").into_response()
}

/// Runs work that ends in a stage, unless some is running. What it finds is stored in a file, whose handle stays on one
/// thread.
fn begin<S: Store + 'static>(
    console: &Arc<Console<S>>,
    work: impl FnOnce(&Handle, &Console<S>, Arc<VerificationCounts>) -> Stage + Send + 'static,
) {
    let Some(counts) = console.verification.begin() else { return };
    let (console, runtime) = (Arc::clone(console), Handle::current());
    tokio::task::spawn_blocking(move || {
        let stage = work(&runtime, &console, counts);
        *console.verification.stage() = stage;
    });
}

async fn verified<S: Store + 'static>(
    console: &Console<S>,
    counts: Arc<VerificationCounts>,
) -> Result<Found, OperateError> {
    let progress = counts as Arc<dyn Progress>;
    let Checked { verified, marked, .. } =
        Box::pin(check(&console.opened, &VerifyOptions::default(), true, &progress)).await?;
    let ended_ms = SystemClock.now_ms();
    let mut text = Vec::new();
    objects::write(&mut text, &verified, &marked, LISTED)?;
    let object = serde_json::from_slice(&text)?;
    let mut numbers = BTreeMap::new();
    for kind in [FINDING, UNDECIDED, WAITING, UNREADABLE] {
        numbers.insert(kind, verified.n_entries(kind)?);
    }
    Ok(Found { ended_ms, text: String::from_utf8_lossy(&text).into_owned(), object, numbers })
}

/// The content of the page, as `ripple verify --json` prints it, with the first entries of each list.
pub(crate) async fn object<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let stage = console.verification.stage().clone();
    if let Stage::Ended(ended) = &stage
        && let Ok(found) = ended.as_ref()
    {
        return json::text(StatusCode::OK, found.text.clone());
    }
    json::failed(StatusCode::NOT_FOUND, "No verification has ended: begin one on the page Verify.")
}

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let stage = console.verification.stage().clone();
    let is_running = matches!(stage, Stage::Runs(_));
    let content = html! {
        p {
            "A verification reads the whole table and compares every derived value with its definition, while writes go on. "
            @if console.opened.is_aws { "On AWS that costs a read unit for each 4 KB of the table. " }
            @if let ConsoleWrites::Refused { allowed_by } = &console.writes {
                "This console only reads: run " code { "ripple verify" } ", or " (allowed_by) "."
            }
        }
        @if !is_running { (console.button("/verify", &[], "Verify")) }
        @match &stage {
            Stage::Never => {},
            Stage::Runs(counts) => (running(counts)),
            Stage::Ended(ended) => @match ended.as_ref() {
                Ok(found) => (of_found(&console, found)),
                Err(why) => p.differs { "The verification ended early: " (why) },
            },
            Stage::Repair(ended) => @match ended.as_ref() {
                Ok(outcome) => (of_outcome(&console, outcome)),
                Err(why) => p.differs { "The repair ended early: " (why) },
            },
        }
    };
    let page = frame::page("Verify", &content);
    if is_running { ([("refresh", "1")], page).into_response() } else { page.into_response() }
}

fn running(counts: &VerificationCounts) -> Markup {
    let [n_items, n_read, n_compared] =
        [&counts.n_items, &counts.n_read, &counts.n_compared].map(|count| count.load(Ordering::Relaxed));
    html! {
        p role="status" { "Read " (n_read) " of about " (n_items) " items, compared " (n_compared) "." }
        progress max=(2 * n_items.max(n_read).max(1)) value=(n_read + n_compared) aria-label="Progress" {}
    }
}

fn of_found<S: Store>(console: &Console<S>, found: &Found) -> Markup {
    let VerifyObject {
        items,
        ignored,
        read_units,
        unproven,
        findings,
        undecided,
        waiting,
        unreadable,
        about_nothing,
        compared_types,
    } = &found.object;
    let kinds = [(FINDING, findings), (UNDECIDED, undecided), (WAITING, waiting)];
    let n_open = found.n_open();
    let n_unreadable = found.n(UNREADABLE);
    html! {
        p class=(if n_open > 0 { "verdict differs" } else if n_unreadable > 0 { "verdict waits" } else { "verdict right" }) {
            @if n_open > 0 { (counted(n_open, "difference")) "." }
            @else if n_unreadable > 0 { "Nothing differs, but nothing is derived of " (counted(n_unreadable, "unreadable item")) "." }
            @else { "Every derived value is right." }
        }
        p {
            "Verified at " (frame::time(found.ended_ms)) ": " (counted(*items, "item")) "; the manifest declares no entity for " (ignored)
            " of them. It took " (read_units) " read units."
            @if *unproven > 0 { " " (counted(*unproven, "count")) " changed all the time, so that nothing proves them." }
        }
        @for (kind, listed) in kinds {
            (differences(kind, found.n(kind), listed))
            @if kind == FINDING && found.n(kind) > 0 { (plan_button(console)) }
        }
        @if n_unreadable > 0 {
            h2 { (counted(n_unreadable, "unreadable item")) }
            ul { @for it in unreadable { li { (frame::key(&Key::new(&it.pk, &it.sk))) " by " (it.derivation) ": " (it.why) } } }
        }
        (listed(about_nothing))
        (compared(compared_types))
        (json::link("/verify.json"))
    }
}

fn differences(kind: &str, n: usize, listed: &[Difference]) -> Markup {
    let (title, what) = match kind {
        FINDING => ("Wrong", "Nothing under way explains it: a repair corrects it."),
        WAITING => ("Waiting", "A parked change or a job explains it."),
        _ => ("Undecided", "It may be on its way: verify again."),
    };
    html! {
        @if n > 0 {
            h2 { (title) ": " (n) }
            p { (what) }
            div.wide tabindex="0" { table {
                thead { tr { th { "derivation" } th { "item" } th { "stored" } th { "by its definition" } th { "why" } } }
                tbody {
                    @for Difference { finding, why } in listed {
                        tr {
                            th scope="row" { (finding.derivation) }
                            td { (frame::key(&Key::new(&finding.pk, &finding.sk))) }
                            td { (cell(finding.stored.as_ref())) }
                            td { (cell(finding.derived.as_ref())) }
                            td { (finding.flaw.as_deref().or(why.as_deref()).unwrap_or_default()) }
                        }
                    }
                }
            } }
            @if n > listed.len() { p { "The first " (listed.len()) "; " code { "ripple verify" } " prints all." } }
        }
    }
}

fn cell(item: Option<&Item>) -> Markup {
    html! {
        @match item {
            Some(item) => @for (name, value) in item.iter() { div { code { (name) " = " (text(value)) } } },
            None => "no item",
        }
    }
}

// ---- about nothing ----

/// The parts that the page needs of the counts about items that do not exist.
#[derive(Deserialize)]
struct AboutNothing {
    derivation: String,
    counts: usize,
    examples: Vec<ExampleKey>,
}

#[derive(Deserialize)]
struct ExampleKey {
    pk: String,
    sk: String,
}

/// The parts that the page needs of a condition that compares values of different types.
#[derive(Deserialize)]
struct ComparedTypes {
    derivation: String,
    items: usize,
    example: ExampleKey,
    why: String,
}

fn compared(all: &[ComparedTypes]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "Conditions that compare two types" }
            p { "Values of two types are never equal: the condition or the writer of the items is probably wrong." }
            ul { @for ComparedTypes { derivation, items, example: ExampleKey { pk, sk }, why } in all {
                li { (derivation) ": " (items) ", such as " (frame::key(&Key::new(pk, sk))) ": " (why) }
            } }
        }
    }
}

fn listed(all: &[AboutNothing]) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { "Counts about items that do not exist" }
            p { "The items are deleted, or the link gives other keys." }
            ul { @for it in all {
                li {
                    (it.derivation) ": " (it.counts) ", such as"
                    @for ExampleKey { pk, sk } in &it.examples { " " (frame::key(&Key::new(pk, sk))) }
                }
            } }
        }
    }
}

// ---- The repair of the findings ----

/// The plan of a repair, or its result.
struct RepairOutcome {
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
    fn is_open(&self) -> bool {
        !self.is_applied && self.summary.sums.would > 0
    }
}

/// Plans a repair.
pub(crate) async fn planned<S: Store + 'static>(State(console): State<Arc<Console<S>>>, form: String) -> Response {
    if let Err(refused) = console.ordered::<NoFields>(&form) {
        return refused.into_response();
    }
    begin_repair(&console, false);
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
    begin_repair(&console, true);
    Redirect::to("/verify").into_response()
}

fn begin_repair<S: Store + 'static>(console: &Arc<Console<S>>, is_applied: bool) {
    begin(console, move |runtime, console, counts| {
        let repaired = runtime.block_on(repaired(console, is_applied, counts)).map_err(|error| describe(&error));
        Stage::Repair(Arc::new(repaired))
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
pub(crate) async fn repair_json<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
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

fn plan_button<S: Store>(console: &Console<S>) -> Markup {
    console.button("/verify/plan", &[], "Plan a repair")
}

/// A plan, or the result of a repair.
fn of_outcome<S: Store>(console: &Console<S>, outcome: &RepairOutcome) -> Markup {
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
            td { (cell(stored.as_ref())) }
            td { (cell(derived.as_ref())) }
            td { (mended.to_string()) }
        }
    }
}
