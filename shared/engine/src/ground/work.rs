//! Working a cascade: a page of what hangs on the removed item, and the cursor moves on.
//!
//! Moving the cursor makes a record of the job, and that record's handling does the next page. So a crash goes on at the
//! cursor, and nothing is held that grows with what hangs there.

use std::collections::BTreeMap;

use derive::{
    effect::Removal,
    guard::Guard,
    kinds::{
        cascade::{Cascade, Fate, Hanging, Way},
        copy::through,
    },
    query::Query,
    write::{Action, Table, Update, Write},
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use keys::{counter::derivation_prefix, item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store};

use super::{Stop, TOUCHES_AT_ONCE, Touched, Work};
use crate::{
    account::Account,
    attribute::s,
    batch::{Engine, Occasion},
    job::{Job, Task},
};

/// Items of a page: so few that a page is over within a second.
const PAGE_ITEMS: u32 = 100;

/// A page of what hangs on an owner.
struct Page {
    keys: Vec<Key>,
    next: Option<store::Cursor>,
}

/// How a deletion ended.
enum Met {
    Done,
    Skipped,
    OwnerExists,
}

impl<S: Store> Engine<S> {
    /// Does a page of a job and moves its cursor.
    pub(super) async fn work(&self, key: &Key, work: &mut Work<'_>) -> Result<(), Stop> {
        if let Some(source) = self.redriven(work) {
            return self.begin_again(work.touch.derivation, &source, work).await;
        }
        let item = self.item_now(Table::Main, key, work).await?;
        let job = item.and_then(|item| Job::of(&self.schema.layout, &item));
        let Some(job) = job.filter(|job| job.is_running && !job.is_paused) else { return Ok(()) };
        let kind = self.catalogue.derivation(work.touch.derivation).map(|derivation| &derivation.kind);
        match (&job.task, kind.and_then(|kind| kind.cascade())) {
            (Task::FanOut(fan_out), _) => self.page_of(&job, fan_out, work).await,
            (Task::Cascade { removal, step }, Some(cascade)) => self.cascade(&job, removal, *step, cascade, work).await,
            (Task::Cascade { .. }, None) => Ok(()),
        }
    }

    /// The source of a fan-out of which a record was parked and is redriven, whether its job is held or has ended.
    fn redriven(&self, work: &Work<'_>) -> Option<Key> {
        let record =
            work.batch.records.get(work.touch.position).filter(|_| work.batch.occasion == Occasion::Redrive)?;
        let layout = &self.schema.layout;
        match Job::of(layout, record.change.as_ref().ok()?.new_image()?)?.task {
            Task::FanOut(fan_out) => Some(fan_out.source),
            Task::Cascade { .. } => None,
        }
    }

    async fn cascade(
        &self,
        job: &Job,
        removal: &Removal,
        mut step: usize,
        cascade: &Cascade,
        work: &mut Work<'_>,
    ) -> Result<(), Stop> {
        let mut next = Job { n_moves: job.n_moves + 1, ..job.clone() };
        while let Some(hanging) = cascade.hanging.get(step) {
            let page = self.page(cascade, (step, hanging), removal, next.after.clone(), work).await?;
            let fates = page.keys.into_iter().map(|key| {
                let (touch, batch, is_alone) = (work.touch, work.batch, work.is_alone);
                async move {
                    let mut one = Work { touch, batch, is_alone, account: Account::default() };
                    let met = self.meet(key, cascade, hanging, removal, &mut one).await;
                    (met, one.account)
                }
                .boxed()
            });
            let fates: Vec<BoxFuture<'_, _>> = fates.collect();
            let met: Vec<_> = stream::iter(fates).buffer_unordered(TOUCHES_AT_ONCE).collect().await;
            let met: Vec<_> = met.into_iter().map(|(met, account)| (met, work.account.add(account)).0).collect();
            let mut n_met = 0;
            for met in met {
                match met? {
                    Met::Done => n_met += 1,
                    Met::Skipped => {}
                    Met::OwnerExists => return self.end_job(job, "its owner exists again", work).await,
                }
            }
            next.n_touched += n_met;
            (step, next.after) = match page.next {
                Some(after) => (step, Some(after)),
                None => (step + 1, None),
            };
            next.task = Task::Cascade { removal: removal.clone(), step };
            if n_met > 0 || next.after.is_some() {
                next.moved_at_ms = self.clock.now_ms();
                return self.written(job.moves_to(&next), work).await;
            }
        }
        self.end_job(&next, "nothing is left", work).await
    }

    async fn page(
        &self,
        cascade: &Cascade,
        (step, hanging): (usize, &Hanging),
        removal: &Removal,
        after: Option<store::Cursor>,
        work: &Work<'_>,
    ) -> Result<Page, Stop> {
        let owner = &removal.owner;
        let (query, via) = match &hanging.found {
            Way::Named(_) => {
                let named = removal.named.iter().filter(|(of, _)| *of == step);
                return Ok(Page { keys: named.map(|(_, key)| key.clone()).collect(), next: None });
            }
            Way::Counters(derivation) => {
                (Some(Query::prefix(None, &owner.pk, derivation_prefix(owner, derivation))), hanging.entity.as_str())
            }
            Way::Found(found) => {
                let fields = self.schema.entity(&cascade.owner).and_then(|owned| owned.key.parse_key(owner));
                (fields.and_then(|fields| found.query(&self.schema, &fields)), found.via.as_str())
            }
        };
        let Some(query) = query.map(|query| Query { limit: Some(PAGE_ITEMS), ..query }) else {
            return Ok(Page { keys: Vec::new(), next: None });
        };
        let page = work.batch.patience.call(|| self.store.query(Table::Main, &query, after.clone())).await?;
        let leads_to = |item: &Item| {
            let key = self.schema.layout.key(item)?;
            let via = self.schema.image(&key, item).filter(|image| image.is(via))?;
            through(&self.schema, &via, &hanging.entity)
        };
        Ok(Page { keys: page.items.iter().filter_map(leads_to).collect(), next: page.next })
    }

    /// What becomes of one item, in a transaction that checks that its owner is absent.
    async fn meet(
        &self,
        key: Key,
        cascade: &Cascade,
        hanging: &Hanging,
        removal: &Removal,
        work: &mut Work<'_>,
    ) -> Result<Met, Stop> {
        let absent = removal.absent.iter().map(|owner| Write {
            table: Table::Main,
            key: owner.clone(),
            action: Action::Check,
            guard: Some(Guard::OwnerAbsent),
        });
        // Without a type attribute its key says what it is; then it is asked to be there at all.
        let layout = &self.schema.layout;
        let of_entity = layout.type_of(&hanging.entity).unwrap_or_else(|| (layout.sk.clone(), s(&key.sk)));
        let mut says = BTreeMap::from([of_entity]);
        let action = match &hanging.fate {
            Fate::Deleted => Action::Delete,
            Fate::DeletedWhere { attribute, field } => {
                let fields = self.schema.entity(&cascade.owner).and_then(|o| o.key.parse_key(&removal.owner));
                let Some(value) = fields.and_then(|fields| fields.get(field).map(s)) else { return Ok(Met::Skipped) };
                says.insert(attribute.clone(), value);
                Action::Delete
            }
            Fate::Set { attribute, text } => {
                let held = self.item_now(Table::Main, &key, work).await?;
                if held.as_ref().is_none_or(|item| item.get(attribute) == Some(&s(text))) {
                    return Ok(Met::Skipped);
                }
                let set = Item::from([(attribute.clone(), AttributeValue::S(text.clone()))]);
                Action::Update(Update::set(set))
            }
        };
        let guard = Some(Guard::StillTheirs(says));
        let n_owners = removal.absent.len();
        let writes = absent.chain([Write { table: Table::Main, key, action, guard }]).collect();
        Ok(match self.decided(writes, work).await? {
            Touched::Done => Met::Done,
            Touched::Unheld(at) if at.iter().any(|at| *at < n_owners) => Met::OwnerExists,
            Touched::Unheld(_) => Met::Skipped,
        })
    }

    async fn end_job(&self, job: &Job, why: &str, work: &mut Work<'_>) -> Result<(), Stop> {
        tracing::info!(derivation = %job.derivation, owner = job.origin().for_log(), touched = job.n_touched, why, "ended a cascade");
        self.written(Write { table: Table::Main, key: job.key.clone(), action: Action::Delete, guard: None }, work)
            .await
    }

    /// Does one write; a guard that does not hold says that somebody else did it.
    pub(crate) async fn written(&self, write: Write, work: &mut Work<'_>) -> Result<(), Stop> {
        match work.batch.patience.call(|| self.store.write(&write)).await? {
            Outcome::Done { units } => {
                let commit = self.touched(&write.key, write.table, units, work);
                work.account.commits.push(commit);
            }
            Outcome::GuardFailed => {}
        }
        Ok(())
    }
}
