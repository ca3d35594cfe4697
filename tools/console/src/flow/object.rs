//! The changes of the flow as JSON, with the selection of the flow's page.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    http::StatusCode,
    response::Response,
};
use derive::write::Table;
use operate::{objects::key, words::time};
use serde_json::{Value, json};
use store::Store;

use super::entry::{FlowDelivery, FlowEntry, FlowWrite, Trouble};
use crate::flow::Selection;
use crate::flow::{NO_FLOW, SHOWN};
use crate::{Console, json};

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
