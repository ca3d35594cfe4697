//! Kinds of items that a file declares, in place of those that a sample shows.

use std::collections::{BTreeMap, BTreeSet};

use keys::tables::{KeyAttribute, KeyType};

use crate::{
    entities::{AttributeFacts, Field, Found, IndexForms, TableKinds},
    shape::{DeclaredKind, IndexShape, KeyForm, SampledTable, TableShape},
};

/// The form of a key attribute as it is.
pub(crate) fn as_it_is(key: &KeyAttribute) -> String {
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
pub(crate) fn kinds(table: &SampledTable, is_one: bool) -> Option<TableKinds<'_>> {
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
pub(crate) fn index_forms(
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
