//! Performs the workload with several concurrent clients.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use indicatif::ProgressBar;
use tokio::{sync::mpsc, task::JoinSet};

use super::workload::client::{AppAction, Client};
use crate::metered::Metered;

/// Number of clients. One client performs all actions of a subject, so they keep their order.
const CLIENTS: usize = 8;

/// Maximum number of actions that wait for a client.
const WAITING_MAX: usize = 64;

/// Performs the actions at a rate. Without a rate, performs them as fast as the database responds.
pub(super) async fn write(
    store: &Arc<Metered>,
    rate: Option<u32>,
    actions: impl Iterator<Item = anyhow::Result<AppAction>>,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut clients = JoinSet::new();
    let mut queues = Vec::new();
    for _ in 0..CLIENTS {
        let (queue, actions) = mpsc::channel(WAITING_MAX);
        queues.push(queue);
        clients.spawn(run(Arc::clone(store), actions, bar.clone()));
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
async fn run(store: Arc<Metered>, mut actions: mpsc::Receiver<AppAction>, bar: ProgressBar) -> anyhow::Result<()> {
    let mut client = Client::default();
    while let Some(action) = actions.recv().await {
        let subject = action.subject.clone();
        let performed = client.perform(store.as_ref(), action).await;
        let is_done = performed.with_context(|| format!("the application cannot write to {subject}"))?;
        store.written().n_refused += usize::from(!is_done);
        bar.inc(1);
    }
    Ok(())
}
