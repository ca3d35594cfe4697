//! Counts that somebody makes wrong by hand at any moment, and operators who repair them beside everybody else.
//!
//! What was wrong before a repair began that came to its end is right from then on, whoever else repaired meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use derive::write::{Action, Table, Update, Write};
use engine::{batch::Engine, count::target::Target, registry::Standing};
use keys::{counter::CounterKey, item::Item, key::Key, value::whole_number};
use operate::{
    repair::{Repaired, Repairing},
    verify::{
        Finding,
        report::VerifyEvent,
        run::{Limits, Verification},
        scope::Scope,
        tallies::MemoryTallies,
    },
};
use store::Store;

use crate::{
    actors::{
        platform::{BOTH, TASKS_MAX},
        rollout::unfilled,
        verifying::{Follower, Listening, Shared, WAIT_MS},
    },
    corruption::parked,
    failure::Failure,
    items::n,
    respond::engine,
    scene::Scene,
    stream::Author,
    world::World,
};

/// How long a repair's call is tried, in milliseconds.
const CALL_MS: u64 = 60_000;

/// How much earlier than a verification began what it proves ends, in milliseconds: records' times are rounded down.
const MARGIN_MS: u64 = 2_000;

/// How often all that is wrong is repaired at the end.
const REPAIRS_MAX: usize = 4;

/// What was made wrong by hand.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    /// Targets that were ever made wrong.
    pub(crate) ever: BTreeSet<Target>,
    /// Those that no repair has mended since, with the number of their last fault.
    left: BTreeMap<Target, usize>,
    n_faults: usize,
    n_repairs: usize,
    /// Repairs that are under way: the number of the last fault before each began, and what it mended when it has ended.
    under_way: Vec<(usize, Ended)>,
}

/// The targets that a repair mended, of those that it found.
type Ended = Arc<Mutex<Option<Mended>>>;

/// What a repair came to.
#[derive(Debug, Default)]
struct Mended {
    /// Did it see and mend all that it could decide?
    is_whole: bool,
    /// Targets that it could not decide.
    undecided: BTreeSet<Target>,
    /// Derivations of which not all is right.
    open: BTreeSet<String>,
}

impl World {
    /// Somebody writes a counter by hand, whose record goes the way of all records.
    pub(crate) fn plant_fault(&mut self) -> bool {
        let items = self.scene.database.memory().snapshot(Table::Main);
        let catalogue = self.scene.deployed.catalogue(&self.scene);
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
        let written = self.scene.database.memory().write(&write);
        futures::executor::block_on(written).unwrap();
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

    /// An operator repairs what is wrong; several at once.
    pub(crate) fn repair(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        self.begin_repair();
        true
    }

    fn begin_repair(&mut self) -> Ended {
        let caller = self.caller("repair");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
        self.planted.n_repairs += 1;
        let run = format!("run-{}", self.planted.n_repairs);
        let ended = Ended::default();
        self.planted.under_way.push((self.planted.n_faults, Arc::clone(&ended)));
        let followed = self.follow_anew();
        let scene = Arc::clone(&self.scene);
        let result = Arc::clone(&ended);
        self.start(caller, None, async move {
            let mended = repaired(&scene, &engine, &run, followed).await?;
            *result.lock().unwrap() = mended;
            Ok(None)
        });
        ended
    }

    /// Takes note of the repairs that came to their end.
    pub(crate) fn follow_repairs(&mut self) {
        let (left, under_way) = (&mut self.planted.left, &mut self.planted.under_way);
        under_way.retain(|(n_faults, ended)| {
            let mended = ended.lock().unwrap().take();
            let Some(mended) = mended else { return Arc::strong_count(ended) > 1 };
            if mended.is_whole {
                left.retain(|target, fault| *fault > *n_faults || mended.undecided.contains(target));
            }
            false
        });
    }

    /// What is found is what somebody made wrong and nobody mended; and then it is mended.
    pub(crate) fn faults_are_mended(&mut self) -> Result<(), Failure> {
        self.follow_repairs();
        for n_repairs in 0..REPAIRS_MAX {
            let unfilled = unfilled(&self.scene);
            let found = self.verified()?;
            let is_new = |finding: &&Finding| unfilled.contains(&finding.derivation);
            let counted: Vec<Target> = found.iter().filter(|it| !is_new(it)).filter_map(target).collect();
            let left = &self.planted.left;
            if let Some(wrong) = counted.iter().find(|target| !left.contains_key(target)) {
                return Err(Failure::new("repair", format!("{wrong:?} is wrong, and nobody made it so: {found:?}")));
            }
            if counted.is_empty() && !found.iter().any(|finding| is_new(&finding)) {
                return Ok(());
            }
            self.scene.count_all("repaired at the end", usize::from(n_repairs == 0));
            self.begin_repair();
            self.settle()?;
            self.follow_repairs();
        }
        Err(Failure::new("repair", "what was made wrong by hand is not mended"))
    }
}

/// A repair of all that is found; `None` where not all functions have what is deployed.
async fn repaired<S: Store>(
    scene: &Scene,
    engine: &Engine<S>,
    run: &str,
    followed: Shared,
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
    let (following, mut tallies, mut listening) = (Follower(followed), MemoryTallies::default(), Listening::default());
    let limits = Limits { segments: 1, wait_ms: WAIT_MS };
    let verification = Verification::new(engine, &following, &mut tallies, &mut listening, limits, Scope::default());
    let verified = verification.run().await;
    drop(verification);
    // A count of nothing, that is wrong by what is parked or on its way, is nowhere to be seen.
    let is_proven = verified.is_ok_and(|extent| extent.is_proven);
    let is_whole = is_proven && !was_parked && !is_any_parked(scene);
    let mut mended = Mended { is_whole, ..Mended::default() };
    for event in listening.0 {
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

/// Mends what was found, and takes note of what is left.
async fn mend<S: Store>(scene: &Scene, engine: &Engine<S>, run: &str, event: VerifyEvent, mended: &mut Mended) {
    let finding = match event {
        VerifyEvent::Finding(finding, _) => finding,
        VerifyEvent::Undecided(finding, _) | VerifyEvent::Waiting(finding) => {
            mended.undecided.extend(target(&finding));
            mended.open.insert(finding.derivation);
            return;
        }
        VerifyEvent::Unproven(target) => {
            mended.open.insert(target.derivation.clone());
            mended.undecided.insert(target);
            return;
        }
        VerifyEvent::Unreadable(_) => return,
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
            mended.is_whole = false;
        }
        Err(_) => mended.is_whole = false,
    }
}

/// Is a change of a count parked?
fn is_any_parked(scene: &Scene) -> bool {
    parked(scene).iter().any(|parked| parked.key.pk == "PARKED#additive")
}

/// The count that a finding is of.
fn target(finding: &Finding) -> Option<Target> {
    let counter = CounterKey::parse(&Key::new(&finding.pk, &finding.sk))?;
    Some(Target { derivation: counter.derivation, item: counter.target })
}
