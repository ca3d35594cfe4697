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
    let mut functions = Map::new();
    for function in READERS {
        let ours =
            || each(design).filter(|(of, ..)| *of == function).map(|(_, table, needed)| (table, criteria(&needed)));
        let own = || ours().find(|(table, _)| table.is_none()).map_or(Value::Null, |(_, filters)| filters);
        let filters = if is_several {
            let tables = ours().filter_map(|(table, filters)| Some((table?.to_owned(), filters)));
            json!({ "own_table": own(), "tables": tables.collect::<Map<String, Value>>() })
        } else {
            own()
        };
        functions.insert(function.to_string(), filters);
    }
    Value::Object(functions)
}
