//! The list of items that cannot be interpreted.

use derive::write::Table;
use keys::key::Key;

use crate::{cases::bed::Bed, items::n};

const COMMENT: [(&str, &str); 3] = [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", "c")];

fn listed(bed: &Bed) -> Vec<Key> {
    let ledger = bed.memory().snapshot(Table::Ledger);
    ledger.into_keys().filter(|key| key.pk == "UNREADABLE").collect()
}

#[tokio::test]
async fn an_item_is_listed_while_it_cannot_be_read_and_an_old_record_does_not_list_it_again() {
    let mut bed = Bed::new();
    let comment = bed.put("Comment", &COMMENT, &[("UserId", "ann")]).await;
    bed.settle().await;
    let mut item = bed.memory().snapshot(Table::Main).remove(&comment).unwrap();
    item.insert("UserId".to_owned(), n("7"));
    bed.memory().put_raw(Table::Main, item).unwrap();
    let old = bed.records();
    bed.handle(&old).await;
    assert_eq!(listed(&bed).len(), 1, "{:?}", listed(&bed));

    bed.set(&comment, "UserId", "ann").await;
    bed.settle().await;
    assert_eq!(listed(&bed), [], "it is mended");
    bed.handle(&old).await;
    assert_eq!(listed(&bed), [], "the old record says nothing of the item as it is");
}

#[tokio::test]
async fn a_change_that_is_redriven_lists_its_item_for_counts_too() {
    let mut bed = Bed::new();
    let review = [("ProductId", "p"), ("CreatedAt", "t"), ("ReviewId", "r")];
    bed.put("Review", &review, &[("Rating", "many")]).await;
    let mut records = bed.records();
    let whole = records[0].to_string();
    records[0]["dynamodb"]["NewImage"] = serde_json::json!({"PK": {"Q": 1}});
    bed.handle(&records).await;
    assert_eq!(listed(&bed), [], "the record is parked");
    bed.put_true(&whole);
    bed.redrive_all().await;
    assert_eq!(bed.parked(), Vec::<String>::new());
    assert_eq!(listed(&bed).len(), 1, "{:?}", listed(&bed));
}
