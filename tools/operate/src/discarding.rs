//! Discards a parked change and reports what is lost with it.

use std::sync::Arc;

use derive::catalogue::Catalogue;
use engine::{
    backoff::{GaveUp, describe},
    batch::Engine,
    clock::{Clock as _, SystemClock},
    park::ParkedChange,
    publishing::RegistryError,
    redrive::{concerns::Concerns, discard::Discarded},
};
use store::Store;

use crate::redriving::ChangeOutcome;

/// Time limit for one change, in milliseconds: a few reads and a transaction.
const CHANGE_MS_MAX: u64 = 30_000;

/// What is lost with a parked change; the derivations have their labels.
///
/// # Errors
///
/// [`GaveUp`] if the ledger cannot be read.
pub async fn lost<S: Store>(engine: &Engine<Arc<S>>, change: &ParkedChange) -> Result<Concerns, GaveUp> {
    let mut lost = engine.lost(change, SystemClock.now_ms().saturating_add(CHANGE_MS_MAX)).await?;
    let catalogue: &Catalogue = engine.catalogue();
    let relabelled = |mut name: String| {
        catalogue.relabel(&mut name);
        name
    };
    for named in [&mut lost.searches, &mut lost.cascades] {
        *named = std::mem::take(named).into_iter().map(|(name, key)| (relabelled(name), key)).collect();
    }
    lost.counts = std::mem::take(&mut lost.counts)
        .into_iter()
        .map(|mut target| {
            catalogue.relabel(&mut target.derivation);
            target
        })
        .collect();
    Ok(lost)
}

/// What is lost, a line for each part, with what to do about it.
#[must_use]
pub fn lost_lines(change: &ParkedChange, lost: &Concerns) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for target in &lost.counts {
        lines.push(format!("its change of {} at {}: it is listed for a recount", target.derivation, target.item));
    }
    if change.family == derive::family::Family::Additive && lost.counts.is_empty() && lost.unknown.is_some() {
        lines.push("its change of any count, because it cannot be read: it is listed for a recount".to_owned());
    }
    lines.extend(lost.items.iter().map(|item| format!("the refresh of {item}: run `ripple repair`")));
    for (derivation, source) in &lost.searches {
        lines.push(format!("the refresh by {derivation} of the items that depend on {source}: run `ripple repair`"));
    }
    for (derivation, owner) in &lost.cascades {
        lines.push(format!(
            "the cascade {derivation} of {owner}: it will not run, so delete what belonged to it yourself"
        ));
    }
    lines.extend(lost.jobs.iter().map(|job| format!("what the job {job} could not do: run `ripple repair`")));
    if change.family == derive::family::Family::LevelTriggered && lost.unknown.is_some() {
        lines.push("its refreshes, which are unknown, because it cannot be read: run `ripple repair`".to_owned());
    }
    lines
}

/// Discards a change.
///
/// # Errors
///
/// [`RegistryError`] if the registry cannot be read; then nothing is discarded.
pub async fn discard<S: Store>(engine: &Engine<Arc<S>>, change: &ParkedChange) -> Result<ChangeOutcome, RegistryError> {
    let deadline_ms = SystemClock.now_ms().saturating_add(CHANGE_MS_MAX);
    engine.publish(deadline_ms).await?;
    Ok(match engine.discard(change, deadline_ms).await {
        Ok(Discarded::Done) => ChangeOutcome::Done("discarded"),
        Ok(Discarded::Gone) => ChangeOutcome::Gone,
        Ok(Discarded::Still { cause }) => ChangeOutcome::Still { cause },
        Err(error) => ChangeOutcome::Failed { why: describe(&error) },
    })
}
