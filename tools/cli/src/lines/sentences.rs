//! What stands in the way, in sentences, each said once until it is over.

use std::collections::{BTreeMap, BTreeSet};

use derive::schema::Schema;
use engine::{
    account::{Account, ListedItem, MuchUnreadable},
    batch::Handled,
    look::listing::ALL_DERIVATIONS,
};
use functions::handler::Function;
use keys::key::Key;

use super::{NAMED_MAX, ignored::IgnoredTypes};

/// Items that are remembered as told; after more, the first may be told again.
const TOLD_MAX: usize = 10_000;

/// What was said, and is not over.
#[derive(Debug, Default)]
pub(super) struct Said {
    ignored: IgnoredTypes,
    /// Items that cannot be read, each with the derivation and the reason.
    unreadable: BTreeSet<(Key, String, String)>,
    is_braked: bool,
    /// Why a mapping's last invocation failed.
    failures: BTreeMap<String, String>,
    /// Why a function's last batch is not done.
    undone: BTreeMap<String, String>,
    troubles: BTreeSet<String>,
    is_gone: bool,
}

impl Said {
    /// What there is to say of a batch.
    pub(super) fn new_of(&mut self, schema: &Schema, function: Function, handled: &Handled) -> Vec<String> {
        let Handled { account, changes, .. } = handled;
        let mut sentences: Vec<String> =
            changes.iter().flatten().filter_map(|change| self.ignored.new_of(schema, change)).collect();
        sentences.extend(self.unreadable(&account.unreadable));
        sentences.extend(account.braked.and_then(|much| self.braked(much)));
        sentences.extend(parked(account, handled));
        sentences.extend(refused(account));
        sentences.extend(self.undone(function, account));
        sentences
    }

    /// A sentence for each derivation and reason.
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
                "warning: {n_unreadable} of {n_items} items of a batch cannot be read; in Lambda the brake would hold it: \
                 see UNREADABLE_PERCENT_MAX in docs/settings.md"
            )
        })
    }

    fn undone(&mut self, function: Function, account: &Account) -> Option<String> {
        let function = function.to_string();
        let Some(why) = account.undone.values().next() else {
            self.undone.remove(&function);
            return None;
        };
        let before = self.undone.insert(function.clone(), why.clone());
        let is_new = !self.is_gone && before.as_ref() != Some(why);
        is_new.then(|| format!("{function} tries a batch again: {why}"))
    }

    /// A failed invocation, or one that did not fail.
    pub(super) fn failed(&mut self, mapping: &str, why: Option<&str>) -> Option<String> {
        let Some(why) = why else {
            self.failures.remove(mapping);
            return None;
        };
        let before = self.failures.insert(mapping.to_owned(), why.to_owned());
        let is_new = !self.is_gone && before.as_deref() != Some(why);
        is_new.then(|| format!("{mapping} failed, and tries again: {why}"))
    }

    /// Does it change whether the database responds?
    pub(super) fn responds(&mut self, is_so: bool) -> bool {
        std::mem::replace(&mut self.is_gone, !is_so) == is_so
    }

    /// Is it to be said?
    pub(super) fn is_new_trouble(&mut self, line: &str) -> bool {
        if self.troubles.len() > TOLD_MAX {
            self.troubles.clear();
        }
        !self.is_gone && self.troubles.insert(line.to_owned())
    }
}

/// Changes that were parked, the first with their items.
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
        let mut said = Said::default();
        let why = Some("it is full");
        let told: Vec<bool> =
            [why, why, None, why, Some("it is gone")].map(|why| said.failed("propagate", why).is_some()).to_vec();
        assert_eq!(told, [true, false, false, true, true]);
        let told: Vec<bool> = [true, false, false, true, true].map(|is_so| said.responds(is_so)).to_vec();
        assert_eq!(told, [false, true, false, true, false]);
        said.responds(false);
        assert!(!said.is_new_trouble("the stream cannot be listed"), "all follows from that");
        said.responds(true);
        assert!(said.is_new_trouble("the stream cannot be listed"));
        assert!(!said.is_new_trouble("the stream cannot be listed"));
    }
}
