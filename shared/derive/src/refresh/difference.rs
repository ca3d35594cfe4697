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
    write::{Action, Table, UPDATE_ATTRIBUTES_MAX, Update, Wanted, Write},
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

    /// Are there more attributes that differ than one update can change?
    pub(super) fn is_large(&self) -> bool {
        self.set.len() + self.remove.len() > UPDATE_ATTRIBUTES_MAX
    }

    /// The write that makes the item what is wanted, if anything is; `whole` is all of the item where it is to be put.
    ///
    /// What is too much for one update is written in part. The record of that write asks for a look, which writes more.
    pub(super) fn verdict(self, look: &Look, whole: Option<Item>, guard: Guard) -> Verdict {
        if self.derivations.is_empty() {
            return Verdict::InStep;
        }
        let action = whole.map_or_else(
            || {
                let set: Item = self.set.into_iter().take(UPDATE_ATTRIBUTES_MAX).collect();
                let remove = self.remove.into_iter().take(UPDATE_ATTRIBUTES_MAX - set.len()).collect();
                Action::Update(Update { set, remove, ..Update::default() })
            },
            Action::Put,
        );
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
