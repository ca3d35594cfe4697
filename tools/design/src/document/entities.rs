//! The section on entities.

use keys::{
    entity::Definition,
    index_key::{IndexKey, OnlyIf},
    item::Item,
    size::item_bytes,
};

use super::markdown::{code, codes, table, units, value};
use crate::{Design, price};

pub(super) fn section(design: &Design) -> String {
    let mut all: Vec<&Definition> = design.schema.entities().collect();
    all.sort_by_key(|definition| &definition.id);
    let head = ["ID", "entity", "partition key", "sort key", "in indexes", "attributes"];
    let rows: Vec<Vec<String>> = all.iter().map(|definition| row(definition)).collect();
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

fn row(definition: &Definition) -> Vec<String> {
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
    for (name, held) in item.iter().filter(|(name, _)| is_own(name)) {
        let is_derived = definition.derived || definition.derived_attributes.iter().any(|derived| derived == name);
        lines.push(format!("  {name}{} = {}", if is_derived { "*" } else { "" }, value(held)));
    }
    let cost = price::changed(layout, None, Some(item)).unwrap_or_default();
    let (in_table, in_indexes) = (units(cost.table), units(cost.indexes));
    lines.push(format!("  {} bytes; {in_table} + {in_indexes} write units", item_bytes(item)));
    lines.join("\n") + "\n\n"
}
