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
pub mod reading;

use std::collections::BTreeSet;

use derive::{
    refresh::{Source, Sources, Step, Verdict, step},
    write::Write,
};
use futures::{StreamExt, stream};
use store::{Outcome, Store};

use crate::{
    account::{Account, Commit, undone},
    backoff::{GaveUp, describe},
    batch::caught::caught,
    batch::input::Batch,
    context::Context,
    fan_out::search::Searcher,
    look::bells::{Bells, Rung},
    look::correction::is_correction,
    look::own_image::OwnImages,
    look::reading::{CALLS_AT_ONCE, Held, ItemReader},
    park::Parker,
};

/// Items that are looked at together. Bounds memory; a step is then one batched read for all of them.
const LOOKS_AT_ONCE: usize = 1_000;

/// How often an item is looked at anew after its guard failed, before its record is reported as not done.
const ROUNDS_MAX: usize = 8;

/// Looks at items, and writes those that are not in step.
pub(crate) struct Looker<'a, S> {
    pub(crate) context: &'a Context<S>,
}

impl<'a, S> Looker<'a, S> {
    pub(crate) const fn new(context: &'a Context<S>) -> Self {
        Self { context }
    }
}

impl<S: Store> Looker<'_, S> {
    /// Looks at all items whose bells a batch rang.
    pub(crate) async fn look(&self, mut bells: Bells, images: &OwnImages, batch: &Batch<'_>, account: &mut Account) {
        Searcher::new(self.context).search(&mut bells, batch, account).await;
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
            let held = match ItemReader::new(self.context).held(keys, batch.patience).await {
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
                let stepping = || step(&self.context.schema, &self.context.catalogue, &rung.look, item, sources);
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
            if let Err(error) = ItemReader::new(self.context).read(wanted, sources, batch.patience).await {
                undone(account, all_causes(&undecided), &describe(&error));
                return differing;
            }
        }
        differing
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
            let outcome = batch.patience.call_meeting(&mut met, || self.context.store.write(&write)).await;
            (rung, write, derivations, outcome, met, self.context.clock.now_ms())
        });
        let mut again = Vec::new();
        let mut done = stream::iter(writes).buffer_unordered(CALLS_AT_ONCE);
        let mut refused = Vec::new();
        while let Some((rung, write, derivations, outcome, met, at_ms)) = done.next().await {
            for busy in met {
                account.contention.met(derivations.first().map(|at| self.context.catalogue.name(*at)), busy);
            }
            match outcome {
                Ok(Outcome::Done { units }) => account.commits.push(Commit {
                    is_correction: is_correction(&rung, &write, batch),
                    key: write.key,
                    table: write.table,
                    at_ms,
                    units,
                    derivations: derivations.iter().map(|at| self.context.catalogue.name(*at).to_owned()).collect(),
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
            Parker::new(self.context)
                .park(*position, rung.look.derivations.iter().copied(), cause, batch, account)
                .await;
        }
    }
}

fn all_causes(rung: &[Rung]) -> BTreeSet<usize> {
    rung.iter().flat_map(|rung| rung.causes.iter().copied()).collect()
}
