//! A page of a fan-out: refreshes the next results of the search, and moves the cursor.
//!
//! # Unread
//!
//! Writes copies from a source to the items that a search found, without reading the items.
//!
//! *Keeps true*: an item that is written this way names the source, because the write's condition requires it. The copy
//! does not depend on the item's old content, so a correct item is written too. The write's own record refreshes
//! everything that is derived from the copy.
//!
//! Nearly all items of a page have the old value, so reading each first would mostly confirm that, at one read unit for
//! each write unit.

use std::collections::BTreeSet;

use derive::{
    effect::Find,
    guard::{Guard, Purpose},
    position::DerivationAt,
    query::Query,
    refresh::Look,
    sources::{Source, Sources},
    write::{Action, Table, Update, Write},
};
use futures::future::{OptionFuture, join};
use keys::{
    item::{Item, text},
    key::Key,
};
use store::Store;

use crate::{
    backoff::{GaveUp, Patience},
    context::Context,
    fan_out,
    input::caught,
    job::{
        FanOut, Job, Task,
        touch::{self, TouchFailure, Work},
    },
    look, reading,
    requests::{LookRequest, Looked, RequestedRefresh},
};

/// A page of search results.
struct FoundPage {
    items: Vec<Key>,
    /// The job after these items are done; `None` if the job then ends.
    behind: Option<Job>,
}

/// Does a page of a job and moves its cursor.
pub(crate) async fn page_of<S: Store>(
    context: &Context<S>,
    job: &Job,
    fan_out: &FanOut,
    work: &mut Work<'_>,
) -> Result<(), TouchFailure> {
    let Some(find) = fan_out::search_of(context, work.touch.derivation, &fan_out.source) else {
        tracing::warn!(
            derivation = context.catalogue.label_of(&job.derivation),
            source = fan_out.source.for_log(),
            "ended a fan-out: it has no search"
        );
        return ended(context, job, work).await;
    };
    if is_overtaken(context, job, work) {
        return Ok(());
    }
    let started_ms = context.clock.now_ms();
    let ends_ms = started_ms.saturating_add(context.fan_out.page_limit_ms(work.alone_ms));
    let mut next = Job { n_moves: job.n_moves + 1, ..job.clone() };
    if !is_free(context, fan_out, ends_ms).await {
        return move_on(context, job, next, work).await;
    }
    let units_before = units(work);
    let is_end = go_through(context, job, &mut next, (fan_out, &find), ends_ms, work).await?;
    if is_end {
        return ended(context, job, work).await;
    }
    charge(context, &mut next, started_ms, units(work) - units_before);
    move_on(context, job, next, work).await
}

/// Refreshes the next items of a job until its time is over, and moves `next` behind them; true if all items are done.
async fn go_through<S: Store>(
    context: &Context<S>,
    job: &Job,
    next: &mut Job,
    (fan_out, find): (&FanOut, &Find),
    ends_ms: u64,
    work: &mut Work<'_>,
) -> Result<bool, TouchFailure> {
    let mut sources = Sources::default();
    let (is_alone, patience) = (context.fan_out.is_alone(work.alone_ms), work.batch.patience);
    let search = |job| find_more(context, job, find, is_alone, patience);
    // The source is read before the first write, at the same time as the first search.
    let source = read_source(context, &fan_out.source, &mut sources, patience);
    let (first, read) = join(search(next.clone()), source).await;
    let mut found = read.map_err(TouchFailure::from).and(first);
    let mut last_ms = 0;
    loop {
        let began_ms = context.clock.now_ms();
        let met = match found {
            Ok(found) => {
                // The next search runs during these writes, if there is likely to be time for its items.
                let is_time = is_alone && began_ms.saturating_add(last_ms) < ends_ms;
                let ahead = OptionFuture::from(found.behind.clone().filter(|_| is_time).map(search));
                let look = look_at_all(context, &found.items, find, &fan_out.source, &mut sources, work);
                let (met, ahead) = join(look, ahead).await;
                met.map(|()| (found.behind, ahead))
            }
            Err(stop) => Err(stop),
        };
        let ahead = match met {
            Ok((Some(behind), ahead)) => {
                *next = behind;
                ahead
            }
            Ok((None, _)) => return Ok(true),
            // Finished items stay done; the next record tries the rest.
            Err(TouchFailure::NotNow(why)) if next.after != job.after => {
                tracing::debug!(
                    derivation = context.catalogue.label_of(&job.derivation),
                    why,
                    "a page of a fan-out ended early"
                );
                return Ok(false);
            }
            Err(stop) => return Err(stop),
        };
        let now_ms = context.clock.now_ms();
        if now_ms >= ends_ms || patience.is_over() {
            return Ok(false);
        }
        last_ms = now_ms.saturating_sub(began_ms);
        found = match ahead {
            Some(found) => found,
            None => search(next.clone()).await,
        };
    }
}

/// True if the job has moved on since this record of it was written. A later record then does the rest.
fn is_overtaken<S: Store>(context: &Context<S>, job: &Job, work: &Work<'_>) -> bool {
    let record = work.batch.record(work.touch.position);
    let change = record.and_then(|record| record.change.as_ref().ok());
    let shown = change.and_then(|change| Job::of(&context.schema.layout, change.new_image()?));
    shown.is_some_and(|shown| (shown.started_at_ms, shown.n_moves) < (job.started_at_ms, job.n_moves))
}

/// The next items of a job's search.
async fn find_more<S: Store>(
    context: &Context<S>,
    mut job: Job,
    find: &Find,
    is_alone: bool,
    patience: Patience<'_>,
) -> Result<FoundPage, TouchFailure> {
    let Task::FanOut(fan_out) = &mut job.task else { return Ok(FoundPage { items: Vec::new(), behind: None }) };
    let items_max = if is_alone { context.fan_out.page_items } else { context.fan_out.direct_max };
    // An item consumes at least one unit, and the units of items that are refreshed together are charged afterwards.
    let items_max = items_max.min(context.fan_out.units_per_second.unwrap_or(u32::MAX).max(1));
    let query = Query { limit: Some(items_max), ..find.query.clone() };
    let after = job.after.clone();
    let page = patience.call(|| context.store.query(Table::Main, &query, after.clone())).await?;
    let sort_key = fan_out::sort_key_name(context, &query);
    let until = fan_out.until.as_deref().filter(|_| fan_out.is_round);
    let is_past = |item: &Item| {
        let sort_key = sort_key.and_then(|name| text(item, name));
        until.zip(sort_key).is_some_and(|(until, sort_key)| sort_key > until)
    };
    let items: Vec<&Item> = page.items.iter().take_while(|item| !is_past(item)).collect();
    // Several items may have the last sort key, so only an item with a later one marks the end.
    let is_cut = items.len() < page.items.len();
    let items: Vec<Key> = items.into_iter().filter_map(|item| fan_out::leads_to(context, item, find)).collect();
    job.n_touched += u64::try_from(items.len()).unwrap_or(0);
    if let Some(next) = page.next.filter(|_| !is_cut) {
        job.after = Some(next);
    } else if fan_out.until.is_some() && !fan_out.is_round {
        (fan_out.is_round, job.after) = (true, None);
    } else {
        return Ok(FoundPage { items, behind: None });
    }
    Ok(FoundPage { items, behind: Some(job) })
}

async fn look_at_all<S: Store>(
    context: &Context<S>,
    items: &[Key],
    find: &Find,
    source: &Key,
    sources: &mut Sources,
    work: &mut Work<'_>,
) -> Result<(), TouchFailure> {
    let causes = BTreeSet::from([work.touch.position]);
    let look = |item: &Key| Look {
        item: item.clone(),
        entity: find.target.clone(),
        derivations: BTreeSet::from([work.touch.derivation]),
        named: BTreeSet::new(),
    };
    let requested =
        |item: &Key| RequestedRefresh { look: look(item), causes: causes.clone(), is_own: false, vacated_for: None };
    let requested = items.iter().map(requested).collect();
    let (batch, account) = (work.batch, &mut work.account);
    let mut looked = Looked::default();
    let items = Box::pin(write_unread(context, requested, source, sources, batch.patience, &mut looked)).await;
    let request = LookRequest { items, images: None, patience: batch.patience };
    Box::pin(look::look_at(context, request, sources, &mut looked)).await;
    fan_out::settle(context, looked, batch, account).await;
    match account.undone.remove(&work.touch.position) {
        Some(why) => Err(TouchFailure::NotNow(why)),
        None => Ok(()),
    }
}

/// Moves the cursor, unless another invocation moved it: then that invocation's record repeats this page.
async fn move_on<S: Store>(
    context: &Context<S>,
    job: &Job,
    mut next: Job,
    work: &mut Work<'_>,
) -> Result<(), TouchFailure> {
    next.moved_at_ms = context.clock.now_ms();
    touch::written(context, job.moves_to(&next), work).await
}

async fn ended<S: Store>(context: &Context<S>, job: &Job, work: &mut Work<'_>) -> Result<(), TouchFailure> {
    let delete = Write { table: Table::Main, key: job.key.clone(), action: Action::Delete, guard: Some(job.unmoved()) };
    touch::written(context, delete, work).await
}

/// Waits until the job may write again; false if it may not before `ends_ms`.
async fn is_free<S: Store>(context: &Context<S>, fan_out: &FanOut, ends_ms: u64) -> bool {
    let now_ms = context.clock.now_ms();
    let wait_ms = fan_out.free_at_ms.min(ends_ms).saturating_sub(now_ms);
    if wait_ms > 0 {
        context.clock.sleep(std::time::Duration::from_millis(wait_ms)).await;
    }
    fan_out.free_at_ms <= ends_ms
}

/// Sets when the job may write again, after it consumed this many units.
fn charge<S: Store>(context: &Context<S>, next: &mut Job, started_ms: u64, units: f64) {
    let (Some(rate), Task::FanOut(fan_out)) = (context.fan_out.units_per_second, &mut next.task) else {
        return;
    };
    let ms = (units * 1_000.0 / f64::from(rate.max(1))).ceil();
    // A page's units are few, so this is exact.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and far below 2^53")]
    let ms = ms as u64;
    fan_out.free_at_ms = fan_out.free_at_ms.max(started_ms).saturating_add(ms);
}

/// Refreshes all items of a source again: items that were refused when a record of the job was parked are behind the
/// cursor by now, and the job may have ended.
pub(crate) async fn begin_again<S: Store>(
    context: &Context<S>,
    derivation: DerivationAt,
    source: &Key,
    work: &mut Work<'_>,
) -> Result<(), TouchFailure> {
    let (patience, mut written) = (work.batch.patience, Vec::new());
    let ended = fan_out::fan_out(context, derivation, source, patience, &mut written).await;
    for (table, key, units) in written {
        let commit = touch::touched(context, &key, table, None, units, work);
        work.account.commits.push(commit);
    }
    ended?;
    Ok(())
}

// ---- Writing copies to the items that a search found, without reading them ----

/// Reads the source, unless it is known.
async fn read_source<S: Store>(
    context: &Context<S>,
    source: &Key,
    sources: &mut Sources,
    patience: Patience<'_>,
) -> Result<(), GaveUp> {
    let source = Source::Item(source.clone());
    let unknown = if sources.knows(&source) { BTreeSet::new() } else { BTreeSet::from([source]) };
    reading::read(context, unknown, sources, patience).await
}

/// Writes found items without reading them, on the condition that they name this source. Returns the items to refresh:
/// those that need more than the source, and those whose condition failed.
async fn write_unread<S: Store>(
    context: &Context<S>,
    requested: Vec<RequestedRefresh>,
    source: &Key,
    sources: &Sources,
    patience: Patience<'_>,
    looked: &mut Looked,
) -> Vec<RequestedRefresh> {
    let (mut writes, mut rest) = (Vec::new(), Vec::new());
    for requested in requested {
        // If a kind panics here, it also panics when the item is refreshed, which parks the record that requested it.
        match caught("finding what it takes", || unread_write(context, &requested, source, sources)) {
            Ok(Some(write)) => writes.push((requested, write)),
            Ok(None) | Err(_) => rest.push(requested),
        }
    }
    rest.extend(look::write_all(context, writes, patience, looked).await);
    rest
}

fn unread_write<S: Store>(
    context: &Context<S>,
    requested: &RequestedRefresh,
    source: &Key,
    sources: &Sources,
) -> Option<(Write, Vec<DerivationAt>)> {
    let (Look { item, entity, derivations, .. }, layout) = (&requested.look, &context.schema.layout);
    let at = derivations.iter().copied().next().filter(|_| derivations.len() == 1)?;
    if !sources.knows(&Source::Item(source.clone())) {
        return None;
    }
    let (mut says, wanted) = context.catalogue.refresh(at)?.taken_from(&context.schema, source, item, sources)?;
    // The condition on the key attributes requires that the item exists.
    says.extend(layout.key_item(item));
    says.extend(context.schema.mark_of(entity));
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

/// Write units so far.
fn units(work: &Work<'_>) -> f64 {
    work.account.commits.iter().map(|commit| commit.units).sum()
}
