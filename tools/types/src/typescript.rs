//! Keys and items in TypeScript.

use keys::index_key::OnlyIf;

use crate::{
    attributes::{HeldType, Identifiers, camel, pascal},
    concat,
    description::{TypedEntity, TypedField, TypedKey},
    quoted,
};

/// Names that the fixed runtime uses, and reserved words.
const RESERVED: &str = "KeyNumber Piece InvalidKey KeyForm Problem Array BigInt Error Map Number Object Partial Set \
    String Record any string number boolean bigint symbol unknown never object undefined null void";

pub(crate) fn rendered(entities: &[TypedEntity<'_>]) -> String {
    let (mut names, mut out) = (Identifiers::without(RESERVED), String::new());
    for entity in entities {
        out += &item(entity, &mut names);
        for key in &entity.keys {
            let part = key.index.map_or_else(|| "Key".to_owned(), pascal);
            let name = names.unused(&(camel(key.entity) + &part));
            out += &form(key, &name);
        }
    }
    out
}

fn item(entity: &TypedEntity<'_>, names: &mut Identifiers) -> String {
    let mut text = format!("/** {} */\n", entity.about());
    text.extend([format!("export interface {} {{\n", names.unused(&pascal(&entity.definition.name)))]);
    for attribute in &entity.attributes {
        let value = match (attribute.literal, attribute.value) {
            (Some(literal), _) => quoted(literal),
            (None, HeldType::Text) => "string".to_owned(),
            (None, HeldType::Number) => "number".to_owned(),
            (None, HeldType::Boolean) => "boolean".to_owned(),
            (None, HeldType::Unknown) => "unknown".to_owned(),
        };
        let (comment, readonly) =
            if attribute.derived { ("  /** Derived: Ripple writes it. */\n", "readonly ") } else { ("", "") };
        let optional = if attribute.is_required { "" } else { "?" };
        text.extend([format!("{comment}  {readonly}{}{optional}: {value};\n", quoted(attribute.name))]);
    }
    text + "}\n\n"
}

fn form(key: &TypedKey<'_>, name: &str) -> String {
    let number = |field: &TypedField<'_>| if field.is_number { "KeyNumber" } else { "string" };
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
    format!("/** {} */\nexport const {name} = new KeyForm<{types}>(\n{arguments});\n\n", key.about())
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
