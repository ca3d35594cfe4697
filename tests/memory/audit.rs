//! Memory and time of an audit: the memory does not grow with the table, and the time is compared with a bare scan.
//!
//! A test binary of its own, with one test: the allocator counts for the whole process. `AUDIT_ITEMS` is the number of
//! items.

use std::{sync::Arc, time::Instant};

use derive::{
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use keys::{item::Item, key::Key};
use operate::{
    audit::{AuditOptions, SeenSoFar, audit},
    tables::Deployment,
    verify::{Progress, check::ReadPrice},
};
use peak_alloc::PeakAlloc;
use serde_dynamo::AttributeValue;
use store::{Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Items without `AUDIT_ITEMS`: more than a window of 16 MB.
const N_ITEMS: usize = 60_000;

/// Likes of each post; every tenth post displays one too many.
const LIKES: usize = 19;

/// Items of a page.
const PAGE: usize = 1_000;

/// What may be allocated beside what was before, in bytes: a window of 16 MB of items, as it is in memory, and its
/// comparisons.
const BYTES_MAX: usize = 100_000_000;

const MANIFEST: &str = r#"
[table]
partition-key = "pk"
sort-key = "sk"
type = "Type"

[entity.Post]
partition-key = "POST#{postId}"
sort-key = "POST"
derived-attributes = ["likeCount"]

[entity.Like]
partition-key = "POST#{postId}"
sort-key = "LIKE#{userId}"

[derivation.likes]
kind = "count"
from = "Like"
into = "Post.likeCount"
"#;

/// A table that makes its items on request: posts, each with its likes.
struct Generated {
    n_items: usize,
}

fn s(text: String) -> AttributeValue {
    AttributeValue::S(text)
}

impl Generated {
    fn item(number: usize) -> Item {
        let (post, like) = (number / (LIKES + 1), number % (LIKES + 1));
        let pk = ("pk".to_owned(), s(format!("POST#{post:08}")));
        let text = ("text".to_owned(), s("x".repeat(300)));
        let mut item = if like == 0 {
            let shown = LIKES + usize::from(post % 10 == 0);
            let shown = ("likeCount".to_owned(), AttributeValue::N(shown.to_string()));
            Item::from([("sk".to_owned(), s("POST".to_owned())), ("Type".to_owned(), s("Post".to_owned())), shown])
        } else {
            Item::from([("sk".to_owned(), s(format!("LIKE#{like:04}"))), ("Type".to_owned(), s("Like".to_owned()))])
        };
        item.extend([pk, text]);
        item
    }
}

impl Store for Generated {
    async fn read(&self, _: Table, _: &[Key], _: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        Ok(Vec::new())
    }

    async fn query(&self, _: Table, _: &Query, _: Option<Cursor>) -> Result<Page, StoreError> {
        Ok(Page { items: Vec::new(), next: None })
    }

    async fn scan(&self, _: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        let share = self.n_items / usize::try_from(segment.of).unwrap();
        let first = share * usize::try_from(segment.number).unwrap();
        let number = |pk: &str, sk: &str| {
            let post: usize = pk.trim_start_matches("POST#").parse().unwrap();
            post * (LIKES + 1) + sk.strip_prefix("LIKE#").map_or(0, |like| like.parse().unwrap())
        };
        let from = after.map_or(first, |Cursor(last)| {
            let text = |name: &str| keys::item::text(&last, name).unwrap().to_owned();
            number(&text("pk"), &text("sk")) + 1
        });
        let end = (from + PAGE).min(first + share);
        let items: Vec<Item> = (from..end).map(Self::item).collect();
        let key = |item: &Item| -> Item {
            ["pk", "sk"].iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.clone()))).collect()
        };
        let last = items.last().map(key);
        Ok(Page { items, next: last.filter(|_| end < first + share).map(Cursor) })
    }

    async fn write(&self, _: &Write) -> Result<Outcome, StoreError> {
        panic!("an audit writes nothing")
    }

    async fn update(&self, _: &Write) -> Result<Updated, StoreError> {
        panic!("an audit writes nothing")
    }

    async fn transact(&self, _: &Transaction) -> Result<TransactOutcome, StoreError> {
        panic!("an audit writes nothing")
    }
}

/// Ignores the progress.
struct Unseen;

impl Progress for Unseen {
    fn begins(&self, _price: ReadPrice) {}

    fn read(&self, _n_items: usize) {}

    fn looked(&self, _n_items: usize) {}

    fn counted(&self, _n_counts: usize) {}

    fn waits(&self, _until_ms: u64) {}
}

/// The bare scan of all segments: the seconds, and the items.
async fn scanned(table: &Generated) -> (f64, usize) {
    let (began, mut n_items) = (Instant::now(), 0);
    for number in 0..4 {
        let mut after = None;
        loop {
            let page = table.scan(Table::Main, Segment { number, of: 4 }, after).await.unwrap();
            n_items += page.items.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    (began.elapsed().as_secs_f64(), n_items)
}

#[tokio::test]
async fn the_memory_of_an_audit_does_not_grow_with_the_table() {
    let n_items = std::env::var("AUDIT_ITEMS").map_or(N_ITEMS, |text| text.parse().unwrap());
    // Each segment begins with a post.
    let n_items = n_items / (4 * (LIKES + 1)) * 4 * (LIKES + 1);
    let (schema, catalogue) = manifest::load(MANIFEST).unwrap();
    let (bare, n_scanned) = scanned(&Generated { n_items }).await;
    let opened = Deployment {
        schema: Arc::new(schema),
        catalogue: Arc::new(catalogue),
        store: Arc::new(Generated { n_items }),
        name: "table".to_owned(),
        arn: String::new(),
        streams: Vec::new(),
        n_items: 0,
        bytes: 0,
        is_aws: false,
    };
    let options = AuditOptions { segments: 4, read_units: None, at_rest: true, has_values: false };
    let progress: Arc<dyn Progress> = Arc::new(Unseen);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let began = Instant::now();
    let audited = audit(&opened, &options, &Arc::<SeenSoFar>::default(), &progress).await.unwrap();
    let (seconds, peak) = (began.elapsed().as_secs_f64(), ALLOCATOR.peak_usage() - before);
    println!(
        "{n_items} items: peak {peak} bytes, {seconds:.1} s; a bare scan {bare:.1} s, {:.1} times",
        seconds / bare
    );
    assert_eq!((n_scanned, audited.extent.n_items), (n_items, n_items));
    let display = &audited.totals.derivations[1];
    let n_posts = n_items / (LIKES + 1);
    assert_eq!((display.values, display.wrong), (n_posts, n_posts.div_ceil(10)));
    assert!(peak < BYTES_MAX, "{peak} bytes");
}
