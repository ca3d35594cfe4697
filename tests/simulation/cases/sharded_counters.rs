//! Sharded counters on single records: their number of shards changes while they count, and a contended counter does
//! not hold up others.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use derive::{
    family::Family,
    write::{Table, Write},
};
use engine::{batch::Handled, ledger::LedgerKind};
use entities::posts::{PostDetail, PostDetailKey};
use keys::{counter::CounterKey, key::Key};
use queries::Queries;
use serde_json::Value;
use store::{
    faulty::{Call, Fault, Side},
    recording::{Recording, Request},
};

use crate::{
    cases::bed::{Bed, SHARD},
    scene::sharding::with_shards,
};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

/// Users like the post, from one of them to another.
async fn likes(bed: &mut Bed, users: std::ops::Range<usize>) -> Vec<Value> {
    for user in users {
        bed.put("Like", &[("PostId", "p"), ("UserId", &format!("u{user}"))], &[]).await;
    }
    bed.records()
}

/// Handles the batch on a shard of the stream.
async fn handle_on(bed: &Bed, shard: usize, records: &[Value]) -> Handled {
    let event = bed.event(records).replace(SHARD, &format!("shardId-{shard}"));
    bed.try_handle(&event).await.unwrap()
}

/// The likes of the post by AP-040, which is one query.
async fn exact_likes(bed: &Bed) -> i64 {
    let store = Arc::new(Recording::new(bed.store()));
    let queries = Queries::new(Arc::clone(&store), || 0);
    let counts = queries.counts_of::<PostDetail>(&PostDetailKey { post_id: "p".into() }).await.unwrap();
    assert!(counts.unreadable.is_empty());
    let requests = store.take();
    let Some(Request::Query(Table::Main, query, None)) = requests.first() else { panic!("{requests:?}") };
    for request in &requests {
        assert!(matches!(request, Request::Query(_, page, _) if page == query), "pages of one query: {request:?}");
    }
    counts.of("like-count").value.unwrap()
}

/// The shards of the post's counter that have items.
fn shards(bed: &Bed) -> BTreeSet<u32> {
    let items = bed.memory().snapshot(Table::Main);
    let counters = items.keys().filter_map(CounterKey::parse);
    counters.filter(|counter| counter.derivation == "like-count").map(|counter| counter.shard).collect()
}

#[tokio::test]
async fn a_counter_gets_more_and_fewer_shards_between_invocations_and_its_exact_value_is_right_throughout() {
    const LIKES: usize = 20;
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let mut all = Vec::new();
        let mut n_shards_seen = Vec::new();
        for (round, n_shards) in [16, 3, 40, 1, 100, 16].into_iter().enumerate() {
            bed.catalogue = Arc::new(with_shards(n_shards));
            let records = likes(&mut bed, round * LIKES..(round + 1) * LIKES).await;
            for (at, record) in records.chunks(1).enumerate() {
                // A stream shard keeps the number that it began with, under watermarks, so each record has one of its own.
                let at = round * LIKES + at;
                assert_eq!(handle_on(&bed, at, record).await.failed_from, None, "{ledger}");
                let n_likes = i64::try_from(at + 1).unwrap();
                assert_eq!(exact_likes(&bed).await, n_likes, "{ledger}, {n_shards} shards");
            }
            // The displays follow.
            bed.settle().await;
            n_shards_seen.push(shards(&bed).len());
            all.extend((round * LIKES..).zip(records));
        }
        assert!(n_shards_seen.windows(2).all(|pair| pair[0] <= pair[1]), "none is lost: {n_shards_seen:?}");
        assert!(n_shards_seen.last() > n_shards_seen.first(), "more were added: {n_shards_seen:?}");
        // A counted change does not count again, on whichever shard its record is repeated.
        bed.catalogue = Arc::new(with_shards(7));
        for (at, record) in &all {
            handle_on(&bed, *at, std::slice::from_ref(record)).await;
        }
        assert_eq!(exact_likes(&bed).await, i64::try_from(all.len()).unwrap());
        assert_eq!(bed.findings(), [""; 0]);
    }
}

#[tokio::test]
async fn what_many_shards_counted_is_taken_back_by_one_and_the_sum_is_exact() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let records = likes(&mut bed, 0..30).await;
        for (at, record) in records.chunks(1).enumerate() {
            handle_on(&bed, at, record).await;
        }
        assert!(shards(&bed).len() > 5);
        bed.catalogue = Arc::new(with_shards(1));
        for n_left in (0..30).rev() {
            let like = bed.schema.entity("Like").unwrap();
            let user = format!("u{n_left}");
            let fields = [("PostId", "p"), ("UserId", user.as_str())].into_iter().collect();
            bed.delete(&like.build(&fields).unwrap()).await;
            let records = bed.records();
            handle_on(&bed, 0, &records).await;
            assert_eq!(exact_likes(&bed).await, n_left, "{ledger}");
        }
        assert_eq!(bed.findings(), [""; 0], "one shard is below zero, and the others make up for it");
    }
}

#[tokio::test]
async fn two_functions_of_which_one_has_the_new_number_of_shards_count_at_once() {
    for ledger in LEDGERS {
        let mut bed = Bed::new().under(ledger);
        let (mine, others) = (likes(&mut bed, 0..6).await, likes(&mut bed, 6..12).await);
        let mut old = bed.start(&bed.event(&mine));
        old.turn();
        bed.catalogue = Arc::new(with_shards(3));
        assert_eq!(handle_on(&bed, 2, &others).await.failed_from, None);
        assert_eq!(exact_likes(&bed).await, 6);
        assert_eq!(old.finish().unwrap().unwrap().failed_from, None);
        assert_eq!(exact_likes(&bed).await, 12, "{ledger}");
        // It comes to the new function again.
        assert_eq!(bed.handle(&mine).await.account.n_duplicates, 6);
        assert_eq!(exact_likes(&bed).await, 12, "{ledger}");
    }
}

/// Shards that were counted without a revision, under receipts or by a redrive, are part of what the target shows.
#[tokio::test]
async fn one_shard_that_counts_after_many_without_a_revision_shows_what_all_come_to() {
    let mut bed = Bed::new();
    let post = [("AuthorId", "ann"), ("CreatedAt", "2024-01-15"), ("PostId", "p")];
    bed.put("Post", &post, &[("Status", "published")]).await;
    bed.settle().await;
    let records = likes(&mut bed, 0..30).await;
    for (at, record) in records.chunks(1).enumerate() {
        handle_on(&bed, at, record).await;
    }
    bed.settle().await;
    assert!(shards(&bed).len() > 5);
    let mut bed = bed.under(LedgerKind::Watermarks);
    bed.catalogue = Arc::new(with_shards(1));
    let records = likes(&mut bed, 30..31).await;
    handle_on(&bed, 0, &records).await;
    bed.settle().await;
    assert_eq!(exact_likes(&bed).await, 31);
    assert_eq!(bed.findings(), [""; 0]);
}

/// The key of the counter of a group's members.
fn members(bed: &Bed, group: usize) -> Key {
    let fields = [("GroupId", format!("g{group}"))];
    let fields = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let target = bed.schema.entity("Group").unwrap().build(&fields).unwrap();
    CounterKey { target, derivation: "member-count".to_owned(), shard: 0 }.key().unwrap()
}

/// A user joins six groups in one batch, while another writer holds the counter of the third group for three attempts.
/// Returns the groups that each committed transaction counted.
async fn with_the_third_held() -> Vec<Vec<usize>> {
    let mut bed = Bed::new().running(Family::Additive);
    let records = bed.joins(6).await;
    let groups: Vec<Key> = (0..6).map(|group| members(&bed, group)).collect();
    let done: Arc<Mutex<Vec<Vec<usize>>>> = Arc::default();
    let (committed, mut n_left) = (Arc::clone(&done), 3);
    bed.fails(move |call| {
        let Call::Transact(transaction) = call else { return None };
        let place = |write: &Write| groups.iter().position(|group| *group == write.key);
        let counted: Vec<Option<usize>> = transaction.writes().iter().map(place).collect();
        if let Some(at) = counted.iter().position(|group| *group == Some(2)).filter(|_| n_left > 0) {
            n_left -= 1;
            return Some((Side::Before, Fault::Conflict(at)));
        }
        committed.lock().unwrap().push(counted.into_iter().flatten().collect());
        None
    });
    let handled = bed.handle(&records).await;
    assert_eq!((handled.failed_from, handled.account.n_retries), (None, 3));
    assert_eq!(bed.counted("member-count"), 6);
    let done = done.lock().unwrap();
    done.clone()
}

#[tokio::test]
async fn under_receipts_a_contended_counter_holds_up_nobody_else_of_its_transaction() {
    let done = with_the_third_held().await;
    assert_eq!(done, [vec![0, 1, 3, 4, 5], vec![2]], "all others at once, and it when its counter is free");
}
