//! Admission: which changes of a batch must go in, and in which chunks.

use std::collections::{BTreeSet, VecDeque};

use derive::coalesce::{Counted, chunks};
use store::Store;

use crate::{
    account::Account,
    batch::input::Batch,
    count::{Chunk, Counter, Session},
    ledger::{HORIZON_MS, Ledger, checkpoint::padded},
    protocol::ProtocolStep,
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
    /// The changes that must go in: each once, none that is in, none from behind the horizon.
    pub(crate) async fn admitted(
        &self,
        entries: Vec<CountEntry>,
        session: &mut Session<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Vec<CountEntry> {
        let mut seen = BTreeSet::new();
        let mut admitted = Vec::new();
        for mut entry in entries {
            let is_again = !seen.insert(entry.change.id.clone()) && self.context.takes(ProtocolStep::OnceABatch);
            if is_again || session.ledger.has(&entry.change) {
                account.n_duplicates += 1;
                continue;
            }
            let age_ms = entry.created_ms.map(|created_ms| self.context.clock.now_ms().saturating_sub(created_ms));
            if age_ms.is_some_and(|age_ms| age_ms > HORIZON_MS) && self.context.takes(ProtocolStep::Horizon) {
                let why = "it is older than the ledger's horizon of 14 days";
                // Passed by a checkpoint before it is listed, it would never be.
                if let Err(why) = self.refuse(&entry.change, why, batch.patience, account).await {
                    session.stop(why);
                }
                continue;
            }
            if age_ms.is_none() {
                let why = "the record does not say when it was made (ApproximateCreationDateTime)";
                entry.failed.get_or_insert(why.to_owned());
            }
            if session.ledger.is_ordered() && padded(&entry.change.sequence_number).is_none() {
                entry.failed.get_or_insert("the record has no sequence number that can be read".to_owned());
            }
            admitted.push(entry);
        }
        admitted
    }

    /// Cuts what must go in into chunks. What is parked stands alone: in its place where the order matters, else behind
    /// what is applied, which it would cut in two.
    pub(crate) fn cut(&self, mut entries: Vec<CountEntry>, ledger: &dyn Ledger) -> VecDeque<Chunk> {
        if !ledger.is_ordered() {
            entries.sort_by_key(|entry| entry.failed.is_some());
        } else if self.context.takes(ProtocolStep::ContiguousChunks) {
            entries.sort_by_cached_key(|entry| padded(&entry.change.sequence_number));
        } else {
            entries.sort_by_cached_key(|entry| entry.change.amounts.first().map(|amount| amount.item.clone()));
        }
        let mut waiting = VecDeque::new();
        let mut applied: Vec<Counted> = Vec::new();
        let cut = |applied: &mut Vec<Counted>, waiting: &mut VecDeque<Chunk>| {
            waiting.extend(chunks(std::mem::take(applied), ledger.proof()).into_iter().map(Chunk::new));
        };
        for CountEntry { change, failed, .. } in entries {
            match failed {
                None => applied.push(change),
                Some(cause) => {
                    cut(&mut applied, &mut waiting);
                    waiting.push_back(Chunk::parking(change, cause));
                }
            }
        }
        cut(&mut applied, &mut waiting);
        waiting
    }
}
