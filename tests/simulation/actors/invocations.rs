//! Invocations: the platform starts them, lets them run on, times them out, and reads their responses.

use engine::clock::Clock as _;

use crate::{
    caller::{Gone, Turn},
    checks::account_matches,
    deployed::{parked, respond},
    platform::{BatchVerdict, event, mapping::Batch, verdict},
    trace::Failure,
    world::{Answer, Delivery, Running, TASKS_MAX, World},
};

/// Time before the deadline in which an instance may be past it by its own clock, or end without another call, in
/// milliseconds.
const NO_TIME_MS: u64 = 4_000;

impl World {
    /// A mapping delivers a batch to its function, sometimes to two instances at once.
    pub(crate) fn deliver(&mut self) -> bool {
        if self.tasks.len() >= TASKS_MAX || (self.pace.functions_sleep && !self.is_written()) {
            return false;
        }
        let n_mappings = self.mappings.len();
        let first = self.scene.chance.below(n_mappings);
        for at in (0..n_mappings).map(|at| (first + at) % n_mappings) {
            let mapping = &mut self.mappings[at];
            mapping.take(&self.stream);
            if let Some(batch) = mapping.next_batch(&self.stream) {
                let is_final = !self.scene.is_healed() && self.scene.chance.percent(5);
                if !self.scene.is_healed() && self.scene.chance.percent(4) {
                    self.scene.count("two at once");
                    self.invoke(at, batch.clone(), false, is_final);
                }
                self.invoke(at, batch, true, is_final);
                return true;
            }
        }
        false
    }

    /// Handled records are delivered again, or a tumbling window ends without a record.
    pub(crate) fn redeliver(&mut self) -> bool {
        let at = self.scene.chance.below(self.mappings.len());
        if self.tasks.len() >= TASKS_MAX {
            return false;
        }
        if self.scene.chance.percent(20)
            && let Some(empty) = self.mappings[at].empty_batch()
        {
            self.invoke(at, empty, true, true);
            return true;
        }
        let Some(batch) = self.mappings[at].old_batch() else { return false };
        self.scene.count("redelivered");
        self.invoke(at, batch, false, false);
        true
    }

    pub(crate) fn set_back(&mut self) -> bool {
        let at = self.scene.chance.below(self.mappings.len());
        let is_set_back = self.mappings[at].set_back();
        if is_set_back {
            self.scene.count("set back");
        }
        is_set_back
    }

    fn invoke(&mut self, mapping: usize, batch: Batch, is_awaited: bool, is_final: bool) {
        let at = &self.mappings[mapping];
        let (name, window) = (at.name, at.window(&self.stream, &batch, is_final));
        let mut caller = self.caller(name);
        caller.is_old = self.scene.rollout.invokes_old(&self.scene.chance);
        self.count_reads(&batch, caller.is_old);
        let records = batch.records.iter().map(|(at, _)| *at);
        let event =
            self.stream.shards[batch.shard].named(&event(&self.stream, records, window.as_ref(), caller.is_old));
        self.scene.count("invocations");
        self.scene.count_all("delivered", batch.records.len());
        self.scene.trace.note(|| {
            let records: Vec<String> = batch.records.iter().map(|(at, _)| format!("e{:x}", at + 1)).collect();
            let (number, shard) = (self.n_tasks, &self.stream.shards[batch.shard].id);
            format!("{name} #{number} on {shard} gets {}", records.join(" "))
        });
        let delivery = Some(Delivery { mapping, batch, window, is_awaited });
        let engine = self.placed(&mut caller, mapping);
        // The platform gives each instance its deadline by the instance's own clock.
        let deadline_ms = engine.clock().now_ms() + (caller.deadline_ms - self.scene.clock.now_ms());
        self.start(caller, delivery, async move { respond(&engine, &event, deadline_ms).await.map(Some) });
    }

    /// Counts the records that one version reads and the other one does not.
    fn count_reads(&mut self, batch: &Batch, is_old: bool) {
        let (scene, reads) = (&self.scene, self.scene.rollout.reads(is_old));
        if !scene.rollout.reads_differ() {
            return;
        }
        let parked = parked(scene);
        for (at, _) in &batch.records {
            let record = &mut self.stream.records[*at];
            if record.is_corrupt() && reads {
                record.was_read = true;
                scene.count_all("parked, then read", usize::from(parked.iter().any(|parked| parked.id == record.id)));
            } else if record.is_corrupt() {
                scene.count_all("read, then corrupt", usize::from(record.was_read));
            }
        }
    }

    /// An invocation times out for the platform, and runs on.
    pub(crate) fn time_out(&mut self) -> bool {
        let is_awaited = |running: &Running| running.delivery.as_ref().is_some_and(|delivery| delivery.is_awaited);
        let awaited: Vec<usize> = (0..self.tasks.len()).filter(|at| is_awaited(&self.tasks[*at])).collect();
        let Some(at) = self.scene.chance.one_of(&awaited) else { return false };
        let running = &mut self.tasks[*at];
        let delivery = running.delivery.as_mut().unwrap();
        delivery.is_awaited = false;
        self.scene.count("zombie");
        self.scene.trace.note(|| format!("{} timed out, and runs on", running.caller.name));
        self.mappings[delivery.mapping].commit(&delivery.batch, BatchVerdict::Whole);
        true
    }

    /// The platform ends the instances of the old version.
    pub(crate) fn end_old_instances(&mut self) {
        self.processes.retain(|process| !process.is_old);
        while let Some(at) = self.tasks.iter().position(|running| running.caller.is_old) {
            let Running { caller, delivery, .. } = self.tasks.remove(at);
            if let Some(delivery) = delivery {
                self.ended(&caller.name, &delivery, &caller.gone, None);
            }
        }
    }

    /// Lets one task run to its next stop.
    pub(crate) fn poll(&mut self) -> Result<bool, Failure> {
        if self.tasks.is_empty() {
            return Ok(false);
        }
        let at = self.scene.chance.below(self.tasks.len());
        let running = &mut self.tasks[at];
        if let Some(process) = &running.caller.process {
            process.turn(&running.caller.store);
        }
        let turn = running.task.turn();
        if let Some(denied) = self.scene.denied.first() {
            return Err(Failure::new("denied", denied));
        }
        let answer = match turn {
            Turn::Runs => return Ok(true),
            Turn::Gone => None,
            Turn::Ended(answer) => Some(answer),
        };
        let running = self.tasks.remove(at);
        if self.scene.clock.now_ms() + NO_TIME_MS > running.caller.deadline_ms {
            running.caller.gone.noted(false);
        }
        if let Some(Ok(Some((_, handled)))) = &answer {
            account_matches(&running.caller.name, handled, running.caller.store.answered())?;
        }
        if let Some(delivery) = running.delivery {
            self.ended(&running.caller.name, &delivery, &running.caller.gone, answer.as_ref());
        }
        Ok(true)
    }

    fn ended(&mut self, name: &str, delivery: &Delivery, gone: &Gone, answer: Option<&Answer>) {
        let numbers: Vec<&str> =
            delivery.batch.records.iter().map(|(at, _)| self.stream.records[*at].sequence_number.as_str()).collect();
        let mapping = &mut self.mappings[delivery.mapping];
        let verdict = match answer {
            Some(Ok(Some((response, _)))) => {
                let verdict = verdict(response, &numbers, delivery.window.is_some());
                // The response may be lost, or the function may fail after it.
                let is_heard = self.scene.is_healed() || !self.scene.chance.percent(2);
                if is_heard { verdict } else { BatchVerdict::Whole }
            }
            Some(Ok(None) | Err(_)) | None => BatchVerdict::Whole,
        };
        self.scene.trace.note(|| match answer {
            Some(Ok(Some((response, _)))) => format!("{name} ends: {response}, taken as {verdict:?}"),
            Some(Err(error)) => format!("{name} fails: {error}"),
            Some(Ok(None)) | None => format!("{name} is no more"),
        });
        if matches!(answer, Some(Err(error)) if error.contains("cannot be read")) {
            self.scene.count("braked");
        }
        if answer.is_none() || !delivery.is_awaited || gone.is_unnoted() {
            // It died, or others may take it for dead.
            for (at, _) in &delivery.batch.records {
                *self.n_deaths.entry(self.stream.records[*at].id.clone()).or_default() += 1;
            }
        }
        if !delivery.is_awaited {
            return;
        }
        if let (Some(window), Some(Ok(Some((response, _)))), BatchVerdict::Done | BatchVerdict::From(_)) =
            (&delivery.window, answer, verdict)
        {
            mapping.keep_state(&delivery.batch, response, window.is_final);
        }
        mapping.commit(&delivery.batch, verdict);
    }
}
