//! Under watermarks: an application puts counts over an item that are another item's, or old. The item shows its own again.

use derive::write::{Action, Table, Write};
use engine::{
    ledger::{LedgerKind, watermarks::KEPT_MS},
    sweep::Bounds,
};
use keys::{item::Item, key::Key};
use store::Store as _;

use crate::{cases::bed::Bed, executor::now};

fn bed() -> Bed {
    Bed::new().under(LedgerKind::Watermarks)
}

async fn group(bed: &mut Bed, id: &str, name: &str, n_members: usize) -> Key {
    let group = bed.put("Group", &[("GroupId", id)], &[("Name", name)]).await;
    for member in 0..n_members {
        joins(bed, &format!("u{member}"), id).await;
    }
    group
}

async fn joins(bed: &mut Bed, user: &str, group: &str) -> Key {
    let membership = bed.put("Membership", &[("UserId", user), ("GroupId", group)], &[]).await;
    bed.settle().await;
    membership
}

fn item(bed: &Bed, key: &Key) -> Item {
    bed.memory().snapshot(Table::Main).remove(key).unwrap()
}

/// Puts these attributes as the item of this key.
async fn put(bed: &mut Bed, key: &Key, mut item: Item) {
    item.extend(bed.schema.layout.key_item(key));
    let write = Write { table: Table::Main, key: key.clone(), action: Action::Put(item), guard: None };
    now(bed.memory().write(&write)).unwrap();
    bed.settle().await;
}

#[tokio::test]
async fn a_count_that_is_copied_from_another_item_is_corrected() {
    // Over an item with a lower count, and over one that was never counted; with and without another difference.
    for (n_members, name) in [(1, "other"), (1, "same"), (0, "other"), (0, "same")] {
        let mut bed = bed();
        let to = group(&mut bed, "to", name, n_members).await;
        let from = group(&mut bed, "from", "same", 5).await;
        let copied = item(&bed, &from);
        put(&mut bed, &to, copied).await;
        let shown = (bed.shown(&to, "MemberCount"), bed.findings());
        assert_eq!(shown, (n_members.to_string(), Vec::new()), "{n_members} {name}");
        joins(&mut bed, "late", "to").await;
        assert_eq!(bed.shown(&to, "MemberCount"), (n_members + 1).to_string(), "{n_members} {name}");
    }
}

#[tokio::test]
async fn an_old_item_that_is_put_back_after_its_counter_began_anew_is_corrected() {
    let mut bed = bed();
    let group = group(&mut bed, "g", "same", 0).await;
    let members = [joins(&mut bed, "u1", "g").await, joins(&mut bed, "u2", "g").await];
    let old = item(&bed, &group);
    for member in members {
        bed.delete(&member).await;
        bed.settle().await;
    }
    let shown = item(&bed, &group);
    // The watermarks grow too old, and the counter of zero is collected.
    bed.clock.advance(KEPT_MS + 3 * 60_000);
    for _ in 0..3 {
        let bounds = Bounds { n_items_max: usize::MAX, deadline_ms: bed.deadline_ms() };
        bed.engine().sweep_slice(bounds, |_| true).await.unwrap();
        bed.settle().await;
    }
    assert!(!bed.memory().snapshot(Table::Main).keys().any(|key| key.sk.contains("member-count")), "it is collected");
    put(&mut bed, &group, old.clone()).await;
    assert_eq!(bed.findings(), [""; 0], "nothing is counted");
    put(&mut bed, &group, shown).await;
    joins(&mut bed, "u9", "g").await;
    assert_eq!(bed.shown(&group, "MemberCount"), "1");
    put(&mut bed, &group, old).await;
    assert_eq!((bed.shown(&group, "MemberCount").as_str(), bed.findings()), ("1", Vec::new()));
}
