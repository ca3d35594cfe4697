//! `ripple design --filters`: which records of the stream each function needs.

use design::{
    Design,
    filters::{Needed, StreamTable, criteria, needed, yaml},
};
use functions::handler::Function;
use serde_json::{Map, Value, json};

/// The functions that read the stream.
const READERS: [Function; 3] = [Function::Aggregate, Function::Propagate, Function::Combined];

/// What a function needs of a table; the name of one of several.
fn each(design: &Design) -> impl Iterator<Item = (Function, Option<&str>, Needed)> {
    READERS.into_iter().flat_map(move |function| {
        StreamTable::all(&design.schema).map(move |table| {
            let needed = needed(table, &design.catalogue, &function.families());
            (function, table.form().map(|form| form.name.as_str()), needed)
        })
    })
}

/// The filters of each function in the form of a template.
pub(super) fn as_text(design: &Design) -> String {
    let is_several = design.schema.layout.forms.is_some();
    let text = each(design).map(|(function, table, needed)| {
        let of = match table {
            Some(table) => format!(", the table {table}"),
            None if is_several => ", the table of Ripple's own items".to_owned(),
            None => String::new(),
        };
        format!("# {function}{of}\n{}", yaml(&needed))
    });
    text.collect::<Vec<_>>().join("\n")
}

/// The filters of each function in the form of the API; of each table where there are several.
pub(super) fn as_json(design: &Design) -> Value {
    let is_several = design.schema.layout.forms.is_some();
    let mut functions: Map<String, Value> = Map::new();
    for (function, table, needed) in each(design) {
        let (function, filters) = (function.to_string(), criteria(&needed));
        if !is_several {
            functions.insert(function, filters);
            continue;
        }
        let of = functions.entry(function).or_insert_with(|| json!({ "own_table": null, "tables": {} }));
        match table {
            Some(table) => of["tables"][table] = filters,
            None => of["own_table"] = filters,
        }
    }
    Value::Object(functions)
}
