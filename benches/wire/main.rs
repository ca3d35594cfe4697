//! What likes cost the compiled functions over HTTP, and how fast they work off a backlog of them.
//!
//! `cargo bench -p functions --bench wire`, with `-- --before DIR` for functions of an earlier build in the same run, and
//! `-- --memory 512,1024` for the memory of one lane. There are four processes: the embedded DynamoDB, this one, `aggregate`
//! and `propagate`. A proxy in this one counts the calls and their units, and delays each answer until 5 ms after its
//! request; the functions get their events from a runtime API, also here.
//!
//! Posts exist, with all that follows from them. Then 4,000 likes are in the stream, each of another post (*cold*) or of
//! 200 posts by a Zipf distribution (exponent 1). Their records go to both functions at once, in batches of 500, through
//! the filters that are deployed; then the records of what the functions wrote, until there are none. In the end each post
//! must show its likes. A rate is the likes divided by the time of all this; processor time is that of both functions.
//!
//! The same by hand is a process that takes the records of the likes: a transaction has a marker for each like and an `ADD`
//! on each of its posts, as many as fit, one transaction after another.
//!
//! *Held to N MB*: the process of `aggregate` gets the share of a processor that Lambda gives such a function, 1 for
//! 1,769 MB, by a control group (version 1, as root). Source: Lambda's developer guide, "Configure Lambda function memory".

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "it prints what it measured, and stops when it cannot"
)]

mod by_hand;
#[path = "../../tools/cli/src/embedded/index.rs"]
mod index;
mod process;
mod served;
mod table;

use std::{path::Path, time::Instant};

use derive::family::Family;
use infra::mapping::{StreamTable, needed};
use stream::filter::Filters;

use crate::{
    process::{Child, Function, Share},
    served::{Meter, Metered},
    table::Tables,
};

/// The database and the proxy take most of the processors' time, so they have the allocator of the functions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const N_LIKES: usize = 4_000;
const BATCH: usize = 500;
const N_ZIPF: usize = 200;

/// After so many rounds of records, something writes in a circle.
const ROUNDS_MAX: usize = 20;

/// Memory whose share is a whole processor.
const MB_A_PROCESSOR: f64 = 1_769.0;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["database"] => process::database().await,
        ["by-hand", endpoint] => by_hand::run(endpoint).await,
        options => measure(options).await,
    }
}

async fn measure(options: &[&str]) -> Result<()> {
    let (mut before, mut memory) = (None, vec![512.0, 1_024.0]);
    for option in options.chunks(2) {
        match option {
            ["--before", folder] => before = Some(Path::new(folder)),
            ["--memory", list] => memory = list.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?,
            other => return Err(format!("{other:?} is neither --before DIR nor --memory MB,MB").into()),
        }
    }
    let here = Path::new(env!("CARGO_BIN_EXE_aggregate")).parent().ok_or("a folder")?;
    for (load, posts) in [("cold", cold()), ("Zipf", zipf())] {
        println!("{load}, {N_LIKES} likes; a like:");
        if let Some(before) = before {
            functions(before, &posts, None).await?.print("the earlier build");
        }
        functions(here, &posts, None).await?.print("aggregate and propagate");
        for megabytes in &memory {
            let share = Share::new(megabytes / MB_A_PROCESSOR);
            match share {
                Ok(share) => {
                    let cost = functions(here, &posts, Some(&share)).await?;
                    cost.print(&format!("aggregate held to {megabytes} MB"));
                }
                Err(error) => println!("  a share of a processor needs a control group: {error}"),
            }
        }
        by_transactions(&posts).await?.print("transactions by hand");
    }
    Ok(())
}

/// The posts that are liked, in order.
fn cold() -> Vec<usize> {
    (0..N_LIKES).collect()
}

/// Draws by a sequence of low discrepancy, so every run has the same.
#[expect(clippy::cast_precision_loss, reason = "the numbers are far below what a double holds")]
fn zipf() -> Vec<usize> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let weights: Vec<f64> = (1..=N_ZIPF).map(|rank| 1.0 / rank as f64).collect();
    let all: f64 = weights.iter().sum();
    let draw = |at: usize| {
        let mut rest = (at as f64 * GOLDEN).fract() * all;
        let found = weights.iter().position(|weight| {
            rest -= weight;
            rest < 0.0
        });
        found.unwrap_or(N_ZIPF - 1)
    };
    (0..N_LIKES).map(draw).collect()
}

/// What a way of counting has cost.
struct Cost {
    elapsed_s: f64,
    cpu_s: f64,
    metered: Metered,
}

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "the figures are far below what a double holds")]
    fn print(&self, what: &str) {
        let n_likes = N_LIKES as f64;
        let Metered { write_units, read_units, n_calls } = self.metered;
        println!(
            "  {what:<28} {:.3} write units, {:.3} read units, {:.3} calls; {:.3} CPU seconds a 1,000; {:>6.0} a second",
            write_units / n_likes,
            read_units / n_likes,
            n_calls as f64 / n_likes,
            self.cpu_s * 1_000.0 / n_likes,
            n_likes / self.elapsed_s,
        );
    }
}

async fn functions(folder: &Path, posts: &[usize], share: Option<&Share>) -> Result<Cost> {
    let database = Child::database()?;
    let meter = Meter::serve(&database.endpoint).await?;
    let mut tables = Tables::create(&database.endpoint).await?;
    let mut aggregate = Lane {
        function: Function::start(&folder.join("aggregate"), meter.endpoint(), share).await?,
        filters: filters(Family::Additive)?,
    };
    let mut propagate = Lane {
        function: Function::start(&folder.join("propagate"), meter.endpoint(), None).await?,
        filters: filters(Family::LevelTriggered)?,
    };
    tables.put_posts(posts).await?;
    drain(&mut tables, &mut aggregate, &mut propagate).await?;
    tables.put_likes(posts).await?;
    meter.start();
    let (before_s, began) = (aggregate.function.cpu_s()? + propagate.function.cpu_s()?, Instant::now());
    drain(&mut tables, &mut aggregate, &mut propagate).await?;
    let elapsed_s = began.elapsed().as_secs_f64();
    let cpu_s = aggregate.function.cpu_s()? + propagate.function.cpu_s()? - before_s;
    tables.assert_shown(posts).await?;
    Ok(Cost { elapsed_s, cpu_s, metered: meter.metered() })
}

/// A function, with the filters that its mapping has in the templates.
struct Lane {
    function: Function,
    filters: Filters,
}

impl Lane {
    async fn handle(&mut self, records: &[String]) -> Result<()> {
        let needed: Vec<&str> =
            records.iter().map(String::as_str).filter(|record| self.filters.matches(record)).collect();
        for batch in needed.chunks(BATCH) {
            self.function.handle(batch).await?;
        }
        Ok(())
    }
}

fn filters(family: Family) -> Result<Filters> {
    let schema = catalogue::schema();
    let catalogue = catalogue::catalogue(&schema)?;
    let table = StreamTable::all(&schema).next().ok_or("a table with a stream")?;
    Ok(infra::mapping::filters(&needed(table, &catalogue, &[family]))?)
}

/// Gives both functions all records that there are, until they write none.
async fn drain(tables: &mut Tables, aggregate: &mut Lane, propagate: &mut Lane) -> Result<()> {
    for _ in 0..ROUNDS_MAX {
        let records = tables.new_records().await?;
        if records.is_empty() {
            return Ok(());
        }
        let (counted, looked) = tokio::join!(aggregate.handle(&records), propagate.handle(&records));
        counted?;
        looked?;
    }
    Err("the functions write records without end".into())
}

async fn by_transactions(posts: &[usize]) -> Result<Cost> {
    let database = Child::database()?;
    let meter = Meter::serve(&database.endpoint).await?;
    let mut tables = Tables::create(&database.endpoint).await?;
    tables.put_details(posts).await?;
    tables.put_likes(posts).await?;
    drop(tables.new_records().await?);
    meter.start();
    let [elapsed_s, cpu_s] = by_hand::start(meter.endpoint(), posts).await?;
    tables.assert_shown(posts).await?;
    Ok(Cost { elapsed_s, cpu_s, metered: meter.metered() })
}
