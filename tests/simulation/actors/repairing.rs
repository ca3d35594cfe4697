//! Counts that somebody makes wrong by hand at any moment, and operators who repair them beside everybody else.
//!
//! A repair that ends mends everything that was wrong before it began, whoever else repairs at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex},
};

use derive::{
    derived::Items,
    family::Family,
    tally::Tally,
    write::{Action, Table, Update, Write},
};
use engine::{
    account::Target,
    batch::Engine,
    clock::Clock as _,
    ledger::LedgerKind,
    loss::{Mark, clear, marks},
    registry::Standing,
};
use keys::{counter::CounterKey, item::Item, key::Key, value::whole_number};
use operate::{
    repair::remedy::{Repaired, Repairing},
    verify::{
        Contribution, Extent, Finding, Reached, Scope, Tallies, Undecided, VerifyEvent,
        marks::keeps,
        run::{Limits, Verification},
        scan::WINDOW_BYTES,
    },
};
use store::Store;

use crate::{
    actors::operator::unfilled,
    caller::now,
    deployed::{engine, parked},
    items::n,
    platform::stream::Author,
    scene::{Rollout, Scene},
    trace::Failure,
    world::{
        Ended, EventList, Mended, RETAINED_MS, RepairUnderWay, Reported, SharedView, StreamView, TASKS_MAX, ViewReader,
        World,
    },
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
        let catalogue = Arc::clone(&self.scene.catalogue);
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
        let engine = engine(&self.scene, &catalogue, ledger, Arc::clone(&caller.store));
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
        let (caller, engine) = self.command("repair");
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
    mended.waits |= matches!(&event, VerifyEvent::Waiting(finding, _) if keeps(&scene.catalogue, finding) == Some(Family::LevelTriggered));
    mended.is_done &= !matches!(event, VerifyEvent::Undecided(..)) && !mended.waits;
    let finding = match event {
        VerifyEvent::Finding(finding, _) => finding,
        VerifyEvent::Undecided(finding, _) | VerifyEvent::Waiting(finding, _) => {
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
    counted_by(&Key::new(&finding.pk, &finding.sk))
}

/// The count that a counter holds.
pub(crate) fn counted_by(key: &Key) -> Option<Target> {
    CounterKey::parse(key).map(|it| Target { derivation: it.derivation, item: it.target })
}

// ---- verifying ----

/// How long a verification waits for the functions, in milliseconds.
pub(crate) const WAIT_MS: u64 = 20_000;

impl World {
    /// The operator verifies the table; one at a time.
    pub(crate) fn verify(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX || self.verifying.under_way.is_some() {
            return false;
        }
        let is_proven = self.n_tasks % 2 == 1;
        self.begin_verifying(is_proven);
        true
    }

    /// Begins a verification, to which the ledger proves the counts or the functions' positions do.
    fn begin_verifying(&mut self, is_proven: bool) -> Reported {
        let (caller, engine) = self.command("verify");
        let segments = u32::try_from(self.scene.chance.between(1, 3)).unwrap();
        // Windows of a page, of several pages, and of the whole table.
        let window_bytes = [1, 4_000, WINDOW_BYTES][usize::try_from(segments - 1).unwrap()];
        let limits = Limits { segments, wait_ms: WAIT_MS, window_bytes };
        let (view, reported) = (self.new_view(is_proven), Reported::default());
        self.verifying.under_way = Some((Arc::clone(&reported), unfilled(&self.scene)));
        let (scene, result) = (Arc::clone(&self.scene), Arc::clone(&reported));
        self.start(caller, None, async move {
            let doubts = marks(engine.store()).await.unwrap_or_default();
            let (following, mut tallies, mut events) =
                (ViewReader::new(&scene, engine.clock(), view), MemoryTallies::default(), EventList::default());
            let verification =
                Verification::new(&engine, &following, &mut tallies, &mut events, limits, Scope::default())
                    .noting_changes(!doubts.is_empty());
            let ended = verification.run().await;
            drop(verification);
            scene.trace.note(|| format!("verify ends: {ended:?}, with {} events", events.0.len()));
            scene.count("verified");
            let kept = |event: &VerifyEvent| match event {
                VerifyEvent::Finding(finding, _)
                | VerifyEvent::Undecided(finding, _)
                | VerifyEvent::Waiting(finding, _) => keeps(&scene.catalogue, finding),
                VerifyEvent::Unproven(_)
                | VerifyEvent::Unreadable(_)
                | VerifyEvent::Unlike(_)
                | VerifyEvent::AboutNothing(_) => None,
            };
            let kept: BTreeSet<Family> = events.0.iter().filter_map(kept).collect();
            let is_right = |mark: &&Mark| !kept.iter().any(|family| mark.is_of(*family));
            for mark in doubts.iter().filter(is_right).filter(|_| ended.is_ok()) {
                let is_cleared = clear(engine.store(), mark).await.unwrap_or_default();
                scene.count_all("marks cleared", usize::from(is_cleared));
            }
            *result.lock().unwrap() = Some(events.0);
            Ok(None)
        });
        reported
    }

    /// Updates the views, and checks that an ended verification reports nothing that is still on its way.
    pub(crate) fn follow_verifying(&mut self) -> Result<(), Failure> {
        self.update_views();
        let Some((reported, unfilled_before)) = &self.verifying.under_way else { return Ok(()) };
        let ended = reported.lock().unwrap().take();
        let is_running = Arc::strong_count(reported) > 1;
        if let Some(events) = &ended {
            // A derivation that was not filled when it began, or is not now, may have findings.
            let mut unfilled = unfilled(&self.scene);
            unfilled.extend(unfilled_before.iter().cloned());
            let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
            let hidden = self.hidden();
            for event in events {
                match event {
                    VerifyEvent::Finding(finding, _)
                        if finding.flaw.is_none()
                            && !self.is_planted(target(finding))
                            && !lost.explains(finding)
                            && !hidden.explains(finding)
                            && !unfilled.contains(&finding.derivation) =>
                    {
                        return Err(Failure::new("verify", format!("a false finding: {finding:?}")));
                    }
                    VerifyEvent::Undecided(..) => self.scene.count("undecided"),
                    VerifyEvent::Waiting(..) => self.scene.count("waiting"),
                    VerifyEvent::Finding(..)
                    | VerifyEvent::Unproven(_)
                    | VerifyEvent::Unreadable(_)
                    | VerifyEvent::Unlike(_)
                    | VerifyEvent::AboutNothing(_) => {}
                }
            }
        }
        if ended.is_some() || !is_running {
            self.verifying.under_way = None;
        }
        Ok(())
    }

    /// A new view of the stream, from now on; if the ledger is to prove the counts, without the functions' positions.
    fn new_view(&mut self, is_proven: bool) -> SharedView {
        let view = StreamView::from_now(&self.stream);
        self.scene.count_all("proven by the ledger", usize::from(is_proven));
        self.share(if is_proven { view.typed() } else { view })
    }

    /// The same of somebody who says that the functions have handled everything.
    fn guessed_view(&mut self) -> SharedView {
        self.scene.count("progress guessed");
        self.share(StreamView::from_now(&self.stream).guessed())
    }

    fn share(&mut self, mut view: StreamView) -> SharedView {
        view.update(&self.scene, &self.stream, &self.mappings);
        let view = Arc::new(Mutex::new(view));
        self.verifying.views.push(Arc::clone(&view));
        view
    }

    /// Is the ledger to prove each count now? Not under watermarks: a counter that somebody deleted by hand has lost its
    /// own, and as long as the stream holds its changes, nobody knows without the functions' positions which of them are
    /// still to come. Nor while the stream holds a record that is refused for its time: it never gets a receipt.
    pub(crate) fn proves_all(&self) -> bool {
        let is_refused = self.scene.clock.now_ms() < self.stream.last_ahead_ms + RETAINED_MS;
        self.mappings[0].ledger == LedgerKind::Receipts && self.n_tasks % 2 == 1 && !is_refused
    }

    fn update_views(&mut self) {
        self.verifying.views.retain(|view| Arc::strong_count(view) > 1);
        for view in &self.verifying.views {
            view.lock().unwrap().update(&self.scene, &self.stream, &self.mappings);
        }
    }

    /// Did somebody make this count wrong by hand?
    pub(crate) fn is_planted(&self, target: Option<Target>) -> bool {
        target.is_some_and(|target| self.planted.ever.contains(&target))
    }

    /// Verifies while nobody else runs, to the end.
    pub(crate) fn verified(&mut self) -> Result<Vec<Finding>, Failure> {
        let reported = self.begin_verifying(self.proves_all());
        while reported.lock().unwrap().is_none() {
            self.scene.clock.advance(1);
            self.stream.take(Author::Service);
            self.update_views();
            if !self.poll()? {
                return Err(Failure::new("verify", "it did not end"));
            }
        }
        self.verifying.under_way = None;
        let events = reported.lock().unwrap().take().unwrap_or_default();
        let mut findings = Vec::new();
        for event in events {
            match event {
                // Something may stay parked, and what waits for it is reported separately.
                VerifyEvent::Finding(finding, _) | VerifyEvent::Waiting(finding, _) => findings.push(finding),
                VerifyEvent::Undecided(..) => {
                    return Err(Failure::new("verify", format!("all is quiet, and this is reported: {event:?}")));
                }
                VerifyEvent::Unproven(_)
                | VerifyEvent::Unreadable(_)
                | VerifyEvent::Unlike(_)
                | VerifyEvent::AboutNothing(_) => {}
            }
        }
        Ok(findings)
    }
}

// ---- The tallies of a verification in memory. A command keeps them in a file ----

#[derive(Debug, Default)]
pub(crate) struct MemoryTallies {
    items: BTreeMap<Key, Vec<Contribution>>,
    targets: BTreeMap<Target, Undecided>,
    decided: BTreeSet<Target>,
    seen: BTreeMap<Key, bool>,
    counters: BTreeMap<Key, Option<Item>>,
    is_closed: bool,
    reached: BTreeMap<u32, Reached>,
}

impl MemoryTallies {
    fn target(&mut self, target: &Target) -> &mut Undecided {
        if self.is_closed && !self.targets.contains_key(target) {
            self.decided.insert(target.clone());
        }
        self.targets.entry(target.clone()).or_insert_with(|| Undecided {
            target: target.clone(),
            tally: Tally::default(),
            touched_at_ms: 0,
            compared: None,
        })
    }

    fn add(&mut self, adds: &[Contribution], is_taken_back: bool, now_ms: u64) {
        for Contribution { target, tally } in adds {
            let target = self.target(target);
            if is_taken_back {
                target.tally.subtract(tally);
            } else {
                target.tally.add(tally);
            }
            target.touched_at_ms = target.touched_at_ms.max(now_ms);
        }
    }
}

impl Tallies for MemoryTallies {
    fn scanned(&mut self, item: &Key, adds: &[Contribution]) -> io::Result<()> {
        if !self.items.contains_key(item) {
            self.items.insert(item.clone(), adds.to_vec());
            self.add(adds, false, 0);
        }
        Ok(())
    }

    fn report(&mut self, item: &Key, adds: &[Contribution], now_ms: u64) -> io::Result<()> {
        let before = self.items.insert(item.clone(), adds.to_vec());
        if before.as_deref() != Some(adds) {
            self.add(&before.unwrap_or_default(), true, now_ms);
            self.add(adds, false, now_ms);
        }
        Ok(())
    }

    fn close(&mut self) {
        self.is_closed = true;
    }

    fn target_scanned(&mut self, item: &Key) -> io::Result<()> {
        self.seen.entry(item.clone()).or_insert(true);
        Ok(())
    }

    fn target_reported(&mut self, item: &Key, is_there: bool) -> io::Result<()> {
        self.seen.insert(item.clone(), is_there);
        Ok(())
    }

    fn about_nothing(&mut self, derivation: &str, n_examples: usize) -> io::Result<(usize, Vec<Key>)> {
        let is_there = |target: &Key| self.seen.get(target) == Some(&true);
        let targets = self.targets.values().filter(|it| it.target.derivation == derivation && it.tally.count != 0);
        let missing: Vec<&Key> = targets.map(|it| &it.target.item).filter(|item| !is_there(item)).collect();
        Ok((missing.len(), missing.into_iter().take(n_examples).cloned().collect()))
    }

    fn has_counter(&mut self, target: &Target) -> io::Result<()> {
        self.target(target);
        Ok(())
    }

    fn counter_scanned(&mut self, key: &Key, item: &Item) -> io::Result<()> {
        self.counters.entry(key.clone()).or_insert_with(|| Some(item.clone()));
        Ok(())
    }

    fn counter_reported(&mut self, key: &Key, item: Option<&Item>) -> io::Result<()> {
        self.counters.insert(key.clone(), item.cloned());
        Ok(())
    }

    fn counters(&mut self, pk: &str, sk_prefix: &str) -> io::Result<Items> {
        let from = self.counters.range(Key::new(pk, sk_prefix)..);
        let of = from.take_while(|(key, _)| key.pk == pk && key.sk.starts_with(sk_prefix));
        Ok(of.filter_map(|(key, item)| Some((key.clone(), item.clone()?))).collect())
    }

    fn undecided(&mut self, after: Option<&Target>, n_max: usize) -> io::Result<Vec<Undecided>> {
        let left = self.targets.values().filter(|left| after.is_none_or(|after| left.target > *after));
        Ok(left.filter(|left| !self.decided.contains(&left.target)).take(n_max).cloned().collect())
    }

    fn compared(&mut self, target: &Target, finding: Option<&Finding>) -> io::Result<()> {
        self.target(target).compared = finding.cloned();
        Ok(())
    }

    fn decided(&mut self, target: &Target) -> io::Result<()> {
        self.decided.insert(target.clone());
        Ok(())
    }

    fn reached(&mut self, segment: u32) -> io::Result<Reached> {
        Ok(self.reached.get(&segment).cloned().unwrap_or_default())
    }

    fn reach(&mut self, segment: u32, reached: &Reached) -> io::Result<()> {
        self.reached.insert(segment, reached.clone());
        Ok(())
    }
}
