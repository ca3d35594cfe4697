//! `ripple design --check --observed`: what a running table has recorded of itself.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use derive::{
    derivation::Family,
    query::{Consistency, Query},
    write::{Table, Transaction, Write},
};
use engine::{
    batch::Engine,
    clock::{Clock, SystemClock},
};
use expect_test::expect;
use futures::future::BoxFuture;
use keys::{counter::CounterKey, item::Item, key::Key};
use serde_json::{Value, json};
use store::{
    Busy, Cursor, Outcome, Page, Reason, Segment, Store, StoreError, TransactOutcome,
    dynamo::{DynamoStore, TableNames},
};

use super::{database, ripple, table_without_stream};

/// Comments on the hot post, a batch each.
const N_COMMENTS: usize = 120;

/// A table on which every fourth sending at a counter meets another writer, which no emulator shows.
struct Contended {
    table: DynamoStore,
    n_sent: AtomicUsize,
}

impl Store for Contended {
    async fn read(&self, table: Table, keys: &[Key], how: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.table.read(table, keys, how).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.table.query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.table.scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.table.write(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        if !self.n_sent.fetch_add(1, Ordering::SeqCst).is_multiple_of(4) {
            return self.table.transact(transaction).await;
        }
        let reason = |write: &Write| match CounterKey::parse(&write.key) {
            Some(_) => Reason::Busy(Busy::Conflict),
            None => Reason::None,
        };
        Ok(TransactOutcome::Cancelled { reasons: transaction.writes().iter().map(reason).collect() })
    }
}

/// Stands still, so that all is of one minute.
pub(super) struct Still(pub(super) u64);

impl Clock for Still {
    fn now_ms(&self) -> u64 {
        self.0
    }

    fn sleep(&self, _duration: std::time::Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn chance(&self, _below: u64) -> u64 {
        0
    }
}

/// The record of a comment.
fn comment(post: &str, number: usize, now_ms: u64) -> Value {
    let (pk, sk) = (format!("POST#{post}"), format!("COMMENT#2024-01-15T10:30:00.417Z#c-{number}"));
    json!({
        "eventID": format!("{post}-{number}"),
        "eventName": "INSERT",
        "dynamodb": {
            "ApproximateCreationDateTime": now_ms / 1000,
            "Keys": {"PK": {"S": pk}, "SK": {"S": sk}},
            "NewImage": {"PK": {"S": pk}, "SK": {"S": sk}, "EntityType": {"S": "Comment"}},
            "SequenceNumber": format!("{}", 1_000 + number),
        },
    })
}

async fn count_comments(endpoint: &str) {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::latest())
        .endpoint_url(endpoint)
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new("some", "body", None, None, "any"));
    let schema = catalogue::schema();
    let catalogue = Arc::new(catalogue::catalogue(&schema).unwrap());
    let names = TableNames { main: "hot".to_owned(), ledger: "hot-ledger".to_owned() };
    let client = aws_sdk_dynamodb::Client::from_conf(config.build());
    let table = DynamoStore::new(client, schema.layout.clone(), names);
    let store = Contended { table, n_sent: AtomicUsize::new(0) };
    let clock = Still(SystemClock.now_ms());
    let (now_ms, families) = (clock.now_ms(), vec![Family::Additive]);
    let engine = Engine::new(Arc::new(schema), catalogue, families, store, Arc::new(clock));
    for number in 0..N_COMMENTS {
        let event = json!({ "Records": [comment("p-hot", number, now_ms)] }).to_string();
        let handled = engine.handle(&event, now_ms + 60_000).await.unwrap();
        assert_eq!(handled.failed_from, None);
    }
}

#[test]
fn what_is_hot_is_told_from_the_tables_own_record_with_the_shards_that_it_wants() {
    let (runtime, endpoint) = database();
    for table in ["hot", "hot-ledger"] {
        runtime.block_on(table_without_stream(&endpoint, table));
    }
    let observed = ["design", "--check", "--observed", "--endpoint", &endpoint, "--table", "hot"];
    let ended = ripple(&observed);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let first = ended.stdout.lines().next().unwrap();
    assert_eq!(first, "nothing hot was recorded in the last 24 hours");

    runtime.block_on(count_comments(&endpoint));
    let ended = ripple(&observed);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""));
    let time_is_any = |line: &str| match line.split_once("Z  ") {
        Some((_, rest)) if line.starts_with("  2") => format!("  …  {rest}"),
        _ => line.to_owned(),
    };
    let about_it = |line: &&str| !line.starts_with("  answered");
    let lines: Vec<String> = ended.stdout.lines().filter(about_it).map(time_is_any).collect();
    let (hot, found) = (lines[..3].join("\n"), lines[lines.len() - 5..].join("\n"));
    expect![[r#"
        hot  comment-count  POST#p-hot / METADATA
          …  a second: 2.0 effects, 2.0 transactions, 0.7 conflicts, 0.0 throttles; shards 1
        1 hot in the last 24 hours, each in its hottest minute"#]]
    .assert_eq(&hot);
    expect![[r#"
        more-shards  comment-count of POST#p-hot / METADATA
          found     0.7 conflicts a second in its worst minute, 25 % of what was sent, over 1 of 1 shards; 30 shards would bring that to 1 %
          matters   a transaction that meets another is cancelled as a whole, charged, and sent again; the changes of its batch wait
          to do     declare that many shards, which can be done while the service runs
        10 findings, 1 not answered"#]].assert_eq(&found);

    let ended = ripple(&[&observed[..], &["--hours", "1", "--json"]].concat());
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &shown["unanswered"], &shown["observed"]["hours"]), (Some(3), &json!(1), &json!(1)));
    let hot = &shown["observed"]["hot"];
    assert_eq!(
        (hot.as_array().unwrap().len(), &hot[0]["pk"], &hot[0]["conflicts"]),
        (1, &json!("POST#p-hot"), &json!(40))
    );
}
