//! Lines of changes: derivation, effect and item.
//!
//! Numbers are told one by one, the first of each derivation; what is written alike into many items is one line.

use std::collections::BTreeMap;

use derive::{
    catalogue::Catalogue,
    kind::shape::Shape,
    position::DerivationAt,
    schema::Schema,
    write::{Action, Table, Update},
};
use engine::account::Commit;
use keys::{
    counter::{self, CounterKey},
    job::JobKey,
    key::Key,
};
use serde_dynamo::AttributeValue;

use super::{COLUMNS_MAX, NAMED_MAX, counted};

/// What a line is about: a derivation, what it did, and to items of which entity.
type Deed = (DerivationAt, String, String);

/// What a derivation did to one item.
enum ItemEffect {
    /// This number of this item.
    Number(Key, String),
    /// This, which it may have done to many.
    Alike(String, String),
}

/// Makes the lines.
pub(super) struct ChangeLines<'a> {
    schema: &'a Schema,
    catalogue: &'a Catalogue,
}

impl<'a> ChangeLines<'a> {
    pub(super) fn new(schema: &'a Schema, catalogue: &'a Catalogue) -> Self {
        Self { schema, catalogue }
    }

    /// The lines of the writes of a batch, in the order of the derivations.
    pub(super) fn of(&self, commits: &[Commit]) -> Vec<String> {
        let mut deeds: BTreeMap<Deed, Vec<(Key, String)>> = BTreeMap::new();
        for commit in commits.iter().filter(|commit| commit.table == Table::Main) {
            if JobKey::parse(&commit.key).is_some() {
                continue;
            }
            let mut derivations: Vec<DerivationAt> =
                commit.derivations.iter().filter_map(|name| self.catalogue.position(name)).collect();
            derivations.sort_unstable();
            for (n, at) in derivations.into_iter().enumerate() {
                match self.effect(commit, at, n == 0) {
                    Some(ItemEffect::Number(key, number)) => {
                        deeds.entry((at, String::new(), String::new())).or_default().push((key, number));
                    }
                    Some(ItemEffect::Alike(what, entity)) => {
                        deeds.entry((at, what, entity)).or_default().push((commit.key.clone(), String::new()));
                    }
                    None => {}
                }
            }
        }
        deeds.iter().flat_map(|(deed, items)| self.lines(deed, items)).collect()
    }

    fn lines(&self, (at, what, entity): &Deed, items: &[(Key, String)]) -> Vec<String> {
        let name = self.catalogue.name(*at);
        match items {
            [(key, _)] if !what.is_empty() => vec![fitted(&format!("{name}  {what} {entity} "), key, "")],
            _ if !what.is_empty() => {
                vec![cut(&format!("{name}  {what} {} {entity} items", items.len()), COLUMNS_MAX)]
            }
            _ => {
                let first = items.iter().take(NAMED_MAX);
                let mut lines: Vec<String> =
                    first.map(|(key, number)| fitted(&format!("{name}  "), key, &format!("  {number}"))).collect();
                let n_more = items.len().saturating_sub(NAMED_MAX);
                lines.extend((n_more > 0).then(|| cut(&format!("{name}  {n_more} more"), COLUMNS_MAX)));
                lines
            }
        }
    }

    fn effect(&self, commit: &Commit, at: DerivationAt, is_first: bool) -> Option<ItemEffect> {
        let kind = &self.catalogue.derivation(at)?.kind;
        let entity = self.entity(at, &commit.key);
        let alike = |what: &str| is_first.then(|| ItemEffect::Alike(what.to_owned(), entity.clone()));
        match (commit.action.as_ref()?, kind.shape()) {
            (Action::Update(update), Shape::Count(_)) => {
                let target = CounterKey::parse(&commit.key)?.target;
                let sum = number(update, counter::SUM).map(|sum| format!(", sum {}", signed(sum)));
                let count = number(update, counter::VALUE).map(signed)?;
                Some(ItemEffect::Number(target, format!("{count}{}", sum.unwrap_or_default())))
            }
            (Action::Update(update), Shape::Rollup(rollup)) => {
                let n = number(update, &rollup.form.count)?.parse().unwrap_or(0);
                Some(ItemEffect::Number(commit.key.clone(), format!("+{}", counted(n, "value"))))
            }
            (Action::Put(_), _) if commit.is_correction => alike("put back"),
            (Action::Put(_), _) => alike("made"),
            (Action::Delete, _) => alike("removed"),
            (Action::Update(update), shape) => {
                let is_copy = matches!(shape, Shape::Mirror(_)) || kind.name() == "copy";
                self.updated(commit, at, update, is_copy)
            }
            (Action::Check, _) => None,
        }
    }

    /// What an update did for one of its derivations.
    fn updated(&self, commit: &Commit, at: DerivationAt, update: &Update, is_copy: bool) -> Option<ItemEffect> {
        let entity = self.entity(at, &commit.key);
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
            return Some(ItemEffect::Number(commit.key.clone(), numbers.join(", ")));
        }
        let names = set.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let removed = removed.join(", ");
        let what = match (names.is_empty(), removed.is_empty()) {
            (true, true) => return None,
            (true, false) => format!("removed {removed} from"),
            (false, _) if commit.is_correction => format!("put back {names} of"),
            (false, _) if is_copy => format!("copied {names} to"),
            (false, _) => format!("set {names} of"),
        };
        Some(ItemEffect::Alike(what, entity))
    }

    /// The entity of an item that a derivation wrote.
    fn entity(&self, at: DerivationAt, key: &Key) -> String {
        let is_of = |name: &str| self.schema.entity(name).is_some_and(|entity| entity.key.parse_key(key).is_some());
        let mut entities = self.catalogue.writes(at).iter().map(|part| part.entity.as_str());
        entities.find(|name| is_of(name)).unwrap_or_default().to_owned()
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

/// A line in which the key gives way if it does not fit.
fn fitted(start: &str, key: &Key, end: &str) -> String {
    let left = COLUMNS_MAX.saturating_sub(start.chars().count() + end.chars().count());
    cut(&format!("{start}{}{end}", cut(&key.to_string(), left.max(NAMED_MAX))), COLUMNS_MAX)
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_key_gives_way_to_the_number() {
        let key = Key::new("USER#".repeat(30), "PROFILE");
        let line = fitted("follower-count  ", &key, "  +1");
        assert_eq!(line.chars().count(), COLUMNS_MAX);
        assert!(line.ends_with("…  +1"), "{line}");
        assert_eq!(fitted("a  ", &Key::new("b", "c"), "  +1"), "a  b / c  +1");
    }
}
