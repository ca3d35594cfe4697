//! Indexes over attributes as they are: which entities' items are in them, and what they say of the attributes.

use derive::schema::Schema;
use keys::{
    entity::{Definition, KeyTemplate, StoredForm},
    index_key::IndexKey,
    tables::{IndexForm, KeyAttribute, KeyType, NO_SORT_KEY, TableForms},
    template::Template,
};

/// Gives the entities their keys in indexes over plain attributes, where they have all of the attributes.
pub(crate) fn plain_indexes(definitions: &mut [Definition], forms: &mut TableForms) {
    for form in &mut forms.0 {
        let (name, keys) = (form.name.clone(), [Some(form.pk.clone()), form.sk.clone()]);
        for index in form.indexes.iter_mut().filter(|index| index.is_plain()) {
            for definition in definitions.iter_mut().filter(|it| it.key.pk.to_string().starts_with(&format!("{name}#")))
            {
                let Some(key) = in_index(definition, index, &keys) else { continue };
                index.entities.push(definition.name.clone());
                let index = format!("{name}.{}", index.name);
                definition.indexes.push(IndexKey { index, key, only_if: None, derived: false });
            }
        }
    }
}

/// The form of an entity's key in an index over plain attributes; `None` where its items lack one of them.
fn in_index(definition: &Definition, index: &IndexForm, keys: &[Option<KeyAttribute>; 2]) -> Option<KeyTemplate> {
    let part = |attributes: &[KeyAttribute]| {
        let texts = attributes.iter().map(|attribute| {
            let is_key = keys.iter().flatten().any(|key| key.name == attribute.name && key.is_plain);
            let mut declared = definition.attributes.iter().chain(&definition.derived_attributes);
            (is_key || declared.any(|name| *name == attribute.name)).then(|| attribute.template())
        });
        let texts: Vec<String> = texts.collect::<Option<_>>()?;
        let text = if texts.is_empty() { NO_SORT_KEY.to_owned() } else { texts.join("#") };
        Template::parse(&text).ok()
    };
    let stored = StoredForm::Values { prefix: String::new(), pk: index.pk.clone(), sk: index.sk.clone() };
    Some(KeyTemplate { pk: part(&index.pk)?, sk: part(&index.sk)?, stored })
}

/// The attribute for which an entity is not in this index over plain attributes: one that it does not declare.
pub(crate) fn lacking(schema: &Schema, entity: &Definition, index: &str) -> Option<String> {
    let table = schema.layout.forms.as_ref()?.of_entity(entity)?;
    let index = table.indexes.iter().find(|it| it.name == index && it.is_plain())?;
    let is_declared = |name: &String| entity.attributes.iter().chain(&entity.derived_attributes).any(|it| it == name);
    let mut parts = index.parts();
    parts.find(|part| !table.is_of_key(&part.name) && !is_declared(&part.name)).map(|part| part.name.clone())
}

/// The type of an attribute of an entity's items that is none of their key, where an index over plain attributes says it,
/// with the index's name.
pub(crate) fn type_by_index<'a>(schema: &'a Schema, entity: &Definition, name: &str) -> Option<(&'a str, KeyType)> {
    let table = schema.layout.forms.as_ref()?.of_entity(entity).filter(|_| !entity.key.holds(name))?;
    table.indexes.iter().filter(|index| index.is_plain()).find_map(|index| {
        let part = index.parts().find(|part| part.name == name)?;
        Some((index.name.as_str(), part.of))
    })
}
