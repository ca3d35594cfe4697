//! How items of two entities lead to each other.
//!
//! `link` pairs a field of the key of one with the field or attribute of the other that gives it, such as
//! `link = { userId = "followedId" }`. A field of the same name needs no pair.
//!
//! `found` is how the items that name a source are found when it changes: by a query for an entity with the source's
//! fields in its partition key, in the table or in an index, and with fields for the target's key. The default is the
//! target itself, in the table.

use derive::{
    claims::CLAIMS,
    declaration::{FoundBy, Link},
    expression::{Expression, Input, document_path::is_path},
    schema::Schema,
};
use keys::{
    entity::{Definition, KeyTemplate},
    index_key::IndexKey,
    tables::{EntityBy, KeyType, TYPE},
};

use super::{
    Rule, attribute, attributes, copies, entity,
    given::{KnownTypes, input},
    says,
};
use crate::{
    error::ManifestError,
    section::{Entry, Named, Section, TomlPlace},
    syntax::{
        KeySyntax,
        ValueSyntax::{Pairs, Text},
    },
    tables,
};

impl Rule<'_> {
    /// The link by which an item leads to the key of a `to`.
    pub(super) fn link(&self, to: &Definition, from: &Definition) -> Result<Link, ManifestError> {
        self.link_but(to, from, &[])
    }

    /// The link for all fields of the key except these.
    pub(super) fn link_but(&self, to: &Definition, from: &Definition, but: &[&str]) -> Result<Link, ManifestError> {
        let given =
            self.section.get("link").map(|entry| pairs(&entry, to, from, self.types)).transpose()?.unwrap_or_default();
        let known = fields(from);
        let mut link = Vec::new();
        for field in to.key.field_names().into_iter().filter(|field| !but.contains(field)) {
            if let Some((_, from)) = given.iter().find(|(to, _)| to == field) {
                link.push((field.to_owned(), from.clone()));
            } else if known.contains(&field) && !(field == "id" && self.schema.layout.forms.is_some()) {
                let implied = Named { text: field, place: self.section.place.clone() };
                self.types.refuse(&from.name, &implied, "a link")?;
                link.push((field.to_owned(), Input::of(field)));
            } else {
                let what = format!(
                    "nothing gives {field} of the key of {}: name the attribute of {} with its value ({}), as in link = {{ {field} = \
                     \"…\" }}",
                    to.name,
                    from.name,
                    known.join(", ")
                );
                return Err(self.section.place.wrong(what));
            }
        }
        let link = Link(link);
        self.fits(to, from, &link)?;
        Ok(link)
    }

    /// The attribute of `from` that `each` names: a list, whose members each give a key of a `to`.
    pub(super) fn each(
        &self,
        (from, to): (&Definition, &Definition),
        link: &Link,
    ) -> Result<Option<String>, ManifestError> {
        let Some(entry) = self.section.get("each") else { return Ok(None) };
        let named = entry.text()?;
        let list = attribute(from, &named)?;
        self.types.with_parts(from, &named, &list, "each takes a list or a set: name an attribute that is one")?;
        if link.filled_by(&list).is_some() {
            return Ok(Some(list));
        }
        let what = format!(
            "no field of the key of {} is a member of {list}: name the one that is ({}), as in link = {{ … = \"{list}\" }}",
            to.name,
            to.key.field_names().join(", ")
        );
        Err(entry.place.wrong(what))
    }

    /// Refuses an attribute that an index declares as type N or B, where the key has another type.
    fn fits(&self, to: &Definition, from: &Definition, link: &Link) -> Result<(), ManifestError> {
        for (field, input) in &link.0 {
            let Some(name) = input.name() else { continue };
            let Some((index, of)) = tables::type_by_index(self.schema, from, name) else { continue };
            let takes = to.key.type_of(field);
            if of != takes && of != KeyType::S {
                let place = self.section.place_of("link");
                return Err(place.wrong(format!(
                    "{name} of {} is of type {of:?} in the index {index}, and {field} of the key of {} takes type {takes:?}: \
                     declare that key of type {of:?} without a form, or link an attribute of type {takes:?}",
                    from.name, to.name
                )));
            }
        }
        Ok(())
    }
}

/// Pairs of (field of the key of `to`, field or attribute of `from`), each of which exists.
pub(super) fn pairs(
    entry: &Entry<'_>,
    to: &Definition,
    from: &Definition,
    types: &KnownTypes<'_>,
) -> Result<Vec<(String, Input)>, ManifestError> {
    let mut pairs = Vec::new();
    for (field, value) in entry.pairs()? {
        types.refuse(&from.name, &value, "a link")?;
        if !to.key.holds(field.text) && to.key.holds(value.text) && fields(from).contains(&field.text) {
            let what = format!(
                "the sides are swapped: {0} is of the key of {1} and stands on the left, as in {{ {0} = \"{2}\" }}",
                value.text, to.name, field.text
            );
            return Err(field.place.wrong(what));
        }
        known(&field, &format!("the key of {} has no field", to.name), &to.key.field_names())?;
        let input = input(from, &value, types)?;
        fills(to, &field, &input, &value)?;
        pairs.push((field.text.to_owned(), input));
    }
    Ok(pairs)
}

/// Refuses a calculated value of another type than the field that it gives.
fn fills(to: &Definition, field: &Named<'_>, input: &Input, value: &Named<'_>) -> Result<(), ManifestError> {
    let Some(of) = input.expression().type_of() else { return Ok(()) };
    let (name, takes) = (field.text, to.key.type_of(field.text));
    let hint = match (of, takes) {
        _ if format!("{takes:?}") == of => return Ok(()),
        ("N", KeyType::S) => format!(": write text({input})"),
        ("S", KeyType::N) => format!(": write number({input})"),
        _ => String::new(),
    };
    let what = format!("is {of}, and {name} of the key of {} takes type {takes:?}{hint}", to.name);
    Err(value.place.wrong(what))
}

/// Refuses a name that is not one of these.
pub(super) fn known(named: &Named<'_>, there_is_no: &str, names: &[&str]) -> Result<(), ManifestError> {
    if names.contains(&named.text) { Ok(()) } else { Err(named.unknown(there_is_no, names.iter().copied())) }
}

/// The fields and attributes that an item can give.
pub(super) fn fields(entity: &Definition) -> Vec<&str> {
    let mut fields = entity.key.field_names();
    fields.extend(attributes(entity));
    fields
}

// ---- found ----

/// Keys of `found`.
pub(super) const FOUND: [KeySyntax; 3] = [
    KeySyntax::optional("through", Text, "the target", "the entity to query, whose fields give the target's key"),
    KeySyntax::optional("index", Text, "the table", "the index to query"),
    KeySyntax::optional(
        "by",
        Pairs,
        "`link` read backwards",
        "pairs of a field of the queried key and a field of the source's key",
    ),
];

/// How the items of `target` that lead to a source by this link are found.
pub(super) fn found(
    rule: &Rule<'_>,
    source: &Definition,
    target: &Definition,
    link: &Link,
) -> Result<FoundBy, ManifestError> {
    let backwards = |via: &Definition| backwards(rule, link, via, target);
    let entry = rule.section.get("found");
    let place = entry.as_ref().map_or_else(|| rule.section.place.clone(), |entry| entry.place.clone());
    let found = match &entry {
        None => FoundBy { via: target.name.clone(), index: None, by: backwards(target) },
        Some(entry) if entry.is_text() => {
            let named = entry.text()?;
            if rule.schema.entity(named.text).is_none() && is_index(rule, named.text) {
                let what = format!("{0} is an index: write found = {{ index = \"{0}\" }}", named.text);
                return Err(named.place.wrong(what));
            }
            let via = entity(rule.schema, &entry.text()?)?;
            FoundBy { via: via.name.clone(), index: None, by: backwards(via) }
        }
        Some(entry) if !entry.is_table() => {
            return Err(entry.is_not("the name of an entity, or { index = \"…\" }"));
        }
        Some(entry) => {
            let section = entry.section()?;
            section.follows(&FOUND)?;
            found_in(&section, rule.schema, source, target, backwards)?
        }
    };
    finds(rule, source, target, (&found, false), &place).map_err(|mut error| {
        if let Some((field, from)) = link.0.iter().find(|(_, from)| from.name().is_none()) {
            error.what = format!(
                "`{from}` is not searched backwards, so a change of {0} does not find its {1} items: mirror {1} into an \
                 entity with {field} in its partition key, by link = {{ {field} = \"{from}\" }}, and write found = \"…\" with \
                 the name of that entity",
                source.name, target.name
            );
        }
        error
    })?;
    Ok(found)
}

/// A link read backwards: a found item has the fields of the target's key under the same names. What is calculated is
/// a field of the found item if a mirror puts it there.
fn backwards(rule: &Rule<'_>, link: &Link, via: &Definition, target: &Definition) -> Link {
    let mirrored = |from: &Input| {
        let links = mirrors(rule, via, target).filter_map(|mirror| mirror.get("link")?.pairs().ok());
        let is_same = |text: &str| text.parse::<Expression>().is_ok_and(|other| other == *from.expression());
        links.flatten().find(|(_, other)| is_same(other.text)).map(|(field, _)| field.text.to_owned())
    };
    let backwards = |(to, from): &(String, Input)| {
        let by = from.name().map(str::to_owned).or_else(|| mirrored(from))?;
        Some((by, Input::of(to)))
    };
    Link(link.0.iter().filter_map(backwards).collect())
}

/// True if this is the name of an index in the manifest.
fn is_index(rule: &Rule<'_>, name: &str) -> bool {
    let mut indexes = rule.schema.layout.indexes.iter();
    indexes.any(|index| index.name == name || index.name.rsplit('.').next() == Some(name))
}

/// The content of the keys `through`, `index` and `by` of a section.
pub(super) fn found_in(
    section: &Section<'_>,
    schema: &Schema,
    source: &Definition,
    target: &Definition,
    by_default: impl FnOnce(&Definition) -> Link,
) -> Result<FoundBy, ManifestError> {
    let through = section.text("through")?;
    let via = through.map_or(Ok(target), |named| entity(schema, &named))?;
    let index = section.text("index")?;
    let index = index.map(|index| index_of(schema, via, &index, "has no key in an index", |_| true)).transpose()?;
    let by = section.get("by").map(|entry| by(&entry, source)).transpose()?;
    Ok(FoundBy { via: via.name.clone(), index, by: by.unwrap_or_else(|| by_default(via)) })
}

/// One of an entity's indexes, by its name in the manifest.
pub(super) fn index_of(
    schema: &Schema,
    entity: &Definition,
    named: &Named<'_>,
    has_none: &str,
    is_meant: impl Fn(&IndexKey) -> bool,
) -> Result<String, ManifestError> {
    let inside = tables::inside(schema, entity, "");
    let indexes = entity.indexes.iter().filter(|index| is_meant(index));
    let names: Vec<&str> = indexes.filter_map(|index| index.index.strip_prefix(&inside)).collect();
    if let Some(lacking) = tables::lacking(schema, entity, named.text).filter(|_| !names.contains(&named.text)) {
        let what = format!(
            "{} does not declare {lacking}, which is in the key of {}: add it to its attributes",
            entity.name, named.text
        );
        return Err(named.place.wrong(what));
    }
    known(named, &format!("{} {has_none}", entity.name), &names)?;
    Ok(format!("{inside}{}", named.text))
}

/// Refuses a query that the source's key does not give, or whose items lead to no target. The hint is for an entry of a
/// cascade's `hanging`, or for `found`.
pub(super) fn finds(
    rule: &Rule<'_>,
    source: &Definition,
    target: &Definition,
    (found, is_hanging): (&FoundBy, bool),
    place: &TomlPlace<'_>,
) -> Result<(), ManifestError> {
    let schema = rule.schema;
    if let Some(name) = &found.index
        && let Some(missing) = not_projected(schema, found, target)
    {
        return Err(place.wrong(format!(
            "{name} does not project \"{missing}\", which Ripple needs to find the {} items: add it to \
             the projection of [{}]",
            found.via,
            header(schema, name)
        )));
    }
    if let Some(via) = schema.entity(&found.via).filter(|via| has_own_id(rule, via, target)) {
        return Err(place.wrong(format!(
            "the id of {} is its own, and leads to no {}: with [tables] a field called id is found through a mirror only",
            via.name, target.name
        )));
    }
    let Some(missing) = not_given(schema, found) else { return Ok(()) };
    let places = places(rule, target, &found.by);
    let hints = places.iter().map(|place| if is_hanging { place.keys() } else { format!("found = {}", place.found()) });
    let hints: Vec<String> = hints.collect();
    let hint = match hints.as_slice() {
        [] if !is_hanging && found.by.0.iter().any(|(to, _)| is_path(to)) => format!(
            "a path of the link gives no field of a key, so add by, as in found = {{ through = \"{}\", by = {{ {missing} = \"…\" }} }}",
            found.via
        ),
        [] => "no entity and no index leads to all of them".to_owned(),
        hints => format!("write {}", hints.join(", or ")),
    };
    Err(place.wrong(format!(
        "a change of {} does not have {missing} of {}, by which its {} items would be found: {hint}",
        source.name, found.via, target.name
    )))
}

/// The table of the manifest that declares an index.
fn header(schema: &Schema, index: &str) -> String {
    match schema.layout.forms.as_ref().and_then(|forms| forms.index(index)) {
        Some((table, form)) => format!("tables.{}.index.{}", table.name, form.name),
        None => format!("index.{index}"),
    }
}

/// Pairs of (field of the queried key, field of the source's key).
fn by(entry: &Entry<'_>, source: &Definition) -> Result<Link, ManifestError> {
    let mut pairs = Vec::new();
    for (field, value) in entry.pairs()? {
        value.top_level()?;
        known(&value, &format!("the key of {} has no field", source.name), &source.key.field_names())?;
        pairs.push((field.text.to_owned(), Input::of(value.text)));
    }
    Ok(Link(pairs))
}

/// A field of the queried partition key that the source does not give.
fn not_given<'a>(schema: &'a Schema, found: &FoundBy) -> Option<&'a str> {
    let via = schema.entity(&found.via)?;
    let index = found.index.as_ref().and_then(|name| via.indexes.iter().find(|index| index.index == *name));
    lacks(index.map_or(&via.key, |index| &index.key), &found.by)
}

fn lacks<'a>(key: &'a KeyTemplate, by: &Link) -> Option<&'a str> {
    key.pk.field_names().into_iter().find(|field| !by.0.iter().any(|(to, _)| to == field))
}

/// An attribute that the queried index must project and does not: the type, or a field of the target's key.
fn not_projected<'a>(schema: &'a Schema, found: &FoundBy, target: &'a Definition) -> Option<&'a str> {
    let name = found.index.as_ref()?;
    let index = schema.layout.index(name)?;
    let via = schema.entity(&found.via)?;
    let beside_the_key = target.key.field_names().into_iter().filter(|field| !via.key.holds(field));
    let names_it = schema.layout.mark_of(via).map(|_| schema.layout.type_name());
    let mut needed = names_it.into_iter().chain(beside_the_key);
    let Some((table, form)) = schema.layout.forms.as_ref().and_then(|forms| forms.index(name)) else {
        return needed.find(|name| !index.projects(name));
    };
    // In a table without a type attribute, only derived items name their entity.
    let is_told = matches!(table.entity, EntityBy::Forms(_)) && !via.derived;
    let needed = needed.filter(|name| !is_told || *name != TYPE);
    needed.filter_map(|name| table.stored_name(name)).find(|name| !table.index_holds(form, name))
}

/// A place to query for the targets.
struct QueryPlace<'a> {
    /// The queried entity; `None` if it is the target itself.
    through: Option<&'a str>,
    index: Option<&'a str>,
}

impl QueryPlace<'_> {
    /// In the form of a table's keys.
    fn keys(&self) -> String {
        let key = |key: &str, name: Option<&str>| name.map(|name| format!("{key} = \"{name}\""));
        let keys = [key("through", self.through), key("index", self.index)];
        keys.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// In the form of a value of `found`.
    fn found(&self) -> String {
        match (self.through, self.index) {
            (Some(name), None) => format!("\"{name}\""),
            _ => format!("{{ {} }}", self.keys()),
        }
    }
}

/// The places where a query by these fields would find all targets.
fn places<'a>(rule: &'a Rule<'_>, target: &'a Definition, by: &Link) -> Vec<QueryPlace<'a>> {
    let schema = rule.schema;
    let mut places = Vec::new();
    for via in schema.entities() {
        let known = via.key.field_names();
        let has = |field: &&str| known.contains(field) || via.attributes.iter().any(|name| name == field);
        if !target.key.field_names().iter().all(has) || misses(rule, via, target) || has_own_id(rule, via, target) {
            continue;
        }
        let through = Some(via.name.as_str()).filter(|name| *name != target.name);
        let table = (through.is_some() && lacks(&via.key, by).is_none()).then_some(QueryPlace { through, index: None });
        let inside = tables::inside(schema, via, "");
        let is_enough = |index: &&IndexKey| {
            let found = FoundBy { via: via.name.clone(), index: Some(index.index.clone()), by: by.clone() };
            lacks(&index.key, by).is_none() && not_projected(schema, &found, target).is_none()
        };
        let names = via.indexes.iter().filter(is_enough).filter_map(|index| index.index.strip_prefix(&inside));
        places.extend(table);
        places.extend(names.map(|name| QueryPlace { through, index: Some(name) }));
    }
    places
}

/// True if the queried entity's key has another id than the targets. Each table has its own ids, and only a mirror has
/// the id of its source.
fn has_own_id(rule: &Rule<'_>, via: &Definition, target: &Definition) -> bool {
    let has_id = |entity: &Definition| entity.key.holds("id");
    let mut mirrors = mirrors(rule, via, target).chain(mirrors(rule, target, via));
    rule.schema.layout.forms.is_some()
        && via.name != target.name
        && has_id(via)
        && has_id(target)
        && mirrors.next().is_none()
}

/// True if some targets may lack a queried item, since it is derived from another item, or not for each of them. The
/// catalogue refuses that.
fn misses(rule: &Rule<'_>, via: &Definition, target: &Definition) -> bool {
    let is_of_some = |mirror: &Section<'_>| ["where", "each"].iter().any(|key| mirror.get(key).is_some());
    let is_mirrored = |to: &Definition, from: &Definition| mirrors(rule, to, from).next().is_some();
    let has_own =
        |source: &Definition| is_mirrored(via, source) && (source.name == target.name || is_mirrored(target, source));
    let is_of_others = via.derived && via.name != target.name && !is_mirrored(target, via);
    is_of_others && !rule.schema.entities().any(has_own)
        || mirrors(rule, via, target).any(|mirror| is_of_some(mirror) || via.derives(CLAIMS))
        || mirrors(rule, target, via).any(|mirror| mirror.get("each").is_some())
}

/// The mirrors to an entity from another one.
fn mirrors<'a>(rule: &'a Rule<'_>, to: &'a Definition, from: &'a Definition) -> impl Iterator<Item = &'a Section<'a>> {
    let declared = rule.of_kind(copies::MIRROR.description.name).map(|(_, mirror)| mirror);
    declared.filter(|mirror| says(mirror, "to", &to.name) && says(mirror, "from", &from.name))
}
