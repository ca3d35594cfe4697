//! Copies whose targets are found by an index, or through a mirror: a target that lacks a part of that key is not found, keeps
//! what it has, and is reported.

use derive::write::Table;
use engine::ledger::LedgerKind;
use keys::key::Key;
use serde_dynamo::AttributeValue;

use super::at_work::TableAtWork;

const TABLE: &str = r##"
    [table]
    partition-key = "pk"
    sort-key = "sk"
    type = "Type"

    [index.byUser]
    partition-key = "gpk"
    sort-key = "gsk"
    projection = ["Type"]

    [entity.User]
    partition-key = "USER#{userId}"
    sort-key = "USER"
    attributes = ["name"]

    [entity.Task]
    partition-key = "TASK#{taskId}"
    sort-key = "TASK"
    attributes = ["userId", "due"]
    derived-attributes = ["userName"]

    [entity.Task.index.byUser]
    partition-key = "USER#{userId}"
    sort-key = "DUE#{due}"

    [entity.TaskOfUser]
    partition-key = "USER#{userId}"
    sort-key = "TASK#{due}#{taskId}"
    derived = true

    [derivation.task-of-user]
    kind = "mirror"
    from = "Task"
    to = "TaskOfUser"

    [derivation.user-name]
    kind = "copy"
    from = "User"
    to = "Task"
    attributes = { name = "userName" }
    found = FOUND
"##;

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// The task that has no due date, and so no key in the index and no mirror, beside one that has.
async fn renamed_user(found: &str) -> TableAtWork {
    let mut bed = TableAtWork::new(LedgerKind::Receipts, &TABLE.replace("FOUND", found));
    bed.put("USER#ann", "USER", "User", &[("name", s("Ann"))]);
    let in_index =
        [("userId", s("ann")), ("due", s("2026-01-01")), ("gpk", s("USER#ann")), ("gsk", s("DUE#2026-01-01"))];
    bed.put("TASK#1", "TASK", "Task", &in_index);
    bed.put("TASK#2", "TASK", "Task", &in_index[..1]);
    bed.settle().await;
    assert_eq!((name(&bed, "1"), name(&bed, "2")), (Some(s("Ann")), Some(s("Ann"))), "each as it is written itself");
    bed.put("USER#ann", "USER", "User", &[("name", s("Anna"))]);
    bed.settle().await;
    bed
}

fn name(bed: &TableAtWork, task: &str) -> Option<AttributeValue> {
    let key = Key::new(format!("TASK#{task}"), "TASK");
    bed.opened.store.view(Table::Main, |items| items[&key].get("userName").cloned())
}

#[tokio::test]
async fn a_target_that_lacks_a_part_of_the_searched_key_keeps_the_old_value_until_it_is_written_and_is_reported() {
    // An index may lag, so what it should have found may still be waiting for it.
    for (found, kind) in [("\"TaskOfUser\"", "finding"), ("{ index = \"byUser\" }", "waiting")] {
        let mut bed = renamed_user(found).await;
        assert_eq!((name(&bed, "1"), name(&bed, "2")), (Some(s("Anna")), Some(s("Ann"))), "{found}");
        assert_eq!(bed.found().await, [format!("{kind} user-name TASK#2 / TASK")], "{found}");

        bed.put("TASK#2", "TASK", "Task", &[("userId", s("ann"))]);
        bed.settle().await;
        assert_eq!(name(&bed, "2"), Some(s("Anna")), "{found}");
        assert!(bed.verify().await.is_clean, "{found}");
    }
}
