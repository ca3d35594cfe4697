//! Renaming the user, and watching until the name has arrived.

use std::{collections::VecDeque, time::Duration};

use aws_sdk_dynamodb::{Client, types::KeysAndAttributes};
use derive::{query::Query, write::Table};
use store::Store as _;
use tokio::time::{Instant, interval};

use crate::{
    child::Functions,
    table::{self, Comment, Item, s, user_key},
};

/// Number of items that show the progress of the name, besides the last.
const SAMPLES: usize = 200;

/// Number of items to read together, of these and of all. Source of the second: DynamoDB service quotas.
const SAMPLES_AT_ONCE: usize = 10;
const ALL_AT_ONCE: usize = 100;

/// How often some of the samples are read, where not all of them have the name.
const POLL: Duration = Duration::from_millis(50);

/// How long the functions must have had nothing to do before they are quiet.
const QUIET: Duration = Duration::from_secs(1);

/// Partitions of jobs.
const JOB_PARTITIONS: usize = 8;

/// What a rename came to.
pub(crate) struct Renamed {
    /// From its answer until the samples had the name.
    pub(crate) seconds: f64,
    /// Items that had not the name then.
    pub(crate) n_later: usize,
}

/// Renames the user, and waits until the name has arrived.
pub(crate) async fn rename(client: &Client, table: &str, n_items: usize, name: &str) -> anyhow::Result<Renamed> {
    let update = client.update_item().table_name(table).set_key(Some(user_key()));
    let update = update.update_expression("SET #n = :n").expression_attribute_names("#n", "Name");
    update.expression_attribute_values(":n", s(name)).send().await?;
    let began = Instant::now();
    let comments = table::comments(n_items);
    let every = (n_items / SAMPLES).max(1);
    let mut samples: VecDeque<Comment> = comments.iter().step_by(every).chain(comments.last()).cloned().collect();
    let mut poll = interval(POLL);
    while !samples.is_empty() {
        let some: Vec<Comment> = samples.drain(..samples.len().min(SAMPLES_AT_ONCE)).collect();
        let without = without(client, table, &some, name).await?;
        let is_there = without.is_empty();
        samples.extend(without);
        if !is_there {
            poll.reset();
            poll.tick().await;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut n_later = 0;
    for some in comments.chunks(ALL_AT_ONCE) {
        let mut left = without(client, table, some, name).await?;
        n_later += left.len();
        while !left.is_empty() {
            poll.tick().await;
            left = self::without(client, table, &left, name).await?;
        }
    }
    Ok(Renamed { seconds, n_later })
}

/// Waits until the functions have nothing to do.
pub(crate) async fn quiet(client: &Client, table: &str, functions: &Functions) -> anyhow::Result<()> {
    let mut poll = interval(QUIET);
    poll.tick().await;
    let mut n_batches = None;
    loop {
        poll.tick().await;
        let n_now = Some(functions.n_batches());
        if n_now == n_batches && n_jobs(client, table).await? == 0 {
            return Ok(());
        }
        n_batches = n_now;
    }
}

async fn n_jobs(client: &Client, table: &str) -> anyhow::Result<usize> {
    let (store, mut n_jobs) = (table::store(client, table), 0);
    for partition in 0..JOB_PARTITIONS {
        let query = Query::prefix(None, format!("JOBS#{partition:02}"), "");
        n_jobs += store.query(Table::Main, &query, None).await?.items.len();
    }
    Ok(n_jobs)
}

/// Those of the comments that have not the name.
async fn without(client: &Client, table: &str, some: &[Comment], name: &str) -> anyhow::Result<Vec<Comment>> {
    let keys: Vec<Item> = some.iter().map(Comment::key).collect();
    let keys = KeysAndAttributes::builder()
        .set_keys(Some(keys))
        .projection_expression("PK, SK, UserName")
        .consistent_read(true)
        .build()?;
    let read = client.batch_get_item().request_items(table, keys).send().await?;
    let with: Vec<Item> = read.responses.into_iter().flatten().flat_map(|(_, items)| items).collect();
    let has_it = |comment: &Comment| {
        let key = comment.key();
        with.iter().any(|item| {
            item.get("UserName") == Some(&s(name)) && key.iter().all(|(name, value)| item.get(name) == Some(value))
        })
    };
    Ok(some.iter().filter(|comment| !has_it(comment)).cloned().collect())
}
