//! The sections on derivations (source, target, how the target is found, and the price), on the reasons for the design
//! (hot keys, the ledger's table, indexes), and on the findings of the review.

use std::collections::BTreeSet;

use derive::{
    derivation::Derivation,
    effect::Find,
    family::Family,
    gathering::CollectionCount,
    kind::Shape,
    part::{Part, PartOf},
    query::SortKeys,
    write::TRANSACT_ACTIONS_MAX,
};
use keys::{
    counter::COUNTER,
    entity::Definition,
    layout::{Index, Layout},
};

use super::{code, codes, table, units};
use crate::{
    Design,
    price::{self, Price, followed, made, price},
    review::Reviewed,
};

const HEAD: [&str; 9] =
    ["ID", "name", "kind", "from", "into", "how targets are found", "reads", "writes", "write units"];

pub(super) fn derivations(design: &Design) -> String {
    let mut all: Vec<&Derivation> = design.catalogue.derivations().collect();
    all.sort_by_key(|derivation| &derivation.id);
    let counts = CollectionCount::all(&design.schema, &design.catalogue);
    let rows: Vec<Vec<String>> = all.iter().map(|derivation| row(design, &counts, derivation)).collect();
    format!(
        "## Derivations\n\n\
         An *additive* kind adds the difference between a record's two images, in one transaction with the proof of the \
         record; a *level-triggered* kind looks at an item and writes it if it differs.\n\
         A count goes to counters{}, beside the item that they count for; `…-display` shows it as an attribute.\n\n\
         Write units are those of one change for each item that it concerns: `2 + 1 index + 2 ledger` is 2 in the \
         table, 1 in its indexes, 2 in the ledger's table.\n\
         All changes of one counter in a batch are one write, so K changes cost 2/K each beside their receipts; under \
         watermarks they cost 1/K each and nothing in the ledger's table.\n\
         An item that is in step costs a read and no write.\n\
         An item without the attribute that a count sums counts, and adds 0 to the sum, so it lowers an average of both; a \
         roll-up takes only items with the value. An attribute of another type makes the item unreadable, and it counts \
         as absent.\n\
         A mirror takes every attribute of its source, also those that no entity declares; but no keys, no type, no time to \
         live, no derived attributes, and nothing that it excepts.\n\
         The sweep checks a count if the counted items are in the collection of their target (*checked with*); only \
         `ripple verify`, which reads the whole table, checks the others.\n\
         A cascade's price is that of its most expensive deletion, checks included; up to 24 deletions share the checks.\n\n{}",
        if design.has_rows() { " (E-25)" } else { "" },
        table(&HEAD, &rows)
    ) + &set_going(design)
}

/// The derived writes of creating an item, for each entity.
fn set_going(design: &Design) -> String {
    let mut all: Vec<&Definition> = design.schema.entities().collect();
    all.sort_by_key(|definition| &definition.id);
    let row = |definition: &Definition| {
        let own = price::changed(&design.schema.layout, None, Some(&made(design, definition)?))?;
        let followed = followed(design, definition)?;
        Some(vec![
            definition.name.clone(),
            price_text(own),
            price_text(followed.price),
            units(own.total() + followed.price.total()),
            codes(&followed.derivations),
        ])
    };
    let rows: Vec<Vec<String>> = all.into_iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n### What follows from creating an item\n\n\
         The application's own write, and everything that Ripple writes for it if everything that it names exists: alone in \
         its batch and under the ledger `receipts`, so at the highest price.\n\n{}",
        table(&["created", "its own write units", "derived", "in all", "by"], &rows)
    )
}

fn row(design: &Design, counts: &[CollectionCount], derivation: &Derivation) -> Vec<String> {
    let (schema, kind) = (&design.schema, &derivation.kind);
    let (outline, reach) = (kind.outline(schema), kind.reach(schema).unwrap_or_default());
    let from = outline.from.iter().map(String::as_str).chain(outline.terms.iter().map(String::as_str));
    let from = from.collect::<Vec<_>>().join("; ");
    let depth = outline.depth_max.map(|depth| format!(", at most {depth} deep")).unwrap_or_default();
    let family = match kind.family() {
        Family::Additive => "additive",
        Family::LevelTriggered => "level-triggered",
    };
    let writes = match &outline.counts {
        Some(_) => format!("{COUNTER} `{}`", derivation.name),
        None if outline.touches.is_empty() => parts(&reach.writes),
        None => outline.touches.join("; "),
    };
    vec![
        derivation.id.clone(),
        code(derivation.label()),
        format!("{}{depth} ({family})", kind.name()),
        from,
        outline.into.as_deref().map(code).unwrap_or_default(),
        found(&schema.layout, &outline.finds) + &compared(design, counts, derivation),
        parts(&reach.reads),
        writes,
        price(design, derivation).map(price_text).unwrap_or_default(),
    ]
}

fn price_text(price: Price) -> String {
    let of = |amount: f64, of: &str| (amount > 0.0).then(|| format!(" + {} {of}", units(amount)));
    let more: String = [of(price.indexes, "index"), of(price.ledger, "ledger")].into_iter().flatten().collect();
    format!("{}{more}", units(price.table))
}

/// How Ripple finds the items that a change affects.
fn found(layout: &Layout, finds: &[Find]) -> String {
    if finds.is_empty() {
        return "by the change itself".to_owned();
    }
    let find = |find: &Find| {
        let query = &find.query;
        let index = query.index.as_deref().and_then(|name| layout.index(name));
        let (pk, sk) = index.map_or((&layout.pk, &layout.sk), |index| (&index.pk, &index.sk));
        let range = match &query.sk {
            SortKeys::All => String::new(),
            SortKeys::Prefix(prefix) => format!(" and begins_with({sk}, '{prefix}')"),
            SortKeys::Between(first, last) => format!(" and {sk} between '{first}' and '{last}'"),
            SortKeys::After(first) => format!(" and {sk} > '{first}'"),
        };
        let place = query
            .index
            .as_ref()
            .map_or(" of the table, consistent".to_owned(), |name| format!(" of {name}, eventually consistent"));
        let via = if find.via == find.target { String::new() } else { format!("; each {} leads to one", find.via) };
        format!("{} by query{place}: `{pk} = {}{range}`{via}", find.target, query.pk)
    };
    finds.iter().map(find).collect::<Vec<_>>().join("; ")
}

/// How the sweep compares a count with the counted items; empty if it does not.
fn compared(design: &Design, counts: &[CollectionCount], derivation: &Derivation) -> String {
    let count = counts.iter().find(|count| design.catalogue.name(count.count) == derivation.name);
    let Some(count) = count else { return String::new() };
    let mirror =
        count.mirror.map(|at| format!(", a mirror by {}", code(design.catalogue.label(at)))).unwrap_or_default();
    format!("; checked with each {}{mirror}", count.entity)
}

/// The parts of items, by entity.
fn parts(parts: &[Part]) -> String {
    let entities: BTreeSet<&str> = parts.iter().map(|part| part.entity.as_str()).collect();
    let of = |entity: &str| {
        let ours = parts.iter().filter(|part| part.entity == entity);
        let names: BTreeSet<&str> = ours
            .clone()
            .filter_map(|part| match &part.of {
                PartOf::Attribute(name) | PartOf::Inside { path: name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let is_whole = ours.clone().any(|part| matches!(part.of, PartOf::AllBut(_)));
        let exists = ours.clone().any(|part| part.of == PartOf::Existence);
        match (is_whole, names.is_empty(), exists) {
            (true, _, _) => format!("{entity}, whole"),
            (false, true, _) => format!("{entity}, its existence"),
            (false, false, false) => format!("{entity} {}", codes(names)),
            (false, false, true) => format!("{entity}, its existence, and {}", codes(names)),
        }
    };
    entities.into_iter().map(of).collect::<Vec<_>>().join("; ")
}

// ---- reasons and findings ----

/// Write units a second of one partition. Source: DynamoDB, "Designing partition keys".
const PARTITION_WRITE_UNITS: u32 = 1_000;

/// Maximum number of examples of collections without a bound.
const UNBOUNDED_NAMED_MAX: usize = 3;

pub(super) fn reasons(design: &Design, reviewed: &Reviewed) -> String {
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
