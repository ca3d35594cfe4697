//! A whole repair: corrects the findings of a verification, while writes continue.
//!
//! The run takes the right to repair counts before it reads anything, so its findings can be trusted until another run
//! takes that right. The file stores the name of the run, so a run that was killed continues without adding twice.
//!
//! *Example*: call `begin`, then `mend` with a function that receives each outcome. Without a run nothing is written,
//! and each outcome states what would be done. [`repair`] does both until nothing is left that can be corrected.
//!
//! # Rounds
//!
//! Each round verifies and corrects its findings. The rounds end when one finds nothing that it can correct.
//!
//! A correction can uncover another difference: at rest, the display of a corrected count; or a mirror that several
//! items claim, whose invalid data shows only after all of them have written it. So only a verification after the last
//! correction proves that nothing is left, and its findings decide the exit code.

pub mod remedy;

use std::{collections::BTreeSet, fmt, sync::Arc};

use derive::kind::Shape;
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    registry::difference::is_fillable,
};
use store::Store;

use crate::{
    OperateError,
    repair::remedy::{Remedy, Repaired, Repairing},
    tables::{Deployment, VerifyOptions, no_derivation},
    verify::{
        Finding, Progress,
        check::{
            Besides, Difference, FINDING, UNDECIDED, UNPROVEN, UNREADABLE, Verified, WAITING, prepare,
            temporary_folder, verify,
        },
        marks::{Before, Marking},
        spool::{RUN, Spool},
    },
};

/// Time limit for the repair of one finding, in milliseconds.
const REPAIR_MS_MAX: u64 = 60_000;

/// Findings to repair before more are read from the file.
const FINDINGS_AT_ONCE: usize = 500;

/// A verification with findings to repair.
pub struct PlannedRepair {
    /// The run with the right to repair; `None` if nothing is applied.
    run: Option<String>,
    before: Option<Before>,
    /// True for every round but the first. Then findings that an earlier round refused are not reported again.
    is_later: bool,
    /// The result of the verification.
    pub verified: Verified,
}

/// The outcome for a finding.
#[derive(Clone, Debug)]
pub struct Mended {
    /// The finding, with the reason to trust it.
    pub difference: Difference,
    /// The action for it.
    pub remedy: Remedy,
    /// The result; `None` if nothing is applied.
    pub repaired: Option<Repaired>,
}

/// The outcome of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The outcomes of the findings.
    pub sums: Sums,
    /// Number of undecided differences.
    pub n_undecided: usize,
    /// Number of differences that a parked change or a job explains.
    pub n_waiting: usize,
    /// Number of counts that were equal while they were changing.
    pub n_unproven: usize,
    /// Number of unreadable items.
    pub n_unreadable: usize,
    /// The derivations that were marked as filled.
    pub marking: Marking,
}

/// Number of findings by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Corrected.
    pub done: usize,
    /// There was nothing left to correct.
    pub not_needed: usize,
    /// Left to an operator.
    pub refused: usize,
    /// Would be corrected with `--apply`.
    pub would: usize,
}

/// Checks that this derivation can be filled, and builds the request to repair it alone.
///
/// # Errors
///
/// [`OperateError::Usage`] with the reason why it cannot be filled.
pub fn backfill<S: Store>(
    opened: &Deployment<S>,
    name: &str,
    args: VerifyOptions,
) -> Result<VerifyOptions, OperateError> {
    let position = opened.catalogue.called(name);
    let Some(derivation) = position.and_then(|at| opened.catalogue.derivation(at)) else {
        return Err(no_derivation(&opened.catalogue, name));
    };
    if derivation.kind.is_history() {
        let why = "it counts items that expire, so the table does not contain everything from before its declaration";
        return Err(OperateError::Usage(format!("{name} cannot be filled: {why}")));
    }
    if matches!(derivation.kind.shape(), Shape::Cascade(_)) {
        let why = "it deletes after a removal, so there is nothing to fill";
        return Err(OperateError::Usage(format!("{name} cannot be filled: {why}")));
    }
    Ok(VerifyOptions { derivation: vec![name.to_owned()], ..args })
}

/// Builds the request to fill all derivations that can be filled.
///
/// # Errors
///
/// [`OperateError::Usage`] if the manifest has none.
pub fn backfill_all<S>(opened: &Deployment<S>, args: VerifyOptions) -> Result<VerifyOptions, OperateError> {
    let fillable = opened.catalogue.derivations().filter(|derivation| is_fillable(derivation));
    let derivation: Vec<String> = fillable.map(|derivation| derivation.name.clone()).collect();
    if derivation.is_empty() {
        return Err(OperateError::Usage("the manifest has no derivation that can be filled".to_owned()));
    }
    Ok(VerifyOptions { derivation, ..args })
}

/// Verifies, with the right to repair if the findings will be repaired.
///
/// # Errors
///
/// [`OperateError`]. The file keeps what was read.
pub async fn begin<S: Store + 'static>(
    opened: &Deployment<S>,
    args: &VerifyOptions,
    is_applied: bool,
    progress: &Arc<dyn Progress>,
) -> Result<PlannedRepair, OperateError> {
    let engine = opened.engine();
    // Checked with or without --apply, and even if no function runs now: the functions will run again.
    Before::read(opened).await?.knows_all(opened)?;
    let prepared = prepare(opened, args)?;
    // Content that the file already had proves nothing about the present.
    let is_new = prepared.spool.is_new()?;
    let run = if is_applied { Some(right(&engine, &prepared.spool).await?) } else { None };
    // At rest no instance runs, so no instance has other derivations.
    let is_waited_for = is_applied && !args.at_rest;
    let before = if is_waited_for { Some(Before::ready(opened, args, is_new, progress.as_ref()).await?) } else { None };
    let unfilled = before.iter().flat_map(|before| before.unfilled(opened, args)).collect();
    let besides = Besides { unfilled, notes_changes: false };
    let verified = Box::pin(verify(prepared, opened, args, besides, progress)).await?;
    Ok(PlannedRepair { run, before, is_later: false, verified })
}

impl PlannedRepair {
    /// Repairs the findings, or reports what it would do; `act` receives each outcome.
    ///
    /// # Errors
    ///
    /// [`OperateError`], and those of `act`. Completed repairs are not repeated, whichever run continues.
    pub async fn mend<S: Store>(
        &self,
        opened: &Deployment<S>,
        args: &VerifyOptions,
        mut act: impl FnMut(&Mended) -> Result<(), OperateError>,
    ) -> Result<Summary, OperateError> {
        let Self { run, before, is_later, verified } = self;
        let engine = opened.engine();
        let repairing = Repairing::new(&engine);
        let mut sums = Sums::default();
        let mut open = BTreeSet::new();
        let mut after: Option<Finding> = None;
        loop {
            let entries = verified.spool.entries_after(FINDING, after.as_ref().map(position), FINDINGS_AT_ONCE)?;
            let Some(last) = entries.last() else { break };
            let last: Difference = serde_json::from_str(last)?;
            for entry in &entries {
                let difference: Difference = serde_json::from_str(entry)?;
                let finding = &difference.finding;
                let remedy = repairing.remedy(finding);
                let repaired = match &run {
                    Some(run) => {
                        Some(repairing.repair(finding, run, SystemClock.now_ms().saturating_add(REPAIR_MS_MAX)).await?)
                    }
                    None => None,
                };
                let n_refused = sums.refused;
                if !sums.add(&remedy, repaired.as_ref()) {
                    open.insert(finding.derivation.clone());
                }
                let is_new = sums.refused == n_refused || verified.spool.note_refused(finding)?;
                let mut mended = Mended { difference, remedy, repaired };
                opened.catalogue.relabel(&mut mended.difference.finding.derivation);
                if is_new || !is_later {
                    act(&mended)?;
                }
                if mended.repaired == Some(Repaired::Overtaken) {
                    let why = "another repair has started since: wait for its end, and repair again";
                    return Err(OperateError::Refused(why.to_owned()));
                }
            }
            after = Some(last.finding);
        }
        let marking = match before {
            Some(before) => before.mark(opened, args, verified, open).await?,
            None => Marking::Done,
        };
        let n_found = |kind| verified.n_entries(kind);
        let (n_undecided, n_waiting, n_unproven) = (n_found(UNDECIDED)?, n_found(WAITING)?, n_found(UNPROVEN)?);
        let n_unreadable = n_found(UNREADABLE)?;
        Ok(Summary { sums, n_undecided, n_waiting, n_unproven, n_unreadable, marking })
    }
}

/// The position of a finding among the entries of the file.
fn position(finding: &Finding) -> ([&str; 3], bool) {
    ([&finding.derivation, &finding.pk, &finding.sk], finding.flaw.is_some())
}

/// The run with the right to repair: the one in the file, or a new one.
async fn right<S: Store>(engine: &Engine<Arc<S>>, spool: &Spool) -> Result<String, OperateError> {
    let deadline_ms = SystemClock.now_ms().saturating_add(REPAIR_MS_MAX);
    let repairing = Repairing::new(engine);
    if let Some(run) = spool.about(RUN)? {
        if !repairing.may_repair(&run, deadline_ms).await? {
            let why = "another repair has started since this one was stopped, so its findings cannot be trusted: \
                       delete the --progress file, and begin anew";
            return Err(OperateError::Refused(why.to_owned()));
        }
        return Ok(run);
    }
    if !spool.is_new()? {
        let why = "the --progress file belongs to a verification without the right to repair: give another file";
        return Err(OperateError::Refused(why.to_owned()));
    }
    let run = format!("{:016x}", rand::random::<u64>());
    repairing.begin_repair(&run, deadline_ms).await?;
    spool.set_about(RUN, &run)?;
    spool.commit()?;
    Ok(run)
}

impl Summary {
    /// True if a difference is left that is wrong or undecided.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.sums.refused + self.sums.would + self.n_undecided + self.n_waiting > 0
    }
}

impl Sums {
    /// Counts the outcome of a finding, and returns true if the finding is resolved.
    pub fn add(&mut self, remedy: &Remedy, repaired: Option<&Repaired>) -> bool {
        let (counted, is_right) = match (remedy, repaired) {
            (Remedy::None { .. }, _) | (_, Some(Repaired::Refused { .. } | Repaired::Overtaken)) => {
                (&mut self.refused, false)
            }
            (_, None) => (&mut self.would, false),
            (_, Some(Repaired::Done)) => (&mut self.done, true),
            (_, Some(Repaired::NotNeeded)) => (&mut self.not_needed, true),
        };
        *counted += 1;
        is_right
    }
}

// ---- rounds ----

/// Limit on rounds that correct something while the functions run and propagate each correction.
const ROUNDS_MAX: usize = 4;

/// Limit on rounds at rest, where each level of a path may need a round: a folder is at most 64 deep.
const ROUNDS_MAX_AT_REST: usize = 70;

/// The outcome of all rounds.
pub struct RoundsReport {
    /// Corrections of all rounds, and what the last one left.
    pub summary: Summary,
    /// The last verification.
    pub last: Verified,
}

/// Verifies and repairs until nothing is left that can be corrected; without `is_applied`, verifies once. `act`
/// receives each outcome; a refused finding is passed only once.
///
/// # Errors
///
/// [`OperateError`], and those of `act`. Completed repairs are not repeated, whichever run continues.
pub async fn repair<S: Store + 'static>(
    opened: &Deployment<S>,
    args: &VerifyOptions,
    is_applied: bool,
    progress: &Arc<dyn Progress>,
    mut act: impl FnMut(&Mended) -> Result<(), OperateError>,
) -> Result<RoundsReport, OperateError> {
    let folder = temporary_folder()?;
    let file = args.progress.clone().unwrap_or_else(|| folder.path().join("repair"));
    let args = VerifyOptions { progress: Some(file), ..args.clone() };
    let n_rounds_max = if args.at_rest { ROUNDS_MAX_AT_REST } else { ROUNDS_MAX };
    let (mut done, mut not_needed) = (0, 0);
    let mut n_rounds = 0;
    loop {
        // The last round only reports, so that a value that keeps differing cannot extend the rounds.
        let is_applied = is_applied && n_rounds < n_rounds_max;
        let found = Box::pin(begin(opened, &args, is_applied, progress)).await?;
        let found = PlannedRepair { is_later: n_rounds > 0, ..found };
        let summary = found.mend(opened, &args, &mut act).await?;
        let n_settled = summary.sums.done + summary.sums.not_needed;
        (done, not_needed) = (done + summary.sums.done, not_needed + summary.sums.not_needed);
        if n_settled == 0 {
            let sums = Sums { done, not_needed, ..summary.sums };
            return Ok(RoundsReport { summary: Summary { sums, ..summary }, last: found.verified });
        }
        found.verified.spool.begin_anew()?;
        n_rounds += 1;
    }
}

// ---- The outcome for a finding, as text ----

impl fmt::Display for Mended {
    /// The planned remedy, or its result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match &self.remedy {
            Remedy::Refresh => "derive it anew".to_owned(),
            Remedy::Add { count, sum } if sum.is_zero() => format!("change the count by {count:+}"),
            Remedy::Add { count, sum } => format!("change the count by {count:+} and the sum by {sum}"),
            Remedy::SetIndexKeys => "set its index keys".to_owned(),
            Remedy::Delete => "delete it".to_owned(),
            Remedy::None { why } => return write!(f, "left to an operator: {why}"),
        };
        match &self.repaired {
            None => write!(f, "would {what}"),
            Some(Repaired::Done) => write!(f, "done: {what}"),
            Some(Repaired::NotNeeded) => f.write_str("is right already"),
            Some(Repaired::Refused { why }) => write!(f, "left to an operator: {why}"),
            Some(Repaired::Overtaken) => f.write_str("not done: another repair has started"),
        }
    }
}
