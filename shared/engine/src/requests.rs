//! Refresh requests: which items records ask to refresh, and the results.
//!
//! # Own image
//!
//! What an item's own record shows of it.
//!
//! *Keeps true*: the image of a record decides only over the requests that this record makes for its own item. Were the
//! item another by now, a later record of it makes those requests. It decides over nothing else: the batch may hold an
//! old record, delivered again, beside the change of a source; that the item was in step long ago says nothing then,
//! and the later record has requested a refresh before the source changed.

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

// ---- What an item's own record shows of it ----

/// The image of each item of which the batch holds one record, however often that is there. Which of two records is
/// the newer is not known.
pub(crate) struct OwnImages {
    images: BTreeMap<Key, OwnImage>,
    /// Does an image decide over any request, and the first of an item for all? It must not.
    of_any: bool,
}

/// What the records of a batch show of an item.
pub(crate) enum OwnState<'a> {
    /// Nothing that may decide: it must be read.
    NotShown,
    /// It does not exist.
    Absent,
    /// It exists, and holds this.
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

    /// The item after its own record, when nothing but that record requested the refresh.
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
    /// The item, and on whose behalf.
    pub(crate) look: Look,
    /// Positions of the records; none where no record asks for it.
    pub(crate) causes: BTreeSet<RecordAt>,
    /// True if only records of the item itself requested it.
    pub(crate) is_own: bool,
    /// Position of the derivation that creates the item, where its key was occupied before.
    pub(crate) vacated_for: Option<DerivationAt>,
}

/// The requests of a batch, merged by item.
#[derive(Debug, Default)]
pub(crate) struct RefreshRequests {
    /// Items to refresh, each as of one entity: a change of type may request both.
    pub(crate) requested: BTreeMap<(Key, String), RequestedRefresh>,
    /// Items to find first, by derivation and source, with the positions of the records.
    pub(crate) finds: BTreeMap<(DerivationAt, Key), (Find, BTreeSet<RecordAt>)>,
}

impl RefreshRequests {
    /// Adds a request that the record of an item makes on behalf of a derivation.
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

    /// The same of an item whose key was occupied by one that is not Ripple's.
    pub(crate) fn request_vacated(&mut self, request: RefreshRequest, derivation: DerivationAt, position: RecordAt) {
        let key = request.item.clone();
        self.requested(key.clone(), request.entity.clone()).vacated_for = Some(derivation);
        self.request(request, derivation, &key, Some(position));
    }

    /// Adds a search that a record of a source asks for.
    pub(crate) fn find(&mut self, find: Find, derivation: DerivationAt, source: &Key, position: Option<RecordAt>) {
        let (_, causes) = self.finds.entry((derivation, source.clone())).or_insert_with(|| (find, BTreeSet::new()));
        causes.extend(position);
    }

    /// Adds an item that was found, on behalf of these derivations and because of these records.
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

// ---- looked ----

/// Items to refresh, and the time that there is.
pub(crate) struct LookRequest<'a> {
    /// The items.
    pub(crate) items: Vec<RequestedRefresh>,
    /// What records show of their own items; `None` where no record asks.
    pub(crate) images: Option<&'a OwnImages>,
    /// The time that there is.
    pub(crate) patience: Patience<'a>,
}

/// The results of refreshes.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// How many items were in step.
    pub(crate) n_in_step: usize,
    /// What was written.
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
}

/// What a refresh decided of items that are not in step.
#[derive(Debug, Default)]
pub(crate) struct DecidedLooks {
    /// Those that differ, each with the write that brings it in step and on whose behalf.
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
    /// What asked for it.
    pub(crate) requested: RequestedRefresh,
    /// Position of the derivation that would create it.
    pub(crate) derivation: DerivationAt,
    /// Write units.
    pub(crate) units: Units,
}

/// An item that was written.
#[derive(Debug)]
pub(crate) struct WrittenItem {
    /// What asked for it.
    pub(crate) requested: RequestedRefresh,
    /// The write.
    pub(crate) write: Write,
    /// Positions of the derivations on whose behalf.
    pub(crate) derivations: Vec<DerivationAt>,
    /// When the answer came, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
    /// Write units.
    pub(crate) units: Units,
}

impl Looked {
    /// None of these items could be refreshed, or written, now.
    pub(crate) fn not_now(&mut self, items: Vec<RequestedRefresh>, why: &str) {
        self.undone.extend(items.into_iter().map(|requested| (requested, why.to_owned())));
    }

    /// These items, each with why what it is decided by cannot be read, without those of which that is known.
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
