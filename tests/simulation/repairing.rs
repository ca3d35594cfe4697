//! Counts that somebody makes wrong by hand at any moment, and operators who repair them beside everybody else.
//!
//! What was wrong before a repair began that came to its end is right from then on, whoever else repaired meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use derive::{
    value::whole_number,
    write::{Action, Table, Update, Write},
};
use engine::{
    recount::Target,
    verify::{
        Finding,
        repair::Repaired,
        run::{Limits, Verification},
        scope::Scope,
        tallies::MemoryTallies,
        told::Told,
    },
};
use keys::{counter::CounterKey, item::Item, key::Key};
use store::Store as _;

use super::{
    corruption::parked,
    failure::Failure,
    items::n,
    platform::{BOTH, TASKS_MAX},
    respond::engine,
    scene::Scene,
    stream::Author,
    verifying::{Follower, Listening, WAIT_MS},
    world::World,
};

/// How long a repair's call is tried, in milliseconds.
const CALL_MS: u64 = 60_000;

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
        let (scene, told) = (Arc::clone(&self.scene), Arc::clone(&ended));
        let was_parked = is_any_parked(&scene);
        self.start(caller, None, async move {
            let deadline_ms = || engine.clock().now_ms() + CALL_MS;
            if let Err(error) = engine.begin_repair(&run, deadline_ms()).await {
                return Err(error.to_string());
            }
            let (following, mut tallies, mut listening) =
                (Follower(followed), MemoryTallies::default(), Listening::default());
            let limits = Limits { segments: 1, wait_ms: WAIT_MS };
            let verification =
                Verification::new(&engine, &following, &mut tallies, &mut listening, limits, Scope::default());
            let verified = verification.run().await;
            drop(verification);
            // A count of nothing, that is wrong by what is parked, is nowhere to be seen.
            let is_whole = verified.is_ok() && !was_parked && !is_any_parked(&scene);
            let mut mended = Mended { is_whole, undecided: BTreeSet::new() };
            for told in listening.0 {
                let (finding, is_decided) = match told {
                    Told::Finding(finding) => (finding, true),
                    Told::Undecided(finding, _) | Told::Waiting(finding) => (finding, false),
                    Told::Unproven(target) => {
                        mended.undecided.insert(target);
                        continue;
                    }
                    Told::Unreadable(_) => continue,
                };
                if !is_decided {
                    mended.undecided.extend(target(&finding));
                    continue;
                }
                let repaired = engine.repair(&finding, &run, deadline_ms()).await;
                scene.trace.note(|| {
                    format!("{run} repairs {} {} / {}: {repaired:?}", finding.derivation, finding.pk, finding.sk)
                });
                match repaired {
                    Ok(Repaired::Done) => scene.count("repaired"),
                    Ok(Repaired::NotNeeded) => {}
                    Ok(Repaired::Refused { .. }) => mended.undecided.extend(target(&finding)),
                    Ok(Repaired::Overtaken) => {
                        scene.count("overtaken");
                        mended.is_whole = false;
                    }
                    Err(_) => mended.is_whole = false,
                }
            }
            *told.lock().unwrap() = Some(mended);
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
            let found = self.verified()?;
            let counted: Vec<Target> = found.iter().filter_map(target).collect();
            let left = &self.planted.left;
            if let Some(wrong) = counted.iter().find(|target| !left.contains_key(target)) {
                return Err(Failure::new("repair", format!("{wrong:?} is wrong, and nobody made it so: {found:?}")));
            }
            if counted.is_empty() {
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

/// Is a change of a count parked?
fn is_any_parked(scene: &Scene) -> bool {
    parked(scene).iter().any(|parked| parked.key.pk == "PARKED#additive")
}

/// The count that a finding is of.
fn target(finding: &Finding) -> Option<Target> {
    let counter = CounterKey::parse(&Key::new(&finding.pk, &finding.sk))?;
    Some(Target { derivation: counter.derivation, item: counter.target })
}
