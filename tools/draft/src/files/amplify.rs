//! A GraphQL schema of Amplify, of generation 1 or 2, as version 2 of the GraphQL transformer deploys it.
//!
//! Each type with `@model` has a table. Its partition key is the field with `@primaryKey`, or `id`. A key of several
//! `sortKeyFields` is one attribute, named `a#b` and with the values `{a}#{b}`. An item has the name of its type in
//! `__typename`. A relation without `fields` and `references` adds attributes such as `postCommentsId`, and a
//! `@hasMany` without `fields` an index such as `gsi-Post.comments`.

use std::collections::BTreeMap;

use keys::tables::{KeyAttribute, KeyType};
use serde_json::Value;

use super::{
    FileError,
    graphql::{Directive, Document, Field, Type},
    key_type, list, text, texts,
};
use crate::{
    names::capital,
    shape::{Declared, DeclaredKind, IndexShape, KeyForm, SampledTable, TableShape},
};

/// A field with the type of its attribute, as DynamoDB names it.
type Attribute = (String, &'static str);

/// An index: its name, the fields of its partition key and of its sort key, and what it projects beside keys.
type Index = (String, [Vec<Attribute>; 2], Option<Vec<String>>);

/// A type with `@model`, as a table.
#[derive(Default)]
struct Model {
    attributes: Vec<Attribute>,
    pk: Vec<Attribute>,
    sk: Vec<Attribute>,
    indexes: Vec<Index>,
    notes: Vec<String>,
}

/// The tables of a schema.
pub(super) fn tables(document: &Document) -> Result<Vec<SampledTable>, FileError> {
    let mut models = BTreeMap::new();
    for of in document.types.iter().filter(|of| directive(&of.directives, "model").is_some()) {
        models.insert(of.name.as_str(), model(of, document)?);
    }
    for of in document.types.iter().filter(|of| models.contains_key(of.name.as_str())).collect::<Vec<_>>() {
        for field in &of.fields {
            relate(of, field, document, &mut models)?;
        }
    }
    for (name, model) in joins(document, &models)? {
        models.entry(name).or_insert(model);
    }
    let mut found: Vec<SampledTable> = models.into_iter().map(|(name, model)| model.table(name)).collect();
    if let Some(first) = found.first_mut() {
        let name = &first.shape.name;
        let deployed = format!(
            "Amplify deploys the table {name} as {name}-<API id>-<environment>: --tables gives each table its name there.\n\
             With conflict resolution, items also have _version, _lastChangedAt and _deleted, and a deleted item stays until \
             _ttl: add `time-to-live = \"_ttl\"` to each table, and `where = \"_deleted <> true\"` to each derivation."
        );
        first.notes.insert(0, deployed);
    }
    Ok(found)
}

fn directive<'d>(all: &'d [Directive], name: &str) -> Option<&'d Value> {
    all.iter().find(|it| it.name == name).map(|it| &it.arguments)
}

fn wrong(of: &Type, field: &Field, what: &str) -> FileError {
    FileError::Table(format!("{}.{}: {what}", of.name, field.name))
}

/// The type of a field's attribute; `None` for another model's items, which are not in the table.
fn type_of(field: &Field, document: &Document) -> Option<&'static str> {
    let object = document.types.iter().find(|it| it.name == field.of);
    match (field.of.as_str(), object) {
        (_, Some(object)) if directive(&object.directives, "model").is_some() => None,
        _ if field.is_list => Some("L"),
        ("Int" | "Float" | "BigInt" | "Double" | "AWSTimestamp", _) => Some("N"),
        ("Boolean", _) => Some("BOOL"),
        ("AWSJSON", _) | (_, Some(_)) => Some("M"),
        _ => Some("S"),
    }
}

/// The fields of a type with these names, for a key.
fn key_fields(names: &[String], of: &Type, field: &Field, document: &Document) -> Result<Vec<Attribute>, FileError> {
    let found = |name: &String| {
        let named = of.fields.iter().find(|it| it.name == *name);
        let named = named.and_then(|named| Some((name.clone(), type_of(named, document)?)));
        named.ok_or_else(|| wrong(of, field, &format!("{} has no field {name} for a key", of.name)))
    };
    names.iter().map(found).collect()
}

/// A model with its own fields, keys and indexes.
fn model(of: &Type, document: &Document) -> Result<Model, FileError> {
    if directive(&of.directives, "key").is_some() {
        let what =
            "@key is of version 1 of the GraphQL transformer: read its tables as they are deployed, with --table";
        return Err(FileError::Table(format!("type {}: {what}", of.name)));
    }
    let mut model = Model { pk: vec![("id".to_owned(), "S")], ..Model::default() };
    for field in &of.fields {
        let Some(kind) = type_of(field, document) else { continue };
        let own = (field.name.clone(), kind);
        model.attributes.push(own.clone());
        for it in &field.directives {
            let sort = || texts(&it.arguments, &format!("{}.{} @{}", of.name, field.name, it.name), "sortKeyFields");
            if it.name == "primaryKey" {
                model.pk = vec![own.clone()];
                model.sk = key_fields(&sort()?, of, field, document)?;
            } else if it.name == "index" {
                let sort = sort()?;
                let projection = it.arguments.get("projection").unwrap_or(&Value::Null);
                let projected = list(projection, "nonKeyAttributes").filter_map(Value::as_str).map(str::to_owned);
                let is_all = text(projection, "type").is_none_or(|of| of == "ALL");
                let name = text(&it.arguments, "name").map_or_else(
                    || {
                        let name = default_name(&of.name, &field.name, &sort);
                        model.notes.push(format!("The name of the index {name} is a guess, because @index has none."));
                        name
                    },
                    str::to_owned,
                );
                let keys = [vec![own.clone()], key_fields(&sort, of, field, document)?];
                model.indexes.push((name, keys, (!is_all).then(|| projected.collect())));
            }
        }
    }
    let settings = directive(&of.directives, "model").and_then(|it| it.get("timestamps"));
    for name in ["createdAt", "updatedAt"].into_iter().filter(|_| settings != Some(&Value::Null)) {
        match settings.and_then(|it| it.get(name)) {
            Some(Value::Null) => {}
            other => model.add(other.and_then(Value::as_str).unwrap_or(name), "S"),
        }
    }
    let rules = directive(&of.directives, "auth").into_iter().flat_map(|it| list(it, "rules"));
    for rule in rules.filter(|rule| text(rule, "allow") == Some("owner")) {
        model.add(text(rule, "ownerField").unwrap_or("owner"), "S");
    }
    Ok(model)
}

/// The name that Amplify gives to an index without one, such as `postsByAuthorIdAndCreatedAt`, with a simple plural.
fn default_name(model: &str, field: &str, sort: &[String]) -> String {
    let ends = |end: &[&str]| end.iter().any(|end| model.ends_with(end));
    let plural = match model.strip_suffix('y') {
        Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if ends(&["s", "x", "z", "ch", "sh"]) => format!("{model}es"),
        _ => format!("{model}s"),
    };
    let fields: Vec<String> = [field].into_iter().chain(sort.iter().map(String::as_str)).map(capital).collect();
    format!("{}By{}", small(&plural), fields.join("And"))
}

fn small(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

// ---- Relations ----

/// Adds the attributes and the index of a relation to the models on both sides.
fn relate(of: &Type, field: &Field, document: &Document, models: &mut BTreeMap<&str, Model>) -> Result<(), FileError> {
    let Some(it) = field.directives.iter().find(|it| ["hasMany", "hasOne", "belongsTo"].contains(&it.name.as_str()))
    else {
        return Ok(());
    };
    let place = format!("{}.{} @{}", of.name, field.name, it.name);
    let other = document.types.iter().find(|other| other.name == field.of && models.contains_key(other.name.as_str()));
    let other = other.ok_or_else(|| wrong(of, field, &format!("{} is no type with @model in this file", field.of)))?;
    let (given, references) = (texts(&it.arguments, &place, "fields")?, texts(&it.arguments, &place, "references")?);
    let has = |relation: &str| {
        let mut fields = other.fields.iter().filter(|it| it.of == of.name);
        fields.any(|it| directive(&it.directives, relation).is_some())
    };
    let (carrier, named, attributes) = match it.name.as_str() {
        "belongsTo" | "hasOne" if !given.is_empty() => (of, other, given),
        "belongsTo" if !references.is_empty() || has("hasMany") => return Ok(()),
        // The parent's fields are searched in an index that the child declares.
        "hasMany" if !given.is_empty() || it.arguments.get("indexName").is_some() => return Ok(()),
        _ if !references.is_empty() => {
            let keys = key_fields(&references, other, field, document)?;
            let overridden = other.fields.iter().filter(|it| it.of == of.name).find_map(|it| {
                let arguments = directive(&it.directives, "belongsTo")?;
                let is_same = texts(arguments, &place, "references").is_ok_and(|all| all == references);
                text(arguments, "overrideIndexName").filter(|_| is_same)
            });
            let name = overridden.map_or_else(|| format!("gsi-{}.{}", of.name, field.name), str::to_owned);
            index(models, &other.name, name, &keys);
            (other, of, references)
        }
        relation => {
            let (carrier, named) = if relation == "hasMany" { (other, of) } else { (of, other) };
            let key = models.get(named.name.as_str()).map(|model| [model.pk.clone(), model.sk.clone()].concat());
            let camel = |part: &str| format!("{}{}{}", small(&of.name), capital(&field.name), capital(part));
            let keys: Vec<Attribute> = key.into_iter().flatten().map(|(part, kind)| (camel(&part), kind)).collect();
            if let Some(model) = models.get_mut(carrier.name.as_str()) {
                for (name, kind) in &keys {
                    model.add(name, kind);
                }
            }
            if relation == "hasMany" {
                index(models, &other.name, format!("gsi-{}.{}", of.name, field.name), &keys);
            }
            (carrier, named, keys.into_iter().map(|(name, _)| name).collect())
        }
    };
    if let Some(model) = models.get_mut(carrier.name.as_str()) {
        let by = attributes.join(", ");
        model.notes.push(format!("An item of {} names one of {} by {by}.", carrier.name, named.name));
    }
    Ok(())
}

/// Adds an index with these fields as its key.
fn index(models: &mut BTreeMap<&str, Model>, of: &str, name: String, keys: &[Attribute]) {
    if let (Some(model), Some((pk, sk))) = (models.get_mut(of), keys.split_first()) {
        model.indexes.push((name, [vec![pk.clone()], sk.to_vec()], None));
    }
}

/// The tables of `@manyToMany`: each has an item for each pair of related items.
fn joins<'d>(document: &'d Document, models: &BTreeMap<&str, Model>) -> Result<Vec<(&'d str, Model)>, FileError> {
    let mut joins = BTreeMap::<&str, Model>::new();
    for of in document.types.iter().filter(|of| models.contains_key(of.name.as_str())) {
        for field in &of.fields {
            let Some(it) = directive(&field.directives, "manyToMany") else { continue };
            let name = text(it, "relationName").filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| wrong(of, field, "@manyToMany has no relationName"))?;
            let join = joins.entry(name).or_default();
            join.pk = vec![("id".to_owned(), "S")];
            let Some(named) = models.get(of.name.as_str()) else { continue };
            let attribute = |end: String, kind| (format!("{}{end}", small(&of.name)), kind);
            let pk: Vec<Attribute> = named.pk.iter().map(|(part, kind)| attribute(capital(part), *kind)).collect();
            let sk: Vec<Attribute> = named.sk.iter().map(|(part, kind)| attribute(part.clone(), *kind)).collect();
            join.attributes.extend(pk.iter().chain(&sk).cloned());
            join.indexes.push((format!("by{}", of.name), [pk, sk], None));
        }
    }
    for join in joins.values_mut() {
        join.add("createdAt", "S");
        join.add("updatedAt", "S");
    }
    Ok(joins.into_iter().collect())
}

impl Model {
    /// Adds an attribute that Amplify stores beside the fields.
    fn add(&mut self, name: &str, kind: &'static str) {
        if self.attributes.iter().all(|(other, _)| other != name) {
            self.attributes.push((name.to_owned(), kind));
        }
    }

    fn table(self, name: &str) -> SampledTable {
        let key = |(name, kind): &Attribute| KeyAttribute::plain(name, key_type(Some(kind)));
        // Several fields of a sort key are one attribute.
        let composed = |fields: &[Attribute]| -> (Option<KeyAttribute>, KeyForm) {
            let joined = |of: fn(&str) -> String| fields.iter().map(|(name, _)| of(name)).collect::<Vec<_>>().join("#");
            match fields {
                [] => (None, None),
                [one] => (Some(key(one)), None),
                _ => {
                    let key = KeyAttribute { name: joined(str::to_owned), of: KeyType::S, is_plain: true };
                    (Some(key), Some(joined(|name| format!("{{{name}}}"))))
                }
            }
        };
        let (sk, sk_form) = composed(&self.sk);
        let mut kind =
            DeclaredKind { name: name.to_owned(), sk: sk_form, attributes: self.attributes, ..Default::default() };
        let pk = self.pk.first().map_or_else(|| key(&("id".to_owned(), "S")), key);
        let mut shape = TableShape::of(name, pk, sk);
        for (name, [pk, sk], projection) in self.indexes {
            let (sk, form) = composed(&sk);
            kind.indexes.push((name.clone(), [vec![None; pk.len()], sk.iter().map(|_| form.clone()).collect()]));
            let (pk, sk) = (pk.iter().map(key).collect(), sk.into_iter().collect());
            shape.indexes.push(IndexShape { name, pk, sk, projection });
        }
        let declared = Declared { type_attribute: Some("__typename".to_owned()), kinds: vec![kind] };
        SampledTable { declared: Some(declared), notes: self.notes, ..SampledTable::without_items(shape) }
    }
}
