//! Admission: which changes of a batch must go in.

use std::collections::BTreeSet;

use derive::coalesce::Counted;
use store::Store;

use crate::{account::Account, batch::input::Batch, count::Counter, ledger::LedgerKind, protocol::ProtocolStep};

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
    /// The changes that must go in: each once, none that is known to be in, none from behind the horizon. And why nothing
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
            let age_ms = entry.created_ms.map(|created_ms| self.context.clock.now_ms().saturating_sub(created_ms));
            let is_behind = age_ms.is_some_and(|age_ms| age_ms > self.context.ledger.horizon_ms());
            if is_behind && self.context.takes(ProtocolStep::Horizon) {
                let why = match self.context.ledger {
                    LedgerKind::Receipts => "it is older than the ledger's horizon of 14 days",
                    LedgerKind::Watermarks => "it is older than the ledger's horizon of 26 hours",
                };
                unlisted = unlisted.or(self.refuse(&entry.change, why, batch.patience, account).await.err());
                continue;
            }
            if age_ms.is_none() {
                let why = "the record does not say when it was made (ApproximateCreationDateTime)";
                entry.failed.get_or_insert(why.to_owned());
            }
            admitted.push(entry);
        }
        (admitted, unlisted)
    }
}
