//! The write patterns WP-01 to WP-19, by their IDs: each on the model and on the embedded DynamoDB, with the whole
//! table afterwards, index keys and derived attributes included.
//!
//! Races and lost responses are tested on the model with faults (`store::faulty`), which lets others run during every
//! call.

mod files;
mod orders;
mod people;
mod races;

use std::{
    collections::BTreeSet,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use derive::{
    guard::Ask,
    query::SortKeys,
    write::{Action, Table, Update, Write},
};
use expect_test::{Expect, expect_file};
use keys::{item::Item, key::Key, layout::Layout};
use queries::{Queries, write_error::WriteError, writes::patterns::PATTERNS};
use serde_dynamo::AttributeValue;
use store::{Store, dynamo::DynamoStore, memory::MemoryStore, recording::Request};
use support::database::{client, create_table, embedded_endpoint, unique_names};

/// Makes a test of every case for both stores, and a list of their names.
macro_rules! writes {
    ($($file:ident: [$($case:ident),* $(,)?])*) => {
        mod memory {
            $(mod $file { $(#[test] fn $case() { crate::writes::on_memory(crate::writes::$file::$case); })* })*
        }
        mod embedded {
            $(mod $file { $(#[test] fn $case() { crate::writes::on_embedded(crate::writes::$file::$case); })* })*
        }
        const CASES: &[&str] = &[$($(stringify!($case)),*),*];
    };
}

writes! {
    people: [
        wp_01_a_user_is_created_with_the_claim_of_their_email, wp_01_an_existing_id_is_refused,
        wp_01_a_taken_email_is_refused_without_saying_it, wp_01_a_claim_that_is_left_of_the_same_user_is_taken_over,
        wp_02_a_profile_is_edited_under_its_version, wp_02_a_profile_of_another_client_has_version_0,
        wp_02_an_old_version_is_refused, wp_02_a_new_email_moves_the_claim,
        wp_02_another_form_of_the_same_email_keeps_the_claim, wp_02_somebody_elses_claim_stays_where_it_is,
        wp_02_a_taken_email_is_refused_and_nothing_is_changed, wp_06_a_follow_is_once,
        wp_06_nobody_follows_themselves, wp_18_a_user_is_deleted_and_nothing_else,
        wp_03_a_post_goes_from_draft_to_archive, wp_03_a_post_that_is_not_there_is_refused,
        wp_03_a_post_of_the_same_time_and_id_is_refused, wp_04_a_comment_is_edited_and_deleted,
        wp_04_a_comment_that_is_not_there_is_refused, wp_05_a_like_is_once, wp_17_a_view_expires,
        wp_07_a_user_joins_changes_role_and_leaves, wp_07_who_is_in_cannot_join_and_who_is_out_has_no_role,
        wp_13_a_group_is_created_renamed_and_deleted, wp_13_a_group_that_is_there_or_is_not_is_refused,
        wp_14_an_organization_is_created_and_renamed, wp_14_teams_and_members_come_change_and_go,
        wp_14_what_is_there_or_is_not_is_refused,
    ]
    orders: [
        wp_08_an_order_is_placed_in_one_transaction, wp_08_not_enough_of_one_product_places_nothing,
        wp_08_a_product_that_is_not_there_or_has_no_price_is_refused,
        wp_08_quantities_below_one_and_no_lines_are_refused, wp_08_an_order_has_at_most_49_lines,
        wp_08_the_same_order_again_is_already_placed, wp_08_a_total_that_no_index_holds_is_refused,
        wp_09_an_order_leaves_the_work_queue_when_it_is_shipped, wp_09_an_unchanged_status_is_refused,
        wp_09_cancelling_restocks_and_marks_the_items, wp_09_a_removed_product_is_not_put_back,
        wp_09_a_cancelled_order_stays_so, wp_09_an_order_of_49_lines_is_cancelled,
        wp_19_a_user_subscribes_and_unsubscribes, wp_19_a_cart_is_filled_and_emptied,
        wp_15_a_product_is_created_and_changed_with_its_index_key, wp_15_what_is_there_or_is_not_is_refused,
        wp_15_tags_come_and_go, wp_15_views_are_counted, wp_15_the_stock_is_set_as_it_was_counted,
        wp_16_a_review_is_written_edited_and_deleted, wp_16_a_rating_out_of_range_is_refused,
        wp_12_a_reading_stands_in_its_day, wp_12_the_same_reading_is_once_and_another_is_refused,
        wp_12_a_batch_has_up_to_25_readings,
    ]
    files: [
        wp_10_a_file_is_uploaded_renamed_moved_and_deleted, wp_10_a_file_needs_its_folder,
        wp_10_a_move_to_the_same_folder_is_refused, wp_10_a_folder_is_renamed_with_its_place_in_the_index,
        wp_10_a_folder_moves_and_becomes_a_root, wp_10_a_folder_under_itself_is_refused,
        wp_10_only_an_empty_folder_is_deleted, wp_10_a_folder_that_is_there_or_is_not_is_refused,
        wp_10_a_folder_is_not_moved_too_deep, wp_11_an_employee_is_hired_below_a_manager,
        wp_11_an_employee_that_is_there_or_a_manager_who_is_not_is_refused,
        wp_11_a_move_changes_the_manager_and_its_index_key_alone, wp_11_a_move_under_a_report_is_refused,
        wp_11_a_report_is_known_by_the_manager_and_not_by_the_chart, wp_11_who_has_reports_is_not_dismissed,
        wp_11_nobody_is_hired_or_moved_too_deep, wp_11_an_employee_of_another_organization_is_not_found,
        wp_11_nobody_is_hired_below_somebody_who_names_them,
    ]
}

#[test]
fn every_write_pattern_has_a_test() {
    let tested: BTreeSet<&str> = CASES.iter().filter_map(|case| case.get(..5)).collect();
    let wanted: Vec<String> = (1..=19).map(|number| format!("wp_{number:02}")).collect();
    assert_eq!(tested.into_iter().collect::<Vec<_>>(), wanted);
}

// ---- The stores under test ----

/// 2024-01-15T10:30:00.000Z.
pub(crate) const START_MS: u64 = 1_705_314_600_000;

/// A store under test, with the query interface on it.
pub(crate) struct Bed<S> {
    name: &'static str,
    pub(crate) queries: Queries<Arc<S>>,
    pub(crate) store: Arc<S>,
    now_ms: Arc<AtomicU64>,
}

/// Runs a case against the model.
pub(crate) fn on_memory<F: Future<Output = ()>>(case: impl FnOnce(Bed<MemoryStore>) -> F) {
    runtime().block_on(case(Bed::new("memory", MemoryStore::new(layout()))));
}

/// Runs a case against the embedded DynamoDB, which ends with the runtime.
pub(crate) fn on_embedded<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    runtime().block_on(async {
        let (client, names) = (client(&embedded_endpoint().await), unique_names());
        create_table(&client, &names.main, &layout()).await;
        create_table(&client, &names.ledger, &Layout { indexes: Vec::new(), ..layout() }).await;
        case(Bed::new("embedded", DynamoStore::new(client, layout(), names))).await;
    });
}

/// The names of the shipped table.
pub(crate) fn layout() -> Layout {
    catalogue::schema().layout
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl<S: Store> Bed<S> {
    fn new(name: &'static str, store: S) -> Self {
        let (store, now_ms) = (Arc::new(store), Arc::new(AtomicU64::new(START_MS)));
        let clock = Arc::clone(&now_ms);
        let queries = Queries::new(Arc::clone(&store), move || clock.load(Ordering::Relaxed));
        Self { name, queries: queries.pausing(|_| Box::pin(tokio::task::yield_now())), store, now_ms }
    }

    /// Moves the clock by a second.
    pub(crate) fn later(&self) {
        self.now_ms.fetch_add(1_000, Ordering::Relaxed);
    }

    /// Puts an item as another client does.
    pub(crate) async fn given(&self, entity: &str, values: serde_json::Value) {
        let item = table_design::item(entity, values).unwrap();
        let key = layout().key(&item).unwrap();
        let write = Write { table: Table::Main, key, action: Action::Put(item), guard: None };
        self.store.write(&write).await.unwrap();
    }

    /// Sets attributes of an item, as Ripple does with derived ones.
    pub(crate) async fn set(&self, key: &Key, attributes: impl IntoIterator<Item = (&'static str, AttributeValue)>) {
        let set: Item = attributes.into_iter().collect();
        let action = Action::Update(Update::set(set));
        let write = Write { table: Table::Main, key: key.clone(), action, guard: None };
        self.store.write(&write).await.unwrap();
    }

    pub(crate) async fn item(&self, key: &Key) -> Option<Item> {
        self.store.get(Table::Main, std::slice::from_ref(key)).await.unwrap().pop().map(|(_, item)| item)
    }

    /// All items, in order of their keys.
    pub(crate) async fn items(&self) -> Vec<(Key, Item)> {
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.scan(Table::Main, store::Segment::WHOLE, after).await.unwrap();
            items.extend(page.items.into_iter().map(|item| (layout().key(&item).unwrap(), item)));
            after = page.next;
            if after.is_none() {
                items.sort_by(|(one, _), (other, _)| one.cmp(other));
                return items;
            }
        }
    }

    /// Compares the whole table with this text.
    pub(crate) async fn holds(&self, wanted: Expect) {
        wanted.assert_eq(&shown(&self.items().await));
    }

    /// Checks that a write is refused with this error.
    #[track_caller]
    pub(crate) fn refuses<T: std::fmt::Debug>(&self, answer: Result<T, WriteError>, wanted: &str) {
        match answer {
            Ok(answer) => panic!("in the {} store: done ({answer:?}), should be refused: {wanted}", self.name),
            Err(error) => assert_eq!(error.to_string(), wanted, "in the {} store", self.name),
        }
    }

    /// Checks that a write is refused because there is such an item.
    #[track_caller]
    pub(crate) fn exists<T: std::fmt::Debug>(&self, answer: Result<T, WriteError>, item: &str) {
        self.refuses(answer, &format!("{item}: there is one already; choose another id, or change that one"));
    }

    /// Checks that a write is refused because there is no such item.
    #[track_caller]
    pub(crate) fn lacks<T: std::fmt::Debug>(&self, answer: Result<T, WriteError>, item: &str) {
        self.refuses(answer, &format!("{item}: there is none; look for it again"));
    }

    /// Checks that a write is refused because the item has this value.
    #[track_caller]
    pub(crate) fn has_it<T: std::fmt::Debug>(&self, answer: Result<T, WriteError>, item: &str, attribute: &str) {
        self.refuses(answer, &format!("{item}: {attribute} is that already; nothing is to be changed"));
    }

    /// Checks that a removal removes the last item, and nothing when it is repeated.
    pub(crate) async fn is_emptied_by(&self, remove: impl AsyncFn() -> Result<bool, WriteError>) {
        assert!(remove().await.unwrap());
        assert!(!remove().await.unwrap());
        assert!(self.items().await.is_empty());
    }
}

/// Items as text: one line for the key, and one for each attribute.
pub(crate) fn shown(items: &[(Key, Item)]) -> String {
    let mut lines = Vec::new();
    for (key, item) in items {
        lines.push(format!("{key}\n"));
        let attributes = item.iter().filter(|(name, _)| !["PK", "SK"].contains(name));
        lines.extend(attributes.map(|(name, value)| format!("    {name} = {}\n", value_shown(value))));
    }
    lines.concat()
}

fn value_shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => text.clone(),
        AttributeValue::N(number) => number.clone(),
        AttributeValue::Bool(flag) => flag.to_string(),
        AttributeValue::Ss(texts) => {
            let mut texts = texts.clone();
            texts.sort();
            format!("{texts:?}")
        }
        other => format!("{other:?}"),
    }
}

pub(crate) fn n(number: i64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

// ---- Each write pattern's requests to a store, conditions included, as the table's design shows them ----

#[test]
fn every_write_pattern_asks_for_what_its_design_shows() {
    let mut lines = Vec::new();
    runtime().block_on(async {
        for pattern in PATTERNS {
            lines.push(format!("{} {}\n", pattern.id, pattern.title));
            lines.extend(pattern.requests().await.unwrap().iter().map(request_shown));
        }
    });
    expect_file!["writes/requests.txt"].assert_eq(&lines.concat());
}

#[test]
fn every_write_pattern_has_a_sample_and_none_scans() {
    let ids: BTreeSet<&str> = PATTERNS.iter().map(|pattern| pattern.id).collect();
    let wanted: Vec<String> = (1..=19).map(|number| format!("WP-{number:02}")).collect();
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), wanted);
    runtime().block_on(async {
        for pattern in PATTERNS {
            let requests = pattern.requests().await.unwrap();
            let scans = requests.iter().any(|request| matches!(request, Request::Scan(_)));
            let writes = requests.iter().any(|request| matches!(request, Request::Write(_) | Request::Transact(_)));
            assert!(writes && !scans, "{} {}: {requests:?}", pattern.id, pattern.title);
        }
    });
}

fn request_shown(request: &Request) -> String {
    match request {
        Request::Read(Table::Main, keys, consistency) => {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            format!("  get, {consistency:?}: {}\n", keys.join(", "))
        }
        Request::Query(Table::Main, query, None) => {
            let index = query.index.as_deref().unwrap_or("table");
            let sk = match &query.sk {
                SortKeys::All => "all".to_owned(),
                SortKeys::Prefix(prefix) => format!("{prefix}…"),
                SortKeys::Between(first, last) => format!("{first} to {last}"),
                SortKeys::After(first) => format!("behind {first}"),
            };
            let limit = query.limit.map(|limit| format!(", at most {limit}")).unwrap_or_default();
            format!("  query {index}, {:?}: {} / {sk}{limit}\n", query.consistency, query.pk)
        }
        Request::Write(write) => format!("  {}", write_shown(write)),
        Request::Transact(transaction) => {
            let writes: Vec<String> = transaction.writes().iter().map(write_shown).collect();
            format!("  together\n    {}", writes.join("    "))
        }
        other => panic!("{other:?}"),
    }
}

fn write_shown(write: &Write) -> String {
    let action = match &write.action {
        Action::Put(_) => "put".to_owned(),
        Action::Delete => "delete".to_owned(),
        Action::Check => "check".to_owned(),
        Action::Update(update) => {
            let mut parts = vec!["update".to_owned()];
            let mut part = |verb: &str, names: Vec<&str>| {
                if !names.is_empty() {
                    parts.push(format!("{verb} {}", names.join(" ")));
                }
            };
            part("set", update.set.keys().collect());
            part("remove", update.remove.iter().map(String::as_str).collect());
            part("add", update.add.keys().collect());
            part("delete", update.delete.keys().collect());
            parts.join(", ")
        }
    };
    let asks = write.guard.iter().flat_map(|guard| &guard.asks).map(|ask| match ask {
        Ask::Absent => "absent".to_owned(),
        Ask::Present => "present".to_owned(),
        Ask::Lacks(name) => format!("no {name}"),
        Ask::Equal(name, value) => format!("{name} = {value:?}"),
        Ask::Differs(name, value) => format!("{name} <> {value:?}"),
        Ask::AtLeast(name, value) => format!("{name} >= {value:?}"),
        Ask::LacksOrEqual(name, value) => format!("no {name} or {name} = {value:?}"),
        Ask::BelowOrLacksBoth(name, value, other) => format!("neither {name} nor {other}, or {name} < {value:?}"),
        Ask::LacksOrBelow(name, value) => format!("no {name} or {name} < {value:?}"),
    });
    let asks = asks.collect::<Vec<_>>().join(" and ");
    let condition = if asks.is_empty() { asks } else { format!(" if {asks}") };
    format!("{action} {}{condition}\n", write.key)
}
