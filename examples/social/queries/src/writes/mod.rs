//! The write patterns WP-01 to WP-19.
//!
//! - The database checks every requirement, in the condition of the write or of another item in its transaction; no
//!   write relies on a read alone. If a requirement cannot be a condition, the method documents what another writer can
//!   do in between, and the result.
//! - A refusal is a [`WriteError`] that names the item.
//! - A write is sent again until its outcome is known, within [limits](TRIES_MAX).
//! - Every item has `CreatedAt` and `UpdatedAt`, and each write of an attribute also writes the index keys that contain
//!   it. Derived attributes are neither written nor lost, because an existing item is changed instead of replaced.

pub mod draft;
pub mod folders;
pub mod orders;
pub mod organizations;
pub mod patterns;
pub mod posts;
pub mod products;
pub mod readings;
pub mod users;

use std::{fmt, sync::Arc, time::Duration};

use derive::{
    query::Query,
    write::{Action, Table, Transaction, Write},
};
use futures::future::BoxFuture;
use jiff::{SignedDuration, civil::DateTime};
use keys::{backoff::Backoff, item::Item, key::Key, value::same};
use store::{Outcome, Page, Reason, Store, StoreError, TransactOutcome};

use crate::{Queries, write_error::WriteError};

// ---- Sending writes until their outcome is known ----
//
// | response | action |
// |---|---|
// | a guard failed | the caller decides what that means |
// | a conflict or a throttle | sends the same again after a pause |
// | none | sends the same again after a pause; if its guard fails then, the items show whether the first call did it |
//
// A write is recognized by its content: `CreatedAt` or `UpdatedAt` contains the time of the write, which is the same
// in every try. So a write that was done without a response is a success, and a write that another client did before
// is not. Two writers of the same content in the same millisecond look the same; nothing is written twice then, and
// both succeed.
//
// An addition does not show who made it, so it is sent only together with a write that can be done only once.

/// The tries of one call of the query interface.
struct Attempts<'q, S> {
    queries: &'q Queries<S>,
    n_failed: u32,
    /// Did a write get no response?
    is_uncertain: bool,
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    /// It was done.
    Done,
    /// Nothing was done: the guards at these positions failed.
    Refused(Vec<usize>),
}

/// The result of one try.
enum SendResult {
    Sent(Sent),
    Busy,
}

impl<S: Store> Queries<S> {
    fn attempts(&self) -> Attempts<'_, S> {
        Attempts { queries: self, n_failed: 0, is_uncertain: false }
    }

    /// Sends one write. Returns true if it was done, and false if its guard failed.
    async fn send(&self, write: Write) -> Result<bool, WriteError> {
        Ok(self.attempts().send(&[write]).await? == Sent::Done)
    }
}

impl<S: Store> Attempts<'_, S> {
    /// Sends writes, in one transaction if there are several, until their outcome is known.
    async fn send(&mut self, writes: &[Write]) -> Result<Sent, WriteError> {
        loop {
            match self.once(writes).await {
                Ok(SendResult::Sent(Sent::Done)) => return Ok(Sent::Done),
                Ok(SendResult::Sent(refused)) => {
                    let ours = self.is_uncertain && self.stand(writes).await?;
                    return Ok(if ours { Sent::Done } else { refused });
                }
                Ok(SendResult::Busy) => self.wait(writes.first().map(|write| &write.key), None).await?,
                Err(error) => {
                    self.is_uncertain |= error.is_retry();
                    self.wait(writes.first().map(|write| &write.key), Some(error)).await?;
                }
            }
        }
    }

    /// Waits before the caller reads everything again and makes another write.
    async fn again(&mut self, item: &Key) -> Result<(), WriteError> {
        self.wait(Some(item), None).await
    }

    /// Reads items by key, consistently, in the order of their keys.
    async fn items(&mut self, keys: &[Key]) -> Result<Vec<(Key, Item)>, WriteError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        loop {
            match self.queries.store.get(Table::Main, keys).await {
                Ok(mut items) => {
                    items.sort_by(|(one, _), (other, _)| one.cmp(other));
                    return Ok(items);
                }
                Err(error) => self.wait(keys.first(), Some(error)).await?,
            }
        }
    }

    /// Reads an item, consistently.
    async fn item(&mut self, key: &Key) -> Result<Option<Item>, WriteError> {
        Ok(self.items(std::slice::from_ref(key)).await?.pop().map(|(_, item)| item))
    }

    /// Reads an item that must exist, consistently.
    async fn existing(&mut self, key: &Key) -> Result<Item, WriteError> {
        self.item(key).await?.ok_or_else(|| WriteError::NotFound { item: key.clone() })
    }

    /// Reads the first page of a query.
    async fn page(&mut self, query: &Query) -> Result<Page, WriteError> {
        loop {
            match self.queries.store.query(Table::Main, query, None).await {
                Ok(page) => return Ok(page),
                Err(error) => {
                    let partition = Key::new(query.pk.as_str(), query.sk.first());
                    self.wait(Some(&partition), Some(error)).await?;
                }
            }
        }
    }

    async fn once(&self, writes: &[Write]) -> Result<SendResult, StoreError> {
        if let [write] = writes {
            return Ok(SendResult::Sent(match self.queries.store.write(write).await? {
                Outcome::Done { .. } => Sent::Done,
                Outcome::GuardFailed => Sent::Refused(vec![0]),
            }));
        }
        let rejected = |item: Option<&Write>, source| StoreError::Reject {
            operation: "TransactWriteItems",
            item: item.map(|write| write.key.to_string()).unwrap_or_default(),
            source,
        };
        let transaction = Transaction::new(writes.to_vec()).map_err(|error| rejected(writes.first(), error.into()))?;
        let TransactOutcome::Cancelled { reasons } = self.queries.store.transact(&transaction).await? else {
            return Ok(SendResult::Sent(Sent::Done));
        };
        let failed = reasons.iter().enumerate().filter(|(_, reason)| **reason == Reason::GuardFailed);
        let failed: Vec<usize> = failed.map(|(position, _)| position).collect();
        if !failed.is_empty() {
            return Ok(SendResult::Sent(Sent::Refused(failed)));
        }
        for (reason, write) in reasons.into_iter().zip(writes) {
            if let Reason::Rejected(why) = reason {
                return Err(rejected(Some(write), why.into()));
            }
        }
        Ok(SendResult::Busy)
    }

    /// Do the items have the content of these writes?
    async fn stand(&mut self, writes: &[Write]) -> Result<bool, WriteError> {
        let keys: Vec<Key> = writes.iter().map(|write| write.key.clone()).collect();
        let items = self.items(&keys).await?;
        let item = |key: &Key| items.iter().find(|(other, _)| other == key).map(|(_, item)| item);
        Ok(writes.iter().all(|write| stands(write, item(&write.key))))
    }

    async fn wait(&mut self, item: Option<&Key>, last: Option<StoreError>) -> Result<(), WriteError> {
        let last = match last {
            Some(error) if !error.is_retry() => return Err(WriteError::Store(error)),
            last => last,
        };
        self.n_failed += 1;
        if self.n_failed >= TRIES_MAX {
            return Err(WriteError::Busy {
                item: item.cloned().unwrap_or_else(|| Key::new("", "")),
                n_tries: self.n_failed,
                is_uncertain: self.is_uncertain,
                last,
            });
        }
        self.queries.pause.after(self.n_failed).await;
        Ok(())
    }
}

/// Does the item have the content of the write? Additions are left out, because they do not show who made them.
fn stands(write: &Write, item: Option<&Item>) -> bool {
    let holds =
        |wanted: &Item| item.is_some_and(|item| wanted.iter().all(|(name, value)| same(item.get(name), Some(value))));
    match &write.action {
        Action::Put(put) => holds(put),
        Action::Update(update) => {
            holds(&update.set) && update.remove.iter().all(|name| item.is_none_or(|item| !item.contains_key(name)))
        }
        Action::Delete => item.is_none(),
        Action::Check => true,
    }
}

// ---- The waits between the tries of a write ----

/// Bounds of the waits. The first is about the SDKs' own first backoff; the longest is acceptable for a waiting user,
/// and long compared with a conflict.
const BACKOFF: Backoff = Backoff { ms_min: 20, ms_max: 1_000 };

/// Most tries of a write, its reads included: about seven seconds with these bounds.
pub const TRIES_MAX: u32 = 20;

/// A random time below a bound that doubles (full jitter), so that writers who conflicted once do not conflict again.
#[derive(Clone)]
pub(crate) struct Pause(Arc<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>);

impl Pause {
    /// Waits after this many failed tries.
    async fn after(&self, n_tries: u32) {
        (self.0)(BACKOFF.ms(n_tries.saturating_sub(1))).await;
    }
}

impl Default for Pause {
    /// Uses the machine's clock and randomness, and needs Tokio's runtime.
    fn default() -> Self {
        Self(Arc::new(|bound_ms| {
            let wait_ms = rand::random_range(0..=bound_ms);
            Box::pin(tokio::time::sleep(Duration::from_millis(wait_ms)))
        }))
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}

impl<S> Queries<S> {
    /// Replaces the wait before a retry: `pause` waits a time of its choice below this many milliseconds.
    #[must_use]
    pub fn pausing(self, pause: impl Fn(u64) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self { pause: Pause(Arc::new(pause)), ..self }
    }
}

// ---- Times in items: ISO 8601 UTC in milliseconds, so that the texts have the order of the times ----

/// The start of the count of milliseconds.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The text of a time, such as `2024-01-15T10:30:00.000Z`.
///
/// # Errors
///
/// [`WriteError::Time`] after the year 9999, because a year of five digits would not be in order.
fn time_text(ms: u64) -> Result<String, WriteError> {
    let since = i64::try_from(ms).ok().map(SignedDuration::from_millis);
    let time = since.and_then(|since| EPOCH.checked_add(since).ok());
    time.map(|time| format!("{time:.3}Z")).ok_or(WriteError::Time { at_ms: ms })
}

impl<S> Queries<S> {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64 {
        (self.now_ms)()
    }

    /// The time of a write, as text.
    fn now(&self) -> Result<String, WriteError> {
        time_text(self.now_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last millisecond of the year 9999.
    const TIME_MS_MAX: u64 = 253_402_300_799_999;

    #[test]
    fn times_are_in_utc_to_the_millisecond() {
        for (ms, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_705_314_600_417, "2024-01-15T10:30:00.417Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (TIME_MS_MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(time_text(ms).unwrap(), shown);
        }
        for ms in [TIME_MS_MAX + 1, u64::MAX] {
            assert!(matches!(time_text(ms), Err(WriteError::Time { at_ms }) if at_ms == ms));
        }
    }
}
