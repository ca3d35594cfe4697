//! The first page: the table, its derivations, and some of its items.

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use derive::{derivation::Derivation, schema::Schema, write::Table};
use engine::{inspect::n_unreadable, jobs::ground::sweep::jobs, park::parked};
use keys::{item::Item, key::Key};
use maud::{Markup, html};
use operate::words::counted;
use store::{Segment, Store, StoreError};

use crate::{
    Console,
    explained::graph,
    flow::{
        Flow,
        shown::{DerivationFigures, SpentWrites, WriteTotal},
    },
    frame::{self, ConsolePage},
    live,
};

/// Items that the page displays.
const ITEMS: usize = 10;

/// The current numbers of the page.
struct Present {
    n_parked: usize,
    n_jobs: usize,
    n_unreadable: usize,
    /// Some items; none on the real AWS, where reading them costs.
    items: Vec<(Key, Item)>,
}

pub(crate) async fn page<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> ConsolePage {
    match present(&console).await {
        Ok(present) => frame::page(&format!("The table {}", console.opened.name), &whole(&console, &present)),
        Err(error) => frame::failed(StatusCode::BAD_GATEWAY, &engine::backoff::describe(&error)),
    }
}

async fn present<S: Store>(console: &Console<S>) -> Result<Present, StoreError> {
    let (store, layout) = (&console.opened.store, &console.opened.schema.layout);
    let items = if console.opened.is_aws {
        Vec::new()
    } else {
        let page = store.scan(Table::Main, Segment { number: 0, of: 1 }, None).await?;
        page.items.into_iter().filter_map(|item| Some((layout.key(&item)?, item))).take(ITEMS).collect()
    };
    Ok(Present {
        n_parked: parked(store).await?.len(),
        n_jobs: jobs(store, layout).await?.len(),
        n_unreadable: n_unreadable(store).await?,
        items,
    })
}

fn whole<S: Store>(console: &Console<S>, present: &Present) -> Markup {
    let Present { n_parked, n_jobs, n_unreadable, items } = present;
    let (schema, catalogue) = (&console.opened.schema, &console.opened.catalogue);
    html! {
        p {
            "Ripple keeps the values below in step with the items that they are derived from. "
            @if console.flow.is_some() { "Write into the table and watch the " a href="/flow" { "flow" } ", or open" } @else { "Open" }
            " an item to see what is derived of it, from what, and whether it is right now."
        }
        @if console.flow.is_some() {
            p { "To see that it is exact, " a href="/step" { "play a scene" } ": a record comes twice, an invocation is killed, an old record comes late." }
        }
        p {
            a href="/parked" { (counted(*n_parked, "parked change")) } " · " a href="/jobs" { (counted(*n_jobs, "job")) } " · "
            (counted(*n_unreadable, "unreadable item"))
        }
        h2 { "What is derived" }
        @if console.flow.is_some() {
            p { "Each derivation links to the changes that it handled. Beside its name are the changes a second, of the last minute." }
        }
        (graph(schema, catalogue, console.flow.as_ref().map(|flow| flow.figures()).as_ref()))
        @if items.is_empty() {
            p.empty {
                @if console.opened.is_aws { "Look an item up by its key above: listing items would cost read units." }
                @else { "The table is empty: write something into it, and load this page again." }
            }
        } @else {
            h2 { "Some items" }
            div.wide tabindex="0" { table {
                thead { tr { th { "item" } th { "type" } } }
                tbody { @for (key, item) in items { (item_row(schema, key, item, None)) } }
            } }
        }
        h2 { "Derivations" }
        @match &console.flow {
            Some(flow) => (live::part("/derivations", &derivations(console, flow))),
            None => (declared(console)),
        }
        (live::script())
    }
}

/// The derivations with their declarations.
fn declared<S>(console: &Console<S>) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th { "derivation" } th { "kind" } th { "from" } th { "into" } th { "terms" } } }
            tbody { @for derivation in console.opened.catalogue.derivations() {
                tr { th scope="row" { (derivation.label()) } (declaration(&console.opened.schema, derivation)) }
            } }
        } }
    }
}

/// The derivations with their metrics.
fn derivations<S>(console: &Console<S>, flow: &Flow) -> Markup {
    let (spent, figures) = (flow.spent(), flow.figures());
    html! {
        p {
            "Changes a second are those of the last minute; each lag is a median. "
            "The function's lag is the time from the start of its batch to the write; the whole lag begins when the change was written, "
            "and the stream rounds that down to a second."
        }
        div.wide tabindex="0" { table {
            thead { tr {
                th { "derivation" } th { "kind" } th { "from" } th { "into" } th { "terms" }
                th.number { "changes a second" } th.number { "writes" } th.number { "write units" } th.number { "units a write" }
                th.number { "function's lag, ms" } th.number { "whole lag, ms" } th.number { "conflicts" } th { "most written" }
            } }
            tbody { @for derivation in console.opened.catalogue.derivations() {
                (measured(&console.opened.schema, derivation, &spent, figures.get(derivation.label())))
            } }
        } }
    }
}

fn declaration(schema: &Schema, derivation: &Derivation) -> Markup {
    let outline = derivation.kind.outline(schema);
    html! {
        td { (derivation.kind.name()) }
        td { (outline.from.join(", ")) }
        td { code { (outline.into.unwrap_or_default()) } }
        td { (outline.terms.join("; ")) }
    }
}

fn measured(
    schema: &Schema,
    derivation: &Derivation,
    spent: &SpentWrites,
    figures: Option<&DerivationFigures>,
) -> Markup {
    let name = derivation.label();
    let WriteTotal { n_writes, units } = spent.totals.get(name).copied().unwrap_or_default();
    let ms = |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), |ms| ms.to_string());
    let n = f64::from(u32::try_from(n_writes.max(1)).unwrap_or(u32::MAX));
    html! {
        tr {
            th scope="row" { a href=(frame::of_flow(name)) { (name) } }
            (declaration(schema, derivation))
            td.number { (format!("{:.2}", figures.map_or(0.0, DerivationFigures::changes_a_second))) }
            td.number { (n_writes) }
            td.number { (format!("{units:.2}")) }
            td.number { (format!("{:.2}", units / n)) }
            td.number { (ms(figures.and_then(DerivationFigures::own_ms))) }
            td.number { (ms(figures.and_then(DerivationFigures::whole_ms))) }
            td.number { (spent.conflicts.get(name).copied().unwrap_or_default()) }
            td { @for (key, n) in figures.iter().flat_map(|figures| figures.hottest()) { div { (frame::key(key)) " " (n) "×" } } }
        }
    }
}

/// The updates of the derivations' metrics.
pub(crate) async fn events<S: Store + 'static>(State(console): State<Arc<Console<S>>>) -> Response {
    let Some(flow) = console.flow.clone() else {
        return frame::failed(StatusCode::NOT_FOUND, "No functions run here.").into_response();
    };
    live::events(flow.watch(), move || derivations(&console, &flow))
}

/// An item with its type, and further cells of its row.
pub(crate) fn item_row(schema: &Schema, key: &Key, item: &Item, more: Option<&Markup>) -> Markup {
    let entity = schema.image(key, item).map(|image| image.definition.name.as_str());
    html! {
        tr {
            td { (frame::key(key)) }
            td { (entity.unwrap_or("declared nowhere")) }
            @if let Some(more) = more { td { (more) } }
        }
    }
}
