//! Changes items of the application: one write or transaction, and its cost.

use std::collections::BTreeSet;

use derive::write::{Action, Table, Transaction, Write};
use keys::key::Key;
use store::{Outcome, Reason, Store, TransactOutcome, Units, rejected};

use crate::{
    account::{Account, Commit, apportioned},
    backoff::{GaveUp, Tries, describe},
    context::Context,
    input::Batch,
    plan::Touch,
};

/// The effect that is being handled, with its batch and its results.
pub(crate) struct Work<'a> {
    pub(crate) touch: &'a Touch,
    pub(crate) batch: &'a Batch<'a>,
    /// For how long only jobs ran, in milliseconds; `None` if other work ran in the batch.
    pub(crate) alone_ms: Option<u64>,
    pub(crate) account: Account,
}

/// Why an item could not be changed.
#[derive(Debug)]
pub(crate) enum TouchFailure {
    /// Not now: its record is redelivered.
    NotNow(String),
    /// Never: its record is parked.
    Refused(String),
}

impl From<GaveUp> for TouchFailure {
    fn from(gave_up: GaveUp) -> Self {
        match &gave_up {
            GaveUp::Refused(error) => Self::Refused(describe(error)),
            GaveUp::OutOfTime { .. } | GaveUp::Standing(_) => Self::NotNow(describe(&gave_up)),
        }
    }
}

/// How a transaction on application items ended.
pub(crate) enum TouchOutcome {
    Done,
    /// The guards of the writes at these positions failed.
    Unheld(BTreeSet<usize>),
}

/// Sends a transaction until it has an outcome.
pub(crate) async fn decided<S: Store>(
    context: &Context<S>,
    writes: Vec<Write>,
    work: &mut Work<'_>,
) -> Result<TouchOutcome, TouchFailure> {
    let transaction = Transaction::new(writes).map_err(|error| TouchFailure::Refused(error.to_string()))?;
    let patience = work.batch.patience;
    let mut tries = Tries::default();
    loop {
        let reasons = match patience.call(|| context.store.transact(&transaction)).await? {
            TransactOutcome::Done { units } => {
                note_commits(context, &transaction, &units, work);
                return Ok(TouchOutcome::Done);
            }
            TransactOutcome::Cancelled { reasons } => reasons,
        };
        let unheld = reasons.iter().enumerate().filter(|(_, reason)| **reason == Reason::GuardFailed);
        let unheld: BTreeSet<usize> = unheld.map(|(at, _)| at).collect();
        if !unheld.is_empty() {
            return Ok(TouchOutcome::Unheld(unheld));
        }
        if let Some(why) = rejected(&reasons) {
            return Err(TouchFailure::Refused(why));
        }
        if !patience.wait(&mut tries).await {
            return Err(TouchFailure::NotNow("others are at its items all the time".to_owned()));
        }
    }
}

fn note_commits<S: Store>(
    context: &Context<S>,
    transaction: &Transaction,
    units: &[(Table, Units)],
    work: &mut Work<'_>,
) {
    let writes: Vec<&Write> = transaction.writes().iter().collect();
    let units = apportioned(&writes, units);
    for (write, units) in writes.into_iter().zip(units) {
        let commit = touched(context, &write.key, write.table, Some(&write.action), units, work);
        work.account.commits.push(commit);
    }
}

pub(crate) fn touched<S: Store>(
    context: &Context<S>,
    key: &Key,
    table: Table,
    action: Option<&Action>,
    units: Units,
    work: &Work<'_>,
) -> Commit {
    let derivation = context.catalogue.label(work.touch.derivation).to_owned();
    Commit {
        key: key.clone(),
        table,
        action: action.filter(|_| table == Table::Main).cloned(),
        at_ms: context.clock.now_ms(),
        units,
        derivations: if table == Table::Main { vec![derivation] } else { Vec::new() },
        causes: BTreeSet::from([work.touch.position]),
        is_correction: false,
    }
}

/// Sends one write. A failed guard means that another invocation did it.
pub(crate) async fn written<S: Store>(
    context: &Context<S>,
    write: Write,
    work: &mut Work<'_>,
) -> Result<(), TouchFailure> {
    match work.batch.patience.call(|| context.store.write(&write)).await? {
        Outcome::Done { units } => {
            let commit = touched(context, &write.key, write.table, Some(&write.action), units, work);
            work.account.commits.push(commit);
        }
        Outcome::GuardFailed => {}
    }
    Ok(())
}
