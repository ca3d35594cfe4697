//! Keys and items in Rust.

use keys::index_key::OnlyIf;

use crate::{
    attributes::{HeldType, Identifiers, pascal, snake},
    concat,
    description::{TypedEntity, TypedField, TypedKey},
};

/// Names that the fixed runtime and the prelude use.
const RESERVED: &str = "BTreeMap Fields InvalidKey Key KeyForm Piece V Box Clone Copy Debug Default Eq Err None Ok \
    Option PartialEq Result Self Some String Vec";

/// Keywords, which cannot name a field.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct \
    super trait true try type typeof unsafe unsized use virtual where while yield";

pub(crate) fn rendered(entities: &[TypedEntity<'_>]) -> String {
    let (mut names, mut out) = (Identifiers::without(RESERVED), String::new());
    for entity in entities {
        let name = names.unused(&pascal(&entity.definition.name));
        out += &item(entity, &name);
        for key in &entity.keys {
            let part = key.index.map_or_else(|| "Key".to_owned(), pascal);
            let name = names.unused(&(pascal(key.entity) + &part));
            out += &form(key, &name);
        }
    }
    out
}

fn item(entity: &TypedEntity<'_>, name: &str) -> String {
    let mut fields = Identifiers::without(KEYWORDS);
    let mut text = format!("/// {}\n", entity.about());
    let is_generic = entity.attributes.iter().any(|attribute| attribute.value == HeldType::Unknown);
    if is_generic {
        text += "///\n/// `V` is the type of an attribute's value of your SDK.\n";
    }
    let generic = if is_generic { "<V>" } else { "" };
    text.extend([format!("#[derive(Clone, Debug, PartialEq)]\npub struct {name}{generic} {{\n")]);
    for attribute in &entity.attributes {
        let value = match attribute.value {
            HeldType::Text | HeldType::Number => "String",
            HeldType::Boolean => "bool",
            HeldType::Unknown => "V",
        };
        let value = if attribute.is_required { value.to_owned() } else { format!("Option<{value}>") };
        let number = if attribute.value == HeldType::Number { ", a number (N)" } else { "" };
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
