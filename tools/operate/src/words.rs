//! Text formatting that the command line and the console share.

use std::borrow::Cow;

use derive::{
    catalogue::Catalogue,
    change::Images,
    kind::Shape,
    position::DerivationAt,
    schema::Schema,
    write::{Action, Table, Update},
};
use engine::account::Commit;
use jiff::Timestamp;
use keys::{
    counter::{self, CounterKey},
    entry::ENTRIES,
    job::JobKey,
    key::{Key, is_hidden},
};
use serde_dynamo::AttributeValue;

/// A number of things, in the singular or the plural.
#[must_use]
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A time in UTC, from milliseconds since the epoch, such as `2024-01-15T10:30:00.417Z`.
#[must_use]
pub fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("{ms} ms"), |time| time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
}

/// The text with characters that would control a terminal as JSON escapes, so JSON stays JSON.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let escaped = |c: char| if is_escaped(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(text.chars().map(escaped).collect())
}

/// DynamoDB's name of the event.
#[must_use]
pub fn event(images: &Images) -> &'static str {
    match images {
        Images::Inserted(_) => "INSERT",
        Images::Modified { .. } => "MODIFY",
        Images::Removed(_) | Images::Expired(_) => "REMOVE",
    }
}

// ---- A write of the functions, by derivation and item ----

/// What a derivation did to one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenEffect {
    /// It counted, or set numbers, such as `+1` or `follower-count = 3`.
    Number {
        /// The item that the number is about; for a counter, its target.
        item: Key,
        /// The number.
        number: String,
    },
    /// An action such as `copied Name to`, which may apply to many items alike.
    Alike {
        /// The action, up to the item.
        what: String,
        /// Entity of the item.
        entity: String,
    },
}

/// What a write did for each of its derivations, in the order of the catalogue. Writes to a job's own item or the
/// ledger, and writes that changed nothing, have none.
#[must_use]
pub fn written(schema: &Schema, catalogue: &Catalogue, commit: &Commit) -> Vec<(DerivationAt, WrittenEffect)> {
    if commit.table != Table::Main || JobKey::parse(&commit.key).is_some() {
        return Vec::new();
    }
    let mut derivations: Vec<DerivationAt> =
        commit.derivations.iter().filter_map(|name| catalogue.called(name)).collect();
    derivations.sort_unstable();
    let words = Words { schema, catalogue, commit };
    let effects = derivations.iter().enumerate().filter_map(|(n, at)| Some((*at, words.effect(*at, n == 0)?)));
    effects.collect()
}

struct Words<'a> {
    schema: &'a Schema,
    catalogue: &'a Catalogue,
    commit: &'a Commit,
}

impl Words<'_> {
    /// What the write did for a derivation. An effect on the whole item is reported only for the first derivation.
    fn effect(&self, at: DerivationAt, is_first: bool) -> Option<WrittenEffect> {
        let Commit { key, action, is_correction, .. } = self.commit;
        let kind = &self.catalogue.derivation(at)?.kind;
        let whole =
            |what: &str| is_first.then(|| WrittenEffect::Alike { what: what.to_owned(), entity: self.entity(at) });
        match (action.as_ref()?, kind.shape()) {
            (Action::Update(update), Shape::Count(_)) => {
                let item = CounterKey::parse(key)?.target;
                let sum = number(update, counter::SUM).map(|sum| format!(", sum {}", signed(sum)));
                let count = number(update, counter::VALUE).map(signed)?;
                Some(WrittenEffect::Number { item, number: format!("{count}{}", sum.unwrap_or_default()) })
            }
            (Action::Update(update), Shape::Rollup(rollup)) => {
                let n = number(update, &rollup.form.count)?.parse().unwrap_or(0);
                Some(WrittenEffect::Number { item: key.clone(), number: format!("+{}", counted(n, "value")) })
            }
            (Action::Put(_), _) if *is_correction => whole("restored"),
            (Action::Put(_), _) => whole("created"),
            (Action::Delete, _) => whole("removed"),
            (Action::Update(update), shape) => {
                self.updated(at, update, matches!(shape, Shape::Mirror(_)) || kind.name() == "copy")
            }
            (Action::Check, _) => None,
        }
    }

    fn updated(&self, at: DerivationAt, update: &Update, is_copy: bool) -> Option<WrittenEffect> {
        let entity = self.entity(at);
        let parts = self.catalogue.writes(at);
        let is_its = |name: &str| parts.iter().any(|part| part.entity == entity && part.of.holds(name));
        let set: Vec<(&str, &AttributeValue)> = update.set.iter().filter(|(name, _)| is_its(name)).collect();
        let removed: Vec<&str> = update.remove.iter().map(String::as_str).filter(|name| is_its(name)).collect();
        let numbers: Option<Vec<String>> = set
            .iter()
            .map(|(name, value)| match value {
                AttributeValue::N(number) => Some(format!("{name} = {number}")),
                _ => None,
            })
            .collect();
        if let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty() && !is_copy) {
            return Some(WrittenEffect::Number { item: self.commit.key.clone(), number: numbers.join(", ") });
        }
        if entity.ends_with(ENTRIES) {
            return Some(WrittenEffect::Alike { what: "updated".to_owned(), entity: "entry".to_owned() });
        }
        let names = set.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let removed = removed.join(", ");
        let what = match (names.is_empty(), removed.is_empty()) {
            (true, true) => return None,
            (true, false) => format!("removed {removed} from"),
            (false, _) if self.commit.is_correction => format!("restored {names} of"),
            (false, _) if is_copy => format!("copied {names} to"),
            (false, _) => format!("set {names} of"),
        };
        Some(WrittenEffect::Alike { what, entity })
    }

    /// The item's entity, among those the derivation writes; for an item that a cascade deletes, the one whose key form
    /// fits.
    fn entity(&self, at: DerivationAt) -> String {
        let is_of = |name: &str| {
            self.schema.entity(name).is_some_and(|entity| entity.key.parse_key(&self.commit.key).is_some())
        };
        let mut entities = self.catalogue.writes(at).iter().map(|part| part.entity.as_str());
        let is_counter = CounterKey::parse(&self.commit.key).is_some();
        let any = || self.schema.entities().map(|entity| entity.name.as_str()).find(|name| is_of(name));
        let own = entities.find(|name| is_of(name)).or_else(|| is_counter.then_some(counter::COUNTER)).or_else(any);
        own.unwrap_or_default().to_owned()
    }
}

fn number<'a>(update: &'a Update, name: &str) -> Option<&'a str> {
    match update.add.get(name) {
        Some(AttributeValue::N(number)) => Some(number),
        _ => None,
    }
}

fn signed(number: &str) -> String {
    if number.starts_with('-') { number.to_owned() } else { format!("+{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time(1_705_314_600_417), "2024-01-15T10:30:00.417Z");
        assert_eq!(time(1_705_314_600_000), "2024-01-15T10:30:00.000Z");
        assert_eq!(time(u64::MAX), format!("{} ms", u64::MAX));
    }
}
