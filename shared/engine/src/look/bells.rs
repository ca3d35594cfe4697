//! The bells that a batch rings: which items are to be looked at, on whose behalf, and because of which records.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    effect::{Bell, Find},
    position::{DerivationAt, RecordAt},
    refresh::Look,
};
use keys::key::Key;

/// Items that are looked at together. Bounds memory; a step is then one batched read for all of them.
const LOOKS_AT_ONCE: usize = 1_000;

/// An item to look at, and the positions of the records that rang.
#[derive(Clone, Debug)]
pub(crate) struct Rung {
    /// The item, and on whose behalf.
    pub(crate) look: Look,
    /// Positions of the records; none where no record asks for it.
    pub(crate) causes: BTreeSet<RecordAt>,
    /// Did records of the item itself ring, and no others?
    pub(crate) is_own: bool,
    /// Position of the derivation that creates the item, where its key was occupied before.
    pub(crate) vacated_for: Option<DerivationAt>,
}

/// The bells of a batch, merged by item.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    /// Items to look at, each as of one entity: a change of type may ring both.
    pub(crate) rung: BTreeMap<(Key, String), Rung>,
    /// Items to find first, by derivation and source, with the positions of the records.
    pub(crate) finds: BTreeMap<(DerivationAt, Key), (Find, BTreeSet<RecordAt>)>,
}

impl Bells {
    /// Adds a bell that the record of an item rings on behalf of a derivation.
    pub(crate) fn ring(&mut self, bell: Bell, derivation: DerivationAt, of: &Key, position: Option<RecordAt>) {
        let is_own = bell.item == *of;
        let rung = self.rung(bell.item, bell.entity);
        rung.is_own &= is_own;
        rung.look.named.extend(bell.named);
        rung.look.derivations.insert(derivation);
        rung.causes.extend(position);
    }

    /// The same of an item whose key was occupied by one that is not Ripple's.
    pub(crate) fn ring_vacated(&mut self, bell: Bell, derivation: DerivationAt, position: RecordAt) {
        let key = bell.item.clone();
        self.rung(key.clone(), bell.entity.clone()).vacated_for = Some(derivation);
        self.ring(bell, derivation, &key, Some(position));
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
        let rung = self.rung(item, entity);
        rung.is_own = false;
        rung.look.named.extend(named);
        rung.look.derivations.extend(derivations);
        rung.causes.extend(causes);
    }

    /// The items to look at, in parts that are looked at together.
    pub(crate) fn parts(self) -> impl Iterator<Item = Vec<Rung>> {
        let mut rung: Vec<Rung> = self.rung.into_values().collect();
        std::iter::from_fn(move || {
            let rest = rung.split_off(rung.len().min(LOOKS_AT_ONCE));
            Some(std::mem::replace(&mut rung, rest)).filter(|part| !part.is_empty())
        })
    }

    fn rung(&mut self, item: Key, entity: String) -> &mut Rung {
        self.rung.entry((item.clone(), entity.clone())).or_insert_with(|| Rung {
            look: Look { item, entity, derivations: BTreeSet::new(), named: BTreeSet::new() },
            causes: BTreeSet::new(),
            is_own: true,
            vacated_for: None,
        })
    }
}
