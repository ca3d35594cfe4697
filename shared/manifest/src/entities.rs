//! `[entity.…]`: the form of the table's items.
//!
//! Counters are the service's own items, the same in every table, so they are added here and never declared.

use std::collections::BTreeSet;

use derive::schema::Schema;
use keys::{
    counter::{COUNTER, MARK, PARTITION_KEY, SORT_KEY, VALUE},
    entity::{Definition, KeyTemplate, StoredForm},
    error::TemplateError,
    index_key::{IndexKey, OnlyIf},
    key_forms::KeyForms,
    layout::Layout,
    tables::{EntityBy, NO_SORT_KEY, TableForm, TableForms},
    template::{Piece, Template, form::Form},
};

use crate::{
    error::ManifestError,
    layout::is_unescaped,
    section::{Entry, Named, Section},
    syntax::{
        KeySyntax,
        ValueSyntax::{PairOfTexts, Sections, Text, Texts, Truth},
    },
    tables,
};

/// Keys of `[entity.NAME]`.
pub(crate) const ENTITY: [KeySyntax; 8] = [
    KeySyntax::optional("id", Text, "the name", "its row in the table's design, as `ripple design` shows it"),
    KeySyntax::optional("table", Text, "the only one", "its table, where there is `[tables.NAME]`"),
    KeySyntax::optional(
        "partition-key",
        Text,
        "required for `[table]`; for `[tables.NAME]` the attribute as it is",
        "form of the partition key",
    ),
    KeySyntax::optional(
        "sort-key",
        Text,
        "required for `[table]`; for `[tables.NAME]` the attribute as it is",
        "form of the sort key; it may be the same",
    ),
    KeySyntax::optional(
        "attributes",
        Texts,
        "none",
        "the application's attributes that a derivation names or an index key contains; Ripple leaves others as they are",
    ),
    KeySyntax::optional(
        "derived-attributes",
        Texts,
        "none",
        "attributes that Ripple writes; a derivation writes no others",
    ),
    KeySyntax::optional(
        "derived",
        Truth,
        "`false`",
        "`true`: Ripple creates and removes the whole item, as for a mirror; no two such entities may have a key in common",
    ),
    KeySyntax::optional("index", Sections, "", "`[entity.NAME.index.INDEX]`, below"),
];

/// Keys of `[entity.Counter]`.
pub(crate) const COUNTERS: [KeySyntax; 1] =
    [KeySyntax::required("id", Text, "the row of the counters in the table's design, as `ripple design` shows it")];

/// The schema of the declared entities, and of the counters.
pub(crate) fn read(root: &Section<'_>, layout: Layout) -> Result<Schema, ManifestError> {
    let mut counter = counter().map_err(|error| root.place.wrong(error.to_string()))?;
    let mut declared = Vec::new();
    for (name, section) in root.sections("entity")? {
        if name == COUNTER {
            counter.id = counter_id(&section)?;
            continue;
        }
        declared.push((entity(name, &section, &layout, None)?, section));
    }
    if declared.is_empty() {
        return Err(root.place.wrong("there is no entity: declare one with [entity.NAME]"));
    }
    let table = root.get("table").map(|entry| entry.section()).transpose()?;
    if table.map_or(Ok(false), |table| is_unescaped(&table))? {
        for (definition, _) in &mut declared {
            definition.key = definition.key.clone().unescaped();
            for index in &mut definition.indexes {
                index.key = index.key.clone().unescaped();
            }
        }
    }
    let is_typed = layout.entity_type.is_some();
    let counters = if is_typed { Vec::new() } else { counters(root, &declared, &counter)? };
    distinct(&declared, &counters, |_| (!is_typed).then(|| "[table]".to_owned()))?;
    let definitions = declared.into_iter().map(|(definition, _)| definition).chain([counter]);
    Ok(Schema::new(layout, definitions))
}

/// The schema in tables of any form. Counters are in a table of Ripple's own.
pub(crate) fn in_forms(root: &Section<'_>, mut forms: TableForms) -> Result<Schema, ManifestError> {
    let layout = forms.clone().layout();
    let mut counter = counter().map_err(|error| root.place.wrong(error.to_string()))?;
    let mut declared = Vec::new();
    for (name, section) in root.sections("entity")? {
        if name == COUNTER {
            counter.id = counter_id(&section)?;
            continue;
        }
        let form = tables::of_entity(&section, &forms)?;
        declared.push((entity(name, &section, &layout, Some(form))?, section));
    }
    tables::unescape(root, &mut declared, &forms)?;
    tables::told_by_forms(&declared, &mut forms);
    let by_forms = |definition: &Definition| {
        let form = forms.of_entity(definition).filter(|form| matches!(form.entity, EntityBy::Forms(_)))?;
        Some(format!("[tables.{}]", form.name))
    };
    distinct(&declared, &[], by_forms)?;
    let mut definitions: Vec<Definition> = declared.into_iter().map(|(definition, _)| definition).collect();
    tables::plain_indexes(&mut definitions, &mut forms);
    definitions.push(counter);
    Ok(Schema::new(forms.layout(), definitions))
}

/// The row of the counters in the table's design, the only key of their section.
fn counter_id(section: &Section<'_>) -> Result<String, ManifestError> {
    match section.entries().find(|entry| entry.key != "id") {
        Some(other) => {
            Err(other.place.wrong("every manifest has counters, and only their id can be declared: leave this out"))
        }
        None => Ok(section.required("id", "the row of the counters in the table's design")?.text()?.text.to_owned()),
    }
}

/// The forms of the counters' keys in a table without types: those of the declared counts, beside their targets.
fn counters(
    root: &Section<'_>,
    entities: &[(Definition, Section<'_>)],
    any: &Definition,
) -> Result<Vec<KeyTemplate>, ManifestError> {
    // A form that names the mark itself is meant to be a counter's.
    let has_mark = entities.iter().any(|(entity, _)| entity.key.sk.to_string().contains(MARK));
    let mut counters: Vec<KeyTemplate> = has_mark.then(|| any.key.clone()).into_iter().collect();
    for (name, section) in root.sections("derivation")? {
        let text = |key: &str| section.get(key).and_then(|entry| Some(entry.text().ok()?.text.to_owned()));
        if text("kind").as_deref() != Some("count") {
            continue;
        }
        let into = text("into").unwrap_or_default();
        let name = text("was").unwrap_or_else(|| name.to_owned());
        let target = entities.iter().map(|(entity, _)| entity).find(|it| into.split('.').next() == Some(&it.name));
        let beside = |key: &KeyTemplate| {
            let sk = Template::parse(&format!("{}{MARK}{name}#{{Satellite:2}}", key.sk)).ok()?;
            Some(KeyTemplate { sk, ..key.clone() })
        };
        // A wrong derivation is refused later.
        counters.push(target.and_then(|it| beside(&it.key)).unwrap_or_else(|| any.key.clone()));
    }
    Ok(counters)
}

/// Checks that no key can belong to two entities that Ripple writes; otherwise each would overwrite the other's item,
/// without end. In a table without types, which `untyped` names, an item is known by its key, so no key may belong to any
/// two entities, including the counters.
fn distinct(
    entities: &[(Definition, Section<'_>)],
    counters: &[KeyTemplate],
    untyped: impl Fn(&Definition) -> Option<String>,
) -> Result<(), ManifestError> {
    let mut forms = KeyForms::default();
    for counter in counters {
        forms.insert(counter, (counter, COUNTER, true));
    }
    for (entity, section) in entities {
        let table = untyped(entity);
        if table.is_none() && !entity.derived {
            continue;
        }
        let mine = &entity.key;
        if let Some((theirs, other, is_derived)) = forms.meeting(mine).next() {
            let example =
                mine.meeting(theirs).filter(|key| [mine, theirs].iter().all(|it| it.parse_key(key).is_some()));
            let example = example.map(|key| format!(", such as {key}")).unwrap_or_default();
            let [of_mine, of_theirs] = [mine, theirs].map(|key| format!("{} / {}", key.pk, key.sk).replace("!}", "}"));
            let name = &entity.name;
            return Err(section.place.wrong(match table {
                Some(table) if !entity.derived || !is_derived => format!(
                    "an item of {name} ({of_mine}) and one of {other} ({of_theirs}) can have the same key{example}: name the \
                     attribute that tells them apart, as in {table} type = \"…\""
                ),
                _ => format!(
                    "an item of {name} ({of_mine}) and one of {other} ({of_theirs}) can have the same key{example}, and Ripple \
                     would write the one over the other again and again: give one of them a key of another form, such as a \
                     prefix of its own"
                ),
            }));
        }
        forms.insert(mine, (mine, entity.name.as_str(), entity.derived));
    }
    Ok(())
}

/// The definition of a counter.
fn counter() -> Result<Definition, TemplateError> {
    Ok(Definition {
        id: COUNTER.to_owned(),
        name: COUNTER.to_owned(),
        key: KeyTemplate::parse(PARTITION_KEY, SORT_KEY)?,
        indexes: Vec::new(),
        derived: true,
        attributes: Vec::new(),
        derived_attributes: vec![VALUE.to_owned(), "Sum".to_owned()],
    })
}

/// The definition of an entity; with table forms, in this one.
fn entity(
    name: &str,
    section: &Section<'_>,
    layout: &Layout,
    form: Option<&TableForm>,
) -> Result<Definition, ManifestError> {
    section.follows(&ENTITY)?;
    if name.is_empty() {
        return Err(section.place.wrong("the name of an entity is empty: items have it as their type"));
    }
    if let Some(entry) = section.get("table").filter(|_| form.is_none()) {
        return Err(entry.place.wrong("there is one table, [table]: leave this out, or declare [tables.NAME]"));
    }
    let key = form.map_or_else(|| key(section), |form| tables::key(section, form))?;
    let names = |key| section.get(key).map_or_else(|| Ok(Vec::new()), |entry: Entry<'_>| entry.texts());
    let (attributes, derived_attributes) = (names("attributes")?, names("derived-attributes")?);
    free(layout, form, &key, &attributes, &derived_attributes)?;
    let owned = |names: Vec<Named<'_>>| names.into_iter().map(|name| name.text.to_owned()).collect();
    let mut definition = Definition {
        id: section.get("id").map_or_else(|| Ok(name), |entry| Ok(entry.text()?.text))?.to_owned(),
        name: name.to_owned(),
        key,
        indexes: Vec::new(),
        derived: section.is_true("derived")?,
        attributes: owned(attributes),
        derived_attributes: owned(derived_attributes),
    };
    for (index, section) in section.sections("index")? {
        let inside = form.map_or_else(|| index.to_owned(), |form| form.inside(index));
        let index = index_key(&inside, &section, layout, &definition)?;
        definition.indexes.push(index);
    }
    Ok(definition)
}

pub(crate) fn key(section: &Section<'_>) -> Result<KeyTemplate, ManifestError> {
    Ok(KeyTemplate {
        pk: template(section, "partition-key", "its form, as in \"USER#{userId}\"")?,
        sk: template(section, "sort-key", "its form, as in \"ORDER#{orderedOn}#{orderId}\"")?,
        stored: StoredForm::Texts,
    })
}

pub(crate) fn template(section: &Section<'_>, key: &str, purpose: &str) -> Result<Template, ManifestError> {
    let text = section.required(key, purpose)?.text()?;
    form(&text)
}

/// The form of a key text. The form of a number or of bytes that makes up the whole text follows from the key's type.
pub(crate) fn form(text: &Named<'_>) -> Result<Template, ManifestError> {
    let template = Template::parse(text.text).map_err(|error| text.place.wrong(error.to_string()))?;
    let mut pairs = template.pieces().iter().zip(template.pieces().iter().skip(1));
    if pairs.any(|pair| matches!(pair, (Piece::Literal(text), Piece::Field { .. }) if text.ends_with('$'))) {
        return Err(text.place.wrong("a field is written {name}, without $ before it"));
    }
    let unescaped = |piece: &Piece| matches!(piece, Piece::Field { form: Form::Plain, .. });
    if template.pieces().iter().any(unescaped) {
        return Err(text
            .place
            .wrong("values are unescaped in all keys of a table or in none: set escape = \"none\" in [table]"));
    }
    let typed = |piece: &Piece| matches!(piece, Piece::Field { form: Form::Number | Form::Bytes, .. });
    if template.pieces().iter().any(typed) {
        return Err(text
            .place
            .wrong("a field of type N or B is all of a key of that type: declare it in [tables.NAME]"));
    }
    Ok(template)
}

/// Checks that each attribute is declared once, and none of them is a key, a field of the key or the type. Ripple
/// writes no time to live.
fn free(
    layout: &Layout,
    form: Option<&TableForm>,
    key: &KeyTemplate,
    attributes: &[Named<'_>],
    derived: &[Named<'_>],
) -> Result<(), ManifestError> {
    let mut declared = BTreeSet::new();
    let all = attributes.iter().map(|attribute| (attribute, false)).chain(derived.iter().map(|it| (it, true)));
    for (attribute, is_derived) in all {
        attribute.top_level()?;
        let name = attribute.text;
        let is = if layout.is_key(name) {
            "is an attribute of a key"
        } else if form.is_some_and(|form| form.outside().any(|outside| outside == name)) {
            "is an attribute of the table's key, or of its type"
        } else if layout.type_name() == name {
            "is the attribute of the type"
        } else if is_derived && layout.times_to_live().any(|other| other == name) {
            "is the attribute of the time to live"
        } else if key.holds(name) && (is_derived || key.casing(name).is_none()) {
            "is a field of the key"
        } else if !declared.insert(name) {
            "is declared twice"
        } else {
            continue;
        };
        return Err(attribute.place.wrong(format!("\"{name}\" {is}: leave it out")));
    }
    Ok(())
}

// ---- [entity.NAME.index.INDEX]: the keys of items in an index ----

/// Keys of `[entity.NAME.index.INDEX]`.
pub(crate) const INDEX_KEY: [KeySyntax; 5] = [
    KeySyntax::required(
        "partition-key",
        Text,
        "form of the index's partition key, from fields of the key and attributes",
    ),
    KeySyntax::required("sort-key", Text, "form of its sort key"),
    KeySyntax::optional(
        "only-if",
        PairOfTexts,
        "always",
        "`{ status = \"published\" }`: the item is in the index only while the attribute has this text, or one of these",
    ),
    KeySyntax::optional("only-with", Text, "always", "the item is in the index only while it has this attribute"),
    KeySyntax::optional(
        "derived",
        Truth,
        "`false`",
        "`true`: Ripple makes the key, by a derivation of the kind `index-key`; it may name a derived number",
    ),
];

/// The key of an entity's items in the index with this inner name.
pub(crate) fn index_key(
    name: &str,
    section: &Section<'_>,
    layout: &Layout,
    entity: &Definition,
) -> Result<IndexKey, ManifestError> {
    section.follows(&INDEX_KEY)?;
    if layout.index(name).is_none() {
        let named = Named { text: name, place: section.place.clone() };
        return Err(named.unknown("there is no index", layout.indexes.iter().map(|index| index.name.as_str())));
    }
    let key = index_form(section, layout, name)?;
    let derived = section.is_true("derived")?;
    let mut known = entity.key.field_names();
    known.extend(entity.attributes.iter().map(String::as_str));
    // A derived attribute cannot be part of a key that the application sets.
    known.extend(entity.derived_attributes.iter().map(String::as_str).filter(|_| derived));
    let must_be_known = |named: &Named<'_>| {
        let is_known = known.contains(&named.text);
        let unknown = || {
            if entity.derived_attributes.iter().any(|name| name == named.text) {
                let what =
                    "is derived, and the application makes this key: say derived = true here, and declare an index-key";
                return named.place.wrong(format!("{} {what}", named.text));
            }
            named.unknown(&format!("{} has no field or attribute", entity.name), known.iter().copied())
        };
        if is_known { Ok(()) } else { Err(unknown()) }
    };
    for (part, template) in [("partition-key", &key.pk), ("sort-key", &key.sk)] {
        for text in template.field_names() {
            let place = section.place_of(part);
            must_be_known(&Named { text, place })?;
        }
    }
    let only_if = only_if(section)?;
    if let Some((attribute, _)) = &only_if {
        attribute.top_level()?;
        must_be_known(attribute)?;
    }
    let only_if = only_if.map(|(_, only_if)| only_if);
    Ok(IndexKey { index: name.to_owned(), key, only_if, derived })
}

/// The form of a key in an index; without a sort key in the index, there is no form for it.
fn index_form(section: &Section<'_>, layout: &Layout, name: &str) -> Result<KeyTemplate, ManifestError> {
    let index = layout.forms.as_ref().and_then(|forms| forms.index(name));
    if index.is_none_or(|(_, index)| !index.sk.is_empty()) {
        return key(section);
    }
    let pk = template(section, "partition-key", "its form, as in \"USER#{userId}\"")?;
    if let Some(entry) = section.get("sort-key") {
        return Err(entry.place.wrong("the index has no sort key: leave it out"));
    }
    let sk = Template::parse(NO_SORT_KEY).map_err(|e| section.place.wrong(e.to_string()))?;
    Ok(KeyTemplate { pk, sk, stored: StoredForm::Texts })
}

/// The condition for an item to be in an index, with its attribute; `None` means always.
fn only_if<'a>(section: &Section<'a>) -> Result<Option<(Named<'a>, OnlyIf)>, ManifestError> {
    let only_with = section.text("only-with")?;
    let Some(entry) = section.get("only-if") else {
        return Ok(only_with.map(|named| (named.clone(), OnlyIf::Has { attribute: named.text.to_owned() })));
    };
    if let Some(only_with) = only_with {
        return Err(only_with.place.wrong("give only-if or only-with, not both"));
    }
    let (attribute, any_of) = entry.pair_of_texts()?;
    let any_of = any_of.into_iter().map(|named| named.text.to_owned()).collect();
    let only_if = OnlyIf::Is { attribute: attribute.text.to_owned(), any_of };
    Ok(Some((attribute, only_if)))
}
