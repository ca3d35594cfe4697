//! `ripple design --filters`: the stream records that each function needs.

use design::Design;
use functions::handler::Function;
use infra::filters::{Needed, StreamTable, criteria, needed, yaml};
use serde_json::{Map, Value, json};

/// The functions that read the stream.
const READERS: [Function; 3] = [Function::Aggregate, Function::Propagate, Function::Combined];

/// The records that a function needs from each table, with the table's name if there are several.
fn each(design: &Design, function: Function) -> impl Iterator<Item = (Option<&str>, Needed)> {
    StreamTable::all(&design.schema).map(move |table| {
        let needed = needed(table, &design.catalogue, &function.families());
        (table.form().map(|form| form.name.as_str()), needed)
    })
}

/// The filters of each function in the form of a template.
pub(super) fn as_text(design: &Design) -> String {
    let is_several = design.schema.layout.forms.is_some();
    let of_one = |function: Function, (table, needed): (Option<&str>, Needed)| {
        let of = match table {
            Some(table) => format!(", the table {table}"),
            None if is_several => ", the table of Ripple's own items".to_owned(),
            None => String::new(),
        };
        format!("# {function}{of}\n{}", yaml(&needed))
    };
    let text = READERS.into_iter().flat_map(|function| each(design, function).map(move |of| of_one(function, of)));
    text.collect::<Vec<_>>().join("\n")
}

/// The filters of each function in the form of the API. If there are several tables, by table.
pub(super) fn as_json(design: &Design) -> Value {
    let is_several = design.schema.layout.forms.is_some();
    let filters = |function: Function| {
        let (mut own, mut tables) = (Value::Null, Map::new());
        for (table, needed) in each(design, function) {
            match table {
                Some(table) => drop(tables.insert(table.to_owned(), criteria(&needed))),
                None => own = criteria(&needed),
            }
        }
        if is_several { json!({ "own_table": own, "tables": tables }) } else { own }
    };
    Value::Object(READERS.map(|function| (function.to_string(), filters(function))).into_iter().collect())
}
