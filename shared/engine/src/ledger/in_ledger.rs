//! Is a record of the stream in? Asked by who has read the record beside the functions, such as a verification.
//!
//! *Keeps true*: a record that is said to be in is in the counters that are read after the answer, or it is parked. What
//! the ledger has no proof of is said not to be in, whatever the reason.
//!
//! | ledger | a record is in when |
//! |---|---|
//! | [`receipts`](super::receipts) | its receipt is there |
//! | [`watermarks`](super::watermarks) | never yet: its shard is not known beside the functions |

use std::collections::BTreeSet;

use derive::write::Table;
use keys::key::Key;
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    batch::{Engine, input::Batch},
    count::counts_of::CountsOf,
    ledger::{LedgerKind, receipts::receipt_key},
    park,
    record::{Decoded, event::Lane},
    registry::publishing::Publisher,
};

/// A record that counts somewhere.
#[derive(Clone, Debug)]
pub struct CountedRecord {
    id: String,
    counts: CountsOf,
}

impl CountedRecord {
    /// Where it counts.
    #[must_use]
    pub fn counts(&self) -> &CountsOf {
        &self.counts
    }
}

impl<S: Store> Engine<S> {
    /// What a record counts as the functions do it; `None` if it counts nothing. A record that cannot be planned may count
    /// at every target that its key leaves open.
    #[must_use]
    pub fn counted(&self, record: &str) -> Option<CountedRecord> {
        let record = Decoded::of(&self.context.schema.layout, record);
        let id = match &record.change {
            Ok(change) => change.id.clone(),
            Err(_) => park::id(&record.head, record.text),
        };
        let patience = Patience::new(self.context.clock.as_ref(), 0);
        let counts = CountsOf::of(&self.context, &Batch::parked(record, &Lane::default(), patience));
        (!counts.is_none()).then_some(CountedRecord { id, counts })
    }

    /// Those of these records that are not proven to be in. They are read together.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the ledger cannot be read.
    pub async fn not_in(
        &self,
        records: Vec<CountedRecord>,
        patience: Patience<'_>,
    ) -> Result<Vec<CountedRecord>, GaveUp> {
        match self.context.ledger {
            LedgerKind::Receipts => {
                let keys: BTreeSet<Key> = records.iter().map(|record| receipt_key(&record.id)).collect();
                let keys: Vec<Key> = keys.into_iter().collect();
                if keys.is_empty() {
                    return Ok(records);
                }
                let held = patience.call(|| self.context.store.get(Table::Ledger, &keys)).await?;
                let held: BTreeSet<Key> = held.into_iter().map(|(key, _)| key).collect();
                Ok(records.into_iter().filter(|record| !held.contains(&receipt_key(&record.id))).collect())
            }
            LedgerKind::Watermarks => Ok(records),
        }
    }

    /// Reads the birth marks, by which the functions leave out what a backfill has counted.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when the registry cannot be read.
    pub async fn learn_births(&self, patience: Patience<'_>) -> Result<(), GaveUp> {
        Publisher::new(&self.context).learn_births(patience).await
    }
}
