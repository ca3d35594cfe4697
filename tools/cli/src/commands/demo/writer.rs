//! Performs the workload with some clients at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use derive::write::{Action, Table, Write};
use indicatif::ProgressBar;
use keys::{error::EntityError, item::Item, key::Key};
use queries::Queries;
use store::{Store as _, StoreError};
use tokio::{sync::mpsc, task::JoinSet};

use workload::{
    act::{Act, AppAction, Plain, perform},
    act_error::ActError,
};

use crate::metered::Metered;

/// Number of clients. One client performs all actions of a subject, so they keep their order.
const CLIENTS: usize = 8;

/// Actions that may wait for a client.
const WAITING_MAX: usize = 64;

/// Attempts for a plain write without a response.
const PLAIN_TRIES_MAX: u32 = 3;

/// Performs the actions at a rate, or without one as fast as the database responds.
pub(super) async fn write(
    store: &Arc<Metered>,
    rate: Option<u32>,
    actions: impl Iterator<Item = Result<AppAction, EntityError>>,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut clients = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..CLIENTS {
        let (queue, actions) = mpsc::channel(WAITING_MAX);
        queues.push(queue);
        let client = Writer { store: Arc::clone(store), read: BTreeMap::new() };
        clients.spawn(client.run(actions, bar.clone()));
    }
    let mut ticks = rate.map(|rate| tokio::time::interval(Duration::from_secs(1) / rate));
    for action in actions {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        let action = action?;
        // A client that has failed is reported below.
        if let Some(queue) = queues.get(client_of(&action.subject))
            && queue.send(action).await.is_err()
        {
            break;
        }
    }
    drop(queues);
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}

fn client_of(subject: &str) -> usize {
    subject.bytes().map(usize::from).sum::<usize>() % CLIENTS
}

/// One of the clients.
struct Writer {
    store: Arc<Metered>,
    /// Whole items that it read earlier.
    read: BTreeMap<Key, Item>,
}

impl Writer {
    async fn run(mut self, mut actions: mpsc::Receiver<AppAction>, bar: ProgressBar) -> anyhow::Result<()> {
        while let Some(AppAction { now_ms, subject, act }) = actions.recv().await {
            let queries = Queries::new(Arc::clone(&self.store), move || now_ms);
            let done = match act {
                Act::Foreign(writes) => self.write_plainly(writes).await.map_err(ActError::from),
                act => Box::pin(perform(act, &queries)).await,
            };
            match done {
                Err(undone) if undone.is_refusal() => self.store.written().n_refused += 1,
                done => done.with_context(|| format!("the application cannot write to {subject}"))?,
            }
            bar.inc(1);
        }
        Ok(())
    }

    async fn write_plainly(&mut self, writes: Vec<Plain>) -> Result<(), StoreError> {
        for write in writes {
            match write {
                Plain::Put(key, item) => self.send(key, Action::Put(item)).await?,
                Plain::Delete(key) => self.send(key, Action::Delete).await?,
                Plain::PutBack(key, stamp) => self.put_back(key, stamp).await?,
            }
        }
        Ok(())
    }

    /// Reads an item the first time, and puts it back every time after that.
    async fn put_back(&mut self, key: Key, stamp: Item) -> Result<(), StoreError> {
        let known = self.read.remove(&key);
        if let Some((_, item)) = self.store.get(Table::Main, std::slice::from_ref(&key)).await?.pop() {
            self.read.insert(key.clone(), item);
        }
        let Some(mut item) = known else { return Ok(()) };
        item.extend(stamp);
        self.send(key, Action::Put(item)).await
    }

    async fn send(&self, key: Key, action: Action) -> Result<(), StoreError> {
        let write = Write { table: Table::Main, key, action, guard: None };
        for _ in 1..PLAIN_TRIES_MAX {
            match self.store.write(&write).await {
                Err(error) if error.is_retry() => {}
                done => return done.map(drop),
            }
        }
        self.store.write(&write).await.map(drop)
    }
}
