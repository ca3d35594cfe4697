//! What a derivation reads from an item: a field of its key, an attribute, a value inside one by its path, or what an
//! expression calculates from these; which items it takes, by `where`; and the types of all that.

use std::collections::BTreeMap;

use derive::{
    condition::Condition,
    expression::{DocumentPath, Expression, Input},
    schema::Schema,
};
use keys::{entity::Definition, tables::KeyType};

use super::{
    Rule, attributes,
    link::{fields, known},
};
use crate::{
    error::{ManifestError, meant},
    section::{Named, Section},
    tables,
};

/// A field of the key, an attribute, or the path of a value inside one, such as `address.city`; nothing calculated.
pub(super) fn given(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<String, ManifestError> {
    let there_is_no = format!("{} has no field or attribute", entity.name);
    inside(entity, named, types)?.map_or_else(|| whole(named, &there_is_no, &fields(entity)), Ok)
}

/// A value: a field of the key, an attribute, the path of a value inside one, or an expression.
pub(super) fn input(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    match calculated(entity, named)? {
        None => Ok(Input::of(&given(entity, named, types)?)),
        Some(expression) => {
            known_in(entity, &expression, named, types)?;
            Ok(Input::from(expression))
        }
    }
}

/// A value that every item has to give: it is no literal.
pub(super) fn value(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    let input = input(entity, named, types)?;
    if input.names().next().is_none() {
        let what = "reads no attribute: a text stands in single quotes, and a name in none";
        return Err(named.place.wrong(what));
    }
    Ok(input)
}

/// A number: a field of a number, an attribute, the path of a value inside one, or an expression.
pub(super) fn number(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Input, ManifestError> {
    let input = value(entity, named, types)?;
    let of = match input.name() {
        Some(name) => entity.key.holds(name).then(|| of_field(entity, name)),
        None => input.expression().type_of(),
    };
    match of.filter(|of| *of != "N") {
        Some(of) => {
            let hint = if of == "S" { format!(": write number({input})") } else { String::new() };
            Err(named.place.wrong(format!("{input} is {of}, and a number (N) is wanted{hint}")))
        }
        None => Ok(input),
    }
}

/// The expression of a text that is neither a name nor a path.
fn calculated(entity: &Definition, named: &Named<'_>) -> Result<Option<Expression>, ManifestError> {
    // A name with another letter is more likely than a calculation.
    let is_name = fields(entity).contains(&named.text) || meant(named.text, fields(entity)).ends_with('?');
    let has_sign = named.text.contains(['(', '*', '+', '-', '|', '/', '\'', ' ']);
    if is_name || !has_sign || named.text.parse::<DocumentPath>().is_ok() {
        return Ok(None);
    }
    let parsed = named.text.parse::<Expression>();
    parsed.map(Some).map_err(|error| named.place.wrong(format!("is no name and no expression: {error}")))
}

/// Refuses what an expression reads and the entity lacks, and values that its functions do not take.
fn known_in(
    entity: &Definition,
    expression: &Expression,
    named: &Named<'_>,
    types: &KnownTypes<'_>,
) -> Result<(), ManifestError> {
    for path in expression.paths() {
        known_path(entity, path, named, types)?;
    }
    for (path, of, call) in expression.taken() {
        types.takes(entity, path, (of, call), named)?;
    }
    Ok(())
}

/// Refuses a path into something that the entity lacks, or that has no parts.
fn known_path(
    entity: &Definition,
    path: &DocumentPath,
    named: &Named<'_>,
    types: &KnownTypes<'_>,
) -> Result<(), ManifestError> {
    let (text, name) = (path.name(), path.attribute.as_str());
    let place = Named { text: if path.steps.is_empty() { name } else { &text }, place: named.place.clone() };
    if !path.steps.is_empty() {
        return inside(entity, &place, types).map(drop);
    }
    whole(&place, &format!("{} has no field or attribute", entity.name), &fields(entity)).map(drop).map_err(
        |mut error| {
            if !error.what.ends_with('?') {
                error.what.push_str(if named.text.contains('-') {
                    "; a text stands in single quotes, and a name with - in it in double quotes"
                } else {
                    "; a text stands in single quotes"
                });
            }
            error
        },
    )
}

fn whole(named: &Named<'_>, there_is_no: &str, names: &[&str]) -> Result<String, ManifestError> {
    known(named, there_is_no, names).map_err(|mut error| {
        if !error.what.ends_with('?') {
            error.what.push_str("; one that your items have is declared in attributes");
        }
        error
    })?;
    Ok(named.text.to_owned())
}

/// The path of a value inside an attribute, if it is a path.
fn inside(entity: &Definition, named: &Named<'_>, types: &KnownTypes<'_>) -> Result<Option<String>, ManifestError> {
    let Some(path) = named.path()? else { return Ok(None) };
    let (text, root, name) = (named.text, &path.attribute, &entity.name);
    let attributes = attributes(entity);
    if attributes.contains(&root.as_str()) {
        let taken =
            format!("\"{text}\" is inside of it, where it has no parts: name an attribute that is a map or a list");
        types.with_parts(entity, named, root, &taken)?;
        return Ok(Some(path.to_string()));
    }
    Err(named.place.wrong(if entity.key.holds(root) {
        format!("\"{text}\" is inside of {root}, which is a field of the key of {name}, and that has no parts")
    } else {
        format!(
            "\"{text}\" is inside of an attribute \"{root}\", and {name} has none of this name{}",
            meant(root, attributes)
        )
    }))
}

// ---- where: which items take part, as in "status IN ('paid', 'sent') AND total > 0", or short { status = "paid" } ----

/// The condition of a derivation on the items of an entity.
pub(super) fn condition(rule: &Rule<'_>, source: &Definition) -> Result<Condition, ManifestError> {
    let Some(entry) = rule.section.get("where") else { return Ok(Condition::Always) };
    if entry.is_table() {
        if let Some(other) = entry.section()?.entries().find(|entry| !entry.is_text()) {
            return Err(other.place.wrong(
                "is not a text, and this short form compares texts only: write the condition as text, as in where = \"total = 7\" or \
                 where = \"status IN ('paid', 'sent')\"",
            ));
        }
        let (named, is) = entry.pair()?;
        rule.types.refuse(&source.name, &named, "where")?;
        let name = given(source, &named, rule.types)?;
        rule.types.compare(source, &Named { text: &name, place: named.place.clone() }, "S")?;
        return Ok(Condition::is(&name, is.text));
    }
    let text = entry.text()?;
    let condition: Condition =
        text.text.parse().map_err(|error| text.place.wrong(format!("is no condition: {error}")))?;
    for path in condition.paths() {
        known_path(source, path, &text, rule.types)?;
    }
    for (path, of, call) in condition.operands().flat_map(Expression::taken) {
        rule.types.takes(source, path, (of, call), &text)?;
    }
    for (name, of) in condition.compared() {
        rule.types.compare(source, &Named { text: name, place: text.place.clone() }, of)?;
    }
    Ok(condition)
}

// ---- types of attributes ----
//
// A manifest determines some: those of displays of counts, of sums, and of their copies and mirrors; of keys of indexes;
// of times; and of the literals that conditions compare attributes with.
//
// A link and a `where` need texts. DynamoDB distinguishes a number from a text of the same digits, so a number gives no
// key, and equals no text. A text has no parts and no members. Conflicts between these types are refused here, by name.
// Types that only an item shows, such as a number that the application writes, are reported with the item's record.

/// The types of attributes, by entity and attribute.
#[derive(Debug)]
pub(super) struct KnownTypes<'a> {
    schema: &'a Schema,
    /// The part of a count that each attribute displays.
    numbers: BTreeMap<(String, String), ShownNumber>,
    /// How derivations use the other attributes: a description of the use, and the type.
    used: BTreeMap<(String, String), (String, &'static str)>,
}

#[derive(Clone, Debug)]
struct ShownNumber {
    /// The derivation that displays or sums it.
    by: String,
    /// Its description, such as `is summed by totals`.
    what: String,
    /// Its type: N, or BOOL for a display of existence.
    of: &'static str,
    is_quotient: bool,
}

impl<'a> KnownTypes<'a> {
    /// The types that all derivations determine. Mistakes in a derivation are ignored here and found when it is parsed.
    pub(super) fn of(schema: &'a Schema, derivations: &[(&str, Section<'_>)]) -> Self {
        let mut known = Self { schema, numbers: BTreeMap::new(), used: BTreeMap::new() };
        let is_of_key = |of: &str, name| schema.entity(of).is_some_and(|entity| entity.key.holds(name));
        for (name, section) in derivations {
            known.uses(name, section);
            if let (Some(from), Some(sum)) = (text(section, "from"), text(section, "sum"))
                && !is_of_key(from, sum)
            {
                let number = ShownNumber {
                    by: (*name).to_owned(),
                    what: format!("is summed by {name}"),
                    of: "N",
                    is_quotient: false,
                };
                known.numbers.insert((from.to_owned(), sum.to_owned()), number);
            }
            let kind = text(section, "kind");
            let value = text(section, "value").and_then(|value| value.parse::<Expression>().ok());
            let is_number = match kind {
                Some("calculated") => value.as_ref().is_some_and(|value| value.type_of() == Some("N")),
                kind => matches!(kind, Some("count" | "roll-up" | "unread" | "window")),
            };
            let Some(into) = text(section, "into").filter(|_| is_number) else { continue };
            let shown = section.get("shows").and_then(|entry| entry.pairs().ok()).unwrap_or_default();
            let (entity, attribute) = into.split_once('.').map_or((into, None), |(of, shown)| (of, Some(shown)));
            let shown = shown.iter().map(|(part, shown)| (part.text, shown.text));
            for (part, attribute) in shown.chain(attribute.map(|attribute| ("count", attribute))) {
                let of = if part == "exists" { "BOOL" } else { "N" };
                let number = ShownNumber {
                    by: (*name).to_owned(),
                    what: format!("shows what {name} {}", if kind == Some("count") { "counts" } else { "derives" }),
                    of,
                    is_quotient: part == "average"
                        || kind == Some("calculated") && value.as_ref().is_some_and(Expression::divides),
                };
                known.numbers.insert((entity.to_owned(), attribute.to_owned()), number);
            }
        }
        // A copy may be copied or mirrored again, and the derivations are in any order.
        while derivations.iter().fold(false, |is_more, (_, section)| known.spread(section) || is_more) {}
        known
    }

    /// Adds the attributes that a derivation uses as text, or compares with values of one type.
    fn uses(&mut self, name: &str, section: &Section<'_>) {
        let of_itself = || text(section, "into")?.split_once('.').map(|(of, _)| of);
        let Some(from) = text(section, "from").or_else(of_itself) else { return };
        let mut add = |attribute: &str, what: String, of| {
            self.used.entry((from.to_owned(), attribute.to_owned())).or_insert((what, of));
        };
        if let Some(time) = text(section, "time") {
            add(time, format!("is the time of {name}"), "S");
        }
        let linked = section.get("link").and_then(|entry| entry.pairs().ok()).unwrap_or_default();
        let read = ["sum", "value", "time"].into_iter().filter_map(|key| text(section, key));
        for read in read.chain(linked.iter().map(|(_, from)| from.text)) {
            let expression = read.parse::<Expression>().ok();
            for (path, of, call) in
                expression.iter().flat_map(Expression::taken).filter(|(path, ..)| path.steps.is_empty())
            {
                add(&path.attribute, format!("is taken by `{call}` in {name}"), of);
            }
        }
        let Some(entry) = section.get("where") else { return };
        if let Ok((attribute, _)) = entry.pair() {
            add(attribute.text, format!("is compared with a text by {name}"), "S");
        }
        let condition = entry.text().ok().and_then(|condition| condition.text.parse::<Condition>().ok());
        for (attribute, of) in condition.iter().flat_map(Condition::compared) {
            add(attribute, format!("is compared with a value of type {of} by {name}"), of);
        }
        let taken = condition.iter().flat_map(Condition::operands).flat_map(Expression::taken);
        for (path, of, call) in taken.filter(|(path, ..)| path.steps.is_empty()) {
            add(&path.attribute, format!("is taken by `{call}` in {name}"), of);
        }
    }

    /// Adds the copies and mirrors of the numbers so far. Returns true if there are new ones.
    fn spread(&mut self, section: &Section<'_>) -> bool {
        let (Some(from), Some(to)) = (text(section, "from"), text(section, "to")) else { return false };
        let numbers =
            self.numbers.range((from.to_owned(), String::new())..).take_while(|((entity, _), _)| entity == from);
        let numbers: Vec<(String, ShownNumber)> =
            numbers.map(|((_, name), shown)| (name.clone(), shown.clone())).collect();
        let copied = section.get("attributes").map(|entry| {
            let same = |named: Named<'_>| (named.text.to_owned(), named.text.to_owned());
            let pairs = if entry.is_list() {
                entry.texts().map(|texts| texts.into_iter().map(same).collect())
            } else {
                let pair = |(from, to): (Named<'_>, Named<'_>)| (from.text.to_owned(), to.text.to_owned());
                entry.pairs().map(|pairs| pairs.into_iter().map(pair).collect())
            };
            pairs.unwrap_or_else(|_| Vec::new())
        });
        let except = section.get("except").and_then(|entry| entry.texts().ok()).unwrap_or_default();
        let mut is_more = false;
        for (name, shown) in numbers {
            let names: Vec<String> = match &copied {
                Some(pairs) => pairs.iter().filter(|(from, _)| *from == name).map(|(_, to)| to.clone()).collect(),
                None if except.iter().any(|named| named.text == name) => Vec::new(),
                None => vec![name],
            };
            for name in names {
                is_more |= self.numbers.insert((to.to_owned(), name), shown.clone()).is_none();
            }
        }
        is_more
    }

    /// Refuses an attribute with a number where text is required.
    pub(super) fn refuse(&self, entity: &str, named: &Named<'_>, taken: &str) -> Result<(), ManifestError> {
        let Some(ShownNumber { what, of, .. }) = self.get(entity, named.text) else { return Ok(()) };
        Err(named.place.wrong(format!(
            "{entity}.{} {what} ({of}), and {taken} takes text (S): name an attribute of text",
            named.text
        )))
    }

    /// Refuses an attribute or a field whose type a function does not take.
    pub(super) fn takes(
        &self,
        entity: &Definition,
        path: &DocumentPath,
        (of, call): (&str, &Expression),
        named: &Named<'_>,
    ) -> Result<(), ManifestError> {
        let name = &path.attribute;
        let of_key = || entity.key.holds(name).then(|| ("is in the key".to_owned(), of_field(entity, name)));
        let given = Some(())
            .filter(|()| path.steps.is_empty())
            .and_then(|()| of_key().or_else(|| self.of_entity(entity, name)));
        let Some((what, given)) = given.filter(|(_, given)| *given != of) else { return Ok(()) };
        let hint = match (given, of) {
            ("N", "S") => format!(": write text({name}) for its text"),
            ("S", "N") => format!(": write number({name}) for a number that is stored as text"),
            _ => String::new(),
        };
        Err(named.place.wrong(format!("{}.{name} {what} ({given}), and `{call}` takes {of}{hint}", entity.name)))
    }

    /// Refuses a comparison of a field of the key, of a number, or of a display of existence, with a value of another
    /// type.
    pub(super) fn compare(&self, entity: &Definition, named: &Named<'_>, with: &str) -> Result<(), ManifestError> {
        if entity.key.holds(named.text) {
            let of = of_field(entity, named.text);
            let what = format!(
                "{}.{} is in the key ({of}), and is compared with a value of type {with}: values of different types are \
                 never equal, so compare it with one of type {of}",
                entity.name, named.text
            );
            return if of == with { Ok(()) } else { Err(named.place.wrong(what)) };
        }
        let entity = entity.name.as_str();
        match self.get(entity, named.text) {
            Some(ShownNumber { what, of, .. }) if *of != with => Err(named.place.wrong(format!(
                "{entity}.{} {what} ({of}), and is compared with a value of type {with}: values of different types are never \
                 equal, so compare it with one of type {of}",
                named.text
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses an attribute or a field with a number or bytes where text is required for this purpose.
    pub(super) fn text(&self, entity: &Definition, named: &Named<'_>, taken: &str) -> Result<(), ManifestError> {
        let is_other = |(_, of): &(String, &str)| *of != "S";
        let of_key = || {
            let of = if entity.key.holds_number(named.text) { KeyType::N } else { entity.key.type_of(named.text) };
            (of != KeyType::S).then(|| ("is in the key".to_owned(), name_of(of)))
        };
        let Some((what, of)) = self.of_entity(entity, named.text).filter(is_other).or_else(of_key) else {
            return Ok(());
        };
        Err(named.place.wrong(format!("{}.{} {what} ({of}), and {taken}", entity.name, named.text)))
    }

    /// Refuses an attribute with a single value where one with parts is required for this purpose.
    pub(super) fn with_parts(
        &self,
        entity: &Definition,
        named: &Named<'_>,
        attribute: &str,
        taken: &str,
    ) -> Result<(), ManifestError> {
        let Some((what, of)) = self.of_entity(entity, attribute) else { return Ok(()) };
        Err(named.place.wrong(format!("{}.{attribute} {what} ({of}), and {taken}", entity.name)))
    }

    /// The type of an attribute that is not in the entity's key, with its origin: its displays, an index, or its uses.
    fn of_entity(&self, entity: &Definition, attribute: &str) -> Option<(String, &'static str)> {
        let shown = self.get(&entity.name, attribute).map(|shown| (shown.what.clone(), shown.of));
        let by_index = || {
            let (index, of) = tables::type_by_index(self.schema, entity, attribute)?;
            Some((format!("is in the key of the index {index}"), name_of(of)))
        };
        let in_form = || {
            let index = entity.indexes.iter().find(|index| index.key.holds(attribute))?;
            let of = if index.key.holds_number(attribute) { "N" } else { "S" };
            Some((format!("is in the key of the index {}", index.index), of))
        };
        let used = || self.used.get(&(entity.name.clone(), attribute.to_owned())).cloned();
        shown.or_else(by_index).or_else(in_form).or_else(used)
    }

    /// Refuses a number in the key of an index over plain attributes that needs text: DynamoDB would refuse the item.
    pub(super) fn fit_indexes(&self, root: &Section<'_>) -> Result<(), ManifestError> {
        for ((entity, attribute), ShownNumber { by, what, of, .. }) in &self.numbers {
            let definition = self.schema.entity(entity);
            let typed = definition.and_then(|it| tables::type_by_index(self.schema, it, attribute));
            if let Some((index, wanted)) = typed.filter(|(_, wanted)| format!("{wanted:?}") != *of) {
                let instead = match *of {
                    "BOOL" => "leave it out of that key".to_owned(),
                    of => format!("declare it there as {{ name = \"{attribute}\", type = \"{of}\" }}"),
                };
                let what =
                    format!("{entity}.{attribute} {what} ({of}), and the index {index} has it as type {wanted:?}");
                let declared = root.sections("derivation")?;
                let place =
                    declared.iter().find(|(name, _)| name == by).map_or(&root.place, |(_, section)| &section.place);
                return Err(place.wrong(format!("{what}: {instead}")));
            }
        }
        Ok(())
    }

    /// True if it is an average or another quotient, which has decimal places.
    pub(super) fn is_quotient(&self, entity: &str, attribute: &str) -> bool {
        self.get(entity, attribute).is_some_and(|shown| shown.is_quotient)
    }

    fn get(&self, entity: &str, attribute: &str) -> Option<&ShownNumber> {
        self.numbers.get(&(entity.to_owned(), attribute.to_owned()))
    }
}

/// The type of a field of the key in an expression: N for a number of a form too.
fn of_field(entity: &Definition, name: &str) -> &'static str {
    if entity.key.holds_number(name) { "N" } else { name_of(entity.key.type_of(name)) }
}

const fn name_of(of: KeyType) -> &'static str {
    match of {
        KeyType::S => "S",
        KeyType::N => "N",
        KeyType::B => "B",
    }
}

fn text<'a>(section: &Section<'a>, key: &str) -> Option<&'a str> {
    Some(section.get(key)?.text().ok()?.text)
}
