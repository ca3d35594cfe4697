//! What an audit found, by derivation: how many values are right, and how wrong the others are.
//!
//! The findings are read from the file one by one, so memory does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};

use derive::{
    catalogue::Catalogue,
    kind::{Refresh, Shape},
    schema::Schema,
    tally::{Sum, Tally},
};
use keys::{item::Item, key::Key};
use serde_json::{Value, json};

use crate::{
    OperateError,
    audit::{
        Audited,
        kept::{KeptTotals, ScanNotes},
    },
    objects::{about_nothing, key},
    verify::{
        CountsAboutNothing, Finding, UnreadableItem,
        check::{Difference, FINDING, UNREADABLE},
        judge::INDEX_KEYS,
        spool::Spool,
    },
    words::time,
};

/// Number of differences to name.
pub const WORST: usize = 20;

/// Number of keys to name for a reason or a count.
const EXAMPLES: usize = 3;

/// Unreadable items that are read together. Bounds memory.
const ENTRIES_AT_ONCE: usize = 1_000;

/// Most reasons for unreadable items that are told apart. Bounds memory.
const REASONS_MAX: usize = 100;

/// How a value differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// Another value is stored.
    Differs,
    /// Nothing is stored.
    Missing,
    /// Something is stored, and nothing is derived: such as a mirror without a source.
    Extra,
}

/// The results for one derivation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivationAudit {
    /// Its label.
    pub derivation: String,
    /// Name of its kind.
    pub kind: String,
    /// Values that were compared: attributes of an item, or whole items.
    pub values: usize,
    /// Values that equal their sources.
    pub right: usize,
    /// Stored values that are others than the derived ones.
    pub wrong: usize,
    /// Derived values that are not stored.
    pub missing: usize,
    /// Stored values that should not exist.
    pub extra: usize,
    /// Values that differed in one read of the table only, or differently in both.
    pub undecided: usize,
    /// Values that the table cannot decide.
    pub unknown: usize,
    /// Values of items that the derivation cannot read.
    pub unreadable: usize,
    /// Errors of its numbers; `None` if it has none.
    pub errors: Option<NumberErrors>,
    /// What the table cannot tell about it.
    pub cannot_tell: Option<String>,
}

/// How far stored numbers are from the derived ones. A number that is not stored counts as 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberErrors {
    /// Numbers that are wrong.
    pub numbers: usize,
    /// The sum of the absolute errors.
    pub sum: Sum,
    /// The largest absolute error.
    pub largest: Sum,
    /// Wrong numbers by [`Band`].
    pub bands: BTreeMap<Band, usize>,
}

impl NumberErrors {
    /// The mean absolute error, rounded to 6 decimal places.
    #[must_use]
    pub fn mean(&self) -> Option<Sum> {
        Tally { count: i64::try_from(self.numbers).unwrap_or(i64::MAX), sum: self.sum.clone() }.average()
    }

    /// Adds a signed error.
    fn add(&mut self, error: &Sum) {
        let size = absolute(error);
        self.numbers += 1;
        self.sum.add(&size);
        *self.bands.entry(Band::of(error)).or_default() += 1;
        if size > self.largest {
            self.largest = size;
        }
    }

    /// Adds the errors of others.
    pub fn add_all(&mut self, others: &Self) {
        self.numbers += others.numbers;
        self.sum.add(&others.sum);
        if others.largest > self.largest {
            self.largest = others.largest.clone();
        }
        for (band, n) in &others.bands {
            *self.bands.entry(*band).or_default() += n;
        }
    }
}

/// A range of errors, by sign and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Band {
    /// True if the stored number is too high.
    pub is_high: bool,
    /// Position in [`Band::LIMITS`].
    pub size: usize,
}

impl Band {
    /// Each range begins at its number and ends below the next; the first begins at 0.
    pub const LIMITS: [i64; 5] = [0, 2, 10, 100, 1_000];

    fn of(error: &Sum) -> Self {
        let size = absolute(error);
        let is_reached = |limit: &&i64| size >= number(**limit);
        let n_reached = Self::LIMITS.iter().take_while(is_reached).count();
        Self { is_high: *error > Sum::default(), size: n_reached.saturating_sub(1) }
    }

    /// Where the range begins, and the first number behind it.
    #[must_use]
    pub fn range(self) -> (i64, Option<i64>) {
        (Self::LIMITS.get(self.size).copied().unwrap_or_default(), Self::LIMITS.get(self.size + 1).copied())
    }
}

fn number(of: i64) -> Sum {
    of.to_string().parse().unwrap_or_default()
}

fn absolute(error: &Sum) -> Sum {
    let mut size = Sum::default();
    if *error < size {
        size.subtract(error);
    } else {
        size.add(error);
    }
    size
}

/// A difference that is named.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstValue {
    /// The difference. Without `--values`, its items are empty.
    pub finding: Finding,
    /// How it differs.
    pub wrong: Wrong,
    /// Stored minus derived, if both are numbers or absent.
    pub error: Option<Sum>,
}

/// Items that a derivation cannot read, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableGroup {
    /// The derivation's label; `*` for all.
    pub derivation: String,
    /// The reason.
    pub why: String,
    /// How many there are.
    pub items: usize,
    /// The first of them.
    pub examples: Vec<Key>,
}

/// Everything that the last read found, as totals.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// By derivation, in the order of the catalogue.
    pub derivations: Vec<DerivationAudit>,
    /// The worst differences, the largest error first.
    pub worst: Vec<WorstValue>,
    /// Counts of items that do not exist.
    pub about_nothing: Vec<CountsAboutNothing>,
    /// Items that cannot be read.
    pub unreadable: Vec<UnreadableGroup>,
    /// Number of items that cannot be read. An item counts once for each derivation that cannot read it.
    pub n_unreadable: usize,
    /// How many items differ in exactly these derivations, by name. Without what no repair corrects.
    pub to_mend: BTreeMap<BTreeSet<String>, usize>,
}

/// What the accounting reads.
pub(super) struct Accounting<'a> {
    pub(super) schema: &'a Schema,
    pub(super) catalogue: &'a Catalogue,
    pub(super) kept: &'a KeptTotals,
    /// The file of the first read, if there were two.
    pub(super) first: Option<&'a Spool>,
    pub(super) notes: &'a ScanNotes,
    pub(super) unknown: &'a BTreeMap<String, usize>,
    pub(super) values: &'a BTreeMap<String, usize>,
    /// True if the values of the worst differences are kept.
    pub(super) has_values: bool,
}

impl Accounting<'_> {
    pub(super) fn totals(&self) -> Result<Totals, OperateError> {
        let mut totals = Totals::default();
        let mut lines: BTreeMap<String, DerivationAudit> = BTreeMap::new();
        self.kept.spool.each_entry(FINDING, |entry| {
            let Difference { finding, .. } = serde_json::from_str(entry)?;
            self.add(finding, &mut lines, &mut totals)
        })?;
        self.add_unreadable(&mut lines, &mut totals)?;
        for derivation in self.catalogue.derivations().filter(|derivation| !derivation.kind.keeps_entries()) {
            let line = lines.remove(&derivation.name).unwrap_or_default();
            let line = DerivationAudit { kind: derivation.kind.name().to_owned(), ..line };
            totals.derivations.push(self.line(&derivation.name, derivation.kind.shape(), line));
            if let Shape::Count(_) = derivation.kind.shape()
                && !self.makes_targets(&derivation.name)
            {
                let (counts, first) = self.kept.without_target(&derivation.name, EXAMPLES)?;
                let examples = first.into_iter().map(|Key { pk, sk }| (pk, sk)).collect();
                let derivation = derivation.label().to_owned();
                totals.about_nothing.extend((counts > 0).then_some(CountsAboutNothing {
                    derivation,
                    counts,
                    examples,
                }));
            }
        }
        if let Some(line) = lines.remove(INDEX_KEYS) {
            let written = self.schema.entities().filter(|entity| !entity.derived && !entity.indexes.is_empty());
            let values = written.filter_map(|entity| self.notes.n_items.get(&entity.name)).sum();
            let line = DerivationAudit { kind: INDEX_KEYS.to_owned(), values, ..line };
            totals.derivations.push(DerivationAudit { derivation: INDEX_KEYS.to_owned(), ..closed(line) });
        }
        totals.to_mend = self.to_mend()?;
        for named in &mut totals.worst {
            self.catalogue.relabel(&mut named.finding.derivation);
        }
        Ok(totals)
    }

    /// Adds a difference.
    fn add(
        &self,
        finding: Finding,
        lines: &mut BTreeMap<String, DerivationAudit>,
        totals: &mut Totals,
    ) -> Result<(), OperateError> {
        let line = lines.entry(finding.derivation.clone()).or_default();
        if let Some(why) = &finding.flaw {
            line.unreadable += 1;
            let (derivation, why) = (finding.derivation.clone(), why.clone());
            let item = UnreadableItem { derivation, pk: finding.pk.clone(), sk: finding.sk.clone(), why };
            self.group(item, totals);
            return Ok(());
        }
        if !self.is_confirmed(&finding)? {
            line.undecided += 1;
            return Ok(());
        }
        let wrong = wrong(&finding);
        match wrong {
            Wrong::Differs => line.wrong += 1,
            Wrong::Missing => line.missing += 1,
            Wrong::Extra => line.extra += 1,
        }
        let error = Some(&finding).filter(|_| self.has_number(&finding.derivation)).and_then(error);
        if let Some(error) = &error {
            line.errors.get_or_insert_default().add(error);
        }
        self.name(WorstValue { finding, wrong, error }, &mut totals.worst);
        Ok(())
    }

    /// True if the first read of the table found the same difference, or there was one read.
    fn is_confirmed(&self, finding: &Finding) -> Result<bool, OperateError> {
        let Some(first) = self.first else { return Ok(true) };
        let Finding { derivation, pk, sk, flaw, .. } = finding;
        let entry = first.entry(FINDING, [derivation, pk, sk], flaw.is_some())?;
        let before: Option<Difference> = entry.map(|entry| serde_json::from_str(&entry)).transpose()?;
        Ok(before.is_some_and(|before| before.finding == *finding))
    }

    /// Keeps the difference if it is one of the worst.
    fn name(&self, mut named: WorstValue, worst: &mut Vec<WorstValue>) {
        let size = |it: &WorstValue| it.error.as_ref().map(absolute);
        let place = worst.partition_point(|other| size(other) >= size(&named));
        if place >= WORST {
            return;
        }
        if !self.has_values {
            (named.finding.stored, named.finding.derived) = (None, None);
        }
        worst.insert(place, named);
        worst.truncate(WORST);
    }

    /// True if a derivation's value is a number that is compared with its sources.
    fn has_number(&self, name: &str) -> bool {
        let kind = self.catalogue.position(name).and_then(|at| self.catalogue.derivation(at));
        match kind.map(|derivation| derivation.kind.shape()) {
            Some(Shape::Attributes(refresh)) => refresh.shows().is_some(),
            Some(Shape::Rollup(_)) => true,
            _ => false,
        }
    }

    /// Completes the line of a derivation.
    fn line(&self, name: &str, shape: Shape<'_>, line: DerivationAudit) -> DerivationAudit {
        let n_items = |entity: &str| self.notes.n_items.get(entity).copied().unwrap_or_default();
        let unknown = self.unknown.get(name).copied().unwrap_or_default();
        let mut line = DerivationAudit { derivation: self.catalogue.label_of(name).to_owned(), unknown, ..line };
        let (values, cannot_tell) = match shape {
            Shape::Mirror(mirror) => (n_items(&mirror.target) + line.missing, None),
            Shape::Attributes(refresh) if refresh.makes_item() => (n_items(refresh.target()) + line.missing, None),
            Shape::Attributes(refresh) => {
                let why = "some counted items may have expired, so a higher number may be right";
                let is_history = refresh.shows().is_some_and(|count| self.is_history(count));
                (n_items(refresh.target()), is_history.then_some(why))
            }
            Shape::Rollup(_) => {
                let values = self.values.get(name).copied().unwrap_or_default();
                (values, Some("only the number of readings is compared, and a higher one may be right"))
            }
            Shape::Count(_) if self.is_shown(name) => (0, None),
            Shape::Count(_) => (0, Some("no attribute shows it")),
            Shape::Cascade(_) => (0, Some("a table does not show which items were deleted")),
        };
        line.values = values;
        line.cannot_tell = cannot_tell.map(str::to_owned);
        closed(line)
    }

    fn is_history(&self, count: &str) -> bool {
        let count = self.catalogue.position(count).and_then(|at| self.catalogue.derivation(at));
        count.is_some_and(|count| count.kind.is_history())
    }

    fn reading<'a>(&'a self, count: &'a str) -> impl Iterator<Item = &'a dyn Refresh> {
        let refreshes = self.catalogue.positioned().filter_map(|(at, _)| self.catalogue.refresh(at));
        refreshes.filter(move |refresh| refresh.reads_counts().contains(&count))
    }

    fn is_shown(&self, count: &str) -> bool {
        self.reading(count).next().is_some()
    }

    /// True if the targets of a count are items that exist because of it.
    fn makes_targets(&self, count: &str) -> bool {
        self.reading(count).any(Refresh::makes_item)
    }

    // ---- unreadable items ----

    fn add_unreadable(
        &self,
        lines: &mut BTreeMap<String, DerivationAudit>,
        totals: &mut Totals,
    ) -> Result<(), OperateError> {
        let mut last: Option<UnreadableItem> = None;
        loop {
            let after = last.as_ref().map(|it| ([it.derivation.as_str(), &it.pk, &it.sk], false));
            let entries = self.kept.spool.entries_after(UNREADABLE, after, ENTRIES_AT_ONCE)?;
            for entry in &entries {
                let item: UnreadableItem = serde_json::from_str(entry)?;
                last = Some(item.clone());
                if self.is_value_of(&item)? {
                    lines.entry(item.derivation.clone()).or_default().unreadable += 1;
                }
                self.group(item, totals);
            }
            if entries.is_empty() {
                return Ok(());
            }
        }
    }

    /// True if the derivation writes into the unreadable item, and the value was not found to differ.
    fn is_value_of(&self, item: &UnreadableItem) -> Result<bool, OperateError> {
        let UnreadableItem { derivation, pk, sk, .. } = item;
        let refresh = self.catalogue.position(derivation).and_then(|at| self.catalogue.refresh(at));
        let target = refresh.and_then(|refresh| self.schema.entity(refresh.target()));
        let is_target = target.is_some_and(|target| target.key.parse_key(&Key::new(pk, sk)).is_some());
        Ok(is_target && self.kept.spool.entry(FINDING, [derivation, pk, sk], false)?.is_none())
    }

    fn group(&self, item: UnreadableItem, totals: &mut Totals) {
        totals.n_unreadable += 1;
        let UnreadableItem { derivation, pk, sk, why } = item;
        let derivation = self.catalogue.label_of(&derivation).to_owned();
        let is_same = |group: &&mut UnreadableGroup| group.derivation == derivation && group.why == why;
        if let Some(group) = totals.unreadable.iter_mut().find(is_same) {
            group.items += 1;
            if group.examples.len() < EXAMPLES {
                group.examples.push(Key::new(pk, sk));
            }
        } else if totals.unreadable.len() < REASONS_MAX {
            totals.unreadable.push(UnreadableGroup { derivation, why, items: 1, examples: vec![Key::new(pk, sk)] });
        }
    }

    // ---- what a repair would write ----

    fn to_mend(&self) -> Result<BTreeMap<BTreeSet<String>, usize>, OperateError> {
        let mut sets = BTreeMap::<BTreeSet<String>, usize>::new();
        let mut item = (Key::new("", ""), BTreeSet::new());
        self.kept.each_differing(|key, derivation| {
            let kind = self.catalogue.position(derivation).and_then(|at| self.catalogue.derivation(at));
            // The application writes index keys, and an operator decides about what may have expired.
            if kind.is_none_or(|derivation| derivation.kind.is_history()) {
                return;
            }
            if item.0 != key {
                let (_, names) = std::mem::replace(&mut item, (key, BTreeSet::new()));
                *sets.entry(names).or_default() += 1;
            }
            item.1.insert(derivation.to_owned());
        })?;
        *sets.entry(item.1).or_default() += 1;
        // The set before the first item.
        sets.remove(&BTreeSet::new());
        Ok(sets)
    }
}

/// The line with the number of right values.
fn closed(line: DerivationAudit) -> DerivationAudit {
    let others = [line.wrong, line.missing, line.extra, line.undecided, line.unknown, line.unreadable];
    DerivationAudit { right: line.values.saturating_sub(others.into_iter().sum()), ..line }
}

fn wrong(finding: &Finding) -> Wrong {
    let is_empty = |item: &Option<Item>| item.as_ref().is_none_or(Item::is_empty);
    match (is_empty(&finding.stored), is_empty(&finding.derived)) {
        (true, false) => Wrong::Missing,
        (false, true) => Wrong::Extra,
        (true, true) | (false, false) => Wrong::Differs,
    }
}

/// Stored minus derived; `None` if one of them is no number, or both are equal. What is absent is 0. A bucket has other
/// attributes too, so the derived attribute decides which one is compared.
fn error(finding: &Finding) -> Option<Sum> {
    let [stored, derived] = [&finding.stored, &finding.derived];
    let name = [derived, stored].into_iter().flatten().flat_map(Item::keys).next()?;
    let value = |item: &Option<Item>| match item.as_ref().and_then(|item| item.get(name)) {
        None => Some(Sum::default()),
        Some(value) => Sum::of(value),
    };
    let (mut error, derived) = (value(stored)?, value(derived)?);
    error.subtract(&derived);
    (!error.is_zero()).then_some(error)
}

// ---- The object of `ripple audit --json`. Its names are stable ----

/// What it costs to correct a number of items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MendCost {
    /// Items to write.
    pub items: usize,
    /// Write units.
    pub write_units: f64,
}

/// The audit as an object. `costs` has the cost of each derivation, by its label, and `total` that of all of them.
#[must_use]
pub fn audit_object(audited: &Audited, costs: &BTreeMap<String, MendCost>, total: MendCost, bound: &str) -> Value {
    let totals = &audited.totals;
    let reads = audited.reads.iter().map(|(began, ended)| json!({ "began": time(*began), "ended": time(*ended) }));
    json!({
        "items": audited.extent.n_items,
        "ignored": audited.extent.n_ignored,
        "derivations": totals.derivations.iter().map(|line| derivation(line, costs)).collect::<Vec<_>>(),
        "worst": totals.worst.iter().map(worst).collect::<Vec<_>>(),
        "about_nothing": totals.about_nothing.iter().map(about_nothing).collect::<Vec<_>>(),
        "unreadable": totals.unreadable.iter().map(unreadable).collect::<Vec<_>>(),
        "mend": cost(total),
        "reads": reads.collect::<Vec<_>>(),
        "bound": bound,
        "read_units": audited.read_units,
    })
}

fn derivation(line: &DerivationAudit, costs: &BTreeMap<String, MendCost>) -> Value {
    json!({
        "derivation": line.derivation,
        "kind": line.kind,
        "values": line.values,
        "right": line.right,
        "wrong": line.wrong,
        "missing": line.missing,
        "extra": line.extra,
        "undecided": line.undecided,
        "unknown": line.unknown,
        "unreadable": line.unreadable,
        "errors": line.errors.as_ref().map(errors),
        "cannot_tell": line.cannot_tell,
        "mend": cost(costs.get(&line.derivation).copied().unwrap_or_default()),
    })
}

fn cost(MendCost { items, write_units }: MendCost) -> Value {
    json!({ "items": items, "write_units": write_units })
}

fn errors(errors: &NumberErrors) -> Value {
    let bands = errors.bands.iter().map(|(band, n)| band_object(*band, *n)).collect::<Vec<_>>();
    json!({
        "numbers": errors.numbers,
        "mean": errors.mean().unwrap_or_default().to_string(),
        "largest": errors.largest.to_string(),
        "sum": errors.sum.to_string(),
        "histogram": bands,
    })
}

fn band_object(band: Band, n: usize) -> Value {
    let (from, below) = band.range();
    json!({ "stored": if band.is_high { "too_high" } else { "too_low" }, "from": from, "below": below, "numbers": n })
}

/// The stable word for how a value differs.
#[must_use]
pub fn wrong_word(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::Differs => "wrong",
        Wrong::Missing => "missing",
        Wrong::Extra => "extra",
    }
}

fn worst(named: &WorstValue) -> Value {
    let WorstValue { finding, wrong, error } = named;
    json!({
        "derivation": finding.derivation,
        "pk": finding.pk,
        "sk": finding.sk,
        "state": wrong_word(*wrong),
        "error": error.as_ref().map(ToString::to_string),
        "stored": finding.stored,
        "derived": finding.derived,
    })
}

fn unreadable(group: &UnreadableGroup) -> Value {
    let UnreadableGroup { derivation, why, items, examples } = group;
    let examples: Vec<Value> = examples.iter().map(|example: &Key| key(example)).collect();
    json!({ "derivation": derivation, "why": why, "items": items, "examples": examples })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_in_the_band_of_its_size_and_sign() {
        let of = |text: &str| {
            let band = Band::of(&text.parse().unwrap());
            (band.is_high, band.range())
        };
        assert_eq!(of("0.5"), (true, (0, Some(2))));
        assert_eq!(of("-1"), (false, (0, Some(2))));
        assert_eq!(of("2"), (true, (2, Some(10))));
        assert_eq!(of("-99.9"), (false, (10, Some(100))));
        assert_eq!(of("1000"), (true, (1_000, None)));
    }

    #[test]
    fn errors_are_added_up_exactly() {
        let mut errors = NumberErrors::default();
        for text in ["3", "-0.1", "-0.2"] {
            errors.add(&text.parse().unwrap());
        }
        assert_eq!((errors.sum.to_string(), errors.largest.to_string()), ("3.3".to_owned(), "3".to_owned()));
        assert_eq!(errors.mean().unwrap().to_string(), "1.1");
    }
}
