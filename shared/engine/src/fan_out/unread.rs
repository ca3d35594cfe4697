//! Writing what is copied from a source to the items that a search found, without reading them.
//!
//! *Keeps true*: an item that is written so names the source, since the write asks for that. What its copy holds does not
//! depend on what it held, so it is written where it was right already, too. What builds on the copy is looked at by the
//! write's own record.
//!
//! Nearly all items of a page hold the old value, so reading each first would mostly say what is known: a read unit for
//! each write unit.

use std::collections::BTreeSet;

use derive::{
    guard::{Guard, Purpose},
    position::DerivationAt,
    refresh::Look,
    sources::{Source, Sources},
    write::{Action, Table, Update, Write},
};
use keys::key::Key;
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    batch::caught::caught,
    fan_out::page::Pager,
    look::{Looker, bells::Rung, looked::Looked, reading::ItemReader},
};

impl<S: Store> Pager<'_, S> {
    /// Reads the source, where it is not known yet.
    pub(crate) async fn read_source(
        &self,
        source: &Key,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(), GaveUp> {
        let source = Source::Item(source.clone());
        let unknown = if sources.knows(&source) { BTreeSet::new() } else { BTreeSet::from([source]) };
        ItemReader::new(self.context).read(unknown, sources, patience).await
    }

    /// Writes, without reading them, items that a search says to name this source: on the condition that they do. Gives
    /// back those that are to be looked at: where that takes more than the source, and where the condition failed.
    pub(crate) async fn write_unread(
        &self,
        rung: Vec<Rung>,
        source: &Key,
        sources: &Sources,
        patience: Patience<'_>,
        looked: &mut Looked,
    ) -> Vec<Rung> {
        let (mut writes, mut rest) = (Vec::new(), Vec::new());
        for rung in rung {
            // A kind that panics here does so where the item is looked at, too, which parks what asked for it.
            match caught("finding what it takes", || self.unread_write(&rung, source, sources)) {
                Ok(Some(write)) => writes.push((rung, write)),
                Ok(None) | Err(_) => rest.push(rung),
            }
        }
        rest.extend(Looker::new(self.context).write_all(writes, patience, looked).await);
        rest
    }

    fn unread_write(&self, rung: &Rung, source: &Key, sources: &Sources) -> Option<(Write, Vec<DerivationAt>)> {
        let (Look { item, entity, derivations, .. }, layout) = (&rung.look, &self.context.schema.layout);
        let at = derivations.iter().copied().next().filter(|_| derivations.len() == 1)?;
        if !sources.knows(&Source::Item(source.clone())) {
            return None;
        }
        let (mut says, wanted) =
            self.context.catalogue.refresh(at)?.taken_from(&self.context.schema, source, item, sources)?;
        // That it has its key says that it is there.
        says.extend(layout.key_item(item));
        says.extend(self.context.schema.mark_of(entity));
        let mut update = Update::default();
        for wanted in wanted {
            match wanted.value {
                Some(value) => drop(update.set.insert(wanted.name, value)),
                None => drop(update.remove.insert(wanted.name)),
            }
        }
        let says = says.into_iter().map(|(name, value)| (name, Some(value)));
        let (action, guard) = (Action::Update(update), Some(Guard::as_read(Purpose::UnreadTarget, says)));
        Some((Write { table: Table::Main, key: item.clone(), action, guard }, vec![at]))
    }
}
