//! The reasons for the design: hot keys, the ledger's table, indexes; and the findings of the review.

use std::collections::BTreeSet;

use derive::{kind::Shape, part::Part, write::TRANSACT_ACTIONS_MAX};
use keys::layout::Index;

use super::markdown::{code, codes, table};
use crate::{Design, review::Reviewed};

/// Write units a second of one partition. Source: DynamoDB, "Designing partition keys".
const PARTITION_WRITE_UNITS: u32 = 1_000;

/// Maximum number of examples of collections without a bound.
const UNBOUNDED_NAMED_MAX: usize = 3;

pub(super) fn section(design: &Design, reviewed: &Reviewed) -> String {
    let parts = [hot_keys(design), ledger(), indexes(design), findings(reviewed)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn hot_keys(design: &Design) -> String {
    if !design.catalogue.derivations().any(|derivation| derivation.kind.outline(&design.schema).counts.is_some()) {
        return String::new();
    }
    format!(
        "## Hot keys\n\n\
         A batch is planned as a whole, and all its additions to one counter are one write of one unit.\n\
         So a counter is written once for each batch with a change of it, and not once for each change.\n\n\
         A counter that many stream shards feed spreads by itself: 24 shards count on its first item, its home, and the \
         others on up to 64 satellites beside it.\n\
         They are all in the target's collection, so that one consistent query reads everything about a target.\n\
         Its partition takes {PARTITION_WRITE_UNITS} write units a second, so about as many batches a second on one \
         target.\n\
         Beyond that limit, make batches larger: with a longer window, more changes are one write. An even hotter target \
         needs its counters under a partition key of their own, and a second query to read them.\n"
    )
}

fn ledger() -> String {
    format!(
        "## Why a second table for the ledger\n\n\
         - Its items make no stream records. A receipt in the application's table would make a record for each change, \
         which every function would receive and skip.\n\
         - It has its own capacity and its own alarms: bookkeeping cannot throttle the application's reads.\n\
         - A backup of the application's table does not contain it.\n\
         - A transaction spans both tables at no extra cost; receipts and counters share its \
         {TRANSACT_ACTIONS_MAX} actions.\n"
    )
}

fn indexes(design: &Design) -> String {
    let layout = &design.schema.layout;
    let mut text = format!(
        "## Why no local index\n\n\
         With a local secondary index, all items of a partition key, in table and index together, have at most 10 GB; \
         DynamoDB refuses writes beyond that.\n\
         {} so no collection may have such an index.\n\
         It must also be created with the table, and can never be removed.\n",
        unbounded(design)
    );
    if !layout.indexes.is_empty() {
        text.push_str("\n## Why these projections\n\n");
        text.push_str(&projections(design));
    }
    text
}

/// The projections of the indexes, and their consequences.
fn projections(design: &Design) -> String {
    let layout = &design.schema.layout;
    let (of_all, of_some): (Vec<&Index>, Vec<&Index>) =
        layout.indexes.iter().partition(|index| index.projection.is_none());
    let named = |indexes: &[&Index]| indexes.iter().map(|index| index.name.as_str()).collect::<Vec<_>>().join(" and ");
    let mut text = String::new();
    if !of_some.is_empty() {
        text = format!(
            "{} {} what lists show: {}.\n\
             {}\
             Not everything is projected, because then every write would also be paid for each index.\n\
             A reader gets the other attributes by BatchGetItem, for the items that are shown.\n",
            named(&of_some),
            if of_some.len() == 1 { "projects" } else { "project" },
            projected(&of_some),
            counts_projected(design, &of_some)
        );
    }
    if !of_all.is_empty() {
        let all = named(&of_all);
        text.extend([format!(
            "{all}: everything is projected, so a reader needs no second read, and each write of an item is also paid for \
             each of these indexes that it is in.\n"
        )]);
    }
    text.push_str("They are sparse: an item without an index's keys is not in it, and costs nothing there.\n");
    text
}

/// The start of a sentence about collections without a bound. The examples are counted items, if the table counts any.
fn unbounded(design: &Design) -> String {
    let counted = design.catalogue.derivations().filter_map(|derivation| match derivation.kind.shape() {
        Shape::Count(count) => Some((count.target.as_str(), count.source.as_str())),
        _ => None,
    });
    let of: BTreeSet<String> = counted.map(|(target, source)| format!("{source} items by {target}")).collect();
    let named: Vec<String> = of.into_iter().take(UNBOUNDED_NAMED_MAX).collect();
    if named.is_empty() {
        return "The items of a partition key have no bound,".to_owned();
    }
    format!("The items of a partition key have no bound, such as {},", named.join(", "))
}

/// The attributes that indexes project, each once.
fn projected(indexes: &[&Index]) -> String {
    let names: BTreeSet<&String> = indexes.iter().filter_map(|index| index.projection.as_ref()).flatten().collect();
    if names.is_empty() { "the keys alone".to_owned() } else { codes(names) }
}

/// Names the indexes that project a count. Such an index is written with each change of the count.
fn counts_projected(design: &Design, indexes: &[&Index]) -> String {
    let displayed = design.catalogue.positioned().filter(|(_, derivation)| derivation.kind.name() == "display");
    let parts: Vec<&Part> = displayed.flat_map(|(at, _)| design.catalogue.writes(at)).collect();
    let is_counted = |index: &Index| {
        let counted = |part: &&Part| index.projection.iter().flatten().any(|name| part.of.holds(name));
        parts.iter().any(counted)
    };
    let counted = indexes.iter().filter(|index| is_counted(index));
    let names: Vec<&str> = counted.map(|index| index.name.as_str()).collect();
    if names.is_empty() {
        return "None of them projects a count, because each change of a projected attribute also writes the index.\n"
            .to_owned();
    }
    format!("{}: a count is projected, so each change of it also writes the index.\n", names.join(", "))
}

fn findings(reviewed: &Reviewed) -> String {
    if reviewed.findings.is_empty() {
        return String::new();
    }
    let row = |(finding, answer): &(crate::review::ReviewFinding, Option<crate::review::FindingAnswer>)| {
        let answer = answer.as_ref().map_or("**not answered**", |answer| answer.reason.as_str());
        vec![code(finding.check.name()), finding.subject.clone(), finding.what.clone(), answer.to_owned()]
    };
    let rows: Vec<Vec<String>> = reviewed.findings.iter().map(row).collect();
    format!(
        "## What a reviewer would ask\n\n\
         `ripple design --check` finds these; each answer says why it is right here.\n\n{}",
        table(&["check", "about", "finding", "answer"], &rows)
    )
}
