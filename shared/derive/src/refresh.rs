//! The refresh: how an item is compared with its definition.
//!
//! From a [look](Look), the item and its sources to a [verdict](Verdict): the item is correct, or one write corrects
//! it. The engine reads what a [`step`] requests until there is a verdict.
//!
//! Why it is correct under repeats and reordering: a verdict depends on what was read, never on the change that
//! requested the refresh. A write that was decided on a stale read creates a record when it lands; that record requests
//! another refresh of the item, which corrects it. Refreshing ends when nothing differs, and a refresh right after a
//! correct write finds no difference.
//!
//! Example: a Follow of Bob by Ann is inserted. Its request names the Follower item `USER#bob / FOLLOWER#ann`. Step one
//! requests the Follow itself, since the Follower is its mirror; step two requests Ann, whose name the Follower copies.
//! The item does not exist, so the verdict is to put it, whole. Its INSERT record requests one more refresh, which
//! finds no difference.

use std::collections::BTreeSet;

use keys::{
    entity::Definition,
    item::{Item, is_stores_own},
    key::Key,
    layout::Layout,
    value::{is_zero, same},
};

use crate::{
    catalogue::Catalogue,
    guard::{Guard, Purpose},
    kind::{Computed, Refresh, RefreshTarget},
    position::DerivationAt,
    schema::Schema,
    sources::{Source, Sources},
    write::{Action, Table, UPDATE_ATTRIBUTES_MAX, Update, Wanted, Write},
};

/// An item to refresh, and the derivations that requested it. Refreshes of one item are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The item, which need not exist.
    pub item: Key,
    /// Its entity.
    pub entity: String,
    /// Positions in the catalogue of the derivations concerned.
    pub derivations: BTreeSet<DerivationAt>,
    /// Sources that changes named.
    pub named: BTreeSet<Key>,
}

/// The next step in refreshing an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// These must be read first.
    Read(Vec<Source>),
    /// It is decided.
    Decided(Verdict),
}

/// The outcome of refreshing an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The item is correct.
    InStep,
    /// A derived item should be under the key, but a foreign item is there, which stays. The position is that of the
    /// derivation that would create the derived item.
    Occupied(DerivationAt),
    /// This write corrects it.
    Write {
        /// The write.
        write: Box<Write>,
        /// Positions in the catalogue of the derivations whose part differed.
        derivations: Vec<DerivationAt>,
    },
}

impl Look {
    fn target<'a>(&'a self, definition: &'a Definition, item: Option<&'a Item>) -> RefreshTarget<'a> {
        RefreshTarget { key: &self.item, definition, item, named: &self.named, hour: None }
    }
}

/// Refreshes an item with the stored content `held`, as far as `sources` are known.
///
/// Its parts are computed in the catalogue's order. Each builds on the correct values of those before it, so that one
/// write corrects the item.
#[must_use]
pub fn step(schema: &Schema, catalogue: &Catalogue, look: &Look, held: Option<&Item>, sources: &Sources) -> Step {
    let Some(definition) = schema.entity(&look.entity) else { return Step::Decided(Verdict::InStep) };
    let parts: Vec<DerivationAt> = catalogue.refreshing(&look.entity).collect();
    let maker = parts.iter().copied().find(|&at| catalogue.refresh(at).is_some_and(Refresh::makes_item));

    let made = match maker.filter(|at| look.derivations.contains(at)).and_then(|at| catalogue.refresh(at)) {
        None => None,
        Some(mirror) => match unknown(mirror.sources(schema, &look.target(definition, held)), sources) {
            missing if !missing.is_empty() => return Step::Read(missing),
            _ => match mirror.compute(schema, &look.target(definition, held), sources) {
                Computed::Item(item) => Some(item),
                Computed::Attributes(_) => None,
            },
        },
    };
    let is_held = held.is_some_and(|item| schema.image(&look.item, item).is_some_and(|image| image.is(&look.entity)));
    let (base, whole) = match (&made, held) {
        (Some(None), Some(item)) if is_held => return Step::Decided(removal(&schema.layout, look, item, maker)),
        (Some(Some(item)), held) if is_held || held.is_none() => (item, held.is_none()),
        (Some(Some(_)), Some(_)) => return Step::Decided(maker.map_or(Verdict::InStep, Verdict::Occupied)),
        (None, Some(item)) if is_held => (item, false),
        (None | Some(_), _) => return Step::Decided(Verdict::InStep),
    };

    let mut difference = ItemDifference::default();
    if let (Some(at), Some(Some(item))) = (maker, &made) {
        difference.add(at, held, owned(definition, item, held));
    }
    let mut becoming = base.clone();
    if let (Some(_), Some(held)) = (&made, held) {
        let others = held.iter().filter(|(name, _)| definition.derives(name) && !base.contains_key(name));
        becoming.extend(others.map(|(name, value)| (name.to_owned(), value.clone())));
    }
    let mut missing = BTreeSet::new();
    for at in parts.into_iter().filter(|at| Some(*at) != maker) {
        let concerned =
            whole || look.derivations.contains(&at) || catalogue.reads_any(at, &look.entity, difference.names());
        let Some(part) = catalogue.refresh(at).filter(|_| concerned) else { continue };
        let hour = if part.reads_clock() { sources.hour() } else { None };
        let target = RefreshTarget { hour, ..look.target(definition, Some(&becoming)) };
        let unknown = unknown(part.sources(schema, &target), sources);
        if !unknown.is_empty() {
            missing.extend(unknown);
        } else if let Computed::Attributes(wanted) = part.compute(schema, &target, sources) {
            for wanted in &wanted {
                wanted.apply(&mut becoming, held);
            }
            difference.add(at, held, wanted);
        }
    }
    if !missing.is_empty() {
        return Step::Read(missing.into_iter().collect());
    }
    // If another item took the key meanwhile, it is not changed.
    let purpose = if made.is_some() { Purpose::MirrorType } else { Purpose::Update };
    // A mirror belongs to Ripple, so the whole content of a mirror with many differing attributes is known and put.
    let put = whole || (is_held && matches!(made, Some(Some(_))) && difference.is_large());
    let guard = Guard::same_type(purpose, &schema.layout, held);
    Step::Decided(difference.verdict(look, put.then_some(becoming), guard))
}

/// What decides the refresh of an item with the stored content `held`, as far as these sources are known.
#[must_use]
pub fn decided_by(
    schema: &Schema,
    catalogue: &Catalogue,
    look: &Look,
    held: Option<&Item>,
    sources: &Sources,
) -> BTreeSet<Source> {
    // A step requests the sources that it does not know.
    let (mut asked, mut own, mut is_known) = (BTreeSet::new(), Sources::default(), true);
    while is_known && let Step::Read(more) = step(schema, catalogue, look, held, &own) {
        is_known = more.iter().all(|source| own.add_known(schema, source, sources));
        asked.extend(more);
    }
    asked
}

fn unknown(wanted: Vec<Source>, sources: &Sources) -> Vec<Source> {
    let wanted: BTreeSet<Source> = wanted.into_iter().filter(|source| !sources.knows(source)).collect();
    wanted.into_iter().collect()
}

/// A mirror without an existing source is deleted, unless another item took its key meanwhile. If a source appeared
/// meanwhile, the deletion's own record requests a refresh with the claims of the mirror, and the mirror is recreated.
fn removal(layout: &Layout, look: &Look, held: &Item, maker: Option<DerivationAt>) -> Verdict {
    let guard = Some(Guard::same_type(Purpose::MirrorType, layout, Some(held)));
    Verdict::Write {
        write: Box::new(Write { table: Table::Main, key: look.item.clone(), action: Action::Delete, guard }),
        derivations: maker.into_iter().collect(),
    }
}

/// The attributes that a mirror should have, besides those of other derivations: exactly the computed ones.
#[must_use]
pub fn owned(definition: &Definition, item: &Item, held: Option<&Item>) -> Vec<Wanted> {
    let is_ours = |name: &&str| !item.contains_key(name) && !definition.derives(name) && !is_stores_own(name);
    let gone = held.into_iter().flat_map(Item::keys).filter(is_ours);
    let gone = gone.map(|name| Wanted { name: name.to_owned(), value: None, zero_is_absent: false });
    let there = item.iter().map(|(name, value)| Wanted {
        name: name.to_owned(),
        value: Some(value.clone()),
        zero_is_absent: false,
    });
    gone.chain(there).collect()
}

// ---- difference ----

/// The attributes that differ from the stored ones.
#[derive(Default)]
struct ItemDifference {
    /// The attributes to set.
    set: Item,
    remove: BTreeSet<String>,
    /// Positions in the catalogue of the derivations whose part differs.
    derivations: Vec<DerivationAt>,
}

impl ItemDifference {
    /// Adds the attributes that a derivation wants and the item does not have.
    fn add(&mut self, derivation: DerivationAt, held: Option<&Item>, wanted: Vec<Wanted>) {
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
    fn names(&self) -> impl Iterator<Item = &str> {
        self.set.keys().chain(self.remove.iter().map(String::as_str))
    }

    /// True if more attributes differ than one update can change.
    fn is_large(&self) -> bool {
        self.set.len() + self.remove.len() > UPDATE_ATTRIBUTES_MAX
    }

    /// The write that corrects the item, if anything differs; `whole` is the whole item if it is to be put.
    ///
    /// If there is too much for one update, a part is written. The record of that write requests a refresh, which
    /// writes more.
    fn verdict(self, look: &Look, whole: Option<Item>, guard: Guard) -> Verdict {
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
    /// True if the item has the attribute as wanted.
    #[must_use]
    pub fn is_held_by(&self, held: Option<&Item>) -> bool {
        let stored = held.and_then(|item| item.get(&self.name));
        same(stored, self.value.as_ref()) || (self.zero_is_absent && stored.is_none_or(is_zero))
    }

    /// Sets the attribute as wanted, or as stored if that is correct: dependent parts build on the value that will be
    /// stored.
    pub fn apply(&self, item: &mut Item, held: Option<&Item>) {
        let stored = held.and_then(|item| item.get(&self.name));
        let value = if self.is_held_by(held) { stored } else { self.value.as_ref() };
        match value {
            Some(value) => drop(item.insert(self.name.clone(), value.clone())),
            None => drop(item.remove(&self.name)),
        }
    }
}

#[cfg(test)]
mod tests;
