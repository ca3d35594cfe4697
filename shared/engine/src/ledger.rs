//! The ledger: the record of the counted changes.
//!
//! The ledger has two kinds, chosen by configuration and never guessed from an event. Each puts a *proof* into the
//! write that applies a change, so a change is counted exactly when its proof exists.
//!
//! | | receipts | [`watermarks`] |
//! |---|---|---|
//! | proof | an item for each change, in its transaction | an attribute of each counter for each stream shard |
//! | write units | 2 a change, and 2 a counter | 1 a counter and batch |
//! | needs | nothing | the shard's name: tumbling windows, one concurrent batch a shard, unlimited retries |
//! | a replayed change | is applied if it is not counted | is never applied: the stream delivers it |
//!
//! Both keep proofs for a limited time. A change older than the [horizon](LedgerKind::horizon_ms) is never applied,
//! because the ledger no longer shows whether it is counted. Its targets are [listed](crate::count) for a recount.
//!
//! The ledger's settings record its kind. A function that is configured for the other kind must not start, because it
//! would count changes twice.
//!
//! # Receipts
//!
//! A receipt is one small item per change, put if absent, in the same transaction as the effects.
//!
//! *Keeps true*: the additive effects of a change are applied exactly when its receipt exists. If a transaction is
//! cancelled because receipts exist, the reasons show by position which changes are already counted; the engine sends
//! the others again without them. A lost response is harmless: the receipts decide when the transaction is sent again.
//!
//! *Why it is right under repeats and reordering*: a receipt is named by the [id](crate::record::Head::id) of its
//! record. That id is the same at every delivery, however batches are divided, from any mapping, queue or file, and no
//! other record has it. It is valid until the receipt expires.
//!
//! *Example*: changes 1, 2 and 3 of one counter are written as three receipts and `ADD Value 3`. They are redelivered
//! together with 4, and the transaction is cancelled with the reasons (guard failed, guard failed, guard failed, none,
//! none). Then one receipt and `ADD Value 1` are written.
//!
//! # Stream shards
//!
//! A stream shard has an item in the ledger's table: what a batch must know about its shard before it counts. It states
//! whether the shard has exceptions (module `count::exceptions`), so a batch reads them only then. No change of
//! a stream shard is counted before this item exists.
//!
//! *Fixed satellites*: in tables in which the manifest once said `shards`, the item also has the number of items that
//! shared each counter. The stream shard goes on counting on one of them, so a redelivered change finds its watermark.
//!
//! # Spread
//!
//! A counter begins as one item, its *home*. Each stream shard that counts there has a watermark on it, so a counter that
//! many shards feed becomes large, and each update expensive. When its home has
//! [as many watermarks as it may](crate::limits::SpreadLimits), it *spreads*: the home gets the attribute
//! [`Spread`](SPREAD) with the number of satellites, once. From then on the home gets no new watermarks. A stream shard
//! that has none there counts in a *satellite*, an item beside the home that a hash selects.
//!
//! *Keeps true*: a stream shard has its watermark on one item of a counter at most, so the condition on that item decides
//! whether a change is counted. Which item it is follows from the home alone: home, if it has the shard's watermark or
//! has not spread; otherwise the satellite. The home of a counter that has spread is never deleted and never loses the
//! attribute.
//!
//! *Example*: 24 stream shards have counted likes of a post. The 24th update returns 24 watermarks, and the home gets
//! `Spread` 64. The 25th shard's update of the home fails, and the failure returns the home without a watermark of that
//! shard. The engine updates satellite 17, and remembers this.

pub mod watermarks;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use derive::{
    coalesce::Counted,
    family::Family,
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use keys::{
    counter::{CounterKey, SPREAD},
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Reason, Store, StoreError};

use crate::{
    attribute::{checksum, n, number, s, sort_key},
    backoff::{GaveUp, Patience},
    ledger::watermarks::{label, mark_of},
    limits::SpreadLimits,
    record::Lane,
};

/// Attribute of the ledger's items with their time to live, in epoch seconds. Stored, so it is stable.
pub const EXPIRES_AT: &str = "ExpiresAt";

/// How long a proof is kept, in seconds: 15 days, more than the stream's 24 hours and a queue's 14 days, the longest
/// possible redrive. A time to live is a minimum: an item may outlive it.
pub const PROOF_KEPT_S: u64 = 15 * 24 * 3600;

/// Age from which a change is never applied under receipts, in milliseconds: 14 days. The proof of a younger change was
/// written after the change itself, so it still exists; the day between is for clocks that differ and for times that
/// are rounded down.
pub const HORIZON_MS: u64 = 14 * 24 * 3600 * 1000;

/// Kind of ledger. Its name is stored, so it is stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LedgerKind {
    /// One small item per change.
    Receipts,
    /// An attribute of each counter for each stream shard.
    #[default]
    Watermarks,
}

impl LedgerKind {
    /// Age from which a change is never applied, in milliseconds.
    #[must_use]
    pub const fn horizon_ms(self) -> u64 {
        match self {
            Self::Receipts => HORIZON_MS,
            Self::Watermarks => watermarks::HORIZON_MS,
        }
    }
}

impl fmt::Display for LedgerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Receipts => "receipts",
            Self::Watermarks => "watermarks",
        })
    }
}

impl FromStr for LedgerKind {
    type Err = UnknownLedger;

    fn from_str(text: &str) -> Result<Self, UnknownLedger> {
        match text {
            "receipts" => Ok(Self::Receipts),
            "watermarks" => Ok(Self::Watermarks),
            _ => Err(UnknownLedger { text: text.to_owned() }),
        }
    }
}

/// A name that no ledger has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no ledger {text:?}: it is receipts or watermarks")]
pub struct UnknownLedger {
    /// The name as given.
    pub text: String,
}

/// Partition key of a family's parked changes.
pub(crate) fn parked_partition(family: Family) -> String {
    format!("PARKED#{family}")
}

/// An item of the ledger's table with these further attributes.
#[must_use]
pub fn ledger_item(
    layout: &Layout,
    key: &Key,
    attributes: impl IntoIterator<Item = (&'static str, AttributeValue)>,
) -> Item {
    let mut item = layout.key_item(key);
    item.extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
    item
}

/// Time to live of a proof that is written now, as an attribute.
pub(crate) fn expires_at(now_ms: u64) -> AttributeValue {
    AttributeValue::N((now_ms / 1000).saturating_add(PROOF_KEPT_S).to_string())
}

// ---- repairs ----

/// Partition key of the right to repair counts, and of its receipts. Stored, so they are stable.
const REPAIR: &str = "REPAIR";

/// Sort key of the right. Stored, so it is stable.
const RIGHT: &str = "RIGHT";

/// Attributes of the right. Stored, so they are stable.
const RUN: &str = "Run";
const TAKEN_AT: &str = "TakenAt";

/// The write by which a run acquires the right to repair counts.
#[must_use]
pub fn right(layout: &Layout, run: &str, now_ms: u64) -> Write {
    let key = Key::new(REPAIR, RIGHT);
    let item = ledger_item(layout, &key, [(RUN, s(run)), (TAKEN_AT, n(now_ms))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
}

/// The check that a run still has the right.
#[must_use]
pub fn has_right(run: &str) -> Write {
    let has_right = Guard::as_read(Purpose::RepairRight, [(RUN, Some(s(run)))]);
    let right = Key::new(REPAIR, RIGHT);
    Write { table: Table::Ledger, key: right, action: Action::Check, guard: Some(has_right) }
}

/// True if this run currently has the right.
///
/// # Errors
///
/// [`GaveUp`] if the right cannot be read.
pub async fn may_repair<S: Store>(store: &S, run: &str, patience: Patience<'_>) -> Result<bool, GaveUp> {
    let keys = [Key::new(REPAIR, RIGHT)];
    let stored = patience.call(|| store.get(Table::Ledger, &keys)).await?;
    Ok(stored.first().is_some_and(|(_, item)| text(item, RUN) == Some(run)))
}

/// The receipt of the repair of a count by a run.
#[must_use]
pub fn repair_receipt(layout: &Layout, run: &str, derivation: &str, counter: &Key, now_ms: u64) -> Write {
    receipt_of(layout, &Key::new(format!("{REPAIR}#{run}"), sort_key(derivation, counter)), now_ms)
}

// ---- Receipts: one small item per change, put if absent, in the same transaction as the effects ----

/// What a batch knows of the receipts.
pub(crate) struct Receipts<'a> {
    layout: &'a Layout,
    /// Ids of events whose receipts were found to exist.
    taken: BTreeSet<String>,
    /// True if reasons are read by position.
    by_position: bool,
}

impl<'a> Receipts<'a> {
    /// The state before any receipt is known.
    pub(crate) fn new(layout: &'a Layout, by_position: bool) -> Self {
        Self { layout, taken: BTreeSet::new(), by_position }
    }

    /// The receipts of these changes, for the transaction that applies them.
    pub(crate) fn proofs(&self, changes: &[Counted], now_ms: u64) -> Vec<Write> {
        changes.iter().map(|change| receipt(self.layout, &change.id, now_ms)).collect()
    }

    /// True if this change is known to be counted.
    pub(crate) fn has(&self, change: &Counted) -> bool {
        self.taken.contains(&change.id)
    }

    /// Notes that a transaction of these changes was cancelled; these are the reasons at its receipts.
    pub(crate) fn cancelled(&mut self, changes: &[Counted], reasons: &[Reason]) {
        let is_taken = |reason: &&Reason| **reason == Reason::GuardFailed;
        if self.by_position {
            let taken = changes.iter().zip(reasons).filter(|(_, reason)| is_taken(reason));
            self.taken.extend(taken.map(|(change, _)| change.id.clone()));
        } else {
            let n_taken = reasons.iter().filter(is_taken).count();
            self.taken.extend(changes.iter().take(n_taken).map(|change| change.id.clone()));
        }
    }
}

/// The write of a change's receipt; it fails if the receipt exists.
#[must_use]
pub fn receipt(layout: &Layout, event_id: &str, now_ms: u64) -> Write {
    receipt_of(layout, &receipt_key(event_id), now_ms)
}

/// Key of a change's receipt.
pub(crate) fn receipt_key(event_id: &str) -> Key {
    Key::new(format!("RECEIPT#{event_id}"), "RECEIPT")
}

/// The write of the receipt under this key; it fails if the receipt exists.
pub(crate) fn receipt_of(layout: &Layout, key: &Key, now_ms: u64) -> Write {
    let (key, item) = (key.clone(), ledger_item(layout, key, [(EXPIRES_AT, expires_at(now_ms))]));
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::Receipt)) }
}

// ---- The item of a stream shard ----

/// Attribute that states that the shard has exceptions. Stored, so it is stable.
const HAS_EXCEPTIONS: &str = "HasExceptions";

/// Prefix of the attributes with the numbers of items of each counter, followed by the derivation's name. Stored.
const N_ITEMS: &str = "Shards:";

/// An item that expires in less than this time, in seconds, is renewed.
const RENEWED_S: u64 = PROOF_KEPT_S / 2;

/// What a batch knows about its stream shard.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardItem {
    /// How many items shared a counter, by derivation; empty unless the manifest once said so.
    n_items: BTreeMap<String, u32>,
    has_exceptions: bool,
    expires_at_s: u64,
}

impl ShardItem {
    /// The contents of the item; empty if there is none.
    pub(crate) fn of(item: Option<&Item>) -> Self {
        let Some(item) = item else { return Self::default() };
        let n_items = item.keys().filter_map(|name| {
            let derivation = name.strip_prefix(N_ITEMS)?;
            Some((derivation.to_owned(), u32::try_from(number(item, name)?).ok()?))
        });
        let has_exceptions = item.get(HAS_EXCEPTIONS) == Some(&AttributeValue::Bool(true));
        Self { n_items: n_items.collect(), has_exceptions, expires_at_s: number(item, EXPIRES_AT).unwrap_or(0) }
    }

    /// The item on which this stream shard counts: the home, unless the derivation's counters once had shards.
    pub(crate) fn counts_at(&self, home: Key, derivation: &str, lane: &Lane) -> Key {
        let fixed = || {
            let n_items = self.n_items.get(derivation)?;
            let satellite = checksum(lane.shard.as_deref()?) % n_items.clamp(&1, &100);
            CounterKey { satellite, ..CounterKey::parse(&home)? }.key().ok()
        };
        fixed().unwrap_or(home)
    }

    /// True if the shard has exceptions.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.has_exceptions
    }

    /// The write that renews an item before it expires, while records of its shard arrive.
    pub(crate) fn renewing(&self, key: &Key, now_ms: u64) -> Option<Write> {
        let is_due = self.expires_at_s < (now_ms / 1000).saturating_add(RENEWED_S);
        let set = || Item::from([(EXPIRES_AT.to_owned(), expires_at(now_ms))]);
        is_due.then(|| shard_update(key, Update::set(set())))
    }
}

/// Key of a stream shard's item; `None` if the shard is unknown.
pub(crate) fn shard_key(lane: &Lane) -> Option<Key> {
    let shard = lane.shard.as_deref()?;
    Some(Key::new(format!("SHARD#{}#{shard}", label(lane)), "SHARD"))
}

/// The write that sets the item's attribute for exceptions, in the transaction of an exception.
pub(crate) fn announcing(key: &Key, now_ms: u64) -> Write {
    let says = (HAS_EXCEPTIONS.to_owned(), AttributeValue::Bool(true));
    shard_update(key, Update::set(Item::from([says, (EXPIRES_AT.to_owned(), expires_at(now_ms))])))
}

fn shard_update(key: &Key, update: Update) -> Write {
    Write { table: Table::Ledger, key: key.clone(), action: Action::Update(update), guard: None }
}

// ---- Counters that spread: where a stream shard counts ----

/// Most satellites that an engine remembers, before it forgets all of them. Bounds memory.
const REMEMBERED_MAX: usize = 10_000;

/// When counters spread, and which satellites an engine has seen stream shards count in. What it forgets, it sees again
/// in a failed update.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    pub(crate) limits: SpreadLimits,
    /// The satellites by the name of the watermark, and by home. Under receipts the name is empty.
    satellites: Mutex<BTreeMap<String, BTreeMap<Key, Key>>>,
}

impl Spread {
    pub(crate) fn new(limits: SpreadLimits) -> Self {
        Self { limits, satellites: Mutex::default() }
    }

    pub(crate) fn remember(&self, home: &Key, mark: &str, satellite: Key) {
        let mut satellites = self.satellites.lock().unwrap_or_else(PoisonError::into_inner);
        if satellites.values().map(BTreeMap::len).sum::<usize>() >= REMEMBERED_MAX {
            satellites.clear();
        }
        satellites.entry(mark.to_owned()).or_default().insert(home.clone(), satellite);
    }

    pub(crate) fn remembered(&self, home: &Key, mark: &str) -> Option<Key> {
        self.satellites.lock().unwrap_or_else(PoisonError::into_inner).get(mark)?.get(home).cloned()
    }
}

/// The satellite of a home in which the changes with this watermark count; `None` if they count at home.
pub(crate) fn satellite(home: &Key, stored: &Item, mark: &str) -> Option<Key> {
    let counter = CounterKey::parse(home).filter(|counter| counter.satellite == 0)?;
    let n_satellites = u32::try_from(number(stored, SPREAD)?).ok().filter(|_| mark_of(stored, mark).is_none())?;
    CounterKey { satellite: 1 + checksum(mark) % n_satellites.clamp(1, 99), ..counter }.key().ok()
}

// ---- The settings: which kind the ledger is ----

/// Attribute with the kind. Stored, so it is stable.
const KIND: &str = "Kind";

/// Why the ledger cannot be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The ledger is of the other kind.
    #[error(
        "the ledger table was created for {recorded}, and {configured} is configured: changes already counted would count \
         again; configure {recorded}, or see docs/ledgers.md for the way to switch"
    )]
    Mismatch {
        /// The recorded kind.
        recorded: LedgerKind,
        /// The configured kind.
        configured: LedgerKind,
    },
    /// This version does not know the recorded kind.
    #[error("the ledger is of a kind that this version does not know")]
    Unknown(#[source] UnknownLedger),
    /// The settings cannot be read or written.
    #[error("the ledger cannot be asked of which kind it is")]
    Store(#[from] StoreError),
}

/// Records the ledger's kind, unless a kind is recorded.
///
/// # Errors
///
/// [`SettingsError`] if another kind is recorded, or the ledger cannot be read or written.
pub async fn claim<S: Store>(store: &S, layout: &Layout, kind: LedgerKind) -> Result<(), SettingsError> {
    loop {
        match recorded(store).await? {
            Some(recorded) if recorded == kind => return Ok(()),
            Some(recorded) => return Err(SettingsError::Mismatch { recorded, configured: kind }),
            None => {}
        }
        match store.write(&kind_record(layout, kind)).await? {
            Outcome::Done { .. } => return Ok(()),
            // Another function recorded a kind first, and that kind decides.
            Outcome::GuardFailed => {}
        }
    }
}

/// The write that records the ledger's kind; it fails if a kind is recorded.
pub(crate) fn kind_record(layout: &Layout, kind: LedgerKind) -> Write {
    let key = settings_key();
    let item = ledger_item(layout, &key, [(KIND, AttributeValue::S(kind.to_string()))]);
    Write { table: Table::Ledger, key, action: Action::Put(item), guard: Some(Guard::absent(Purpose::LedgerKind)) }
}

/// The recorded kind, if there is one.
///
/// # Errors
///
/// [`SettingsError`] if it cannot be read, or this version does not know it.
pub async fn recorded<S: Store>(store: &S) -> Result<Option<LedgerKind>, SettingsError> {
    let items = store.get(Table::Ledger, &[settings_key()]).await?;
    let kind = items.first().and_then(|(_, item)| text(item, KIND));
    kind.map(|kind| kind.parse().map_err(SettingsError::Unknown)).transpose()
}

fn settings_key() -> Key {
    Key::new("LEDGER", "SETTINGS")
}

#[cfg(test)]
mod tests {
    use store::memory::MemoryStore;

    use super::*;
    use crate::fixture::layout;

    #[tokio::test]
    async fn a_ledger_of_one_kind_refuses_the_other() {
        let layout = layout();
        let store = MemoryStore::new(layout.clone());
        assert_eq!(recorded(&store).await.unwrap(), None);
        claim(&store, &layout, LedgerKind::Watermarks).await.unwrap();
        claim(&store, &layout, LedgerKind::Watermarks).await.unwrap();
        let error = claim(&store, &layout, LedgerKind::Receipts).await.unwrap_err().to_string();
        assert!(
            error.starts_with("the ledger table was created for watermarks, and receipts is configured"),
            "{error}"
        );
    }
}
