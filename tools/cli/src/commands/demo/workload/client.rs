//! An action as data, and the client that performs it with plain writes.

use std::collections::BTreeMap;

use derive::write::{Action, Table, Write};
use keys::{item::Item, key::Key};
use store::{Outcome, Store, StoreError};

/// Attempts for a write without a response.
const TRIES_MAX: u32 = 3;

/// One action of the application or of a foreign client.
#[derive(Clone, Debug)]
pub(crate) struct AppAction {
    /// The subject of the action. Actions of one subject are performed in order.
    pub(crate) subject: String,
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
}

/// A part of an action.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A `PutItem`, an `UpdateItem` or a `DeleteItem`. A refused write ends the action.
    Write(Write),
    /// Overwrites an item with the whole item that was read earlier, including stale derived attributes, and adds these
    /// attributes.
    PutBack(Key, Item),
}

/// A client, with the whole items that it read earlier.
#[derive(Debug, Default)]
pub(crate) struct Client {
    read: BTreeMap<Key, Item>,
}

impl Client {
    /// Performs an action. Returns false if the condition of a write failed.
    pub(crate) async fn perform<S: Store>(&mut self, store: &S, action: AppAction) -> Result<bool, StoreError> {
        for step in action.steps {
            let outcome = match step {
                Step::Write(write) => send(store, &write).await?,
                Step::PutBack(key, stamp) => {
                    self.put_back(store, key, stamp).await?;
                    continue;
                }
            };
            if outcome == Outcome::GuardFailed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads an item. From the second time on, also overwrites it with the version from the time before.
    async fn put_back<S: Store>(&mut self, store: &S, key: Key, stamp: Item) -> Result<(), StoreError> {
        let known = self.read.remove(&key);
        if let Some((_, item)) = store.get(Table::Main, std::slice::from_ref(&key)).await?.pop() {
            self.read.insert(key.clone(), item);
        }
        let Some(mut item) = known else { return Ok(()) };
        item.extend(stamp);
        let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
        send(store, &write).await.map(drop)
    }
}

async fn send<S: Store>(store: &S, write: &Write) -> Result<Outcome, StoreError> {
    for _ in 1..TRIES_MAX {
        match store.write(write).await {
            Err(error) if error.is_retry() => {}
            done => return done,
        }
    }
    store.write(write).await
}
