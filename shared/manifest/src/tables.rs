//! `[tables.NAME]`: tables of any form, with keys of any type, with or without a sort key, and several of them.
//!
//! The rest of the workspace knows one key space, so an entity's key in such a table is converted to a form in that
//! space: `{createdAt}` in a key of type N is `{createdAt:N}`, and all forms begin with the table's name.

use std::collections::BTreeSet;

use derive::schema::Schema;
use keys::{
    entity::{Definition, KeyTemplate, StoredForm},
    index_key::IndexKey,
    tables::{
        EntityBy, EntityForm, IndexForm, KeyAttribute, KeyType, NO_SORT_KEY, PK, SK, TYPE, TableForm, TableForms,
    },
    template::Template,
};

use crate::{
    entities::form as form_of,
    error::ManifestError,
    layout::{self, ESCAPE, PROJECTION, attribute, is_unescaped},
    section::{Entry, Named, Section, TextOrSection},
    syntax::{
        KeySyntax,
        ValueSyntax::{KeyAttributes, OneOf, Sections, Text, TextOrTable},
    },
};

/// Most attributes of a key of an index. Source: DynamoDB, "Multi-attribute keys pattern".
const ATTRIBUTES_MAX: usize = 4;

/// The syntax of a key attribute.
const AN_ATTRIBUTE: &str = "the name of an attribute, or { name = \"createdAt\", type = \"N\" }";

/// Keys of a key attribute.
pub(crate) const KEY_ATTRIBUTE: [KeySyntax; 2] = [
    KeySyntax::required("name", Text, "its name"),
    KeySyntax::optional("type", OneOf(&["S", "N", "B"]), "`\"S\"`", "its type, as DynamoDB names it"),
];

/// Keys of `[tables.NAME]`.
pub(crate) const TABLES: [KeySyntax; 6] = [
    KeySyntax::required("partition-key", TextOrTable(&KEY_ATTRIBUTE), "attribute of the partition key"),
    KeySyntax::optional("sort-key", TextOrTable(&KEY_ATTRIBUTE), "the table has none", "attribute of the sort key"),
    KeySyntax::optional(
        "type",
        Text,
        "all items of the table are of the one entity that names it, or the forms of their keys tell them apart",
        "attribute that names the entity of an item, of type S; Ripple ignores an item without it",
    ),
    KeySyntax::optional("time-to-live", Text, "", "attribute of the time to live; mirrors never repeat it"),
    ESCAPE,
    KeySyntax::optional("index", Sections, "", "`[tables.NAME.index.INDEX]`, below"),
];

/// Keys of `[tables.NAME.index.INDEX]`.
pub(crate) const TABLE_INDEX: [KeySyntax; 3] = [
    KeySyntax::required("partition-key", KeyAttributes, "attribute of its partition key, or up to four of them"),
    KeySyntax::optional("sort-key", KeyAttributes, "the index has none", "attribute of its sort key, or up to four"),
    PROJECTION,
];

/// The tables, as far as their own sections describe them; `None` if the manifest has `[table]`.
pub(crate) fn read(root: &Section<'_>) -> Result<Option<TableForms>, ManifestError> {
    let sections = root.sections("tables")?;
    if sections.is_empty() {
        return Ok(None);
    }
    for other in ["table", "index"] {
        if let Some(entry) = root.get(other) {
            return Err(entry
                .place
                .wrong(format!("give [{other}] for a manifest of one table, or [tables.NAME], not both")));
        }
    }
    let mut forms = TableForms::default();
    for (name, section) in sections {
        forms.0.push(table(name, &section)?);
    }
    shape(root, &mut forms)?;
    Ok(Some(forms))
}

fn table(name: &str, section: &Section<'_>) -> Result<TableForm, ManifestError> {
    section.follows(&TABLES)?;
    layout::plain_name("a table", name, &section.place)?;
    let one = |entry: &Entry<'_>| key_attribute(&entry.text_or_section(AN_ATTRIBUTE)?);
    let pk = one(&section.required("partition-key", "the attribute of the partition key")?)?;
    let sk = section.get("sort-key").as_ref().map(one).transpose()?;
    let named = |key: &str| section.get(key).as_ref().map(attribute).transpose();
    let mut form = TableForm {
        name: name.to_owned(),
        called: name.to_owned(),
        pk,
        sk,
        entity: named("type")?.map_or_else(|| EntityBy::Table(String::new()), EntityBy::Attribute),
        time_to_live: named("time-to-live")?,
        indexes: Vec::new(),
    };
    for (name, section) in section.sections("index")? {
        form.indexes.push(index(name, &section, &form)?);
        let n_projected = |form: &IndexForm| form.projection.as_ref().map(Vec::len);
        layout::projections(form.indexes.iter().map(|form| (form.name.as_str(), n_projected(form))), &section)?;
    }
    let by_type = match &form.entity {
        EntityBy::Attribute(attribute) => Some(attribute),
        EntityBy::Table(_) | EntityBy::Forms(_) => None,
    };
    for (key, name) in [("type", by_type), ("time-to-live", form.time_to_live.as_ref())] {
        if name.is_some_and(|name| form.is_of_key(name) || (key != "type" && Some(name) == by_type)) {
            let place = section.place_of(key);
            return Err(place.wrong("names an attribute that is a key, or has another use already: name another"));
        }
    }
    if form.sk.as_ref().is_some_and(|sk| sk.name == form.pk.name) {
        return Err(section.required("sort-key", "")?.place.wrong("is the attribute of the partition key"));
    }
    one_type_each(&form, section)?;
    Ok(form)
}

fn index(name: &str, section: &Section<'_>, table: &TableForm) -> Result<IndexForm, ManifestError> {
    section.follows(&TABLE_INDEX)?;
    layout::plain_name("an index", name, &section.place)?;
    let several = |entry: &Entry<'_>| {
        let attributes =
            entry.texts_or_sections(AN_ATTRIBUTE)?.iter().map(key_attribute).collect::<Result<Vec<_>, _>>()?;
        let fits = (1..=ATTRIBUTES_MAX).contains(&attributes.len());
        if fits { Ok(attributes) } else { Err(entry.place.wrong("is one attribute, or a list of one to four")) }
    };
    let mut form = IndexForm {
        name: name.to_owned(),
        pk: several(&section.required("partition-key", "the attribute of the index's partition key")?)?,
        sk: section.get("sort-key").as_ref().map(several).transpose()?.unwrap_or_default(),
        projection: None,
        entities: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = form.parts().find(|part| !seen.insert(part.name.as_str())) {
        return Err(section.place.wrong(format!("has {} in its key twice", twice.name)));
    }
    let keys = [&table.pk].into_iter().chain(&table.sk).chain(form.parts());
    form.projection = layout::projection(section, keys.map(|part| part.name.as_str()))?;
    Ok(form)
}

fn key_attribute(said: &TextOrSection<'_>) -> Result<KeyAttribute, ManifestError> {
    let plain = |name: &Named<'_>, of| {
        name.top_level()?;
        if [PK, SK, TYPE].contains(&name.text) {
            return Err(name.place.wrong(format!("\"{}\" is an attribute of Ripple's own: name another", name.text)));
        }
        layout::attribute_name(name.text, &name.place)?;
        Ok(KeyAttribute::plain(name.text, of))
    };
    let section = match said {
        TextOrSection::Text(name) => return plain(name, KeyType::S),
        TextOrSection::Section(section) => section,
    };
    section.follows(&KEY_ATTRIBUTE)?;
    let of = match section.text("type")? {
        None => KeyType::S,
        Some(named) => match named.text {
            "S" => KeyType::S,
            "N" => KeyType::N,
            "B" => KeyType::B,
            _ => return Err(named.unknown("a key is of type S, N or B, and there is no", ["S", "N", "B"])),
        },
    };
    plain(&section.required("name", "the name of the attribute")?.text()?, of)
}

/// The table that an entity names; by default the only one.
pub(crate) fn of_entity<'f>(section: &Section<'_>, forms: &'f TableForms) -> Result<&'f TableForm, ManifestError> {
    match (section.get("table"), forms.0.as_slice()) {
        (Some(entry), _) => {
            let named = entry.text()?;
            let names = forms.0.iter().map(|form| form.name.as_str());
            forms.named(named.text).ok_or_else(|| named.unknown("there is no table", names))
        }
        (None, [only]) => Ok(only),
        (None, _) => Err(section.place.wrong("table is missing: the table in which its items are, one of [tables]")),
    }
}

/// Adds what the entities declare of the tables: whether keys are texts of forms, and which entity is a table's only
/// one.
fn shape(root: &Section<'_>, forms: &mut TableForms) -> Result<(), ManifestError> {
    let mut first_of = BTreeSet::new();
    let is_untyped = |form: &&TableForm| form.entity == EntityBy::Table(String::new());
    let untyped: BTreeSet<String> = forms.0.iter().filter(is_untyped).map(|form| form.name.clone()).collect();
    for (name, section) in root.sections("entity")? {
        if name == keys::counter::COUNTER {
            continue;
        }
        let at = of_entity(&section, forms)?.name.clone();
        let Some(form) = forms.0.iter_mut().find(|form| form.name == at) else { continue };
        for (key, part) in [("partition-key", Some(&mut form.pk)), ("sort-key", form.sk.as_mut())] {
            let (Some(entry), Some(part)) = (section.get(key), part) else { continue };
            if part.of != KeyType::S {
                return Err(entry
                    .place
                    .wrong(format!("{part} is the {key} of {at}, a value as it is: leave {key} out, or declare a key of type S there to give it a form")));
            }
            part.is_plain = false;
        }
        if untyped.contains(&at) {
            // A derived item names its entity; otherwise an application's item under its key would be taken for it.
            let is_derived = section.is_true("derived")?;
            form.entity = match (first_of.insert(at.clone()), is_derived) {
                (true, false) => EntityBy::Table(name.to_owned()),
                (true, true) => EntityBy::Attribute(TYPE.to_owned()),
                (false, _) => EntityBy::Forms(Vec::new()),
            };
        }
        for (index, section) in section.sections("index")? {
            let names: Vec<String> = form.indexes.iter().map(|index| index.name.clone()).collect();
            let named = Named { text: index, place: section.place.clone() };
            let Some(index) = form.indexes.iter_mut().find(|form| form.name == index) else {
                return Err(named.unknown("there is no index", names.iter().map(String::as_str)));
            };
            let is_text = |part: &[KeyAttribute]| part.iter().all(|attribute| attribute.of == KeyType::S);
            if index.pk.len() != 1 || index.sk.len() > 1 || !is_text(&index.pk) || !is_text(&index.sk) {
                let what = "its key is of values as they are, which need no form: leave this out";
                return Err(section.place.wrong(what));
            }
            index.pk.iter_mut().chain(&mut index.sk).for_each(|attribute| attribute.is_plain = false);
        }
    }
    if let Some(empty) = forms.0.iter().find(|form| form.entity == EntityBy::Table(String::new())) {
        let place = root.place_of("tables");
        return Err(place.wrong(format!("no entity is in the table {}: declare one with table = \"{0}\"", empty.name)));
    }
    Ok(())
}

/// Leaves values as they are in the forms of a table that says so.
pub(crate) fn unescape(
    root: &Section<'_>,
    declared: &mut [(Definition, Section<'_>)],
    forms: &TableForms,
) -> Result<(), ManifestError> {
    for (name, section) in root.sections("tables")? {
        let Some(form) = forms.named(name).filter(|_| section.get("escape").is_some()) else { continue };
        let is_plain = form.pk.is_plain && form.sk.as_ref().is_none_or(|sk| sk.is_plain);
        if let Some(entry) = section.get("escape").filter(|_| is_plain) {
            return Err(entry.place.wrong("its keys have no form, and are values as they are: leave this out"));
        }
        if !is_unescaped(&section)? {
            continue;
        }
        for (definition, _) in declared.iter_mut().filter(|(it, _)| forms.of_entity(it).is_some_and(|it| it == form)) {
            let KeyTemplate { pk, sk, stored } = definition.key.clone();
            definition.key = KeyTemplate {
                pk: if form.pk.is_plain { pk } else { pk.unescaped() },
                sk: if form.sk.as_ref().is_none_or(|sk| sk.is_plain) { sk } else { sk.unescaped() },
                stored,
            };
            for index in &mut definition.indexes {
                index.key = index.key.clone().unescaped();
            }
        }
    }
    Ok(())
}

/// Gives a table whose items are told apart by their keys the forms of its entities.
pub(crate) fn told_by_forms(declared: &[(Definition, Section<'_>)], forms: &mut TableForms) {
    let all = forms.clone();
    for form in &mut forms.0 {
        let EntityBy::Forms(entities) = &mut form.entity else { continue };
        let is_here = |definition: &&Definition| all.of_entity(definition).is_some_and(|it| it.name == form.name);
        let here = declared.iter().map(|(definition, _)| definition).filter(is_here);
        entities.extend(here.map(|definition| EntityForm {
            entity: definition.name.clone(),
            key: definition.key.clone(),
            derived: definition.derived,
        }));
    }
}

/// The form of an entity's key.
pub(crate) fn key(section: &Section<'_>, form: &TableForm) -> Result<KeyTemplate, ManifestError> {
    let part = |key: &str, attribute: Option<&KeyAttribute>| {
        let entry = section.get(key);
        let text = match (entry, attribute) {
            (Some(entry), None) => return Err(entry.place.wrong(format!("the table {} has no sort key", form.name))),
            (None, None) => NO_SORT_KEY.to_owned(),
            (None, Some(attribute)) if attribute.is_plain => attribute.template(),
            (None, Some(_)) => {
                let what = format!("{key} is missing: another entity of the table {} gives its form", form.name);
                return Err(section.place.wrong(what));
            }
            (Some(entry), Some(_)) => {
                let text = entry.text()?;
                form_of(&text)?;
                text.text.to_owned()
            }
        };
        let text = if key == "partition-key" { format!("{}#{text}", form.name) } else { text };
        let unnamed = |error: keys::error::TemplateError| {
            let fields = "a field has letters, digits, _ and - only: give the key a form";
            section.place.wrong(format!("{error}; {fields}, as in {key} = \"USER#{{userId}}\""))
        };
        Template::parse(&text).map_err(unnamed)
    };
    let stored = StoredForm::Values {
        prefix: format!("{}#", form.name),
        pk: vec![form.pk.clone()],
        sk: form.sk.iter().cloned().collect(),
    };
    Ok(KeyTemplate { pk: part("partition-key", Some(&form.pk))?, sk: part("sort-key", form.sk.as_ref())?, stored })
}

/// Checks that an attribute has one type in all keys of a table and its indexes: DynamoDB has one definition of it.
fn one_type_each(form: &TableForm, section: &Section<'_>) -> Result<(), ManifestError> {
    let of_indexes = form.indexes.iter().flat_map(IndexForm::parts);
    let parts: Vec<&KeyAttribute> =
        [Some(&form.pk), form.sk.as_ref()].into_iter().flatten().chain(of_indexes).collect();
    for (at, part) in parts.iter().enumerate() {
        if let Some(other) = parts.iter().take(at).find(|other| other.name == part.name && other.of != part.of) {
            let (name, one, two) = (&part.name, other.of, part.of);
            let what = format!(
                "{name} is of type {one:?} in one key and of type {two:?} in another: it has one type in a table"
            );
            return Err(section.place.wrong(what));
        }
    }
    Ok(())
}

/// The inner name of one of an entity's indexes: the manifest names it without its table.
pub(crate) fn inside(schema: &Schema, entity: &Definition, index: &str) -> String {
    let table = schema.layout.forms.as_ref().and_then(|forms| forms.of_entity(entity));
    table.map_or_else(|| index.to_owned(), |table| table.inside(index))
}

// ---- plain indexes ----

/// Gives the entities their keys in indexes over plain attributes, if they have all of the attributes.
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

/// The form of an entity's key in an index over plain attributes; `None` if its items lack one of them.
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

/// The attribute that keeps an entity out of this index over plain attributes: one that it does not declare.
pub(crate) fn lacking(schema: &Schema, entity: &Definition, index: &str) -> Option<String> {
    let table = schema.layout.forms.as_ref()?.of_entity(entity)?;
    let index = table.indexes.iter().find(|it| it.name == index && it.is_plain())?;
    let is_declared = |name: &String| entity.attributes.iter().chain(&entity.derived_attributes).any(|it| it == name);
    let mut parts = index.parts();
    parts.find(|part| !table.is_of_key(&part.name) && !is_declared(&part.name)).map(|part| part.name.clone())
}

/// The type of an attribute that is not in the key of an entity's items, if an index over plain attributes has it, with
/// the index's name.
pub(crate) fn type_by_index<'a>(schema: &'a Schema, entity: &Definition, name: &str) -> Option<(&'a str, KeyType)> {
    let table = schema.layout.forms.as_ref()?.of_entity(entity).filter(|_| !entity.key.holds(name))?;
    table.indexes.iter().filter(|index| index.is_plain()).find_map(|index| {
        let part = index.parts().find(|part| part.name == name)?;
        Some((index.name.as_str(), part.of))
    })
}
