//! The contract of `store::Store`: one suite for the model and for DynamoDB, so that the model cannot drift.
//!
//! Every case runs against the model (`memory::…`) and against the embedded DynamoDB (`embedded::…`), and, if
//! `CONTRACT_ENDPOINT` is set, against the DynamoDB there (`endpoint::…`; DynamoDB Local, or AWS with the standard
//! credentials in the environment):
//!
//! ```text
//! CONTRACT_ENDPOINT=http://localhost:8000 cargo nextest run -p tests --test database contract::
//! ```
//!
//! Tables at an endpoint have names of their own and are deleted afterwards.

mod conditions;
mod guards;
mod reads;
mod updates;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    future::Future,
    panic::{self, AssertUnwindSafe},
};

use aws_sdk_dynamodb::Client;
use derive::{
    guard::{Guard, Purpose},
    query::Query,
    write::{Action, Table, Transaction, Update, Write},
};
use keys::{
    item::Item,
    key::Key,
    layout::{Index, Layout},
};
use serde_dynamo::AttributeValue;
use store::{
    Cursor, Outcome, Page, Reason, Store, TransactOutcome, Units,
    dynamo::{DynamoStore, TableNames},
    memory::MemoryStore,
};
use support::database::{client, create_table, embedded_endpoint, unique_names};
use tokio::runtime::Runtime;

use crate::{n, s};

/// Makes a test of every case for every store.
macro_rules! contract {
    ($($file:ident: [$($case:ident),* $(,)?])*) => {
        mod memory {
            $(mod $file { $(#[test] fn $case() { crate::contract::on_memory(crate::contract::$file::$case); })* })*
        }
        mod embedded {
            $(mod $file { $(#[test] fn $case() { crate::contract::on_embedded(crate::contract::$file::$case); })* })*
        }
        mod endpoint {
            $(mod $file { $(#[test] fn $case() { crate::contract::on_endpoint(crate::contract::$file::$case); })* })*
        }
    };
}

contract! {
    guards: [
        a_guard_decides_over_a_single_write, a_guard_decides_over_a_transaction,
        a_transaction_checks_an_item_that_it_does_not_write, a_value_is_unchanged_whatever_its_form,
        every_ask_is_tried, receipts_say_by_position_which_changes_are_in,
        a_watermark_moves_only_past_what_it_is_below, a_change_is_excepted_once,
        a_change_is_parked_with_its_proof_and_once, a_parked_change_is_redriven_once,
        instances_publish_their_derivations_and_operators_read_them,
    ]
    updates: [
        an_update_sets_removes_and_adds, an_update_makes_a_missing_item, an_addition_is_exact,
        decimals_are_added_exactly, elements_are_added_to_and_taken_from_a_set, an_addition_to_a_text_is_refused,
        a_failed_guard_comes_before_a_wrong_type, an_attribute_may_have_any_name,
        an_update_cannot_grow_an_item_past_the_limit, reasons_stand_by_position,
        a_wrong_type_is_rejected_by_position, a_cancelled_transaction_does_nothing, a_transaction_spans_both_tables,
        an_item_is_deleted_while_its_owner_is_absent_and_it_is_still_theirs, a_transaction_has_a_hundred_actions,
        every_entity_from_e_01_to_e_29_comes_back, every_type_comes_back, numbers_come_back_in_full,
        a_put_costs_its_kilobytes, every_type_is_as_large_as_it_counts, an_update_costs_the_larger_image,
        a_delete_costs_what_was_there, a_transaction_costs_twice, an_index_costs_what_changes_in_it,
    ]
    reads: [
        items_are_read_by_key_in_any_number, a_query_goes_over_pages_in_order,
        a_key_that_no_item_can_have_is_read_as_nothing, a_query_under_a_key_that_no_item_can_have_finds_nothing,
        a_scan_goes_over_pages, a_query_takes_the_start_of_the_sort_key,
        a_query_takes_a_range_in_either_order_and_so_many_a_page, an_index_holds_what_it_projects,
        a_query_of_nothing_is_empty, the_ledger_is_queried_by_partition,
    ]
    conditions: [
        what_breaks_a_limit_is_refused_by_name, what_is_just_within_the_limits_is_taken,
        a_refused_write_in_a_transaction_is_named, an_unknown_index_is_refused,
    ]
}

// ---- The stores under test ----

/// A store under test.
pub(crate) struct Bed<S> {
    pub(crate) name: String,
    pub(crate) store: S,
    /// Is it DynamoDB Local? Its transactions differ from those of AWS: see [`Bed::same_units`] and
    /// [`Bed::is_rejected`].
    is_dynamodb_local: bool,
}

/// Runs a case against the model.
pub(crate) fn on_memory<F: Future<Output = ()>>(case: impl FnOnce(Bed<MemoryStore>) -> F) {
    runtime().block_on(case(memory()));
}

/// Runs a case against the embedded DynamoDB, which ends with the runtime.
pub(crate) fn on_embedded<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    runtime().block_on(async { case(embedded().await).await });
}

/// Runs a case against the DynamoDB at `CONTRACT_ENDPOINT`, if that is set.
fn on_endpoint<F: Future<Output = ()>>(case: impl FnOnce(Bed<DynamoStore>) -> F) {
    let Ok(endpoint) = env::var("CONTRACT_ENDPOINT") else {
        return;
    };
    let (runtime, client, names) = (runtime(), client(&endpoint), unique_names());
    let bed = runtime.block_on(dynamo(endpoint, client.clone(), names.clone()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(case(bed))));
    // The tables are deleted, whatever the result of the case.
    for name in [names.main, names.ledger] {
        runtime.block_on(client.delete_table().table_name(name).send()).unwrap();
    }
    if let Err(failure) = outcome {
        panic::resume_unwind(failure);
    }
}

pub(crate) fn memory() -> Bed<MemoryStore> {
    Bed { name: "memory".to_owned(), store: MemoryStore::new(layout()), is_dynamodb_local: false }
}

pub(crate) async fn embedded() -> Bed<DynamoStore> {
    let endpoint = embedded_endpoint().await;
    dynamo("embedded".to_owned(), client(&endpoint), unique_names()).await
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A table with an index that projects some attributes.
pub(crate) fn layout() -> Layout {
    Layout {
        entity_type: Some("EntityType".to_owned()),
        indexes: vec![Index {
            name: "GSI1".to_owned(),
            pk: "GSI1PK".to_owned(),
            sk: "GSI1SK".to_owned(),
            projection: Some(vec!["Name".to_owned(), "Value".to_owned()]),
        }],
        ..Layout::of("PK", "SK")
    }
}

async fn dynamo(name: String, client: Client, names: TableNames) -> Bed<DynamoStore> {
    let arn = create_table(&client, &names.main, &layout()).await;
    create_table(&client, &names.ledger, &Layout { indexes: Vec::new(), ..layout() }).await;
    let is_dynamodb_local = arn.contains(":ddblocal:");
    Bed { name, store: DynamoStore::new(client, layout(), names), is_dynamodb_local }
}

impl<S: Store> Bed<S> {
    /// The units of a successful write.
    pub(crate) async fn done(&self, write: &Write) -> Units {
        match self.store.write(write).await {
            Ok(Outcome::Done { units }) => units,
            other => panic!("{}: {write:?} should be done, and is {other:?}", self.name),
        }
    }

    pub(crate) async fn all_done(&self, writes: Vec<Write>) -> BTreeMap<Table, Units> {
        match self.transact(writes).await {
            TransactOutcome::Done { units } => units.into_iter().collect(),
            other @ TransactOutcome::Cancelled { .. } => panic!("{}: should be done, and is {other:?}", self.name),
        }
    }

    pub(crate) async fn transact(&self, writes: Vec<Write>) -> TransactOutcome {
        let transaction = Transaction::new(writes).unwrap();
        match self.store.transact(&transaction).await {
            Ok(outcome) => outcome,
            Err(error) => panic!("{}: {error:?}", self.name),
        }
    }

    /// Compares the units of a transaction with these. DynamoDB Local (1.25.1) reports those of the last action, doubled
    /// again.
    #[track_caller]
    pub(crate) fn same_units(
        &self,
        units: &BTreeMap<Table, Units>,
        wanted: &[(Table, Units)],
        about: impl std::fmt::Debug,
    ) {
        if !self.is_dynamodb_local {
            self.same(units, &wanted.iter().copied().collect(), about);
        }
    }

    /// Checks that a transaction was cancelled with these reasons, without the text of a rejection. DynamoDB Local
    /// (1.25.1) refuses the whole call if one action is rejected.
    pub(crate) async fn is_rejected(&self, writes: Vec<Write>, wanted: Vec<Reason>) {
        let reasons = match self.store.transact(&Transaction::new(writes).unwrap()).await {
            Ok(TransactOutcome::Cancelled { reasons }) => reasons,
            Err(error) if self.is_dynamodb_local && !error.is_retry() => return,
            other => panic!("{}: should be cancelled, and is {other:?}", self.name),
        };
        let without_text = |reason| match reason {
            Reason::Rejected(text) if !text.is_empty() => Reason::Rejected(String::new()),
            other => other,
        };
        self.same(&reasons.into_iter().map(without_text).collect(), &wanted, "reasons");
    }

    /// The item of the main table with this key.
    pub(crate) async fn item(&self, key: &Key) -> Option<Item> {
        let mut found = self.store.get(Table::Main, std::slice::from_ref(key)).await.unwrap();
        found.pop().map(|(_, item)| item)
    }

    /// All items of a query, and the number of pages.
    pub(crate) async fn query_all(&self, query: &Query) -> (Vec<Item>, usize) {
        self.pages(async |after| self.store.query(Table::Main, query, after).await).await
    }

    /// All items of a table, and the number of pages.
    pub(crate) async fn scan_all(&self, table: Table) -> (Vec<Item>, usize) {
        self.scan_segment(table, store::Segment::WHOLE).await
    }

    /// All items of a segment, and the number of pages.
    pub(crate) async fn scan_segment(&self, table: Table, segment: store::Segment) -> (Vec<Item>, usize) {
        self.pages(async |after| self.store.scan(table, segment, after).await).await
    }

    async fn pages<E: std::fmt::Debug>(
        &self,
        page: impl AsyncFn(Option<Cursor>) -> Result<Page, E>,
    ) -> (Vec<Item>, usize) {
        let (mut items, mut n_pages, mut after) = (Vec::new(), 0, None);
        loop {
            let Page { items: found, next } = page(after).await.unwrap();
            items.extend(found);
            n_pages += 1;
            after = next;
            if after.is_none() {
                return (items, n_pages);
            }
            assert!(n_pages < 1_000, "{}: the pages do not end", self.name);
        }
    }

    /// Checks that two values are equal, and names the store if not.
    #[track_caller]
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(&self, stored: &T, wanted: &T, about: impl std::fmt::Debug) {
        assert_eq!(stored, wanted, "in the {} store, about {about:?}", self.name);
    }
}

// ---- Short forms for items and writes ----

pub(crate) fn key(sk: &str) -> Key {
    Key::new("P#1", sk)
}

/// An item with these attributes beside its key.
pub(crate) fn item<const N: usize>(key: &Key, attributes: [(&str, AttributeValue); N]) -> Item {
    let mut item = layout().key_item(key);
    item.extend(map(attributes));
    item
}

pub(crate) fn map<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An item of exactly this many bytes.
pub(crate) fn item_of_bytes(key: &Key, bytes: usize) -> Item {
    let empty = keys::size::item_bytes(&item(key, [("Text", s(""))]));
    item(key, [("Text", s(&"x".repeat(bytes - empty)))])
}

pub(crate) fn put(key: &Key, item: Item) -> Write {
    write(key, Action::Put(item))
}

pub(crate) fn delete(key: &Key) -> Write {
    write(key, Action::Delete)
}

pub(crate) fn set<const N: usize>(key: &Key, attributes: [(&str, AttributeValue); N]) -> Write {
    update(key, map(attributes), &[], &[])
}

pub(crate) fn add(key: &Key, attribute: &str, amount: i64) -> Write {
    update(key, Item::new(), &[], &[(attribute, amount)])
}

pub(crate) fn update(key: &Key, set: Item, remove: &[&str], add: &[(&str, i64)]) -> Write {
    let remove: BTreeSet<String> = remove.iter().map(|&name| name.to_owned()).collect();
    let add: Item = add.iter().map(|&(name, amount)| (name.to_owned(), n(&amount.to_string()))).collect();
    write(key, Action::Update(Update { set, remove, add, ..Update::default() }))
}

pub(crate) fn guarded(write: Write, guard: Guard) -> Write {
    Write { guard: Some(guard), ..write }
}

pub(crate) fn in_ledger(write: Write) -> Write {
    Write { table: Table::Ledger, ..write }
}

pub(crate) fn unchanged(attribute: &str, value: Option<AttributeValue>) -> Guard {
    Guard::as_read(Purpose::LossMark, [(attribute, value)])
}

pub(crate) fn write(key: &Key, action: Action) -> Write {
    Write { table: Table::Main, key: key.clone(), action, guard: None }
}
