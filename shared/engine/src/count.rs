//! Applying additive effects, each change once.
//!
//! *Keeps true*: each change counts once, whatever is delivered again, cancelled, throttled or lost on the way. How that is
//! proven is the [ledger](crate::ledger)'s: `chunks` sends transactions with receipts, and `marked` updates with
//! watermarks.
//!
//! A change that is older than the ledger's horizon is refused before anything is sent.

pub(crate) mod admission;
pub(crate) mod chunks;
pub mod counts_of;
pub(crate) mod excepted;
pub(crate) mod marked;
pub(crate) mod parcel;
pub mod recount;
pub(crate) mod session;
pub(crate) mod shown;
pub mod target;
pub(crate) mod todo;
pub(crate) mod update;

use derive::{
    bucket::HeldBuckets,
    write::{Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
};
use store::{Store, StoreError};

use crate::{
    account::Account,
    batch::input::Batch,
    context::Context,
    count::{admission::CountEntry, session::Session},
};

/// Counters that a batch updates at once under watermarks. They do not wait for each other; a batch has as many connections.
pub const UPDATES_AT_ONCE: usize = 100;

/// Applies what must count once.
pub(crate) struct Counter<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Counter<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Counter<'_, S> {
    /// Applies what a batch adds.
    pub(crate) async fn add(
        &self,
        entries: Vec<CountEntry>,
        session: &mut Session<'_>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        if entries.is_empty() {
            return;
        }
        match session {
            Session::Receipts(receipts) => self.add_chunks(entries, receipts, batch, account).await,
            Session::Watermarks(shard) => self.add_marked(entries, shard, batch, account).await,
        }
    }

    /// Which item of another type has the key of one of these writes, where one has.
    pub(crate) async fn have_their_keys(
        &self,
        writes: impl Iterator<Item = &Write>,
    ) -> Result<Option<String>, StoreError> {
        let writes: Vec<&Write> = writes.collect();
        let keys: Vec<Key> = writes.iter().map(|write| write.key.clone()).collect();
        let held = self.held_buckets(&keys).await?;
        Ok(writes.into_iter().find_map(|write| self.has_its_key(write, held.get(&write.key)?)))
    }

    /// Says that this item is of another type than the write of its key asks for, where it is.
    pub(crate) fn has_its_key(&self, write: &Write, held: &Item) -> Option<String> {
        let type_name = self.context.schema.layout.type_name();
        let mut asks = write.guard.iter().flat_map(|guard| &guard.asks);
        let is_other = asks.any(|ask| ask.attribute() == Some(type_name) && !ask.holds(Some(held)));
        let found = || text(held, type_name).unwrap_or("another type");
        is_other.then(|| format!("under the key {} is an item of {}", write.key.for_log(), found()))
    }

    /// Reads buckets as they are.
    pub(crate) async fn held_buckets(&self, keys: &[Key]) -> Result<HeldBuckets, StoreError> {
        if keys.is_empty() {
            return Ok(HeldBuckets::new());
        }
        Ok(self.context.store.get(Table::Main, keys).await?.into_iter().collect())
    }
}
