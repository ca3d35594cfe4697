//! One whole run: the scheduler acts until all is quiet. Then the deployment is completed, what is wrong is repaired, and
//! planted drifts are found.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{clock, gathering::CollectionCount, write::Table};
use engine::{
    account::Target,
    backoff::describe,
    clock::Clock as _,
    ledger::watermarks::{KEPT_MS, is_mark},
};
use keys::{
    counter::{CounterKey, SPREAD},
    item::Item,
    job::JobKey,
    key::Key,
};
use operate::verify::{Finding, definition::compare};
use serde_dynamo::AttributeValue;

use crate::{
    actors::{
        losses::expire_ledger,
        operator::{self, enter, unfilled},
        repairing::target,
    },
    checks::{
        CALM_RINGS_MAX, CONVERGED_MS_MAX, RINGS_MAX, WriteCounts, audit, is_way_taken, parked_are, rings_are_few,
    },
    deployed::{BOTH, InstanceClock, function, jobs, notes, parked},
    items::{is_zero, n, s},
    platform::{mapping::Mapping, stream::Author},
    scene::Stage,
    trace::Failure,
    world::World,
};

/// How often all that is parked is redriven.
const REDRIVES_MAX: usize = 20;

/// How long an operator waits before the next redrive, in milliseconds.
const EXCEPTION_WAIT_MS: u64 = 32 * 60 * 1000;

/// Most days that the clock jumps at the end of a run: more than the ledger is kept.
const JUMP_DAYS_MAX: usize = 20;

impl World {
    pub(crate) fn run(&mut self) -> Result<(), Failure> {
        self.run_until_quiet()?;
        self.keys_are_vacated()?;
        self.converges()?;
        self.scene.chance.step();
        self.nothing_has_drifted()?;
        if self.scene.chance.percent(50) && self.age() > 1 {
            self.nothing_has_drifted()?;
        }
        // A jump leaves days behind that windows had.
        if !notes(&self.scene).is_empty() {
            self.settle()?;
            if self.scene.is_lossy {
                self.faults_are_mended()?;
            }
            self.nothing_has_drifted()?;
        }
        let before = self.derived_and_ground();
        let n_records = self.stream.records.len();
        if self.scene.chance.percent(30) {
            self.scene.trace.note(|| "everything is delivered once more".to_owned());
            self.mappings.iter_mut().for_each(Mapping::rewind);
        }
        self.replay();
        self.settle()?;
        // Another hour has come, and windows have moved.
        let is_later = self.derived_and_ground().get(&clock::key()) != before.get(&clock::key());
        if is_later && self.scene.is_lossy {
            self.faults_are_mended()?;
        }
        if !is_later {
            self.replay_changed_nothing(n_records, &before)?;
        }
        audit(&self.scene, &self.stream, self.application.untyped(), &self.n_deaths)?;
        rings_are_few(&self.scene, &self.stream.made, RINGS_MAX)?;
        self.drifts_are_found()
    }

    /// A replayed fan-out may need a job. Nothing else may be written.
    fn replay_changed_nothing(&self, n_records: usize, before: &BTreeMap<Key, Item>) -> Result<(), Failure> {
        let mut records = self.stream.records[n_records..].iter();
        if let Some(first) = records.find(|record| JobKey::parse(&record.key).is_none()) {
            return Err(Failure::new("replay", format!("a replay made a record of {}", first.key)));
        }
        if self.derived_and_ground() != *before {
            return Err(Failure::new("replay", "a replay changed the table"));
        }
        Ok(())
    }

    /// Runs until everything is written, handled, repaired and right.
    pub(crate) fn run_until_quiet(&mut self) -> Result<(), Failure> {
        self.settle()?;
        parked_are(&self.scene, &self.stream, &self.stream.corrupt(), &BOTH, &self.n_deaths)?;
        operator::mend(&self.scene, &mut self.stream);
        self.stream.take(Author::Service);
        self.application.reduce();
        self.stream.take(Author::Application);
        self.settle()?;
        self.roll_out_the_rest()?;
        self.redrive_all()?;
        self.scene.heal();
        self.faults_are_mended()?;
        audit(&self.scene, &self.stream, self.application.untyped(), &self.n_deaths)
    }

    /// The application's items leave the keys of derived items, which are then there.
    fn keys_are_vacated(&mut self) -> Result<(), Failure> {
        self.stream.take(Author::Service);
        self.application.remove_foreign();
        self.stream.take(Author::Application);
        self.settle()?;
        // What waited for its key was not repaired, and its sources may have been named by lost records alone.
        if self.scene.is_lossy {
            self.faults_are_mended()?;
        }
        audit(&self.scene, &self.stream, self.application.untyped(), &self.n_deaths)
    }

    /// The table without jobs.
    fn derived_and_ground(&self) -> BTreeMap<Key, Item> {
        let mut items = self.scene.database.memory().snapshot(Table::Main);
        items.retain(|key, _| JobKey::parse(key).is_none());
        items
    }

    /// The operator redrives until nothing is parked, two commands at once.
    fn redrive_all(&mut self) -> Result<(), Failure> {
        for n_rounds in 0..REDRIVES_MAX {
            if parked(&self.scene).is_empty() {
                return Ok(());
            }
            if n_rounds > REDRIVES_MAX / 2 {
                self.scene.heal();
            }
            // An exception of a stream shard is redriven when no older invocation can be at work.
            self.scene.clock.advance(EXCEPTION_WAIT_MS);
            self.redrive();
            self.redrive();
            self.settle()?;
        }
        Ok(())
    }

    /// Days pass, and expired items of the ledger are removed. Returns how many days.
    fn age(&mut self) -> usize {
        let days = self.scene.chance.between(1, JUMP_DAYS_MAX);
        self.scene.count("aged");
        self.scene.trace.note(|| format!("{days} days pass"));
        self.scene.clock.advance(days as u64 * 24 * 3600 * 1000);
        while self.scene.chance.percent(90) && expire_ledger(&self.scene) {}
        days
    }
}

// ---- The deployment is completed before the last checks ----

impl World {
    /// Only instances of the new version are left, and all of them are registered.
    fn roll_out_the_rest(&mut self) -> Result<(), Failure> {
        if !self.scene.rollout.is_any() {
            return Ok(());
        }
        let scene = Arc::clone(&self.scene);
        scene.heal();
        enter(&scene, Stage::New);
        // By every clock, however far off.
        scene.clock.advance(scene.rollout.look_ms() + 2 * u64::try_from(scene.clocks_off_ms).unwrap());
        for at in 0..self.mappings.len() {
            let (name, families, ledger) =
                (self.mappings[at].name, self.mappings[at].families.clone(), self.mappings[at].ledger);
            let caller = self.caller(name);
            let engine =
                function(&scene, InstanceClock::drawn(&scene), (&families, ledger), Arc::clone(&caller.store), false);
            let deadline_ms = caller.deadline_ms;
            self.start(caller, None, async move {
                engine.publish(deadline_ms).await.map(|_| None).map_err(|error| describe(&error))
            });
        }
        self.settle()?;
        self.wait_until_ready();
        self.settle()
    }
}

// ---- drifts ----

/// Slices of the whole table at the end. The first continues where the last one stopped, the others cover a round each.
const RUNS: usize = 3;

/// Most items that are made wrong at the end.
const DRIFTS_MAX: usize = 12;

/// True if this watermark may still be asked for, by any clock. Its last four bytes are the minute in which it was written.
fn is_kept(mark: &AttributeValue, now_ms: u64) -> bool {
    let AttributeValue::B(bytes) = mark else { return true };
    let Some(minute) = bytes.last_chunk().map(|minute| u64::from(u32::from_be_bytes(*minute))) else { return true };
    now_ms.saturating_sub(minute * 60_000) <= KEPT_MS + 2 * 60_000
}

impl World {
    /// When all is quiet, the sweep finds no difference and leaves no counter of zero, but for those whose watermarks
    /// may still be asked for.
    fn nothing_has_drifted(&mut self) -> Result<(), Failure> {
        for _ in 0..RUNS {
            self.finds_no_drift()?;
        }
        if self.zero_counter().is_some() {
            // The last slice may have taken a watermark away that had just grown old: the next collects its counter.
            self.finds_no_drift()?;
        }
        if let Some(key) = self.zero_counter() {
            return Err(Failure::new("zero", format!("{key} counts nothing, and was not collected")));
        }
        let memory = self.scene.database.memory();
        let noted = memory.view(Table::Ledger, |items| items.keys().find(|key| key.pk == "SUSPECTS").cloned());
        match noted {
            Some(key) => Err(Failure::new("drift", format!("nothing differs, and {key} is noted"))),
            None => Ok(()),
        }
    }

    fn finds_no_drift(&mut self) -> Result<(), Failure> {
        let found = self.begin_slice(usize::MAX, 0);
        self.settle()?;
        let slice = found.lock().unwrap().take();
        let slice = slice.ok_or_else(|| Failure::new("slice", "it did not end"))?;
        if slice.n_suspects > 0 || !slice.drifts.is_empty() || slice.round_ms.is_none() {
            return Err(Failure::new("drift", format!("all is quiet, and the sweep reports {slice:?}")));
        }
        Ok(())
    }

    /// A counter that counts nothing, but for those whose watermarks may still be asked for.
    fn zero_counter(&self) -> Option<Key> {
        let now_ms = self.scene.clock.now_ms();
        self.scene.database.memory().view(Table::Main, |items| {
            items
                .iter()
                .filter(|(_, item)| !item.iter().any(|(name, mark)| is_mark(name) && is_kept(mark, now_ms)))
                .find(|(key, item)| CounterKey::parse(key).is_some() && is_zero(item) && !item.contains_key(SPREAD))
                .map(|(key, _)| key.clone())
        })
    }

    /// When all is quiet, `verify` finds nothing. What is made wrong by hand then is found. A value is compared with
    /// its stored sources, so a right value may be reported beside a wrong one.
    fn drifts_are_found(&mut self) -> Result<(), Failure> {
        let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
        let is_wrong = |finding: &&Finding| finding.flaw.is_none() && !lost.has_bucket(finding);
        if let Some(finding) = self.verified()?.iter().find(is_wrong) {
            return Err(Failure::new("verify", format!("found though it is right: {finding:?}")));
        }
        self.count_spread();
        let planted = self.plant();
        let mut wanted = self.compared();
        if self.scene.drawn.is_some() {
            // By the definition what carries a wrong history is wrong; by what is stored of its source it is right.
            wanted.retain(|finding| is_of(finding, &planted));
        }
        let wanted: BTreeSet<(String, Key)> = wanted.iter().map(named).collect();
        let found = self.verified()?;
        // An item that should not be there, or should be and is not, is reported as a whole.
        let is_found = |(derivation, key): &(String, Key)| {
            let of_key = found.iter().filter(|finding| finding.pk == key.pk && finding.sk == key.sk);
            of_key.into_iter().any(|it| it.derivation == *derivation || it.derived.is_none() || it.stored.is_none())
        };
        if let Some(missed) = wanted.iter().find(|wanted| !is_found(wanted)) {
            return Err(Failure::new("verify", format!("not found: {missed:?}, of {planted:?}")));
        }
        self.scene.count_all("drifts", wanted.len());
        self.drifts_are_reported(&wanted)
    }

    /// Counts the counters that have spread, and their satellites.
    fn count_spread(&self) {
        let items = self.scene.database.memory().snapshot(Table::Main);
        let satellites = items.keys().filter_map(CounterKey::parse).filter(|counter| counter.satellite > 0);
        self.scene.count_all("satellites", satellites.count());
        self.scene.count_all("spread", items.values().filter(|item| item.contains_key(SPREAD)).count());
    }

    fn compared(&self) -> Vec<Finding> {
        let catalogue = Arc::clone(&self.scene.catalogue);
        let items = self.scene.database.memory().snapshot(Table::Main);
        let verified = compare(&self.scene.schema, &catalogue, &items);
        verified.findings.into_iter().filter(|finding| finding.flaw.is_none()).collect()
    }

    /// Makes some derived items wrong without any record, and returns their keys, with the attribute where it is one.
    fn plant(&mut self) -> BTreeMap<Key, Option<String>> {
        let scene = Arc::clone(&self.scene);
        let memory = scene.database.memory();
        let items = memory.snapshot(Table::Main);
        let is_derived = |(key, item): &(&Key, &Item)| {
            scene
                .schema
                .image(key, item)
                .is_some_and(|image| image.definition.derived || !image.definition.derived_attributes.is_empty())
        };
        let derived: Vec<(&Key, &Item)> = items.iter().filter(is_derived).collect();
        let mut planted = BTreeMap::new();
        // A drawn derivation may carry what another one was made: each is made something else.
        let is_drawn = scene.drawn.is_some();
        for number in 0..scene.chance.between(1, DRIFTS_MAX) {
            let Some((key, item)) = scene.chance.one_of(&derived).copied() else { break };
            if planted.contains_key(key) {
                continue;
            }
            let mut altered = None;
            let mut item = item.clone();
            if CounterKey::parse(key).is_some() {
                let value = scene.chance.below(50) + if is_drawn { 1_000 * (number + 1) } else { 0 };
                item.insert("Value".to_owned(), n(&value.to_string()));
            } else if let Some(name) = self.derived_attribute(key, &item) {
                let text = if is_drawn { format!("by hand {number}") } else { "by hand".to_owned() };
                item.insert(name.clone(), s(&text));
                altered = Some(name);
            }
            planted.insert(key.clone(), altered);
            memory.put_raw(Table::Main, item).unwrap();
        }
        drop(scene.database.take_records());
        planted
    }

    fn derived_attribute(&self, key: &Key, item: &Item) -> Option<String> {
        let image = self.scene.schema.image(key, item)?;
        let names: Vec<&String> = image.definition.derived_attributes.iter().collect();
        self.scene.chance.one_of(&names).map(|name| (*name).clone())
    }

    /// The sweep reports what is wrong by the definition, as far as a slice compares it. It takes two rounds.
    fn drifts_are_reported(&mut self, wanted: &BTreeSet<(String, Key)>) -> Result<(), Failure> {
        let mut reported = BTreeSet::new();
        for _ in 0..2 {
            let found = self.begin_slice(usize::MAX, 0);
            self.settle()?;
            let slice = found.lock().unwrap().take().unwrap_or_default();
            reported.extend(slice.drifts.into_iter().map(|drift| drift.item));
        }
        let catalogue = Arc::clone(&self.scene.catalogue);
        let counts = CollectionCount::all(&self.scene.schema, &catalogue);
        let items = self.scene.database.memory().snapshot(Table::Main);
        let (parked, unfilled) = (parked(&self.scene), unfilled(&self.scene));
        let is_parked = |list: &str| parked.iter().any(|parked| parked.key.pk == list);
        let is_missed = |(derivation, key): &&(String, Key)| {
            let count = counts.iter().find(|it| catalogue.name(it.count) == derivation);
            let (Some(count), Some(counter)) = (count, CounterKey::parse(key)) else { return false };
            // What a derivation lacks that nobody has filled yet is no drift.
            if unfilled.contains(derivation) {
                return false;
            }
            // What counts, or a mirror that is counted, may stay parked or be parked again by a replay. Then the count
            // waits.
            if is_parked("PARKED#additive") || is_parked("PARKED#level-triggered") && count.mirror.is_some() {
                return false;
            }
            let mut collection = items.keys().filter(|key| key.pk == counter.target.pk);
            let is_sure = count.is_sure(&counter.target) && collection.all(|key| count.is_sure(key));
            is_sure && !reported.contains(&CounterKey { satellite: 0, ..counter }.key().unwrap())
        };
        let missed = wanted.iter().find(is_missed);
        self.scene.count_all("drifts reported", reported.len());
        missed.map_or(Ok(()), |missed| Err(Failure::new("drift", format!("the sweep does not report {missed:?}"))))
    }
}

/// Is it of what was made wrong by hand?
fn is_of(finding: &Finding, planted: &BTreeMap<Key, Option<String>>) -> bool {
    let Some(altered) = planted.get(&named(finding).1) else { return false };
    let (Some(stored), Some(derived), Some(altered)) = (&finding.stored, &finding.derived, altered) else {
        return true;
    };
    stored.contains_key(altered) || derived.contains_key(altered)
}

fn named(finding: &Finding) -> (String, Key) {
    (finding.derivation.clone(), Key::new(&finding.pk, &finding.sk))
}

// ---- convergence ----

/// Changes of names that many items hold, and steps between two of them at most.
const RENAMES: usize = 16;
const STEPS_BETWEEN_MAX: usize = 60;

/// Steps until the run counts as endless.
const STEPS_MAX: usize = 100_000;

impl World {
    /// The application changes names that many items hold, one during the fan-out of another, and all follows soon.
    fn converges(&mut self) -> Result<(), Failure> {
        let (n_made, begin_ms) = (self.stream.made.len(), self.scene.clock.now_ms());
        self.stream.writes = WriteCounts::default();
        for _ in 0..RENAMES {
            self.stream.take(Author::Service);
            self.application.change_a_name();
            self.stream.take(Author::Application);
            for _ in 0..self.scene.chance.below(STEPS_BETWEEN_MAX) {
                self.step_without_sweep()?;
            }
        }
        let mut n_steps = 0;
        while self.step_without_sweep()? {
            n_steps += 1;
            if n_steps > STEPS_MAX {
                return Err(Failure::new("endless", format!("after {STEPS_MAX} steps the names have not followed")));
            }
        }
        if let Some(job) = jobs(&self.scene).iter().find(|job| job.is_running && !job.is_paused) {
            return Err(Failure::new("stall", format!("only a sweep would wake {}", job.key)));
        }
        let items = self.scene.database.memory().snapshot(Table::Main);
        let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
        let verified = compare(&self.scene.schema, &self.scene.catalogue, &items);
        let is_wrong = |finding: &&operate::verify::Finding| {
            let key = Key::new(&finding.pk, &finding.sk);
            finding.flaw.is_none()
                && !is_way_taken(&self.scene, &items, &finding.derivation, &key)
                && !lost.has_bucket(finding)
                && !lost.builds_on_history(finding)
        };
        if let Some(finding) = verified.findings.iter().find(is_wrong) {
            return Err(Failure::new("stall", format!("without a sweep this stays: {finding:?}")));
        }
        let took_ms = self.scene.clock.now_ms() - begin_ms;
        if took_ms > CONVERGED_MS_MAX {
            return Err(Failure::new("slow", format!("the names followed after {took_ms} ms")));
        }
        let most = rings_are_few(&self.scene, &self.stream.made[n_made..], CALM_RINGS_MAX)?;
        self.scene.trace.note(|| format!("converged after {took_ms} ms, with at most {most} rings"));
        self.scene.count("converged");
        self.scene.count_all("converging jobs", usize::from(most > 0));
        self.settle()
    }

    /// Anything but the sweep acts; false when nothing is left to do.
    fn step_without_sweep(&mut self) -> Result<bool, Failure> {
        self.scene.clock.advance(1);
        self.scene.count("steps");
        self.scene.chance.step();
        while self.scene.database.n_behind() > 0 {
            self.scene.database.catch_up(0);
        }
        let step = self.pace.step(&self.scene.chance);
        let is_taken = self.take_step(step)? || self.take_plain_step()?;
        self.stream.take(Author::Service);
        self.stream.writes.are_few()?;
        if is_taken || (self.mappings.iter().all(Mapping::is_quiet) && self.stream.is_complete()) {
            return Ok(is_taken);
        }
        Err(Failure::new("stuck", "records wait, and no queue takes them"))
    }
}

// ---- Counts that somebody made wrong by hand are found and repaired ----

/// How often all that is wrong is repaired at the end.
const REPAIRS_MAX: usize = 6;

impl World {
    /// Only what somebody made wrong is found, and repairs mend it.
    fn faults_are_mended(&mut self) -> Result<(), Failure> {
        self.follow_repairs();
        for n_repairs in 0..REPAIRS_MAX {
            let unfilled = unfilled(&self.scene);
            let mut found = self.verified()?;
            let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
            found.retain(|finding| !lost.has_bucket(finding));
            let is_lost = |finding: &&Finding| finding.flaw.is_none() && lost.explains(finding);
            let is_unfilled = |it: &&Finding| it.flaw.is_none() && unfilled.contains(&it.derivation);
            let is_new = |finding: &&Finding| is_unfilled(finding) || is_lost(finding);
            let counted: Vec<Target> = found.iter().filter(|it| !is_new(it)).filter_map(target).collect();
            if let Some(wrong) = counted.iter().find(|target| !self.planted.left.contains_key(target)) {
                return Err(Failure::new("repair", format!("{wrong:?} is wrong, and nobody made it so: {found:?}")));
            }
            if counted.is_empty() && !found.iter().any(|finding| is_new(&finding)) {
                return Ok(());
            }
            self.scene.count_all("repaired at the end", usize::from(n_repairs == 0));
            // What is young is not repaired.
            if self.wait_until_ready() {
                self.settle()?;
            }
            self.begin_repair(self.proves_all());
            self.settle()?;
            self.follow_repairs();
        }
        Err(Failure::new("repair", "what was made wrong by hand is not mended"))
    }
}
