//! Keys and items in Rust.

use derive::{
    access::{AccessQuery, AccessReads, FilterValue},
    query::{Consistency, Order},
};
use keys::index_key::OnlyIf;
use serde_dynamo::AttributeValue;

use crate::{
    attributes::{Identifiers, StoredType, pascal, snake},
    concat,
    description::{TypedEntity, TypedField, TypedKey},
    reads::{Printed, ToldBy, TypedRead},
};

/// Types and traits of the prelude, and those that the printed code names.
const RESERVED: &str = "Box Clone Copy Debug Default Eq Err Fn FnMut FnOnce From Into Iterator None Ok Option PartialEq \
    Result Self Send Some String Sync ToOwned ToString V Vec";

/// Keywords, which cannot name a field.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct \
    super trait true try type typeof unsafe unsized use virtual where while yield";

/// The types of all items and keys, and one for each read.
pub(crate) fn rendered<'a>(runtime: &str, entities: &'a [TypedEntity<'a>], reads: &[TypedRead<'a>]) -> String {
    let (mut names, mut out) = (Identifiers::beside(RESERVED, runtime), String::new());
    let mut printed = Printed::default();
    for entity in entities {
        let name = names.unused(&pascal(&entity.definition.name));
        out += &item(entity, &name);
        for key in &entity.keys {
            let part = key.index.map_or_else(|| "Key".to_owned(), pascal);
            let name = names.unused(&(pascal(key.entity) + &part));
            out += &form(key, &name);
            printed.add(key, format!("{name}::FORM"));
        }
    }
    out.extend(reads.iter().map(|read| function(read, &names.unused(&(pascal(&read.access.name) + "Read")), &printed)));
    out
}

/// The type of a read, with its function.
fn function<'a>(read: &TypedRead<'a>, name: &str, printed: &Printed<'a>) -> String {
    let mut identifiers = Identifiers::without(KEYWORDS);
    let (mut declared, mut given, mut inputs) = (String::new(), Vec::new(), Vec::new());
    for field in &read.inputs {
        let identifier = identifiers.unused(&snake(field.name));
        let number = if field.is_number { ", a number" } else { "" };
        declared.extend([format!("    /// The field {:?}{number}.\n    pub {identifier}: String,\n", field.name)]);
        given.push(format!("({:?}, Some(self.{identifier}.as_str()))", field.name));
    }
    for input in &read.filter_inputs {
        let identifier = identifiers.unused(&snake(input));
        declared
            .extend([format!("    /// The value {input:?} of the filter.\n    pub {identifier}: AttributeValue,\n")]);
        inputs.push(format!("({input:?}, &self.{identifier})"));
    }
    let value = read_value(read, printed);
    let (of, value) = match read.query() {
        None => ("Read", value),
        Some(query) => ("Range", range_value(read, query, &value)),
    };
    format!(
        "/// {}\n#[derive(Clone, Debug, PartialEq)]\npub struct {name} {{\n{declared}}}\n\nimpl {name} {{\n    \
         /// The read.\n    pub const READ: {of} = {value};\n\n{}}}\n\n",
        read.about(),
        method(read, &format!("&[{}]", given.join(", ")), &format!("&[{}]", inputs.join(", "))),
    )
}

/// The read as a constant.
fn read_value<'a>(read: &TypedRead<'a>, printed: &Printed<'a>) -> String {
    let form = printed.key(&read.key).map_or_else(|| constant(&read.key).replace('\n', "\n        "), str::to_owned);
    let told = match read.told {
        ToldBy::Attribute(attribute) => format!("Some({attribute:?})"),
        ToldBy::Forms | ToldBy::Table => "None".to_owned(),
    };
    format!(
        "Read {{\n        name: {:?},\n        form: {form},\n        table: &{:?},\n        numbers: &{:?},\n        \
         entity_type: {told},\n        entities: &{:?},\n        forms: &[{}],\n        consistent: {},\n    }}",
        read.access.name,
        read.table,
        read.numbers,
        read.entities,
        printed.forms(read).join(", "),
        read.access.consistency == Consistency::Strong,
    )
}

/// A query as a constant.
fn range_value(read: &TypedRead<'_>, query: &AccessQuery, value: &str) -> String {
    let filter = read.filter.as_ref().map_or_else(
        || "None".to_owned(),
        |filter| {
            let values = filter.values.iter().map(literal).collect::<Vec<_>>().join(", ");
            format!("Some(Filter {{ text: {:?}, names: &{:?}, values: &[{values}] }})", filter.text, filter.names)
        },
    );
    format!(
        "Range {{\n        read: {},\n        fields: &{:?},\n        next: {:?},\n        range: {:?},\n        \
         descending: {},\n        limit: {},\n        filter: {filter},\n    }}",
        value.replace('\n', "\n    "),
        query.fields,
        read.next(),
        read.range,
        query.order == Order::Descending,
        query.limit,
    )
}

/// The function of a read, which gets these fields of a key and these values of a filter.
fn method(read: &TypedRead<'_>, fields: &str, inputs: &str) -> String {
    const CALLED: &str = "client: &Client, table: &str";
    let (about, head, body, after) = match &read.access.reads {
        AccessReads::Get(_) => (
            "The item; `None` if there is none. `Some(true)` reads it consistently.".to_owned(),
            format!("get(&self, {CALLED}, consistent: Option<bool>) -> Result<Option<Item>, ReadError>"),
            format!("Self::READ.get(client, table, {fields}, consistent).await"),
            String::new(),
        ),
        AccessReads::BatchGet(_) => (
            "The items with these keys in any order, and the positions of those that are not there.".to_owned(),
            format!(
                "get(all: &[Self], {CALLED}, consistent: Option<bool>) -> Result<(Vec<Item>, Vec<usize>), ReadError>"
            ),
            "Self::READ.batch_get(client, table, all.iter().map(Self::key), consistent).await".to_owned(),
            format!("\n    fn key(&self) -> Result<Item, InvalidKey> {{\n        Self::READ.key({fields})\n    }}\n"),
        ),
        AccessReads::Counts(_) => (
            "The counts by the names of derivations; one that never counted anything is absent.".to_owned(),
            format!("counts(&self, {CALLED}) -> Result<BTreeMap<String, Counted>, ReadError>"),
            format!("Self::READ.counts(client, table, {fields}).await"),
            String::new(),
        ),
        AccessReads::Query(_) => {
            let bounds =
                read.bounded().map(|field| format!(" `low` and `high` are bounds of {:?}, inclusive.", field.name));
            (
                format!("A page.{}", bounds.unwrap_or_default()),
                format!("page(&self, {CALLED}, options: &PageOptions) -> Result<Page, ReadError>"),
                format!("Self::READ.page(client, table, ({fields}, {inputs}), options).await"),
                String::new(),
            )
        }
    };
    format!("    /// {about}\n{ERRORS}    pub async fn {head} {{\n        {body}\n    }}\n{after}")
}

/// What the doc comment of a function says of its errors.
const ERRORS: &str = "    ///\n    /// # Errors\n    ///\n    /// [`ReadError`]\n";

/// A value of a filter.
fn literal(value: &FilterValue) -> String {
    match value {
        FilterValue::Input(name) => format!("FilterValue::Input({name:?})"),
        FilterValue::Literal(AttributeValue::S(text)) => format!("FilterValue::Text({text:?})"),
        FilterValue::Literal(AttributeValue::N(number)) => format!("FilterValue::Number({number:?})"),
        FilterValue::Literal(AttributeValue::Bool(truth)) => format!("FilterValue::Bool({truth})"),
        // No other value can be written in a condition.
        FilterValue::Literal(_) => "FilterValue::Null".to_owned(),
    }
}

fn item(entity: &TypedEntity<'_>, name: &str) -> String {
    let mut fields = Identifiers::without(KEYWORDS);
    let mut text = format!("/// {}\n", entity.about());
    let is_generic = entity.attributes.iter().any(|attribute| attribute.value == StoredType::Unknown);
    if is_generic {
        text += "///\n/// `V` is the type of an attribute's value of your SDK.\n";
    }
    let generic = if is_generic { "<V>" } else { "" };
    text.extend([format!("#[derive(Clone, Debug, PartialEq)]\npub struct {name}{generic} {{\n")]);
    for attribute in &entity.attributes {
        let value = match attribute.value {
            StoredType::Text | StoredType::Number => "String",
            StoredType::Boolean => "bool",
            StoredType::Unknown => "V",
        };
        let value = if attribute.is_required { value.to_owned() } else { format!("Option<{value}>") };
        let number = if attribute.value == StoredType::Number { ", a number (N)" } else { "" };
        let derived = if attribute.derived { " Derived: Ripple writes it." } else { "" };
        text.extend([format!("    /// The attribute {:?}{number}.{derived}\n", attribute.name)]);
        text.extend([format!("    pub {}: {value},\n", fields.unused(&snake(attribute.name)))]);
    }
    text + "}\n\n"
}

fn form(key: &TypedKey<'_>, name: &str) -> String {
    let mut identifiers = Identifiers::without(KEYWORDS);
    let fields: Vec<(String, &TypedField<'_>)> =
        key.fields.iter().map(|field| (identifiers.unused(&snake(field.name)), field)).collect();
    let is_optional = |field: &TypedField<'_>| field.is_optional || !field.is_read;
    let (mut declared, mut built, mut parsed) = (String::new(), String::new(), String::new());
    for (identifier, field) in &fields {
        let (value, given, read) = if is_optional(field) {
            ("Option<String>", format!("self.{identifier}.as_deref()"), ".cloned()")
        } else {
            ("String", format!("Some(&self.{identifier})"), "?.clone()")
        };
        let number = if field.is_number { ", a number as DynamoDB writes it" } else { "" };
        let unread = if field.is_read { "" } else { " A key that is parsed does not give it." };
        declared
            .extend([format!("    /// The field {:?}{number}.{unread}\n    pub {identifier}: {value},\n", field.name)]);
        built.extend([format!("({:?}, {given}), ", field.name)]);
        parsed.extend([format!("            {identifier}: fields.get({:?}){read},\n", field.name)]);
    }
    let (result, build) = if key.only_if.is_some() { ("Option<Key>", "build_if") } else { ("Key", "build") };
    let absent = if key.only_if.is_some() { "; `None` if the item is not in the index" } else { "" };
    let (read, field_names) = if fields.is_empty() { ("_", "") } else { ("fields", built.trim_end_matches(", ")) };
    format!(
        "/// {about}\n#[derive(Clone, Debug, PartialEq, Eq)]\npub struct {name} {{\n{declared}}}\n\n\
         impl {name} {{\n    /// Its form.\n    pub const FORM: KeyForm = {value};\n\n    \
         /// The key{absent}.\n    ///\n    /// # Errors\n    ///\n    \
         /// [`InvalidKey`] with the field that is missing, empty or does not fit.\n    \
         pub fn build(&self) -> Result<{result}, InvalidKey> {{\n        Self::FORM.{build}(&[{field_names}])\n    }}\n\n    \
         /// The fields of a key; `None` if it is of another form.\n    #[must_use]\n    \
         pub fn parse(partition: &str, sort: &str) -> Option<Self> {{\n        \
         let {read} = Self::FORM.parse(partition, sort)?;\n        Some(Self {{\n{parsed}        }})\n    }}\n}}\n\n",
        about = key.about(),
        value = constant(key),
    )
}

/// The form of the key as a constant.
fn constant(key: &TypedKey<'_>) -> String {
    let [partition, sort] = key.pieces().map(|pieces| {
        let piece = |(form, text, numbers): &(&str, &str, Vec<u64>)| {
            let numbers = concat(numbers.iter().map(|number| format!(", {number}")));
            format!("Piece::{}({text:?}{numbers})", pascal(form))
        };
        pieces.iter().map(piece).collect::<Vec<_>>().join(", ")
    });
    let only_if = key.only_if.map(|only_if| match only_if {
        OnlyIf::Is { attribute, any_of } => format!("Some(({attribute:?}, Some(&{any_of:?})))"),
        OnlyIf::Has { attribute } => format!("Some(({attribute:?}, None))"),
    });
    format!(
        "KeyForm {{\n        entity: {:?},\n        index: {:?},\n        names: {:?},\n        partition: &[{partition}],\n        \
         sort: &[{sort}],\n        only_if: {},\n    }}",
        key.entity,
        key.index,
        key.names,
        only_if.unwrap_or_else(|| "None".to_owned()),
    )
}
