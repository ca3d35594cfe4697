//! Starting a cascade: a removal becomes a job, once.

use derive::{
    effect::Removal,
    write::{Action, Table, Write},
};
use keys::{job::JobKey, key::Key};
use store::Store;

use crate::{
    clock::age_ms,
    jobs::{
        ground::Worker,
        job::Job,
        touch::{TouchFailure, TouchOutcome, Toucher, Work},
    },
    ledger::{HORIZON_MS, receipts::receipt_of},
    park,
    protocol::ProtocolStep,
};

impl<S: Store> Worker<'_, S> {
    /// May a record be so old that its receipt is gone?
    pub(super) fn is_behind_horizon(&self, created_ms: Option<u64>) -> bool {
        let is_old = age_ms(created_ms, self.context.clock.now_ms()).is_none_or(|age_ms| age_ms > HORIZON_MS);
        is_old && self.context.takes(ProtocolStep::Horizon)
    }

    /// Starts the job of a removal, under a receipt; a removal from behind the ledger's horizon starts none.
    pub(super) async fn start(&self, removal: &Removal, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        let Some(record) = work.batch.record(work.touch.position) else { return Ok(()) };
        let (id, now_ms) = (park::id(&record.head, record.text), self.context.clock.now_ms());
        let derivation = self.context.catalogue.label(work.touch.derivation);
        if self.is_behind_horizon(record.head.created_ms) {
            tracing::warn!(event_id = %id, derivation, owner = removal.owner.for_log(), "a removal starts no cascade: it is too old, or its time is unknown or ahead of this clock");
            return Ok(());
        }
        let name = self.context.catalogue.name(work.touch.derivation).to_owned();
        let key = JobKey { derivation: name, id: id.clone() };
        let mut job = Job::waiting(&key, removal.clone(), now_ms, now_ms.saturating_add(self.context.settle_ms));
        job.is_running = !self.context.takes(ProtocolStep::Settle);
        let action = Action::Put(job.item(&self.context.schema.layout));
        let due = job.entry().put(&self.context.schema.layout);
        let put = Write { table: Table::Main, key: job.key, action, guard: None };
        let receipt = receipt_of(&self.context.schema.layout, &Key::new(format!("RECEIPT#{id}"), derivation), now_ms);
        let writes = if self.context.takes(ProtocolStep::StartOnce) { vec![receipt, put, due] } else { vec![put, due] };
        match Toucher::new(self.context).decided(writes, work).await? {
            TouchOutcome::Done => {
                tracing::info!(event_id = %id, derivation, owner = removal.owner.for_log(), "started a cascade");
            }
            TouchOutcome::Unheld(_) => {}
        }
        Ok(())
    }
}
