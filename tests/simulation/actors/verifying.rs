//! Verifications, at any moment beside everybody else. None may report a difference that is on its way; and at the end
//! each tells of exactly what was made wrong by hand.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex},
};

use derive::write::Table;
use engine::{clock::Clock as _, count::target::Target};
use keys::{counter::CounterKey, item::Item, key::Key};
use operate::verify::{
    Finding,
    definition::compare,
    following::Following,
    report::{Listener, VerifyEvent},
    run::{Limits, Verification},
    scope::Scope,
    tallies::MemoryTallies,
};

use crate::{
    actors::{
        platform::{BOTH, TASKS_MAX},
        rollout::unfilled,
    },
    engines::engine,
    failure::Failure,
    items::{n, s},
    mapping::Mapping,
    scene::Scene,
    stream::Stream,
    world::World,
};

/// How long a verification waits for the functions, in milliseconds.
pub(crate) const WAIT_MS: u64 = 20_000;

/// Most items that are made wrong at the end.
const DRIFTS_MAX: usize = 12;

/// The stream, as a verification follows it, and how far the functions are.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Records that arrived and were not given.
    records: Vec<String>,
    /// How many of the stream's records arrived so far.
    n_seen: usize,
    /// The first moment of which not all arrived, and of which not all is handled.
    arrived_ms: u64,
    handled_ms: u64,
}

/// One that everybody who verifies in a run follows by itself.
pub(crate) type Shared = Arc<Mutex<Followed>>;

/// Gives a verification what is followed for it.
pub(crate) struct Follower(pub(crate) Shared);

impl Following for Follower {
    fn records(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().records)
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        self.0.lock().unwrap().arrived_ms >= moment_ms
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        let followed = self.0.lock().unwrap();
        Some(followed.handled_ms.min(followed.arrived_ms) >= moment_ms)
    }
}

impl Followed {
    fn update(&mut self, scene: &Scene, stream: &Stream, mappings: &[Mapping]) {
        self.records.extend(stream.records[self.n_seen..].iter().map(|record| record.json.clone()));
        self.n_seen = stream.records.len();
        let at_ms = |made: usize| stream.made.get(made).map_or(scene.clock.now_ms(), |made| made.at_ms);
        self.arrived_ms = at_ms(stream.first_on_its_way());
        self.handled_ms = mappings.iter().map(|mapping| at_ms(mapping.first_undone(stream))).min().unwrap_or(0);
    }
}

/// What a verification reported by its end.
type Heard = Arc<Mutex<Option<Vec<VerifyEvent>>>>;

/// One that is under way, and what was not filled when it began.
type UnderWay = (Heard, BTreeSet<String>);

#[derive(Default)]
pub(crate) struct Listening(pub(crate) Vec<VerifyEvent>);

impl Listener for Listening {
    fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        self.0.push(event);
        Ok(())
    }

    fn read(&mut self, _n_items: usize) {}
}

/// The verifications of a run.
#[derive(Default)]
pub(crate) struct Verifying {
    /// The one that is under way.
    heard: Option<UnderWay>,
    /// What is followed by it, and by those who repair.
    followed: Vec<Shared>,
}

impl World {
    /// The operator verifies the table; one at a time.
    pub(crate) fn verify(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX || self.verifying.heard.is_some() {
            return false;
        }
        self.begin_verifying();
        true
    }

    fn begin_verifying(&mut self) -> Heard {
        let caller = self.caller("verify");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
        let limits = Limits { segments: u32::try_from(self.scene.chance.between(1, 3)).unwrap(), wait_ms: WAIT_MS };
        let (followed, heard) = (self.follow_anew(), Heard::default());
        self.verifying.heard = Some((Arc::clone(&heard), unfilled(&self.scene)));
        let (scene, result) = (Arc::clone(&self.scene), Arc::clone(&heard));
        self.start(caller, None, async move {
            let (following, mut tallies, mut listening) =
                (Follower(followed), MemoryTallies::default(), Listening::default());
            let verification =
                Verification::new(&engine, &following, &mut tallies, &mut listening, limits, Scope::default());
            let ended = verification.run().await;
            drop(verification);
            scene.trace.note(|| format!("verify ends: {ended:?}, with {} told", listening.0.len()));
            scene.count("verified");
            *result.lock().unwrap() = Some(listening.0);
            Ok(None)
        });
        heard
    }

    /// What is followed goes on, and nothing may be reported that is on its way.
    pub(crate) fn follow_verifying(&mut self) -> Result<(), Failure> {
        self.follow_all();
        let Some((heard, unfilled_before)) = &self.verifying.heard else { return Ok(()) };
        let ended = heard.lock().unwrap().take();
        let is_running = Arc::strong_count(heard) > 1;
        if let Some(events) = &ended {
            // What was not filled when it began, or is not any more, is rightly found.
            let mut unfilled = unfilled(&self.scene);
            unfilled.extend(unfilled_before.iter().cloned());
            for event in events {
                match event {
                    VerifyEvent::Finding(finding, _)
                        if finding.flaw.is_none()
                            && !self.is_planted(finding)
                            && !unfilled.contains(&finding.derivation) =>
                    {
                        return Err(Failure::new("verify", format!("a false finding: {finding:?}")));
                    }
                    VerifyEvent::Undecided(..) => self.scene.count("undecided"),
                    VerifyEvent::Waiting(_) => self.scene.count("waiting"),
                    VerifyEvent::Finding(..) | VerifyEvent::Unproven(_) | VerifyEvent::Unreadable(_) => {}
                }
            }
        }
        if ended.is_some() || !is_running {
            self.verifying.heard = None;
        }
        Ok(())
    }

    /// Somebody follows the stream from now on.
    pub(crate) fn follow_anew(&mut self) -> Shared {
        let mut followed = Followed { n_seen: self.stream.records.len(), ..Followed::default() };
        followed.update(&self.scene, &self.stream, &self.mappings);
        let followed = Arc::new(Mutex::new(followed));
        self.verifying.followed.push(Arc::clone(&followed));
        followed
    }

    fn follow_all(&mut self) {
        self.verifying.followed.retain(|followed| Arc::strong_count(followed) > 1);
        for followed in &self.verifying.followed {
            followed.lock().unwrap().update(&self.scene, &self.stream, &self.mappings);
        }
    }

    /// Did somebody make this count wrong by hand?
    fn is_planted(&self, finding: &Finding) -> bool {
        let counter = CounterKey::parse(&Key::new(&finding.pk, &finding.sk));
        let target = counter.map(|counter| Target { derivation: counter.derivation, item: counter.target });
        target.is_some_and(|target| self.planted.ever.contains(&target))
    }

    /// When all is quiet, nothing is found, and what is made wrong by hand is. A value is held to what it is derived from
    /// as that is stored, so what is right by the definition may be reported beside something wrong.
    pub(crate) fn drifts_are_found(&mut self) -> Result<(), Failure> {
        if let Some(finding) = self.verified()?.iter().find(|finding| finding.flaw.is_none()) {
            return Err(Failure::new("verify", format!("found though it is right: {finding:?}")));
        }
        let planted = self.plant();
        let wanted = self.compared();
        let found = self.verified()?;
        // An item that should not be there, or should be and is not, is told as a whole.
        let is_found = |(derivation, key): &(String, Key)| {
            let of_key = found.iter().filter(|finding| finding.pk == key.pk && finding.sk == key.sk);
            of_key.into_iter().any(|it| it.derivation == *derivation || it.derived.is_none() || it.stored.is_none())
        };
        if let Some(missed) = wanted.iter().find(|wanted| !is_found(wanted)) {
            return Err(Failure::new("verify", format!("not found: {missed:?}, of {planted:?}")));
        }
        self.scene.count_all("drifts", wanted.len());
        self.drifts_are_told(&wanted)
    }

    /// Verifies alone, to the end.
    pub(crate) fn verified(&mut self) -> Result<Vec<Finding>, Failure> {
        let heard = self.begin_verifying();
        while heard.lock().unwrap().is_none() {
            self.scene.clock.advance(1);
            self.stream.take(crate::stream::Author::Service);
            self.follow_all();
            if !self.poll()? {
                return Err(Failure::new("verify", "it did not end"));
            }
        }
        self.verifying.heard = None;
        let events = heard.lock().unwrap().take().unwrap_or_default();
        let mut findings = Vec::new();
        for event in events {
            match event {
                // Something may be parked to the end, and what waits for it is told apart.
                VerifyEvent::Finding(finding, _) | VerifyEvent::Waiting(finding) => findings.push(finding),
                VerifyEvent::Undecided(..) => {
                    return Err(Failure::new("verify", format!("all is quiet, and this is reported: {event:?}")));
                }
                VerifyEvent::Unproven(_) | VerifyEvent::Unreadable(_) => {}
            }
        }
        Ok(findings)
    }

    /// What the definition says of the table as it is.
    fn compared(&self) -> BTreeSet<(String, Key)> {
        let catalogue = self.scene.deployed();
        let items = self.scene.database.memory().snapshot(Table::Main);
        let verified = compare(&self.scene.schema, &catalogue, &items);
        verified.findings.iter().filter(|finding| finding.flaw.is_none()).map(named).collect()
    }

    /// Makes some derived items wrong, of which nobody is told, and says which.
    fn plant(&mut self) -> Vec<Key> {
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
        let mut planted = BTreeSet::new();
        for _ in 0..scene.chance.between(1, DRIFTS_MAX) {
            let Some((key, item)) = scene.chance.one_of(&derived).copied() else { break };
            if !planted.insert(key.clone()) {
                continue;
            }
            let mut item = item.clone();
            if CounterKey::parse(key).is_some() {
                item.insert("Value".to_owned(), n(&scene.chance.below(50).to_string()));
            } else if let Some(name) = self.derived_attribute(key, &item) {
                item.insert(name, s("by hand"));
            }
            memory.put_raw(Table::Main, item).unwrap();
        }
        drop(scene.database.take_records());
        planted.into_iter().collect()
    }

    fn derived_attribute(&self, key: &Key, item: &Item) -> Option<String> {
        let image = self.scene.schema.image(key, item)?;
        let names: Vec<&String> = image.definition.derived_attributes.iter().collect();
        self.scene.chance.one_of(&names).map(|name| (*name).clone())
    }
}

fn named(finding: &Finding) -> (String, Key) {
    (finding.derivation.clone(), Key::new(&finding.pk, &finding.sk))
}
