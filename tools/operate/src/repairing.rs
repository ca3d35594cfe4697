//! A whole repair: what a verification finds is mended, while writes go on.
//!
//! The right to repair counts is taken before anything is read, so that what is found is to be relied on until another
//! run takes it. The file keeps the name of the run: one that was killed goes on, and adds nothing twice.
//!
//! *Example*: `begin`, then `mend` with what is to happen with each outcome. Without a run nothing is written, and each
//! outcome says what would be done.

use std::{collections::BTreeSet, sync::Arc};

use derive::kind::Shape;
use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
};
use store::Store;

use crate::{
    failure::OperateError,
    progress::Progress,
    repair::{Remedy, Repaired, Repairing},
    tables::{Deployment, VerifyOptions},
    verify::Finding,
    verifying::{
        Difference, FINDING, UNDECIDED, UNPROVEN, Verified, WAITING,
        filled::{Before, Marking},
        prepare,
        spool::Spool,
        verify,
    },
};

/// How long the repair of one finding may take, in milliseconds.
const REPAIR_MS_MAX: u64 = 60_000;

/// Findings that are mended one after the other before more are read from the file.
const FINDINGS_AT_ONCE: usize = 500;

/// Name in the file under which the run stands.
const RUN: &str = "run";

/// What is found, and is to be mended.
pub struct PlannedRepair {
    /// The run that has the right to repair; `None` where nothing is applied.
    run: Option<String>,
    before: Option<Before>,
    /// What was found.
    pub verified: Verified,
}

/// What became of a finding.
#[derive(Clone, Debug)]
pub struct Mended {
    /// The finding, and why it is believed.
    pub difference: Difference,
    /// What is to be done about it.
    pub remedy: Remedy,
    /// How that ended; `None` where nothing is applied.
    pub repaired: Option<Repaired>,
}

/// What became of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What became of the findings.
    pub sums: Sums,
    /// What may be on its way.
    pub n_undecided: usize,
    /// What a parked change or a job explains.
    pub n_waiting: usize,
    /// Counts that were equal while they were changing.
    pub n_unproven: usize,
    /// What was marked as filled.
    pub marking: Marking,
}

/// How many findings ended so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Mended.
    pub done: usize,
    /// There was nothing to mend any more.
    pub not_needed: usize,
    /// Left to a person.
    pub refused: usize,
    /// Would be mended, if it were applied.
    pub would: usize,
}

/// Can this derivation be filled? The request is then to repair it alone.
///
/// # Errors
///
/// [`OperateError::Usage`], which says why not.
pub fn backfill<S: Store>(
    opened: &Deployment<S>,
    name: &str,
    args: VerifyOptions,
) -> Result<VerifyOptions, OperateError> {
    let position = opened.catalogue.position(name);
    let Some(derivation) = position.and_then(|at| opened.catalogue.derivation(at)) else {
        return Err(OperateError::Usage(format!("there is no derivation {name}; `ripple design` lists them")));
    };
    if derivation.kind.is_history() {
        let why = "it counts what the platform deletes, so what came before it was declared is not all in the table";
        return Err(OperateError::Usage(format!("{name} cannot be filled: {why}")));
    }
    if matches!(derivation.kind.shape(), Shape::Cascade(_)) {
        let why = "it deletes when something is removed, and there is nothing to fill";
        return Err(OperateError::Usage(format!("{name} cannot be filled: {why}")));
    }
    Ok(VerifyOptions { derivation: vec![name.to_owned()], ..args })
}

/// Verifies, with the right to repair where what is found is to be mended.
///
/// # Errors
///
/// [`OperateError`], with what was read kept in the file.
pub async fn begin<S: Store + 'static>(
    opened: &Deployment<S>,
    args: &VerifyOptions,
    is_applied: bool,
    progress: &Arc<dyn Progress>,
) -> Result<PlannedRepair, OperateError> {
    let engine = opened.engine();
    // With or without --apply, and even while no function runs: they will run again.
    Before::read(opened).await?.knows_all(opened)?;
    let prepared = prepare(opened, args)?;
    // What was read and found another time proves nothing of now.
    let is_new = prepared.spool.is_new()?;
    let run = if is_applied { Some(right(&engine, &prepared.spool).await?) } else { None };
    // With nobody at work nobody has other derivations.
    let is_waited_for = is_applied && !args.at_rest;
    let before = if is_waited_for { Some(Before::ready(opened, args, is_new, progress.as_ref()).await?) } else { None };
    let verified = Box::pin(verify(prepared, opened, args, progress)).await?;
    Ok(PlannedRepair { run, before, verified })
}

impl PlannedRepair {
    /// Mends what was found, or says what it would do; `act` is given each outcome.
    ///
    /// # Errors
    ///
    /// [`OperateError`], and those of `act`. What is mended by then is mended once, whoever goes on.
    pub async fn mend<S: Store>(
        self,
        opened: &Deployment<S>,
        args: &VerifyOptions,
        mut act: impl FnMut(&Mended) -> Result<(), OperateError>,
    ) -> Result<Summary, OperateError> {
        let Self { run, before, verified } = self;
        let engine = opened.engine();
        let repairing = Repairing::new(&engine);
        let mut sums = Sums::default();
        let mut open = BTreeSet::new();
        let mut after: Option<Finding> = None;
        loop {
            let behind = after.as_ref().map(|it| [it.derivation.as_str(), it.pk.as_str(), it.sk.as_str()]);
            let entries = verified.entries_after(FINDING, behind, FINDINGS_AT_ONCE)?;
            let Some(last) = entries.last() else { break };
            let last: Difference = serde_json::from_str(last)?;
            for entry in &entries {
                let difference: Difference = serde_json::from_str(entry)?;
                let finding = &difference.finding;
                let remedy = repairing.remedy(finding);
                let repaired = match &run {
                    Some(run) => Some(repairing.repair(finding, run, SystemClock.now_ms() + REPAIR_MS_MAX).await?),
                    None => None,
                };
                if !sums.add(&remedy, repaired.as_ref()) {
                    open.insert(finding.derivation.clone());
                }
                let mended = Mended { difference, remedy, repaired };
                act(&mended)?;
                if mended.repaired == Some(Repaired::Overtaken) {
                    let why = "another repair has begun since this one did: let that end, and repair once more";
                    return Err(OperateError::Refused(why.to_owned()));
                }
            }
            after = Some(last.finding);
        }
        let marking = match before {
            Some(before) => before.mark(opened, args, &verified, open).await?,
            None => Marking::Done,
        };
        let n_found = |kind| verified.n_entries(kind);
        let (n_undecided, n_waiting, n_unproven) = (n_found(UNDECIDED)?, n_found(WAITING)?, n_found(UNPROVEN)?);
        Ok(Summary { sums, n_undecided, n_waiting, n_unproven, marking })
    }
}

/// The run that has the right to repair: that of the file, or a new one.
async fn right<S: Store>(engine: &Engine<Arc<S>>, spool: &Spool) -> Result<String, OperateError> {
    let deadline_ms = SystemClock.now_ms() + REPAIR_MS_MAX;
    let repairing = Repairing::new(engine);
    if let Some(run) = spool.about(RUN)? {
        if !repairing.may_repair(&run, deadline_ms).await? {
            let why = "another repair has begun since this one was stopped, so what it found is not to be relied on: \
                       delete the --resume file, and begin anew";
            return Err(OperateError::Refused(why.to_owned()));
        }
        return Ok(run);
    }
    if !spool.is_new()? {
        let why = "the --resume file is of a verification that began without the right to repair: give another file";
        return Err(OperateError::Refused(why.to_owned()));
    }
    let run = format!("{:016x}", rand::random::<u64>());
    repairing.begin_repair(&run, deadline_ms).await?;
    spool.set_about(RUN, &run)?;
    spool.commit()?;
    Ok(run)
}

impl Summary {
    /// Is anything left that is not right, or not known to be?
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.sums.refused + self.sums.would + self.n_undecided + self.n_waiting > 0
    }
}

impl Sums {
    /// Counts what became of a finding, and says whether it is none any more.
    fn add(&mut self, remedy: &Remedy, repaired: Option<&Repaired>) -> bool {
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
