//! What an item is wanted to be and what it holds: the attributes that differ, and the write that mends them.

use std::collections::BTreeSet;

use keys::{
    item::Item,
    value::{is_zero, same},
};

use crate::{
    guard::Guard,
    position::DerivationAt,
    refresh::{Look, Verdict},
    write::{Action, Table, Update, Wanted, Write},
};

/// The attributes that differ from what an item holds.
#[derive(Default)]
pub(super) struct ItemDifference {
    /// The attributes to set.
    pub(super) set: Item,
    remove: BTreeSet<String>,
    /// Positions in the catalogue of the derivations whose part differs.
    pub(super) derivations: Vec<DerivationAt>,
}

impl ItemDifference {
    /// Adds what a derivation wants, as far as the item does not hold it.
    pub(super) fn add(&mut self, derivation: DerivationAt, held: Option<&Item>, wanted: Vec<Wanted>) {
        let mut differs = false;
        for wanted in wanted {
            if wanted.is_held_by(held) {
                continue;
            }
            differs = true;
            match wanted.value {
                Some(value) => drop(self.set.insert(wanted.name, value)),
                None => drop(self.remove.insert(wanted.name)),
            }
        }
        if differs {
            self.derivations.push(derivation);
        }
    }

    /// Names of the attributes that differ.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.set.keys().chain(self.remove.iter().map(String::as_str))
    }

    /// The write that makes the item what is wanted, if anything is.
    pub(super) fn verdict(self, look: &Look, whole: bool, guard: Guard) -> Verdict {
        if self.derivations.is_empty() {
            return Verdict::InStep;
        }
        let action = if whole {
            Action::Put(self.set)
        } else {
            Action::Update(Update { set: self.set, remove: self.remove, ..Update::default() })
        };
        let write = Write { table: Table::Main, key: look.item.clone(), action, guard: Some(guard) };
        Verdict::Write { write: Box::new(write), derivations: self.derivations }
    }
}

impl Wanted {
    /// Does the item hold the attribute as it is wanted?
    #[must_use]
    pub fn is_held_by(&self, held: Option<&Item>) -> bool {
        let stored = held.and_then(|item| item.get(&self.name));
        same(stored, self.value.as_ref()) || (self.zero_is_absent && stored.is_none_or(is_zero))
    }

    /// Gives an item the attribute as it is wanted, and as it is held where that is right: what builds on the attribute
    /// builds on what will be stored.
    pub fn apply(&self, item: &mut Item, held: Option<&Item>) {
        let stored = held.and_then(|item| item.get(&self.name));
        let value = if self.is_held_by(held) { stored } else { self.value.as_ref() };
        match value {
            Some(value) => drop(item.insert(self.name.clone(), value.clone())),
            None => drop(item.remove(&self.name)),
        }
    }
}
