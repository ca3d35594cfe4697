//! The brake: a batch of which much cannot be read is a deployment gone wrong, not data.
//!
//! *Keeps true*: when more than [`BrakeLimits::unreadable_percent_max`] of a batch of 20 records or more
//! cannot be read, nothing of it is applied or parked, and the invocation fails. The batch comes again, and is handled
//! once the deployment is mended.
//!
//! It gives way when the batch's first record is older than [`BrakeLimits::unreadable_hold_ms`], so that a shard is held up
//! for so long at most, far from the day that a stream keeps records; or when the operator raises the limit.

use derive::{effect::Effect, position::DerivationAt};

use crate::batch::{handle_error::HandleError, input::Batch, limits::BrakeLimits, planning::Planning};

/// Smallest batch that the brake looks at, in records: one bad item in a small batch is data.
const BATCH_RECORDS_MIN: usize = 20;

/// Items that the error names.
const NAMED_MAX: usize = 3;

/// Fails when too much of a batch cannot be read.
pub(crate) fn brake(limits: &BrakeLimits, planned: &[Planning<'_>], batch: &Batch<'_>) -> Result<(), HandleError> {
    let n_records = planned.len();
    let unreadable: Vec<&Planning<'_>> = planned.iter().filter(|planning| is_unreadable(planning)).collect();
    let percent_max = usize::try_from(limits.unreadable_percent_max).unwrap_or(usize::MAX);
    let is_much = unreadable.len().saturating_mul(100) > n_records.saturating_mul(percent_max);
    if n_records < BATCH_RECORDS_MIN || !is_much {
        return Ok(());
    }
    let first_ms = batch.created_ms().unwrap_or(0);
    if batch.patience.clock.now_ms().saturating_sub(first_ms) > limits.unreadable_hold_ms {
        tracing::error!(n_unreadable = unreadable.len(), n_records, "much is unreadable, and was held long enough");
        return Ok(());
    }
    let items = unreadable.iter().take(NAMED_MAX).map(|planning| planning.name()).collect();
    Err(HandleError::Unreadable { n_unreadable: unreadable.len(), n_records, items })
}

fn is_unreadable(planning: &Planning<'_>) -> bool {
    let is_listed = |(_, effect): &(DerivationAt, Effect)| matches!(effect, Effect::List { unreadable: Some(_) });
    match &planning.planned {
        Err(_) => true,
        Ok(planned) => planned.misfit.is_some() || planned.effects.iter().any(is_listed),
    }
}
