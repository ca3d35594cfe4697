//! The section on derivations: source, target, how the target is found, and the price.

use std::collections::BTreeSet;

use derive::{
    derivation::Derivation,
    effect::Find,
    family::Family,
    gathering::CollectionCount,
    part::{Part, PartOf},
    query::SortKeys,
};
use keys::{counter::COUNTER, entity::Definition, layout::Layout};

use super::markdown::{code, codes, table, units};
use crate::{
    Design,
    followed::{followed, made},
    price::{self, Price, price},
};

const HEAD: [&str; 9] =
    ["ID", "name", "kind", "from", "into", "how targets are found", "reads", "writes", "write units"];

pub(super) fn section(design: &Design) -> String {
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
