//! The functions for the application's reads.

use std::collections::BTreeMap;

use derive::{
    access::{Access, AccessFilter, AccessQuery, AccessReads, FilterExpression, NextField},
    query::SortKeys,
    schema::Schema,
};
use keys::{
    counter::COUNTER,
    entity::Definition,
    tables::{EntityBy, KeyAttribute, KeyType, TableForm},
    template::Template,
};

use crate::description::{TypedField, TypedKey, fields, keys, one_line, stored_form};

/// A function for a read.
#[derive(Debug)]
pub(crate) struct TypedRead<'a> {
    pub(crate) access: &'a Access,
    /// The key that it asks for, with parts for values as they are.
    pub(crate) key: TypedKey<'a>,
    /// The names of the table's key attributes.
    pub(crate) table: Vec<&'a str>,
    /// Those key attributes that are of type N.
    pub(crate) numbers: Vec<&'a str>,
    /// The entities of its items.
    pub(crate) entities: Vec<&'a str>,
    pub(crate) told: ToldBy<'a>,
    /// The fields of the key that the caller gives.
    pub(crate) inputs: Vec<TypedField<'a>>,
    /// The values that the caller gives for the filter.
    pub(crate) filter_inputs: Vec<&'a str>,
    /// The range of sort keys of several entities; empty texts if it is the whole partition.
    pub(crate) range: Option<(String, String)>,
    pub(crate) filter: Option<FilterExpression>,
}

/// How an item's entity is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToldBy<'a> {
    /// By this attribute.
    Attribute(&'a str),
    /// By the form of its key.
    Forms,
    /// All items of the table are of one entity.
    Table,
}

impl<'a> TypedRead<'a> {
    /// A description of the function, on one line.
    pub(crate) fn about(&self) -> String {
        let Access { id, name, about, .. } = self.access;
        one_line(&if id == name { format!("{about}.") } else { format!("{id}: {about}.") })
    }

    /// The query, if it is one.
    pub(crate) fn query(&self) -> Option<&'a AccessQuery> {
        match &self.access.reads {
            AccessReads::Query(query) => Some(query),
            _ => None,
        }
    }

    /// The field of the sort key that the caller may bound, or below which the items are.
    pub(crate) fn next(&self) -> Option<(&'a str, bool)> {
        match &self.query()?.next {
            NextField::Any => None,
            NextField::Between(field) => Some((field, false)),
            NextField::Below(field) => Some((field, true)),
        }
    }

    /// The field that the caller may bound.
    pub(crate) fn bounded(&self) -> Option<TypedField<'a>> {
        let (name, _) = self.next().filter(|(_, is_below)| !is_below)?;
        self.key.fields.iter().find(|field| field.name == name).copied()
    }
}

/// The names of what is printed, for the functions that use it.
#[derive(Debug, Default)]
pub(crate) struct Printed<'a> {
    /// The types of items, by entity.
    pub(crate) items: BTreeMap<&'a str, String>,
    /// The forms of keys, by entity and index.
    keys: BTreeMap<(&'a str, Option<&'a str>), PrintedKey<'a>>,
}

/// A printed form of a key.
#[derive(Debug)]
struct PrintedKey<'a> {
    /// The attributes that it names.
    names: [&'a str; 2],
    /// Its name in the printed file.
    form: String,
}

impl<'a> Printed<'a> {
    /// Adds the form of a key under this name.
    pub(crate) fn add(&mut self, key: &TypedKey<'a>, form: String) {
        self.keys.insert((key.entity, key.index), PrintedKey { names: key.names, form });
    }

    /// The name of the form of a key; `None` if the key has values as they are, and so no form was printed.
    pub(crate) fn key(&self, key: &TypedKey<'a>) -> Option<&str> {
        let printed = self.keys.get(&(key.entity, key.index)).filter(|printed| printed.names == key.names);
        printed.map(|printed| printed.form.as_str())
    }

    /// The forms by which the items of a read are told.
    pub(crate) fn forms(&self, read: &TypedRead<'a>) -> Vec<&str> {
        let entities = read.entities.iter().filter(|_| read.told == ToldBy::Forms);
        entities.filter_map(|entity| Some(self.keys.get(&(entity, None))?.form.as_str())).collect()
    }
}

/// The functions of a manifest, in its order.
pub(crate) fn reads(schema: &Schema) -> Vec<TypedRead<'_>> {
    schema.accesses.iter().filter_map(|access| read(schema, access)).collect()
}

fn read<'a>(schema: &'a Schema, access: &'a Access) -> Option<TypedRead<'a>> {
    let query = match &access.reads {
        AccessReads::Query(query) => Some(query),
        _ => None,
    };
    let entities: Vec<&'a str> = match &access.reads {
        AccessReads::Get(entity) | AccessReads::BatchGet(entity) | AccessReads::Counts(entity) => vec![entity],
        AccessReads::Query(query) => query.entities.iter().map(String::as_str).collect(),
    };
    let definition = schema.entity(entities.first()?)?;
    let form = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(definition));
    let (key, numbers) = key(schema, form, definition, query.and_then(|query| query.index.as_deref()))?;
    let given: Vec<&str> = match query {
        None => definition.key.field_names(),
        Some(query) => {
            let below = match &query.next {
                NextField::Below(field) => Some(field.as_str()),
                _ => None,
            };
            let fields = query.fields.iter().map(String::as_str).chain(below);
            query.partition_fields(schema).into_iter().chain(fields).collect()
        }
    };
    let mut inputs: Vec<TypedField<'a>> = Vec::new();
    for name in given {
        inputs.extend(
            key.fields.iter().find(|field| field.name == name).map(|field| TypedField { is_optional: false, ..*field }),
        );
    }
    // An index that does not project the type has the key of the item.
    let index = query.and_then(|query| schema.layout.index(query.index.as_deref()?));
    let is_projected = index.is_none_or(|index| schema.layout.stored_in(index, schema.layout.type_name()).is_some());
    let is_of_counters = matches!(access.reads, AccessReads::Counts(_));
    let told = match form.map(|form| &form.entity) {
        // The form of a counter's key contains that of its target.
        None if is_of_counters && schema.layout.entity_type.is_none() => ToldBy::Table,
        None => schema.layout.entity_type.as_deref().filter(|_| is_projected).map_or(ToldBy::Forms, ToldBy::Attribute),
        Some(EntityBy::Attribute(name)) if is_projected => ToldBy::Attribute(name),
        Some(EntityBy::Table(_)) => ToldBy::Table,
        Some(EntityBy::Attribute(_) | EntityBy::Forms(_)) => ToldBy::Forms,
    };
    let table = match form {
        None => vec![schema.layout.pk.as_str(), schema.layout.sk.as_str()],
        Some(form) => [Some(&form.pk), form.sk.as_ref()].into_iter().flatten().map(|key| key.name.as_str()).collect(),
    };
    let filter = query.and_then(|query| query.filter.as_ref());
    let range = query.filter(|query| query.entities.len() > 1).map(|query| query.range(schema));
    Some(TypedRead {
        access,
        key,
        table,
        numbers,
        entities: if is_of_counters { vec![COUNTER] } else { entities },
        told,
        inputs,
        filter_inputs: filter.map(AccessFilter::inputs).unwrap_or_default(),
        range: range.map(|range| match range {
            SortKeys::Between(least, greatest) => (least, greatest),
            _ => (String::new(), String::new()),
        }),
        filter: filter.map(AccessFilter::expression),
    })
}

/// The key of an entity in the table or an index, and its attributes of type N.
fn key<'a>(
    schema: &'a Schema,
    form: Option<&'a TableForm>,
    definition: &'a Definition,
    index: Option<&str>,
) -> Option<(TypedKey<'a>, Vec<&'a str>)> {
    let in_index = match index {
        None => None,
        Some(index) => Some(definition.indexes.iter().find(|it| it.index == index)?),
    };
    let template = in_index.map_or(&definition.key, |index| &index.key);
    let Some(form) = form else {
        let mut keys = keys(&schema.layout, None, definition).into_iter();
        let key = keys.find(|key| key.index == index)?;
        return Some((TypedKey { only_if: None, fields: fields(template, None), ..key }, Vec::new()));
    };
    let declared = match in_index {
        None => None,
        Some(index) => Some(form.indexes.iter().find(|it| form.inside(&it.name) == index.index)?),
    };
    let (pk, sk) = declared.map_or((Some(&form.pk), form.sk.as_ref()), |index| (index.pk.first(), index.sk.first()));
    let prefix = declared.is_none().then_some(form.name.as_str());
    let stored = |template: &Template, prefix: Option<&str>, attribute: Option<&'a KeyAttribute>| {
        let Some(attribute) = attribute else { return Some(("", None)) };
        let template = if attribute.is_plain {
            Template::parse(&format!("{{{}*}}", attribute.name)).ok()?
        } else {
            stored_form(template, prefix)?
        };
        Some((attribute.name.as_str(), Some(template)))
    };
    let [(pk_name, pk_template), (sk_name, sk_template)] =
        [stored(&template.pk, prefix, pk)?, stored(&template.sk, None, sk)?];
    let parts = [Some(&form.pk), form.sk.as_ref(), pk, sk].into_iter().flatten();
    let mut numbers: Vec<&str> = parts.filter(|part| part.of == KeyType::N).map(|part| part.name.as_str()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let key = TypedKey {
        entity: &definition.name,
        index: declared.map(|index| index.name.as_str()),
        names: [pk_name, sk_name],
        templates: [pk_template, sk_template],
        only_if: None,
        derived: false,
        fields: fields(template, None),
    };
    Some((key, numbers))
}
