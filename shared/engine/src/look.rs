//! Looking at items: reads what the refresh asks for, and writes what it decides.
//!
//! *Keeps true*: an item whose bell rang holds, at some moment after that, what its sources held; or the bell's record
//! is reported as not done and comes again.
//!
//! Cheap where nothing is to be done: sources are read once a batch, in batches, and an item's own record may show that
//! it is in step (module `own_image`). Before a write the item itself is read, consistently; but an item that a large
//! fan-out finds, of which it is known what it takes from its source, is written unread, and the write asks that it does
//! name that source. A write whose guard fails met another writer: the item is looked at once more.

pub(crate) mod bells;
pub(crate) mod correction;
pub mod listing;
pub(crate) mod own_image;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    query::Query,
    refresh::{Source, Sources, Step, Verdict, step},
    write::{Table, Write},
};
use futures::{StreamExt, stream};
use keys::{counter, item::Item, key::Key};
use store::{Outcome, Store};

use crate::{
    account::{Account, Commit, undone},
    backoff::{GaveUp, Patience, describe},
    batch::caught::caught,
    batch::{Batch, Engine},
    look::bells::{Bells, Rung},
    look::correction::is_correction,
    look::own_image::OwnImages,
};

/// Items that are looked at together. Bounds memory; a step is then one batched read for all of them.
const LOOKS_AT_ONCE: usize = 1_000;

/// Calls under way at once. Source: measured against the embedded database, where more gain nothing.
pub const CALLS_AT_ONCE: usize = 16;

/// How often an item is looked at anew after its guard failed, before its record is reported as not done.
const ROUNDS_MAX: usize = 8;

/// Items as they are held; `None` for one that does not exist.
pub type Held = BTreeMap<Key, Option<Item>>;

impl<S: Store> Engine<S> {
    /// Looks at all items whose bells a batch rang.
    pub(crate) async fn look(&self, mut bells: Bells, images: &OwnImages, batch: &Batch<'_>, account: &mut Account) {
        self.search(&mut bells, batch, account).await;
        self.look_at_rung(bells, images, batch, account).await;
    }

    /// Looks at all items whose bells rang.
    pub(crate) async fn look_at_rung(
        &self,
        bells: Bells,
        images: &OwnImages,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let mut sources = Sources::default();
        let mut rung: Vec<Rung> = bells.rung.into_values().collect();
        while !rung.is_empty() {
            let rest = rung.split_off(rung.len().min(LOOKS_AT_ONCE));
            if batch.patience.is_over() {
                undone(account, all_causes(&rung), "no time is left for all that it asks for");
            } else {
                self.look_at(rung, images, &mut sources, batch, account).await;
            }
            rung = rest;
        }
    }

    /// All pages of a query of the main table.
    pub(crate) async fn pages(&self, query: &Query, patience: Patience<'_>) -> Result<Vec<Item>, GaveUp> {
        self.pages_of(Table::Main, query, patience).await
    }

    /// All pages of a query of a table.
    pub(crate) async fn pages_of(
        &self,
        table: Table,
        query: &Query,
        patience: Patience<'_>,
    ) -> Result<Vec<Item>, GaveUp> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = patience.call(|| self.store.query(table, query, after.clone())).await?;
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(items);
            }
        }
    }

    pub(crate) async fn look_at(
        &self,
        rung: Vec<Rung>,
        images: &OwnImages,
        sources: &mut Sources,
        batch: &Batch<'_>,
        account: &mut Account,
    ) {
        let held: Held = rung.iter().filter_map(|rung| images.shown(&rung.look.item, &rung.causes)).collect();
        let (seen, unseen) = rung.into_iter().partition(|rung| held.contains_key(&rung.look.item));
        let differing = self.differing(seen, &held, sources, batch, account).await;
        let mut waiting: Vec<Rung> = differing.into_iter().map(|(rung, _)| rung).chain(unseen).collect();
        let mut fresh = Sources::default();
        for n_rounds in 0..ROUNDS_MAX {
            if waiting.is_empty() {
                return;
            }
            // What was read at the start of the batch serves until a guard fails: then all is read anew.
            let sources = if n_rounds == 0 { &mut *sources } else { &mut fresh };
            let keys = waiting.iter().map(|rung| rung.look.item.clone()).collect();
            let held = match self.held(keys, batch.patience).await {
                Ok(held) => held,
                Err(error) => return undone(account, all_causes(&waiting), &describe(&error)),
            };
            let differing = self.differing(waiting, &held, sources, batch, account).await;
            waiting = self.write_all(differing, batch, account).await;
            fresh = Sources::default();
        }
        undone(account, all_causes(&waiting), "other writers were at the item all the time");
    }

    /// Those of the items that are not in step, each with the write that brings it there.
    pub(crate) async fn differing(
        &self,
        rung: Vec<Rung>,
        held: &Held,
        sources: &mut Sources,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Vec<(Rung, (Write, Vec<usize>))> {
        let (mut undecided, mut differing) = (rung, Vec::new());
        while !undecided.is_empty() {
            let mut wanted: BTreeSet<Source> = BTreeSet::new();
            let mut waiting = Vec::new();
            for rung in undecided {
                let item = held.get(&rung.look.item).and_then(Option::as_ref);
                let stepping = || step(&self.schema, &self.catalogue, &rung.look, item, sources);
                match caught("looking at what it asks for", stepping) {
                    Ok(Step::Read(more)) => {
                        wanted.extend(more);
                        waiting.push(rung);
                    }
                    Ok(Step::Decided(Verdict::InStep)) => account.n_in_step += 1,
                    Ok(Step::Decided(Verdict::Write { write, derivations })) => {
                        differing.push((rung, (*write, derivations)));
                    }
                    Err(cause) => self.park_all(&rung, &cause, batch, account).await,
                }
            }
            undecided = waiting;
            if let Err(error) = self.read(wanted, sources, batch.patience).await {
                undone(account, all_causes(&undecided), &describe(&error));
                return differing;
            }
        }
        differing
    }

    /// These items, as they are held.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read.
    pub async fn held(&self, keys: Vec<Key>, patience: Patience<'_>) -> Result<Held, GaveUp> {
        let items = patience.call(|| self.store.get(Table::Main, &keys)).await?;
        let absent = keys.into_iter().map(|key| (key, None));
        Ok(absent.chain(items.into_iter().map(|(key, item)| (key, Some(item)))).collect())
    }

    /// Reads these sources, to the others.
    ///
    /// # Errors
    ///
    /// [`GaveUp`] when they cannot be read.
    pub async fn read(
        &self,
        wanted: BTreeSet<Source>,
        sources: &mut Sources,
        patience: Patience<'_>,
    ) -> Result<(), GaveUp> {
        let (mut keys, mut targets) = (Vec::new(), Vec::new());
        for source in wanted {
            match source {
                Source::Item(key) => keys.push(key),
                Source::Counters(target) => targets.push(target),
            }
        }
        if !keys.is_empty() {
            for (key, item) in self.held(keys, patience).await? {
                sources.add_item(key, item);
            }
        }
        let queries = targets.into_iter().map(|target| async move {
            let query = Query::prefix(None, &target.pk, counter::prefix(&target));
            let items = self.pages(&query, patience).await;
            (target, items)
        });
        let counted: Vec<_> = stream::iter(queries).buffer_unordered(CALLS_AT_ONCE).collect().await;
        for (target, items) in counted {
            sources.add_counters(&self.schema, target, &items?);
        }
        Ok(())
    }

    /// Does the writes, and gives back those whose guard failed.
    pub(crate) async fn write_all(
        &self,
        differing: Vec<(Rung, (Write, Vec<usize>))>,
        batch: &Batch<'_>,
        account: &mut Account,
    ) -> Vec<Rung> {
        let writes = differing.into_iter().map(|(rung, (write, derivations))| async move {
            let mut met = Vec::new();
            let outcome = batch.patience.call_meeting(&mut met, || self.store.write(&write)).await;
            (rung, write, derivations, outcome, met, self.clock.now_ms())
        });
        let mut again = Vec::new();
        let mut done = stream::iter(writes).buffer_unordered(CALLS_AT_ONCE);
        let mut refused = Vec::new();
        while let Some((rung, write, derivations, outcome, met, at_ms)) = done.next().await {
            for busy in met {
                account.contention.met(derivations.first().map(|at| self.catalogue.name(*at)), busy);
            }
            match outcome {
                Ok(Outcome::Done { units }) => account.commits.push(Commit {
                    is_correction: is_correction(&rung, &write, batch),
                    key: write.key,
                    table: write.table,
                    at_ms,
                    units,
                    derivations: derivations.iter().map(|at| self.catalogue.name(*at).to_owned()).collect(),
                    causes: rung.causes,
                }),
                Ok(Outcome::GuardFailed) => {
                    account.sends_again(derivations);
                    again.push(rung);
                }
                Err(GaveUp::Refused(error)) => refused.push((rung, describe(&error))),
                Err(error @ GaveUp::OutOfTime { .. }) => undone(account, rung.causes, &describe(&error)),
            }
        }
        drop(done);
        for (rung, cause) in refused {
            self.park_all(&rung, &cause, batch, account).await;
        }
        again
    }

    async fn park_all(&self, rung: &Rung, cause: &str, batch: &Batch<'_>, account: &mut Account) {
        for position in &rung.causes {
            self.park(*position, rung.look.derivations.iter().copied(), cause, batch, account).await;
        }
    }
}

fn all_causes(rung: &[Rung]) -> BTreeSet<usize> {
    rung.iter().flat_map(|rung| rung.causes.iter().copied()).collect()
}
