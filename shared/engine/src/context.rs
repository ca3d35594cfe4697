//! What every part of the engine needs: the declarations, the tables, the clock, and the settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
};

use derive::{catalogue::Catalogue, family::Family, position::RecordAt, schema::Schema, write::Table};
use keys::key::Key;
use store::Units;

use crate::{
    account::Commit,
    clock::Clock,
    corrections::Corrections,
    ledger::{LedgerKind, spread::Spread},
    limits::{BrakeLimits, FanOutLimits, HotCounters},
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
    pub(crate) loss_put: MarksPut,
    /// Which counters have spread, as far as this engine has seen it.
    pub(crate) spread: Spread,
    /// Which counters are hot.
    pub(crate) hot: HotCounters,
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

// ---- When this engine last wrote each mark of a possible loss ----

/// How often an engine writes the mark of a stream shard, in milliseconds: once an hour.
const PUT_EVERY_MS: u64 = 3_600 * 1_000;

/// When an engine last wrote the mark of each stream shard.
#[derive(Debug, Default)]
pub(crate) struct MarksPut(Mutex<BTreeMap<Key, u64>>);

impl MarksPut {
    /// True if this mark is due again.
    pub(crate) fn is_due(&self, key: &Key, now_ms: u64) -> bool {
        let mut put = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        put.retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < PUT_EVERY_MS);
        !put.contains_key(key)
    }

    pub(crate) fn is_put(&self, key: Key, now_ms: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_put_once_an_hour_by_lane() {
        let (put, [mark, another]) = (MarksPut::default(), ["additive", "another"].map(|lane| Key::new("LOSS", lane)));
        assert!(put.is_due(&mark, 0));
        put.is_put(mark.clone(), 0);
        assert!(!put.is_due(&mark, PUT_EVERY_MS - 1));
        assert!(put.is_due(&another, 1));
        assert!(put.is_due(&mark, PUT_EVERY_MS));
    }
}
