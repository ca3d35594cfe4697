//! Verifications, at any moment beside everybody else. None may report a difference that is on its way; at the end
//! each reports exactly what was made wrong by hand.

use std::sync::{Arc, Mutex};

use engine::count::target::Target;
use keys::{counter::CounterKey, key::Key};
use operate::verify::{
    Finding,
    report::VerifyEvent,
    run::{Limits, Verification},
    scope::Scope,
    tallies::MemoryTallies,
};

use crate::{
    actors::rollout::unfilled,
    engines::engine,
    failure::Failure,
    platform::stream::Author,
    world::{
        World,
        following::{Followed, Follower, Heard, Listening, SharedFollowed},
        tasks::{BOTH, TASKS_MAX},
    },
};

/// How long a verification waits for the functions, in milliseconds.
pub(crate) const WAIT_MS: u64 = 20_000;

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
            scene.trace.note(|| format!("verify ends: {ended:?}, with {} events", listening.0.len()));
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
    pub(crate) fn follow_anew(&mut self) -> SharedFollowed {
        let mut followed = Followed::from_now(&self.stream);
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

    /// Verifies alone, to the end.
    pub(crate) fn verified(&mut self) -> Result<Vec<Finding>, Failure> {
        let heard = self.begin_verifying();
        while heard.lock().unwrap().is_none() {
            self.scene.clock.advance(1);
            self.stream.take(Author::Service);
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
                // Something may be parked to the end, and what waits for it is reported separately.
                VerifyEvent::Finding(finding, _) | VerifyEvent::Waiting(finding) => findings.push(finding),
                VerifyEvent::Undecided(..) => {
                    return Err(Failure::new("verify", format!("all is quiet, and this is reported: {event:?}")));
                }
                VerifyEvent::Unproven(_) | VerifyEvent::Unreadable(_) => {}
            }
        }
        Ok(findings)
    }
}
