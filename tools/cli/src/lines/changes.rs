//! Lines of changes: derivation, effect and item.
//!
//! The first numbers of each derivation have a line each. The same write to many items is one line.

use std::collections::BTreeMap;

use derive::{catalogue::Catalogue, position::DerivationAt, schema::Schema};
use engine::account::Commit;
use functions::config::Mode;
use keys::key::Key;
use operate::written::{WrittenEffect, written};

use super::{COLUMNS_MAX, NAMED_MAX};

/// The subject of a line: the derivation, its effect, and the entity of the items.
type Deed = (DerivationAt, String, String);

/// The lines of a batch's writes, in the order of the derivations. An observing function writes no counters, so what it
/// would display is wrong.
pub(super) fn lines(schema: &Schema, catalogue: &Catalogue, commits: &[Commit], mode: Mode) -> Vec<String> {
    let is_display = |at| catalogue.derivation(at).is_some_and(|it| it.kind.name() == "display");
    let mut deeds: BTreeMap<Deed, Vec<(Key, String)>> = BTreeMap::new();
    for commit in commits {
        for (at, effect) in written(schema, catalogue, commit) {
            if mode == Mode::Observe && is_display(at) {
                continue;
            }
            let (deed, item) = match effect {
                WrittenEffect::Number { item, number } => ((at, String::new(), String::new()), (item, number)),
                WrittenEffect::Alike { what, entity } => ((at, what, entity), (commit.key.clone(), String::new())),
            };
            deeds.entry(deed).or_default().push(item);
        }
    }
    deeds.iter().flat_map(|((at, what, entity), items)| of_deed(catalogue.label(*at), what, entity, items)).collect()
}

fn of_deed(name: &str, what: &str, entity: &str, items: &[(Key, String)]) -> Vec<String> {
    match items {
        [(key, _)] if !what.is_empty() => vec![fitted(&format!("{name}  {what} {entity} "), key, "")],
        _ if !what.is_empty() => vec![cut(&format!("{name}  {what} {} {entity} items", items.len()), COLUMNS_MAX)],
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

/// A line whose key is cut if the line does not fit.
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
