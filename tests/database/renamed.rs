//! A derivation that is renamed on a table that is in use: it goes on counting, and nothing has to be filled.

use derive::write::Table;
use engine::{
    clock::{Clock as _, SystemClock},
    ledger::LedgerKind,
    registry::difference::{DerivationState, differences},
};
use keys::{counter::CounterKey, key::Key};
use operate::{
    tables::Deployment,
    why::{WhyRequest, why},
};
use serde_dynamo::AttributeValue;

use super::at_work::TableAtWork;

const TABLE: &str = r##"
    [table]
    partition-key = "pk"
    sort-key = "sk"
    type = "Type"

    [entity.User]
    partition-key = "USER#{userId}"
    sort-key = "USER#{userId}"
    attributes = ["name"]
    derived-attributes = ["orderCount", "spent"]

    [entity.Order]
    partition-key = "USER#{userId}"
    sort-key = "ORDER#{orderId}"
    attributes = ["total"]
    derived-attributes = ["userName"]

    [derivation.NAMES]
    kind = "copy"
    from = "User"
    to = "Order"
    attributes = { name = "userName" }

    [derivation.COUNTS]
    kind = "count"
    from = "Order"
    into = "User"
    sum = "total"
    shows = { count = "orderCount", sum = "spent" }
"##;

/// The manifest, with these two names and what each was.
fn manifest(names: [&str; 2], was: [Option<&str>; 2]) -> String {
    let header = |name: &str, was: Option<&str>| {
        format!("{name}]{}", was.map(|was| format!("\n    was = \"{was}\"")).unwrap_or_default())
    };
    let [(copy, count)] = [(header(names[0], was[0]), header(names[1], was[1]))];
    TABLE.replace("NAMES]", &copy).replace("COUNTS]", &count)
}

fn order(bed: &TableAtWork, id: &str, total: &str) {
    bed.put("USER#ann", &format!("ORDER#{id}"), "Order", &[("total", AttributeValue::N(total.to_owned()))]);
}

fn user(bed: &TableAtWork, name: &str) {
    bed.put("USER#ann", "USER#ann", "User", &[("name", AttributeValue::S(name.to_owned()))]);
}

/// How each derivation stands that is not in step.
async fn differences_of(bed: &TableAtWork) -> Vec<(String, DerivationState)> {
    let Deployment { schema, catalogue, .. } = &bed.opened;
    let now_ms = SystemClock.now_ms();
    let registry = bed.opened.engine().registry(now_ms + 60_000).await.unwrap();
    let all = differences(schema, catalogue, &registry, now_ms).into_iter();
    all.map(|it| (it.name, it.state)).filter(|(_, state)| !matches!(state, DerivationState::InStep { .. })).collect()
}

fn shown(bed: &TableAtWork) -> [Option<AttributeValue>; 2] {
    let user = bed.opened.store.view(Table::Main, |items| items[&Key::new("USER#ann", "USER#ann")].clone());
    ["orderCount", "spent"].map(|name| user.get(name).cloned())
}

fn n(number: &str) -> AttributeValue {
    AttributeValue::N(number.to_owned())
}

#[tokio::test]
async fn a_derivation_that_is_renamed_goes_on_counting_and_nothing_is_filled_again() {
    for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
        let first = manifest(["user-name", "order-count"], [None, None]);
        let mut bed = TableAtWork::new(ledger, &first);
        user(&bed, "Ann");
        order(&bed, "1", "10");
        order(&bed, "2", "5.5");
        bed.settle().await;
        assert!(bed.verify().await.is_clean);
        assert_eq!((shown(&bed), differences_of(&bed).await), ([Some(n("2")), Some(n("15.5"))], Vec::new()));

        for (names, wanted) in [
            (["name-of-user", "orders"], ["name-of-user", "orders", "orders-count-display", "orders-sum-display"]),
            (["u", "user-orders"], ["u", "user-orders", "user-orders-count-display", "user-orders-sum-display"]),
        ] {
            bed.deploy(&manifest(names, [Some("user-name"), Some("order-count")]));
            assert_eq!(differences_of(&bed).await, [], "before the functions are deployed");
            order(&bed, names[1], "1");
            assert_eq!(bed.settle().await, wanted, "{ledger}");
            assert_eq!(differences_of(&bed).await, [], "after that");
            assert!(bed.verify().await.is_clean, "{ledger}");
        }
        assert_eq!(shown(&bed), [Some(n("4")), Some(n("17.5"))]);
        let counters = bed.opened.store.view(Table::Main, |items| items.keys().filter_map(CounterKey::parse).count());
        assert_eq!(counters, 1, "the counter of the first name alone");

        let key = Key::new("USER#ann", "USER#ann");
        let request = WhyRequest { key, attribute: None, n_listed: 1, n_read_max: 100, reads_stream: false };
        let why = why(&bed.opened, &request).await.unwrap();
        let names: Vec<&str> = why.counters.iter().map(|counter| counter.derivation.as_str()).collect();
        assert_eq!(names, ["user-orders"]);
        bed.deploy(&first);
        order(&bed, "3", "1");
        bed.settle().await;
        assert!(
            bed.verify().await.is_clean && differences_of(&bed).await.is_empty(),
            "a roll-back needs nothing either"
        );
    }
}

#[tokio::test]
async fn without_its_first_name_it_is_another_derivation_and_what_is_left_is_found() {
    let mut bed = TableAtWork::new(LedgerKind::Receipts, &manifest(["a", "order-count"], [None, None]));
    user(&bed, "Ann");
    order(&bed, "1", "10");
    bed.settle().await;
    bed.deploy(&manifest(["a", "orders"], [None, None]));
    let renamed = |it: &(String, DerivationState)| matches!(&it.1, DerivationState::Added { renamed_from: Some(from) } if from == "order-count");
    assert!(differences_of(&bed).await.iter().any(renamed));
    order(&bed, "2", "1");
    bed.settle().await;

    // What the name had before is said too late: the functions have counted under the new one.
    bed.deploy(&manifest(["a", "orders"], [None, Some("order-count")]));
    order(&bed, "3", "1");
    bed.settle().await;
    // Nothing was counted under the new name before its birth mark, so there is no counter of it.
    assert_eq!(bed.found().await, ["finding orders USER#ann / USER#ann#COUNT#order-count#00"]);
}
