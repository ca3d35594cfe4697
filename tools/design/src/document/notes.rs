//! The reasons for the design: hot keys, the ledger's table, indexes; and the findings of the review.

use derive::write::TRANSACT_ACTIONS_MAX;

use super::markdown::{code, table};
use crate::{Design, review::Reviewed};

/// Write units a second of one partition. Source: DynamoDB, "Designing partition keys".
const PARTITION_WRITE_UNITS: u32 = 1_000;

/// Write units of one KB in a transaction. Source: DynamoDB, "Read and write operations".
const TRANSACT_UNITS: u32 = 2;

pub(super) fn section(design: &Design, reviewed: &Reviewed) -> String {
    let parts = [hot_keys(design), ledger(), indexes(design), findings(reviewed)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn hot_keys(design: &Design) -> String {
    let row = |derivation: &derive::derivation::Derivation| {
        let (target, n_shards) = derivation.kind.outline(&design.schema).counts?;
        let into = design.schema.entity(&target).map(|target| code(&target.key.pk.to_string()));
        Some(vec![code(&derivation.name), n_shards.to_string(), into.unwrap_or_default()])
    };
    let rows: Vec<Vec<String>> = design.catalogue.derivations().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let batches = PARTITION_WRITE_UNITS / TRANSACT_UNITS;
    format!(
        "## Hot keys\n\n\
         A batch is planned as a whole, and what it adds to one counter is one write.\n\
         So a counter is not written once a change, but once a batch of each lane that has a change of it:\n\n\
         ```text\n\
         write units a second of a counter's partition = lanes × batches a second of a lane × {TRANSACT_UNITS}\n\
         ```\n\n\
         A lane is a shard of the stream, or one of its parallel readers; a transaction's write costs {TRANSACT_UNITS}.\n\
         Ten lanes with five batches a second each are 100 write units a second, however many likes are in them.\n\n\
         *Conflicts* come long before the partition's limit: two transactions on one item at once, and one of them is \
         cancelled and sent again.\n\
         Shards are against those.\n\
         The shard is calculated from the lane, so lanes do not meet; readers add up whatever shards there are, so their \
         number can change at any time.\n\
         As many shards as lanes are enough.\n\n\
         *The partition* takes {PARTITION_WRITE_UNITS} write units a second, so about {batches} batches a second on one \
         target.\n\
         Shards do not help there: they share the target's collection on purpose, so that everything about one target \
         is one consistent query.\n\
         Above it, make batches larger (a longer window, so that more changes are one write), and then have fewer \
         lanes; a target that is hotter still needs its counters under a partition key of their own, and then a second \
         query to read them.\n\n{}",
        table(&["count", "shards", "in the partition of"], &rows)
    )
}

fn ledger() -> String {
    format!(
        "## Why a second table for the ledger\n\n\
         - Its items make no stream records. A receipt in the application's table would be a record for each change, \
         which every function would be handed and would pass over.\n\
         - It has its own capacity and its own alarms: bookkeeping cannot throttle the application's reads.\n\
         - A backup of the application's table holds nothing of it.\n\
         - A transaction spans both tables at no extra cost; its {TRANSACT_ACTIONS_MAX} actions are shared by receipts \
         and counters.\n"
    )
}

fn indexes(design: &Design) -> String {
    let layout = &design.schema.layout;
    let mut text = "## Why no local index\n\n\
         A local secondary index keeps all items of a partition key in one place of at most 10 GB, table and index \
         together, and then refuses writes.\n\
         A famous user's followers, a post's likes and a sensor's readings have no bound, so no collection may have \
         one.\n\
         It also must be made with the table, and can never be removed.\n"
        .to_owned();
    if layout.indexes.is_empty() {
        return text;
    }
    let names: Vec<&str> = layout.indexes.iter().map(|index| index.name.as_str()).collect();
    text.extend([format!(
        "\n## Why these projections\n\n\
         {} hold what lists show: a name, a title, a status, a price, a time.\n\
         They never hold a count, since a count changes with every follow and every like, and each change of what an \
         index holds is a write of the index too.\n\
         They do not hold everything, since then every write would be paid as often as there are indexes.\n\
         What else a reader needs comes by BatchGetItem, of the items that are really shown.\n\
         They are sparse: an item without an index's keys is not in it, and costs nothing there.\n",
        names.join(" and ")
    )]);
    text
}

fn findings(reviewed: &Reviewed) -> String {
    if reviewed.findings.is_empty() {
        return String::new();
    }
    let row =
        |(finding, answer): &(crate::review::finding::ReviewFinding, Option<crate::review::answer::FindingAnswer>)| {
            let answer = answer.as_ref().map_or("**not answered**", |answer| answer.reason.as_str());
            vec![code(finding.check.name()), finding.subject.clone(), finding.what.clone(), answer.to_owned()]
        };
    let rows: Vec<Vec<String>> = reviewed.findings.iter().map(row).collect();
    format!(
        "## What a reviewer would ask\n\n\
         `ripple design --check` finds these; each is answered with the reason why it is right here.\n\n{}",
        table(&["check", "about", "finding", "answer"], &rows)
    )
}
