//! Touching an item of the application: one write or transaction, and what it cost.

use std::collections::BTreeSet;

use derive::write::{Action, Table, Transaction, Write};
use keys::{item::Item, key::Key};
use store::{Outcome, Reason, Store, TransactOutcome, Units};

use crate::{
    account::{Account, Commit, apportioned},
    backoff::{GaveUp, Tries, describe},
    context::Context,
    input::Batch,
    plan::Touch,
};

/// On whose behalf something is touched, and what came of it.
pub(crate) struct Work<'a> {
    pub(crate) touch: &'a Touch,
    pub(crate) batch: &'a Batch<'a>,
    /// Does nobody wait behind it? See [`Worker::is_alone`](crate::jobs::ground::Worker).
    pub(crate) is_alone: bool,
    pub(crate) account: Account,
}

/// Why something could not be touched.
#[derive(Debug)]
pub(crate) enum TouchFailure {
    /// Not now: its record comes again.
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

/// How a transaction on ground items ended.
pub(crate) enum TouchOutcome {
    Done,
    /// The guards of the writes at these positions did not hold.
    Unheld(BTreeSet<usize>),
}

/// Touches items of the application.
pub(crate) struct Toucher<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Toucher<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Toucher<'_, S> {
    /// Sends a transaction until it is decided.
    pub(crate) async fn decided(&self, writes: Vec<Write>, work: &mut Work<'_>) -> Result<TouchOutcome, TouchFailure> {
        let transaction = Transaction::new(writes).map_err(|error| TouchFailure::Refused(error.to_string()))?;
        let patience = work.batch.patience;
        let mut tries = Tries::default();
        loop {
            let reasons = match patience.call(|| self.context.store.transact(&transaction)).await? {
                TransactOutcome::Done { units } => {
                    self.note_commits(&transaction, &units, work);
                    return Ok(TouchOutcome::Done);
                }
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            let unheld = reasons.iter().enumerate().filter(|(_, reason)| **reason == Reason::GuardFailed);
            let unheld: BTreeSet<usize> = unheld.map(|(at, _)| at).collect();
            if !unheld.is_empty() {
                return Ok(TouchOutcome::Unheld(unheld));
            }
            if let Some(Reason::Rejected(why)) = reasons.iter().find(|reason| matches!(reason, Reason::Rejected(_))) {
                return Err(TouchFailure::Refused(why.clone()));
            }
            if !patience.wait(&mut tries).await {
                return Err(TouchFailure::NotNow("others are at its items all the time".to_owned()));
            }
        }
    }

    fn note_commits(&self, transaction: &Transaction, units: &[(Table, Units)], work: &mut Work<'_>) {
        let writes: Vec<&Write> = transaction.writes().iter().collect();
        let units = apportioned(&writes, units);
        for (write, units) in writes.into_iter().zip(units) {
            let commit = self.touched(&write.key, write.table, Some(&write.action), units, work);
            work.account.commits.push(commit);
        }
    }

    pub(crate) fn touched(
        &self,
        key: &Key,
        table: Table,
        action: Option<&Action>,
        units: Units,
        work: &Work<'_>,
    ) -> Commit {
        let derivation = self.context.catalogue.label(work.touch.derivation).to_owned();
        Commit {
            key: key.clone(),
            table,
            action: action.filter(|_| table == Table::Main).cloned(),
            at_ms: self.context.clock.now_ms(),
            units,
            derivations: if table == Table::Main { vec![derivation] } else { Vec::new() },
            causes: BTreeSet::from([work.touch.position]),
            is_correction: false,
        }
    }

    /// An item as it is now.
    pub(crate) async fn item_now(
        &self,
        table: Table,
        key: &Key,
        work: &Work<'_>,
    ) -> Result<Option<Item>, TouchFailure> {
        let keys = [key.clone()];
        let items = work.batch.patience.call(|| self.context.store.get(table, &keys)).await?;
        Ok(items.into_iter().next().map(|(_, item)| item))
    }

    /// Does one write; a guard that does not hold says that somebody else did it.
    pub(crate) async fn written(&self, write: Write, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        match work.batch.patience.call(|| self.context.store.write(&write)).await? {
            Outcome::Done { units } => {
                let commit = self.touched(&write.key, write.table, Some(&write.action), units, work);
                work.account.commits.push(commit);
            }
            Outcome::GuardFailed => {}
        }
        Ok(())
    }
}
