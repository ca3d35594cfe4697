//! Reads: by key, by query, by index, of a whole table.

use derive::{
    query::{Consistency, Order, Query, SortKeys},
    write::Table,
};
use keys::{item::Item, key::Key};
use store::{Segment, Store};

use crate::{
    contract::{Bed, in_ledger, item, item_of_bytes, key, put, set, update},
    n, s,
};

fn query(pk: &str, prefix: &str) -> Query {
    Query::prefix(None, pk, prefix)
}

fn sort_keys(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| keys::item::text(item, "SK").unwrap()).collect()
}

pub(crate) async fn items_are_read_by_key_in_any_number<S: Store>(bed: Bed<S>) {
    let keys: Vec<Key> =
        (0..330).map(|position| Key::new(format!("P#{}", position % 7), position.to_string())).collect();
    let is_there = |position: &usize| !position.is_multiple_of(3);
    let there: Vec<usize> = (0..keys.len()).filter(is_there).collect();
    for some in there.chunks(100) {
        let put_one = |&at: &usize| put(&keys[at], item(&keys[at], [("Value", n(&at.to_string()))]));
        bed.all_done(some.iter().map(put_one).collect()).await;
    }
    let mut asked = keys.clone();
    asked.extend_from_slice(&keys[..10]);
    let mut found = bed.store.get(Table::Main, &asked).await.unwrap();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut wanted: Vec<(Key, Item)> =
        there.iter().map(|&at| (keys[at].clone(), item(&keys[at], [("Value", n(&at.to_string()))]))).collect();
    wanted.sort_by(|(a, _), (b, _)| a.cmp(b));
    bed.same(&found, &wanted, "each once, the missing ones not");
    bed.same(&bed.store.get(Table::Ledger, &keys).await.unwrap(), &vec![], "the other table");
    bed.same(&bed.store.get(Table::Main, &[]).await.unwrap(), &vec![], "no key");
}

pub(crate) async fn a_query_goes_over_pages_in_order<S: Store>(bed: Bed<S>) {
    for sk in ["d", "b", "e", "a", "c"] {
        bed.done(&put(&key(sk), item_of_bytes(&key(sk), 300 * 1_024))).await;
    }
    let (items, n_pages) = bed.query_all(&query("P#1", "")).await;
    bed.same(&sort_keys(&items), &vec!["a", "b", "c", "d", "e"], "order");
    assert!(n_pages > 1, "{}: {n_pages} page", bed.name);
}

pub(crate) async fn a_key_that_no_item_can_have_is_read_as_nothing<S: Store>(bed: Bed<S>) {
    bed.done(&put(&key("a"), item(&key("a"), []))).await;
    let impossible =
        [Key::new("P".repeat(2_049), "a"), Key::new("P#1", "a".repeat(1_025)), Key::new("P#1", ""), Key::new("", "a")];
    for one in &impossible {
        bed.same(&bed.item(one).await, &None, "alone");
    }
    let keys: Vec<Key> = impossible.into_iter().chain([key("a")]).collect();
    let found = bed.store.get(Table::Main, &keys).await.unwrap();
    bed.same(&found.len(), &1, "beside another");
}

pub(crate) async fn a_query_under_a_key_that_no_item_can_have_finds_nothing<S: Store>(bed: Bed<S>) {
    bed.done(&put(&key("a"), item(&key("a"), []))).await;
    for query in [query(&"P".repeat(2_049), ""), query("P#1", &"a".repeat(1_025)), query("", "")] {
        let (items, _) = bed.query_all(&query).await;
        bed.same(&items, &vec![], "none");
    }
    let (items, _) = bed.query_all(&query("P#1", "a")).await;
    bed.same(&sort_keys(&items), &vec!["a"], "the others");
}

pub(crate) async fn a_scan_goes_over_pages<S: Store>(bed: Bed<S>) {
    for table in [Table::Main, Table::Ledger] {
        for sk in ["a", "b", "c", "d", "e"] {
            let key = Key::new(format!("P#{sk}"), sk);
            let write = put(&key, item_of_bytes(&key, 300 * 1_024));
            bed.done(&if table == Table::Ledger { in_ledger(write) } else { write }).await;
        }
        let (items, n_pages) = bed.scan_all(table).await;
        let mut found = sort_keys(&items);
        found.sort_unstable();
        bed.same(&found, &vec!["a", "b", "c", "d", "e"], table);
        assert!(n_pages > 1, "{}: {n_pages} page", bed.name);
        // Each item is in one segment.
        let (mut found, of) = (Vec::new(), 3);
        for number in 0..of {
            found.extend(bed.scan_segment(table, Segment { number, of }).await.0);
        }
        let mut found = sort_keys(&found);
        found.sort_unstable();
        bed.same(&found, &vec!["a", "b", "c", "d", "e"], table);
    }
}

pub(crate) async fn a_query_takes_the_start_of_the_sort_key<S: Store>(bed: Bed<S>) {
    // The order is that of the UTF-8 bytes; `B` comes before `a`, `ä` after `z`.
    let all = ["A#1", "A#10", "A#2", "A#B", "A#a", "A#z", "A#ä", "A#€", "A#😀", "AB", "B#1", "a"];
    for sk in all.into_iter().rev() {
        bed.done(&put(&key(sk), item(&key(sk), []))).await;
    }
    let other = Key::new("P#10", "A#1");
    bed.done(&put(&other, item(&other, []))).await;
    for (prefix, wanted) in
        [("", &all[..]), ("A#", &all[..9]), ("A", &all[..10]), ("A#1", &all[..2]), ("A#ä", &all[6..7]), ("C", &[])]
    {
        let (items, _) = bed.query_all(&query("P#1", prefix)).await;
        bed.same(&sort_keys(&items), &wanted.to_vec(), prefix);
    }
}

pub(crate) async fn a_query_takes_a_range_in_either_order_and_so_many_a_page<S: Store>(bed: Bed<S>) {
    for (at, sk) in ["A#1", "A#2", "A#3", "B", "COMMENT#1", "COMMENT#2", "METADATA", "METADATA#X"].iter().enumerate() {
        let place = [("GSI1PK", s("G")), ("GSI1SK", s(&format!("{}", at / 2)))];
        bed.done(&put(&key(sk), item(&key(sk), place))).await;
    }
    let between = |first: &str, last: &str| SortKeys::Between(first.to_owned(), last.to_owned());
    let of = |index, sk, order, limit| Query { order, limit, ..Query::of(index, "P#1", sk) };
    for (sk, wanted) in [
        (SortKeys::All, vec!["A#1", "A#2", "A#3", "B", "COMMENT#1", "COMMENT#2", "METADATA", "METADATA#X"]),
        (SortKeys::Prefix("A#".to_owned()), vec!["A#1", "A#2", "A#3"]),
        (between("COMMENT#", "METADATA"), vec!["COMMENT#1", "COMMENT#2", "METADATA"]),
        (between("A#2", "A#3"), vec!["A#2", "A#3"]),
        (between("C", "C#"), vec![]),
        (between("A#2\0", "B"), vec!["A#3", "B"]),
        (SortKeys::After("COMMENT#1".to_owned()), vec!["COMMENT#2", "METADATA", "METADATA#X"]),
        (SortKeys::After("METADATA#X".to_owned()), vec![]),
    ] {
        for limit in [None, Some(1), Some(2), Some(100)] {
            let (up, n_pages) = bed.query_all(&of(None, sk.clone(), Order::Ascending, limit)).await;
            bed.same(&sort_keys(&up), &wanted, (&sk, limit));
            let (mut down, _) = bed.query_all(&of(None, sk.clone(), Order::Descending, limit)).await;
            down.reverse();
            bed.same(&sort_keys(&down), &wanted, (&sk, limit, "descending"));
            // A full page says that there may be more.
            assert!(limit.is_none_or(|limit| n_pages >= wanted.len() / limit as usize), "{}: {n_pages}", bed.name);
        }
    }
    let indexed = |order, limit| Query { order, limit, ..Query::of(Some("GSI1"), "G", between("1", "2")) };
    for limit in [None, Some(1), Some(3)] {
        let (up, _) = bed.query_all(&indexed(Order::Ascending, limit)).await;
        let (mut down, _) = bed.query_all(&indexed(Order::Descending, limit)).await;
        down.reverse();
        let of_index = |items: &[Item]| -> Vec<String> {
            items.iter().map(|item| keys::item::text(item, "GSI1SK").unwrap().to_owned()).collect()
        };
        bed.same(&of_index(&up), &["1", "1", "2", "2"].map(str::to_owned).to_vec(), limit);
        bed.same(&of_index(&down), &of_index(&up), limit);
        let mut keys = sort_keys(&up);
        keys.sort_unstable();
        bed.same(&keys, &vec!["A#3", "B", "COMMENT#1", "COMMENT#2"], limit);
    }
    let eventual = Query { consistency: Consistency::Eventual, ..of(None, SortKeys::All, Order::Ascending, None) };
    bed.same(&bed.query_all(&eventual).await.0.len(), &8, "an eventual read");
    let strong = Query { consistency: Consistency::Strong, ..indexed(Order::Ascending, None) };
    let refused = bed.store.query(Table::Main, &strong, None).await.unwrap_err();
    bed.same(&refused.is_retry(), &false, "an index read consistently");
    for consistency in [Consistency::Strong, Consistency::Eventual] {
        for keys in [vec![key("B")], vec![key("B"), key("none"), key("A#1")]] {
            let found = bed.store.read(Table::Main, &keys, consistency).await.unwrap();
            bed.same(&found.len(), &keys.len().min(2), (consistency, keys));
        }
    }
}

pub(crate) async fn an_index_holds_what_it_projects<S: Store>(bed: Bed<S>) {
    let indexed = |sk: &str, pk: &str, index_sk: &str| {
        let attributes = [("GSI1PK", s(pk)), ("GSI1SK", s(index_sk)), ("Name", s(sk)), ("Bio", s("not projected"))];
        put(&key(sk), item(&key(sk), attributes))
    };
    for write in [
        indexed("a", "G", "2"),
        indexed("b", "G", "1"),
        indexed("c", "G", "3#1"),
        indexed("d", "H", "1"),
        indexed("e", "G", "3#2"),
        indexed("f", "G", "4"),
        // Half of the key is not enough.
        set(&key("g"), [("GSI1PK", s("G")), ("Name", s("g"))]),
        // An item that loses its index key leaves the index.
        update(&key("f"), Item::new(), &["GSI1SK"], &[]),
        set(&key("a"), [("Value", n("1")), ("Bio", s("still not"))]),
    ] {
        bed.done(&write).await;
    }
    let of_index = |prefix: &str| Query::prefix(Some("GSI1"), "G", prefix);
    let entry =
        |sk: &str, index_sk: &str| item(&key(sk), [("GSI1PK", s("G")), ("GSI1SK", s(index_sk)), ("Name", s(sk))]);
    let mut first = entry("a", "2");
    first.insert("Value".to_owned(), n("1"));
    let wanted = vec![entry("b", "1"), first, entry("c", "3#1"), entry("e", "3#2")];
    // On AWS an index lags, usually for less than a call takes.
    let mut found = Vec::new();
    for _ in 0..100 {
        found = bed.query_all(&of_index("")).await.0;
        if found == wanted {
            break;
        }
    }
    bed.same(&found, &wanted, "the index");
    bed.same(&bed.query_all(&of_index("3#")).await.0, &wanted[2..].to_vec(), "its start");
}

pub(crate) async fn a_query_of_nothing_is_empty<S: Store>(bed: Bed<S>) {
    bed.same(&bed.query_all(&query("P#none", "")).await, &(vec![], 1), "a query");
    bed.same(&bed.scan_all(Table::Main).await, &(vec![], 1), "a scan");
}

pub(crate) async fn the_ledger_is_queried_by_partition<S: Store>(bed: Bed<S>) {
    for (pk, sk) in [("PARKED", "e1#00"), ("PARKED", "e1#01"), ("PARKED", "e2#00"), ("OTHER", "e3#00")] {
        let key = Key::new(pk, sk);
        bed.done(&in_ledger(put(&key, item(&key, [])))).await;
    }
    let query = Query::prefix(None, "PARKED", "");
    let page = bed.store.query(Table::Ledger, &query, None).await.unwrap();
    let keys: Vec<_> = page.items.iter().map(|item| item.get("SK").cloned()).collect();
    bed.same(
        &keys,
        &["e1#00", "e1#01", "e2#00"].map(|sk| Some(s(sk))).to_vec(),
        "in order, without the other partition",
    );
    let page = bed.store.query(Table::Main, &query, None).await.unwrap();
    bed.same(&page.items.len(), &0, "the main table has none of them");
}
