//! Engines as the functions and the operators make them, and the handler: the text of an event in, a response out.

use std::{sync::Arc, time::Duration};

use derive::{catalogue::Catalogue, family::Family};
use engine::{
    batch::{Engine, Handled},
    clock::Clock,
    ledger::LedgerKind,
    limits::FanOutLimits,
    registry::RegistryWatch,
};
use functions::handler::response;
use futures::future::BoxFuture;
use serde_json::Value;
use store::Store;
use support::clock::ManualClock;

use crate::{mutant::Mutant, scene::Scene};

/// How long after a removal a cascade begins, in milliseconds.
pub(crate) const SETTLE_MS: u64 = 30_000;

/// Small limits, so that there are jobs with several pages.
pub(crate) const FAN_OUT: FanOutLimits = FanOutLimits {
    direct_max: 2,
    page_items: 2,
    page_ms: 30,
    page_beside_ms: 5,
    units_per_second: None,
    index_lag_ms: 15_000,
};

/// How far a clock is off that is wrong by years, in milliseconds: 16 years.
const YEARS_OFF_MS: i64 = 16 * 366 * 24 * 3_600_000;

/// The clock of one instance, which may be off.
pub(crate) struct InstanceClock {
    clock: ManualClock,
    /// By how much, in milliseconds.
    off_ms: i64,
}

impl InstanceClock {
    pub(crate) fn drawn(scene: &Scene) -> Self {
        let (chance, max) = (&scene.chance, scene.clocks_off_ms);
        let off_ms = i64::try_from(chance.below(2 * max + 1)).unwrap();
        // A draw of 0 is a clock that is right.
        let off_ms = if off_ms % 2 == 0 { off_ms / 2 } else { -(off_ms / 2) - 1 };
        scene.count_all("clocks off", usize::from(off_ms != 0));
        Self { clock: scene.clock.clone(), off_ms }
    }

    /// One that is wrong by years. DynamoDB refuses each call that it signs.
    pub(crate) fn years_off(scene: &Scene) -> Self {
        let off_ms = *scene.chance.one_of(&[YEARS_OFF_MS, -YEARS_OFF_MS]).unwrap();
        scene.count("clocks off by years");
        Self { clock: scene.clock.clone(), off_ms }
    }
}

impl Clock for InstanceClock {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add_signed(self.off_ms)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }

    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()> {
        self.clock.until(at_ms.saturating_add_signed(-self.off_ms))
    }

    fn chance(&self, below: u64) -> u64 {
        self.clock.chance(below)
    }
}

/// The engine of a function's instance that starts with this clock, of the old or the new version.
pub(crate) fn function<S: Store>(
    scene: &Scene,
    clock: InstanceClock,
    (families, ledger): (&[Family], LedgerKind),
    store: S,
    is_old: bool,
) -> Engine<S> {
    let old = scene.rollout.old().filter(|_| is_old);
    let catalogue = old.map_or_else(|| Arc::clone(&scene.catalogue), Arc::clone);
    // A process checks the registry before anything else. One whose calls are all refused so handles nothing.
    let is_alone = clock.off_ms.abs() == YEARS_OFF_MS;
    let watch = if is_alone { scene.rollout.own_watch() } else { scene.rollout.watch(is_old, families) };
    built(scene, clock, catalogue, (families, ledger), store).watching(watch)
}

/// The engine of an operator's command, of the new version.
pub(crate) fn engine<S: Store>(scene: &Scene, families: &[Family], ledger: LedgerKind, store: S) -> Engine<S> {
    engine_with(scene, Arc::clone(&scene.catalogue), families, ledger, store)
}

/// The engine of an operator's command with this catalogue.
pub(crate) fn engine_with<S: Store>(
    scene: &Scene,
    catalogue: Arc<Catalogue>,
    families: &[Family],
    ledger: LedgerKind,
    store: S,
) -> Engine<S> {
    built(scene, InstanceClock::drawn(scene), catalogue, (families, ledger), store).watching(RegistryWatch::reading(0))
}

fn built<S: Store>(
    scene: &Scene,
    clock: InstanceClock,
    catalogue: Arc<Catalogue>,
    (families, ledger): (&[Family], LedgerKind),
    store: S,
) -> Engine<S> {
    let schema = Arc::clone(&scene.schema);
    let engine = Engine::new(schema, catalogue, families.to_vec(), store, Arc::new(clock));
    let left_out = scene.config.mutant.and_then(Mutant::step);
    let engine = engine.with_ledger(ledger).with_limits(scene.limits());
    let engine = engine.with_settling(scene.settle_ms()).with_fan_out(FAN_OUT).with_spread(scene.spread);
    engine.with_hot_for(scene.hot_for_ms).without(left_out)
}

/// The handler's response, with the engine's account. An error is a function error.
pub(crate) async fn respond<S: Store>(
    engine: &Engine<S>,
    event: &str,
    deadline_ms: u64,
) -> Result<(Value, Handled), String> {
    let handled = engine.handle(event, deadline_ms).await.map_err(|error| error.to_string())?;
    Ok((response(&handled), handled))
}
