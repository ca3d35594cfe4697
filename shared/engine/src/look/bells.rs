//! The bells that a batch rings: which items are to be looked at, on whose behalf, and because of which records.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    effect::{Bell, Find},
    refresh::Look,
};
use keys::key::Key;

/// An item to look at, and the positions of the records that rang.
#[derive(Clone, Debug)]
pub(crate) struct Rung {
    /// The item, and on whose behalf.
    pub(crate) look: Look,
    /// Positions of the records.
    pub(crate) causes: BTreeSet<usize>,
    /// Did records of the item itself ring, and no others?
    pub(crate) is_own: bool,
}

/// The bells of a batch, merged by item.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    /// Items to look at, each as of one entity: a change of type may ring both.
    pub(crate) rung: BTreeMap<(Key, String), Rung>,
    /// Items to find first, by derivation and source, with the positions of the records.
    pub(crate) finds: BTreeMap<(usize, Key), (Find, BTreeSet<usize>)>,
}

impl Bells {
    /// Adds a bell that the record of an item rings on behalf of a derivation.
    pub(crate) fn ring(&mut self, bell: Bell, derivation: usize, of: &Key, position: usize) {
        let is_own = bell.item == *of;
        let rung = self.rung(bell.item, bell.entity);
        rung.is_own &= is_own;
        rung.look.named.extend(bell.named);
        rung.look.derivations.insert(derivation);
        rung.causes.insert(position);
    }

    /// Adds a search that a record of a source asks for.
    pub(crate) fn find(&mut self, find: Find, derivation: usize, source: &Key, position: usize) {
        let (_, causes) = self.finds.entry((derivation, source.clone())).or_insert_with(|| (find, BTreeSet::new()));
        causes.insert(position);
    }

    /// Adds an item that was found, on behalf of these derivations and because of these records.
    pub(crate) fn add(
        &mut self,
        item: Key,
        entity: String,
        named: Vec<Key>,
        derivations: &BTreeSet<usize>,
        causes: &BTreeSet<usize>,
    ) {
        let rung = self.rung(item, entity);
        rung.is_own = false;
        rung.look.named.extend(named);
        rung.look.derivations.extend(derivations);
        rung.causes.extend(causes);
    }

    fn rung(&mut self, item: Key, entity: String) -> &mut Rung {
        self.rung.entry((item.clone(), entity.clone())).or_insert_with(|| Rung {
            look: Look { item, entity, derivations: BTreeSet::new(), named: BTreeSet::new() },
            causes: BTreeSet::new(),
            is_own: true,
        })
    }
}
