//! What a batch does about counters that [spread](crate::ledger::spread): it finds the item on which its stream shard counts,
//! and makes a home spread.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    bucket::HeldBuckets,
    coalesce::Amount,
    guard::{Ask, Guard, Purpose},
    position::RecordAt,
    write::{Action, Table, Update, Write},
};
use keys::{
    counter::{CounterKey, SHOWN, SPREAD},
    item::Item,
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::{Store, Updated};

use crate::{
    account::Account,
    attribute::{checksum, n},
    backoff::{GaveUp, Patience},
    context::Context,
    count::{Counter, CounterTodo, session::ShardSession},
    input::Batch,
    ledger::{
        spread::satellite,
        watermarks::{KEPT_MS, marks, older_than},
    },
    limits::SpreadLimits,
    protocol::ProtocolStep,
};

/// The test that the watermark on an item is below a bound, or may be set.
pub(super) fn may_mark(at: &Key, mark: &str, bound: AttributeValue) -> Ask {
    if CounterKey::is_home(at) {
        return Ask::BelowOrLacksBoth(mark.to_owned(), bound, SPREAD.to_owned());
    }
    Ask::LacksOrBelow(mark.to_owned(), bound)
}

impl<S: Store> Counter<'_, S> {
    /// The item on which this stream shard counts, as far as this engine knows: the home or bucket, or a satellite.
    pub(crate) fn counted_at(&self, amount: &Amount, shard: &ShardSession) -> Key {
        let remembered = self.context.spread.remembered(&amount.item, self.remembered_by(&shard.mark));
        let name = self.context.catalogue.name(amount.derivation);
        remembered.unwrap_or_else(|| shard.item.counts_at(amount.item.clone(), name, &shard.lane))
    }

    fn remembered_by<'a>(&self, mark: &'a str) -> &'a str {
        // A mutant takes what it saw of one stream shard for all.
        if self.context.takes(ProtocolStep::SatelliteByShard) { mark } else { "" }
    }

    /// Sends a counter's changes to the satellite if the home, which a failed update returned, has spread without the
    /// watermark. False if they count at home.
    pub(super) fn goes_to_satellite(&self, counter: &mut CounterTodo, held: &Item, mark: &str) -> bool {
        let Some(satellite) = satellite(&counter.at, held, mark) else { return false };
        self.context.spread.remember(&counter.key, self.remembered_by(mark), satellite.clone());
        (counter.at, counter.held) = (satellite, None);
        true
    }

    /// Makes a home spread if it has as many watermarks as it may. A home that does not spread now does after a later
    /// update.
    pub(super) async fn spread(
        &self,
        counter: &CounterTodo,
        item: &Item,
        mark: &str,
        causes: BTreeSet<RecordAt>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let SpreadLimits { marks_max, n_satellites } = self.context.spread.limits;
        let n_marks = marks(item).count();
        if n_marks < marks_max || item.contains_key(SPREAD) || !CounterKey::is_home(&counter.at) {
            return;
        }
        if n_marks - older_than(item, KEPT_MS, self.context.clock.now_ms()).len() < marks_max {
            return;
        }
        let write = self.spreading(&counter.at);
        if !self.context.takes(ProtocolStep::SeenToHaveSpread) {
            let other = CounterKey {
                satellite: 1 + checksum(mark) % n_satellites,
                ..CounterKey::parse(&counter.at).unwrap_or_default()
            };
            other.key().into_iter().for_each(|key| self.context.spread.remember(&counter.key, mark, key));
        }
        if let Ok(Updated::Done { units, .. }) = batch.patience.in_time(self.context.store.update(&write)).await {
            self.commit_counter(counter, None, units, causes, account);
        }
    }

    /// The write that makes a home spread. Without its `Shown` flag, its record requests a refresh of the display.
    pub(super) fn spreading(&self, home: &Key) -> Write {
        let requests = self.context.takes(ProtocolStep::SpreadingRequests);
        let update = Update {
            set: Item::from([(SPREAD.to_owned(), n(self.context.spread.limits.n_satellites.into()))]),
            remove: requests.then(|| SHOWN.to_owned()).into_iter().collect(),
            ..Update::default()
        };
        let asks = vec![Ask::Present, Ask::Lacks(SPREAD.to_owned())];
        let guard = Some(Guard { purpose: Purpose::Spread, asks });
        Write { table: Table::Main, key: home.clone(), action: Action::Update(update), guard }
    }

    /// Another item of a busy counter, under receipts: there any item may count, because the receipt proves the change.
    pub(super) fn beside(&self, key: &Key, id: &str) -> Key {
        let Some(counter) = CounterKey::parse(key) else { return key.clone() };
        let home = CounterKey { satellite: 0, ..counter.clone() };
        let n_satellites = self.context.spread.limits.n_satellites;
        let beside = CounterKey { satellite: 1 + checksum(&format!("{id}{}", key.sk)) % n_satellites, ..counter };
        let (Ok(home), Ok(beside)) = (home.key(), beside.key()) else { return key.clone() };
        self.context.spread.remember(&home, "", beside.clone());
        beside
    }
}

/// The items of counters and buckets on which these watermarks are, or would be set, by key and watermark.
pub(crate) async fn marked<S: Store>(
    context: &Context<S>,
    of: BTreeSet<(Key, String)>,
    patience: Patience<'_>,
) -> Result<BTreeMap<(Key, String), Item>, GaveUp> {
    let counter = Counter::new(context);
    let read = async |keys: BTreeSet<Key>| -> Result<HeldBuckets, GaveUp> {
        let keys: Vec<Key> = keys.into_iter().collect();
        patience.call(|| counter.held_buckets(&keys)).await
    };
    let homes = read(of.iter().map(|(key, _)| key.clone()).collect()).await?;
    let at = |(key, mark): &(Key, String)| homes.get(key).and_then(|held| satellite(key, held, mark));
    let satellites = read(of.iter().filter_map(at).collect()).await?;
    let item = |of: (Key, String)| {
        let held = match at(&of) {
            Some(satellite) => satellites.get(&satellite),
            None => homes.get(&of.0),
        };
        Some((of, held?.clone()))
    };
    Ok(of.into_iter().filter_map(item).collect())
}
