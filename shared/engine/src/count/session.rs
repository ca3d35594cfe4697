//! What a batch knows of the ledger.

use std::collections::BTreeMap;

use derive::{position::RecordAt, write::Table};
use keys::key::Key;
use store::{Outcome, Store};

use crate::{
    account::Account,
    backoff::{Patience, describe},
    count::{Counter, exceptions::Exceptions},
    input::Batch,
    ledger::{
        Receipts,
        shard::{ShardItem, shard_key},
        watermarks::{Sequence, mark_name},
    },
    protocol::ProtocolStep,
    record::{Decoded, event::Lane},
};

/// What a batch knows of the ledger while it is applied.
pub(crate) enum Session<'a> {
    Receipts(Receipts<'a>),
    Watermarks(ShardSession),
}

/// What a batch knows of its stream shard.
#[derive(Debug)]
pub(crate) struct ShardSession {
    /// Name of the counters' watermarks.
    pub(crate) mark: String,
    /// The stream shard.
    pub(crate) lane: Lane,
    /// Key of the stream shard's item.
    pub(crate) key: Key,
    pub(crate) item: ShardItem,
    /// The shard's exceptions in the batch's range of sequence numbers.
    pub(crate) exceptions: Exceptions,
    /// Why nothing more may be counted: later changes would pass one that could not be counted.
    pub(crate) stopped: Option<String>,
    /// Counters that stopped, with the reason.
    pub(crate) stopped_counters: BTreeMap<Key, String>,
}

impl ShardSession {
    /// A new session; `None` if the event names no shard.
    pub(crate) fn of(lane: &Lane, has_own_mark: bool) -> Option<Self> {
        let mark = mark_name(lane)?;
        // A mutant has one watermark for all shards.
        let mark = if has_own_mark { mark } else { "w--------".to_owned() };
        let (key, item) = (shard_key(lane)?, ShardItem::default());
        Some(Self {
            mark,
            lane: lane.clone(),
            key,
            item,
            exceptions: Exceptions::default(),
            stopped: None,
            stopped_counters: BTreeMap::new(),
        })
    }
}

impl Session<'_> {
    /// Key of the stream shard's item; `None` if the ledger has none.
    pub(crate) fn shard_key(&self) -> Option<Key> {
        match self {
            Self::Receipts(_) => None,
            Self::Watermarks(shard) => Some(shard.key.clone()),
        }
    }
}

impl<S: Store> Counter<'_, S> {
    /// Reads the stream shard's item, if the ledger has one, or returns why it cannot be read.
    pub(crate) async fn read_shard(
        &self,
        key: Option<Key>,
        patience: Patience<'_>,
    ) -> Option<Result<ShardItem, String>> {
        Some(self.shard_item(&key?, patience).await)
    }

    async fn shard_item(&self, key: &Key, patience: Patience<'_>) -> Result<ShardItem, String> {
        let keys = std::slice::from_ref(key);
        let held = patience.call(|| self.context.store.get(Table::Ledger, keys)).await;
        held.map(|held| ShardItem::of(held.first().map(|(_, item)| item))).map_err(|error| describe(&error))
    }

    /// Stores the shard's item in the session, creates or renews it if that is due, and reads the exceptions. If one of
    /// these steps fails, nothing of the batch may be counted.
    pub(crate) async fn open(
        &self,
        session: &mut Session<'_>,
        read: Option<Result<ShardItem, String>>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let (Session::Watermarks(shard), Some(read)) = (session, read) else { return };
        let opened = match read {
            Ok(item) => self.renewed(item, &shard.key, batch, account).await,
            Err(why) => Err(why),
        };
        let opened = match opened {
            Ok(item) => self.exceptions(&item, &shard.key, batch).await.map(|exceptions| (item, exceptions)),
            Err(why) => Err(why),
        };
        match opened {
            Ok((item, exceptions)) => (shard.item, shard.exceptions) = (item, exceptions),
            Err(why) => shard.stopped = Some(why),
        }
    }

    /// The shard's exceptions in the batch's range of sequence numbers.
    async fn exceptions(&self, item: &ShardItem, key: &Key, batch: &Batch<'_>) -> Result<Exceptions, String> {
        if !item.has_exceptions() || !self.context.takes(ProtocolStep::Exceptions) {
            return Ok(Exceptions::default());
        }
        let sequence = |record: &Decoded<'_>| record.head.sequence_number.as_deref().and_then(Sequence::parse);
        let read = Exceptions::read(self.context, key, batch.records.iter().map(sequence), batch.patience).await;
        read.map_err(|error| describe(&error))
    }

    /// The item, which then exists and does not expire soon.
    async fn renewed(
        &self,
        item: ShardItem,
        key: &Key,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Result<ShardItem, String> {
        let Some(write) = item.renewing(key, self.context.clock.now_ms()) else { return Ok(item) };
        let written = batch.patience.call(|| self.context.store.write(&write)).await;
        if let Outcome::Done { units } = written.map_err(|error| describe(&error))? {
            account.commits.push(self.context.ledger_commit(key, units, RecordAt(0)));
        }
        Ok(item)
    }
}
