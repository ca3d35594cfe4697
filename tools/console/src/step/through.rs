//! Delivers records at once that are not part of the scene.

use std::time::{Duration, Instant};

use engine::record::key_of;
use keys::{key::Key, layout::Layout};
use store::Store;

use super::{
    StepGate,
    delivering::{DeliveryWay, EndedHow, WhichRecord},
};

/// Longest wait for a record, and for the end of its effects.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Time between two checks that everything is handled.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Number of deliveries of a record that is not done.
const TRIES_MAX: usize = 20;

impl<S: Store + 'static> StepGate<S> {
    /// Delivers a function's records until its next record is of this item.
    ///
    /// # Errors
    ///
    /// Why the record does not come, for a person.
    pub(crate) async fn bring(&self, function: usize, key: &Key, layout: &Layout) -> Result<(), String> {
        let (began, mut n_failed) = (Instant::now(), 0);
        loop {
            let next = self.held().next(function).map(|next| key_of(layout, &next.record.json));
            match next {
                Some(of) if of.as_ref() == Some(key) => return Ok(()),
                Some(_) => self.deliver_next(function, &mut n_failed).await?,
                None if began.elapsed() > WAIT_MAX => return Err(format!("no record of {key} has come in a minute")),
                None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Delivers all records, until everything written before is handled, with all its effects.
    ///
    /// # Errors
    ///
    /// Why it does not end, for a person.
    pub(crate) async fn let_through(&self) -> Result<(), String> {
        let (began, mut n_failed) = (Instant::now(), 0);
        loop {
            for function in 0..self.functions.len() {
                while self.held().next(function).is_some() {
                    self.deliver_next(function, &mut n_failed).await?;
                }
            }
            if self.is_quiet(began) {
                return Ok(());
            }
            if began.elapsed() > WAIT_MAX {
                return Err("records still come after a minute, because others write into the table".to_owned());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn deliver_next(&self, function: usize, n_failed: &mut usize) -> Result<(), String> {
        let report = self.deliver_unseen(function, &WhichRecord::Next, DeliveryWay::Once).await;
        for end in report.iter().flat_map(|report| &report.ends) {
            if let EndedHow::Again(why) = &end.how {
                *n_failed += 1;
                if *n_failed >= TRIES_MAX {
                    return Err(format!("a record is not done after {TRIES_MAX} deliveries: {why}"));
                }
            }
        }
        Ok(())
    }
}
