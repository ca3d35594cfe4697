//! What a verification sees beside its scan: the records of the stream, and how far the functions are with them.

use std::{sync::Arc, time::Duration};

use derive::{family::Family, gathering::contributed};
use engine::{
    batch::input::caught,
    count::Target,
    protocol::ProtocolStep,
    record::{decode, event::Lane, key_of},
};
use keys::{
    counter::{COUNTER, CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
};
use store::Store;

use super::{counted::only, run::Verification, tallies::Contribution};
use crate::verify::ShardRecords;
use crate::verify::{VerifyError, Why};

/// How often it is looked what came, while something is waited for, in milliseconds.
const POLL_MS: u64 = 20;

impl<S: Store> Verification<'_, S> {
    /// Notes the target of a counter: nothing may be left that it counts.
    pub(super) fn see_counter(&self, key: &Key, item: &Item) -> Result<(), VerifyError> {
        let is_counter = || self.engine.schema().image(key, item).is_some_and(|image| image.is(COUNTER));
        if let Some(counter) = CounterKey::parse(key).filter(|_| is_counter()) {
            let target = Target { derivation: counter.derivation, item: counter.target };
            if self.is_counted(&target) {
                self.state().tallies.has_counter(&target)?;
            }
        }
        Ok(())
    }

    /// What an item holds of a count that is verified: a counter or a bucket, without what is compared with nothing.
    pub(super) fn counter(&self, key: &Key, item: &Item) -> Option<Item> {
        let layout = &self.engine.schema().layout;
        let image = self.engine.schema().image(key, item)?;
        if self.buckets.contains(&image.definition.name) {
            return Some(item.clone());
        }
        let counter = CounterKey::parse(key).filter(|_| image.is(COUNTER))?;
        let names = [Some(&layout.pk), Some(&layout.sk), layout.entity_type.as_ref()];
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).chain([VALUE, SUM]).collect();
        let target = Target { derivation: counter.derivation, item: counter.target };
        self.is_counted(&target).then(|| only(item, &names))
    }

    /// What an item adds to the counts that are verified, by the definition.
    pub(super) fn adds(&self, key: &Key, item: Option<&Item>) -> Vec<Contribution> {
        let Some(item) = item else { return Vec::new() };
        let Some(image) = self.engine.schema().image(key, item) else { return Vec::new() };
        let mut adds = Vec::new();
        for derivation in self.engine.catalogue().derivations() {
            let kind = &derivation.kind;
            let is_source = kind.family() == Family::Additive && kind.entities().iter().any(|entity| image.is(entity));
            if !is_source || !self.scope.has_derivation(&derivation.name) {
                continue;
            }
            let adds_to = || contributed(derivation, self.engine.schema(), key, item);
            for (item, tally) in caught("deriving what it adds", adds_to).unwrap_or_default() {
                let target = Target { derivation: derivation.name.clone(), item };
                if self.is_counted(&target) {
                    adds.push(Contribution { target, tally });
                }
            }
        }
        adds
    }

    /// Is this count verified?
    fn is_counted(&self, target: &Target) -> bool {
        self.counted.get(&target.derivation).is_some_and(|entity| self.scope.has_entity(entity))
            && self.scope.has_derivation(&target.derivation)
            && self.scope.has_item(&target.item)
    }

    /// Takes up what came in the stream.
    pub(super) fn see(&self) -> Result<(), VerifyError> {
        for ShardRecords { lane, records } in self.following.records() {
            self.see_records(&lane, records)?;
        }
        Ok(())
    }

    fn see_records(&self, lane: &Arc<Lane>, records: Vec<String>) -> Result<(), VerifyError> {
        let layout = &self.engine.schema().layout;
        for record in records {
            if self.state().proving.is_some() {
                let counted = self.engine.counted(&record, lane);
                self.state().proving.iter_mut().zip(counted).for_each(|(proving, record)| proving.add(record));
            }
            let now_ms = self.engine.clock().now_ms();
            match decode(layout, &record) {
                Ok(change) => {
                    let images = [change.new_image(), change.old_image()];
                    let image = images.into_iter().flatten().next();
                    let image = image.and_then(|item| self.engine.schema().image(&change.key, item));
                    if image.is_some_and(|image| self.targets.contains(&image.definition.name)) {
                        let is_there = change.new_image().is_some();
                        self.state().tallies.target_reported(&change.key, is_there)?;
                    }
                    // One that was made since the scan was there.
                    change.new_image().map_or(Ok(()), |new| self.see_counter(&change.key, new))?;
                    let [new, old] = [change.new_image(), change.old_image()]
                        .map(|image| image.and_then(|image| self.counter(&change.key, image)));
                    if new.is_some() || old.is_some() {
                        self.state().tallies.counter_reported(&change.key, new.as_ref())?;
                    }
                    let adds = self.adds(&change.key, change.new_image());
                    let took = self.adds(&change.key, change.old_image());
                    let mut state = self.state();
                    let is_reported = self.engine.takes(ProtocolStep::RecordWins);
                    if is_reported && (!adds.is_empty() || !took.is_empty()) {
                        state.tallies.report(&change.key, &adds, now_ms)?;
                    }
                    state.touched.touch(Some(&change.key), now_ms);
                }
                Err(error) => {
                    tracing::warn!(%error, "a record of the stream cannot be read: no count is decided");
                    let mut state = self.state();
                    state.is_blind = true;
                    state.touched.touch(key_of(layout, &record).as_ref(), now_ms);
                }
            }
        }
        Ok(())
    }

    /// Waits until the functions have handled all that was written before now; why that is not known, where it is not.
    pub(super) async fn handled(&self) -> Result<Option<Why>, VerifyError> {
        let began_ms = self.engine.clock().now_ms();
        if !self.engine.takes(ProtocolStep::HandledFirst) {
            return Ok(None);
        }
        loop {
            match self.following.is_handled(began_ms) {
                Some(true) => return Ok(None),
                None => return Ok(Some(Why::Unknown)),
                Some(false) => {}
            }
            if !self.pause(began_ms).await? {
                return Ok(Some(Why::Behind));
            }
        }
    }

    /// Waits until all is seen that was written before now; false where that takes too long.
    pub(super) async fn given(&self) -> Result<bool, VerifyError> {
        let began_ms = self.engine.clock().now_ms();
        loop {
            let has_given = self.following.has_given(began_ms);
            self.see()?;
            if has_given {
                return Ok(true);
            }
            if !self.pause(began_ms).await? {
                return Ok(false);
            }
        }
    }

    /// Waits a little; false where it was waited long enough.
    pub(super) async fn pause(&self, began_ms: u64) -> Result<bool, VerifyError> {
        self.see()?;
        if self.engine.clock().now_ms().saturating_sub(began_ms) >= self.limits.wait_ms {
            return Ok(false);
        }
        self.engine.clock().sleep(Duration::from_millis(POLL_MS)).await;
        Ok(true)
    }
}
