//! Changes to the application's own items: cascades. Fan-outs are jobs as well, and run here.
//!
//! A cascade cannot be corrected later, so it is strict: each change is a transaction with the condition that makes it
//! right, and each removal creates one job. An item that cannot be changed now is reported as not done, and its record
//! is redelivered; nothing is done twice.
//!
//! A cascade lists a page of dependent items, or deletes a listed page, and moves its cursor. Each move creates a record
//! of the job, and the handling of that record does the next page. So after a crash the job continues at the cursor, and
//! memory does not grow with the number of dependent items.
//!
//! # Orders
//!
//! An operator may pause, resume and cancel a job.
//!
//! *Keeps true*: an order reaches the job that was meant, or does nothing. An ended job stays ended: the order writes
//! nothing in its place, and treats a job that was created later as another job.
//!
//! Pausing and resuming a job raise its revision, as every order does. So a page in progress cannot move the cursor of
//! a paused job, and a paused job stays at its position. An order whose call arrives late, after other orders, does
//! nothing.

pub mod blocked;
pub(crate) mod deletions;
pub mod pulse;
pub mod sweep;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use derive::{
    declaration::{Cascade, Hanging, Way, through},
    effect::{Ground, Removal},
    kind::Shape,
    position::RecordAt,
    query::Query,
    write::{Action, Table, Update, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{
    counter::derivation_prefix,
    item::{Item, text},
    job::{JobKey, MOVES, PAUSED},
    key::Key,
};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store};
use tokio::sync::OwnedMutexGuard;

use crate::{
    account::{Account, Commit, undone},
    attribute::n,
    backoff::{GaveUp, Patience, Tries},
    clock::age_ms,
    context::Context,
    fan_out::{self, page},
    input::{Batch, Occasion},
    job::{
        Job, MOVED_AT, Pass, Task,
        touch::{self, TouchFailure, TouchOutcome, Work},
    },
    jobs::deletions::{Deletion, Listed, chunks, page_of_list},
    ledger::{HORIZON_MS, receipt_of},
    park,
    plan::Touch,
    protocol::ProtocolStep,
};

/// Number of effects that are handled at once.
const TOUCHES_AT_ONCE: usize = 16;

/// Handles the effects of records on the application's own items.
pub(crate) struct Worker<'a, S> {
    pub(crate) context: &'a Context<S>,
    turns: Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>,
}

impl<'a, S> Worker<'a, S> {
    pub(crate) fn new(context: &'a Context<S>) -> Self {
        Self { context, turns: Mutex::default() }
    }

    /// Waits for the turn of a cascade among those of the same batch with the same owner. The removal of an item and
    /// that of its mirror start two cascades that would delete the same items, and transactions that check one item at
    /// once conflict.
    async fn turn(&self, removal: &Removal) -> OwnedMutexGuard<()> {
        let owner = removal.absent.iter().min().unwrap_or(&removal.owner);
        let turn = self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(owner.clone()).or_default().clone();
        turn.lock_owned().await
    }
}

impl<S: Store> Worker<'_, S> {
    /// Handles the effects of records on the application's own items; jobs last, because they are not urgent.
    pub(crate) async fn touch(&self, touches: Vec<Touch>, batch: &Batch<'_>, account: &mut Account) {
        let (jobs, others): (Vec<Touch>, Vec<Touch>) =
            touches.into_iter().partition(|touch| matches!(touch.effect, Ground::Work(_)));
        let alone_ms = self.alone_ms(&others, account);
        for touches in [others, jobs] {
            let touched = touches.iter().map(|touch| {
                async move {
                    let mut work = Work { touch, batch, alone_ms, account: Account::default() };
                    let ended = if batch.patience.is_over() {
                        Err(TouchFailure::NotNow("no time is left for it".to_owned()))
                    } else {
                        Box::pin(self.touch_one(&mut work)).await
                    };
                    (touch, work.account, ended)
                }
                .boxed()
            });
            let touched: Vec<BoxFuture<'_, _>> = touched.collect();
            let ended: Vec<_> = stream::iter(touched).buffered(TOUCHES_AT_ONCE).collect().await;
            for (touch, of_one, ended) in ended {
                account.add(of_one);
                match ended {
                    Ok(()) => {}
                    Err(TouchFailure::NotNow(why)) => undone(account, [touch.position], &why),
                    Err(TouchFailure::Refused(cause)) => {
                        park::park(self.context, touch.position, [touch.derivation], &cause, batch, account).await;
                    }
                }
            }
        }
    }

    /// For how long only jobs ran, in milliseconds; `None` if other work ran in this batch. A fan-out's own writes and
    /// the change that started it do not count as other work, because nothing waits behind them. A new instance does not
    /// know what ran before: its first page takes the time of [`FanOutLimits::page_ms`](crate::limits::FanOutLimits).
    fn alone_ms(&self, others: &[Touch], account: &Account) -> Option<u64> {
        let now_ms = self.context.clock.now_ms();
        let begin = account.commits.iter().filter(|commit| JobKey::parse(&commit.key).is_some());
        let begin: BTreeSet<RecordAt> = begin.flat_map(|commit| &commit.causes).copied().collect();
        let is_of_others = |commit: &Commit| !commit.causes.is_subset(&begin);
        if !others.is_empty() || account.n_changes > begin.len() || account.commits.iter().any(is_of_others) {
            self.context.others_at_ms.store(now_ms, Ordering::Relaxed);
            return None;
        }
        let new_ms = now_ms.saturating_sub(self.context.fan_out.page_ms);
        let began = self.context.others_at_ms.compare_exchange(0, new_ms, Ordering::Relaxed, Ordering::Relaxed);
        Some(now_ms.saturating_sub(began.map_or_else(|others_at_ms| others_at_ms, |_| new_ms)))
    }

    async fn touch_one(&self, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        let Some(kind) = self.context.catalogue.derivation(work.touch.derivation).map(|derivation| &derivation.kind)
        else {
            return Ok(());
        };
        match (&work.touch.effect, kind.shape()) {
            (Ground::Cascade(removal), Shape::Cascade(_)) => self.start(removal, work).await,
            (Ground::Cascade(_), _) => Ok(()),
            (Ground::Work(key), _) => self.work(key, work).await,
        }
    }
}

// ---- Starting a cascade: a removal creates one job ----

impl<S: Store> Worker<'_, S> {
    /// True if a record may be so old that its receipt has expired.
    fn is_behind_horizon(&self, created_ms: Option<u64>) -> bool {
        let is_old = age_ms(created_ms, self.context.clock.now_ms()).is_none_or(|age_ms| age_ms > HORIZON_MS);
        is_old && self.context.takes(ProtocolStep::Horizon)
    }

    /// Creates the job of a removal, under a receipt; a removal from behind the ledger's horizon creates none.
    async fn start(&self, removal: &Removal, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        let Some(record) = work.batch.record(work.touch.position) else { return Ok(()) };
        let (id, now_ms) = (park::id(&record.head, record.text), self.context.clock.now_ms());
        let derivation = self.context.catalogue.label(work.touch.derivation);
        if self.is_behind_horizon(record.head.created_ms) {
            tracing::warn!(event_id = %id, derivation, owner = removal.owner.for_log(), "a removal starts no cascade: it is too old, or its time is unknown or ahead of this clock");
            return Ok(());
        }
        let name = self.context.catalogue.name(work.touch.derivation).to_owned();
        let key = JobKey { derivation: name, id: id.clone() };
        let mut job = Job::waiting(&key, removal.clone(), now_ms, now_ms.saturating_add(self.context.settle_ms));
        job.is_running = !self.context.takes(ProtocolStep::Settle);
        let action = Action::Put(job.item(&self.context.schema.layout));
        let due = job.entry().put(&self.context.schema.layout);
        let put = Write { table: Table::Main, key: job.key, action, guard: None };
        let receipt = receipt_of(&self.context.schema.layout, &Key::new(format!("RECEIPT#{id}"), derivation), now_ms);
        let writes = if self.context.takes(ProtocolStep::StartOnce) { vec![receipt, put, due] } else { vec![put, due] };
        match touch::decided(self.context, writes, work).await? {
            TouchOutcome::Done => {
                tracing::info!(event_id = %id, derivation, owner = removal.owner.for_log(), "started a cascade");
            }
            TouchOutcome::Unheld(_) => {}
        }
        Ok(())
    }
}

// ---- Working a cascade: a page of dependent items after the other ----

/// Items of a page: few enough that a page takes less than a second.
const PAGE_ITEMS: u32 = 100;

/// A page of an owner's dependent items, with their current content.
struct HangingPage {
    listed: Vec<Listed>,
    next: Option<store::Cursor>,
}

impl<S: Store> Worker<'_, S> {
    /// Does a page of a job and moves its cursor.
    async fn work(&self, key: &Key, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        if let Some(source) = self.redriven(work) {
            return page::begin_again(self.context, work.touch.derivation, &source, work).await;
        }
        let item = self.context.item(Table::Main, key, work.batch.patience).await?;
        let job = item.and_then(|item| Job::of(&self.context.schema.layout, &item));
        let Some(job) = job.filter(|job| job.is_running && !job.is_paused) else { return Ok(()) };
        let kind = self.context.catalogue.derivation(work.touch.derivation).map(|derivation| &derivation.kind);
        match (&job.task, kind.map(|kind| kind.shape())) {
            (Task::FanOut(fan_out), _) => page::page_of(self.context, &job, fan_out, work).await,
            (Task::Cascade { removal, step, pass }, Some(Shape::Cascade(cascade))) => match *pass {
                Pass::Lists { n_pages } => self.list_hanging(&job, removal, (*step, n_pages), cascade, work).await,
                Pass::Deletes { page, n_pages } => {
                    self.delete_listed(&job, removal, (page, n_pages), cascade, work).await
                }
            },
            (Task::Cascade { .. }, _) => Ok(()),
        }
    }

    /// The source of a fan-out with a parked record that is being redriven, even if its job is paused or has ended.
    fn redriven(&self, work: &Work<'_>) -> Option<Key> {
        let record = work.batch.record(work.touch.position).filter(|_| work.batch.occasion == Occasion::Redrive)?;
        let layout = &self.context.schema.layout;
        match Job::of(layout, record.change.as_ref().ok()?.new_image()?)?.task {
            Task::FanOut(fan_out) => Some(fan_out.source),
            Task::Cascade { .. } => None,
        }
    }

    /// Lists one page of dependent items. After the last page, starts the second grace period.
    async fn list_hanging(
        &self,
        job: &Job,
        removal: &Removal,
        (mut step, n_pages): (usize, u64),
        cascade: &Cascade,
        work: &mut Work<'_>,
    ) -> Result<(), TouchFailure> {
        let now_ms = self.context.clock.now_ms();
        let mut next = Job { n_moves: job.n_moves + 1, moved_at_ms: now_ms, ..job.clone() };
        while let Some(hanging) = cascade.hanging.get(step) {
            let HangingPage { listed, next: after } =
                self.page(cascade, (step, hanging), removal, next.after.clone(), work).await?;
            let listed_at = step;
            (step, next.after) = match after {
                Some(after) => (step, Some(after)),
                None => (step + 1, None),
            };
            if listed.is_empty() && next.after.is_none() {
                continue;
            }
            let is_more = u64::from(!listed.is_empty());
            let pass = Pass::Lists { n_pages: n_pages + is_more };
            next.task = Task::Cascade { removal: removal.clone(), step, pass };
            // In one transaction with the cursor, so that no late call writes a page of items from after the listing.
            let mut writes = vec![job.moves_to(&next)];
            if is_more > 0 {
                writes.push(page_of_list(&self.context.schema.layout, &job.key, (n_pages, listed_at), &listed, now_ms));
            }
            return touch::decided(self.context, writes, work).await.map(drop);
        }
        if n_pages == 0 {
            return self.end_job(&next, "nothing is left", work).await;
        }
        next.task = Task::Cascade { removal: removal.clone(), step, pass: Pass::Deletes { page: 0, n_pages } };
        next.due_at_ms = now_ms.saturating_add(self.context.settle_ms);
        next.is_running = !self.context.takes(ProtocolStep::SettleAgain);
        let writes = vec![job.moves_to(&next), next.entry().put(&self.context.schema.layout)];
        touch::decided(self.context, writes, work).await.map(drop)
    }

    /// Deletes a listed page.
    async fn delete_listed(
        &self,
        job: &Job,
        removal: &Removal,
        (page, n_pages): (u64, u64),
        cascade: &Cascade,
        work: &mut Work<'_>,
    ) -> Result<(), TouchFailure> {
        let Some((step, listed)) = self.listed(job, page, work).await? else {
            return self.list_anew(job, removal, work).await;
        };
        let Some(hanging) = cascade.hanging.get(step) else {
            return self.end_job(job, "what it listed is not declared any more", work).await;
        };
        let _turn = self.turn(removal).await;
        let writes = self.fates(listed, cascade, hanging, removal, work).await?;
        let mut next = Job { n_moves: job.n_moves + 1, moved_at_ms: self.context.clock.now_ms(), ..job.clone() };
        for writes in chunks(writes, removal.absent.len()) {
            match Box::pin(self.delete(writes, removal, work)).await? {
                Deletion::Done(n_done) => next.n_touched += n_done,
                Deletion::OwnerExists => return self.end_job(job, "its owner exists again", work).await,
            }
        }
        if page + 1 >= n_pages {
            return self.end_job(&next, "nothing is left of what was listed", work).await;
        }
        next.task = Task::Cascade { removal: removal.clone(), step, pass: Pass::Deletes { page: page + 1, n_pages } };
        touch::written(self.context, job.moves_to(&next), work).await
    }

    /// Lists the dependent items again, because a page of the list has expired. Deleted items no longer exist.
    async fn list_anew(&self, job: &Job, removal: &Removal, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        let (derivation, owner) = (self.context.catalogue.label_of(&job.derivation), job.origin().for_log());
        tracing::warn!(derivation, owner, "the list of a cascade has expired: it lists again");
        let task = Task::Cascade { removal: removal.clone(), step: 0, pass: Pass::Lists { n_pages: 0 } };
        let moved_at_ms = self.context.clock.now_ms();
        let next = Job { n_moves: job.n_moves + 1, moved_at_ms, task, after: None, ..job.clone() };
        touch::written(self.context, job.moves_to(&next), work).await
    }

    async fn page(
        &self,
        cascade: &Cascade,
        (step, hanging): (usize, &Hanging),
        removal: &Removal,
        after: Option<store::Cursor>,
        work: &Work<'_>,
    ) -> Result<HangingPage, TouchFailure> {
        let owner = &removal.owner;
        let (query, via) = match &hanging.found {
            Way::Named(_) => {
                let named = removal.named.iter().filter(|(of, _)| *of == step).map(|(_, key)| key.clone());
                let listed = self.listing(self.items_now(&named.collect::<Vec<_>>(), work).await?, hanging);
                return Ok(HangingPage { listed, next: None });
            }
            Way::Counters(derivation) => {
                (Some(Query::prefix(None, &owner.pk, derivation_prefix(owner, derivation))), hanging.entity.as_str())
            }
            Way::Found(found) => {
                let fields = self.context.schema.entity(&cascade.owner).and_then(|owned| owned.key.parse_key(owner));
                (fields.and_then(|fields| found.query(&self.context.schema, &fields)), found.via.as_str())
            }
        };
        let Some(query) = query.map(|query| Query { limit: Some(PAGE_ITEMS), ..query }) else {
            return Ok(HangingPage { listed: Vec::new(), next: None });
        };
        let page = work.batch.patience.call(|| self.context.store.query(Table::Main, &query, after.clone())).await?;
        let found = self.still_found(page.items, &query, work).await?;
        let schema = &self.context.schema;
        let items = if via == hanging.entity {
            found.into_iter().filter(|(key, item)| schema.image(key, item).is_some_and(|image| image.is(via))).collect()
        } else {
            let leads_to = |(key, item): &(Key, Item)| {
                if let Some(image) = schema.image(key, item).filter(|image| image.is(via)) {
                    return through(schema, &image, &hanging.entity);
                }
                // An application item under the key of a mirror that waits: the key shows which item the mirror repeats.
                let fields = schema.entity(via)?.key.parse_key(key)?;
                schema.entity(&hanging.entity)?.build_of(|name| fields.get(name)).ok()
            };
            self.items_now(&found.iter().filter_map(leads_to).collect::<Vec<_>>(), work).await?
        };
        Ok(HangingPage { listed: self.listing(items, hanging), next: page.next })
    }

    /// The items of a query's result that still match, with their current content. If an item has moved to another
    /// owner, a lagging index may still return it for the former one.
    async fn still_found(
        &self,
        items: Vec<Item>,
        query: &Query,
        work: &Work<'_>,
    ) -> Result<Vec<(Key, Item)>, TouchFailure> {
        let layout = &self.context.schema.layout;
        let keyed = items.into_iter().filter_map(|item| Some((layout.key(&item)?, item)));
        let Some(index) = query.index.as_deref().and_then(|name| layout.index(name)) else {
            return Ok(keyed.collect());
        };
        let stored = self.items_now(&keyed.map(|(key, _)| key).collect::<Vec<_>>(), work).await?;
        let is_found = |(_, item): &(Key, Item)| {
            let sort_key = text(item, &index.sk);
            let is_there = text(item, &index.pk) == Some(&query.pk) && sort_key.is_some_and(|it| query.sk.holds(it));
            is_there || !self.context.takes(ProtocolStep::StillFound)
        };
        Ok(stored.into_iter().filter(is_found).collect())
    }

    async fn end_job(&self, job: &Job, why: &str, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        tracing::info!(
            derivation = self.context.catalogue.label_of(&job.derivation),
            owner = job.origin().for_log(),
            touched = job.n_touched,
            why,
            "ended a cascade"
        );
        touch::written(
            self.context,
            Write { table: Table::Main, key: job.key.clone(), action: Action::Delete, guard: None },
            work,
        )
        .await
    }
}

// ---- An operator's orders: pause, resume, cancel ----

/// An order for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrder {
    /// Pauses the job, whatever its state.
    Pause,
    /// The job continues from where it was paused.
    Resume,
    /// Cancels the job: the rest of its work stays undone.
    Cancel,
}

/// The result of an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Obeyed {
    /// It is done; with the job as it was just before.
    Done(Box<Job>),
    /// The job already had the ordered state.
    Already,
    /// The job has ended meanwhile.
    Gone,
}

impl Job {
    /// The write that carries out the order; `None` if the job already has the ordered state.
    fn obeys(&self, order: JobOrder, now_ms: u64) -> Option<Write> {
        let moves = (MOVES.to_owned(), n(self.n_moves + 1));
        let action = match order {
            JobOrder::Pause if self.is_paused => return None,
            JobOrder::Resume if !self.is_paused => return None,
            JobOrder::Pause => {
                let stored = (PAUSED.to_owned(), AttributeValue::Bool(true));
                Action::Update(Update::set(Item::from([moves, stored])))
            }
            JobOrder::Resume => {
                // As if the job had just moved, so that no sweep treats it as stalled.
                let set = Item::from([moves, (MOVED_AT.to_owned(), n(now_ms))]);
                let remove = BTreeSet::from([PAUSED.to_owned()]);
                Action::Update(Update { set, remove, ..Update::default() })
            }
            JobOrder::Cancel => Action::Delete,
        };
        Some(Write { table: Table::Main, key: self.key.clone(), action, guard: Some(self.unmoved()) })
    }
}

/// True if the job searches an index. The sweep then [repeats](crate::fan_out::again) the whole search when the index
/// has had time to catch up, which creates another such job, cancelled or not.
#[must_use]
pub(crate) fn is_searched_again<S: Store>(context: &Context<S>, job: &Job) -> bool {
    let position = context.catalogue.position(&job.derivation).filter(|_| matches!(job.task, Task::FanOut(_)));
    let find = position.and_then(|position| fan_out::search_of(context, position, job.origin()));
    find.is_some_and(|find| find.query.index.is_some())
}

/// Carries out an order for a job that was read before.
pub(crate) async fn order<S: Store>(
    context: &Context<S>,
    job: &Job,
    order: JobOrder,
    deadline_ms: u64,
) -> Result<Obeyed, GaveUp> {
    let patience = Patience::new(context.clock.as_ref(), deadline_ms);
    let mut tries = Tries::default();
    loop {
        let stored = context.item(Table::Main, &job.key, patience).await?;
        let stored = stored.and_then(|item| Job::of(&context.schema.layout, &item));
        let Some(stored) = stored.filter(|stored| stored.started_at_ms == job.started_at_ms) else {
            return Ok(Obeyed::Gone);
        };
        let Some(write) = stored.obeys(order, context.clock.now_ms()) else { return Ok(Obeyed::Already) };
        match patience.call(|| context.store.write(&write)).await? {
            Outcome::Done { .. } => return Ok(Obeyed::Done(Box::new(stored))),
            // The job moved on, or has ended.
            Outcome::GuardFailed if patience.wait(&mut tries).await => {}
            Outcome::GuardFailed => return Err(GaveUp::OutOfTime { last: None }),
        }
    }
}
