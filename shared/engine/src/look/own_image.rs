//! What an item's own record shows of it.
//!
//! *Keeps true*: the image of a record decides only over the bells that this record rings for its own item. Were the
//! item another by now, a later record of it rings those bells. It decides over nothing else: the batch may hold an old
//! record, delivered again, beside the change of a source; that the item was in step long ago says nothing then, and
//! the later record has rung before the source changed.

use std::collections::{BTreeMap, BTreeSet};

use derive::{change::Change, position::RecordAt};
use keys::{item::Item, key::Key};

/// The image of each item of which the batch holds one record, however often that is there. Which of two records is
/// the newer is not known.
pub(crate) struct OwnImages {
    images: BTreeMap<Key, OwnImage>,
    /// Does an image decide over any bell, and the first of an item for all? It must not.
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

    /// The item after its own record, when nothing but that record rang.
    pub(crate) fn shown(&self, item: &Key, causes: &BTreeSet<RecordAt>) -> OwnState<'_> {
        let image = self.images.get(item).filter(|image| self.of_any || causes.is_subset(&image.positions));
        match image.map(|image| image.item.as_ref()) {
            None => OwnState::NotShown,
            Some(None) => OwnState::Absent,
            Some(Some(item)) => OwnState::Present(item),
        }
    }
}
