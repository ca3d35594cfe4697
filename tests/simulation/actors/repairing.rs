//! Counts that somebody makes wrong by hand at any moment, and operators who repair them beside everybody else.
//!
//! A repair that ends mends everything that was wrong before it began, whoever else repairs at the same time.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    family::Family,
    write::{Action, Table, Update, Write},
};
use engine::{batch::Engine, count::Target, registry::Standing};
use keys::{counter::CounterKey, item::Item, key::Key, value::whole_number};
use operate::{
    loss::keeps,
    repair::{Repaired, Repairing},
    verify::{
        Extent, Finding, Scope, VerifyEvent,
        run::{Limits, Verification},
        scan::WINDOW_BYTES,
        tallies::MemoryTallies,
    },
};
use store::Store;

use crate::{
    actors::verifying::WAIT_MS,
    engines::{engine, engine_with},
    executor::now,
    items::n,
    platform::stream::Author,
    scene::{Scene, rollout::Rollout},
    stored::parked,
    world::{BOTH, Ended, EventList, Mended, RepairUnderWay, SharedView, TASKS_MAX, ViewReader, World},
};

/// How long a repair's call is tried, in milliseconds.
const CALL_MS: u64 = 60_000;

/// Of a hundred repairs, how many are careless.
const CARELESS_PERCENT: usize = 15;

/// A verification proves the table up to this long before its start, in milliseconds: times of records are rounded down,
/// and clocks are off.
const MARGIN_MS: u64 = 10_000;

impl World {
    /// Somebody changes a counter by hand. The record of it goes through the stream like any other.
    pub(crate) fn plant_fault(&mut self) -> bool {
        let items = self.scene.database.memory().snapshot(Table::Main);
        let catalogue = self.scene.deployed();
        let is_mendable = |key: &Key, item: &Item| {
            let counter = CounterKey::parse(key)?;
            let at = catalogue.position(&counter.derivation)?;
            let is_history = catalogue.derivation(at)?.kind.is_history();
            (!is_history && item.get("Value").and_then(whole_number).is_some()).then_some(counter)
        };
        let counters: Vec<(&Key, CounterKey)> =
            items.iter().filter_map(|(key, item)| Some((key, is_mendable(key, item)?))).collect();
        let Some((key, counter)) = self.scene.chance.one_of(&counters) else { return false };
        let amount = i64::try_from(self.scene.chance.between(1, 5)).unwrap();
        let sign = if self.scene.chance.percent(50) { 1 } else { -1 };
        self.stream.take(Author::Service);
        let add = Item::from([("Value".to_owned(), n(&(sign * amount).to_string()))]);
        let action = Action::Update(Update { add, ..Update::default() });
        let write = Write { table: Table::Main, key: (*key).clone(), action, guard: None };
        now(self.scene.database.memory().write(&write)).unwrap();
        self.stream.take(Author::Service);
        self.scene.trace.note(|| format!("somebody adds {} to {key} by hand", sign * amount));
        self.scene.count("faults by hand");
        let target = Target { derivation: counter.derivation.clone(), item: counter.target.clone() };
        let planted = &mut self.planted;
        planted.n_faults += 1;
        planted.ever.insert(target.clone());
        planted.left.insert(target, planted.n_faults);
        true
    }

    /// An operator repairs. Several repairs may run at once.
    pub(crate) fn repair(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        if self.scene.drawn.is_none() && self.scene.chance.percent(CARELESS_PERCENT) {
            self.repair_carelessly();
        } else {
            self.begin_repair(self.n_tasks % 2 == 1);
        }
        true
    }

    /// A careless operator repairs: with the command of another version, which nothing stops at its start, or with a wrong
    /// guess of how far the functions are. Whatever is proved may be written, and nothing gets worse.
    fn repair_carelessly(&mut self) {
        let (catalogue, view) = if self.scene.chance.percent(50) {
            (Arc::clone(&self.scene.catalogue), self.guessed_view())
        } else {
            (Rollout::some_version(&self.scene.chance), self.new_view(self.n_tasks % 2 == 1))
        };
        let (caller, ledger) = (self.caller("careless repair"), self.mappings[0].ledger);
        let engine = engine_with(&self.scene, catalogue, &BOTH, ledger, Arc::clone(&caller.store));
        self.planted.n_repairs += 1;
        let run = format!("careless-run-{}", self.planted.n_repairs);
        let scene = Arc::clone(&self.scene);
        self.start(caller, None, async move {
            let deadline_ms = engine.clock().now_ms() + CALL_MS;
            Repairing::new(&engine).begin_repair(&run, deadline_ms).await.map_err(|error| error.to_string())?;
            let (events, _) = verified(&scene, &engine, view).await;
            let mut mended = Mended::default();
            for event in events {
                mend(&scene, &engine, &run, event, &mut mended).await;
            }
            scene.count("repaired carelessly");
            Ok(None)
        });
    }

    /// Begins a repair, to which the ledger proves the counts or the functions' positions do.
    pub(crate) fn begin_repair(&mut self, is_proven: bool) -> Ended {
        let caller = self.caller("repair");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
        self.planted.n_repairs += 1;
        let run = format!("run-{}", self.planted.n_repairs);
        let ended = Ended::default();
        let (n_faults, n_losses) = (self.planted.n_faults, self.losses.n);
        self.planted.under_way.push(RepairUnderWay { n_faults, n_losses, ended: Arc::clone(&ended) });
        let view = self.new_view(is_proven);
        let scene = Arc::clone(&self.scene);
        let result = Arc::clone(&ended);
        self.start(caller, None, async move {
            let mended = repaired(&scene, &engine, &run, view).await?;
            *result.lock().unwrap() = mended;
            Ok(None)
        });
        ended
    }

    /// Forgets the planted faults and the losses that an ended repair has mended.
    pub(crate) fn follow_repairs(&mut self) {
        let (left, under_way) = (&mut self.planted.left, &mut self.planted.under_way);
        let losses = &mut self.losses;
        under_way.retain(|RepairUnderWay { n_faults, n_losses, ended }| {
            let mended = ended.lock().unwrap().take();
            let Some(mended) = mended else { return Arc::strong_count(ended) > 1 };
            losses.is_open &= !mended.is_done || *n_losses < losses.n;
            losses.waits = mended.waits;
            if mended.is_whole {
                left.retain(|target, fault| *fault > *n_faults || mended.undecided.contains(target));
            }
            false
        });
    }
}

/// Repairs everything that a verification finds; `None` while some function is not registered with what is deployed.
async fn repaired<S: Store>(
    scene: &Scene,
    engine: &Engine<S>,
    run: &str,
    view: SharedView,
) -> Result<Option<Mended>, String> {
    let was_parked = is_any_parked(scene);
    let deadline_ms = || engine.clock().now_ms() + CALL_MS;
    Repairing::new(engine).begin_repair(run, deadline_ms()).await.map_err(|error| error.to_string())?;
    let registry = engine.registry(deadline_ms()).await.map_err(|error| error.to_string())?;
    if !scene.catalogue.positioned().all(|(at, _)| engine.standing(&registry, at) == Standing::Ready) {
        scene.trace.note(|| format!("{run} is not ready"));
        return Ok(None);
    }
    let begun_ms = engine.clock().now_ms();
    // A counter that does not exist, and should because of something parked, shows up in no finding.
    let (events, extent) = verified(scene, engine, view).await;
    let is_done = extent.is_some_and(|extent| extent.is_handled);
    let is_proven = extent.is_some_and(|extent| extent.is_proven && extent.is_handled);
    let is_whole = is_proven && !was_parked && !is_any_parked(scene);
    let mut mended = Mended { is_done, is_whole, ..Mended::default() };
    for event in events {
        mend(scene, engine, run, event, &mut mended).await;
    }
    if mended.is_whole {
        let names = scene.catalogue.derivations().map(|derivation| derivation.name.clone());
        let names: BTreeSet<String> = names.filter(|name| !mended.open.contains(name)).collect();
        let until_ms = begun_ms.saturating_sub(MARGIN_MS);
        let filled = engine.mark_filled(&names, &registry, until_ms, deadline_ms()).await;
        scene.trace.note(|| format!("{run} marks {filled:?} as filled, {:?} are open", mended.open));
        scene.count("filled");
    }
    Ok(Some(mended))
}

/// What a verification reports, and what it proves; nothing if it ended early.
async fn verified<S: Store>(scene: &Scene, engine: &Engine<S>, view: SharedView) -> (Vec<VerifyEvent>, Option<Extent>) {
    let counts = scene.catalogue.derivations().filter(|derivation| derivation.kind.family() == Family::Additive);
    let counts: BTreeSet<String> = counts.map(|derivation| derivation.name.clone()).collect();
    let following = ViewReader::new(scene, engine.clock(), view);
    let (mut tallies, mut events) = (MemoryTallies::default(), EventList::default());
    let limits = Limits { segments: 1, wait_ms: WAIT_MS, window_bytes: WINDOW_BYTES };
    let verification = Verification::new(engine, &following, &mut tallies, &mut events, limits, Scope::default());
    // A backfill has to prove all of it.
    let verification = verification.proving(counts);
    let verified = verification.run().await;
    drop(verification);
    (events.0, verified.ok())
}

/// Repairs one finding, and records what is left.
async fn mend<S: Store>(scene: &Scene, engine: &Engine<S>, run: &str, event: VerifyEvent, mended: &mut Mended) {
    mended.waits |= matches!(&event, VerifyEvent::Waiting(finding) if keeps(&scene.catalogue, finding) == Some(Family::LevelTriggered));
    mended.is_done &= !matches!(event, VerifyEvent::Undecided(..)) && !mended.waits;
    let finding = match event {
        VerifyEvent::Finding(finding, _) => finding,
        VerifyEvent::Undecided(finding, _) | VerifyEvent::Waiting(finding) => {
            scene.trace.note(|| format!("{run} leaves {} {} / {}", finding.derivation, finding.pk, finding.sk));
            mended.undecided.extend(target(&finding));
            mended.open.insert(finding.derivation);
            return;
        }
        VerifyEvent::Unproven(target) => {
            mended.open.insert(target.derivation.clone());
            mended.undecided.insert(target);
            return;
        }
        VerifyEvent::Unreadable(_) | VerifyEvent::Unlike(_) | VerifyEvent::AboutNothing(_) => return,
    };
    let repaired = Repairing::new(engine).repair(&finding, run, engine.clock().now_ms() + CALL_MS).await;
    scene.trace.note(|| format!("{run} repairs {} {} / {}: {repaired:?}", finding.derivation, finding.pk, finding.sk));
    match repaired {
        Ok(Repaired::Done) => scene.count("repaired"),
        Ok(Repaired::NotNeeded) => {}
        Ok(Repaired::Refused { .. }) => {
            mended.undecided.extend(target(&finding));
            mended.open.insert(finding.derivation);
        }
        Ok(Repaired::Overtaken) => {
            scene.count("overtaken");
            (mended.is_done, mended.is_whole) = (false, false);
        }
        Err(_) => (mended.is_done, mended.is_whole) = (false, false),
    }
}

/// Is a change of a count parked?
fn is_any_parked(scene: &Scene) -> bool {
    parked(scene).iter().any(|parked| parked.key.pk == "PARKED#additive")
}

/// The count of a finding.
pub(crate) fn target(finding: &Finding) -> Option<Target> {
    let counter = CounterKey::parse(&Key::new(&finding.pk, &finding.sk))?;
    Some(Target { derivation: counter.derivation, item: counter.target })
}
