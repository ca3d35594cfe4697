//! Admission: which changes of a batch must go in.

use std::collections::BTreeSet;

use derive::coalesce::Counted;
use store::Store;

use crate::{
    account::Account, batch::input::Batch, clock::age_ms, count::Counter, ledger::LedgerKind, protocol::ProtocolStep,
};

/// A change that must go in once: what it adds, or why it must be parked.
#[derive(Clone, Debug)]
pub(crate) struct CountEntry {
    /// What it adds.
    pub(crate) change: Counted,
    /// When its write was made, in milliseconds since the epoch.
    pub(crate) created_ms: Option<u64>,
    /// Why it cannot be applied.
    pub(crate) failed: Option<String>,
}

impl<S: Store> Counter<'_, S> {
    /// The changes that must go in: each once, none that is known to be in, none from behind the horizon or
    /// of an unknown age. And why nothing
    /// behind one of them may pass it, where one could not be listed.
    pub(crate) async fn admitted(
        &self,
        entries: Vec<CountEntry>,
        is_in: impl Fn(&Counted) -> bool,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> (Vec<CountEntry>, Option<String>) {
        let (mut seen, mut admitted, mut unlisted) = (BTreeSet::new(), Vec::new(), None);
        for mut entry in entries {
            let is_again = !seen.insert(entry.change.id.clone()) && self.context.takes(ProtocolStep::OnceABatch);
            if is_again || is_in(&entry.change) {
                account.n_duplicates += 1;
                continue;
            }
            if let Some(why) = self.refusal(entry.created_ms) {
                unlisted = unlisted.or(self.refuse(&entry.change, why, batch.patience, account).await.err());
                continue;
            }
            if entry.created_ms.is_none() {
                let why = "the record does not say when it was made (ApproximateCreationDateTime)";
                entry.failed.get_or_insert(why.to_owned());
            }
            admitted.push(entry);
        }
        (admitted, unlisted)
    }

    /// Why the ledger cannot decide about a change of this time.
    fn refusal(&self, created_ms: Option<u64>) -> Option<&'static str> {
        match age_ms(created_ms, self.context.clock.now_ms()) {
            Some(age_ms) if age_ms > self.context.ledger.horizon_ms() => match self.context.ledger {
                LedgerKind::Receipts => Some("it is older than the ledger's horizon of 14 days"),
                LedgerKind::Watermarks => Some("it is older than the ledger's horizon of 26 hours"),
            }
            .filter(|_| self.context.takes(ProtocolStep::Horizon)),
            None if created_ms.is_some() && self.context.takes(ProtocolStep::NotAhead) => Some(
                "its time (ApproximateCreationDateTime) is more than five minutes ahead of the function's clock, so its age \
                 is unknown",
            ),
            _ => None,
        }
    }
}
