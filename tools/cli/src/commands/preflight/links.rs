//! Checks whether the links of counts lead to existing items. A link with wrong keys counts for items that do not
//! exist, without an error.

use std::collections::BTreeSet;

use derive::{kind::Shape, position::DerivationAt, write::Table};
use keys::{counter::CounterKey, key::Key};
use operate::objects::key;
use serde_json::{Value, json};
use store::Store as _;

use super::sample::SampledTable;
use crate::opened::Opened;

/// Maximum number of targets to check for each derivation.
const CHECKED_MAX: usize = 100;

/// Maximum number of missing targets to name for each derivation.
const EXAMPLES: usize = 3;

/// The checked targets of a derivation.
pub(super) struct CheckedLink {
    derivation: String,
    n_checked: usize,
    /// Targets that do not exist.
    missing: Vec<Key>,
}

impl CheckedLink {
    /// Checks the targets of the counts of the sampled items. Derived targets are skipped, because they need not exist
    /// yet.
    pub(super) async fn check_all(opened: &Opened, sampled: &[SampledTable]) -> anyhow::Result<Vec<Self>> {
        let mut links = Vec::new();
        for (at, derivation) in opened.catalogue.positioned() {
            let Shape::Count(count) = derivation.kind.shape() else { continue };
            if opened.schema.entity(&count.target).is_none_or(|target| target.derived) {
                continue;
            }
            let targets: Vec<Key> = targets(sampled, at).into_iter().take(CHECKED_MAX).collect();
            let held: BTreeSet<Key> = if targets.is_empty() {
                BTreeSet::new()
            } else {
                let held = opened.store.get(Table::Main, &targets).await?;
                held.into_iter().map(|(key, _)| key).collect()
            };
            let (derivation, n_checked) = (derivation.label().to_owned(), targets.len());
            let missing = targets.into_iter().filter(|target| !held.contains(target)).collect();
            links.push(Self { derivation, n_checked, missing });
        }
        Ok(links)
    }

    fn examples(&self) -> impl Iterator<Item = &Key> {
        self.missing.iter().take(EXAMPLES)
    }

    /// The line of the report, if a target is missing.
    pub(super) fn line(&self) -> Option<String> {
        let such: Vec<String> = self.examples().map(Key::to_string).collect();
        let (n_missing, n_checked) = (self.missing.len(), self.n_checked);
        let of = format!("{n_missing} of {n_checked} items that it counts for do not exist");
        (n_missing > 0).then(|| format!("{}: {of}, such as {}", self.derivation, such.join(", ")))
    }

    /// What to do, if no target exists.
    pub(super) fn to_do(&self) -> Option<String> {
        let is_wrong = self.n_checked > 0 && self.missing.len() == self.n_checked;
        let what = "counts for no item that exists: compare the keys that its link gives with those of the items";
        is_wrong.then(|| format!("{} {what}, see links", self.derivation))
    }

    pub(super) fn json(&self) -> Value {
        let examples: Vec<Value> = self.examples().map(key).collect();
        json!({
            "derivation": self.derivation,
            "checked": self.n_checked,
            "missing": self.missing.len(),
            "examples": examples,
        })
    }
}

/// The targets that a derivation would count for.
fn targets(sampled: &[SampledTable], at: DerivationAt) -> BTreeSet<Key> {
    let derived = sampled.iter().filter_map(|table| table.fitting.derived.get(&at)).flatten();
    derived.filter_map(|counter| Some(CounterKey::parse(counter)?.target)).collect()
}
