//! Sends writes until their outcome is known.
//!
//! | response | action |
//! |---|---|
//! | a guard failed | the caller decides what that means |
//! | a conflict or a throttle | sends the same again after a pause |
//! | none | sends the same again after a pause; if its guard fails then, the items show whether the first call did it |
//!
//! A write is recognized by its content: `CreatedAt` or `UpdatedAt` contains the time of the write, which is the same
//! in every try. So a write that was done without a response is a success, and a write that another client did before
//! is not. Two writers of the same content in the same millisecond look the same; nothing is written twice then, and
//! both succeed.
//!
//! An addition does not show who made it, so it is sent only together with a write that can be done only once.

use derive::{
    query::Query,
    write::{Action, Table, Transaction, Write},
};
use keys::{item::Item, key::Key, value::same};
use store::{Outcome, Page, Reason, Store, StoreError, TransactOutcome};

use super::pause::TRIES_MAX;
use crate::{Queries, write_error::WriteError};

/// The tries of one call of the query interface.
pub(super) struct Attempts<'q, S> {
    pub(super) queries: &'q Queries<S>,
    n_failed: u32,
    /// Did a write get no response?
    is_uncertain: bool,
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sent {
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
    pub(super) fn attempts(&self) -> Attempts<'_, S> {
        Attempts { queries: self, n_failed: 0, is_uncertain: false }
    }

    /// Sends one write. Returns true if it was done, and false if its guard failed.
    pub(super) async fn send(&self, write: Write) -> Result<bool, WriteError> {
        Ok(self.attempts().send(&[write]).await? == Sent::Done)
    }
}

impl<S: Store> Attempts<'_, S> {
    /// Sends writes, in one transaction if there are several, until their outcome is known.
    pub(super) async fn send(&mut self, writes: &[Write]) -> Result<Sent, WriteError> {
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
    pub(super) async fn again(&mut self, item: &Key) -> Result<(), WriteError> {
        self.wait(Some(item), None).await
    }

    /// Reads items by key, consistently, in the order of their keys.
    pub(super) async fn items(&mut self, keys: &[Key]) -> Result<Vec<(Key, Item)>, WriteError> {
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
    pub(super) async fn item(&mut self, key: &Key) -> Result<Option<Item>, WriteError> {
        Ok(self.items(std::slice::from_ref(key)).await?.pop().map(|(_, item)| item))
    }

    /// Reads an item that must exist, consistently.
    pub(super) async fn existing(&mut self, key: &Key) -> Result<Item, WriteError> {
        self.item(key).await?.ok_or_else(|| WriteError::NotFound { item: key.clone() })
    }

    /// Reads the first page of a query.
    pub(super) async fn page(&mut self, query: &Query) -> Result<Page, WriteError> {
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
