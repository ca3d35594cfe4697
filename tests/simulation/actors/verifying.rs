//! Verifications at any moment beside everybody else. None may report a difference that is still on its way; at the end
//! each reports exactly what was made wrong by hand.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use derive::family::Family;
use engine::{
    account::loss::{Mark, clear, marks},
    clock::Clock as _,
    count::Target,
    ledger::LedgerKind,
};
use keys::{counter::CounterKey, key::Key};
use operate::{
    loss::keeps,
    verify::{
        Finding, Scope, VerifyEvent,
        run::{Limits, Verification},
        scan::WINDOW_BYTES,
        tallies::MemoryTallies,
    },
};

use crate::{
    actors::rollout::unfilled,
    engines::engine,
    failure::Failure,
    platform::stream::Author,
    world::{BOTH, EventList, RETAINED_MS, Reported, SharedView, StreamView, TASKS_MAX, ViewReader, World},
};

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
        let caller = self.caller("verify");
        let engine = engine(&self.scene, &BOTH, self.mappings[0].ledger, Arc::clone(&caller.store));
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
                Verification::new(&engine, &following, &mut tallies, &mut events, limits, Scope::default());
            let ended = verification.run().await;
            drop(verification);
            scene.trace.note(|| format!("verify ends: {ended:?}, with {} events", events.0.len()));
            scene.count("verified");
            let kept = |event: &VerifyEvent| match event {
                VerifyEvent::Finding(finding, _)
                | VerifyEvent::Undecided(finding, _)
                | VerifyEvent::Waiting(finding) => keeps(&scene.catalogue, finding),
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
                            && !self.is_planted(finding)
                            && !lost.explains(finding)
                            && !hidden.explains(finding)
                            && !unfilled.contains(&finding.derivation) =>
                    {
                        return Err(Failure::new("verify", format!("a false finding: {finding:?}")));
                    }
                    VerifyEvent::Undecided(..) => self.scene.count("undecided"),
                    VerifyEvent::Waiting(_) => self.scene.count("waiting"),
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
    pub(crate) fn new_view(&mut self, is_proven: bool) -> SharedView {
        let view = StreamView::from_now(&self.stream);
        self.scene.count_all("proven by the ledger", usize::from(is_proven));
        self.share(if is_proven { view.typed() } else { view })
    }

    /// The same of somebody who says that the functions have handled everything.
    pub(crate) fn guessed_view(&mut self) -> SharedView {
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
    fn is_planted(&self, finding: &Finding) -> bool {
        let counter = CounterKey::parse(&Key::new(&finding.pk, &finding.sk));
        let target = counter.map(|counter| Target { derivation: counter.derivation, item: counter.target });
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
                VerifyEvent::Finding(finding, _) | VerifyEvent::Waiting(finding) => findings.push(finding),
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
