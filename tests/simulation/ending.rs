//! The end of a run: the deployment is completed, what is wrong is repaired, and planted drifts are found.

mod convergence;
mod repairs;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use derive::{collection::CollectionCount, write::Table};
use engine::{backoff::describe, ledger::watermarks::is_mark};
use keys::{counter::CounterKey, item::Item, key::Key};
use operate::verify::{Finding, definition::compare};

use crate::{
    actors::rollout::{enter, unfilled},
    engines::function,
    failure::Failure,
    items::{is_zero, n, s},
    scene::rollout::Stage,
    stored::parked,
    world::World,
};

// ---- The deployment is completed before the last checks ----

impl World {
    /// Only instances of the new version are left, and all of them are registered.
    pub(crate) fn roll_out_the_rest(&mut self) -> Result<(), Failure> {
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
            let engine = function(&scene, &families, ledger, Arc::clone(&caller.store), false);
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

impl World {
    /// When all is quiet, the sweep finds no difference and leaves no counter of zero, but for those whose watermarks may
    /// still be asked for.
    pub(crate) fn nothing_has_drifted(&mut self, are_marks_old: bool) -> Result<(), Failure> {
        for _ in 0..RUNS {
            self.finds_no_drift()?;
        }
        if self.zero_counter(are_marks_old).is_some() {
            // The last slice may have taken a watermark away that had just grown old: the next collects its counter.
            self.finds_no_drift()?;
        }
        if let Some(key) = self.zero_counter(are_marks_old) {
            return Err(Failure::new("zero", format!("{key} counts nothing, and was not collected")));
        }
        let memory = self.scene.database.memory();
        let noted = memory.view(Table::Ledger, |items| items.keys().find(|key| key.pk == "SUSPECTS").cloned());
        match noted {
            Some(key) => Err(Failure::new("drift", format!("nothing differs, and {key} is noted"))),
            None => Ok(()),
        }
    }

    /// A slice that finds no difference.
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
    fn zero_counter(&self, are_marks_old: bool) -> Option<Key> {
        self.scene.database.memory().view(Table::Main, |items| {
            items
                .iter()
                .filter(|(_, item)| are_marks_old || !item.keys().any(is_mark))
                .find(|(key, item)| CounterKey::parse(key).is_some() && is_zero(item))
                .map(|(key, _)| key.clone())
        })
    }

    /// When all is quiet, `verify` finds nothing. What is made wrong by hand then is found. A value is compared with its
    /// stored sources, so a right value may be reported beside a wrong one.
    pub(crate) fn drifts_are_found(&mut self) -> Result<(), Failure> {
        let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
        let is_wrong = |finding: &&Finding| finding.flaw.is_none() && !lost.has_bucket(finding);
        if let Some(finding) = self.verified()?.iter().find(is_wrong) {
            return Err(Failure::new("verify", format!("found though it is right: {finding:?}")));
        }
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

    /// What differs by the definition.
    fn compared(&self) -> Vec<Finding> {
        let catalogue = self.scene.deployed();
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
    pub(crate) fn drifts_are_reported(&mut self, wanted: &BTreeSet<(String, Key)>) -> Result<(), Failure> {
        let mut reported = BTreeSet::new();
        for _ in 0..2 {
            let found = self.begin_slice(usize::MAX, 0);
            self.settle()?;
            let slice = found.lock().unwrap().take().unwrap_or_default();
            reported.extend(slice.drifts.into_iter().map(|drift| drift.item));
        }
        let catalogue = self.scene.deployed();
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
            // What counts, or a mirror that is counted, may stay parked or be parked again by a replay. Then the count waits.
            if is_parked("PARKED#additive") || is_parked("PARKED#level-triggered") && count.mirror.is_some() {
                return false;
            }
            let mut collection = items.keys().filter(|key| key.pk == counter.target.pk);
            let is_sure = count.is_sure(&counter.target) && collection.all(|key| count.is_sure(key));
            is_sure && !reported.contains(&CounterKey { shard: 0, ..counter }.key().unwrap())
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
