//! What every part of the engine needs: the declarations, the tables, the clock, and the settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
};

use derive::{catalogue::Catalogue, family::Family, position::RecordAt, schema::Schema, write::Table};
use keys::{item::Item, key::Key};
use store::{Store, Units};

use crate::{
    account::Commit,
    backoff::{GaveUp, Patience},
    clock::Clock,
    corrections::Corrections,
    ledger::{LedgerKind, Spread},
    limits::{BrakeLimits, FanOutLimits},
    protocol::{LeftOut, ProtocolStep},
    registry::RegistryWatch,
};

/// What every part needs. It has no logic of its own.
pub(crate) struct Context<S> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) families: Vec<Family>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: LedgerKind,
    pub(crate) limits: BrakeLimits,
    pub(crate) settle_ms: u64,
    pub(crate) fan_out: FanOutLimits,
    /// When this engine last did other work than jobs, in milliseconds since the epoch.
    pub(crate) others_at_ms: AtomicU64,
    /// The hour to which this engine moved the [clock](derive::clock) last, in hours since the epoch.
    pub(crate) hour: AtomicU64,
    /// The marks of a possible loss that it wrote a short time ago.
    pub(crate) loss_put: Recent,
    /// Which counters have spread, as far as this engine has seen it.
    pub(crate) spread: Spread,
    /// The counters with a display that it counted a short time ago: they are *hot*. The refresh that the record of a hot
    /// counter requests writes its displays, once for all of the counter's records in a batch.
    pub(crate) hot: Recent,
    /// Its recent corrections.
    pub(crate) corrections: Corrections,
    /// How it watches the registry; `None` if it does not.
    pub(crate) watch: Option<RegistryWatch>,
    pub(crate) left_out: LeftOut,
}

impl<S> Context<S> {
    /// True if the engine takes this step. Only a test omits steps.
    pub(crate) fn takes(&self, step: ProtocolStep) -> bool {
        self.left_out.takes(step)
    }

    /// A write in the ledger's table, for the account.
    pub(crate) fn ledger_commit(&self, key: &Key, units: Units, position: RecordAt) -> Commit {
        Commit {
            key: key.clone(),
            table: Table::Ledger,
            action: None,
            at_ms: self.clock.now_ms(),
            units,
            derivations: Vec::new(),
            causes: BTreeSet::from([position]),
            is_correction: false,
        }
    }
}

impl<S: Store> Context<S> {
    /// The current item; `None` if there is none.
    pub(crate) async fn item(&self, table: Table, key: &Key, patience: Patience<'_>) -> Result<Option<Item>, GaveUp> {
        let keys = std::slice::from_ref(key);
        let items = patience.call(|| self.store.get(table, keys)).await?;
        Ok(items.into_iter().next().map(|(_, item)| item))
    }
}

// ---- What this engine did a short time ago ----

/// Maximum number of items that an engine remembers before it forgets all of them. Bounds memory.
const REMEMBERED_MAX: usize = 10_000;

/// The items to which an engine did something a short time ago. What it forgets, it does again.
#[derive(Debug)]
pub(crate) struct Recent {
    /// How long it remembers an item, in milliseconds; 0 if it remembers none.
    for_ms: u64,
    at_ms: Mutex<BTreeMap<Key, u64>>,
}

impl Recent {
    pub(crate) fn within(for_ms: u64) -> Self {
        Self { for_ms, at_ms: Mutex::default() }
    }

    /// True if the engine noted this item a short time ago.
    pub(crate) fn has(&self, item: &Key, now_ms: u64) -> bool {
        let at_ms = self.at_ms.lock().unwrap_or_else(PoisonError::into_inner);
        at_ms.get(item).is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) < self.for_ms)
    }

    pub(crate) fn note(&self, item: Key, now_ms: u64) {
        if self.for_ms == 0 {
            return;
        }
        let mut at_ms = self.at_ms.lock().unwrap_or_else(PoisonError::into_inner);
        if at_ms.len() >= REMEMBERED_MAX {
            at_ms.clear();
        }
        at_ms.insert(item, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_recent_for_the_time_after_it_was_noted() {
        let (recent, [one, other]) = (Recent::within(1_000), ["one", "other"].map(|pk| Key::new(pk, "x")));
        assert!(!recent.has(&one, 5_000));
        recent.note(one.clone(), 5_000);
        assert!(recent.has(&one, 5_999));
        assert!(!recent.has(&one, 6_000));
        assert!(!recent.has(&other, 5_001));
    }

    #[test]
    fn an_engine_remembers_no_more_items_than_the_bound() {
        let (recent, never) = (Recent::within(1_000), Recent::within(0));
        for at in 0..=REMEMBERED_MAX {
            recent.note(Key::new(format!("{at}"), "x"), 5_000);
            never.note(Key::new(format!("{at}"), "x"), 5_000);
        }
        assert_eq!([recent, never].map(|it| it.at_ms.into_inner().unwrap().len()), [1, 0]);
    }
}
