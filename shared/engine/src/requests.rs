//! Refresh requests: the items that records ask to refresh, and the results.
//!
//! # Own image
//!
//! An item's own record contains an image of the item.
//!
//! *Keeps true*: the image of a record decides only about the requests that this record makes for its own item. If the
//! item has changed since, a later record of the item makes those requests. The image decides about nothing else. The
//! batch may contain an old, redelivered record beside the change of a source; that the item was correct long ago then
//! proves nothing, and the later record requested its refresh before the source changed.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    change::Change,
    effect::{Find, RefreshRequest},
    position::{DerivationAt, RecordAt},
    refresh::Look,
    write::Write,
};
use keys::{item::Item, key::Key};
use store::{Busy, StoreError, Units};

use crate::backoff::{Patience, describe};

// ---- The image in an item's own record ----

/// The image of each item that has exactly one record in the batch, even if that record occurs several times. The order
/// of two records is unknown.
pub(crate) struct OwnImages {
    images: BTreeMap<Key, OwnImage>,
    /// True if an image decides about any request, and an item's first image about all of them. Only a mutant sets it.
    of_any: bool,
}

/// What a batch's records show about an item.
pub(crate) enum OwnState<'a> {
    /// Nothing that may decide: the item must be read.
    NotShown,
    /// It does not exist.
    Absent,
    /// It exists, with this content.
    Present(&'a Item),
}

struct OwnImage {
    item: Option<Item>,
    /// Positions of the record.
    positions: BTreeSet<RecordAt>,
}

impl OwnImages {
    /// The images of a batch's records, `None` for one that did not decode.
    pub(crate) fn of<'a>(changes: impl Iterator<Item = Option<&'a Change>>, of_any: bool) -> Self {
        let mut records: BTreeMap<&Key, BTreeMap<&str, OwnImage>> = BTreeMap::new();
        for (position, change) in changes.enumerate() {
            let Some(change) = change else { continue };
            let first = || OwnImage { item: change.new_image().cloned(), positions: BTreeSet::new() };
            let image = records.entry(&change.key).or_default().entry(&change.id).or_insert_with(first);
            image.positions.insert(RecordAt(position));
        }
        let alone = records.into_iter().filter(|(_, images)| images.len() == 1 || of_any);
        let images = alone.filter_map(|(key, images)| Some((key.clone(), images.into_values().next()?))).collect();
        Self { images, of_any }
    }

    /// The item after its own record, if only that record requested the refresh.
    pub(crate) fn shown(&self, item: &Key, causes: &BTreeSet<RecordAt>) -> OwnState<'_> {
        let image = self.images.get(item).filter(|image| self.of_any || causes.is_subset(&image.positions));
        match image.map(|image| image.item.as_ref()) {
            None => OwnState::NotShown,
            Some(None) => OwnState::Absent,
            Some(Some(item)) => OwnState::Present(item),
        }
    }
}

// ---- requests ----

/// Items that are refreshed together. Bounds memory; a step is then one batched read for all of them.
const LOOKS_AT_ONCE: usize = 1_000;

/// An item to refresh, and the positions of the records that requested it.
#[derive(Clone, Debug)]
pub(crate) struct RequestedRefresh {
    /// The item, and the derivations that request its refresh.
    pub(crate) look: Look,
    /// Positions of the records; empty if no record requests it.
    pub(crate) causes: BTreeSet<RecordAt>,
    /// True if only records of the item itself requested it.
    pub(crate) is_own: bool,
    /// Position of the derivation that creates the item, if its key was occupied before.
    pub(crate) vacated_for: Option<DerivationAt>,
}

/// The requests of a batch, merged by item.
#[derive(Debug, Default)]
pub(crate) struct RefreshRequests {
    /// Items to refresh, each with one entity: a change of type may request both.
    pub(crate) requested: BTreeMap<(Key, String), RequestedRefresh>,
    /// Items to find first, by derivation and source, with the positions of the records.
    pub(crate) finds: BTreeMap<(DerivationAt, Key), (Find, BTreeSet<RecordAt>)>,
    /// Items to refresh at a later time, in milliseconds since the epoch, with the positions of the records.
    pub(crate) later: BTreeMap<(Key, u64), (BTreeSet<DerivationAt>, BTreeSet<RecordAt>)>,
}

impl RefreshRequests {
    /// Adds a request that the record of an item makes for a derivation.
    pub(crate) fn request(
        &mut self,
        request: RefreshRequest,
        derivation: DerivationAt,
        of: &Key,
        position: Option<RecordAt>,
    ) {
        let is_own = request.item == *of;
        let requested = self.requested(request.item, request.entity);
        requested.is_own &= is_own;
        requested.look.named.extend(request.named);
        requested.look.derivations.insert(derivation);
        requested.causes.extend(position);
    }

    /// Adds a request for an item whose key was occupied by an item that is not Ripple's.
    pub(crate) fn request_vacated(&mut self, request: RefreshRequest, derivation: DerivationAt, position: RecordAt) {
        let key = request.item.clone();
        self.requested(key.clone(), request.entity.clone()).vacated_for = Some(derivation);
        self.request(request, derivation, &key, Some(position));
    }

    /// Adds a search that a source's record requests.
    pub(crate) fn find(&mut self, find: Find, derivation: DerivationAt, source: &Key, position: Option<RecordAt>) {
        let (_, causes) = self.finds.entry((derivation, source.clone())).or_insert_with(|| (find, BTreeSet::new()));
        causes.extend(position);
    }

    /// Adds a request that the record of an item makes for a later time, in milliseconds since the epoch.
    pub(crate) fn later(&mut self, item: Key, at_ms: u64, derivation: DerivationAt, position: Option<RecordAt>) {
        let (derivations, causes) = self.later.entry((item, at_ms)).or_default();
        derivations.insert(derivation);
        causes.extend(position);
    }

    /// Adds a found item, with the derivations and records that led to it.
    pub(crate) fn add(
        &mut self,
        item: Key,
        entity: String,
        named: Vec<Key>,
        derivations: &BTreeSet<DerivationAt>,
        causes: &BTreeSet<RecordAt>,
    ) {
        let requested = self.requested(item, entity);
        requested.is_own = false;
        requested.look.named.extend(named);
        requested.look.derivations.extend(derivations);
        requested.causes.extend(causes);
    }

    /// The items to refresh, in parts that are refreshed together.
    pub(crate) fn parts(self) -> impl Iterator<Item = Vec<RequestedRefresh>> {
        let mut requested: Vec<RequestedRefresh> = self.requested.into_values().collect();
        std::iter::from_fn(move || {
            let rest = requested.split_off(requested.len().min(LOOKS_AT_ONCE));
            Some(std::mem::replace(&mut requested, rest)).filter(|part| !part.is_empty())
        })
    }

    fn requested(&mut self, item: Key, entity: String) -> &mut RequestedRefresh {
        self.requested.entry((item.clone(), entity.clone())).or_insert_with(|| RequestedRefresh {
            look: Look { item, entity, derivations: BTreeSet::new(), named: BTreeSet::new() },
            causes: BTreeSet::new(),
            is_own: true,
            vacated_for: None,
        })
    }
}

// ---- Results of refreshes ----

/// Items to refresh, and the time that is left.
pub(crate) struct LookRequest<'a> {
    /// The items.
    pub(crate) items: Vec<RequestedRefresh>,
    /// The images of the records' own items; `None` if no record requests the refresh.
    pub(crate) images: Option<&'a OwnImages>,
    /// The time that is left.
    pub(crate) patience: Patience<'a>,
}

/// The results of refreshes.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Number of items that were correct.
    pub(crate) n_in_step: usize,
    /// The items that were written.
    pub(crate) written: Vec<WrittenItem>,
    /// The derivations of each write whose guard failed, which is sent again.
    pub(crate) sent_again: Vec<Vec<DerivationAt>>,
    /// The conflicts and throttles of the writes, each with the write's first derivation.
    pub(crate) met: Vec<(Option<DerivationAt>, Busy)>,
    /// Derived items whose key has an item that is not Ripple's.
    pub(crate) occupied: Vec<OccupiedKey>,
    /// Items that can never be refreshed or written, with the cause.
    pub(crate) refused: Vec<(RequestedRefresh, String)>,
    /// Items that could not be refreshed or written now, with the reason.
    pub(crate) undone: Vec<(RequestedRefresh, String)>,
    /// Write units of moving the [clock](derive::clock), and the positions of the records for which it was moved.
    pub(crate) clock: Option<(BTreeSet<RecordAt>, Units)>,
}

/// The items that a refresh found not to be correct.
#[derive(Debug, Default)]
pub(crate) struct DecidedLooks {
    /// Items that differ, each with the write that corrects it and the derivations of the write.
    pub(crate) differing: Vec<(RequestedRefresh, (Write, Vec<DerivationAt>))>,
    /// Derived items whose key has an item that is not Ripple's, each with the derivation that would create it.
    pub(crate) occupied: Vec<(RequestedRefresh, DerivationAt)>,
}

impl DecidedLooks {
    /// All of those items.
    pub(crate) fn looks(self) -> impl Iterator<Item = Look> {
        let differing = self.differing.into_iter().map(|(requested, _)| requested);
        differing.chain(self.occupied.into_iter().map(|(requested, _)| requested)).map(|requested| requested.look)
    }
}

/// A derived item that waits for its key; the item there is listed.
#[derive(Debug)]
pub(crate) struct OccupiedKey {
    /// The request of the item.
    pub(crate) requested: RequestedRefresh,
    /// Position of the derivation that would create it.
    pub(crate) derivation: DerivationAt,
    /// Write units.
    pub(crate) units: Units,
}

/// An item that was written.
#[derive(Debug)]
pub(crate) struct WrittenItem {
    /// The request of the item.
    pub(crate) requested: RequestedRefresh,
    /// The write.
    pub(crate) write: Write,
    /// Positions of the derivations that the write belongs to.
    pub(crate) derivations: Vec<DerivationAt>,
    /// When the response arrived, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// Write units.
    pub(crate) units: Units,
}

impl Looked {
    /// Notes that these items could not be refreshed or written now.
    pub(crate) fn not_now(&mut self, items: Vec<RequestedRefresh>, why: &str) {
        self.undone.extend(items.into_iter().map(|requested| (requested, why.to_owned())));
    }

    /// Separates the items whose sources cannot be read, and returns the others. Each item comes with its error, if
    /// any.
    pub(crate) fn without_refused<'e>(
        &mut self,
        items: impl Iterator<Item = (Option<&'e StoreError>, RequestedRefresh)>,
    ) -> Vec<RequestedRefresh> {
        let mut readable = Vec::new();
        for (refused, requested) in items {
            match refused {
                Some(error) => self.refused.push((requested, describe(error))),
                None => readable.push(requested),
            }
        }
        readable
    }
}
