//! Proof that the changes of a count are in its counters, where nobody can read how far the functions are.
//!
//! *Keeps true*: a count is decided only if each change of it that the stream still holds, and that was made before the
//! counters were read, is [in the ledger](engine::ledger::in_ledger). What the stream does not hold any more, no function
//! will ever bring.
//!
//! All counts are compared once, without proof. Then the stream is read again from its oldest record on, and of each record
//! that concerns a count that differs, its proof is asked for. From then on the records that come are kept until their
//! proofs are there. So a table without a difference costs no second reading of its stream.
//!
//! *Example*: one shard is held by the brake, and the others are handled within a second. A post whose like is in that
//! shard seems to lack one. The stream still holds the like, and the ledger has no receipt of it: the count is undecided,
//! and no repair adds what the shard adds when it catches up.

use std::collections::BTreeSet;

use engine::{
    count::{CountsOf, Target},
    ledger::in_ledger::CountedRecord,
    protocol::ProtocolStep,
};
use store::Store;

use super::{run::Verification, tallies::Undecided};
use crate::verify::ShardRecords;
use crate::verify::VerifyError;

/// Counts that are known by their keys at most. Beyond, all of a derivation is. Bounds memory.
const TARGETS_MAX: usize = 100_000;

/// Records whose proofs are asked for together, and records that may be without one. Bound memory.
const RECORDS_AT_ONCE: usize = 1_000;
const RECORDS_MAX: usize = 100_000;

/// The counts to prove, and the records that are not known to be in.
#[derive(Debug, Default)]
pub(super) struct Proving {
    /// Derivations of which each change must be in.
    derivations: BTreeSet<String>,
    /// Counts that differed at first.
    targets: BTreeSet<Target>,
    /// Records that concern them, and have no proof yet.
    open: Vec<CountedRecord>,
    /// Were there more of these than can be kept?
    is_over: bool,
}

impl Proving {
    /// Must the changes of this count be in?
    pub(super) fn has(&self, target: &Target) -> bool {
        self.derivations.contains(&target.derivation) || self.targets.contains(target)
    }

    /// Takes up a record, if it concerns a count to prove.
    pub(super) fn add(&mut self, record: CountedRecord) {
        if self.open.len() >= RECORDS_MAX {
            self.is_over = true;
        } else if record.counts().is_any_of(&self.derivations) || record.counts().is_any_at(&self.targets) {
            self.open.push(record);
        }
    }
}

impl<S: Store> Verification<'_, S> {
    /// Finds the counts that differ, and reads the stream again for the records that concern them. Returns `false` if the
    /// functions' positions are known, so that nothing is to be proven by the ledger.
    pub(super) async fn look_back(&self) -> Result<bool, VerifyError> {
        if !self.following.is_typed() {
            return Ok(false);
        }
        self.engine.learn_births(self.patience()).await?;
        let mut proving = Proving { derivations: self.proving.clone(), ..Proving::default() };
        self.each_target(async |targets: Vec<Undecided>| self.compare(targets).await).await?;
        let proven = &mut proving;
        self.each_target(async |targets: Vec<Undecided>| {
            for Undecided { target, compared, .. } in targets {
                if compared.is_some() && proven.targets.len() < TARGETS_MAX {
                    proven.targets.insert(target);
                } else if compared.is_some() {
                    proven.derivations.insert(target.derivation);
                }
            }
            Ok(())
        })
        .await?;
        let is_any = !proving.targets.is_empty() || !proving.derivations.is_empty();
        self.state().proving = Some(proving);
        if !is_any {
            return Ok(true);
        }
        let mut retained = self.following.retained(self.engine.clock().now_ms());
        while let Some(ShardRecords { lane, records }) = retained.next().await.map_err(VerifyError::Stream)? {
            {
                let mut state = self.state();
                let proving = state.proving.get_or_insert_default();
                let counted = records.iter().filter_map(|record| self.engine.counted(record, &lane));
                counted.for_each(|record| proving.add(record));
            }
            if self.n_open() >= RECORDS_AT_ONCE {
                let open = self.take_open();
                let open = self.without_proof(open).await?;
                self.state().proving.get_or_insert_default().open.extend(open);
            }
            self.see()?;
        }
        Ok(true)
    }

    fn take_open(&self) -> Vec<CountedRecord> {
        std::mem::take(&mut self.state().proving.get_or_insert_default().open)
    }

    fn n_open(&self) -> usize {
        self.state().proving.as_ref().map_or(0, |proving| proving.open.len())
    }

    /// Waits until all is in that has come so far, and returns the counts of what is not.
    pub(super) async fn not_in(&self) -> Result<CountsOf, VerifyError> {
        let began_ms = self.engine.clock().now_ms();
        if !self.engine.takes(ProtocolStep::ProvenIn) {
            return Ok(CountsOf::default());
        }
        let mut open = self.take_open();
        loop {
            open = self.without_proof(open).await?;
            if open.is_empty() || !self.pause(began_ms).await? {
                break;
            }
        }
        let mut counts = CountsOf::default();
        for record in &open {
            counts.extend(record.counts().clone());
        }
        let mut state = self.state();
        let proving = state.proving.get_or_insert_default();
        proving.open.extend(open);
        if proving.is_over {
            counts.is_any = true;
        }
        Ok(counts)
    }

    /// Those of these records of which the ledger has no proof.
    async fn without_proof(&self, mut records: Vec<CountedRecord>) -> Result<Vec<CountedRecord>, VerifyError> {
        let is_asked = |target: &Target| self.state().proving.as_ref().is_some_and(|proving| proving.has(target));
        let mut open = Vec::new();
        while !records.is_empty() {
            let later = records.split_off(records.len().min(RECORDS_AT_ONCE));
            open.extend(self.engine.not_in(records, is_asked, self.patience()).await?);
            records = later;
        }
        Ok(open)
    }
}
