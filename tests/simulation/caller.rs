//! Callers of the store. The faults of their calls are drawn, counted and traced.

use std::{collections::BTreeSet, sync::Arc};

use derive::guard::Guard;
use engine::clock::Clock as _;
use store::faulty::{Call, Decider, Fault, Side, TORN};

use crate::{executor::Gone, permissions::Role, scene::Scene};

/// Faults of a read, and of a write before and after it is done, with their weights. Before it is done a write meets others
/// where they overlap; the resend of one that was done may meet them too.
const OF_A_READ: [(FaultKind, usize); 3] =
    [(FaultKind::Unanswered, 4), (FaultKind::Throttle, 2), (FaultKind::Killed, 1)];
const BEFORE_A_WRITE: [(FaultKind, usize); 4] =
    [(FaultKind::Unanswered, 3), (FaultKind::Throttle, 3), (FaultKind::Killed, 1), (FaultKind::Late, 2)];
const AFTER_A_WRITE: [(FaultKind, usize); 5] = [
    (FaultKind::Unanswered, 3),
    (FaultKind::Conflict, 3),
    (FaultKind::Throttle, 3),
    (FaultKind::Killed, 1),
    (FaultKind::Late, 2),
];

#[derive(Clone, Copy)]
enum FaultKind {
    Unanswered,
    Conflict,
    Throttle,
    Killed,
    Late,
}

/// One caller of the store: an invocation, or an operator's command.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    scene: Arc<Scene>,
    name: Arc<str>,
    role: Role,
    gone: Gone,
    /// When its time is over, in milliseconds since the epoch.
    deadline_ms: u64,
    /// Does DynamoDB refuse each call, since its signature has a wrong time?
    is_refused: bool,
}

impl Caller {
    pub(crate) fn new(scene: &Arc<Scene>, name: &Arc<str>, role: Role, gone: &Gone, deadline_ms: u64) -> Self {
        Self {
            scene: Arc::clone(scene),
            name: Arc::clone(name),
            role,
            gone: gone.clone(),
            deadline_ms,
            is_refused: false,
        }
    }

    /// The same, and whether DynamoDB refuses each call.
    pub(crate) fn refused(self, is_refused: bool) -> Self {
        Self { is_refused, ..self }
    }

    /// A deadly call never ends, and takes all of the caller's time.
    fn dies(&self, call: &Call<'_>) {
        self.scene.count("deadly");
        self.scene.trace.note(|| format!("{} {call} : deadly; it is gone", self.name));
        self.scene.clock.advance(self.deadline_ms.saturating_sub(self.scene.clock.now_ms()));
        self.gone.set();
    }

    fn drawn(&self, call: &Call<'_>) -> Option<(Side, FaultKind)> {
        let chance = &self.scene.chance;
        if self.scene.is_healed() || self.scene.per_mille == 0 || chance.below(1000) < 1000 - self.scene.per_mille {
            return None;
        }
        let side = if chance.below(2) == 0 { Side::Before } else { Side::After };
        let kinds: &[(FaultKind, usize)] = match side {
            _ if call.is_read() => &OF_A_READ,
            Side::Before => &BEFORE_A_WRITE,
            Side::After => &AFTER_A_WRITE,
        };
        let weights: Vec<usize> = kinds.iter().map(|(_, weight)| *weight).collect();
        Some((side, kinds[chance.weighted(&weights)].0))
    }

    fn throttled(&self, n_writes: usize) -> BTreeSet<usize> {
        let chance = &self.scene.chance;
        (0..chance.between(1, 3)).map(|_| chance.below(n_writes)).collect()
    }
}

impl Decider for Caller {
    fn fault(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        if let Some(denied) = self.scene.permissions.denied(self.role, call) {
            self.scene.denied.note(denied);
            return Some((Side::Before, Fault::Denied));
        }
        if self.is_refused {
            return Some((Side::Before, Fault::Unanswered));
        }
        if self.scene.is_deadly(call) {
            self.dies(call);
            return Some((Side::Before, Fault::Killed));
        }
        let (side, kind) = self.drawn(call)?;
        let (name, fault) = match kind {
            FaultKind::Unanswered => ("unanswered", Fault::Unanswered),
            FaultKind::Conflict => ("conflict", Fault::Conflict(self.scene.chance.below(call.n_writes()))),
            FaultKind::Throttle => ("throttle", Fault::Throttle(self.throttled(call.n_writes()))),
            FaultKind::Killed => ("killed", Fault::Killed),
            FaultKind::Late => ("late", Fault::Late),
        };
        self.scene.count_call(name, side);
        if matches!((side, kind), (_, FaultKind::Killed) | (Side::Before, FaultKind::Late)) {
            self.scene.trace.note(|| format!("{} {call} : {fault:?}, {side:?}; it is gone", self.name));
            self.gone.set();
        }
        Some((side, fault))
    }

    fn conflicts(&self, call: &Call<'_>) -> bool {
        self.scene.count_call("conflict", Side::Before);
        self.scene.trace.note(|| format!("{} {call} : meets another caller's on an item", self.name));
        true
    }

    fn ended(&self, call: &Call<'_>, how: &str) {
        self.scene.trace.note(|| format!("{} {call} : {how}", self.name));
        if how == TORN {
            self.scene.count(if matches!(call, Call::Get(..)) { "torn reads" } else { "torn pages" });
        }
        if matches!(call, Call::Write(write) if write.key.pk.starts_with("ATTEMPTS#")) {
            self.gone.noted(!how.starts_with("not done"));
        }
    }

    fn sends(&self, guard: &Guard) -> bool {
        self.scene.config.mutant.is_none_or(|mutant| mutant.sends(guard))
    }
}
