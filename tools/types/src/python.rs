//! Keys and items in Python.

use keys::index_key::OnlyIf;

use crate::{
    attributes::{HeldType, Identifiers, pascal, snake},
    concat,
    description::{TypedEntity, TypedField, TypedKey},
    quoted,
};

/// Names that the fixed runtime uses, and reserved words.
const RESERVED: &str = "Any Built Decimal Fields Generic InvalidKey KeyForm Literal Mapping NotRequired Number \
    PARTITION_KEY_BYTES_MAX Read Required SORT_KEY_BYTES_MAX TypeVar TypedDict Union None True False";

pub(crate) fn rendered(entities: &[TypedEntity<'_>]) -> String {
    let (mut names, mut out) = (Identifiers::without(RESERVED), String::new());
    for entity in entities {
        out += &item(entity, &mut names);
        for key in &entity.keys {
            out += &form(key, &mut names);
        }
    }
    out
}

fn item(entity: &TypedEntity<'_>, names: &mut Identifiers) -> String {
    let name = names.unused(&pascal(&entity.definition.name));
    let attributes = entity.attributes.iter().map(|attribute| {
        let value = match (attribute.literal, attribute.value) {
            (Some(literal), _) => format!("Literal[{}]", quoted(literal)),
            (None, HeldType::Text) => "str".to_owned(),
            (None, HeldType::Number) => "Union[int, Decimal]".to_owned(),
            (None, HeldType::Boolean) => "bool".to_owned(),
            (None, HeldType::Unknown) => "Any".to_owned(),
        };
        let value = if attribute.is_required { format!("Required[{value}]") } else { value };
        let comment = if attribute.derived { "  # Derived: Ripple writes it." } else { "" };
        format!("    {}: {value},{comment}\n", quoted(attribute.name))
    });
    let attributes = concat(attributes);
    format!("\n# {}\n{name} = TypedDict({}, {{\n{attributes}}}, total=False)\n", entity.about(), quoted(&name))
}

fn form(key: &TypedKey<'_>, names: &mut Identifiers) -> String {
    let index = key.index.map_or_else(|| "Key".to_owned(), pascal);
    let fields = names.unused(&(pascal(key.entity) + &index));
    let number = |field: &TypedField<'_>| if field.is_number { "Number" } else { "str" };
    let optional = |field: &TypedField<'_>| {
        let value = number(field).to_owned();
        (field.name.to_owned(), if field.is_optional { format!("NotRequired[{value}]") } else { value })
    };
    let mut text = dictionary(&fields, key.fields.iter().map(optional));
    let is_same = |field: &TypedField<'_>| field.is_read && !field.is_optional && !field.is_number;
    let mut read = fields.clone();
    if !key.fields.iter().all(is_same) {
        read = names.unused(&(fields.clone() + "Read"));
        let texts = key.fields.iter().filter(|field| field.is_read);
        text += &dictionary(&read, texts.map(|field| (field.name.to_owned(), "str".to_owned())));
    }
    let name = names.unused(&format!("{}_{}", snake(key.entity), snake(key.index.unwrap_or("key"))).to_uppercase());
    let [partition, sort] = key.pieces().map(|pieces| {
        let piece = |(form, text, numbers): &(&str, &str, Vec<u64>)| {
            let numbers = concat(numbers.iter().map(|number| format!(", {number}")));
            format!("({}, {}{numbers}), ", quoted(form), quoted(text))
        };
        format!("({})", pieces.iter().map(piece).collect::<String>().trim_end())
    });
    let index = key.index.map_or_else(|| "None".to_owned(), quoted);
    let attributes = format!("({}, {})", quoted(key.names[0]), quoted(key.names[1]));
    let mut arguments = vec![quoted(key.entity), index, attributes, partition, sort];
    arguments.extend(key.only_if.map(|only_if| match only_if {
        OnlyIf::Is { attribute, any_of } => {
            let texts: String = any_of.iter().map(|text| quoted(text) + ", ").collect();
            format!("({}, ({}))", quoted(attribute), texts.trim_end())
        }
        OnlyIf::Has { attribute } => format!("({}, None)", quoted(attribute)),
    }));
    let arguments = concat(arguments.iter().map(|argument| format!("    {argument},\n")));
    let built = if key.only_if.is_some() { "dict[str, str] | None" } else { "dict[str, str]" };
    text + &format!("# {}\n{name}: KeyForm[{fields}, {read}, {built}] = KeyForm(\n{arguments})\n", key.about())
}

/// A typed dictionary with these fields.
fn dictionary(name: &str, fields: impl Iterator<Item = (String, String)>) -> String {
    let fields: Vec<String> = fields.map(|(name, value)| format!("{}: {value}", quoted(&name))).collect();
    format!("{name} = TypedDict({}, {{{}}})\n", quoted(name), fields.join(", "))
}
