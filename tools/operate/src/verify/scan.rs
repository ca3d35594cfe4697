//! The scan of the table, and the first look at what it gives.
//!
//! The segments are read side by side until there are enough items for a *window*, which is then looked at as a whole.
//! What an item is compared with is taken from the window if it is there, since it was just read. A table that fits into one
//! window is read once: what the window does not hold is not in the table.
//!
//! *Why what was read a little earlier may serve*: only what is equal ends here; what differs is read again by the second
//! look (module `candidates`). All of a window was read after the verification began. If neither an item nor its sources were
//! written since then, they are compared as they are. If one was, its record rings for the item, and the functions look at
//! it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use derive::{position::DerivationAt, refresh::Look, sources::Sources, write::Table};
use futures::future::try_join_all;
use keys::{item::Item, key::Key, size::item_bytes};
use store::{Cursor, Segment, Store};

use super::{candidates::Candidate, run::Verification, tallies::Reached};
use crate::verify::VerifyError;

/// Size of the items of a window where nothing else is said, in bytes: 16 MB. A window ends with the page that passes it. Bounds memory, and what a
/// verification that was stopped reads again.
pub const WINDOW_BYTES: usize = 16 * 1_024 * 1_024;

/// Items that are looked at together. Bounds memory.
const ITEMS_AT_ONCE: usize = 250;

/// Candidates that wait for their second look at most. Bounds memory.
const CANDIDATES_MAX: usize = 2_000;

/// Items that were read together.
#[derive(Default)]
struct ScanWindow {
    items: Sources,
    /// Their keys, in the order of the scan.
    keys: Vec<Key>,
    bytes: usize,
}

/// What an item is for a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noted {
    /// Nothing is derived of it, since nobody declared it.
    Ignored,
    /// It is verified, or is part of a count that is.
    Selected,
    /// It is declared, and not verified.
    Other,
}

impl<S: Store> Verification<'_, S> {
    /// Reads the table from where it was reached, and decides about all but its counts.
    pub(super) async fn scan(&self) -> Result<Vec<Reached>, VerifyError> {
        let numbers = 0..self.limits.segments.max(1);
        let reached = numbers.clone().map(|number| self.state().tallies.reached(number));
        let mut reached = reached.collect::<Result<Vec<Reached>, _>>()?;
        let is_new = reached.iter().all(|segment| segment.after.is_none() && !segment.is_end);
        let mut is_first = true;
        while !reached.iter().all(|segment| segment.is_end) {
            let window = Mutex::new(ScanWindow::default());
            let segments = numbers.clone().zip(reached);
            let segments = segments.map(|(number, reached)| Box::pin(self.segment(number, reached, &window)));
            reached = try_join_all(segments).await?;
            let ScanWindow { mut items, keys, .. } = window.into_inner().unwrap_or_else(PoisonError::into_inner);
            if is_new && is_first && reached.iter().all(|segment| segment.is_end) {
                items.close(self.engine.schema());
            }
            self.look_at_all(keys, Arc::new(items)).await?;
            for (number, reached) in numbers.clone().zip(&reached) {
                self.state().tallies.reach(number, reached)?;
            }
            is_first = false;
        }
        Ok(reached)
    }

    /// Reads on in a segment until it ends, or the window does.
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
                reached.n_ignored += usize::from(noted == Noted::Ignored);
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

    /// Notes what an item adds to counts, or holds of one.
    fn note(&self, key: &Key, item: &Item) -> Result<Noted, VerifyError> {
        let is_ignored = self.report_unreadable(key, item)?;
        let image = self.engine.schema().image(key, item);
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

    /// Looks at all items of a window, and once more at those that differ.
    async fn look_at_all(&self, keys: Vec<Key>, window: Arc<Sources>) -> Result<(), VerifyError> {
        let mut sources = Sources::on(Arc::clone(&window));
        let mut candidates = Vec::new();
        for keys in keys.chunks(ITEMS_AT_ONCE) {
            self.first_look(keys, &window, &mut sources, &mut candidates).await?;
            self.see()?;
            self.state().listener.looked(keys.len());
            if candidates.len() >= CANDIDATES_MAX {
                self.second_look(std::mem::take(&mut candidates)).await?;
            }
            // What is read beside a window may become as large as one.
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
        let is_asked = |look: &mut Look| {
            let named = |at: &DerivationAt| self.scope.has_derivation(self.engine.catalogue().name(*at));
            look.derivations.retain(named);
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
