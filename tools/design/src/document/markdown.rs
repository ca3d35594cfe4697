//! Pieces of markdown.

use keys::{item::Item, value::type_of};
use serde_dynamo::AttributeValue;

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
pub(super) fn plain(text: &str) -> String {
    text.replace('<', "\\<")
}

pub(super) fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Texts as code, separated by commas.
pub(super) fn codes<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
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

pub(super) fn typed(item: &Item) -> String {
    let typed = item.iter().map(|(name, value)| format!("`{name}` ({})", type_of(value)));
    typed.collect::<Vec<_>>().join(", ")
}

/// Write units without decimals if they are whole.
pub(super) fn units(units: f64) -> String {
    units.to_string()
}
