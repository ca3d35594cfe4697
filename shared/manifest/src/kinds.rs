//! `[derivation.…]`: the derivations.
//!
//! A new kind is a [`KindSyntax`] beside the kinds that are like it, and an entry in [`KINDS`].

mod buckets;
mod cascade;
mod copies;
mod count;
mod given;
mod item;
mod link;

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::{Catalogue, CatalogueError},
    derivation::Derivation,
    schema::Schema,
};
use keys::{
    counter::COUNTER,
    entity::Definition,
    entry::{self, ENTRIES},
};

use crate::{
    error::ManifestError,
    kinds::given::KnownTypes,
    section::{Named, Section, TomlPlace},
    syntax::{KeySyntax, KindDescription, ValueSyntax},
};

/// Suffix of the name of a count's display. Stored, so it is stable.
const DISPLAY: &str = "-display";

/// Suffix of the name of the items that a count creates. Stored, so it is stable.
const ITEM: &str = "-item";

/// The syntax of a kind of derivation.
struct KindSyntax {
    description: KindDescription,
    /// Builds its derivations: one, or a count with its displays.
    read: fn(&Rule<'_>) -> Result<Vec<Derivation>, ManifestError>,
}

/// All kinds of the language.
const KINDS: [&KindSyntax; 12] = [
    &count::COUNT,
    &copies::COPY,
    &copies::LATEST,
    &copies::EXTREME,
    &count::UNREAD,
    &copies::MIRROR,
    &item::PATH,
    &item::INDEX_KEY,
    &buckets::ROLL_UP,
    &buckets::WINDOW,
    &item::CALCULATED,
    &cascade::CASCADE,
];

/// Keys that every derivation may have.
pub(crate) const COMMON: [KeySyntax; 3] = [
    KeySyntax::required("kind", ValueSyntax::Text, "what is derived, one of the kinds below"),
    KeySyntax::optional(
        "id",
        ValueSyntax::Text,
        "the name",
        "its row in the table's design, as `ripple design` shows it",
    ),
    KeySyntax::optional(
        "was",
        ValueSyntax::Text,
        "it always had this name",
        "its first name, if it was [renamed](change-the-catalogue.md#rename): Ripple stores everything of it under that",
    ),
];

/// A derivation while it is parsed.
struct Rule<'a> {
    /// Its name.
    name: &'a str,
    section: Section<'a>,
    schema: &'a Schema,
    /// The types of attributes, as far as the manifest determines them.
    types: &'a KnownTypes<'a>,
    /// All derivations, in the order of the file.
    declared: &'a [(&'a str, Section<'a>)],
    /// The stored names of renamed derivations.
    renamed: &'a BTreeMap<&'a str, &'a str>,
}

impl<'a> Rule<'a> {
    /// The entity that a key names; the key is required for this purpose.
    fn entity(&self, key: &str, purpose: &str) -> Result<&'a Definition, ManifestError> {
        entity(self.schema, &self.section.required(key, purpose)?.text()?)
    }

    /// The entity and its derived attribute that `into` names, such as `Folder.path`.
    fn shown_attribute(&self, purpose: &str) -> Result<(&'a Definition, String), ManifestError> {
        let into = self.section.required("into", purpose)?.text()?;
        let Some((target, attribute)) = into.text.split_once('.') else {
            return Err(into.place.wrong(format!("names no attribute: {purpose}")));
        };
        let target = entity(self.schema, &Named { text: target, place: into.place.clone() })?;
        let attribute = derived_attribute(target, &Named { text: attribute, place: into.place.clone() })?;
        Ok((target, attribute))
    }

    /// A derivation of this section with this name, which is the section's name or begins with it.
    fn derivation(&self, name: &str, kind: impl derive::kind::Kind + 'static) -> Result<Derivation, ManifestError> {
        let id = self.section.text("id")?;
        let stored = name.strip_prefix(self.name).map(|end| format!("{}{end}", self.stored(self.name)));
        let stored = stored.unwrap_or_else(|| name.to_owned());
        let renamed = (stored != name).then(|| name.to_owned());
        Ok(Derivation { renamed, ..Derivation::new(id.map_or(name, |id| id.text), &stored, kind) })
    }

    /// All derivations of a kind, by their names.
    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &'a (&'a str, Section<'a>)> {
        self.declared.iter().filter(move |(_, section)| says(section, "kind", kind))
    }

    /// The stored name of a derivation.
    fn stored<'n>(&'n self, name: &'n str) -> &'n str {
        self.renamed.get(name).unwrap_or(&name)
    }
}

/// All kinds, for the descriptions of the language.
pub(crate) fn descriptions() -> Vec<KindDescription> {
    KINDS.iter().map(|kind| kind.description).collect()
}

/// The schema with the entries that derivations keep, and the catalogue of all derivations.
pub(crate) fn read(root: &Section<'_>, schema: Schema) -> Result<(Schema, Catalogue), ManifestError> {
    let mut derivations = Vec::new();
    let mut entries = Vec::new();
    let mut places: Vec<(String, TomlPlace<'_>)> = Vec::new();
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let mut sections: BTreeSet<String> = BTreeSet::new();
    let declared = root.sections("derivation")?;
    let types = &KnownTypes::of(&schema, &declared);
    types.fit_indexes(root)?;
    let renamed = &renamed(&declared)?;
    for (name, section) in &declared {
        let (declared, section) = (&declared, section.clone());
        sections.insert((*name).to_owned());
        storable(name, &section.place)?;
        let place = section.place.clone();
        for derivation in rule(&Rule { name, section, schema: &schema, types, declared, renamed })? {
            if derivation.kind.keeps_entries() {
                entries.push(entries_of(&schema, &derivation.name, &place)?);
            }
            places.extend([derivation.name.clone(), derivation.label().to_owned()].map(|name| (name, place.clone())));
            labels.insert(derivation.name.clone(), derivation.label().to_owned());
            derivations.push(derivation);
        }
    }
    let schema = schema.with(entries);
    // The displays and the items of a count are declared with the count, and the entries with what reads them. They have
    // no section of their own.
    let declared = |name: &str| {
        let name = labels.get(name).map_or(name, String::as_str);
        match [DISPLAY, ITEM, ENTRIES].iter().find_map(|suffix| name.strip_suffix(suffix)) {
            Some(count) if !sections.contains(name) && sections.contains(count) => count.to_owned(),
            _ => name.to_owned(),
        }
    };
    let catalogue = Catalogue::new(&schema, derivations).map_err(|error| {
        let (name, what) = in_words(error, &labels, &declared);
        // If two have the same name, the second one is wrong.
        let place = places.iter().rev().find(|(other, _)| *other == name).map_or(&root.place, |(_, place)| place);
        place.wrong(what)
    })?;
    Ok((schema, catalogue))
}

/// The entity of the entries that the derivation of this name keeps.
fn entries_of(schema: &Schema, name: &str, place: &TomlPlace<'_>) -> Result<Definition, ManifestError> {
    if schema.entity(name).is_some() {
        return Err(
            place.wrong(format!("Ripple's entries for it are of an entity {name}: give the declared one another name"))
        );
    }
    entry::definition(name.strip_suffix(ENTRIES).unwrap_or(name)).map_err(|error| place.wrong(error.to_string()))
}

fn rule(rule: &Rule<'_>) -> Result<Vec<Derivation>, ManifestError> {
    let named = rule.section.required("kind", "what it does, such as \"count\"")?.text()?;
    let Some(kind) = KINDS.iter().find(|kind| kind.description.name == named.text) else {
        let what = match named.text {
            "sum" | "average" | "exists" => {
                format!("{0} is shown by a count, as in shows = {{ {0} = \"…\" }}", named.text)
            }
            "min" | "max" => format!("{0} is an extreme, as in {0} = \"placedAt\"", named.text),
            _ => return Err(named.unknown("there is no kind", KINDS.iter().map(|kind| kind.description.name))),
        };
        return Err(named.place.wrong(format!("there is no kind \"{}\": {what}", named.text)));
    };
    let keys = [&COMMON, kind.description.keys].concat();
    if let Some(entry) = rule.section.get("where").filter(|_| keys.iter().all(|key| key.name != "where")) {
        let what = match kind.description.name {
            "cascade" => "a cascade takes no condition: an entry of hanging has only-if, for one attribute".to_owned(),
            name => {
                format!("the kind {name} takes no condition: mirror the items that meet it, and name the mirrors here")
            }
        };
        return Err(entry.place.wrong(what));
    }
    rule.section.follows(&keys)?;
    (kind.read)(rule)
}

/// The derivation at fault, and the problem.
fn in_words(
    error: CatalogueError,
    labels: &BTreeMap<String, String>,
    declared: &dyn Fn(&str) -> String,
) -> (String, String) {
    match error {
        CatalogueError::Declaration { derivation, problem } => (derivation, problem),
        CatalogueError::NameTwice { name } => {
            let what = "there is another derivation of this name; that of a count's display ends with -display, that of \
                        the items that it creates with -item, and that of the entries of a latest or an extreme with -entries";
            (name, what.to_owned())
        }
        CatalogueError::WrittenTwice { one, other, part } => {
            let what =
                format!("writes {part}, as {} does: name another attribute, or leave one of both out", declared(&one));
            (other, what)
        }
        CatalogueError::Circle { names } => {
            let shown: Vec<&str> = names.iter().map(|name| labels.get(name).unwrap_or(name).as_str()).collect();
            let circle = match shown.as_slice() {
                [_] => "it reads what it writes".to_owned(),
                _ => format!("derivations build on each other in a circle: {}", shown.join(", ")),
            };
            (names.into_iter().next().unwrap_or_default(), circle)
        }
    }
}

/// True if `zero` says that the attribute is absent in place of 0.
fn zero_is_absent(section: &Section<'_>) -> Result<bool, ManifestError> {
    Ok(section.choice("zero", ["always", "absent"])? == "absent")
}

/// True if this text is the value of a section's key.
fn says(section: &Section<'_>, key: &str, text: &str) -> bool {
    section.get(key).and_then(|entry| entry.text().ok()).is_some_and(|said| said.text == text)
}

/// A declared entity, by its name.
pub(crate) fn entity<'a>(schema: &'a Schema, named: &Named<'_>) -> Result<&'a Definition, ManifestError> {
    let declared = || schema.entities().map(|entity| entity.name.as_str()).filter(|name| *name != COUNTER);
    schema.entity(named.text).ok_or_else(|| named.unknown("there is no entity", declared()))
}

/// The attributes of an entity: the application's, then Ripple's.
fn attributes(entity: &Definition) -> Vec<&str> {
    entity.attributes.iter().chain(&entity.derived_attributes).map(String::as_str).collect()
}

/// An attribute of the application or of Ripple.
fn attribute(entity: &Definition, named: &Named<'_>) -> Result<String, ManifestError> {
    named.top_level()?;
    link::known(named, &format!("{} has no attribute", entity.name), &attributes(entity))?;
    Ok(named.text.to_owned())
}

/// An attribute that an entity declares as derived.
fn derived_attribute(entity: &Definition, named: &Named<'_>) -> Result<String, ManifestError> {
    named.top_level()?;
    if entity.derived_attributes.iter().any(|name| name == named.text) {
        return Ok(named.text.to_owned());
    }
    if entity.derived_attributes.is_empty() {
        let Definition { name, .. } = entity;
        let what = format!(
            "{name} declares no derived attribute: add derived-attributes = [\"{}\"] to [entity.{name}]",
            named.text
        );
        return Err(named.place.wrong(what));
    }
    if entity.attributes.iter().any(|name| name == named.text) {
        let what = format!(
            "{} lists {} in attributes, so the application writes it: name another attribute, or move it to \
             derived-attributes",
            entity.name, named.text
        );
        return Err(named.place.wrong(what));
    }
    let declared = entity.derived_attributes.iter().map(String::as_str);
    Err(named.unknown(&format!("{} does not declare as derived", entity.name), declared))
}

// ---- The names of derivations, and `was`: the first name of a renamed derivation ----

/// Longest name of a derivation, in bytes: a counter's sort key of at most 1,024 bytes contains it and the target's
/// key.
const NAME_MAX: usize = 64;

/// The name of a group of derivations in `DISABLED` and `--disable`.
const RESERVED: &str = "ground";

/// The stored names of the renamed derivations, by their current names. A stored name must not be the name of another
/// derivation, because both would share the stored data.
fn renamed<'a>(declared: &[(&'a str, Section<'a>)]) -> Result<BTreeMap<&'a str, &'a str>, ManifestError> {
    let mut renamed = BTreeMap::new();
    for (name, section) in declared {
        let Some(was) = section.text("was")? else { continue };
        storable(was.text, &was.place)?;
        if was.text == *name {
            return Err(was.place.wrong("is its present name: leave was out, or give its first name"));
        }
        if declared.iter().any(|(other, _)| *other == was.text) {
            let what = format!("there is a derivation {}, and what is stored under this name is of that one", was.text);
            return Err(was.place.wrong(what));
        }
        if let Some((other, _)) = renamed.iter().find(|(_, other)| **other == was.text) {
            let what = format!(
                "{other} was {} too, and only one of them can have what is stored under this name: leave one out",
                was.text
            );
            return Err(was.place.wrong(what));
        }
        renamed.insert(*name, was.text);
    }
    Ok(renamed)
}

/// Checks the characters of a name, which becomes part of counter keys, metrics and command output.
fn storable(name: &str, place: &TomlPlace<'_>) -> Result<(), ManifestError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(place.wrong("a derivation's name has only letters, digits, - and _, because it is stored in keys"));
    }
    if name.len() > NAME_MAX {
        return Err(
            place.wrong(format!("a derivation's name has at most {NAME_MAX} characters, because it is stored in keys"))
        );
    }
    if name == RESERVED {
        return Err(place.wrong("DISABLED takes this name for all derivations that delete items: give it another one"));
    }
    Ok(())
}
