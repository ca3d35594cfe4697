//! Attempts: how the engine finds a crashing record, one that kills the whole invocation by time or memory.
//!
//! *Keeps true*: a record that was in progress when two attempts died is parked, and the other records of its batch are
//! applied.
//!
//! An invocation that dies reports nothing, so the engine notes each attempt beforehand. A batch whose first record is
//! older than the function's time-out may have been tried before. The engine notes such an attempt in the ledger, under
//! the first record, and deletes the note when the invocation ends normally. From the third attempt on, the engine
//! handles records one by one and notes each before it begins. The engine never notes a young batch, or one that needs
//! no work.
//!
//! Each batch has its note in a partition of its own, because many batches can be old at once. The engine tries to
//! write a note once; if the ledger does not answer, the remaining time is for the records.
//!
//! Once a record is known to crash invocations, it stays marked for this batch; otherwise the next failure would clear
//! the mark.
//!
//! *Example*: a batch dies twice. The third attempt goes record by record and dies with `e7` in progress; so does the
//! fourth. The fifth finds two deaths on `e7`, parks it, and finishes the batch.

use std::collections::BTreeSet;

use derive::{
    position::RecordAt,
    write::{Action, Table, Write},
};
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{
    account::Account,
    attribute::{n, number, s},
    backoff::{Patience, describe},
    context::Context,
    input::Batch,
    ledger::{EXPIRES_AT, ledger_item},
};

/// Records are handled one by one from this attempt on.
const SINGLY_FROM: u64 = 3;

/// A record is parked after this many deaths with it in progress.
const DEATHS_MAX: u64 = 2;

/// How long a note is kept, in seconds: as long as the stream keeps the record.
pub(crate) const NOTE_KEPT_S: u64 = 24 * 3600;

// Attributes of a note. Stored, so they are stable.
const ATTEMPTS: &str = "Attempts";
const IN_PROGRESS: &str = "InProgress";
const SUSPECT: &str = "Suspect";
const DEATHS: &str = "Deaths";
const DEADLY: &str = "Deadly";

/// An attempt at a batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt {
    /// Key of its note; `None` if the attempt has no note.
    note: Option<Key>,
    /// Number of the attempt, from 1 on.
    number: u64,
    /// The record that was in progress when the last attempt died, and the number of deaths with it in progress.
    suspect: Option<(String, u64)>,
    /// The crashing records: two invocations died with each in progress.
    deadly: BTreeSet<String>,
}

impl Attempt {
    /// True if the records are handled one by one.
    pub(crate) fn is_singly(&self) -> bool {
        self.number >= SINGLY_FROM
    }

    /// The write that notes this attempt.
    pub(crate) fn note(&self, layout: &Layout, key: Key, in_progress: Option<&str>, now_ms: u64) -> Write {
        let expires_at = n((now_ms / 1000).saturating_add(NOTE_KEPT_S));
        let mut item = ledger_item(layout, &key, [(ATTEMPTS, n(self.number)), (EXPIRES_AT, expires_at)]);
        if let Some(id) = in_progress {
            item.insert(IN_PROGRESS.to_owned(), s(id));
        }
        if let Some((id, n_deaths)) = &self.suspect {
            item.insert(SUSPECT.to_owned(), s(id));
            item.insert(DEATHS.to_owned(), n(*n_deaths));
        }
        if !self.deadly.is_empty() {
            let ids = self.deadly.iter().cloned().map(AttributeValue::S).collect();
            item.insert(DEADLY.to_owned(), AttributeValue::L(ids));
        }
        Write { table: Table::Ledger, key, action: Action::Put(item), guard: None }
    }

    /// An attempt whose note has every attribute.
    pub(crate) fn whole(id: &str) -> Self {
        let (suspect, deadly) = (Some((id.to_owned(), 1)), BTreeSet::from([id.to_owned()]));
        Self { note: None, number: SINGLY_FROM, suspect, deadly }
    }

    /// True if this is a crashing record.
    pub(crate) fn is_deadly(&self, id: &str) -> bool {
        self.deadly.contains(id)
    }
}

/// Notes an attempt at a batch that may have been tried before.
pub(crate) async fn attempt<S: Store>(
    context: &Context<S>,
    batch: &Batch<'_>,
    id: &str,
    account: &mut Account,
) -> Attempt {
    let now_ms = context.clock.now_ms();
    let timeout_ms = batch.patience.deadline_ms.saturating_sub(now_ms);
    let is_old = batch.age_ms(now_ms).is_none_or(|age_ms| age_ms > timeout_ms);
    if !is_old {
        return Attempt::default();
    }
    let families: Vec<String> = context.families.iter().map(ToString::to_string).collect();
    let key = key(&families, id);
    let read = context.store.get(Table::Ledger, std::slice::from_ref(&key));
    let note = match batch.patience.in_time(read).await {
        Ok(items) => items.into_iter().next().map(|(_, item)| item).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(cause = %describe(&error), "the attempt cannot be noted");
            return Attempt::default();
        }
    };
    let suspect = suspect(&note);
    let mut deadly = deadly(&note);
    deadly.extend(suspect.iter().filter(|(_, n_deaths)| *n_deaths >= DEATHS_MAX).map(|(id, _)| id.clone()));
    let attempt = Attempt { note: Some(key), number: number(&note, ATTEMPTS).unwrap_or(0) + 1, suspect, deadly };
    put_note(context, &attempt, None, batch.patience, account).await;
    attempt
}

/// Notes that a record is in progress.
pub(crate) async fn begin<S: Store>(
    context: &Context<S>,
    attempt: &Attempt,
    id: &str,
    batch: &Batch<'_>,
    account: &mut Account,
) {
    put_note(context, attempt, Some(id), batch.patience, account).await;
}

/// Notes that the invocation ends normally: deletes the note if all is done; otherwise keeps the number of attempts,
/// with no record in progress.
///
/// It uses the time that is reserved for the response, because a note that stays would count as a death.
pub(crate) async fn end<S: Store>(context: &Context<S>, attempt: &Attempt, batch: &Batch<'_>, account: &mut Account) {
    let patience = batch.patience.for_answer();
    let Some(key) = &attempt.note else { return };
    if !account.undone.is_empty() {
        let attempt = Attempt { suspect: None, ..attempt.clone() };
        return put_note(context, &attempt, None, patience, account).await;
    }
    let write = Write { table: Table::Ledger, key: key.clone(), action: Action::Delete, guard: None };
    write_note(context, &write, patience, account).await;
}

async fn put_note<S: Store>(
    context: &Context<S>,
    attempt: &Attempt,
    in_progress: Option<&str>,
    patience: Patience<'_>,
    account: &mut Account,
) {
    let Some(key) = attempt.note.clone() else { return };
    let write = attempt.note(&context.schema.layout, key, in_progress, context.clock.now_ms());
    write_note(context, &write, patience, account).await;
}

/// A failed write of a note blocks nothing: the batch may need one more attempt.
async fn write_note<S: Store>(context: &Context<S>, write: &Write, patience: Patience<'_>, account: &mut Account) {
    match patience.in_time(context.store.write(write)).await {
        Ok(store::Outcome::Done { units }) => {
            account.commits.push(context.ledger_commit(&write.key, units, RecordAt(0)));
        }
        Ok(store::Outcome::GuardFailed) => {}
        Err(error) => tracing::warn!(cause = %describe(&error), "the attempt cannot be noted"),
    }
}

/// Key of the note of a batch that begins with this record, for a function that runs these families.
pub(crate) fn key(families: &[String], id: &str) -> Key {
    Key::new(format!("ATTEMPTS#{id}"), families.join("+"))
}

/// The record that was in progress when the last attempt died, and its number of deaths. An attempt that died before it
/// began a record adds no death.
fn suspect(note: &Item) -> Option<(String, u64)> {
    let before = text(note, SUSPECT).map(|id| (id.to_owned(), number(note, DEATHS).unwrap_or(0)));
    let Some(id) = text(note, IN_PROGRESS) else { return before };
    let n_deaths = before.filter(|(suspect, _)| suspect == id).map_or(0, |(_, n_deaths)| n_deaths);
    Some((id.to_owned(), n_deaths + 1))
}

fn deadly(note: &Item) -> BTreeSet<String> {
    let Some(AttributeValue::L(ids)) = note.get(DEADLY) else { return BTreeSet::new() };
    let id = |id: &AttributeValue| if let AttributeValue::S(id) = id { Some(id.clone()) } else { None };
    ids.iter().filter_map(id).collect()
}
