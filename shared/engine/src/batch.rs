//! Handling a batch: from the text of an event to the response that Lambda is given.
//!
//! *Keeps true*: every record of a batch is done, parked, or at or behind the record that the response names. A record
//! that cannot be handled stops nobody.

use std::{collections::BTreeSet, sync::Arc};

use derive::{
    catalogue::Catalogue,
    change::Change,
    coalesce::{Amount, Counted},
    derivation::Family,
    effect::{Add, Effect},
    plan::{Planned, Record, plan},
    schema::Schema,
    write::Table,
};
use flate2::Crc;
use keys::{counter::CounterKey, key::Key};
use serde_json::value::RawValue;
use store::{Store, TransactOutcome, Units};

use crate::{
    account::{Account, Commit, Parked, undone},
    backoff::{Patience, describe},
    bells::Bells,
    caught::caught,
    clock::Clock,
    listing::Listing,
    own_image::OwnImages,
    park::Parking,
    record::{EventError, decode, head, records},
};

/// Brings derived data in step with the batches that it is given.
pub struct Engine<S> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) families: Vec<Family>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A batch that was handled.
#[derive(Clone, Debug)]
pub struct Handled {
    /// The records that decoded, in their order; `None` for one that did not.
    pub changes: Vec<Option<Change>>,
    /// What happened.
    pub account: Account,
    /// Sequence number of the lowest record that is not done; empty where even that could not be read, which Lambda
    /// takes for the whole batch.
    pub failed_from: Option<String>,
}

/// The records of a batch as they came.
pub(crate) struct Raw<'a>(Vec<&'a RawValue>);

/// What a batch asks for, sorted by how it is applied.
#[derive(Default)]
struct Asked {
    counted: Vec<Counted>,
    bells: Bells,
    listings: Vec<Listing>,
}

impl<S: Store> Engine<S> {
    /// An engine that runs the derivations of these families.
    pub fn new(
        schema: Arc<Schema>,
        catalogue: Arc<Catalogue>,
        families: Vec<Family>,
        store: S,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { schema, catalogue, families, store, clock }
    }

    /// The clock that the engine goes by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Handles a batch: the text of an event, as Lambda delivers it, before this deadline in milliseconds since the
    /// epoch.
    ///
    /// # Errors
    ///
    /// [`EventError`] when the text is no event of stream records. Nothing was handled then.
    pub async fn handle(&self, event: &str, deadline_ms: u64) -> Result<Handled, EventError> {
        let raw = Raw(records(event)?);
        let patience = Patience { clock: self.clock.as_ref(), deadline_ms };
        let mut account = Account { n_records: raw.0.len(), ..Account::default() };
        let (changes, failed): (Vec<Option<Change>>, Vec<(usize, String)>) = self.decode_all(&raw);
        for (position, cause) in failed {
            self.park_for_all(position, &cause, &raw, patience, &mut account).await;
        }
        let asked = self.plan_all(&changes, &raw, patience, &mut account).await;
        let images = OwnImages::of(&changes);
        // Boxed, since a caller's future would otherwise hold all of theirs in place.
        Box::pin(self.add(asked.counted, &raw, patience, &mut account)).await;
        Box::pin(self.look(asked.bells, &images, &raw, patience, &mut account)).await;
        self.list(asked.listings, patience, &mut account).await;
        let failed_from = account.undone.first_key_value().map(|(position, _)| {
            let head = raw.0.get(*position).map(|record| head(record)).unwrap_or_default();
            head.sequence_number.unwrap_or_default()
        });
        Ok(Handled { changes, account, failed_from })
    }

    fn decode_all(&self, raw: &Raw<'_>) -> (Vec<Option<Change>>, Vec<(usize, String)>) {
        let (mut changes, mut failed) = (Vec::new(), Vec::new());
        for (position, record) in raw.0.iter().enumerate() {
            match decode(&self.schema.layout, record) {
                Ok(change) => changes.push(Some(change)),
                Err(error) => {
                    failed.push((position, error.to_string()));
                    changes.push(None);
                }
            }
        }
        (changes, failed)
    }

    async fn plan_all(
        &self,
        changes: &[Option<Change>],
        raw: &Raw<'_>,
        patience: Patience<'_>,
        account: &mut Account,
    ) -> Asked {
        // The shard of a sharded counter is the batch's: one batch lands in one shard, and lanes seldom meet.
        let seed = changes.iter().flatten().next().map_or(0, |change| checksum(&change.id));
        let mut asked = Asked::default();
        for (position, change) in changes.iter().enumerate() {
            let Some(change) = change else { continue };
            let planning = || plan(&self.schema, &self.catalogue, &self.families, change);
            let planned = caught("planning it", planning);
            let sorted = planned.and_then(|planned| self.sort(planned, position, change, seed, account, &mut asked));
            if let Err(cause) = sorted {
                self.park_for_all(position, &cause, raw, patience, account).await;
            }
        }
        asked
    }

    fn sort(
        &self,
        planned: Planned,
        position: usize,
        change: &Change,
        seed: u32,
        account: &mut Account,
        asked: &mut Asked,
    ) -> Result<(), String> {
        match planned.record {
            Record::Change => account.n_changes += 1,
            Record::Echo => account.n_echoes += 1,
            Record::Untyped | Record::Unknown => account.n_ignored += 1,
        }
        let mut amounts = Vec::new();
        for (derivation, effect) in planned.effects {
            match effect {
                Effect::Add(add) => amounts.push(self.amount(derivation, add, seed)?),
                Effect::Look(bell) => asked.bells.ring(bell, derivation, position),
                Effect::Find(find) => asked.bells.find(find, derivation, position),
                Effect::List { .. } => {
                    asked.listings.push(Listing { position, derivation: Some(derivation), item: change.key.clone() });
                }
            }
        }
        if planned.misfit.is_some() || planned.mended {
            asked.listings.push(Listing { position, derivation: None, item: change.key.clone() });
        }
        if !amounts.is_empty() {
            asked.counted.push(Counted { position, id: change.id.clone(), amounts });
        }
        Ok(())
    }

    fn amount(&self, derivation: usize, add: Add, seed: u32) -> Result<Amount, String> {
        let name = self.catalogue.name(derivation).to_owned();
        let shard = seed % add.n_shards.max(1);
        let counter = CounterKey { target: add.target, derivation: name, shard }.key();
        let counter = counter.map_err(|error| error.to_string())?;
        Ok(Amount { counter, derivation, amount: add.amount })
    }

    /// A write in the ledger's table, for the account.
    pub(crate) fn bookkeeping(&self, key: &Key, units: Units, position: usize) -> Commit {
        Commit {
            key: key.clone(),
            table: Table::Ledger,
            at_ms: self.clock.now_ms(),
            units,
            derivations: Vec::new(),
            causes: BTreeSet::from([position]),
        }
    }

    async fn park_for_all(
        &self,
        position: usize,
        cause: &str,
        raw: &Raw<'_>,
        patience: Patience<'_>,
        account: &mut Account,
    ) {
        for family in &self.families {
            self.park(position, cause, *family, raw, patience, account).await;
        }
    }

    /// Parks a record, or notes that it is not done.
    pub(crate) async fn park(
        &self,
        position: usize,
        cause: &str,
        family: Family,
        raw: &Raw<'_>,
        patience: Patience<'_>,
        account: &mut Account,
    ) {
        let Some(record) = raw.0.get(position) else { return };
        let head = head(record);
        let parking = Parking { head: &head, record: record.get(), cause, family };
        let id = parking.id();
        let transaction = match parking.transaction(&self.schema.layout, self.clock.now_ms()) {
            Ok(transaction) => transaction,
            Err(error) => return undone(account, [position], &describe(&error)),
        };
        let mut tries = crate::backoff::Tries::default();
        loop {
            let outcome = match patience.call(|| self.store.transact(&transaction)).await {
                Ok(outcome) => outcome,
                Err(error) => return undone(account, [position], &describe(&error)),
            };
            let reasons = match outcome {
                TransactOutcome::Done { units } => {
                    for (write, (_, units)) in transaction.writes().iter().zip(units) {
                        account.commits.push(self.bookkeeping(&write.key, units, position));
                    }
                    tracing::error!(event_id = %id, %family, cause, "parked a change that cannot be applied");
                    account.parked.push(Parked { position, id, cause: cause.to_owned() });
                    return;
                }
                TransactOutcome::Cancelled { reasons } => reasons,
            };
            if reasons.contains(&store::Reason::GuardFailed) {
                return; // It is in, or parked, already.
            }
            if !patience.wait(&mut tries).await {
                return undone(account, [position], "parking it was cancelled by other writers");
            }
        }
    }
}

fn checksum(text: &str) -> u32 {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}
