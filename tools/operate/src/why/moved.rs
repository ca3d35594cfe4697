//! The last changes that moved what is asked about, as far as the stream still has them.

use std::collections::{BTreeMap, VecDeque};

use derive::{change::Change, effect::Effect, family::Family, plan::plan};
use engine::{
    ledger::watermarks::mark_name,
    record::{decode, event::Lane},
};
use keys::key::Key;
use store::Store;

use super::{AskedAbout, Explainer};
use crate::{
    failure::OperateError,
    tables::Deployment,
    verify::{
        following::{Retained as _, ShardRecords},
        report::VerifyError,
    },
    words::event,
};

/// What the stream still has of what is asked about.
#[derive(Debug, Default)]
pub struct StreamChanges {
    /// The last changes that concern it, the oldest first.
    pub last: VecDeque<StreamChange>,
    /// How many concern it.
    pub n_concerning: usize,
    /// How many records were read.
    pub n_records: usize,
    /// The stream shards that records came of, by the names of their watermarks.
    pub shards: BTreeMap<String, String>,
}

/// A change that concerns what is asked about.
#[derive(Debug)]
pub struct StreamChange {
    /// Id of its event.
    pub id: String,
    /// When it was made, in milliseconds since the epoch, rounded down to the second or minute.
    pub created_ms: Option<u64>,
    /// Its stream shard.
    pub shard: Option<String>,
    /// Its sequence number.
    pub sequence_number: String,
    /// The item that was changed.
    pub item: Key,
    /// What became of the item: `INSERT`, `MODIFY` or `REMOVE`, as DynamoDB says it.
    pub event: &'static str,
    /// What it asks of the asked derivations, each with its name; nothing where it is the item's own write.
    pub effects: Vec<(String, Effect)>,
}

impl<S: Store> Explainer<'_, S> {
    /// Reads the streams from their oldest record to now.
    pub(super) async fn changes<T>(
        &self,
        opened: &Deployment<T>,
        asked: &AskedAbout,
    ) -> Result<StreamChanges, OperateError> {
        let mut retained = opened.retained();
        let mut changes = StreamChanges::default();
        while let Some(ShardRecords { lane, records }) = retained.next().await.map_err(VerifyError::Stream)? {
            changes.n_records += records.len();
            changes.shards.extend(mark_name(&lane).zip(lane.shard.clone()));
            for record in records {
                let Ok(change) = decode(&self.schema().layout, &record) else { continue };
                if let Some(change) = self.concerning(change, &lane, asked) {
                    changes.n_concerning += 1;
                    changes.last.push_back(change);
                }
            }
            let n_over = changes.last.len().saturating_sub(self.request.n_listed);
            // Shards are read side by side, so the newest are known only by their times.
            changes.last.make_contiguous().sort_by_key(|change| change.created_ms);
            changes.last.drain(..n_over);
        }
        Ok(changes)
    }

    fn concerning(&self, change: Change, lane: &Lane, asked: &AskedAbout) -> Option<StreamChange> {
        let families = [Family::Additive, Family::LevelTriggered];
        let planned = plan(self.schema(), self.engine.catalogue(), &families, &change);
        let catalogue = self.engine.catalogue();
        let asked_of = planned.effects.into_iter();
        let asked_of = asked_of.filter(|(at, effect)| asked.concerns(&change.key, catalogue.name(*at), effect));
        let effects: Vec<_> = asked_of.map(|(at, effect)| (catalogue.label(at).to_owned(), effect)).collect();
        if effects.is_empty() && !asked.own.contains(&change.key) {
            return None;
        }
        let event = event(&change.images);
        Some(StreamChange {
            id: change.id,
            created_ms: change.created_ms,
            shard: lane.shard.clone(),
            sequence_number: change.sequence_number,
            item: change.key,
            event,
            effects,
        })
    }
}
