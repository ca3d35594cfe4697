//! Derivations that an application seems to keep by hand, with the evidence of the sample.

use std::collections::{BTreeMap, BTreeSet};

use keys::{item::Item, number::whole, tables::KeyType};
use serde_dynamo::AttributeValue;

use crate::{
    entities::Found,
    names::{is_whole_name, kebab, key, percent, string, thousands},
    shape::{Extent, SampledTable},
    words::share,
};

/// Smallest share of pairs with equal values for a copy. Copies that are kept by hand are stale in a few items; below
/// this, two attributes rather have similar values.
const EQUAL_MIN: f64 = 0.9;

/// Largest share of pairs that would be equal by chance, for evidence to count.
const CHANCE_MAX: f64 = 0.5;

/// Fewest different values: a status or a country that is equal proves no copy.
const VALUES_MIN: usize = 5;

/// Fewest items with a number, for a count.
const COUNTED_MIN: usize = 20;

/// Fewest different numbers, for a count: 0 and 1 agree too often.
const NUMBERS_MIN: usize = 4;

/// Largest difference between a number and a count, as a share of the number: changes that a hand-kept count missed.
const COUNT_OFF_MAX: f64 = 0.02;

/// Largest sum of the differences, as a share of the counted items, for a number that is named after them: a count that
/// went wrong is the one that its owner looks for.
const NAMED_OFF_MAX: f64 = 0.25;

/// A derivation that the sample suggests.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    /// The entity that gets derived attributes.
    pub(crate) entity: String,
    /// These attributes.
    pub(crate) derived: Vec<String>,
    /// Why, in sentences.
    pub(crate) evidence: Vec<String>,
    /// The derivation, in as many forms as may be valid; the first valid one is taken.
    pub(crate) forms: Vec<Vec<String>>,
    pub(crate) name: String,
}

/// What the sample suggests, and what it cannot decide, in sentences.
pub(crate) fn find(tables: &[SampledTable], kinds: &[(usize, &Found<'_>)]) -> (Vec<Proposal>, Vec<String>) {
    let (mut copies, mut counts, mut undecided) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    let is_whole = tables.iter().all(|table| table.sample.extent == Extent::Whole);
    for (_, carrier) in kinds {
        for (table, named) in kinds.iter().filter(|(_, named)| named.name != carrier.name) {
            for link in links(carrier, named) {
                copies.extend(copy(carrier, named, &link, kinds));
                if let Some(table) = tables.get(*table) {
                    let read = Read { is_whole, cut: &table.sample.cut };
                    count(read, named, carrier, &link, &mut counts, &mut undecided);
                }
            }
        }
    }
    let decided: BTreeSet<String> = counts.keys().cloned().collect();
    let counts = counts.into_values().map(|(_, proposal)| proposal);
    let undecided = undecided.into_iter().filter(|(attribute, _)| !decided.contains(attribute));
    // One attribute has one writer, so the first of two copies of it counts.
    let mut taken = BTreeSet::new();
    let mut proposals: Vec<Proposal> = Vec::new();
    for proposal in counts.chain(copies) {
        let names: Vec<(String, String)> =
            proposal.derived.iter().map(|name| (proposal.entity.clone(), name.clone())).collect();
        if names.iter().all(|name| !taken.contains(name)) {
            taken.extend(names);
            proposals.push(proposal);
        }
    }
    (proposals, undecided.map(|(_, why)| why).collect())
}

// ---- Copies ----

fn copy(carrier: &Found<'_>, source: &Found<'_>, link: &Link, kinds: &[(usize, &Found<'_>)]) -> Option<Proposal> {
    // Two items with one id each may be two parts of one thing, and either may be the source.
    let is_same = carrier.fields.keys().all(|field| link.pairs.iter().any(|(_, name)| name == field));
    if is_same {
        return None;
    }
    let mut attributes = BTreeMap::new();
    let mut evidence = Vec::new();
    for from in source.attributes.iter().filter(|it| is_whole_name(&it.name)) {
        let best = carrier.attributes.iter().filter(|it| is_whole_name(&it.name)).filter_map(|to| {
            let is_link = link.pairs.iter().any(|(_, name)| *name == to.name);
            let compared = Compared::of(carrier, source, link, &from.name, &to.name).filter(|_| !is_link)?;
            Some((compared, &to.name))
        });
        let Some((compared, to)) = best.max_by(|(one, _), (other, _)| one.equal().total_cmp(&other.equal())) else {
            continue;
        };
        if attributes.values().any(|taken| taken == to) {
            continue;
        }
        attributes.insert(from.name.clone(), to.clone());
        evidence.push(format!(
            "{}.{to} equals {}.{} by {} in {} of {} sampled pairs ({}).",
            carrier.name,
            source.name,
            from.name,
            link.by(),
            thousands(compared.n_equal),
            thousands(compared.n),
            percent(compared.equal()),
        ));
    }
    let first = attributes.values().next()?;
    let name = kebab(&[&carrier.name, first]);
    let pair = |(from, to): (&String, &String)| format!("{} = {}", key(from), string(to));
    let mut lines = vec![
        format!("[derivation.{name}]"),
        "kind = \"copy\"".to_owned(),
        format!("from = {}", string(&source.name)),
        format!("to = {}", string(&carrier.name)),
    ];
    lines.extend(link.line());
    lines.push(format!("attributes = {{ {} }}", attributes.iter().map(pair).collect::<Vec<_>>().join(", ")));
    let with = |found: String| [lines.as_slice(), &[found]].concat();
    let indexes = carrier.indexes.iter().map(|index| with(format!("found = {{ index = {} }}", string(index))));
    let through = kinds.iter().map(|(_, it)| with(format!("found = {}", string(&it.name))));
    let forms = [lines.clone()].into_iter().chain(indexes).chain(through).collect();
    let derived = attributes.values().cloned().collect();
    Some(Proposal { entity: carrier.name.clone(), derived, evidence, forms, name })
}

/// Two attributes of the pairs of a link.
struct Compared {
    n: usize,
    n_equal: usize,
}

impl Compared {
    /// Compares the pairs that have both attributes; `None` if they are no copy, or if they may be equal by chance.
    fn of(carrier: &Found<'_>, source: &Found<'_>, link: &Link, from: &str, to: &str) -> Option<Self> {
        let both = link.rows.iter().filter_map(|(at, target)| {
            Some((plain(carrier.items.get(*at)?, to)?, plain(source.items.get(*target)?, from)?))
        });
        let both: Vec<(&str, &str)> = both.collect();
        let compared = Self { n: both.len(), n_equal: both.iter().filter(|(one, other)| one == other).count() };
        let n_values = both.iter().map(|(_, from)| from).collect::<BTreeSet<_>>().len();
        let is_evident = compared.n >= PAIRS_MIN && n_values >= VALUES_MIN && compared.equal() >= EQUAL_MIN;
        (is_evident && by_chance(&both) <= CHANCE_MAX).then_some(compared)
    }

    fn equal(&self) -> f64 {
        share(self.n_equal, self.n)
    }
}

/// The text of an attribute of type S. Equal numbers are rather equal by chance.
fn plain<'i>(item: &'i Item, name: &str) -> Option<&'i str> {
    keys::item::text(item, name)
}

// ---- Counts ----

/// Which collections of items are in the sample.
#[derive(Clone, Copy)]
struct Read<'s> {
    /// True if the sample is all items of all tables.
    is_whole: bool,
    /// Partition keys of the targets' table that were read in part.
    cut: &'s BTreeSet<String>,
}

/// Compares each number of the items that others name with how many name them.
fn count(
    read: Read<'_>,
    target: &Found<'_>,
    counted: &Found<'_>,
    link: &Link,
    counts: &mut BTreeMap<String, (f64, Proposal)>,
    undecided: &mut BTreeSet<(String, String)>,
) {
    let mut n_of = BTreeMap::<usize, usize>::new();
    for (_, at) in &link.rows {
        *n_of.entry(*at).or_default() += 1;
    }
    let is_same_partition = link.rows.iter().all(|(at, to)| {
        let pk = |found: &Found<'_>, at: usize| found.keys.get(at).map(|[pk, _]| pk.clone());
        pk(counted, *at) == pk(target, *to)
    });
    let is_complete = |at: usize| {
        let pk = target.keys.get(at).map(|[pk, _]| pk);
        read.is_whole || is_same_partition && pk.is_some_and(|pk| !read.cut.contains(pk))
    };
    for attribute in target.attributes.iter().filter(|it| it.types.contains("N") && is_whole_name(&it.name)) {
        let title = format!("{}.{}", target.name, attribute.name);
        if !read.is_whole && !is_same_partition {
            if attribute.name.to_lowercase().ends_with("count") {
                let why = format!(
                    "{title} may be a count of {}, but the sample does not contain every {} of an item: compare it with \
                     --items large enough for the whole table.",
                    counted.name, counted.name
                );
                undecided.insert((title, why));
            }
            continue;
        }
        let number = |at: usize| match target.items.get(at)?.get(&attribute.name)? {
            AttributeValue::N(number) => whole(number).and_then(|number| usize::try_from(number).ok()),
            _ => None,
        };
        let rows = (0..target.items.len()).filter(|at| is_complete(*at));
        let rows: Vec<(usize, usize)> =
            rows.filter_map(|at| Some((number(at)?, n_of.get(&at).copied().unwrap_or_default()))).collect();
        let n_near = rows.iter().filter(|(number, n)| is_near(*number, *n)).count();
        let n_numbers = rows.iter().map(|(number, _)| number).collect::<BTreeSet<_>>().len();
        let near = share(n_near, rows.len());
        let n_off: usize = rows.iter().map(|(number, n)| number.abs_diff(*n)).sum();
        let off = share(n_off, rows.iter().map(|(_, n)| n).sum());
        let is_named = attribute.name.to_lowercase().contains(&counted.name.to_lowercase()) && off <= NAMED_OFF_MAX;
        let is_near_enough = near >= EQUAL_MIN && by_chance(&rows) <= CHANCE_MAX;
        let is_evident = rows.len() >= COUNTED_MIN && n_numbers >= NUMBERS_MIN && (is_near_enough || is_named);
        if !is_evident || counts.get(&title).is_some_and(|(best, _)| *best >= near) {
            continue;
        }
        let and = if is_near_enough {
            String::new()
        } else {
            format!("; it is named after them, and off by {} in all", percent(off))
        };
        let evidence = format!(
            "{title} is within {} of the number of {} items with its {} in {} of {} sampled items{and}.",
            percent(COUNT_OFF_MAX),
            counted.name,
            link.by(),
            thousands(n_near),
            thousands(rows.len()),
        );
        let name = kebab(&[&target.name, &attribute.name]);
        let mut lines = vec![
            format!("[derivation.{name}]"),
            "kind = \"count\"".to_owned(),
            format!("from = {}", string(&counted.name)),
            format!("into = {}", string(&title)),
        ];
        lines.extend(link.line());
        let (entity, derived) = (target.name.clone(), vec![attribute.name.clone()]);
        let proposal = Proposal { entity, derived, evidence: vec![evidence], forms: vec![lines], name };
        counts.insert(title, (near, proposal));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than the 15 digits that stay exact")]
fn is_near(number: usize, n: usize) -> bool {
    number.abs_diff(n) as f64 <= COUNT_OFF_MAX * number.max(n) as f64
}

// ---- items that name other items: which field or attribute of one kind gives the key of another kind ----

/// Fewest pairs of items that show a link. Fewer agree by chance too easily, as with ids that count from 1.
const PAIRS_MIN: usize = 20;

/// Fewest different items that the pairs lead to.
const TARGETS_MIN: usize = 5;

/// Most combinations of attributes that are tried for a key of several fields.
const COMBINATIONS_MAX: usize = 64;

/// Smallest share of an attribute's values that are values of the field, in a part of a table. The items that the others
/// name may be in the rest.
const KNOWN_MIN: f64 = 0.05;

/// Pairs of items: each carrier with the item that it names.
#[derive(Clone, Debug)]
struct Link {
    /// Pairs of a field of the named item's key and a field or attribute of the carrier.
    pairs: Vec<(String, String)>,
    /// For each carrier that names an item of the sample: its position, and that of the item.
    rows: Vec<(usize, usize)>,
}

impl Link {
    /// The line of the manifest; `None` if the names are the same.
    fn line(&self) -> Option<String> {
        let is_plain = self.pairs.iter().all(|(field, name)| field == name && field != "id");
        let pair =
            |(field, name): &(String, String)| format!("{} = {}", crate::names::key(field), crate::names::string(name));
        (!is_plain).then(|| format!("link = {{ {} }}", self.pairs.iter().map(pair).collect::<Vec<_>>().join(", ")))
    }

    /// The carrier's side, as a sentence names it.
    fn by(&self) -> String {
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
fn links(carrier: &Found<'_>, named: &Found<'_>) -> Vec<Link> {
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
fn by_chance<T: Ord>(pairs: &[(T, T)]) -> f64 {
    let (mut left, mut right) = (BTreeMap::<&T, usize>::new(), BTreeMap::<&T, usize>::new());
    for (one, other) in pairs {
        *left.entry(one).or_default() += 1;
        *right.entry(other).or_default() += 1;
    }
    let n = pairs.len();
    left.iter().map(|(value, count)| share(*count, n) * share(right.get(value).copied().unwrap_or_default(), n)).sum()
}
