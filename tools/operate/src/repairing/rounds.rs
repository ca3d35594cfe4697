//! Repairs in rounds: each verifies, and corrects what it finds, until one finds nothing more that it can correct.
//!
//! A correction can uncover another difference: at rest, the display of a count that was added to; or the flaw of a
//! mirror that several items claim, which is seen when they have all written it. So only a verification that comes after
//! the last correction proves that nothing is left, and what it finds decides the exit code.

use std::sync::Arc;

use store::Store;

use super::{Mended, PlannedRepair, Summary, Sums, begin};
use crate::{
    failure::OperateError,
    progress::Progress,
    tables::{Deployment, VerifyOptions},
    verifying::{temporary_folder, verified::Verified},
};

/// Number of rounds that correct something beside functions, which carry on what a correction changes.
const ROUNDS_MAX: usize = 4;

/// The same at rest, where each level of a path may need a round: a folder is at most 64 deep.
const ROUNDS_MAX_AT_REST: usize = 70;

/// The outcome of all rounds.
pub struct RoundsReport {
    /// What was corrected in all rounds, and what the last one left.
    pub summary: Summary,
    /// The last verification.
    pub last: Verified,
}

/// Verifies and repairs until nothing is left that can be corrected; without applying anything, verifies once. `act`
/// receives each outcome, of what is refused only once.
///
/// # Errors
///
/// [`OperateError`], and those of `act`. The repairs so far are done once, whichever run continues.
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
        // What the last round finds is reported, so that a value that never settles ends the rounds.
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
