//! What a counted change costs, and how many counts are wrong in the end, for several ways of counting under equal faults.
//!
//! `cargo bench -p benches --bench side_by_side`. The database is the embedded DynamoDB, and write units are its
//! `ReturnConsumedCapacity`; read units are calculated from the items that come back. 4,000 users join groups: one group,
//! groups by a Zipf distribution, or each another group. The groups do not show their counts, so all units are those of
//! the counters and of the ledger.
//!
//! Batches have 100 changes. Of 100 deliveries, 10 end because the function is killed, and 10 end well but come again;
//! what comes again is cut elsewhere. 5 % of the writes lose their answer after they are done. [`faults`] draws all this
//! from a seed, so every way of counting meets the same faults. The units are those of the whole run, with what the
//! retries cost. Refused writes are those whose condition does not hold, all writes of a cancelled transaction among them:
//! AWS charges them, and no answer reports it.
//!
//! The last line is of a run in which no answer is lost, so that it shows what the kills alone do.
//!
//! The bench panics if a way of counting that is exact ends with a wrong count, or if no function was killed or no answer
//! was lost.

mod by_hand;
mod faults;

use std::{collections::BTreeMap, fmt, ops::Range, sync::Arc};

use benches::joins::{COUNTER_SK, event, group, join, member_count};
use derive::{family::Family, write::Table};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
    ledger::LedgerKind,
};
use keys::item::Item;
use serde_dynamo::AttributeValue;
use store::{Segment, Store, dynamo::DynamoStore};
use support::database::{client, create_table, embedded_endpoint, unique_names};

use crate::{
    by_hand::{INVOCATION_MS, add_each, add_summed, powertools, summed, transactions},
    faults::{Delivery, Faulty, N_LOST, deliveries, draw},
};

/// Changes of a run.
const N_CHANGES: usize = 4_000;

/// Groups of the Zipf distribution, and its exponent.
const N_ZIPF: usize = 1_000;
const EXPONENT: f64 = 1.5;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let endpoint = embedded_endpoint().await;
        let ways = [Way::AddEach, Way::AddSummed, Way::Transactions, Way::Powertools]
            .into_iter()
            .chain([LedgerKind::Receipts, LedgerKind::Watermarks].map(Way::Ripple));
        for way in ways {
            for (name, groups) in [("hot", hot()), ("Zipf", zipf()), ("cold", cold())] {
                println!("{way:<32} {name:<5} {}", run(&endpoint, way, &groups, N_LOST).await);
            }
        }
        let way = Way::Powertools;
        println!("the same functions killed, and no answer lost:");
        println!("{way:<32} cold  {}", run(&endpoint, way, &cold(), 0).await);
    });
}

/// The groups that are joined, in order.
fn hot() -> Vec<usize> {
    vec![0; N_CHANGES]
}

#[expect(clippy::cast_precision_loss, reason = "the numbers are far below what a double holds")]
fn zipf() -> Vec<usize> {
    let weights = (1..=N_ZIPF).map(|rank| (rank as f64).powf(-EXPONENT));
    let up_to: Vec<f64> = weights
        .scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        })
        .collect();
    let all = up_to.last().expect("a group");
    let drawn = |change| draw([change as u64, 0, 0, 5], 1 << 32) as f64 / (1_u64 << 32) as f64 * all;
    (0..N_CHANGES).map(|change| up_to.partition_point(|sum| *sum <= drawn(change))).collect()
}

fn cold() -> Vec<usize> {
    (0..N_CHANGES).collect()
}

/// A way of counting.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    AddEach,
    AddSummed,
    Transactions,
    Powertools,
    Ripple(LedgerKind),
}

impl Way {
    fn is_exact(self) -> bool {
        matches!(self, Self::Transactions | Self::Ripple(_))
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddEach => f.pad("ADD for each change"),
            Self::AddSummed => f.pad("ADD for each group of a batch"),
            Self::Transactions => f.pad("transactions with markers"),
            Self::Powertools => f.pad("Powertools' idempotency"),
            Self::Ripple(ledger) => f.pad(&format!("aggregate, {ledger}")),
        }
    }
}

/// What a run cost and how it ended.
struct Run {
    write_units: f64,
    read_units: f64,
    n_refused: usize,
    n_lost: u64,
    n_killed: u64,
    n_wrong: usize,
    n_groups: usize,
}

impl fmt::Display for Run {
    #[expect(clippy::cast_precision_loss, reason = "the figures are far below what a double holds")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |number: f64| number / N_CHANGES as f64;
        write!(
            f,
            "{:>6.3} write units, {:.4} read units, {:.3} refused writes a change; {:>4} of {:>4} counts wrong \
             ({} answers lost, {} killed)",
            each(self.write_units),
            each(self.read_units),
            each(self.n_refused as f64),
            self.n_wrong,
            self.n_groups,
            self.n_lost,
            self.n_killed
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "the figures are far below what a double holds")]
async fn run(endpoint: &str, way: Way, groups: &[usize], n_lost: u64) -> Run {
    let (schema, names) = (catalogue::schema(), unique_names());
    let client = client(endpoint);
    create_table(&client, &names.main, &schema.layout).await;
    create_table(&client, &names.ledger, &schema.layout).await;
    let store = Arc::new(Faulty::new(DynamoStore::new(client, schema.layout, names), n_lost));
    let mut now_ms = SystemClock.now_ms();
    for delivery in deliveries(N_CHANGES) {
        delivered(&store, way, groups, &delivery, &mut now_ms).await;
    }
    let Ok((database, metered)) = Arc::try_unwrap(store).map(Faulty::into_parts) else { panic!("a function is left") };
    let stored = counts(&database).await;
    let right = summed(groups, 0..groups.len());
    let n_wrong = right.iter().filter(|(into, n)| stored.get(&group(**into)) != Some(*n)).count();
    assert!(!way.is_exact() || n_wrong == 0 && stored.len() == right.len(), "{way}: {n_wrong} counts are wrong");
    assert!(metered.n_killed > 0 && (metered.n_lost > 0) == (n_lost > 0), "{way}: the run had no faults");
    Run {
        write_units: metered.write_units,
        read_units: metered.read_halves as f64 / 2.0,
        n_refused: metered.n_refused,
        n_lost: metered.n_lost,
        n_killed: metered.n_killed,
        n_wrong,
        n_groups: right.len(),
    }
}

/// A delivery until the function is killed or has done all of it.
/// What a function reports as failed is delivered again, after the time of the invocation.
async fn delivered(store: &Arc<Faulty>, way: Way, groups: &[usize], delivery: &Delivery, now_ms: &mut u64) {
    let (mut changes, mut n_attempts) = (delivery.changes.clone(), 0);
    while !changes.is_empty() {
        store.starts(delivery, n_attempts).await;
        *now_ms += INVOCATION_MS + 1;
        let failed = tokio::select! {
            failed = invoked(store, way, groups, changes.clone(), *now_ms) => failed,
            () = store.killed() => return,
        };
        if store.is_killed_at_its_end().await {
            return;
        }
        changes.start = failed.unwrap_or(changes.end);
        n_attempts += 1;
        assert!(n_attempts < 20, "{way}: the delivery {} does not end", delivery.number);
    }
}

/// One invocation. Returns the first change that failed.
async fn invoked(store: &Arc<Faulty>, way: Way, groups: &[usize], changes: Range<usize>, now_ms: u64) -> Option<usize> {
    match way {
        Way::AddEach => add_each(store, groups, changes).await,
        Way::AddSummed => add_summed(store, groups, changes).await,
        Way::Transactions => transactions(store, &catalogue::schema().layout, groups, changes).await,
        Way::Powertools => return powertools(store, groups, changes, now_ms).await,
        Way::Ripple(ledger) => return aggregate(store, ledger, groups, changes).await,
    }
    None
}

async fn aggregate(store: &Arc<Faulty>, ledger: LedgerKind, groups: &[usize], changes: Range<usize>) -> Option<usize> {
    let schema = catalogue::schema();
    let catalogue = Arc::new(member_count(&schema));
    let (families, clock) = (vec![Family::Additive], Arc::new(SystemClock));
    let function = Engine::new(Arc::new(schema), catalogue, families, Arc::clone(store), clock).with_ledger(ledger);
    let created_ms = SystemClock.now_ms();
    let records: Vec<_> = changes.clone().map(|change| join(change, groups[change], created_ms)).collect();
    let handled =
        Box::pin(function.handle(&event(&records), SystemClock.now_ms() + INVOCATION_MS)).await.expect("an event");
    assert!(handled.account.parked.is_empty(), "no change is parked");
    let failed = handled.failed_from?;
    let number = |record: &serde_json::Value| record["dynamodb"]["SequenceNumber"] == failed.as_str();
    Some(changes.start + records.iter().position(number).unwrap_or(0))
}

/// The count of each group, read from its counter.
async fn counts(database: &DynamoStore) -> BTreeMap<String, usize> {
    let (mut counts, mut after) = (BTreeMap::new(), None);
    loop {
        let page = database.scan(Table::Main, Segment::WHOLE, after).await.expect("a page");
        counts.extend(page.items.iter().filter_map(count));
        after = page.next;
        if after.is_none() {
            return counts;
        }
    }
}

fn count(item: &Item) -> Option<(String, usize)> {
    let text = |name: &str| match item.get(name) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => Some(text.as_str()),
        _ => None,
    };
    (text("SK") == Some(COUNTER_SK)).then_some(())?;
    Some((text("PK")?.to_owned(), text("Value")?.parse().ok()?))
}
