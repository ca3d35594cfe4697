//! The handler with transactions that people write: a marker for each like, and an `ADD` for each of its posts.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Stdio,
    time::Instant,
};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, Put, ReturnConsumedCapacity, TransactWriteItem, Update},
};
use support::database::client;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    BATCH, Result,
    process::cpu_s,
    table::{LEDGER, MAIN, detail_key, item},
};

/// Actions of one transaction. Source: DynamoDB service quotas.
const ACTIONS_MAX: usize = 100;

/// Lets a process count the likes of these posts; gives the seconds that passed, and its processor time.
pub(crate) async fn start(endpoint: &str, posts: &[usize]) -> Result<[f64; 2]> {
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.args(["by-hand", endpoint]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn()?;
    let posts: Vec<String> = posts.iter().map(usize::to_string).collect();
    process.stdin.take().ok_or("a pipe")?.write_all(posts.join(" ").as_bytes()).await?;
    let output = process.wait_with_output().await?;
    let said = String::from_utf8(output.stdout)?;
    let figures = said.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    figures.try_into().map_err(|_| "the transactions by hand failed".into())
}

pub(crate) async fn run(endpoint: &str) -> Result<()> {
    let mut said = String::new();
    tokio::io::stdin().read_to_string(&mut said).await?;
    let posts = said.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<usize>, _>>()?;
    let client = client(endpoint);
    let (began, before_s) = (Instant::now(), cpu_s("self")?);
    let mut like = 0;
    for batch in posts.chunks(BATCH) {
        let (mut part, mut into) = (Vec::new(), BTreeSet::new());
        for post in batch {
            into.insert(*post);
            if part.len() + 1 + into.len() > ACTIONS_MAX {
                transact(&client, &std::mem::take(&mut part)).await?;
                into = BTreeSet::from([*post]);
            }
            part.push((like, *post));
            like += 1;
        }
        transact(&client, &part).await?;
    }
    println!("{} {}", began.elapsed().as_secs_f64(), cpu_s("self")? - before_s);
    Ok(())
}

/// Counts likes, each with its number and its post.
async fn transact(client: &Client, likes: &[(usize, usize)]) -> Result<()> {
    let mut call = client.transact_write_items().return_consumed_capacity(ReturnConsumedCapacity::Total);
    let mut adds = BTreeMap::<usize, usize>::new();
    for (like, post) in likes {
        *adds.entry(*post).or_default() += 1;
        let marker = item([("PK", &format!("MARKER#{like:032x}")), ("SK", "MARKER")]);
        let put = Put::builder().table_name(LEDGER).set_item(Some(marker));
        let put = put.condition_expression("attribute_not_exists(PK)").build()?;
        call = call.transact_items(TransactWriteItem::builder().put(put).build());
    }
    for (post, n_likes) in adds {
        let add = Update::builder().table_name(MAIN).set_key(Some(detail_key(post)));
        let add = add.update_expression("ADD LikeCount :n");
        let add = add.expression_attribute_values(":n", AttributeValue::N(n_likes.to_string())).build()?;
        call = call.transact_items(TransactWriteItem::builder().update(add).build());
    }
    call.send().await?;
    Ok(())
}
