//! Items that name other items: which field or attribute of one kind gives the key of another kind.

use std::collections::{BTreeMap, BTreeSet};

use keys::tables::KeyType;
use serde_dynamo::AttributeValue;

use crate::{entities::Found, type_attribute::share};

/// Fewest pairs of items that show a link. Fewer agree by chance too easily, as with ids that count from 1.
pub(crate) const PAIRS_MIN: usize = 20;

/// Fewest different items that the pairs lead to.
const TARGETS_MIN: usize = 5;

/// Most combinations of attributes that are tried for a key of several fields.
const COMBINATIONS_MAX: usize = 64;

/// Smallest share of an attribute's values that are values of the field, in a part of a table. The items that the others
/// name may be in the rest.
const KNOWN_MIN: f64 = 0.05;

/// Pairs of items: each carrier with the item that it names.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// Pairs of a field of the named item's key and a field or attribute of the carrier.
    pub(crate) pairs: Vec<(String, String)>,
    /// For each carrier that names an item of the sample: its position, and that of the item.
    pub(crate) rows: Vec<(usize, usize)>,
}

impl Link {
    /// The line of the manifest; `None` if the names are the same.
    pub(crate) fn line(&self) -> Option<String> {
        let is_plain = self.pairs.iter().all(|(field, name)| field == name && field != "id");
        let pair =
            |(field, name): &(String, String)| format!("{} = {}", crate::text::key(field), crate::text::string(name));
        (!is_plain).then(|| format!("link = {{ {} }}", self.pairs.iter().map(pair).collect::<Vec<_>>().join(", ")))
    }

    /// The carrier's side, as a sentence names it.
    pub(crate) fn by(&self) -> String {
        self.pairs.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The value of a field or attribute of an item, if it has the type.
fn value<'f>(found: &'f Found<'_>, at: usize, name: &str, of: KeyType) -> Option<&'f str> {
    if let Some(field) = found.fields.get(name) {
        return field.values.get(at).filter(|_| field.of == of).map(String::as_str);
    }
    match (found.items.get(at)?.get(name)?, of) {
        (AttributeValue::S(text), KeyType::S) | (AttributeValue::N(text), KeyType::N) => Some(text),
        _ => None,
    }
}

/// All links from items of one kind to those of another.
pub(crate) fn links(carrier: &Found<'_>, named: &Found<'_>) -> Vec<Link> {
    let mut choices: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for (field, of) in &named.fields {
        let known: BTreeSet<&str> = of.values.iter().map(String::as_str).collect();
        let names = carrier.fields.keys().chain(carrier.attributes.iter().map(|it| &it.name));
        let candidates: Vec<&String> = names.filter(|name| leads(carrier, name, of.of, &known)).collect();
        let with = |choice: &Vec<(String, String)>, name: &String| {
            let is_used = choice.iter().any(|(_, used)| used == name);
            (!is_used).then(|| [choice.as_slice(), &[(field.clone(), name.clone())]].concat())
        };
        choices =
            choices.iter().flat_map(|choice| candidates.iter().filter_map(move |name| with(choice, name))).collect();
        choices.truncate(COMBINATIONS_MAX);
    }
    let mut by_key = BTreeMap::<Vec<&str>, usize>::new();
    for at in 0..named.items.len() {
        let key = named.fields.values().filter_map(|field| field.values.get(at).map(String::as_str)).collect();
        by_key.insert(key, at);
    }
    let found = choices.into_iter().filter(|pairs| !pairs.is_empty()).map(|pairs| {
        let of = |at: usize| {
            let types = named.fields.values().map(|field| field.of);
            let values = pairs.iter().zip(types).map(|((_, name), of)| value(carrier, at, name, of));
            let key: Option<Vec<&str>> = values.collect();
            Some((at, *by_key.get(&key?)?))
        };
        let rows = (0..carrier.items.len()).filter_map(of).collect();
        Link { pairs, rows }
    });
    found.filter(|link| link.rows.len() >= PAIRS_MIN && n_targets(link) >= TARGETS_MIN).collect()
}

fn n_targets(link: &Link) -> usize {
    link.rows.iter().map(|(_, target)| target).collect::<BTreeSet<_>>().len()
}

fn leads(carrier: &Found<'_>, name: &str, of: KeyType, known: &BTreeSet<&str>) -> bool {
    let values = (0..carrier.items.len()).filter_map(|at| value(carrier, at, name, of));
    let (mut n, mut n_known) = (0, 0);
    for value in values {
        n += 1;
        n_known += usize::from(known.contains(value));
    }
    n_known >= PAIRS_MIN && share(n_known, n) >= KNOWN_MIN
}

/// The share of pairs that would be equal if both sides were shuffled.
pub(crate) fn by_chance<T: Ord>(pairs: &[(T, T)]) -> f64 {
    let (mut left, mut right) = (BTreeMap::<&T, usize>::new(), BTreeMap::<&T, usize>::new());
    for (one, other) in pairs {
        *left.entry(one).or_default() += 1;
        *right.entry(other).or_default() += 1;
    }
    let n = pairs.len();
    left.iter().map(|(value, count)| share(*count, n) * share(right.get(value).copied().unwrap_or_default(), n)).sum()
}
