//! Keys and items in TypeScript.

use derive::{
    access::{AccessReads, FilterValue},
    query::{Consistency, Order},
};
use keys::index_key::OnlyIf;
use serde_dynamo::AttributeValue;

use crate::{
    attributes::{Identifiers, StoredType, camel, pascal},
    concat,
    description::{TypedEntity, TypedField, TypedKey},
    quoted,
    reads::{Printed, ToldBy, TypedRead},
};

/// Words and values of the language.
const RESERVED: &str = "Array BigInt Date Error JSON Map Math Number Object Partial Promise RangeError Record Set String any \
    arguments as async await bigint boolean break case catch class const continue debugger default delete do else enum \
    eval export exports extends false finally for function if implements import in instanceof interface let module never new null \
    number object of package private protected public require return static string super switch symbol then this throw true try type \
    typeof undefined unknown var void while with yield";

/// The types of all items and keys, and a function for each read.
pub(crate) fn rendered<'a>(runtime: &str, entities: &'a [TypedEntity<'a>], reads: &[TypedRead<'a>]) -> String {
    let (mut names, mut out) = (Identifiers::beside(RESERVED, runtime), String::new());
    let mut printed = Printed::default();
    for entity in entities {
        let name = names.unused(&pascal(&entity.definition.name));
        out += &item(entity, &name);
        printed.items.insert(&entity.definition.name, name);
        for key in &entity.keys {
            let part = key.index.map_or_else(|| "Key".to_owned(), pascal);
            let name = names.unused(&(camel(key.entity) + &part));
            out.extend([format!("/** {} */\nexport const {name} = {};\n\n", key.about(), form(key))]);
            printed.add(key, name);
        }
    }
    out.extend(reads.iter().map(|read| function(read, &names.unused(&camel(&read.access.name)), &printed)));
    out
}

/// The function of a read.
fn function<'a>(read: &TypedRead<'a>, name: &str, printed: &Printed<'a>) -> String {
    let items = read.entities.iter().filter_map(|entity| printed.items.get(entity));
    let items = items.map(String::as_str).collect::<Vec<_>>().join(" | ");
    let filter = read.filter_inputs.iter().map(|input| (*input, false, "unknown"));
    let input = object(read.inputs.iter().map(|field| (field.name, false, number(field))).chain(filter));
    let list = |texts: &[&str]| format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "));
    let mut lines = vec![
        format!("name: {}", quoted(&read.access.name)),
        format!(
            "form: {}",
            printed.key(&read.key).map_or_else(|| form(&read.key).replace('\n', "\n  "), str::to_owned)
        ),
        format!("table: {}", list(&read.table)),
        format!("numbers: {}", list(&read.numbers)),
        format!("entities: {}", list(&read.entities)),
    ];
    lines.push(format!("forms: [{}]", printed.forms(read).join(", ")));
    if let ToldBy::Attribute(name) = read.told {
        lines.push(format!("type: {}", quoted(name)));
    }
    lines.push(format!("consistent: {}", read.access.consistency == Consistency::Strong));
    let call = match &read.access.reads {
        AccessReads::Get(_) => format!("getter<{input}, {items}>"),
        AccessReads::BatchGet(_) => format!("batchGetter<{input}, {items}>"),
        AccessReads::Counts(_) => format!("counter<{input}>"),
        AccessReads::Query(query) => {
            let fields: Vec<&str> = query.fields.iter().map(String::as_str).collect();
            lines.push(format!("fields: {}", list(&fields)));
            if let Some((next, is_below)) = read.next() {
                lines.push(format!("next: {}, below: {is_below}", quoted(next)));
            }
            if let Some((least, greatest)) = &read.range {
                lines.push(format!("range: [{}, {}]", quoted(least), quoted(greatest)));
            }
            lines.push(format!("descending: {}, limit: {}", query.order == Order::Descending, query.limit));
            if let Some(filter) = &read.filter {
                let value = |value: &FilterValue| match value {
                    FilterValue::Input(input) => format!("{{ input: {} }}", quoted(input)),
                    FilterValue::Literal(value) => format!("{{ literal: {} }}", literal(value)),
                };
                let values = filter.values.iter().map(value).collect::<Vec<_>>().join(", ");
                let names: Vec<&str> = filter.names.iter().map(String::as_str).collect();
                lines.push(format!(
                    "filter: {{ text: {}, names: {}, values: [{values}] }}",
                    quoted(&filter.text),
                    list(&names)
                ));
            }
            let bound = read.bounded().map(|field| format!(", {}", number(&field))).unwrap_or_default();
            format!("query<{input}, {items}{bound}>")
        }
    };
    let lines = concat(lines.iter().map(|line| format!("  {line},\n")));
    format!("/** {} */\nexport const {name} = {call}({{\n{lines}}});\n\n", read.about())
}

/// A literal of a filter.
fn literal(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => quoted(text),
        // A number of more digits than a `number` has is exact as a bigint only.
        AttributeValue::N(number) if number.len() > 15 && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{number}n")
        }
        AttributeValue::N(number) => number.clone(),
        AttributeValue::Bool(truth) => truth.to_string(),
        // No other value can be written in a condition.
        _ => "null".to_owned(),
    }
}

fn item(entity: &TypedEntity<'_>, name: &str) -> String {
    let mut text = format!("/** {} */\n", entity.about());
    text.extend([format!("export interface {name} {{\n")]);
    for attribute in &entity.attributes {
        let value = match (attribute.literal, attribute.value) {
            (Some(literal), _) => quoted(literal),
            (None, StoredType::Text) => "string".to_owned(),
            (None, StoredType::Number) => "number".to_owned(),
            (None, StoredType::Boolean) => "boolean".to_owned(),
            (None, StoredType::Unknown) => "unknown".to_owned(),
        };
        let (comment, readonly) =
            if attribute.derived { ("  /** Derived: Ripple writes it. */\n", "readonly ") } else { ("", "") };
        let optional = if attribute.is_required { "" } else { "?" };
        text.extend([format!("{comment}  {readonly}{}{optional}: {value};\n", quoted(attribute.name))]);
    }
    text + "}\n\n"
}

fn number(field: &TypedField<'_>) -> &'static str {
    if field.is_number { "KeyNumber" } else { "string" }
}

/// The form of a key, as an expression.
fn form(key: &TypedKey<'_>) -> String {
    let built = key.fields.iter().map(|field| (field.name, field.is_optional, number(field)));
    let read = key.fields.iter().filter(|field| field.is_read).map(|field| (field.name, false, "string"));
    let whole = key.names.iter().filter(|name| !name.is_empty()).map(|name| (*name, false, "string"));
    let sparse = if key.only_if.is_some() { " | undefined" } else { "" };
    let types = format!("{}, {}, {}{sparse}", object(built), object(read), object(whole));
    let [partition, sort] = key.pieces().map(|pieces| {
        let piece = |(form, text, numbers): &(&str, &str, Vec<u64>)| {
            let numbers = concat(numbers.iter().map(|number| format!(", {number}")));
            format!("[{}, {}{numbers}]", quoted(form), quoted(text))
        };
        format!("[{}]", pieces.iter().map(piece).collect::<Vec<_>>().join(", "))
    });
    let index = key.index.map_or_else(|| "undefined".to_owned(), quoted);
    let attributes = format!("[{}, {}]", quoted(key.names[0]), quoted(key.names[1]));
    let mut arguments = vec![quoted(key.entity), index, attributes, partition, sort];
    arguments.extend(key.only_if.map(|only_if| match only_if {
        OnlyIf::Is { attribute, any_of } => {
            let texts: Vec<String> = any_of.iter().map(|text| quoted(text)).collect();
            format!("[{}, [{}]]", quoted(attribute), texts.join(", "))
        }
        OnlyIf::Has { attribute } => format!("[{}, undefined]", quoted(attribute)),
    }));
    let arguments = concat(arguments.iter().map(|argument| format!("  {argument},\n")));
    format!("new KeyForm<{types}>(\n{arguments})")
}

/// The type of an object with these properties.
fn object<'a>(properties: impl Iterator<Item = (&'a str, bool, &'a str)>) -> String {
    let property = |(name, optional, value): (&str, bool, &str)| {
        let optional = if optional { "?" } else { "" };
        format!("{}{optional}: {value}", quoted(name))
    };
    let all: Vec<String> = properties.map(property).collect();
    if all.is_empty() { "object".to_owned() } else { format!("{{ {} }}", all.join("; ")) }
}
