//! Keys and items of one of several tables. A key of plain values has no form, so no code builds it.

use keys::{
    entity::Definition,
    index_key::OnlyIf,
    tables::{EntityBy, IndexForm, KeyAttribute, KeyType, TableForm},
    template::Template,
};

use super::{TypedAttribute, TypedField, TypedKey, fields};
use crate::attributes::{HeldType, ValueTypes};

pub(super) fn keys<'a>(form: &'a TableForm, definition: &'a Definition) -> Vec<TypedKey<'a>> {
    let entity = definition.name.as_str();
    let of_table = KeyPart { template: &definition.key.pk, prefix: Some(&form.name), attribute: Some(&form.pk) };
    let parts = [of_table, KeyPart { template: &definition.key.sk, prefix: None, attribute: form.sk.as_ref() }];
    let mut keys = vec![key(entity, None, parts, fields(&definition.key, None), definition.derived, None)];
    for index in &definition.indexes {
        let named = |it: &&IndexForm| form.inside(&it.name) == index.index;
        let Some(declared) = form.indexes.iter().find(named) else { continue };
        let part = |template, attributes: &'a [KeyAttribute]| KeyPart {
            template,
            prefix: None,
            attribute: attributes.first(),
        };
        let parts = [part(&index.key.pk, &declared.pk), part(&index.key.sk, &declared.sk)];
        let fields = fields(&index.key, index.only_if.as_ref());
        let derived = definition.derived || index.derived;
        keys.push(key(entity, Some(&declared.name), parts, fields, derived, index.only_if.as_ref()));
    }
    keys.retain(|key| key.templates.iter().any(Option::is_some));
    keys
}

/// A part of a key: its template in Ripple's inner form (see `keys::tables`), and the attribute that stores it.
struct KeyPart<'a> {
    template: &'a Template,
    /// The table's name, which begins the partition key in the inner form.
    prefix: Option<&'a str>,
    attribute: Option<&'a KeyAttribute>,
}

impl<'a> KeyPart<'a> {
    /// The attribute's name and its stored form; `None` for a plain value.
    fn stored(&self) -> Option<(&'a str, Template)> {
        let attribute = self.attribute.filter(|attribute| !attribute.is_plain)?;
        Some((&attribute.name, stored(self.template, self.prefix)?))
    }
}

/// The stored form of a part of a key, which begins with the table's name in Ripple's inner form.
pub(super) fn stored(template: &Template, prefix: Option<&str>) -> Option<Template> {
    let text = template.to_string();
    let text = match prefix {
        Some(table) => text.strip_prefix(table)?.strip_prefix('#')?,
        None => &text,
    };
    Template::parse(text).ok()
}

fn key<'a>(
    entity: &'a str,
    index: Option<&'a str>,
    parts: [KeyPart<'a>; 2],
    mut fields: Vec<TypedField<'a>>,
    derived: bool,
    only_if: Option<&'a OnlyIf>,
) -> TypedKey<'a> {
    let stored = parts.map(|part| part.stored());
    let names = stored.each_ref().map(|stored| stored.as_ref().map_or("", |(name, _)| *name));
    let templates = stored.map(|stored| stored.map(|(_, template)| template));
    let decides = only_if.map(OnlyIf::attribute);
    let is_held = |name: &str| templates.iter().flatten().any(|template| template.holds(name));
    fields.retain(|field| decides == Some(field.name) || is_held(field.name));
    TypedKey { entity, index, names, templates, only_if, derived, fields }
}

pub(super) fn attributes<'a>(
    form: &'a TableForm,
    definition: &'a Definition,
    types: &ValueTypes,
) -> Vec<TypedAttribute<'a>> {
    let is_derived = |name: &str| definition.derived || definition.derived_attributes.iter().any(|it| it == name);
    let attribute = |name: &'a str, value, is_required| TypedAttribute {
        name,
        value,
        literal: None,
        derived: is_derived(name),
        is_required,
    };
    let of_key = |key: &'a KeyAttribute, is_required| attribute(&key.name, held(key.of), is_required);
    let mut all: Vec<TypedAttribute<'a>> =
        [&form.pk].into_iter().chain(&form.sk).map(|key| of_key(key, true)).collect();
    if let EntityBy::Attribute(name) = &form.entity {
        all.push(TypedAttribute { literal: Some(&definition.name), ..attribute(name, HeldType::Text, true) });
    }
    let is_in = |index: &&IndexForm| definition.indexes.iter().any(|it| it.index == form.inside(&index.name));
    let indexes = form.indexes.iter().filter(is_in).flat_map(|index| index.pk.iter().chain(&index.sk));
    let of_indexes = indexes.map(|key| of_key(key, false));
    let named = definition.attributes.iter().chain(&definition.derived_attributes);
    let others = named.map(|name| {
        let expires = form.time_to_live.as_ref() == Some(name);
        let value = if expires { HeldType::Number } else { types.get(&definition.name, name) };
        attribute(name, value, false)
    });
    for attribute in of_indexes.chain(others) {
        if !all.iter().any(|known| known.name == attribute.name) {
            all.push(attribute);
        }
    }
    all
}

fn held(of: KeyType) -> HeldType {
    match of {
        KeyType::S => HeldType::Text,
        KeyType::N => HeldType::Number,
        KeyType::B => HeldType::Unknown,
    }
}
