//! The kinds of items of a table: by the attribute that names them, or by the forms of their keys.

use std::collections::{BTreeMap, BTreeSet};

use keys::{
    entity::KeyTemplate,
    item::{Item, is_stores_own, text},
    key::Key,
    shown::is_revision,
    tables::{KeyAttribute, KeyType},
};
use serde_dynamo::AttributeValue;

use crate::{
    names::{Case, entity, equal_attribute, free, suffix},
    shape::{DeclaredKind, IndexShape, KeyForm, KeyReading, SampledTable, TableShape, type_of},
    words::{self, Words, is_word, slots, usual_parts},
};

/// Words of a sort key that say nothing about the kind of its item: the partition key does.
const GENERIC: [&str; 12] =
    ["profile", "metadata", "meta", "info", "data", "detail", "details", "root", "main", "self", "item", "record"];

/// Parts of names of attributes that change, in small letters. A key never changes, so one that equals such an attribute
/// only does because the items were not changed yet.
const CHANGING: [&str; 2] = ["updat", "modif"];

/// Items of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found<'a> {
    pub(crate) name: String,
    /// Form of the partition key; `None` for the attribute as it is.
    pub(crate) pk: Option<String>,
    /// Form of the sort key; `None` for the attribute as it is, or if there is none.
    pub(crate) sk: Option<String>,
    /// Fields of the key, each with its type and its value in each item.
    pub(crate) fields: BTreeMap<String, Field>,
    pub(crate) items: Vec<&'a Item>,
    /// Keys of the items, as texts.
    pub(crate) keys: Vec<[String; 2]>,
    pub(crate) attributes: Vec<AttributeFacts>,
    /// Names of the indexes that contain the items.
    pub(crate) indexes: Vec<String>,
    /// Number of items of this kind with a key of another form.
    pub(crate) n_misfits: usize,
    /// What a file declares of it, in place of items.
    pub(crate) declared: Option<&'a DeclaredKind>,
}

/// A field of a key.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) of: KeyType,
    pub(crate) values: Vec<String>,
}

/// An attribute of the items of one kind.
#[derive(Clone, Debug)]
pub(crate) struct AttributeFacts {
    pub(crate) name: String,
    pub(crate) types: BTreeSet<&'static str>,
    pub(crate) n_items: usize,
}

/// The kinds of items of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableKinds<'a> {
    /// The attribute that names the kind of an item.
    pub(crate) type_attribute: Option<String>,
    pub(crate) found: Vec<Found<'a>>,
    /// True if keys contain values as they are, such as `r_100%`.
    pub(crate) is_unescaped: bool,
    /// What no entity can declare, in sentences.
    pub(crate) notes: Vec<String>,
    pub(crate) case: Option<Case>,
}

impl Found<'_> {
    /// True if the key attributes contain plain values, without constant text.
    pub(crate) fn is_raw(&self) -> bool {
        let is_field = |form: &Option<String>| {
            form.as_ref().is_none_or(|form| form.starts_with('{') && form.matches(['{', '#']).count() == 1)
        };
        is_field(&self.pk) && is_field(&self.sk)
    }

    /// The forms of its key in an index, `None` if it is not in the index, or the reason why there are none.
    pub(crate) fn in_index(
        &self,
        (shape, type_attribute): (&TableShape, Option<&str>),
        index: &IndexShape,
    ) -> Result<Option<IndexForms>, String> {
        let is_excluded = |name: &str| shape.is_own_key(name) || type_attribute == Some(name);
        match (self.declared, index.texts()) {
            (Some(kind), _) => declared_index_forms((self, kind), shape, index),
            (None, Some(attributes)) => index_forms(self, attributes, is_excluded),
            (None, None) => Ok(None),
        }
    }
}

/// Finds the kinds of items of a table.
pub(crate) fn find(table: &SampledTable, reading: KeyReading) -> TableKinds<'_> {
    let shape = &table.shape;
    let items: Vec<&Item> = table.sample.items.iter().collect();
    let keys: Vec<[String; 2]> = items.iter().map(|item| key_texts(shape, item)).collect();
    let words = Words::of(keys.iter().map(|[pk, sk]| [pk.as_str(), sk.as_str()]));
    let skeletons: Vec<String> = keys.iter().map(|[pk, sk]| words.skeleton([pk, sk])).collect();
    let names = items.iter().take(100).flat_map(|item| item.keys()).filter(|name| !shape.is_key(name));
    let case = Case::of(names);
    let type_attribute = words::type_attribute(shape, &items, &skeletons);
    let mut kinds = TableKinds { type_attribute, case: Some(case), ..TableKinds::default() };
    kinds.is_unescaped = keys.iter().flatten().any(|text| has_bare_percent(text));
    let mut groups = BTreeMap::<&str, Vec<usize>>::new();
    let mut n_untyped = 0;
    for (at, item) in items.iter().enumerate() {
        let kind = match &kinds.type_attribute {
            Some(name) => text(item, name),
            None => skeletons.get(at).map(String::as_str),
        };
        match kind {
            Some(kind) => groups.entry(kind).or_default().push(at),
            None => n_untyped += 1,
        }
    }
    if n_untyped > 0 {
        let name = kinds.type_attribute.clone().unwrap_or_default();
        kinds.notes.push(format!("{n_untyped} sampled items have no {name} of type S. Ripple ignores them."));
    }
    if reading == KeyReading::AsTheyAre {
        if groups.len() > 1 {
            kinds.notes.push(format!(
                "The keys have {} forms, and no attribute names the kind of an item, so all items are of one entity here.",
                groups.len()
            ));
        }
        groups = BTreeMap::from([("", (0..items.len()).collect())]);
    }
    for (kind, members) in groups {
        let row = |at: &usize| Some((*items.get(*at)?, keys.get(*at)?.clone()));
        let members: Vec<(&Item, [String; 2])> = members.iter().filter_map(row).collect();
        let named = kinds.type_attribute.is_some().then_some(kind);
        match of_group((shape, reading), named, members, &kinds) {
            Ok(found) => kinds.found.push(found),
            Err(note) => kinds.notes.push(note),
        }
    }
    kinds
}

/// The texts of an item's keys. A key of type B has none, and none is needed.
fn key_texts(shape: &TableShape, item: &Item) -> [String; 2] {
    let of = |key: &KeyAttribute| match item.get(&key.name) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text.clone(),
        _ => String::new(),
    };
    [of(&shape.pk), shape.sk.as_ref().map(of).unwrap_or_default()]
}

/// True if a text contains a `%` that is not the start of `%23` or `%25`.
fn has_bare_percent(text: &str) -> bool {
    text.split('%').skip(1).any(|rest| !rest.starts_with("23") && !rest.starts_with("25"))
}

/// The entity of items of one kind.
fn of_group<'a>(
    (shape, reading): (&TableShape, KeyReading),
    named: Option<&str>,
    mut members: Vec<(&'a Item, [String; 2])>,
    kinds: &TableKinds<'a>,
) -> Result<Found<'a>, String> {
    let n_all = members.len();
    if shape.pk.of == KeyType::S && reading != KeyReading::AsTheyAre {
        let usual = usual_parts(members.iter().map(|(_, key)| key));
        members.retain(|(_, key)| usual_parts(std::iter::once(key)) == usual);
    }
    let (items, keys): (Vec<&Item>, Vec<[String; 2]>) = members.into_iter().unzip();
    let mut forms = Forms::new((shape, reading), &items, kinds);
    let pks: Vec<&str> = keys.iter().map(|[pk, _]| pk.as_str()).collect();
    let sks: Vec<&str> = keys.iter().map(|[_, sk]| sk.as_str()).collect();
    let what = named.map_or_else(|| "these keys".to_owned(), |name| format!("the items of type {name}"));
    let none = || format!("{n_all} sampled items: {what} have no common form, so no entity declares them.");
    let pk = forms.of_key(&shape.pk, &pks).ok_or_else(none)?;
    let sk = match &shape.sk {
        Some(key) => Some(forms.of_key(key, &sks).ok_or_else(none)?),
        None => None,
    };
    let is_taken = |name: &str| kinds.found.iter().any(|it| it.name == name) || name == "Counter";
    let name = match named {
        Some(name) => name.to_owned(),
        None => free(&entity(&entity_words(shape, &pk.words, sk.as_ref())), is_taken),
    };
    let fields = forms.fields.iter().map(|(name, (of, values))| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        (name.clone(), Field { of: *of, values })
    });
    let fields = fields.collect();
    let (pk, sk) = (pk.form, sk.and_then(|sk| sk.form));
    let n_misfits = n_all - items.len() + n_unreadable(pk.as_deref(), sk.as_deref(), &keys, kinds.is_unescaped);
    let attributes = attributes(shape, kinds.type_attribute.as_deref(), &fields, &items);
    Ok(Found { name, pk, sk, fields, items, keys, attributes, indexes: Vec::new(), n_misfits, declared: None })
}

/// Number of keys that do not have these forms.
fn n_unreadable(pk: Option<&str>, sk: Option<&str>, keys: &[[String; 2]], is_unescaped: bool) -> usize {
    let template = KeyTemplate::parse(pk.unwrap_or("{pk}"), sk.unwrap_or("{sk}")).ok();
    let template = template.map(|template| if is_unescaped { template.unescaped() } else { template });
    let Some(template) = template.filter(|_| pk.is_some()) else { return 0 };
    let sk_of = |text: &String| if sk.is_none() { "-".to_owned() } else { text.clone() };
    let is_misfit = |[pk, sk]: &&[String; 2]| template.parse_key(&Key::new(pk.clone(), sk_of(sk))).is_none();
    keys.iter().filter(is_misfit).count()
}

fn entity_words<'s>(shape: &'s TableShape, pk: &'s [String], sk: Option<&'s SideForm>) -> Vec<&'s str> {
    let of_pk = || pk.iter().map(String::as_str).collect::<Vec<_>>();
    let Some(sk) = sk.filter(|sk| !sk.words.is_empty()) else {
        return if pk.is_empty() { vec![shape.name.as_str()] } else { of_pk() };
    };
    let is_generic = sk.words.iter().all(|word| GENERIC.contains(&word.to_lowercase().as_str()) || pk.contains(word));
    if is_generic && !pk.is_empty() {
        return of_pk();
    }
    let of_sk = sk.words.iter().map(String::as_str);
    if sk.has_field { of_sk.collect() } else { of_pk().into_iter().chain(of_sk).collect() }
}

/// The attributes of items, besides keys, fields and Ripple's and DynamoDB's own.
fn attributes(
    shape: &TableShape,
    type_attribute: Option<&str>,
    fields: &BTreeMap<String, Field>,
    items: &[&Item],
) -> Vec<AttributeFacts> {
    let mut facts = BTreeMap::<&str, (BTreeSet<&'static str>, usize)>::new();
    for (name, value) in items.iter().flat_map(|item| item.iter()) {
        let is_ours = is_stores_own(name) || is_revision(name) || name == "RippleType";
        if !is_ours && !shape.is_own_key(name) && !fields.contains_key(name) && type_attribute != Some(name) {
            let (types, n_items) = facts.entry(name).or_default();
            types.insert(type_of(value));
            *n_items += 1;
        }
    }
    let of = |(name, (types, n_items)): (&str, _)| AttributeFacts { name: name.to_owned(), types, n_items };
    facts.into_iter().map(of).collect()
}

// ---- Forms of keys, with names of their fields ----

/// The form of one side of a key.
struct SideForm {
    /// `None` for the attribute as it is.
    pub(crate) form: Option<String>,
    /// Its constant words.
    pub(crate) words: Vec<String>,
    has_field: bool,
}

/// Builds the forms of the keys of one kind of items, and names their fields.
struct Forms<'k, 'a> {
    shape: &'k TableShape,
    reading: KeyReading,
    items: &'k [&'a Item],
    type_attribute: Option<&'k str>,
    case: Case,
    fields: BTreeMap<String, (KeyType, Vec<&'k str>)>,
}

impl<'k, 'a> Forms<'k, 'a> {
    fn new((shape, reading): (&'k TableShape, KeyReading), items: &'k [&'a Item], kinds: &'k TableKinds<'a>) -> Self {
        let case = kinds.case.unwrap_or(Case::Camel);
        Self { shape, reading, items, type_attribute: kinds.type_attribute.as_deref(), case, fields: BTreeMap::new() }
    }

    /// The form of a key attribute with these texts in the items.
    fn of_key(&mut self, key: &KeyAttribute, texts: &[&'k str]) -> Option<SideForm> {
        let raw = SideForm { form: None, words: Vec::new(), has_field: true };
        if key.of != KeyType::S || self.reading == KeyReading::AsTheyAre {
            self.fields.insert(key.name.clone(), (key.of, texts.to_vec()));
            return Some(raw);
        }
        let slots = slots(texts, key.name == self.shape.pk.name, |values| self.equal(values, "").is_some())?;
        let is_plain = matches!(slots.as_slice(), [slot] if slot.text.is_empty() && slot.values.is_some());
        if is_plain && self.reading == KeyReading::Plain {
            self.fields.insert(key.name.clone(), (key.of, texts.to_vec()));
            return Some(raw);
        }
        let mut words = Vec::new();
        let mut form = Vec::new();
        let side = if key.name == self.shape.pk.name { "id" } else { "sortId" };
        for slot in slots {
            let word = slot.text.trim_matches(|it: char| !it.is_alphanumeric()).to_owned();
            form.push(match slot.values {
                None => slot.text,
                Some(values) => {
                    let hint = if word.is_empty() { words.last().cloned().unwrap_or_default() } else { word.clone() };
                    format!("{}{{{}}}", slot.text, self.field(key, &hint, side, values, is_plain))
                }
            });
            if is_word(&word) {
                words.push(word);
            }
        }
        let has_field = form.iter().any(|part| part.contains('{'));
        Some(SideForm { form: Some(form.join("#")), words, has_field })
    }

    fn equal(&self, values: &[&str], hint: &str) -> Option<&'a str> {
        let is_excluded = |name: &str| {
            let small = name.to_lowercase();
            let changes = CHANGING.iter().any(|part| small.contains(part));
            changes || self.shape.is_own_key(name) || self.type_attribute == Some(name)
        };
        let is_foreign_key = |name: &str| self.shape.is_key(name);
        let own = equal_attribute(self.items, values, hint, |name| is_excluded(name) || is_foreign_key(name));
        own.or_else(|| equal_attribute(self.items, values, hint, is_excluded))
    }

    /// The name of the field with these values: that of another field or an attribute that equals it, or a new one.
    fn field(&mut self, key: &KeyAttribute, hint: &str, side: &str, values: Vec<&'k str>, is_plain: bool) -> String {
        if let Some((same, _)) = self.fields.iter().find(|(_, (_, others))| *others == values) {
            return same.clone();
        }
        let name = match self.equal(&values, hint) {
            Some(name) => name.to_owned(),
            // The whole key attribute is the value, so it has a good name, unless it is called `pk` or the like.
            None if is_plain && key.name.len() > 3 => key.name.clone(),
            None => {
                let word = if hint.is_empty() { side.to_owned() } else { hint.to_owned() };
                let end = if hint.is_empty() { "" } else { suffix(&values) };
                let name = self.case.name(&[&word, end]);
                let is_attribute = |name: &str| self.items.iter().any(|item| item.contains_key(name));
                free(&name, |name| self.fields.contains_key(name) || is_attribute(name))
            }
        };
        self.fields.insert(name.clone(), (KeyType::S, values));
        name
    }
}

// ---- Keys in indexes ----

/// The forms of a key in an index, or the reason why there are none.
fn index_forms<'f>(
    found: &'f Found<'_>,
    [pk, sk]: [&str; 2],
    is_excluded: impl Fn(&str) -> bool + Copy,
) -> Result<Option<IndexForms>, String> {
    let has_both = |item: &Item| text(item, pk).is_some() && text(item, sk).is_some();
    let rows: Vec<usize> =
        (0..found.items.len()).filter(|at| found.items.get(*at).is_some_and(|it| has_both(it))).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let items: Vec<&Item> = rows.iter().filter_map(|at| found.items.get(*at).copied()).collect();
    let of_rows = |field: &'f Field| rows.iter().filter_map(|at| field.values.get(*at).map(String::as_str)).collect();
    let own = found.fields.iter().filter(|(_, field)| field.of == KeyType::S);
    let own: Vec<(&str, Vec<&str>)> = own.map(|(name, field)| (name.as_str(), of_rows(field))).collect();
    let equal = |values: &[&str], hint: &str| {
        let field = own.iter().find(|(_, others)| others == values).map(|(name, _)| *name);
        field.or_else(|| equal_attribute(&items, values, hint, is_excluded))
    };
    let mut fields = BTreeSet::new();
    let mut form = |attribute: &str| {
        let texts: Vec<&str> = items.iter().filter_map(|item| text(item, attribute)).collect();
        let slots = slots(&texts, false, |values| equal(values, "").is_some());
        let slots = slots.ok_or_else(|| format!("{attribute} has no common form in these items"))?;
        let (mut parts, mut hint) = (Vec::new(), String::new());
        for slot in slots {
            let Some(values) = slot.values else {
                hint.clone_from(&slot.text);
                parts.push(slot.text);
                continue;
            };
            let what = if slot.text.is_empty() { &hint } else { &slot.text };
            let name = equal(&values, what.trim_matches(|it: char| !it.is_alphanumeric()));
            let place = if what.is_empty() { String::new() } else { format!(" behind `{what}`") };
            let none = || format!("{attribute} contains a value{place} that no key field or text attribute has");
            let name = name.ok_or_else(none)?;
            fields.insert(name.to_owned());
            parts.push(format!("{}{{{name}}}", slot.text));
        }
        Ok::<String, String>(parts.join("#"))
    };
    let (pk, sk) = (form(pk)?, form(sk)?);
    Ok(Some(IndexForms { pk, sk: Some(sk), n_items: rows.len(), fields }))
}

/// The forms of a key in an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexForms {
    pub(crate) pk: String,
    /// `None` if the index has no sort key.
    pub(crate) sk: Option<String>,
    /// Number of items that have the key.
    pub(crate) n_items: usize,
    /// Fields and attributes in it.
    pub(crate) fields: BTreeSet<String>,
}

// ---- kinds of items that a file declares, in place of those that a sample shows ----

/// The form of a key attribute as it is.
fn as_it_is(key: &KeyAttribute) -> String {
    format!("{{{}}}", key.name)
}

/// The forms of the attributes of a key as they are.
pub(crate) fn all_as_they_are(keys: &[KeyAttribute]) -> String {
    keys.iter().map(as_it_is).collect::<Vec<_>>().join("#")
}

/// Names of the fields of a form.
pub(crate) fn field_names(form: &str) -> impl Iterator<Item = &str> {
    let fields = form.split('{').skip(1).filter_map(|part| part.split_once('}'));
    fields.map(|(field, _)| field.split_once(':').map_or(field, |(name, _)| name))
}

/// True for a form of one field and nothing else.
pub(crate) fn is_one_field(form: &str) -> bool {
    form.starts_with('{') && form.find('}') == form.len().checked_sub(1)
}

/// The kinds of items that a file declares of a table, if it does. `is_one` gives every key a form, as `[table]` needs it.
pub(crate) fn declared_kinds(table: &SampledTable, is_one: bool) -> Option<TableKinds<'_>> {
    let declared = table.declared.as_ref()?;
    let shape = &table.shape;
    let pk_of = |kind: &DeclaredKind| normal(&shape.pk, kind.pk.as_ref());
    let sk_of = |kind: &DeclaredKind| shape.sk.as_ref().map_or(kind.sk.clone(), |key| normal(key, kind.sk.as_ref()));
    // If one kind gives a key a form, all kinds have to.
    let is_pk_formed = is_one || declared.kinds.iter().any(|kind| pk_of(kind).is_some());
    let is_sk_formed = is_one || declared.kinds.iter().any(|kind| sk_of(kind).is_some());
    let found = declared.kinds.iter().map(|kind| {
        let pk = pk_of(kind).or_else(|| is_pk_formed.then(|| as_it_is(&shape.pk)));
        let sk = sk_of(kind).or_else(|| shape.sk.as_ref().filter(|_| is_sk_formed).map(as_it_is));
        let field = |name: &str, of| (name.to_owned(), Field { of, values: Vec::new() });
        let mut fields = BTreeMap::new();
        for (form, key) in [(&pk, Some(&shape.pk)), (&sk, shape.sk.as_ref())] {
            match (form, key) {
                (Some(form), _) => fields.extend(field_names(form).map(|name| field(name, KeyType::S))),
                (None, Some(key)) => fields.extend([field(&key.name, key.of)]),
                (None, None) => {}
            }
        }
        let mut seen = BTreeSet::new();
        let is_other = |name: &str| {
            !shape.is_own_key(name) && !fields.contains_key(name) && declared.type_attribute.as_deref() != Some(name)
        };
        let attributes = kind.attributes.iter().filter(|(name, _)| is_other(name) && seen.insert(name));
        let attributes = attributes.map(|(name, of)| AttributeFacts {
            name: name.clone(),
            types: BTreeSet::from([*of]),
            n_items: 0,
        });
        let attributes = attributes.collect();
        Found { name: kind.name.clone(), pk, sk, fields, attributes, declared: Some(kind), ..Found::default() }
    });
    let found = found.collect();
    Some(TableKinds { type_attribute: declared.type_attribute.clone(), found, ..TableKinds::default() })
}

/// The form of a key; `None` for the value as it is, as a number always is.
fn normal(key: &KeyAttribute, form: Option<&String>) -> KeyForm {
    form.filter(|form| **form != as_it_is(key) && (key.of == KeyType::S || !is_one_field(form))).cloned()
}

/// The forms of a declared kind's key in an index; `None` if the kind is not in it.
fn declared_index_forms(
    (found, kind): (&Found<'_>, &DeclaredKind),
    shape: &TableShape,
    index: &IndexShape,
) -> Result<Option<IndexForms>, String> {
    let is_stored = |key: &KeyAttribute| {
        shape.is_own_key(&key.name) || kind.attributes.iter().any(|(attribute, _)| *attribute == key.name)
    };
    let keys = [&index.pk, &index.sk];
    let forms = match kind.indexes.iter().find(|(name, _)| *name == index.name) {
        Some((_, forms)) => forms.clone(),
        None if keys.into_iter().flatten().all(is_stored) => keys.map(|keys| vec![None; keys.len()]),
        None => return Ok(None),
    };
    let (mut texts, mut plain, mut has_form) = (Vec::new(), Vec::new(), false);
    for (keys, forms) in keys.into_iter().zip(&forms) {
        if keys.len() != forms.len() {
            return Err(format!("the file gives {} of its key and the index has {}", forms.len(), keys.len()));
        }
        let normal = |(key, form): (&KeyAttribute, &KeyForm)| {
            let own = if key.name == shape.pk.name { &found.pk } else { &found.sk };
            let own = own.clone().filter(|_| shape.is_own_key(&key.name));
            normal(key, form.as_ref()).or(own)
        };
        let forms: Vec<KeyForm> = keys.iter().zip(forms).map(normal).collect();
        if keys.len() > 1 && forms.iter().any(KeyForm::is_some) {
            return Err("an attribute of a key of several attributes has no form".to_owned());
        }
        let is_plain = |(key, form): &(&KeyAttribute, &KeyForm)| form.is_none() && !shape.is_own_key(&key.name);
        plain.extend(keys.iter().zip(&forms).filter(is_plain).map(|(key, _)| key));
        has_form |= forms.iter().any(KeyForm::is_some);
        let text = keys.iter().zip(forms).map(|(key, form)| form.unwrap_or_else(|| as_it_is(key)));
        texts.push(text.collect::<Vec<_>>().join("#"));
    }
    if let Some(key) = plain.first().filter(|_| has_form) {
        return Err(format!("{} is a value as it is, beside a form: a key has values or forms", key.name));
    }
    let fields = texts.iter().flat_map(|text| field_names(text)).map(str::to_owned).collect();
    let mut texts = texts.into_iter();
    let pk = texts.next().unwrap_or_default();
    Ok(Some(IndexForms { pk, sk: texts.next().filter(|_| !index.sk.is_empty()), n_items: 0, fields }))
}
