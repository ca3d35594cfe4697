//! Sentences about problems. Each is printed once until the problem is over.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use derive::{change::Change, schema::Schema};
use engine::{
    account::{Account, ListedItem, MuchUnreadable},
    batch::Handled,
    look::listing::ALL_DERIVATIONS,
};
use functions::handler::Function;
use keys::key::Key;

use super::NAMED_MAX;
use crate::lines::IgnoredTypes;

/// Maximum number of remembered reports of one sort. Beyond it they are forgotten, so a problem may be reported again.
const TOLD_MAX: usize = 10_000;

/// A problem is over if its reason has not occurred for this long: longer than any wait between two attempts.
const OVER_AFTER: Duration = Duration::from_mins(5);

/// When each reason occurred last, by function or mapping. Concurrent batches take turns, so the success of one does
/// not end the problem of another.
#[derive(Debug, Default)]
struct Reasons(BTreeMap<(String, String), Instant>);

impl Reasons {
    /// Notes a reason. True if it must be reported.
    fn is_new(&mut self, who: &str, why: &str, now: Instant) -> bool {
        if self.0.len() > TOLD_MAX {
            self.0.clear();
        }
        let before = self.0.insert((who.to_owned(), why.to_owned()), now);
        before.is_none_or(|before| now.duration_since(before) > OVER_AFTER)
    }
}

/// The reported problems that are not over.
#[derive(Debug, Default)]
pub(super) struct Said {
    ignored: IgnoredTypes,
    /// Items that cannot be read, each with the derivation and the reason.
    unreadable: BTreeSet<(Key, String, String)>,
    is_braked: bool,
    /// Reasons of failed invocations, by mapping.
    failures: Reasons,
    /// Reasons of unfinished batches, by function.
    undone: Reasons,
    troubles: BTreeSet<String>,
    is_gone: bool,
}

impl Said {
    /// The new sentences about a batch.
    pub(super) fn new_of(&mut self, schema: &Schema, function: Function, handled: &Handled) -> Vec<String> {
        let Handled { account, changes, .. } = handled;
        let mut sentences: Vec<String> =
            changes.iter().flatten().filter_map(|change| self.ignored(schema, change)).collect();
        sentences.extend(self.unreadable(&account.unreadable));
        sentences.extend(account.braked.and_then(|much| self.braked(much)));
        sentences.extend(parked(account, handled));
        sentences.extend(refused(account));
        sentences.extend(self.undone(function, account));
        sentences
    }

    /// The sentence about the item of a change, if it is ignored and its type is new.
    pub(super) fn ignored(&mut self, schema: &Schema, change: &Change) -> Option<String> {
        self.ignored.new_of(schema, change)
    }

    /// One sentence for each derivation and reason.
    fn unreadable(&mut self, listed: &[ListedItem]) -> Vec<String> {
        if self.unreadable.len() > TOLD_MAX {
            self.unreadable.clear();
        }
        let mut by_reason: BTreeMap<(&str, String), Vec<&Key>> = BTreeMap::new();
        for ListedItem { key, derivation, why, .. } in listed {
            let why = why.to_string();
            if self.unreadable.insert((key.clone(), derivation.clone(), why.clone())) {
                by_reason.entry((derivation, why)).or_default().push(key);
            }
        }
        let sentence = |((derivation, why), keys): ((&str, String), Vec<&Key>)| {
            let by = if derivation == ALL_DERIVATIONS { "any derivation" } else { derivation };
            match keys.as_slice() {
                [key] => format!("{key} cannot be read by {by}: {why}"),
                keys => {
                    let named: Vec<String> = keys.iter().take(NAMED_MAX).map(ToString::to_string).collect();
                    let n = keys.len();
                    format!("{n} items cannot be read by {by}: {why}; among them {}", named.join(", "))
                }
            }
        };
        by_reason.into_iter().map(sentence).collect()
    }

    fn braked(&mut self, MuchUnreadable { n_unreadable, n_items }: MuchUnreadable) -> Option<String> {
        (!std::mem::replace(&mut self.is_braked, true)).then(|| {
            format!(
                "warning: {n_unreadable} of {n_items} items of a batch cannot be read; in Lambda the circuit breaker would stop it: \
                 see the setting UNREADABLE_PERCENT_MAX"
            )
        })
    }

    fn undone(&mut self, function: Function, account: &Account) -> Option<String> {
        let why = account.undone.values().next()?;
        let is_new = self.undone.is_new(&function.to_string(), why, Instant::now()) && !self.is_gone;
        is_new.then(|| format!("{function} tries a batch again: {why}"))
    }

    /// The sentence about a failed invocation, if its reason is new.
    pub(super) fn failed(&mut self, mapping: &str, why: &str) -> Option<String> {
        let is_new = self.failures.is_new(mapping, why, Instant::now()) && !self.is_gone;
        is_new.then(|| format!("{mapping} failed, and tries again: {why}"))
    }

    /// Notes whether the database responds. True if that has changed.
    pub(super) fn responds(&mut self, is_so: bool) -> bool {
        std::mem::replace(&mut self.is_gone, !is_so) == is_so
    }

    /// True if the problem must be reported.
    pub(super) fn is_new_trouble(&mut self, line: &str) -> bool {
        if self.troubles.len() > TOLD_MAX {
            self.troubles.clear();
        }
        !self.is_gone && self.troubles.insert(line.to_owned())
    }
}

/// Sentences about parked changes: the first ones with their items, then the number of the rest.
fn parked(account: &Account, handled: &Handled) -> Vec<String> {
    let item = |at: usize| handled.changes.get(at)?.as_ref().map(|change| format!(" of {}", change.key));
    let mut sentences: Vec<String> = Vec::new();
    for parked in account.parked.iter().take(NAMED_MAX) {
        let of = item(parked.position.0).unwrap_or_default();
        sentences.push(format!("parked the change {}{of}: {}", parked.id, parked.cause));
    }
    let n_more = account.parked.len().saturating_sub(NAMED_MAX);
    if n_more > 0 {
        sentences.push(format!("parked {n_more} more; `ripple parked` lists them"));
    }
    sentences
}

fn refused(account: &Account) -> Option<String> {
    let first = account.refused.first()?;
    let n_more = account.refused.len() - 1;
    let more = if n_more == 0 { String::new() } else { format!(", and {n_more} more") };
    Some(format!("refused the change {}{more}: {}; `ripple parked` lists the counts to recount", first.id, first.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_said_once_and_again_after_it_was_over() {
        let (mut reasons, start) = (Reasons::default(), Instant::now());
        // Two concurrent batches fail in turns, for different reasons.
        let mut is_new = |why, after_s| reasons.is_new("propagate", why, start + Duration::from_secs(after_s));
        let told = [("a", 0), ("b", 1), ("a", 200), ("b", 201), ("a", 400), ("b", 502)].map(|(why, s)| is_new(why, s));
        assert_eq!(told, [true, true, false, false, false, true]);
        assert!(reasons.is_new("aggregate", "a", start), "another mapping");
        let mut said = Said::default();
        let told: Vec<bool> = [true, false, false, true, true].map(|is_so| said.responds(is_so)).to_vec();
        assert_eq!(told, [false, true, false, true, false]);
        said.responds(false);
        assert!(!said.is_new_trouble("the stream cannot be listed"), "all follows from that");
        said.responds(true);
        assert!(said.is_new_trouble("the stream cannot be listed"));
        assert!(!said.is_new_trouble("the stream cannot be listed"));
    }
}
