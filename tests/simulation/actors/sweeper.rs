//! The sweeper, which starts jobs that are due once everything written before them has been handled.
//!
//! # Slices
//!
//! The sweeper's slices: at any moment they verify a part of the table, and delete counters of zero.
//!
//! They write notes of what differs, and never fail. When all is quiet, nothing differs. What they tell as drifted in
//! the middle of a run is so.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use engine::{
    clock::Clock as _,
    fan_out::again::Again,
    job::{Job, STALLED_MS},
    jobs::{JobOrder, sweep::Swept},
    loss::{clear, marks},
    record::key_of,
    sweep::{Bounds, Slice},
};
use keys::{item::Item, job::JobKey, key::Key};

use crate::{
    actors::{losses::pulse_key, repairing::counted_by},
    deployed::{BOTH, jobs, may_have_lost, notes, parked},
    platform::{Concerned, stream::StreamRecord},
    scene::Scene,
    trace::{BY_PULSE, Failure},
    world::{TASKS_MAX, World},
};

/// Time between two sweeps that go by pulses, in milliseconds: at least as on AWS, and at most so long that the last
/// pulse, which proves something for two hours, still does.
const PULSES_MS: [u64; 2] = [15 * 60 * 1_000, 110 * 60 * 1_000];

/// Verifications that may remove the marks, before an operator removes them.
const VERIFIED_MAX: usize = 3;

impl World {
    /// The jobs for which everything written before them is handled, as the sweeper knows it when it starts.
    fn settled(&self) -> impl Fn(&Job) -> bool + use<> {
        let first = self.first_undone();
        // A job is settled when everything before the record that began its wait is handled.
        let due = |item: &Option<Item>| item.as_ref().and_then(|item| item.get("DueAt").cloned());
        let waits = self.stream.made.iter().take(first + 1).filter(|made| due(&made.old) != due(&made.new));
        let jobs = waits.filter(|made| JobKey::parse(&made.key).is_some());
        let layout = &self.scene.schema.layout;
        // Without a pulse nothing is settled.
        let jobs = jobs.filter(|_| self.losses.unmarked_since_ms.is_none());
        let jobs = jobs.filter_map(|made| Job::of(layout, made.new.as_ref()?));
        let settled: BTreeSet<(Key, u64)> = jobs.map(|job| (job.key, job.due_at_ms)).collect();
        move |job| settled.contains(&(job.key.clone(), job.due_at_ms))
    }

    /// The sweeper starts jobs, and wakes stalled ones.
    pub(crate) fn sweep(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        let by_pulse = self.scene.config.by_pulse;
        if by_pulse {
            self.application.untyped.insert(pulse_key());
        } else if self.losses.unmarked_since_ms.is_some() {
            self.beat();
        }
        let is_settled = self.settled();
        let (caller, engine) = self.command("sweeper");
        let (scene, deadline_ms) = (Arc::clone(&self.scene), caller.deadline_ms);
        self.start(caller, None, async move {
            let swept = if by_pulse {
                engine.sweep_by_pulse(deadline_ms).await
            } else {
                engine.sweep(is_settled, deadline_ms).await
            };
            let swept = swept.map_err(|error| error.to_string())?;
            scene.count_all(BY_PULSE, if by_pulse { swept.n_begun } else { 0 });
            scene.trace.note(|| format!("the sweeper: {swept:?}"));
            count_swept(&scene, swept);
            Ok(None)
        });
        true
    }

    /// The sweeper searches for what an index may have missed.
    pub(crate) fn search_again(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        let (caller, engine) = self.command("sweeper");
        let (scene, deadline_ms) = (Arc::clone(&self.scene), caller.deadline_ms);
        self.start(caller, None, async move {
            let again = engine.search_again(deadline_ms).await.map_err(|error| error.to_string())?;
            scene.trace.note(|| format!("the sweeper: {again:?}"));
            count_again(&scene, again);
            Ok(None)
        });
        true
    }

    /// When all else is quiet, a paused job is resumed, or time passes until the next job or note is due; false when
    /// there is none. Fails when a job stands still.
    pub(crate) fn sweep_the_rest(&mut self) -> Result<bool, Failure> {
        if self.order(JobOrder::Resume) {
            return Ok(true);
        }
        self.nothing_stalls()?;
        Ok(self.sweep_what_is_due())
    }

    /// No job stands still that only a sweep would wake, but where its record was lost or parked, or nobody has its
    /// derivation.
    fn nothing_stalls(&self) -> Result<(), Failure> {
        let is_lost = self.losses.n > 0 || self.scene.rollout.is_any();
        if is_lost || !parked(&self.scene).is_empty() {
            return Ok(());
        }
        match jobs(&self.scene).iter().find(|job| job.is_running && !job.is_paused) {
            Some(job) => Err(Failure::new("stall", format!("only a sweep would wake {}", job.key))),
            None => Ok(()),
        }
    }

    fn sweep_what_is_due(&mut self) -> bool {
        let now_ms = self.scene.clock.now_ms();
        let (mut jobs, notes) = (jobs(&self.scene), notes(&self.scene));
        jobs.retain(|job| self.scene.rollout.has(&job.derivation));
        let due_ms = |job: &Job| if job.is_running { job.moved_at_ms + STALLED_MS + 1 } else { job.due_at_ms };
        let of_jobs = jobs.iter().map(due_ms).min().filter(|_| !self.is_held());
        let of_notes = notes.iter().copied().min();
        let Some(next_ms) = of_jobs.into_iter().chain(of_notes).min() else { return false };
        self.scene.trace.note(|| format!("{} jobs and {} notes are left, and time passes", jobs.len(), notes.len()));
        let mut later_ms = next_ms.saturating_sub(now_ms);
        if self.scene.config.by_pulse {
            let [least_ms, most_ms] = PULSES_MS;
            if later_ms > most_ms {
                // The functions handle a pulse in between.
                self.scene.clock.advance(most_ms);
                return self.sweep();
            }
            later_ms = later_ms.max(least_ms);
        }
        self.scene.clock.advance(later_ms);
        // What stands still, and what an index missed, is requested before a repair for which something waits.
        if of_jobs.is_some() && may_have_lost(&self.scene) && !std::mem::take(&mut self.losses.waits) {
            return if self.losses.is_open { self.repair_what_was_lost() } else { self.verify_or_remove_marks() };
        }
        if of_notes.is_some_and(|due_ms| due_ms <= next_ms) { self.search_again() } else { self.sweep() }
    }

    /// A verification removes the marks. What it finds, and no repair can correct, keeps them, such as a mirror that
    /// would be too large; then the operator decides, and removes them by hand.
    fn verify_or_remove_marks(&mut self) -> bool {
        if self.losses.n_verified < VERIFIED_MAX {
            self.losses.n_verified += 1;
            return self.verify();
        }
        self.losses.n_verified = 0;
        let caller = self.caller("operator");
        let (scene, store) = (Arc::clone(&self.scene), Arc::clone(&caller.store));
        self.start(caller, None, async move {
            for mark in marks(store.as_ref()).await.map_err(|error| error.to_string())? {
                clear(store.as_ref(), &mark).await.map_err(|error| error.to_string())?;
                scene.count("marks removed by hand");
            }
            Ok(None)
        });
        true
    }

    /// Do jobs wait for the operator because something is parked? It may be a job's own record, or what the repair of a
    /// loss waits for.
    fn is_held(&self) -> bool {
        let repair_waits = self.losses.waits && may_have_lost(&self.scene);
        parked(&self.scene).iter().any(|parked| repair_waits || parked.key.pk == "PARKED#level-triggered")
    }
}

fn count_again(scene: &Scene, again: Again) {
    scene.count_all("searched again", again.n_done);
    scene.count_all("found again", again.n_written);
}

fn count_swept(scene: &Scene, swept: Swept) {
    scene.count_all("jobs begun", swept.n_begun);
    scene.count_all("jobs held", swept.n_blocked);
    scene.count_all("owners back", swept.n_ended);
}

// ---- The sweeper's slices: at any moment they verify a part of the table, and delete counters of zero ----

/// Most items of a slice: few, so that a round has several.
const ITEMS_MAX: usize = 60;

/// How long an item differs before it has drifted, in milliseconds: little, so that it may while the run goes on.
const DRIFT_WAIT_MS: u64 = 2_000;

impl World {
    pub(crate) fn sweep_slice(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        let n_items_max = self.scene.chance.between(1, ITEMS_MAX);
        let first_undone = self.first_undone();
        let found = self.begin_slice(n_items_max, DRIFT_WAIT_MS);
        self.slices.push((first_undone, found));
        true
    }

    /// The position of the first change that some function has not handled.
    fn first_undone(&self) -> usize {
        let undone = self.mappings.iter().map(|mapping| mapping.first_undone(&self.stream)).min();
        undone.unwrap_or(0).min(self.stream.first_on_its_way())
    }

    /// An item that a slice reports as drifted is wrong, and nothing under way corrects it: somebody wrote it by hand,
    /// or a change was lost. A change that was not handled when the slice began may have made the same difference
    /// again.
    pub(crate) fn follow_slices(&mut self) -> Result<(), Failure> {
        let mut ended = Vec::new();
        self.slices.retain(|(first_undone, found)| match found.lock().unwrap().take() {
            Some(slice) => {
                ended.push((*first_undone, slice));
                false
            }
            None => Arc::strong_count(found) > 1,
        });
        for (first_undone, slice) in ended {
            if slice.drifts.is_empty() || self.scene.rollout.is_any() {
                continue;
            }
            let undone = self.stream.made[first_undone..].iter().map(|made| (made, &BOTH[..]));
            let undone = Concerned::by(&self.scene, undone);
            let lost = self.stream.lost.concerned(&self.scene, &self.stream.made);
            let hidden = self.hidden();
            for drift in &slice.drifts {
                if self.is_planted(counted_by(&drift.item))
                    || lost.explains_drift(drift)
                    || hidden.explains_drift(drift)
                {
                    self.scene.count("drifts told");
                } else if undone.explains_drift(drift) {
                    self.scene.count("drifts overtaken");
                } else {
                    return Err(Failure::new("drift", format!("told in the middle of a run, and not so: {drift:?}")));
                }
            }
        }
        Ok(())
    }

    /// What the parked changes without a readable key concern. For a day nothing that they concern is reported.
    pub(crate) fn hidden(&self) -> Concerned {
        let parked: BTreeSet<String> = parked(&self.scene).into_iter().map(|parked| parked.id).collect();
        let is_hidden = |record: &&StreamRecord| {
            parked.contains(&record.id) && key_of(&self.scene.schema.layout, &record.json).is_none()
        };
        let made = self.stream.records.iter().filter(is_hidden).map(|record| &self.stream.made[record.made]);
        Concerned::by(&self.scene, made.map(|made| (made, &BOTH[..])))
    }

    /// Starts a slice. Its result is in the returned cell once it has ended.
    pub(crate) fn begin_slice(&mut self, n_items_max: usize, wait_ms: u64) -> Arc<Mutex<Option<Slice>>> {
        let (caller, engine) = self.command("slice");
        let bounds = Bounds { n_items_max, deadline_ms: caller.deadline_ms };
        let (scene, found) = (Arc::clone(&self.scene), Arc::new(Mutex::new(None)));
        let result = Arc::clone(&found);
        self.start(caller, None, async move {
            let is_past = |noted_at_ms: u64| scene.clock.now_ms().saturating_sub(noted_at_ms) >= wait_ms;
            let slice = engine.sweep_slice(bounds, is_past).await;
            let slice = slice.unwrap_or_else(|error| panic!("a slice fails: {error}"));
            scene.trace.note(|| format!("the sweeper: {slice:?}"));
            scene.count("slices");
            scene.count_all("suspects", slice.n_suspects);
            *result.lock().unwrap() = Some(slice);
            Ok(None)
        });
        found
    }
}
