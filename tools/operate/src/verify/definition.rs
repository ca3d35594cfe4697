//! Compares a table that is at rest and fits in memory with the definition.
//!
//! Derives everything from the application's items, and compares. It never plans and never refreshes, so a bug in those
//! cannot hide itself here: the tests check the service and [`Verification`](super::run::Verification) against it.

use std::collections::BTreeSet;

use derive::{
    catalogue::Catalogue,
    clock,
    derived::{Derived, Flaw, Items},
    refresh::owned,
    schema::{Schema, Seen, Unreadable},
    whole::{Whole, derive},
    write::{Table, Wanted},
};
use engine::look::listing::ALL_DERIVATIONS;
use keys::{item::Item, key::Key};
use store::{Segment, Store, StoreError};

use super::{Finding, UnreadableItem, finding};
use crate::verify::counts::{buckets_compared, counters_compared, only};

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Items in the table.
    pub n_items: usize,
    /// Items without a type, or of an undeclared one.
    pub n_ignored: usize,
    /// Differences and invalid data, in order of derivation and key.
    pub findings: Vec<Finding>,
    /// Items that cannot be interpreted. They count as absent, on both sides.
    pub unreadable: Vec<UnreadableItem>,
}

/// Reads and compares a whole table.
///
/// # Errors
///
/// [`StoreError`] if the table cannot be read.
pub async fn compare_table<S: Store>(
    schema: &Schema,
    catalogue: &Catalogue,
    store: &S,
) -> Result<Comparison, StoreError> {
    let (mut items, mut after) = (Items::new(), None);
    loop {
        let page = store.scan(Table::Main, Segment::WHOLE, after).await?;
        items.extend(page.items.into_iter().filter_map(|item| Some((schema.layout.key(&item)?, item))));
        after = page.next;
        if after.is_none() {
            return Ok(compare(schema, catalogue, &items));
        }
    }
}

/// Compares these items with what the definition derives from the application's items among them.
#[must_use]
pub fn compare(schema: &Schema, catalogue: &Catalogue, items: &Items) -> Comparison {
    let Whole { by_derivation, flaws } = derive(schema, catalogue, items);
    let mut findings = Vec::new();
    for (derivation, derived) in &by_derivation {
        let at = catalogue.position(derivation);
        let maker = at.and_then(|at| catalogue.refresh(at)).filter(|refresh| refresh.makes_item());
        match maker {
            Some(maker) => findings.extend(items_compared(schema, derivation, maker.target(), derived, items)),
            None if derived.iter().any(|part| matches!(part, Derived::Attributes { .. })) => {
                findings.extend(derived.iter().filter_map(|part| attributes_compared(derivation, part, items)));
            }
            None => {
                let kind = at.and_then(|at| catalogue.derivation(at)).map(|derivation| derivation.kind.as_ref());
                findings.extend(counters_compared(schema, kind, derivation, derived, items));
                findings.extend(buckets_compared(derivation, derived, items));
            }
        }
        let own = flaws.iter().filter(|(of, _)| of == derivation);
        findings.extend(own.map(|(_, flaw)| flawed(derivation, flaw, items)));
    }
    let mut verified = Comparison { n_items: items.len(), findings, ..Comparison::default() };
    for (key, item) in items {
        let mut unreadable = |derivation: &str, why: &Unreadable| {
            let (pk, sk) = (key.pk.clone(), key.sk.clone());
            verified.unreadable.push(UnreadableItem {
                derivation: derivation.to_owned(),
                pk,
                sk,
                why: why.to_string(),
            });
        };
        match schema.see(key, item) {
            Seen::Untyped | Seen::Unknown => verified.n_ignored += usize::from(*key != clock::key()),
            Seen::Misfit(why) => unreadable(ALL_DERIVATIONS, &why),
            Seen::Known(image) => {
                if let Some(why) = image.long_index_key() {
                    unreadable(ALL_DERIVATIONS, &why);
                }
                for derivation in catalogue.derivations() {
                    if let Some(why) = derivation.unreadable(schema, &image) {
                        unreadable(&derivation.name, &why);
                    }
                }
            }
        }
    }
    verified
}

/// Differences in attributes of existing items. A missing item is a finding of the derivation that creates it.
fn attributes_compared(derivation: &str, derived: &Derived, items: &Items) -> Option<Finding> {
    let Derived::Attributes { key, attributes } = derived else { return None };
    let stored = items.get(key)?;
    differing(derivation, key, stored, attributes)
}

/// Differences in whole items, except for the attributes of other derivations.
fn items_compared(schema: &Schema, derivation: &str, target: &str, derived: &[Derived], items: &Items) -> Vec<Finding> {
    let Some(definition) = schema.entity(target) else { return Vec::new() };
    let (mut findings, mut keys) = (Vec::new(), BTreeSet::new());
    for part in derived {
        let Derived::Item { key, item } = part else { continue };
        keys.insert(key);
        findings.extend(match items.get(key) {
            None => Some(finding(derivation, key, None, Some(item.clone()))),
            Some(stored) => differing(derivation, key, stored, &owned(definition, item, Some(stored))),
        });
    }
    for (key, item) in items {
        if !keys.contains(key) && schema.image(key, item).is_some_and(|image| image.is(target)) {
            findings.push(finding(derivation, key, Some(item.clone()), None));
        }
    }
    findings
}

fn differing(derivation: &str, key: &Key, held: &Item, wanted: &[Wanted]) -> Option<Finding> {
    let differing: Vec<&Wanted> = wanted.iter().filter(|wanted| !wanted.is_held_by(Some(held))).collect();
    if differing.is_empty() {
        return None;
    }
    let stored = differing.iter().filter_map(|wanted| Some((wanted.name.clone(), held.get(&wanted.name)?.clone())));
    let derived = differing.iter().filter_map(|wanted| Some((wanted.name.clone(), wanted.value.clone()?)));
    Some(finding(derivation, key, Some(stored.collect()), Some(derived.collect())))
}

/// Invalid data, with the attribute at fault. The attribute may itself be derived, and not be stored yet.
fn flawed(derivation: &str, flaw: &Flaw, items: &Items) -> Finding {
    let stored = items.get(&flaw.key).map(|item| only(item, &[&flaw.attribute]));
    Finding { flaw: Some(flaw.why.clone()), ..finding(derivation, &flaw.key, stored, Some(Item::new())) }
}
