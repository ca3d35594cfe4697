//! Works a cascade: lists a page of dependent items, or deletes a listed page, and moves the cursor.
//!
//! Each move of the cursor creates a record of the job, and the handling of that record does the next page. So after a
//! crash the job continues at the cursor, and memory does not grow with the number of dependent items.

use derive::{
    declaration::{Cascade, Hanging, Way, through},
    effect::Removal,
    kind::Shape,
    query::Query,
    write::{Action, Table, Write},
};
use keys::{
    counter::derivation_prefix,
    item::{Item, text},
    key::Key,
};
use store::Store;

use crate::{
    fan_out::page,
    input::Occasion,
    job::{
        Job, Pass, Task,
        touch::{self, TouchFailure, Work},
    },
    jobs::ground::{
        Worker,
        deletions::{Deletion, Listed, chunks, page_of_list},
    },
    protocol::ProtocolStep,
};

/// Items of a page: few enough that a page takes less than a second.
const PAGE_ITEMS: u32 = 100;

/// A page of an owner's dependent items, with their current content.
struct HangingPage {
    listed: Vec<Listed>,
    next: Option<store::Cursor>,
}

impl<S: Store> Worker<'_, S> {
    /// Does a page of a job and moves its cursor.
    pub(super) async fn work(&self, key: &Key, work: &mut Work<'_>) -> Result<(), TouchFailure> {
        if let Some(source) = self.redriven(work) {
            return page::begin_again(self.context, work.touch.derivation, &source, work).await;
        }
        let item = touch::item_now(self.context, Table::Main, key, work).await?;
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
        let held = self.items_now(&keyed.map(|(key, _)| key).collect::<Vec<_>>(), work).await?;
        let is_found = |(_, item): &(Key, Item)| {
            let sort_key = text(item, &index.sk);
            let is_there = text(item, &index.pk) == Some(&query.pk) && sort_key.is_some_and(|it| query.sk.holds(it));
            is_there || !self.context.takes(ProtocolStep::StillFound)
        };
        Ok(held.into_iter().filter(is_found).collect())
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
