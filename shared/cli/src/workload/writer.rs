//! Writes the workload with a plain SDK client, as an application does.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context as _;
use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue as SdkValue, ConsumedCapacity, ReturnConsumedCapacity, ReturnValue},
};
use engine::clock::{Clock as _, SystemClock};
use indicatif::ProgressBar;
use keys::{
    item::{Item, text},
    key::Key,
    layout::Layout,
};
use serde_dynamo::AttributeValue;
use tokio::{sync::mpsc, task::JoinSet};

use super::{Action, Application, Ground};

/// Clients that write side by side. Two writes on one item are always the same client's, so they keep their order.
const CLIENTS: usize = 8;

/// Actions that wait for a client.
const WAITING_MAX: usize = 64;

/// What identifies a write in the stream: the item, and the time it says it was updated at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    pub(crate) key: Key,
    pub(crate) updated_at: String,
    pub(crate) removed: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Write units of the application's own writes.
    pub(crate) units: f64,
    /// When each write was answered, in milliseconds since the epoch.
    pub(crate) answered_ms: HashMap<Stamp, u64>,
}

/// The application's table, and how fast it is written to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) layout: Layout,
    /// Actions a second; as fast as they are answered where there is none.
    pub(crate) rate: Option<u32>,
}

/// Writes so many actions of the application.
pub(crate) async fn write(
    target: &Target,
    mut application: Application,
    n_actions: u32,
    bar: &ProgressBar,
) -> anyhow::Result<Written> {
    let written = Arc::new(Mutex::new(Written::default()));
    let mut clients = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..CLIENTS {
        let (queue, actions) = mpsc::channel(WAITING_MAX);
        queues.push(queue);
        let client = Writer { target: target.clone(), read: BTreeMap::new(), written: Arc::clone(&written) };
        clients.spawn(client.run(actions, bar.clone()));
    }
    let mut ticks = target.rate.map(|rate| tokio::time::interval(Duration::from_secs(1) / rate));
    for _ in 0..n_actions {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        let action = application.next()?;
        let first = action.first().map(|write| write.key().clone());
        let queue = queues.get(first.map_or(0, |key| client_of(&key)));
        // A client that has failed is told of below.
        if let Some(queue) = queue
            && queue.send(action).await.is_err()
        {
            break;
        }
    }
    drop(queues);
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *written))
}

fn client_of(key: &Key) -> usize {
    key.pk.bytes().chain(key.sk.bytes()).map(usize::from).sum::<usize>() % CLIENTS
}

/// One of the clients.
struct Writer {
    target: Target,
    /// Whole items that it read some time ago.
    read: BTreeMap<Key, HashMap<String, SdkValue>>,
    written: Arc<Mutex<Written>>,
}

impl Writer {
    async fn run(mut self, mut actions: mpsc::Receiver<Action>, bar: ProgressBar) -> anyhow::Result<()> {
        while let Some(action) = actions.recv().await {
            for write in action {
                let key = write.key().clone();
                self.write(write).await.with_context(|| format!("the application cannot write {key}"))?;
            }
            bar.inc(1);
        }
        Ok(())
    }

    async fn write(&mut self, write: Ground) -> anyhow::Result<()> {
        match write {
            Ground::Put(key, item) => self.put(key, sdk_item(item)).await,
            Ground::Update(key, set, remove) => self.update(key, set, &remove).await,
            Ground::Delete(key) => self.delete(key).await,
            Ground::PutBack(key, stamp) => self.put_back(key, stamp).await,
        }
    }

    async fn put(&self, key: Key, item: HashMap<String, SdkValue>) -> anyhow::Result<()> {
        let updated_at = item.get("UpdatedAt").and_then(|value| value.as_s().ok()).cloned();
        let request = self.target.client.put_item().table_name(&self.target.table).set_item(Some(item));
        let output = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await?;
        self.answered(key, updated_at, false, output.consumed_capacity.as_ref());
        Ok(())
    }

    /// Reads an item, the first time; puts back what was read, every time after that.
    async fn put_back(&mut self, key: Key, stamp: Item) -> anyhow::Result<()> {
        let known = self.read.remove(&key);
        let request = self.target.client.get_item().table_name(&self.target.table);
        let output = request.set_key(Some(sdk_item(self.target.layout.key_item(&key)))).send().await?;
        if let Some(item) = output.item {
            self.read.insert(key.clone(), item);
        }
        let Some(mut item) = known else { return Ok(()) };
        item.extend(sdk_item(stamp));
        self.put(key, item).await
    }

    async fn update(&self, key: Key, set: Item, remove: &[&str]) -> anyhow::Result<()> {
        let updated_at = text(&set, "UpdatedAt").map(str::to_owned);
        let mut request = self.target.client.update_item().table_name(&self.target.table);
        let mut sets = Vec::new();
        for (at, (name, value)) in sdk_item(set).into_iter().enumerate() {
            sets.push(format!("#s{at} = :s{at}"));
            request = request
                .expression_attribute_names(format!("#s{at}"), name)
                .expression_attribute_values(format!(":s{at}"), value);
        }
        let mut removes = Vec::new();
        for (at, name) in remove.iter().enumerate() {
            removes.push(format!("#r{at}"));
            request = request.expression_attribute_names(format!("#r{at}"), *name);
        }
        let mut expression = format!("SET {}", sets.join(", "));
        if !removes.is_empty() {
            expression = format!("{expression} REMOVE {}", removes.join(", "));
        }
        let output = request
            .set_key(Some(sdk_item(self.target.layout.key_item(&key))))
            .update_expression(expression)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await?;
        self.answered(key, updated_at, false, output.consumed_capacity.as_ref());
        Ok(())
    }

    async fn delete(&self, key: Key) -> anyhow::Result<()> {
        let request = self.target.client.delete_item().table_name(&self.target.table);
        let output = request
            .set_key(Some(sdk_item(self.target.layout.key_item(&key))))
            .return_values(ReturnValue::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await?;
        let old = output.attributes.as_ref();
        let updated_at = old.and_then(|item| item.get("UpdatedAt")?.as_s().ok()).cloned();
        self.answered(key, updated_at, true, output.consumed_capacity.as_ref());
        Ok(())
    }

    fn answered(&self, key: Key, updated_at: Option<String>, removed: bool, consumed: Option<&ConsumedCapacity>) {
        let now_ms = SystemClock.now_ms();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.units += consumed.and_then(|consumed| consumed.capacity_units).unwrap_or(0.0);
        if let Some(updated_at) = updated_at {
            written.answered_ms.insert(Stamp { key, updated_at, removed }, now_ms);
        }
    }
}

fn sdk_item(item: Item) -> HashMap<String, SdkValue> {
    let value = |value: AttributeValue| SdkValue::from(value);
    item.into_iter().map(|(name, attribute)| (name, value(attribute))).collect()
}
