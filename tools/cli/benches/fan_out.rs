//! How fast a name reaches all items that repeat it, and how much memory that takes.
//!
//! Run `cargo bench -p cli --bench fan_out`, with `-- --items 20000 --rounds 3 --calls 16,64 --memory 1000,10000` for
//! other sizes; `--rounds 0` leaves out the rate, and `--memory 0` the memory. `--latency 20` delays each response of
//! the database by 20 ms, as if it were on another machine. There are three processes besides this one: the embedded
//! database of `ripple dev`, `ripple dev --endpoint` with the functions, and one that runs the bare loop.
//!
//! *Rate*: one user's comments are put on 100 posts, in two tables of the same shape and content. In each round:
//!
//! - *bare*: each item of the second table, whose stream nobody reads, gets a name by an `UpdateItem` on the condition
//!   that it exists, through the same store as the functions'. The keys are known, so nothing is read.
//! - *followed*: the same in the first table, with an attribute from which nothing is derived. The functions read that
//!   table's stream, as they read the records of a fan-out's writes.
//! - *fan-out*: the user of the first table is renamed once; it takes from the response until the name has arrived. The
//!   arrival is measured on 200 evenly distributed items and the last one, a few read at a time, so that watching costs
//!   nothing. All other items are checked afterwards, and those without the name are reported.
//!
//! The loops run with each given number of parallel calls, in tasks of 16, like the functions in a page of a job. A
//! round begins when nothing of the one before is left.
//!
//! On a machine with shared processors, all processes wait for processor time, so that time is printed too.
//!
//! *Memory*: the functions' process, fresh for each number of items: before a rename, and its peak during the rename.

#![expect(clippy::print_stdout, clippy::expect_used, reason = "it prints what it measured, and stops when it cannot")]

#[path = "fan_out/child.rs"]
mod child;
#[path = "fan_out/table.rs"]
mod table;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{Client, types::KeysAndAttributes};
use derive::{
    guard::{Guard, Purpose},
    query::Query,
    write::{Action, Table, Update, Write},
};
use futures::{StreamExt as _, stream};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{Outcome, Store as _};
use tokio::{
    task::JoinSet,
    time::{Instant, interval},
};

use crate::{
    child::{Child, Functions, a_second},
    table::{Comment, Shape, client, s, user_key},
};

/// That of `ripple`, so that the database and the bare loop have what the functions have.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The options of the command line.
struct Options {
    items: usize,
    rounds: usize,
    calls: Vec<usize>,
    latency_ms: u64,
    memory: Vec<usize>,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Runtime::new()?;
    match arguments.as_slice() {
        ["database", latency_ms] => runtime.block_on(child::serve_database(Duration::from_millis(latency_ms.parse()?))),
        ["bare", endpoint, table, items, calls, attribute, value] => {
            let comments = table::comments(items.parse()?);
            runtime.block_on(update_all(&client(endpoint), table, comments, calls.parse()?, attribute, value))
        }
        options => runtime.block_on(measure(&Options::of(options)?)),
    }
}

impl Options {
    fn of(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut options =
            Self { items: 20_000, rounds: 3, calls: vec![16, 32, 64], latency_ms: 0, memory: vec![1_000, 10_000] };
        // What `cargo bench` gives to all.
        let mut arguments = arguments.iter().filter(|argument| **argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().copied().unwrap_or_default();
            let list = || value.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
            match *name {
                "--items" => options.items = value.parse()?,
                "--rounds" => options.rounds = value.parse()?,
                "--calls" => options.calls = list()?,
                "--latency" => options.latency_ms = value.parse()?,
                "--memory" => options.memory = list()?.into_iter().filter(|items| *items > 0).collect(),
                other => anyhow::bail!("{other} is none of --items, --rounds, --calls, --latency and --memory"),
            }
        }
        Ok(options)
    }
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    if options.rounds > 0 {
        rate(options).await?;
    }
    for items in &options.memory {
        memory(*items).await?;
    }
    Ok(())
}

/// Starts a database, and creates these tables with this many comments each.
async fn with_tables(names: &[&str], items: usize, latency_ms: u64) -> anyhow::Result<(Child, Client)> {
    let database = Child::database(latency_ms)?;
    let client = client(&database.endpoint);
    // The service makes its table, which is the model of the others.
    Functions::start(&database.endpoint, None)?.stop();
    let shape = Shape::of(&client, "ripple").await?;
    for name in names {
        shape.make(&client, name).await?;
        table::fill(&client, name, items).await?;
        // Only now, so that the functions do not read items that are right already.
        table::stream(&client, name).await?;
    }
    Ok((database, client))
}

async fn rate(options: &Options) -> anyhow::Result<()> {
    let Options { items, calls, latency_ms, .. } = options;
    let (database, client) = with_tables(&["famous", "bare"], *items, *latency_ms).await?;
    let functions = Functions::start(&database.endpoint, Some("famous"))?;
    println!("{items} items, items a second, {latency_ms} ms more for each answer");
    // By the number of calls at once.
    let mut ratios = vec![(Vec::new(), Vec::new()); calls.len()];
    for round in 1..=options.rounds {
        let (mut bare, mut followed, mut of_database) = (Vec::new(), Vec::new(), Vec::new());
        for calls in calls {
            let before = database.processor_s()?;
            bare.push(Child::bare(&database.endpoint, "bare", *items, *calls, ["UserName", &name(round)])?);
            of_database.push(database.processor_s()? - before);
            quiet(&client, "famous", &functions).await?;
            followed.push(Child::bare(&database.endpoint, "famous", *items, *calls, ["Mood", &name(round)])?);
            quiet(&client, "famous", &functions).await?;
        }
        let processor_s = || anyhow::Ok((database.processor_s()?, functions.child.processor_s()?));
        let before = processor_s()?;
        let renamed = rename(&client, "famous", *items, &name(round)).await?;
        let after = processor_s()?;
        quiet(&client, "famous", &functions).await?;
        let fan_out = a_second(*items, renamed.seconds);
        let rates = |rates: &[f64]| rates.iter().map(|rate| format!("{rate:.0}")).collect::<Vec<_>>().join(" ");
        println!(
            "round {round}: bare {} followed {} at {calls:?} calls, fan-out {fan_out:.0} ({:.1} s; {} later)",
            rates(&bare),
            rates(&followed),
            renamed.seconds,
            renamed.n_later
        );
        println!(
            "         processor time of the fan-out: {:.1} s the database, {:.1} s the functions; of the bare loop: {:.1} s the database",
            after.0 - before.0,
            after.1 - before.1,
            of_database.iter().copied().fold(f64::INFINITY, f64::min)
        );
        for (((of_bare, of_followed), bare), followed) in ratios.iter_mut().zip(&bare).zip(&followed) {
            of_bare.push(fan_out / bare);
            of_followed.push(fan_out / followed);
        }
    }
    for (calls, (of_bare, of_followed)) in calls.iter().zip(&mut ratios) {
        println!("{calls} calls at once:");
        println!("fan-out / bare     {:.2}  median of {}", median(of_bare), two(of_bare));
        println!("fan-out / followed {:.2}  median of {}", median(of_followed), two(of_followed));
    }
    Ok(())
}

async fn memory(items: usize) -> anyhow::Result<()> {
    let (database, client) = with_tables(&["famous"], items, 0).await?;
    let functions = Functions::start(&database.endpoint, Some("famous"))?;
    quiet(&client, "famous", &functions).await?;
    let before = functions.memory()?;
    let renamed = rename(&client, "famous", items, &name(1)).await?;
    quiet(&client, "famous", &functions).await?;
    let after = functions.memory()?;
    println!(
        "{items} items: {:.1} MB resident before, {:.1} MB at most, {:.1} MB after; {:.0} items a second",
        before.resident_mb,
        after.peak_mb,
        after.resident_mb,
        a_second(items, renamed.seconds)
    );
    Ok(())
}

fn name(round: usize) -> String {
    format!("Grace the {round}.")
}

fn median(ratios: &mut [f64]) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

fn two(ratios: &[f64]) -> String {
    ratios.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(" ")
}

// ---- Renaming the user, and watching until the name has arrived ----

/// Number of items that show the progress of the name, besides the last.
const SAMPLES: usize = 200;

/// Number of items to read together, of these and of all. Source of the second: DynamoDB service quotas.
const SAMPLES_AT_ONCE: usize = 10;
const ALL_AT_ONCE: usize = 100;

/// Pause before samples without the name are read again.
const POLL: Duration = Duration::from_millis(50);

/// The functions are quiet if they had nothing to do for this long.
const QUIET: Duration = Duration::from_secs(1);

/// Partitions of jobs.
const JOB_PARTITIONS: usize = 8;

/// The result of a rename.
struct Renamed {
    /// From the response until all samples had the name.
    seconds: f64,
    /// Items without the name at that moment.
    n_later: usize,
}

/// Renames the user, and waits until the name has arrived.
async fn rename(client: &Client, table: &str, n_items: usize, name: &str) -> anyhow::Result<Renamed> {
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
async fn quiet(client: &Client, table: &str, functions: &Functions) -> anyhow::Result<()> {
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

/// Selects the comments without the name.
async fn without(client: &Client, table: &str, some: &[Comment], name: &str) -> anyhow::Result<Vec<Comment>> {
    let keys: Vec<table::Item> = some.iter().map(Comment::key).collect();
    let keys = KeysAndAttributes::builder()
        .set_keys(Some(keys))
        .projection_expression("PK, SK, UserName")
        .consistent_read(true)
        .build()?;
    let read = client.batch_get_item().request_items(table, keys).send().await?;
    let with: Vec<table::Item> = read.responses.into_iter().flatten().flat_map(|(_, items)| items).collect();
    let has_it = |comment: &Comment| {
        let key = comment.key();
        with.iter().any(|item| {
            item.get("UserName") == Some(&s(name)) && key.iter().all(|(name, value)| item.get(name) == Some(value))
        })
    };
    Ok(some.iter().filter(|comment| !has_it(comment)).cloned().collect())
}

// ---- The process of the bare loop: conditional updates of known keys, and nothing else ----

/// Concurrent calls of a task, as in a page of a job.
const CALLS_OF_A_TASK: usize = 16;

/// Sets an attribute of all comments with this number of concurrent calls, and prints the seconds that it took.
async fn update_all(
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
