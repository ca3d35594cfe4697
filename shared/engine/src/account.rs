//! The account of a batch: what was seen, what was written, what it cost, and what is not done.

pub(crate) mod applied;
pub mod figures;
pub mod loss;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    position::{DerivationAt, RecordAt},
    schema::Unreadable,
    write::{Action, Table, Write},
};
use keys::{item::Item, key::Key, size::item_bytes};
use store::Units;

#[cfg(doc)]
use crate::batch::limits::BrakeLimits;
use crate::{account::figures::Share, contention::Contention, count::target::Target};

/// What happened in one invocation.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Records in the batch.
    pub n_records: usize,
    /// When the writes of the records were made, by position, in milliseconds since the epoch; DynamoDB Streams has
    /// whole seconds, rounded down.
    pub created_ms: Vec<Option<u64>>,
    /// What was asked of derivations, and what stood in their way, by position in the catalogue.
    pub shares: BTreeMap<DerivationAt, Share>,
    /// Records of ground items with a difference that a derivation reads.
    pub n_changes: usize,
    /// The other records of declared entities.
    pub n_echoes: usize,
    /// Records of items that have no type, or one that nobody declared.
    pub n_ignored: usize,
    /// Changes and removals of items of which only the insert counts: nothing is applied of them.
    pub n_late_changes: usize,
    /// Changes that some count does not count by itself, since they were written before its birth mark: whatever filled it
    /// counted them.
    pub n_before_birth: usize,
    /// Changes that the ledger had already.
    pub n_duplicates: usize,
    /// Calls that were sent again.
    pub n_retries: usize,
    /// Items that were looked at and were in step.
    pub n_in_step: usize,
    /// Items that cannot be interpreted, as listed.
    pub unreadable: Vec<ListedItem>,
    /// So much cannot be read that the brake would hold the batch, if it did not [only warn](BrakeLimits::only_warns).
    pub braked: Option<MuchUnreadable>,
    /// What was written.
    pub commits: Vec<Commit>,
    /// Changes that were parked.
    pub parked: Vec<Parked>,
    /// Changes that were refused, since the ledger does not show whether they are in.
    pub refused: Vec<Refused>,
    /// Conflicts and throttles, by derivation.
    pub contention: Box<Contention>,
    /// Age of the oldest record when the batch came, in milliseconds, where it is one of which others may be lost
    /// already: see [`loss`].
    pub late_ms: Option<u64>,
    /// The oldest record is so old only because it was written before Ripple was attached to the table.
    pub is_first_backlog: bool,
    /// Positions of records that are not done, with the reason.
    pub undone: BTreeMap<RecordAt, String>,
    /// The first failure that lasts until somebody changes the set-up, such as a missing permission.
    pub standing: Option<String>,
}

/// A write that was done.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The item.
    pub key: Key,
    /// In which table.
    pub table: Table,
    /// What it did to the item; `None` for the ledger's own and where a job begins.
    pub action: Option<Action>,
    /// When the answer came, in milliseconds since the epoch.
    pub at_ms: u64,
    /// Write units, of a transaction's sum this write's part by item size.
    pub units: Units,
    /// Names of the derivations on whose behalf; none for the ledger's own.
    pub derivations: Vec<String>,
    /// Positions of the records that it follows from.
    pub causes: BTreeSet<RecordAt>,
    /// Does it put right what somebody had made of the item's derived part, though none of its sources changed?
    pub is_correction: bool,
}

/// An item that cannot be interpreted, and is on the operator's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// Position of the record that showed it.
    pub position: RecordAt,
    /// The item.
    pub key: Key,
    /// The derivation, or [`ALL_DERIVATIONS`](crate::look::listing::ALL_DERIVATIONS).
    pub derivation: String,
    /// Why.
    pub why: Unreadable,
}

/// How much of a batch cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuchUnreadable {
    /// Items that cannot be read.
    pub n_unreadable: usize,
    /// Items of the batch.
    pub n_items: usize,
}

/// A change that was parked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Position of the record.
    pub position: RecordAt,
    /// Id of the event, where it could be read.
    pub id: String,
    /// Why.
    pub cause: String,
}

/// A change that was refused. The counts that it was about are listed for a recount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position of the record.
    pub position: RecordAt,
    /// Id of the event.
    pub id: String,
    /// Why.
    pub why: String,
    /// What it would have added to; empty where the record cannot be read.
    pub targets: Vec<Target>,
}

impl Account {
    /// Takes up what another came to, of the same batch.
    pub(crate) fn add(&mut self, other: Self) {
        self.n_duplicates += other.n_duplicates;
        self.n_retries += other.n_retries;
        self.n_in_step += other.n_in_step;
        self.unreadable.extend(other.unreadable);
        self.braked = self.braked.or(other.braked);
        self.contention.add(&other.contention);
        for (derivation, share) in &other.shares {
            self.share(*derivation).add(share);
        }
        self.commits.extend(other.commits);
        self.parked.extend(other.parked);
        self.refused.extend(other.refused);
        for (position, why) in other.undone {
            undone(self, [position], &why);
        }
    }

    /// What was asked of a derivation, to add to it.
    pub(crate) fn share(&mut self, derivation: DerivationAt) -> &mut Share {
        self.shares.entry(derivation).or_default()
    }

    /// A record is parked on behalf of these derivations.
    pub(crate) fn parked_for(&mut self, derivations: impl IntoIterator<Item = DerivationAt>) {
        for derivation in derivations.into_iter().collect::<BTreeSet<DerivationAt>>() {
            self.share(derivation).n_parked += 1;
        }
    }

    /// Something is sent again, on behalf of these derivations.
    pub(crate) fn sends_again(&mut self, derivations: impl IntoIterator<Item = DerivationAt>) {
        self.n_retries += 1;
        for derivation in derivations.into_iter().collect::<BTreeSet<DerivationAt>>() {
            self.share(derivation).n_retries += 1;
        }
    }
}

/// Marks records as not done.
pub fn undone(account: &mut Account, positions: impl IntoIterator<Item = RecordAt>, why: &str) {
    for position in positions {
        account.undone.entry(position).or_insert_with(|| why.to_owned());
    }
}

/// Parts of a transaction's units, by the size of what each write carries, in 1 KB steps as they are billed.
///
/// The item of an update may be larger than what the update carries, which no answer says; so these are parts of an
/// exact sum, not exact themselves.
#[must_use]
pub fn apportioned(writes: &[&Write], units: &[(Table, Units)]) -> Vec<Units> {
    let sum = |table: Table| units.iter().filter(|(of, _)| *of == table).map(|(_, units)| units).sum::<Units>();
    let all = |table: Table| writes.iter().filter(|write| write.table == table).map(|write| weight(write)).sum::<f64>();
    let tables: BTreeSet<Table> = writes.iter().map(|write| write.table).collect();
    let rates: BTreeMap<Table, f64> =
        tables.into_iter().map(|table| (table, sum(table) / all(table).max(1.0))).collect();
    writes.iter().map(|write| weight(write) * rates.get(&write.table).copied().unwrap_or(0.0)).collect()
}

fn weight(write: &Write) -> f64 {
    let bytes = match &write.action {
        Action::Put(item) => item_bytes(item),
        Action::Update(update) => item_bytes(&update.set),
        Action::Delete | Action::Check => item_bytes(&Item::new()),
    };
    let kilobytes = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
    f64::from(kilobytes.max(1))
}
