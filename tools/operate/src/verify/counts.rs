//! Counts against what their sources come to, when all sources are read.
//!
//! Round by round: what the functions have handled is in the counters, so these are read when they have handled all that
//! was written before the round; where their positions are not known, when the [ledger proves](super::proven) it. A target
//! is decided when none of its sources changed since then, up to the end of the reading; the others come again. A target that had no source and no counter before the first round is left out: the
//! functions have counted all of it, and a table that is written to all the time always has one more.

use derive::{kind::shape::Shape, whole::starts_anew};
use engine::{
    count::counts_of::CountsOf, look::reading::CALLS_AT_ONCE, park::waiting::Waiting, protocol::ProtocolStep,
};
use futures::{StreamExt, stream};
use store::Store;

use super::{
    Finding,
    counted::{bucket_compared, counter_compared},
    report::{Belief, VerifyError, VerifyEvent, Why},
    run::Verification,
    tallies::Undecided,
};

/// How often a target is compared, before it is undecided.
const ROUNDS_MAX: usize = 6;

/// Targets that are compared together. Bounds memory.
const TARGETS_AT_ONCE: usize = 1_000;

/// Was all handled that was written before?
pub(super) struct Proven {
    /// Of counts.
    pub(super) is_proven: bool,
    /// Of what is looked at.
    pub(super) is_handled: bool,
}

/// What one round knows.
#[derive(Default)]
struct CountRound {
    /// When it began, in milliseconds since the epoch.
    began_ms: u64,
    is_last: bool,
    /// Why nothing can be decided, where it cannot.
    why: Option<Why>,
    /// Counts of changes that the ledger does not prove.
    not_in: CountsOf,
    waiting: Waiting,
}

impl<S: Store> Verification<'_, S> {
    /// Compares all targets. Says whether all that was written before is handled, so that what is equal is right, and so is
    /// what is nowhere to be seen.
    pub(super) async fn counts(&self) -> Result<Proven, VerifyError> {
        let mut round =
            CountRound { why: if self.given().await? { None } else { Some(Why::Behind) }, ..CountRound::default() };
        self.state().tallies.close();
        let is_by_ledger = self.look_back().await?;
        // What looks find is not proven by the ledger.
        let handled = if is_by_ledger { self.handled().await? } else { None };
        let mut is_proven = true;
        for n_rounds in 1..=ROUNDS_MAX {
            round.is_last = n_rounds == ROUNDS_MAX;
            round.began_ms = self.engine.clock().now_ms();
            if is_by_ledger {
                let is_given = self.given().await?;
                round.why = round.why.or((!is_given).then_some(Why::Behind));
                round.not_in = self.not_in().await?;
                is_proven &= n_rounds > 1 || !round.not_in.is_any_of(&self.proving);
            } else {
                round.why = round.why.or(self.handled().await?);
            }
            round.waiting = self.engine.what_is_under_way(self.patience()).await?;
            self.each_target(async |targets: Vec<Undecided>| self.compare(targets).await).await?;
            if !self.given().await? {
                round.why = round.why.or(Some(Why::Behind));
            }
            if self.state().is_blind {
                round.why = round.why.or(Some(Why::Unreadable));
            }
            if self.state().tallies.undecided(None, 1)?.is_empty() {
                break;
            }
            let until_ms = self.engine.clock().now_ms();
            self.each_target(async |targets: Vec<Undecided>| self.decide(targets, &round, until_ms)).await?;
        }
        let is_proven = is_proven && round.why.is_none();
        let is_handled = round.why.is_none() && handled.is_none();
        Ok(Proven { is_proven, is_handled })
    }

    /// Decides these targets, but for those that come again in the next round.
    fn decide(&self, targets: Vec<Undecided>, round: &CountRound, until_ms: u64) -> Result<(), VerifyError> {
        let CountRound { began_ms, is_last, why, not_in, waiting } = round;
        let belief = Belief { handled_ms: *began_ms, until_ms };
        for Undecided { target, touched_at_ms, compared, .. } in targets {
            let is_changing = touched_at_ms >= *began_ms && self.engine.takes(ProtocolStep::UntouchedSince);
            // A count that began to differ since the stream was read again: its changes from before were not kept.
            let is_new = compared.is_some() && self.state().proving.as_ref().is_some_and(|it| !it.has(&target));
            let why = why.or_else(|| (is_new || not_in.has(&target)).then_some(Why::NotIn));
            let event = match (compared, why) {
                (Some(finding), Some(why)) => Some(VerifyEvent::Undecided(finding, why)),
                (Some(finding), None) if waiting.has_target(&target) => Some(VerifyEvent::Waiting(finding)),
                (Some(finding), None) if is_changing && *is_last => {
                    Some(VerifyEvent::Undecided(finding, Why::Changing))
                }
                (_, None) if is_changing && !is_last => continue,
                (Some(finding), None) => {
                    let finding = Finding { flaw: waiting.doubt(), ..finding };
                    Some(VerifyEvent::Finding(finding, belief))
                }
                (None, Some(_)) => Some(VerifyEvent::Unproven(target.clone())),
                (None, None) if is_changing || waiting.has_target(&target) => {
                    Some(VerifyEvent::Unproven(target.clone()))
                }
                (None, None) => None,
            };
            let mut state = self.state();
            if let Some(event) = event {
                state.report(event)?;
            }
            state.tallies.decided(&target)?;
        }
        Ok(())
    }

    /// Goes over all targets that are not decided, some at a time.
    pub(super) async fn each_target(
        &self,
        mut act: impl AsyncFnMut(Vec<Undecided>) -> Result<(), VerifyError>,
    ) -> Result<(), VerifyError> {
        let mut after = None;
        loop {
            let targets = self.state().tallies.undecided(after.as_ref(), TARGETS_AT_ONCE)?;
            let Some(last) = targets.last() else { return Ok(()) };
            after = Some(last.target.clone());
            act(targets).await?;
            self.see()?;
        }
    }

    /// Reads the counters of these targets, and keeps how they differ.
    pub(super) async fn compare(&self, targets: Vec<Undecided>) -> Result<(), VerifyError> {
        let compared = targets.into_iter().map(|undecided| async move {
            let finding = self.compare_one(&undecided).await;
            (undecided.target, finding)
        });
        let mut compared = stream::iter(compared).buffer_unordered(CALLS_AT_ONCE);
        while let Some((target, finding)) = compared.next().await {
            let finding = finding?;
            self.state().tallies.compared(&target, finding.as_ref())?;
        }
        Ok(())
    }

    async fn compare_one(&self, undecided: &Undecided) -> Result<Option<Finding>, VerifyError> {
        let Undecided { target, tally, .. } = undecided;
        let (engine, name) = (self.engine, target.derivation.as_str());
        let derivation = engine.catalogue().position(name).and_then(|at| engine.catalogue().derivation(at));
        let Some(derivation) = derivation else { return Ok(None) };
        let kind = derivation.kind.as_ref();
        // What the platform deletes, and a cascade with the target, has no bound.
        if kind.is_history() && starts_anew(engine.catalogue(), name) {
            return Ok(None);
        }
        if let Shape::Rollup(rollup) = kind.shape() {
            let held = engine.held(vec![target.item.clone()], self.patience()).await?.into_iter().next();
            let held = held.and_then(|(_, item)| item);
            return Ok(if tally.count > 0 {
                bucket_compared(name, &target.item, tally, &rollup.form, held.as_ref())
            } else {
                None
            });
        }
        let shards = engine.counters_of(target, self.patience()).await?;
        Ok(counter_compared(engine.schema(), kind, target, &shards, tally))
    }
}
