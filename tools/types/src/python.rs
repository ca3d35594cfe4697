//! Keys and items in Python.

use derive::{
    access::{AccessReads, FilterValue},
    query::{Consistency, Order},
};
use keys::index_key::OnlyIf;
use serde_dynamo::AttributeValue;

use crate::{
    attributes::{Identifiers, StoredType, pascal, snake},
    concat,
    description::{TypedEntity, TypedField, TypedKey},
    quoted,
    reads::{Printed, ToldBy, TypedRead},
};

/// Words and values of the language.
const RESERVED: &str = "False None True ValueError TimeoutError abs all and any as assert async await bool break bytes case \
    chr class continue def del dict elif else enumerate except finally float for from getattr global if import in int is \
    isinstance lambda len list map match max min next nonlocal not or ord pass print raise range return set sorted str \
    sum super tuple try type vars while with yield zip";

/// The types of all items and keys, and a function for each read.
pub(crate) fn rendered<'a>(runtime: &str, entities: &'a [TypedEntity<'a>], reads: &[TypedRead<'a>]) -> String {
    let (mut names, mut out) = (Identifiers::beside(RESERVED, runtime), String::new());
    let mut printed = Printed::default();
    for entity in entities {
        let name = names.unused(&pascal(&entity.definition.name));
        out += &item(entity, &name);
        printed.items.insert(&entity.definition.name, name);
        for key in &entity.keys {
            out += &form(key, &mut names, &mut printed);
        }
    }
    out.extend(reads.iter().map(|read| function(read, &mut names, &printed)));
    out
}

/// The function of a read.
fn function<'a>(read: &TypedRead<'a>, names: &mut Identifiers, printed: &Printed<'a>) -> String {
    let fields = names.unused(&(pascal(&read.access.name) + "Fields"));
    let given = read.inputs.iter().map(|field| (field.name.to_owned(), number(field).to_owned()));
    let filter = read.filter_inputs.iter().map(|input| ((*input).to_owned(), "Any".to_owned()));
    let text = format!("\n# {}\n", read.about()) + &dictionary(&fields, given.chain(filter));
    let items = read.entities.iter().filter_map(|entity| printed.items.get(entity));
    let items = items.map(String::as_str).collect::<Vec<_>>().join(" | ");
    let list = |texts: &[&str]| format!("({})", concat(texts.iter().map(|text| quoted(text) + ", ")).trim_end());
    let form =
        printed.key(&read.key).map_or_else(|| format!("KeyForm({})", arguments(&read.key).join(", ")), str::to_owned);
    let mut lines = vec![
        format!("name={}", quoted(&read.access.name)),
        format!("form={form}"),
        format!("table={}", list(&read.table)),
        format!("numbers={}", list(&read.numbers)),
        format!("entities={}", list(&read.entities)),
        format!("forms=({})", concat(printed.forms(read).iter().map(|form| format!("{form}, "))).trim_end()),
    ];
    lines.push(match read.told {
        ToldBy::Attribute(name) => format!("type={}", quoted(name)),
        ToldBy::Forms | ToldBy::Table => "type=None".to_owned(),
    });
    lines.push(format!("consistent={}", truth(read.access.consistency == Consistency::Strong)));
    let class = match &read.access.reads {
        AccessReads::Get(_) => format!("Get[{fields}, {items}]"),
        AccessReads::BatchGet(_) => format!("BatchGet[{fields}, {items}]"),
        AccessReads::Counts(_) => format!("Counts[{fields}]"),
        AccessReads::Query(query) => {
            let leading: Vec<&str> = query.fields.iter().map(String::as_str).collect();
            lines.push(format!("fields={}", list(&leading)));
            lines.push(format!("descending={}", truth(query.order == Order::Descending)));
            lines.push(format!("limit={}", query.limit));
            lines.extend(
                read.next().map(|(next, is_below)| format!("next={}, below={}", quoted(next), truth(is_below))),
            );
            lines.extend(read.range.iter().map(|(least, greatest)| format!("range={}", list(&[least, greatest]))));
            lines.extend(read.filter.iter().map(|filter| {
                let value = |value: &FilterValue| match value {
                    FilterValue::Input(input) => format!("(\"input\", {}), ", quoted(input)),
                    FilterValue::Literal(value) => format!("(\"literal\", {}), ", literal(value)),
                };
                let attributes: Vec<&str> = filter.names.iter().map(String::as_str).collect();
                let values = concat(filter.values.iter().map(value));
                format!("filter=({}, {}, ({}))", quoted(&filter.text), list(&attributes), values.trim_end())
            }));
            format!("Query[{fields}, {items}, {}]", read.bounded().map_or("None", |field| number(&field)))
        }
    };
    let name = names.unused(&snake(&read.access.name));
    let lines = concat(lines.iter().map(|line| format!("    {line},\n")));
    text + &format!("{name}: {class} = {}(\n{lines})\n", class.split('[').next().unwrap_or_default())
}

fn truth(is_true: bool) -> &'static str {
    if is_true { "True" } else { "False" }
}

/// A literal of a filter.
fn literal(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => quoted(text),
        AttributeValue::N(number) => format!("Decimal({})", quoted(number)),
        AttributeValue::Bool(value) => truth(*value).to_owned(),
        // No other value can be written in a condition.
        _ => "None".to_owned(),
    }
}

fn number(field: &TypedField<'_>) -> &'static str {
    if field.is_number { "Number" } else { "str" }
}

fn item(entity: &TypedEntity<'_>, name: &str) -> String {
    let attributes = entity.attributes.iter().map(|attribute| {
        let value = match (attribute.literal, attribute.value) {
            (Some(literal), _) => format!("Literal[{}]", quoted(literal)),
            (None, StoredType::Text) => "str".to_owned(),
            (None, StoredType::Number) => "Union[int, Decimal]".to_owned(),
            (None, StoredType::Boolean) => "bool".to_owned(),
            (None, StoredType::Unknown) => "Any".to_owned(),
        };
        let value = if attribute.is_required { format!("Required[{value}]") } else { value };
        let comment = if attribute.derived { "  # Derived: Ripple writes it." } else { "" };
        format!("    {}: {value},{comment}\n", quoted(attribute.name))
    });
    let attributes = concat(attributes);
    format!("\n# {}\n{name} = TypedDict({}, {{\n{attributes}}}, total=False)\n", entity.about(), quoted(name))
}

fn form<'a>(key: &TypedKey<'a>, names: &mut Identifiers, printed: &mut Printed<'a>) -> String {
    let index = key.index.map_or_else(|| "Key".to_owned(), pascal);
    let fields = names.unused(&(pascal(key.entity) + &index));
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
    let lines = concat(arguments(key).iter().map(|argument| format!("    {argument},\n")));
    let built = if key.only_if.is_some() { "dict[str, str] | None" } else { "dict[str, str]" };
    text.extend([format!("# {}\n{name}: KeyForm[{fields}, {read}, {built}] = KeyForm(\n{lines})\n", key.about())]);
    printed.add(key, name);
    text
}

/// The arguments of the form of a key.
fn arguments(key: &TypedKey<'_>) -> Vec<String> {
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
    arguments
}

/// A typed dictionary with these fields.
fn dictionary(name: &str, fields: impl Iterator<Item = (String, String)>) -> String {
    let fields: Vec<String> = fields.map(|(name, value)| format!("{}: {value}", quoted(&name))).collect();
    format!("{name} = TypedDict({}, {{{}}})\n", quoted(name), fields.join(", "))
}
