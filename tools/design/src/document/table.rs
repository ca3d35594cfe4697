//! The section on the table and its indexes, or on several tables.

use std::collections::BTreeSet;

use keys::{
    entity::Definition,
    layout::{Index, Layout},
    tables::{EntityBy, TableForm, TableForms},
};

use super::markdown::{code, codes, table};
use crate::{Design, asked::PatternRequests};

pub(super) fn section(design: &Design, written_by: &str) -> String {
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
        vec![index.name.clone(), codes(keys), projection, entities(design, index), readers(design, index)]
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

fn entities(design: &Design, index: &Index) -> String {
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
