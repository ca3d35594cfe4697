//! Attributes that hold numbers, as far as a manifest says so: displays of counts, what is summed, and what copies and mirrors
//! make of them.
//!
//! A link and a `where` take texts. DynamoDB keeps a number and a text of the same digits apart, so an attribute of a number
//! gives no key, and equals no text. It is refused by name here. What only an item shows, such as a number that the
//! application writes, is reported with the record of that item.

use std::collections::BTreeMap;

use derive::schema::Schema;

use crate::{
    error::ManifestError,
    section::{Named, Section},
    tables,
};

/// What each attribute shows of a count, by entity and attribute.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<(String, String), ShownNumber>);

#[derive(Clone, Debug)]
struct ShownNumber {
    /// The derivation that shows or sums it.
    by: String,
    /// What it is, as in `is summed by totals`.
    what: String,
    /// Its type: N, or BOOL for what shows that there is anything.
    of: &'static str,
    is_average: bool,
}

impl Numbers {
    /// The numbers of all derivations. What is wrong with a derivation is found when it is read, and passed over here.
    pub(super) fn of(derivations: &[(&str, Section<'_>)]) -> Self {
        let mut numbers = Self::default();
        for (name, section) in derivations {
            if let (Some(from), Some(sum)) = (text(section, "from"), text(section, "sum")) {
                let number = ShownNumber {
                    by: (*name).to_owned(),
                    what: format!("is summed by {name}"),
                    of: "N",
                    is_average: false,
                };
                numbers.0.insert((from.to_owned(), sum.to_owned()), number);
            }
            let Some(into) = text(section, "into").filter(|_| text(section, "kind") != Some("path")) else { continue };
            let shown = section.get("shows").and_then(|entry| entry.pairs().ok()).unwrap_or_default();
            let (entity, attribute) = into.split_once('.').map_or((into, None), |(of, shown)| (of, Some(shown)));
            let shown = shown.iter().map(|(part, shown)| (part.text, shown.text));
            for (part, attribute) in shown.chain(attribute.map(|attribute| ("count", attribute))) {
                let of = if part == "exists" { "BOOL" } else { "N" };
                let number = ShownNumber {
                    by: (*name).to_owned(),
                    what: format!("shows what {name} counts"),
                    of,
                    is_average: part == "average",
                };
                numbers.0.insert((entity.to_owned(), attribute.to_owned()), number);
            }
        }
        // A copy may be copied or mirrored again, and the derivations stand in any order.
        while derivations.iter().any(|(_, section)| numbers.spread(section)) {}
        numbers
    }

    /// Adds what a copy or a mirror makes of the numbers so far. Says whether that is more.
    fn spread(&mut self, section: &Section<'_>) -> bool {
        let (Some(from), Some(to)) = (text(section, "from"), text(section, "to")) else { return false };
        let held = self.0.iter().filter(|((entity, _), _)| entity == from);
        let held: Vec<(String, ShownNumber)> = held.map(|((_, name), shown)| (name.clone(), shown.clone())).collect();
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
        for (name, shown) in held {
            let names: Vec<String> = match &copied {
                Some(pairs) => pairs.iter().filter(|(from, _)| *from == name).map(|(_, to)| to.clone()).collect(),
                None if except.iter().any(|named| named.text == name) => Vec::new(),
                None => vec![name],
            };
            for name in names {
                is_more |= self.0.insert((to.to_owned(), name), shown.clone()).is_none();
            }
        }
        is_more
    }

    /// Refuses an attribute of an entity that holds a number, where a text is taken.
    pub(super) fn refuse(&self, entity: &str, named: &Named<'_>, taken: &str) -> Result<(), ManifestError> {
        let Some(ShownNumber { what, of, .. }) = self.get(entity, named.text) else { return Ok(()) };
        Err(named.place.wrong(format!(
            "{entity}.{} {what} ({of}), and {taken} takes text (S): name an attribute of text",
            named.text
        )))
    }

    /// Refuses the comparison of what holds a number, or says whether there is anything, with a value of another type.
    pub(super) fn compare(&self, entity: &str, named: &Named<'_>, with: &str) -> Result<(), ManifestError> {
        match self.get(entity, named.text) {
            Some(ShownNumber { what, of, .. }) if *of != with => Err(named.place.wrong(format!(
                "{entity}.{} {what} ({of}), and is compared with a value of type {with}: values of different types are never \
                 equal, so compare it with one of type {of}",
                named.text
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a number in the key of an index over attributes as they are that takes text there: DynamoDB would refuse it.
    pub(super) fn fit_indexes(&self, schema: &Schema, root: &Section<'_>) -> Result<(), ManifestError> {
        for ((entity, attribute), ShownNumber { by, what, of, .. }) in &self.0 {
            let definition = schema.entity(entity);
            let typed = definition.and_then(|it| tables::type_by_index(schema, it, attribute));
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

    /// Is it an average, which has digits behind the point?
    pub(super) fn is_average(&self, entity: &str, attribute: &str) -> bool {
        self.get(entity, attribute).is_some_and(|shown| shown.is_average)
    }

    fn get(&self, entity: &str, attribute: &str) -> Option<&ShownNumber> {
        self.0.get(&(entity.to_owned(), attribute.to_owned()))
    }
}

fn text<'a>(section: &Section<'a>, key: &str) -> Option<&'a str> {
    Some(section.get(key)?.text().ok()?.text)
}
