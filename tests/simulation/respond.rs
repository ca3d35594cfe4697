//! The handler, as the platform calls it: the text of an event in, a response out.

use std::sync::Arc;

use derive::{catalogue::Catalogue, family::Family};
use engine::{
    batch::{Engine, Handled},
    ledger::LedgerKind,
    registry::watch::RegistryWatch,
};
use functions::handler::response;
use serde_json::Value;
use store::Store;

use crate::{
    actors::sweeper::{FAN_OUT, SETTLE_MS},
    scene::Scene,
};

/// An engine as a function's instance makes it when it starts, one of the old version or of the new.
pub(crate) fn function<S: Store>(
    scene: &Scene,
    families: &[Family],
    ledger: LedgerKind,
    store: S,
    is_old: bool,
) -> Engine<S> {
    let (catalogue, looking) = scene.rollout.version(scene, is_old, families);
    made(scene, catalogue, families, ledger, store).watching(looking)
}

/// An engine as an operator's command makes it, of the new version.
pub(crate) fn engine<S: Store>(scene: &Scene, families: &[Family], ledger: LedgerKind, store: S) -> Engine<S> {
    made(scene, scene.deployed.catalogue(scene), families, ledger, store).watching(RegistryWatch::reading(0))
}

fn made<S: Store>(
    scene: &Scene,
    catalogue: Arc<Catalogue>,
    families: &[Family],
    ledger: LedgerKind,
    store: S,
) -> Engine<S> {
    let schema = Arc::clone(&scene.schema);
    let engine = Engine::new(schema, catalogue, families.to_vec(), store, Arc::new(scene.clock.clone()));
    let left_out = scene.mutant.and_then(super::mutant::Mutant::step);
    let engine = engine.with_ledger(ledger).with_limits(scene.limits());
    engine.with_settling(SETTLE_MS).with_fan_out(FAN_OUT).without(left_out)
}

/// What the handler answers, with the engine's own account; an error is a function error.
pub(crate) async fn respond<S: Store>(
    engine: &Engine<S>,
    event: &str,
    deadline_ms: u64,
) -> Result<(Value, Handled), String> {
    let handled = engine.handle(event, deadline_ms).await.map_err(|error| error.to_string())?;
    Ok((response(&handled), handled))
}
