//! Memory while much is parked: the sweep and a verification read what is parked page by page, and keep no record.
//!
//! A test binary of its own, with one test: the allocator counts for the whole process.

#[path = "../../benches/sweep/jobs.rs"]
mod jobs;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use derive::{
    family::Family,
    query::{Consistency, Query},
    schema::Schema,
    write::{Action, Table, Transaction, Write},
};
use engine::{
    backoff::Patience,
    batch::Engine,
    park::Parking,
    record::{Head, Lane},
};
use jobs::Jobs;
use keys::{
    item::{Item, text},
    key::Key,
    size::item_bytes,
};
use peak_alloc::PeakAlloc;
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};
use support::{clock::ManualClock, record::Record};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Milliseconds since the epoch.
const NOW_MS: u64 = 1_705_315_200_000;

/// Parked changes of either family: each is a page of 300 KB.
const N_PARKED: usize = 100;

/// What may be allocated beside what was before, in bytes: a page, its record inflated and decoded, and as much again. All
/// of a family is 30 MB.
const BYTES_MAX: usize = 4_000_000;

/// The attribute of a parked item in which parts of one change are equal.
const EVENT_ID: &str = "EventId";

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A store with one due job and many parked changes. It makes a page of one change on request and keeps no page.
struct Parked {
    jobs: Jobs,
    part: Item,
    n_pages: AtomicUsize,
}

impl Store for Parked {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.jobs.read(table, keys, how).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        if !query.pk.starts_with("PARKED#") {
            return self.jobs.query(table, query, after).await;
        }
        self.n_pages.fetch_add(1, Ordering::Relaxed);
        let number: usize = after.map_or(0, |Cursor(last)| text(&last, EVENT_ID).unwrap().parse().unwrap()) + 1;
        let mut part = self.part.clone();
        part.insert(EVENT_ID.to_owned(), s(&number.to_string()));
        let last = Item::from([(EVENT_ID.to_owned(), s(&number.to_string()))]);
        let next = (number < N_PARKED).then_some(Cursor(last));
        Ok(Page { items: vec![part], next })
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.jobs.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.jobs.write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.jobs.update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.jobs.transact(transaction).await
    }
}

/// The parked item of a comment with a text of 300 KB that does not compress.
fn parked_comment(schema: &Schema) -> Item {
    let mut state = 1_u64;
    let letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from(state >> 58).unwrap())
    };
    let content: String = std::iter::repeat_with(letter).filter(|it| *it != '\\').take(390_000).collect();
    let keys = schema.layout.key_item(&Key::new("POST#p1", "COMMENT#2024-01-15T10:30:00.000Z#c1"));
    let mut comment = keys.clone();
    comment.insert("EntityType".to_owned(), s("Comment"));
    comment.insert("Content".to_owned(), s(&content));
    let record = Record {
        id: "e0",
        sequence_number: "1",
        keys: &keys,
        old: None,
        new: Some(&comment),
        at_ms: NOW_MS,
        is_expiry: false,
    }
    .json();
    let head = Head { id: Some("e0".to_owned()), ..Head::default() };
    let parking = Parking {
        head: &head,
        record: &record,
        cause: "a test",
        family: Family::LevelTriggered,
        lane: &Lane::default(),
        counter: None,
        exception: None,
    };
    let [Write { action: Action::Put(part), .. }] = &parking.writes(&schema.layout, NOW_MS)[..] else {
        panic!("one part")
    };
    part.clone()
}

#[test]
fn parked_changes_are_read_page_by_page_and_not_kept() {
    let schema = Arc::new(catalogue::schema());
    let catalogue = Arc::new(catalogue::catalogue(&schema).unwrap());
    let part = parked_comment(&schema);
    let bytes = item_bytes(&part);
    assert!((250_000..350_000).contains(&bytes), "{bytes} bytes");
    let jobs = Jobs::new(&schema, NOW_MS, (1, 1), Duration::ZERO);
    let table = Arc::new(Parked { jobs, part, n_pages: AtomicUsize::new(0) });
    let (families, clock) = (vec![Family::Additive, Family::LevelTriggered], ManualClock::at(NOW_MS));
    let engine = Engine::new(schema, catalogue, families, Arc::clone(&table), Arc::new(clock.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let patience = Patience::new(&clock, NOW_MS + 60_000);
    let measured = |work: &dyn Fn()| {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        work();
        (table.n_pages.swap(0, Ordering::Relaxed), ALLOCATOR.peak_usage() - before)
    };
    let verification_of_counts = measured(&|| drop(runtime.block_on(engine.what_counts_wait_for(patience)).unwrap()));
    let verification_of_items = measured(&|| drop(runtime.block_on(engine.what_is_under_way(patience)).unwrap()));
    let sweep = measured(&|| assert_eq!(runtime.block_on(engine.sweep(|_| true, NOW_MS + 60_000)).unwrap().n_due, 1));
    let all = [verification_of_counts, verification_of_items, sweep];
    assert_eq!(all.map(|(n_pages, _)| n_pages), [N_PARKED, 2 * N_PARKED, N_PARKED]);
    assert!(all.iter().all(|(_, bytes)| *bytes < BYTES_MAX), "{all:?}");
}
