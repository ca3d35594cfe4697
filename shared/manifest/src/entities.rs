//! `[entity.…]`: the form of the table's items.
//!
//! Counters are the service's own items, the same in every table, so they are added here and never declared.

use std::collections::BTreeSet;

use derive::schema::Schema;
use keys::{
    counter::{COUNTER, MARK, PARTITION_KEY, SORT_KEY, VALUE},
    entity::{Definition, KeyTemplate, StoredForm},
    error::TemplateError,
    key_forms::KeyForms,
    layout::Layout,
    tables::{EntityBy, TableForm, TableForms},
    template::{Piece, Template, form::Form},
};

use crate::{
    error::ManifestError,
    index_keys,
    layout::is_unescaped,
    section::{Entry, Named, Section},
    syntax::{
        KeySyntax,
        ValueSyntax::{Sections, Text, Texts, Truth},
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
        derived: section.get("derived").map_or(Ok(false), |entry| entry.truth())?,
        attributes: owned(attributes),
        derived_attributes: owned(derived_attributes),
    };
    for (index, section) in section.sections("index")? {
        let inside = form.map_or_else(|| index.to_owned(), |form| form.inside(index));
        let index = index_keys::index_key(&inside, &section, layout, &definition)?;
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
