//! The design document: one page of markdown that shows a whole table.
//!
//! Its sections are in reading order: the items, the requests, the derivations, the bookkeeping, and the reasons.

mod derivations;
pub mod requests;

use std::collections::BTreeSet;

use derive::write::Table;
use engine::bookkeeping::{Kept, Life};
use keys::{
    entity::Definition,
    index_key::{IndexKey, OnlyIf},
    item::Item,
    layout::{Index, Layout},
    size::item_bytes,
    tables::{EntityBy, TableForm, TableForms},
    value::type_of,
};
use serde_dynamo::AttributeValue;

use crate::{Design, PatternRequests, price, review::Reviewed};

/// Makes the page, with the command that generates it and the findings of the review.
#[must_use]
pub fn page(design: &Design, written_by: &str, reviewed: &Reviewed) -> String {
    let parts = [
        table_and_indexes(design, written_by),
        entities(design),
        requests::reads(design),
        requests::writes(design),
        derivations::derivations(design),
        bookkeeping(design),
        derivations::reasons(design, reviewed),
    ];
    let mut page = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    // The mark of a value without escapes is not written in a manifest.
    page = page.replace("!}", "}");
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

// ---- the table and its indexes, or several tables ----

fn table_and_indexes(design: &Design, written_by: &str) -> String {
    let mut text = format!(
        "# The table's design\n\n\
         Written by `{written_by}`; do not edit it.\n\n\
         {}\n\
         Prices are write units for items of the samples' size.\n\n",
        forms(design)
    );
    match &design.schema.layout.forms {
        None => text.push_str(&one_table(design)),
        Some(tables) => text.push_str(&several_tables(design, tables)),
    }
    let row = |index: &Index| {
        let (keys, projection) = stored(&design.schema.layout, index);
        vec![index.name.clone(), codes(keys), projection, entities_in(design, index), readers(design, index)]
    };
    let rows: Vec<Vec<String>> = design.schema.layout.indexes.iter().map(row).collect();
    if rows.is_empty() {
        text.push_str("There is no index.\n");
    } else {
        text.push_str(&table(&["index", "keys", "projects beside the keys", "entities", "read by"], &rows));
    }
    text
}

fn one_table(design: &Design) -> String {
    let layout = &design.schema.layout;
    let mut text = format!("## Table and indexes\n\nPrimary key `{}`, `{}`; ", layout.pk, layout.sk);
    match &layout.entity_type {
        Some(name) => text.extend([format!("`{name}` names the entity of an item, ")]),
        None => text.push_str("the form of the key shows the entity of an item, "),
    }
    match &layout.time_to_live {
        Some(name) => text.extend([format!("and `{name}` is its time to live.\n\n")]),
        None => text.push_str("and nothing expires.\n\n"),
    }
    text
}

fn several_tables(design: &Design, tables: &TableForms) -> String {
    let row = |form: &TableForm| {
        let key = [&form.pk].into_iter().chain(&form.sk).map(ToString::to_string);
        let entity = match &form.entity {
            EntityBy::Attribute(attribute) => format!("as {} says", code(attribute)),
            EntityBy::Table(entity) => entity.clone(),
            EntityBy::Forms(_) => "as its key shows".to_owned(),
        };
        vec![form.name.clone(), codes(key), entity, form.time_to_live.as_deref().map(code).unwrap_or_default()]
    };
    let rows: Vec<Vec<String>> = tables.0.iter().map(row).collect();
    let layout = &design.schema.layout;
    format!(
        "## Tables and indexes\n\n\
         An address of an item is the name of its table and its key, and so are the keys below: a partition key begins with \
         the table's name and `#`, and `-` stands for a sort key that the table does not have.\n\
         Ripple's own items, counters and jobs, are in a table of its own with the key `{}`, `{}`.\n\n{}\n",
        layout.pk,
        layout.sk,
        table(&["table", "key", "entity of an item", "time to live"], &rows)
    )
}

/// The key attributes and the projection of an index, in the table's own terms.
fn stored(layout: &Layout, index: &Index) -> (Vec<String>, String) {
    match layout.forms.as_ref().and_then(|forms| forms.index(&index.name)) {
        Some((_, form)) => {
            let keys = form.pk.iter().chain(&form.sk).map(ToString::to_string).collect();
            (keys, projected(form.projection.as_ref()))
        }
        None => (vec![index.pk.clone(), index.sk.clone()], projected(index.projection.as_ref())),
    }
}

fn projected(names: Option<&Vec<String>>) -> String {
    names.map_or_else(|| "all".to_owned(), codes)
}

/// Explains the notation of the table's key templates.
fn forms(design: &Design) -> String {
    let of = |entity: &Definition| {
        let keys = entity.indexes.iter().map(|index| &index.key).chain([&entity.key]);
        keys.flat_map(|key| [key.pk.to_string(), key.sk.to_string()]).collect::<Vec<_>>()
    };
    let own = design.schema.entities().filter(|entity| !entity.is_own());
    let all: Vec<String> = own.flat_map(of).collect();
    let field = all.iter().find_map(|text| text.split('{').nth(1)?.split(['}', ':', '%', '/']).next());
    let has = |mark: &str| all.iter().any(|text| text.contains(mark));
    let mut text = format!("`{{{}}}` stands for a value", field.unwrap_or("name"));
    if has("%") {
        text.push_str(", `{spread}` for a suffix of a static partition key");
    }
    text.push_str(", `*` for what Ripple derives.\nA number in a key is zero-padded to the width after the colon");
    if has(":N}") {
        text.push_str(", and one with `:N`, of a key of type N, begins with how many digits it has before the point");
    }
    if has("MAX-") {
        text.push_str(", and `MAX-` inverts its order");
    }
    if has("%") {
        text.push_str("; `%8` spreads a key over 8 suffixes by a checksum of the value");
    }
    text.push('.');
    text
}

fn entities_in(design: &Design, index: &Index) -> String {
    let inside = design.schema.entities().filter(|entity| entity.indexes.iter().any(|key| key.index == index.name));
    let mut named: Vec<(&str, &str)> = inside.map(|entity| (entity.id.as_str(), entity.name.as_str())).collect();
    named.sort_unstable();
    named.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}

/// The patterns and derivations that query the index.
fn readers(design: &Design, index: &Index) -> String {
    let asks = |pattern: &&PatternRequests| pattern.queries().any(|query| query.index.as_ref() == Some(&index.name));
    let mut readers: Vec<String> = design.patterns.iter().filter(asks).map(|pattern| pattern.id.clone()).collect();
    let found: BTreeSet<String> = design
        .catalogue
        .derivations()
        .filter(|derivation| {
            let finds = derivation.kind.outline(&design.schema).finds;
            finds.iter().any(|find| find.query.index.as_ref() == Some(&index.name))
        })
        .map(|derivation| code(derivation.label()))
        .collect();
    readers.extend(found);
    readers.join(", ")
}

// ---- entities ----

pub(super) fn entities(design: &Design) -> String {
    let mut all: Vec<&Definition> = design.schema.entities().collect();
    all.sort_by_key(|definition| &definition.id);
    let head = ["ID", "entity", "partition key", "sort key", "in indexes", "attributes"];
    let rows: Vec<Vec<String>> = all.iter().map(|definition| entity_row(definition)).collect();
    let mut text = format!(
        "## Entities\n\n\
         Attributes with `*` are derived, and so is every attribute of an entity with `*`.\n\
         {}[bookkeeping](#bookkeeping).\n\n{}\n\
         ### A sample of each\n\n\
         Each with its index keys, its size, and the price of creating it: in the table, and in the indexes.\n\n\
         ```text\n",
        if design.has_rows() {
            "E-30 is what Ripple keeps for itself: see "
        } else {
            "What Ripple keeps for itself is under "
        },
        table(&head, &rows)
    );
    for definition in all {
        if let Some(item) = design.samples.item(&definition.name) {
            text.push_str(&sample(design, definition, item));
        }
    }
    text.push_str("```\n");
    text
}

fn entity_row(definition: &Definition) -> Vec<String> {
    let star = if definition.derived { "*" } else { "" };
    let derived = definition.derived_attributes.iter().map(|name| format!("{}*", code(name)));
    let attributes = definition.attributes.iter().map(|name| code(name)).chain(derived);
    vec![
        definition.id.clone(),
        format!("{}{star}", definition.name),
        code(&definition.key.pk.to_string()),
        code(&definition.key.sk.to_string()),
        definition.indexes.iter().map(indexed).collect::<Vec<_>>().join("; "),
        attributes.collect::<Vec<_>>().join(", "),
    ]
}

fn indexed(index: &IndexKey) -> String {
    let star = if index.derived { "*" } else { "" };
    let only = match &index.only_if {
        None => String::new(),
        Some(OnlyIf::Is { attribute, any_of }) => format!(", only while `{attribute}` is {}", codes(any_of)),
        Some(OnlyIf::Has { attribute }) => format!(", only with `{attribute}`"),
    };
    format!("{}{star}: `{}`, `{}`{only}", index.index, index.key.pk, index.key.sk)
}

fn sample(design: &Design, definition: &Definition, item: &Item) -> String {
    let layout = &design.schema.layout;
    let text = |name: &str| keys::item::text(item, name).unwrap_or_default();
    // An entity that a manifest declares has its name as its id.
    let id = if definition.id == definition.name { String::new() } else { format!("{} ", definition.id) };
    let mut lines = vec![format!("{id}{}  {} / {}", definition.name, text(&layout.pk), text(&layout.sk))];
    let inside = layout.indexes.iter().filter(|index| item.contains_key(&index.pk));
    lines.extend(inside.map(|index| format!("  {}  {} / {}", index.name, text(&index.pk), text(&index.sk))));
    let is_own = |name: &str| !layout.is_key(name) && layout.entity_type.as_deref() != Some(name);
    for (name, stored) in item.iter().filter(|(name, _)| is_own(name)) {
        let is_derived = definition.derived || definition.derived_attributes.iter().any(|derived| derived == name);
        lines.push(format!("  {name}{} = {}", if is_derived { "*" } else { "" }, value(stored)));
    }
    let cost = price::changed(layout, None, Some(item)).unwrap_or_default();
    let (in_table, in_indexes) = (units(cost.table), units(cost.indexes));
    lines.push(format!("  {} bytes; {in_table} + {in_indexes} write units", item_bytes(item)));
    lines.join("\n") + "\n\n"
}

// ---- what Ripple keeps for itself ----

const SECONDS_OF_A_DAY: u64 = 24 * 3600;

pub(super) fn bookkeeping(design: &Design) -> String {
    if design.kept.is_empty() {
        return String::new();
    }
    let is_several = design.schema.layout.forms.is_some();
    let rows: Vec<Vec<String>> = design.kept.iter().map(|kept| kept_row(kept, is_several)).collect();
    format!(
        "## Bookkeeping\n\n\
         {} items that Ripple keeps for itself. It adds no bookkeeping to the application's items.\n\
         DynamoDB may delete an expired item days later.\n\
         `ripple dev`, which reads the stream itself, also stores its stream positions in the ledger's table, under \
         `MAPPING#{{function}} / {{shard}}`, and its progress under `DEV / PROGRESS#{{table}}`.\n\n{}",
        if design.has_rows() { "E-30: the" } else { "The" },
        table(&["item", "table", "key", "attributes", "kept", "purpose"], &rows)
    )
}

fn kept_row(kept: &Kept, is_several: bool) -> Vec<String> {
    let table = match kept.table {
        Table::Main if is_several => "Ripple's own",
        Table::Main => "the application's",
        Table::Ledger => "ledger",
    };
    let life = match kept.life {
        Life::Seconds(SECONDS_OF_A_DAY) => "a day, by `ExpiresAt`".to_owned(),
        Life::Seconds(seconds) => format!("{} days, by `ExpiresAt`", seconds / SECONDS_OF_A_DAY),
        Life::Until(what) => format!("until {what}"),
        Life::Forever => "for ever".to_owned(),
    };
    let key = code(&kept.key.to_string());
    vec![kept.name.to_owned(), table.to_owned(), key, typed(&kept.attributes), life, kept.purpose.to_owned()]
}

// ---- pieces of markdown ----

/// A table. A cell may contain anything but line breaks.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
    let mut text = line(&mut head.iter().map(|cell| (*cell).to_owned()));
    text.extend([format!("|{}\n", "---|".repeat(head.len()))]);
    for row in rows {
        text.push_str(&line(&mut row.iter().map(|cell| escaped(cell))));
    }
    text
}

/// Escapes a bar, which would end the cell even in code.
fn escaped(cell: &str) -> String {
    if cell.is_empty() { "–".to_owned() } else { cell.replace('|', "\\|") }
}

/// Text without markup, such as `Page<Post>`.
fn plain(text: &str) -> String {
    text.replace('<', "\\<")
}

pub(super) fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Texts as code, separated by commas.
fn codes<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    texts.into_iter().map(|text| code(text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// A value in a readable form.
pub(super) fn value(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("\"{text}\""),
        AttributeValue::N(number) => number.clone(),
        AttributeValue::Bool(is) => is.to_string(),
        AttributeValue::Null(_) => "null".to_owned(),
        AttributeValue::B(bytes) => format!("{} bytes", bytes.len()),
        AttributeValue::Ss(set) => {
            format!("{{{}}}", set.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", "))
        }
        AttributeValue::Ns(set) => format!("{{{}}}", set.join(", ")),
        AttributeValue::Bs(set) => format!("{} binaries", set.len()),
        AttributeValue::L(list) => format!("[{}]", list.iter().map(self::value).collect::<Vec<_>>().join(", ")),
        AttributeValue::M(map) => {
            let sorted: std::collections::BTreeMap<_, _> = map.iter().collect();
            let entries = sorted.into_iter().map(|(name, value)| format!("{name}: {}", self::value(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn typed(item: &Item) -> String {
    let typed = item.iter().map(|(name, value)| format!("`{name}` ({})", type_of(value)));
    typed.collect::<Vec<_>>().join(", ")
}

/// Write units without decimals if they are whole.
pub(super) fn units(units: f64) -> String {
    units.to_string()
}
