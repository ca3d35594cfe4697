//! Cases that are records: how tools and other view types write them.

use std::collections::{BTreeMap, BTreeSet};

use engine::{batch::Handled, ledger::LedgerKind, record::event::Event};
use keys::item::Item;
use serde_dynamo::AttributeValue;
use serde_json::json;

use super::{
    bed::{Bed, Pace, event},
    text,
};

const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

/// The records of a file of a case.
fn records(case: &str, file: &str) -> Vec<String> {
    let text = text(case, file);
    Event::parse(&text).unwrap().records.iter().map(|record| record.get().to_owned()).collect()
}

/// The number that an item shows; 0 if it is not there.
fn number(bed: &Bed, address: &str, name: &str) -> String {
    match bed.item(address).as_ref().and_then(|item: &Item| item.get(name)) {
        Some(AttributeValue::N(number)) => number.clone(),
        Some(other) => panic!("{other:?} is no number"),
        None => "0".to_owned(),
    }
}

/// Ids and causes of what was parked, each once.
fn parked(handled: &Handled) -> BTreeMap<&str, &str> {
    handled.account.parked.iter().map(|parked| (parked.id.as_str(), parked.cause.as_str())).collect()
}

#[tokio::test]
async fn records_of_both_images_count_and_those_of_another_view_type_are_parked_with_its_name() {
    const CASE: &str = "17-view-types";
    for ledger in LEDGERS {
        let mut bed = Bed::at(CASE, ledger, Pace::OneByOne, 1_594_936_300_000);
        let mut counted = Vec::new();
        for record in records(CASE, "event-new-and-old.json") {
            let handled = bed.handle(&event("things", &record)).await;
            assert!(parked(&handled).is_empty(), "{ledger}: {handled:?}");
            bed.follow().await;
            let count = |data: &str| number(&bed, &format!("DATA#{data} / COUNT"), "things");
            counted.push([count("test"), count("hello")]);
        }
        assert_eq!(counted, [["1", "0"], ["0", "1"], ["0", "0"]], "{ledger}");
        for (file, view_type) in [
            ("event-keys-only.json", "KEYS_ONLY"),
            ("event-new-image.json", "NEW_IMAGE"),
            ("event-old-image.json", "OLD_IMAGE"),
        ] {
            let bed = Bed::at(CASE, ledger, Pace::OneByOne, 1_594_936_300_000);
            let records = records(CASE, file);
            let handled = bed.handle(&event("things", &records.join(","))).await;
            let why = format!(
                "the stream's view type is {view_type}; it must be NEW_AND_OLD_IMAGES, because a count needs both images"
            );
            assert_eq!(parked(&handled).into_values().collect::<Vec<_>>(), [why.as_str(); 3], "{ledger}");
            assert_eq!((handled.account.n_changes, handled.account.n_echoes, handled.failed_from), (0, 0, None));
            assert_eq!(bed.item("DATA#test / COUNT"), None, "{ledger} {file}");
        }
    }
}

#[tokio::test]
async fn an_empty_image_of_an_emulator_is_none_and_stops_no_other_record() {
    const CASE: &str = "21-emulator-images-and-bytes";
    for ledger in LEDGERS {
        let mut bed = Bed::at(CASE, ledger, Pace::AtChecks, 1_672_318_600_000);
        for resource in ["r1", "r4", "r5"] {
            bed.put(&json!({
                "pk": {"S": "foo"}, "sk": {"S": resource}, "type": {"S": "Resource"}, "color": {"S": "red"},
            }));
        }
        let records = records(CASE, "event.json").join(",");
        let handled = bed.handle(&event("things", &records)).await;
        assert_eq!(
            parked(&handled).into_iter().collect::<Vec<_>>(),
            [
                ("9f63baa0000000000000000000000005", "the record is a REMOVE without an old image"),
                (
                    "9f63baa0000000000000000000000006",
                    "the record does not decode: a value is missing or not of the form of a stream record, at column 409"
                ),
            ],
            "{ledger}"
        );
        bed.follow().await;
        assert_eq!(number(&bed, "COLOR#foo / red", "resources"), "3", "{ledger}: r1, r3 and r5");
        assert!(bed.item("BY-GROUP#foo / r5").is_some() && bed.item("BY-GROUP#foo / r2").is_none(), "{ledger}");
    }
}

#[tokio::test]
async fn a_time_in_another_unit_is_read_as_what_it_is_and_what_is_no_time_is_not_counted() {
    const CASE: &str = "18-creation-times";
    for ledger in LEDGERS {
        let bed = || {
            let bed = Bed::at(CASE, ledger, Pace::AtChecks, 1_800_000_000_000);
            bed.put(&json!({"pk": {"S": "CUST#1"}, "sk": {"S": "PROFILE"}, "type": {"S": "Customer"}}));
            bed
        };
        let mut of_years_ago = bed();
        let handled = of_years_ago.handle(&event("things", &records(CASE, "event.json").join(","))).await;
        let refused = handled.account.refused.iter().map(|refused| refused.id.as_str());
        let reasons: BTreeSet<&str> = parked(&handled).into_keys().chain(refused).collect();
        assert_eq!((reasons.len(), handled.failed_from), (8, None), "{ledger}: each has a reason");
        of_years_ago.follow().await;
        assert_eq!(number(&of_years_ago, "CUST#1 / PROFILE", "orderCount"), "0", "{ledger}");

        let mut of_today = bed();
        let template = text(CASE, "event.template.json").replace("@SECONDS@", "1799999990");
        let template = template.replace("@E9@", "1.79999999E9").replace("@ISO@", "2027-01-15T07:59:50.000Z");
        let template =
            Event::parse(&template).unwrap().records.iter().map(|it| it.get().to_owned()).collect::<Vec<_>>();
        for _ in 0..2 {
            of_today.handle(&event("things", &template.join(","))).await;
            of_today.follow().await;
            let shown = number(&of_today, "CUST#1 / PROFILE", "orderCount");
            assert_eq!(shown, "5", "{ledger}: all but those without a time, with a text, and without a number");
        }
        let same_id = records(CASE, "event-2.json").join(",").replace("1693997155.0", "1799999990.0");
        for _ in 0..2 {
            of_today.handle(&event("others", &same_id)).await;
            of_today.follow().await;
            let shown = number(&of_today, "CUST#1 / PROFILE", "orderCount");
            assert_eq!(shown, "6", "{ledger}: the same id is another change in another stream");
        }
    }
}
