//! The first page: what the table is, what is derived in it, and some of its items.

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::StatusCode};
use derive::{derivation::Derivation, schema::Schema, write::Table};
use engine::{jobs::ground::sweep::jobs, park::lists::n_unreadable, park::redrive::parked};
use keys::{item::Item, key::Key};
use maud::{Markup, html};
use operate::words::counted;
use store::{Segment, Store, StoreError};

use crate::{
    Console,
    flow::WriteTotal,
    frame::{self, ConsolePage},
    graph::graph,
    link,
};

/// Items that the page shows.
const ITEMS: usize = 10;

/// What the page says of the present.
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
    let totals = console.flow.as_ref().map(|flow| flow.totals());
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
        @if console.flow.is_some() { p { "Each derivation links to the changes that it handled." } }
        (graph(schema, catalogue, console.flow.is_some()))
        @if items.is_empty() {
            p.empty {
                @if console.opened.is_aws { "Look an item up by its key above: listing items would cost read units." }
                @else { "The table is empty: write something into it, and load this page again." }
            }
        } @else {
            h2 { "Some items" }
            div.wide { table {
                thead { tr { th { "item" } th { "type" } } }
                tbody { @for (key, item) in items { (item_row(schema, key, item)) } }
            } }
        }
        h2 { "Derivations" }
        div.wide { table {
            thead { tr { th { "derivation" } th { "kind" } th { "from" } th { "into" } th { "terms" }
                @if totals.is_some() { th { "writes" } th { "write units" } }
            } }
            tbody { @for derivation in catalogue.derivations() { (derivation_row(schema, derivation, totals.as_ref())) } }
        } }
    }
}

/// An item with its type.
pub(crate) fn item_row(schema: &Schema, key: &Key, item: &Item) -> Markup {
    let entity = schema.image(key, item).map(|image| image.definition.name.as_str());
    html! { tr { td { (link::key(key)) } td { (entity.unwrap_or("declared nowhere")) } } }
}

fn derivation_row(schema: &Schema, derivation: &Derivation, totals: Option<&BTreeMap<String, WriteTotal>>) -> Markup {
    let outline = derivation.kind.outline(schema);
    html! {
        tr {
            th scope="row" {
                @if totals.is_some() { a href=(link::of_flow(&derivation.name)) { (derivation.name) } } @else { (derivation.name) }
            }
            td { (derivation.kind.name()) }
            td { (outline.from.join(", ")) }
            td { code { (outline.into.unwrap_or_default()) } }
            td { (outline.terms.join("; ")) }
            @if let Some(totals) = totals {
                @let WriteTotal { n_writes, units } = totals.get(&derivation.name).copied().unwrap_or_default();
                td { (n_writes) }
                td { (format!("{units:.2}")) }
            }
        }
    }
}
