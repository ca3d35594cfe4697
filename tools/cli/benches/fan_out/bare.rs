//! The process of the bare loop: conditional updates of known keys, and nothing else.

use std::{sync::Arc, time::Instant};

use aws_sdk_dynamodb::Client;
use derive::{
    guard::{Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use futures::{StreamExt as _, stream};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store as _};
use tokio::task::JoinSet;

use crate::table::{self, Comment};

/// Calls under way at once in a task, as in a page of a job.
const CALLS_OF_A_TASK: usize = 16;

/// Sets an attribute of all comments, so many calls at once, and says how many seconds that took.
pub(crate) async fn run(
    client: &Client,
    table: &str,
    comments: Vec<Comment>,
    calls: usize,
    attribute: &str,
    value: &str,
) -> anyhow::Result<()> {
    let store = Arc::new(table::store(client, table));
    let began = Instant::now();
    let n_tasks = calls.div_ceil(CALLS_OF_A_TASK).max(1);
    let mut tasks = JoinSet::new();
    for comments in comments.chunks(comments.len().div_ceil(n_tasks)) {
        let set = Item::from([(attribute.to_owned(), AttributeValue::S(value.to_owned()))]);
        let action = Action::Update(Update { set, ..Update::default() });
        let write = |comment: &Comment| Write {
            table: Table::Main,
            key: Key::new(comment.pk.clone(), comment.sk.clone()),
            action: action.clone(),
            guard: Some(Guard::present(Purpose::Update)),
        };
        let writes: Vec<Write> = comments.iter().map(write).collect();
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let written = writes.into_iter().map(|write| {
                let store = Arc::clone(&store);
                async move { store.write(&write).await }
            });
            let written: Vec<_> = stream::iter(written).buffer_unordered(calls.min(CALLS_OF_A_TASK)).collect().await;
            anyhow::ensure!(written.iter().all(|written| matches!(written, Ok(Outcome::Done { .. }))), "all are there");
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    println!("{}", began.elapsed().as_secs_f64());
    Ok(())
}
