//! The scan of the table, and the first check of its items.
//!
//! The segments are read in parallel until there are enough items for a *window*, which is then checked as a whole. The
//! sources of an item are taken from the window if they are there, since they were just read. A table that fits into
//! one window is read once: items that are not in the window are not in the table. Each window is checked while the
//! next one is read, so two are in memory.
//!
//! *Why slightly older reads suffice*: only equal values are decided here; the second check (module `candidates`) reads
//! differing ones again. The whole window was read after the verification began. If neither an item nor its sources
//! were written since then, the comparison is exact. If one was, its record requests a refresh of the item, and the
//! functions refresh it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use derive::{
    family::Family,
    gathering::contributed,
    kind::Shape,
    position::DerivationAt,
    query::{Consistency, Query},
    refresh::Look,
    sources::Sources,
    write::{Table, Transaction, Write},
};
use engine::{
    account::Target,
    input::caught,
    protocol::ProtocolStep,
    record::{Lane, decode, key_of},
};
use futures::{future::try_join_all, try_join};
use keys::{
    counter::{COUNTER, CounterKey, SUM, VALUE},
    item::Item,
    key::Key,
    size::item_bytes,
};
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};
use tokio::{
    task::yield_now,
    time::{Instant, sleep_until},
};

use crate::verify::{
    Contribution, Reached, ShardRecords, VerifyError, Why,
    candidates::Candidate,
    check::UNIT_BYTES,
    counts::{is_broken_bucket, only},
    run::Verification,
};

/// Default size of the items of a window, in bytes: 16 MB. A window ends with the page that passes it. Bounds memory,
/// and what a stopped verification reads again.
pub const WINDOW_BYTES: usize = 16 * 1_024 * 1_024;

/// Items that are checked together. Bounds memory.
const ITEMS_AT_ONCE: usize = 250;

/// Candidates that are collected before their second check. Bounds memory.
const CANDIDATES_MAX: usize = 2_000;

/// Items that were read together.
#[derive(Default)]
struct ScanWindow {
    items: Sources,
    /// Their keys, in the order of the scan.
    keys: Vec<Key>,
    bytes: usize,
}

/// Role of an item in a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// Its entity is undeclared, so nothing is derived from it.
    Ignored,
    /// It is verified, or is part of a verified count.
    Selected,
    /// It is declared, and not verified.
    Other,
}

impl<S: Store> Verification<'_, S> {
    /// Reads the table from where the last run stopped, and decides everything but its counts. Each window is checked
    /// while the next is read.
    pub(super) async fn scan(&self) -> Result<Vec<Reached>, VerifyError> {
        let numbers = 0..self.limits.segments.max(1);
        let reached = numbers.clone().map(|number| self.state().tallies.reached(number));
        let reached = reached.collect::<Result<Vec<Reached>, _>>()?;
        let is_new = reached.iter().all(|segment| segment.after.is_none() && !segment.is_end);
        let Some((mut window, mut reached)) = self.window(reached.clone()).await? else { return Ok(reached) };
        if is_new && reached.iter().all(|segment| segment.is_end) {
            window.items.close(self.engine.schema());
        }
        loop {
            let ScanWindow { mut items, keys, .. } = window;
            items.hour_or(self.engine.hour());
            let ((), next) = try_join!(self.look_at_all(keys, Arc::new(items)), self.window(reached.clone()))?;
            // What the next window adds to counts may be stored with this. It is added once, also if it is read again.
            for (number, reached) in numbers.clone().zip(&reached) {
                self.state().tallies.reach(number, reached)?;
            }
            let Some(next) = next else { return Ok(reached) };
            (window, reached) = next;
        }
    }

    /// Reads the next window, and returns it with how far the segments are then; `None` if they have ended.
    async fn window(&self, reached: Vec<Reached>) -> Result<Option<(ScanWindow, Vec<Reached>)>, VerifyError> {
        if reached.iter().all(|segment| segment.is_end) {
            return Ok(None);
        }
        let window = Mutex::new(ScanWindow::default());
        let segments = (0..).zip(reached);
        let segments = segments.map(|(number, reached)| Box::pin(self.segment(number, reached, &window)));
        let reached = try_join_all(segments).await?;
        Ok(Some((window.into_inner().unwrap_or_else(PoisonError::into_inner), reached)))
    }

    /// Reads a segment until it or the window ends.
    async fn segment(
        &self,
        number: u32,
        mut reached: Reached,
        window: &Mutex<ScanWindow>,
    ) -> Result<Reached, VerifyError> {
        let segment = Segment { number, of: self.limits.segments.max(1) };
        let layout = &self.engine.schema().layout;
        while !reached.is_end && locked(window).bytes < self.limits.window_bytes {
            let after = reached.after.as_ref().map(|(pk, sk)| Cursor(layout.key_item(&Key::new(pk, sk))));
            let page = self.patience().call(|| self.engine.store().scan(Table::Main, segment, after.clone())).await?;
            let next = page.next.as_ref().and_then(|next| layout.key(&next.0));
            let n_items = page.items.len();
            reached.n_items += n_items;
            for item in page.items {
                let Some(key) = layout.key(&item) else { continue };
                let noted = self.note(&key, &item)?;
                if noted == Noted::Ignored {
                    reached.n_ignored += 1;
                    self.state().ignored.get_or_insert_with(|| key.clone());
                }
                reached.n_selected += usize::from(noted == Noted::Selected);
                let mut window = locked(window);
                window.bytes += item_bytes(&item);
                window.keys.push(key.clone());
                window.items.add_item(key, Some(item));
            }
            self.see()?;
            self.state().listener.read(n_items);
            reached.is_end = next.is_none();
            reached.after = next.map(|key| (key.pk, key.sk));
        }
        Ok(reached)
    }

    /// Notes what an item adds to counts, or stores of one.
    fn note(&self, key: &Key, item: &Item) -> Result<Noted, VerifyError> {
        let is_ignored = self.report_unreadable(key, item)?;
        let image = self.engine.schema().image(key, item);
        if let (Some(later), Some(image)) = (self.later, &image) {
            later.scanned(image)?;
        }
        let entity = image.as_ref().map(|image| image.definition.name.as_str());
        if entity.is_some_and(|entity| self.targets.contains(entity)) {
            self.state().tallies.target_scanned(key)?;
        }
        let mut is_selected = self.scope.has_item(key) && entity.is_none_or(|entity| self.scope.has_entity(entity));
        let adds = self.adds(key, Some(item));
        if !adds.is_empty() {
            self.state().tallies.scanned(key, &adds)?;
            is_selected = true;
        }
        self.see_counter(key, item)?;
        if let Some(counter) = self.counter(key, item) {
            self.state().tallies.counter_scanned(key, &counter)?;
            is_selected = true;
        }
        Ok(match (is_ignored, is_selected) {
            (true, _) => Noted::Ignored,
            (false, true) => Noted::Selected,
            (false, false) => Noted::Other,
        })
    }

    /// Checks all items of a window, and again those that differ.
    async fn look_at_all(&self, keys: Vec<Key>, window: Arc<Sources>) -> Result<(), VerifyError> {
        let mut sources = Sources::on(Arc::clone(&window));
        let mut candidates = Vec::new();
        for keys in keys.chunks(ITEMS_AT_ONCE) {
            self.first_look(keys, &window, &mut sources, &mut candidates).await?;
            self.see()?;
            self.state().listener.looked(keys.len());
            // The next window is read meanwhile.
            yield_now().await;
            if candidates.len() >= CANDIDATES_MAX {
                self.second_look(std::mem::take(&mut candidates)).await?;
            }
            // Sources that are read besides a window may become as large as one.
            if sources.bytes() > self.limits.window_bytes {
                sources = Sources::on(Arc::clone(&window));
            }
        }
        self.second_look(candidates).await
    }

    /// Finds those of these items that may differ.
    async fn first_look(
        &self,
        keys: &[Key],
        window: &Sources,
        sources: &mut Sources,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), VerifyError> {
        let mut all = Vec::new();
        for key in keys {
            let Some(item) = window.item(key) else { continue };
            if !self.single(key, item, sources).await?.findings.is_empty() {
                candidates.push(Candidate::Single(key.clone()));
            }
            all.push((key.clone(), item.clone()));
        }
        if self.notes_changes {
            self.engine.note_changes(all.clone(), self.patience()).await?;
        }
        let is_asked = |look: &mut Look| {
            let named = |at: &DerivationAt| self.scope.has_derivation(self.engine.catalogue().name(*at));
            look.derivations.retain(named);
            if let Some(later) = self.later {
                later.take(look);
            }
            !look.derivations.is_empty() && self.scope.has_item(&look.item) && self.scope.has_entity(&look.entity)
        };
        let (differing, refused) = self.engine.looks_that_differ(all, sources, is_asked, self.patience()).await?;
        self.report_refused_looks(refused)?;
        candidates.extend(differing.into_iter().map(Candidate::Look));
        Ok(())
    }
}

fn locked(window: &Mutex<ScanWindow>) -> MutexGuard<'_, ScanWindow> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- seen ----

/// Poll interval while waiting for stream records, in milliseconds.
const POLL_MS: u64 = 20;

impl<S: Store> Verification<'_, S> {
    /// Notes the target of a counter, and a bucket whose numbers are none, since they may have no source left.
    fn see_counter(&self, key: &Key, item: &Item) -> Result<(), VerifyError> {
        let is_counter = || self.engine.schema().image(key, item).is_some_and(|image| image.is(COUNTER));
        if let Some(counter) = CounterKey::parse(key).filter(|_| is_counter()) {
            let target = Target { derivation: counter.derivation, item: counter.target };
            if self.is_counted(&target) {
                self.state().tallies.has_counter(&target)?;
            }
        }
        for derivation in self.engine.catalogue().derivations() {
            let Shape::Rollup(rollup) = derivation.kind.shape() else { continue };
            let is_bucket = || self.engine.schema().image(key, item).is_some_and(|it| it.is(&rollup.form.entity));
            let target = Target { derivation: derivation.name.clone(), item: key.clone() };
            if is_broken_bucket(&rollup.form, item) && is_bucket() && self.is_counted(&target) {
                self.state().tallies.has_counter(&target)?;
            }
        }
        Ok(())
    }

    /// The part of a counter or bucket of a verified count that is compared.
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

    /// What an item adds to the verified counts, by the definition.
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

    /// True if this count is verified.
    fn is_counted(&self, target: &Target) -> bool {
        self.counted.get(&target.derivation).is_some_and(|entity| self.scope.has_entity(entity))
            && self.scope.has_derivation(&target.derivation)
            && self.scope.has_item(&target.item)
    }

    /// Processes the records that arrived in the stream.
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
                    // A counter that was created after the scan.
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

    /// Waits until the functions have handled everything written before now; returns the reason if that stays unknown.
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

    /// Waits until everything written before now is seen; false if that takes too long.
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

    /// Waits a little; false if the waiting time is over.
    pub(super) async fn pause(&self, began_ms: u64) -> Result<bool, VerifyError> {
        self.see()?;
        if self.engine.clock().now_ms().saturating_sub(began_ms) >= self.limits.wait_ms {
            return Ok(false);
        }
        self.engine.clock().sleep(Duration::from_millis(POLL_MS)).await;
        Ok(true)
    }
}

// ---- A store that limits its read units ----

/// A store that limits its read units per second, so that a verification does not slow down the application. It also
/// adds the units up.
pub(crate) struct Paced<S> {
    store: S,
    /// Limit; unlimited if `None`.
    units_a_second: Option<f64>,
    /// When the limit has paid for all reads so far.
    free_at: Mutex<Option<Instant>>,
    used: UsedUnits,
}

/// The read units of all reads so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsedUnits(Arc<Mutex<f64>>);

impl UsedUnits {
    pub(crate) fn get(&self) -> f64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, units: f64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += units;
    }
}

impl<S> Paced<S> {
    /// A store with this limit on read units a second.
    pub(crate) fn new(store: S, units_a_second: Option<u32>) -> Self {
        let (units_a_second, used) = (units_a_second.map(f64::from), UsedUnits::default());
        Self { store, units_a_second, free_at: Mutex::new(None), used }
    }

    /// A shared counter, which keeps counting as long as this store reads.
    pub(crate) fn used(&self) -> UsedUnits {
        self.used.clone()
    }

    /// Waits until the limit has paid for earlier reads.
    async fn turn(&self) {
        let free_at = *self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free_at) = free_at {
            sleep_until(free_at).await;
        }
    }

    fn charge(&self, units: f64) {
        self.used.add(units);
        let Some(rate) = self.units_a_second else { return };
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let from = free_at.map_or_else(Instant::now, |free_at| free_at.max(Instant::now()));
        *free_at = Some(from + Duration::from_secs_f64(units / rate));
    }

    fn charge_page(&self, page: &Page, is_consistent: bool) {
        self.charge(units(page.items.iter().map(item_bytes).sum(), is_consistent));
    }
}

/// The read units of this many bytes, read together.
fn units(bytes: usize, is_consistent: bool) -> f64 {
    let units = f64::from(u32::try_from(bytes.div_ceil(UNIT_BYTES).max(1)).unwrap_or(u32::MAX));
    if is_consistent { units } else { units / 2.0 }
}

impl<S: Store> Store for Paced<S> {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.turn().await;
        let items = self.store.read(table, keys, consistency).await?;
        let is_consistent = consistency == Consistency::Strong;
        // A missing item costs as much as a small one.
        let n_absent = keys.len().saturating_sub(items.len());
        let absent = std::iter::repeat_n(1, n_absent);
        let all = items.iter().map(|(_, item)| item_bytes(item)).chain(absent);
        self.charge(all.map(|bytes| units(bytes, is_consistent)).sum());
        Ok(items)
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.turn().await;
        let page = self.store.query(table, query, after).await?;
        self.charge_page(&page, query.consistency == Consistency::Strong);
        Ok(page)
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.turn().await;
        let page = self.store.scan(table, segment, after).await?;
        self.charge_page(&page, true);
        Ok(page)
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.store.write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.store.update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.store.transact(transaction).await
    }
}

#[cfg(test)]
mod tests {
    use keys::layout::Layout;
    use store::memory::MemoryStore;

    use super::*;

    #[test]
    fn a_unit_is_four_kilobytes_or_part_of_it() {
        let charged = [0, 1, 4_096, 4_097].map(|bytes| [true, false].map(|is_consistent| units(bytes, is_consistent)));
        assert_eq!(format!("{charged:?}"), "[[1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [2.0, 1.0]]");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_waits_until_those_before_it_are_paid_for() {
        let layout = Layout::of("PK", "SK");
        let paced = Paced::new(MemoryStore::new(layout), Some(2));
        let keys = [Key::new("a", "a"), Key::new("b", "b"), Key::new("c", "c"), Key::new("d", "d")];
        let began = Instant::now();
        paced.get(Table::Main, &keys).await.unwrap();
        assert!(began.elapsed() < Duration::from_millis(50), "the first waits for nobody");
        paced.get(Table::Main, &keys[..1]).await.unwrap();
        assert!((paced.used().get() - 5.0).abs() < f64::EPSILON, "each of the keys, of which none is there, is one");
        assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}: four units at two a second", began.elapsed());
    }
}
