//! Items with more attributes than a condition can compare.

use derive::write::Table;
use keys::key::Key;
use operate::{
    repair::{Repaired, Repairing},
    verify::Finding,
};

use crate::cases::bed::Bed;

/// More than the 150 comparisons of the longest condition.
const N_ATTRIBUTES: usize = 400;

/// Longer than a cascade waits, in milliseconds.
const SETTLED_MS: u64 = 26 * 3_600 * 1_000;

/// Puts an item with many attributes of its own, whose names are short or long.
async fn put_wide(bed: &Bed, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)], name: &str) -> Key {
    let names: Vec<String> = (0..N_ATTRIBUTES).map(|number| format!("{name}{number}")).collect();
    let own = names.iter().map(|name| (name.as_str(), "N:1"));
    bed.put(entity, fields, &own.chain(attributes.iter().copied()).collect::<Vec<_>>()).await
}

fn names() -> [String; 2] {
    ["Note".to_owned(), "Note".repeat(60)]
}

#[tokio::test]
async fn the_index_keys_of_an_item_of_400_attributes_are_repaired() {
    for name in names() {
        let bed = Bed::new();
        let attributes = [("Name", "new"), ("ParentId", "top")];
        let folder = put_wide(&bed, "Folder", &[("FolderId", "f")], &attributes, &name).await;
        bed.set(&folder, "GSI1SK", "by hand").await;
        let Key { pk, sk } = folder.clone();
        let finding = Finding { derivation: "index keys".to_owned(), pk, sk, stored: None, derived: None, flaw: None };
        let engine = bed.engine();
        let repaired = Repairing::new(&engine).repair(&finding, "run", bed.deadline_ms()).await.unwrap();
        assert_eq!(repaired, Repaired::Done);
        assert_eq!(bed.shown(&folder, "GSI1SK"), "FOLDER#new#f");
    }
}

#[tokio::test]
async fn a_cascade_deletes_an_item_of_400_attributes() {
    for name in names() {
        let mut bed = Bed::new();
        let user = bed.put("User", &[("UserId", "ann")], &[]).await;
        let fields = [("UserId", "ann"), ("SubscriptionId", "s")];
        let subscription = put_wide(&bed, "Subscription", &fields, &[], &name).await;
        bed.settle().await;
        bed.delete(&user).await;
        bed.settle().await;
        for _ in 0..2 {
            bed.clock.advance(SETTLED_MS);
            bed.sweeper().sweep(|_| true, bed.deadline_ms()).await.unwrap();
            bed.settle().await;
        }
        assert!(!bed.memory().snapshot(Table::Main).contains_key(&subscription));
        assert_eq!(bed.parked(), Vec::<String>::new());
    }
}
