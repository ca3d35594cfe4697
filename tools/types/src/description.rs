//! The keys and items to print, before a renderer writes them in a language.

use derive::{catalogue::Catalogue, schema::Schema};
use keys::{
    entity::{Definition, KeyTemplate},
    index_key::{IndexKey, OnlyIf},
    key::is_hidden,
    layout::Layout,
    tables::{EntityBy, IndexForm, KeyAttribute, KeyType, TableForm},
    template::{
        Piece, Template,
        form::{Form, Width},
    },
};

use crate::attributes::{StoredType, ValueTypes};

/// An entity with its keys and attributes.
#[derive(Debug)]
pub(crate) struct TypedEntity<'a> {
    pub(crate) definition: &'a Definition,
    /// The key of the table and the keys of indexes. A key of plain values has no form and is left out.
    pub(crate) keys: Vec<TypedKey<'a>>,
    pub(crate) attributes: Vec<TypedAttribute<'a>>,
}

/// A key of the table or of an index.
#[derive(Debug)]
pub(crate) struct TypedKey<'a> {
    pub(crate) entity: &'a str,
    /// The index; `None` for the table.
    pub(crate) index: Option<&'a str>,
    /// Names of the attributes that store the key. Empty for an attribute that stores a plain value or does not exist.
    pub(crate) names: [&'a str; 2],
    /// The form of each attribute with a name.
    pub(crate) templates: [Option<Template>; 2],
    pub(crate) only_if: Option<&'a OnlyIf>,
    /// Whether only Ripple writes this key.
    pub(crate) derived: bool,
    pub(crate) fields: Vec<TypedField<'a>>,
}

/// A field of a key, or the attribute that decides whether the item is in the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedField<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_number: bool,
    /// Whether parsing a key returns this field.
    pub(crate) is_read: bool,
    /// Whether the field may be absent. The item is then not in the index.
    pub(crate) is_optional: bool,
}

/// An attribute of an item.
#[derive(Debug)]
pub(crate) struct TypedAttribute<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: StoredType,
    /// The attribute's only text, if it contains the item's type.
    pub(crate) literal: Option<&'a str>,
    /// Whether Ripple writes the attribute.
    pub(crate) derived: bool,
    pub(crate) is_required: bool,
}

impl TypedKey<'_> {
    /// A description of the key, on one line.
    pub(crate) fn about(&self) -> String {
        let place = self.index.map_or_else(String::new, |index| format!(" in the index {index}"));
        let only = match self.only_if {
            Some(OnlyIf::Is { attribute, any_of }) => format!(", only if {attribute} is {}", any_of.join(" or ")),
            Some(OnlyIf::Has { attribute }) => format!(", only with {attribute}"),
            None => String::new(),
        };
        let derived = if self.derived { " Ripple alone writes it." } else { "" };
        let forms = self
            .templates
            .iter()
            .flatten()
            .map(|template| format!("`{template}`").replace("!}", "}"))
            .collect::<Vec<_>>();
        one_line(&format!("Key of {}{place}: {}{only}.{derived}", self.entity, forms.join(" / ")))
    }

    /// The pieces of both key parts, as form names with their operands.
    pub(crate) fn pieces(&self) -> [Vec<(&'static str, &str, Vec<u64>)>; 2] {
        let [partition, sort] = &self.templates;
        [pieces(partition.as_ref()), pieces(sort.as_ref())]
    }
}

impl TypedEntity<'_> {
    /// A description of the entity, on one line.
    pub(crate) fn about(&self) -> String {
        let name = &self.definition.name;
        one_line(&if self.definition.derived { format!("{name}: Ripple alone writes it.") } else { format!("{name}.") })
    }
}

/// The pieces of a template, as form names with their operands.
fn pieces(template: Option<&Template>) -> Vec<(&'static str, &str, Vec<u64>)> {
    template.into_iter().flat_map(Template::pieces).map(operands).collect()
}

/// The name of a piece's form, its text or field, and its numbers.
fn operands(piece: &Piece) -> (&'static str, &str, Vec<u64>) {
    let (name, form) = match piece {
        Piece::Literal(literal) => return ("literal", literal, Vec::new()),
        Piece::Field { name, form } => (name.as_str(), form),
    };
    let width = |width: Width| vec![width.digits as u64, u64::from(width.places)];
    match *form {
        // A key attribute of type N or B stores a plain value, so it has no name and no form here.
        Form::Text | Form::Number | Form::Bytes => ("text", name, Vec::new()),
        Form::Plain => ("plain", name, Vec::new()),
        Form::Cased(casing) => {
            (if casing.is_upper { "upper" } else { "lower" }, name, vec![u64::from(casing.is_escaped)])
        }
        Form::Path => ("path", name, Vec::new()),
        Form::LastSegment => ("last", name, Vec::new()),
        Form::Raw => ("raw", name, Vec::new()),
        Form::Padded(of) => ("padded", name, width(of)),
        Form::Inverted(of) => ("inverted", name, width(of)),
        Form::Spread { suffixes } => ("spread", name, vec![suffixes.into()]),
    }
}

/// Makes a text safe for a comment in each language: nothing in it can end the comment.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| if is_hidden(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().replace("*/", "* /")
}

/// All entities of a table, in the order of their names, without counters: only Ripple writes counters.
pub(crate) fn entities<'a>(schema: &'a Schema, catalogue: &Catalogue) -> Vec<TypedEntity<'a>> {
    let types = ValueTypes::of(schema, catalogue);
    let layout = &schema.layout;
    let entity = |definition: &'a Definition| {
        let form = layout.forms.as_ref().and_then(|forms| forms.of_entity(definition));
        TypedEntity {
            definition,
            keys: keys(layout, form, definition),
            attributes: attributes(layout, form, definition, &types),
        }
    };
    schema.entities().filter(|definition| !definition.is_own()).map(entity).collect()
}

/// The keys of an entity's items; `form` is its table's if there are several. A key of plain values has no form, so no
/// code builds it.
pub(crate) fn keys<'a>(
    layout: &'a Layout,
    form: Option<&'a TableForm>,
    definition: &'a Definition,
) -> Vec<TypedKey<'a>> {
    let whole = |key: &KeyTemplate, [pk, sk]: [&'a str; 2]| [Some((pk, key.pk.clone())), Some((sk, key.sk.clone()))];
    let KeyTemplate { pk, sk, .. } = &definition.key;
    let parts = match form {
        None => whole(&definition.key, [&layout.pk, &layout.sk]),
        Some(form) => [part(pk, Some(&form.name), Some(&form.pk)), part(sk, None, form.sk.as_ref())],
    };
    let mut keys = vec![typed_key(definition, None, &definition.key, parts)];
    for index in &definition.indexes {
        let named = |it: &&IndexForm| form.is_some_and(|form| form.inside(&it.name) == index.index);
        let declared = form.into_iter().flat_map(|form| &form.indexes).find(named);
        let parts = match (form, declared, layout.index(&index.index)) {
            (None, _, Some(index_of)) => whole(&index.key, [&index_of.pk, &index_of.sk]),
            (Some(_), Some(declared), _) => {
                [part(&index.key.pk, None, declared.pk.first()), part(&index.key.sk, None, declared.sk.first())]
            }
            _ => continue,
        };
        let name = declared.map_or(&index.index, |declared| &declared.name);
        keys.push(typed_key(definition, Some((name, index)), &index.key, parts));
    }
    keys.retain(|key| key.templates.iter().any(Option::is_some));
    keys
}

/// The attribute of a part of a key in one of several tables, and its stored form; `None` for a plain value. `prefix` is
/// the table's name, which begins the partition key in Ripple's inner form (see `keys::tables`).
fn part<'a>(
    template: &Template,
    prefix: Option<&str>,
    attribute: Option<&'a KeyAttribute>,
) -> Option<(&'a str, Template)> {
    let attribute = attribute.filter(|attribute| !attribute.is_plain)?;
    Some((&attribute.name, stored_form(template, prefix)?))
}

/// The stored form of a part of a key, which begins with the table's name in Ripple's inner form.
pub(crate) fn stored_form(template: &Template, prefix: Option<&str>) -> Option<Template> {
    let text = template.to_string();
    let text = match prefix {
        Some(table) => text.strip_prefix(table)?.strip_prefix('#')?,
        None => &text,
    };
    Template::parse(text).ok()
}

fn typed_key<'a>(
    definition: &'a Definition,
    index: Option<(&'a str, &'a IndexKey)>,
    key: &'a KeyTemplate,
    parts: [Option<(&'a str, Template)>; 2],
) -> TypedKey<'a> {
    let only_if = index.and_then(|(_, index)| index.only_if.as_ref());
    let names = parts.each_ref().map(|part| part.as_ref().map_or("", |(name, _)| *name));
    let templates = parts.map(|part| part.map(|(_, template)| template));
    let decides = only_if.map(OnlyIf::attribute);
    let is_held = |name: &str| templates.iter().flatten().any(|template| template.holds(name));
    let mut fields = fields(key, only_if);
    fields.retain(|field| decides == Some(field.name) || is_held(field.name));
    TypedKey {
        entity: &definition.name,
        index: index.map(|(name, _)| name),
        names,
        templates,
        only_if,
        derived: definition.derived || index.is_some_and(|(_, index)| index.derived),
        fields,
    }
}

pub(crate) fn fields<'a>(key: &'a KeyTemplate, only_if: Option<&'a OnlyIf>) -> Vec<TypedField<'a>> {
    let decides = only_if.map(OnlyIf::attribute);
    let mut names: Vec<&str> = key.field_names();
    names.extend(decides.filter(|decides| !key.holds(decides)));
    let is_read = |name: &str| {
        key.pk.pieces().iter().chain(key.sk.pieces()).any(|piece| match piece {
            Piece::Field { name: other, form } => {
                other == name && !matches!(form, Form::LastSegment | Form::Spread { .. })
            }
            Piece::Literal(_) => false,
        })
    };
    let field = |name: &'a str| TypedField {
        name,
        is_number: key.holds_number(name),
        is_read: is_read(name),
        is_optional: decides == Some(name),
    };
    names.into_iter().map(field).collect()
}

fn attributes<'a>(
    layout: &'a Layout,
    form: Option<&'a TableForm>,
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
    let text = |name: &'a str, is_required| attribute(name, StoredType::Text, is_required);
    let of_key = |key: &'a KeyAttribute, is_required| attribute(&key.name, stored(key.of), is_required);
    let (mut all, of_indexes): (Vec<_>, Vec<_>) = match form {
        None => {
            let indexes = definition.indexes.iter().filter_map(|index| layout.index(&index.index));
            let names = indexes.flat_map(|index| [&index.pk, &index.sk]);
            (vec![text(&layout.pk, true), text(&layout.sk, true)], names.map(|name| text(name, false)).collect())
        }
        Some(form) => {
            let is_in = |index: &&IndexForm| definition.indexes.iter().any(|it| it.index == form.inside(&index.name));
            let keys = form.indexes.iter().filter(is_in).flat_map(|index| index.pk.iter().chain(&index.sk));
            let of_table = [&form.pk].into_iter().chain(&form.sk);
            (of_table.map(|key| of_key(key, true)).collect(), keys.map(|key| of_key(key, false)).collect())
        }
    };
    let names_entity = match form.map(|form| &form.entity) {
        None => layout.entity_type.as_deref(),
        Some(EntityBy::Attribute(name)) => Some(name.as_str()),
        Some(_) => None,
    };
    all.extend(names_entity.map(|name| TypedAttribute { literal: Some(&definition.name), ..text(name, true) }));
    let named = definition.attributes.iter().chain(&definition.derived_attributes);
    let others = named.map(|name| {
        let expires = form.is_some_and(|form| form.time_to_live.as_ref() == Some(name));
        let value = if expires { StoredType::Number } else { types.get(&definition.name, name) };
        attribute(name, value, false)
    });
    for attribute in of_indexes.into_iter().chain(others) {
        if !all.iter().any(|known| known.name == attribute.name) {
            all.push(attribute);
        }
    }
    all
}

fn stored(of: KeyType) -> StoredType {
    match of {
        KeyType::S => StoredType::Text,
        KeyType::N => StoredType::Number,
        KeyType::B => StoredType::Unknown,
    }
}
