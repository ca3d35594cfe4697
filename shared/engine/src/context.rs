//! What every part of the engine needs: the declarations, the tables, the clock, and the settings.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicU64},
};

use derive::{catalogue::Catalogue, family::Family, position::RecordAt, schema::Schema, write::Table};
use keys::key::Key;
use store::Units;

use crate::{
    account::Commit,
    clock::Clock,
    ledger::LedgerKind,
    protocol::{LeftOut, ProtocolStep},
    registry::publishing::RegistryWatch,
};

/// What every part needs. It holds no logic of its own.
pub(crate) struct Context<S> {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) families: Vec<Family>,
    pub(crate) store: S,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ledger: LedgerKind,
    pub(crate) limits: crate::batch::BrakeLimits,
    pub(crate) settle_ms: u64,
    pub(crate) fan_out: crate::fan_out::FanOutLimits,
    /// When this engine last did something but for jobs, in milliseconds since the epoch.
    pub(crate) others_at_ms: AtomicU64,
    pub(crate) loss_put: crate::account::loss::MarksPut,
    /// What it corrected lately.
    pub(crate) corrections: crate::look::back_and_forth::Corrections,
    /// How it watches the registry; `None` where it does not.
    pub(crate) watch: Option<RegistryWatch>,
    pub(crate) left_out: LeftOut,
}

impl<S> Context<S> {
    /// Is this step taken? It is, except in a test that leaves it out.
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
