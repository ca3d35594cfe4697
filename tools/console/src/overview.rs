//! The first page: whether all is well, what is happening, what a person may try, and what is derived.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use axum::{extract::State, http::StatusCode};
use derive::{
    derivation::Derivation, outline::Outline, plan::RecordKind, position::DerivationAt, schema::Schema, write::Table,
};
use engine::{
    inspect::{to_recount, unreadable},
    jobs::sweep::jobs,
    loss,
    park::parked,
};
use keys::{counter::COUNTER, item::Item, key::Key};
use maud::{Markup, html};
use operate::{tables::Deployment, words::counted};
use store::{Segment, Store, StoreError};

use crate::{
    Console,
    flow::{
        Flow,
        shown::{self, DerivationFigures, SpentWrites},
    },
    frame::{self, ConsolePage},
    item::typed,
};

/// Items, and changes, that the page displays.
const ITEMS: usize = 10;
const CHANGES: usize = 4;

/// The current numbers of the page.
struct Present {
    n_parked: usize,
    n_jobs: usize,
    n_unreadable: usize,
    n_to_recount: usize,
    /// Marks of possible losses.
    n_marks: usize,
    /// Some items; none on the real AWS, where reading them costs.
    items: Vec<(Key, Item)>,
}

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    match present(&console).await {
        Ok(present) => frame::page(&format!("Overview of {}", console.opened.name), &whole(&console, &present)),
        Err(error) => frame::failed(StatusCode::BAD_GATEWAY, &engine::backoff::describe(&error)),
    }
}

async fn present<S: Store>(console: &Console<S>) -> Result<Present, StoreError> {
    let (store, schema) = (&console.opened.store, &console.opened.schema);
    let items = if console.opened.is_aws {
        Vec::new()
    } else {
        let page = store.scan(Table::Main, Segment { number: 0, of: 1 }, None).await?;
        let items = page.items.into_iter().filter_map(|item| Some((schema.layout.key(&item)?, item)));
        items
            .filter(|(key, item)| schema.image(key, item).is_none_or(|it| !it.definition.is_own()))
            .take(ITEMS)
            .collect()
    };
    Ok(Present {
        n_parked: parked(store).await?.len(),
        n_jobs: jobs(store, &schema.layout).await?.len(),
        n_unreadable: unreadable(store).await?.len(),
        n_to_recount: to_recount(store).await?.len(),
        n_marks: loss::marks(store).await?.len(),
        items,
    })
}

fn whole<S: Store>(console: &Console<S>, present: &Present) -> Markup {
    html! {
        (is_well(console, present))
        @if let Some(flow) = &console.flow {
            h2 { "What is happening" }
            (frame::live_part("/happening", &happening(console, flow)))
        }
        h2 { "What you can try" }
        (cards(console, present))
        h2 { "What is derived" }
        p.lead {
            "A line leads from the items that a derivation reads to the attributes that it writes, under the entity that has them. "
            @if console.flow.is_some() {
                "The numbers are since the start, but changes a second are those of the last minute. Lag is the median: from the "
                "start of the function's batch to the write, and from the application's write, in whole seconds, to that write."
            }
        }
        @match &console.flow {
            Some(flow) => (frame::live_part("/derivations", &measured(console, flow))),
            None => (derivations(console, None)),
        }
        (frame::live_updates())
    }
}

/// Whether something waits for a person.
fn is_well<S>(console: &Console<S>, present: &Present) -> Markup {
    let Present { n_parked, n_jobs, n_unreadable, n_to_recount, n_marks, .. } = present;
    let named = [
        (*n_parked, "parked change"),
        (*n_unreadable, "unreadable item"),
        (*n_to_recount, "recount"),
        (*n_marks, "loss mark"),
    ];
    let mut needs: Vec<String> = named.iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(*n, what)).collect();
    needs.extend(console.verification.has_found().then(|| "what the last verification found".to_owned()));
    html! {
        @if needs.is_empty() { p.verdict.right { "Nothing is parked, unreadable or to be repaired." } }
        @else { p.verdict.waits { "This needs you: " (needs.join(", ")) "." } }
        dl.watched {
            div { dt { "Parked changes" } dd { a href="/parked" { (n_parked) } } }
            div { dt { "Unreadable items" } dd { a href="/parked#unreadable" { (n_unreadable) } } }
            div { dt { "Jobs" } dd { a href="/jobs" { (n_jobs) } } }
            div { dt { "Last verification" } dd { a href="/verify" { (console.verification.verdict()) } } }
        }
    }
}

/// What the functions do now.
pub(crate) fn happening<S>(_: &Console<S>, flow: &Flow) -> Markup {
    let (spent, figures) = (flow.spent(), flow.figures());
    let slowest = figures.values().filter_map(DerivationFigures::own_ms).max();
    let hottest = figures.iter().filter_map(|(name, figures)| figures.hottest().map(|(key, n)| (name, key, n)));
    let hottest = hottest.max_by_key(|(.., n)| *n);
    let (changes, _) = flow.entries(|entry| entry.record == RecordKind::Change, CHANGES);
    html! {
        dl.watched {
            div { dt { "Changes a second" } dd { (format!("{:.2}", flow.changes_a_second())) } }
            div { dt { "Slowest derivation, median" } dd { @match slowest { Some(ms) => { (ms) " ms" }, None => "–" } } }
            div { dt { "Write units" } dd { a href="/cost" { (shown::amount(spent.whole.ripple)) } } }
            div { dt { "Conflicts and throttles" } dd { (spent.conflicts.values().sum::<u64>()) } }
        }
        @if let Some((derivation, key, n)) = hottest {
            p { small { "Most written: " (frame::key(key)) ", " (n) " times by " (derivation) } }
        }
        @if changes.is_empty() { p.empty { "Nothing yet: write an item into the table, and the change appears here." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "time" } th { "change" } th { "what followed" } th.number { "write units" } } }
                tbody { @for entry in &changes { tr {
                    td { (shown::clock(entry.came_ms)) }
                    td { (entry.entity) " " strong { (shown::action(entry.action)) } " " (frame::key(&entry.item)) }
                    td { a href=(frame::of_change(&entry.event)) {
                        @if entry.troubles().next().is_some() { span.differs { "trouble" } } @else { (counted(entry.n_writes(), "write")) }
                    } }
                    td.number { (shown::amount(entry.units())) }
                } } }
            } }
            p { a href="/flow" { "All changes" } }
        }
    }
}

fn cards<S>(console: &Console<S>, Present { items, .. }: &Present) -> Markup {
    let schema = &console.opened.schema;
    html! {
        @if console.step.is_some() {
            section {
                h3 { "Break the delivery" }
                (picture())
                p {
                    "Pause the stream, then deliver a record twice, too late, or to an invocation that is killed halfway. "
                    "The count is right in the end."
                }
                a.button href="/step" { "Choose a scene" }
            }
        }
        section {
            h3 { "Explain an item" }
            @if console.opened.is_aws { p { "Type its key above. Listing items would cost read units." } }
            @else if items.is_empty() { p { "The table is empty: write something into it, and load this page again." } }
            @else {
                p { "What is derived of it, from what, and whether it is right now. Type a key above, or choose one:" }
                ul.contents { @for (key, item) in items { li { (frame::key(key)) " " small { (entity_of(schema, key, item)) } } } }
            }
        }
    }
}

/// Step mode as a picture: a record that is delivered twice passes the gate, and counts once.
fn picture() -> Markup {
    let boxed = |x: usize, y: usize, text: &str| {
        html! { rect x=(x) y=(y) width="112" height="30" rx="6" {} text x=(x + 56) y=(y + 19) text-anchor="middle" { (text) } }
    };
    html! {
        svg.picture viewBox="0 0 640 116" role="img" aria-label="A record waits before the function, is delivered twice, and counts once" {
            path d="M114 27 H188 M212 27 H274 M388 27 C440 27 440 58 496 58" {}
            path.again d="M114 89 H188 M212 89 H274 M388 89 C440 89 440 62 496 62" {}
            (boxed(1, 12, "record")) (boxed(1, 74, "the same, again"))
            g.main { rect x="190" y="6" width="7" height="104" rx="2" {} rect x="203" y="6" width="7" height="104" rx="2" {} }
            (boxed(275, 12, "function")) (boxed(275, 74, "function"))
            g.main { (boxed(498, 45, "count = 1")) }
        }
    }
}

// ---- What is derived ----

/// The derivations with their numbers.
pub(crate) fn measured<S>(console: &Console<S>, flow: &Flow) -> Markup {
    derivations(console, Some(&(flow.spent(), flow.figures())))
}

/// Write units, and the metrics of each derivation.
type Measured = (SpentWrites, BTreeMap<String, DerivationFigures>);

/// The derivations, by the entity that they write into.
fn derivations<S>(console: &Console<S>, measured: Option<&Measured>) -> Markup {
    let Deployment { schema, catalogue, .. } = &console.opened;
    let mut groups: BTreeMap<String, Vec<Row<'_>>> = BTreeMap::new();
    let rows = catalogue.positioned().filter(|(_, it)| shown::count_of(catalogue, it).is_none());
    for row in rows.filter_map(|(at, derivation)| Row::of(console, at, derivation)) {
        groups.entry(row.entity.clone()).or_default().push(row);
    }
    html! {
        div.wide tabindex="0" { table.derived {
            thead { tr {
                th { "from" } th { "derivation" } th { "into" }
                @if measured.is_some() {
                    th.number { "changes / s" } th.number { "writes" } th.number { "write units" } th.number { "lag, ms" } th.number { "conflicts" }
                }
            } }
            @for (entity, rows) in &groups {
                tbody id=(format!("entity-{entity}")) {
                    tr.group { th scope="rowgroup" colspan="8" {
                        (entity) " "
                        @if let Some(definition) = schema.entity(entity) { code { (definition.key.pk) " / " (definition.key.sk) } }
                    } }
                    @for row in rows { tr {
                        td { @for from in &row.outline.from { div.from {
                            @if groups.contains_key(from) { a href=(format!("#entity-{from}")) { (from) } } @else { span { (from) } }
                        } } }
                        th scope="row" {
                            @if measured.is_some() { a href=(frame::of_flow(row.label)) { (row.label) } } @else { (row.label) }
                            div { small { (row.kind) @for term in &row.outline.terms { ", " (term) } } }
                        }
                        td.into { (row.writes) }
                        @if let Some(measured) = measured { (row.numbers(measured)) }
                    } }
                }
            }
        } }
    }
}

/// A derivation; a count with its displays.
struct Row<'a> {
    label: &'a str,
    /// Its name, and those of its displays.
    labels: Vec<&'a str>,
    kind: &'static str,
    /// The entity that it writes into.
    entity: String,
    outline: Outline,
    /// The attributes that it writes.
    writes: String,
}

impl<'a> Row<'a> {
    fn of<S>(console: &'a Console<S>, at: DerivationAt, derivation: &'a Derivation) -> Option<Self> {
        let Deployment { schema, catalogue, .. } = &console.opened;
        let (label, outline) = (derivation.label(), derivation.kind.outline(schema));
        let displays = catalogue.positioned().filter(|(_, it)| shown::count_of(catalogue, it) == Some(label));
        let (ats, labels): (Vec<_>, Vec<_>) =
            std::iter::once((at, derivation)).chain(displays).map(|(at, it)| (at, it.label())).unzip();
        let parts = || ats.iter().flat_map(|at| catalogue.writes(*at)).filter(|part| part.entity != COUNTER);
        let names = parts().filter_map(|part| part.of.attribute()).filter(|name| !name.ends_with(":rev"));
        let writes = match names.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() && parts().next().is_some() => "the item".to_owned(),
            none if none.is_empty() => touched(&outline.touches),
            names => names,
        };
        let entity = parts().next().map(|part| &part.entity);
        let entity = entity.or(outline.counts.as_ref()).or(outline.from.first())?.clone();
        Some(Self { label, labels, kind: derivation.kind.name(), entity, outline, writes })
    }

    fn numbers(&self, (spent, figures): &Measured) -> Markup {
        let labels = || self.labels.iter().copied();
        let totals = || labels().filter_map(|name| spent.totals.get(name));
        let changes = figures.get(self.label).map_or(0.0, |it| it.changes_a_second);
        let lag =
            labels().filter_map(|name| figures.get(name)).filter_map(|it| Some((it.own_ms()?, it.whole_ms()))).max();
        let conflicts: u64 = labels().filter_map(|name| spent.conflicts.get(name)).sum();
        html! {
            td.number { (format!("{changes:.2}")) }
            td.number { (totals().map(|total| total.n_writes).sum::<usize>()) }
            td.number { (shown::amount(totals().map(|total| total.units).sum())) }
            td.number { @match lag { Some((own, whole)) => { (own) @if let Some(whole) = whole { " / " (whole) } }, None => "–" } }
            td.number { (conflicts) }
        }
    }
}

/// What a cascade does to other items, in words; the deleted ones together, and each once.
fn touched(touches: &[String]) -> String {
    let deleted: BTreeSet<&str> = touches.iter().filter_map(|it| it.strip_suffix(" deleted")).collect();
    let deleted = deleted.into_iter().collect::<Vec<_>>().join(", ") + " deleted";
    let others = touches.iter().filter(|it| !it.ends_with(" deleted")).cloned();
    std::iter::once(deleted).filter(|it| it != " deleted").chain(others).collect::<Vec<_>>().join(", ")
}

/// A table of items with their types and all of their attributes.
pub(crate) fn items_table(schema: &Schema, items: &[Item]) -> Markup {
    let items: Vec<(Key, &Item)> = items.iter().filter_map(|item| Some((schema.layout.key(item)?, item))).collect();
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "item" } th { "type" } th { "all of it" } } }
            tbody { @for (key, item) in &items {
                tr { td { (frame::key(key)) } td { (entity_of(schema, key, item)) } td { (typed("JSON", item)) } }
            } }
        } }
    }
}

fn entity_of<'a>(schema: &'a Schema, key: &'a Key, item: &'a Item) -> &'a str {
    schema.image(key, item).map_or("declared nowhere", |image| image.definition.name.as_str())
}
