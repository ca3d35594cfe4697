//! Reads a part of each of the application's tables within a limit of read units a second, and what the items show:
//! whether they fit the manifest, whether the links of counts lead to existing items, and what a backfill costs.
//!
//! DynamoDB returns items in the order of a hash of their partition keys, so the first items are a fair sample.
//! [`plan`] receives each item as an insert, and determines its entity and the derivations that cannot read it.
//!
//! The cost is an upper estimate: it assumes that each item derived from the sample is written once, at the size of the
//! table's own items. Some may already be correct, and some are derived from several items of the sample. A history
//! count cannot be filled, because the table does not contain everything that it counts.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use anyhow::Context as _;
use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    operation::scan::ScanError,
    types::{AttributeValue, ReturnConsumedCapacity},
};
use derive::{
    catalogue::Catalogue,
    change::{Change, Images},
    clock,
    effect::Effect,
    family::Family,
    kind::Shape,
    plan::{RecordKind, plan},
    position::DerivationAt,
    schema::Schema,
    write::Table,
};
use design::{Design, price::price, samples::Samples};
use engine::{input::caught, look::listing::ALL_DERIVATIONS};
use keys::{counter::CounterKey, item::Item, key::Key, tables::TableForm};
use operate::objects::key;
use serde_json::{Value, json};
use store::Store as _;
use tokio::time::{Instant, sleep_until};

use crate::{opened::Opened, tables::counted};

/// Maximum number of items in a page: few enough that a page of large items does not exceed the limit by much.
pub(in crate::commands) const PAGE_ITEMS: u32 = 250;

/// How much to read, and how fast.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct SampleLimits {
    pub(in crate::commands) n_items_max: u32,
    /// Number of equal segments of a table. Only the first is read.
    pub(in crate::commands) segments: u32,
    /// Most read units a second.
    pub(in crate::commands) units_per_second: u32,
}

/// The sample of one of the application's tables.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct SampledTable {
    /// Its size in bytes, as DynamoDB counted it some hours ago.
    pub(in crate::commands) bytes: u64,
    pub(in crate::commands) sample: TableSample,
    pub(in crate::commands) fitting: Fitting,
    /// The share of the table that was read, from 0 to 1; `None` if the table's size is unknown.
    pub(in crate::commands) share: Option<f64>,
}

impl SampledTable {
    /// Reads a part of each of the application's tables that `is_read` selects. Calls `read` with the number of items
    /// read so far from all tables.
    pub(in crate::commands) async fn read_all(
        opened: &Opened,
        limits: SampleLimits,
        is_read: impl Fn(&str) -> bool,
        read: impl Fn(u64),
    ) -> anyhow::Result<Vec<Self>> {
        let mut tables = Vec::new();
        let mut n_before = 0;
        for (description, form) in opened.application_tables() {
            let name = description.table_name.as_deref().unwrap_or_default();
            let mut table = Self { bytes: counted(description.table_size_bytes), ..Self::default() };
            if is_read(name) {
                let fitting = &mut table.fitting;
                let sample = TableSample::read(opened, name, limits, |items| {
                    for item in items {
                        fitting.add(&opened.schema, &opened.catalogue, inward(form, item));
                    }
                    read(n_before + fitting.n_items);
                });
                table.sample = sample.await?;
                table.share = table.sample.share(counted(description.item_count));
                n_before += table.fitting.n_items;
            }
            tables.push(table);
        }
        Ok(tables)
    }
}

/// An item in the form of the declarations.
fn inward(form: Option<&TableForm>, item: Item) -> Option<Item> {
    match form {
        Some(form) => form.inward(item),
        None => Some(item),
    }
}

/// The result of reading a part of a table.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct TableSample {
    pub(in crate::commands) n_items: u32,
    /// Number of equal segments of the table. Only the first was read.
    pub(in crate::commands) segments: u32,
    /// True if the whole segment was read.
    pub(in crate::commands) is_whole: bool,
    /// Consumed read units, as the database reports them.
    pub(in crate::commands) units: f64,
}

impl TableSample {
    /// Reads the segment of a table, and calls `each` with each page.
    async fn read(
        opened: &Opened,
        table: &str,
        bounds: SampleLimits,
        mut each: impl FnMut(Vec<Item>),
    ) -> anyhow::Result<Self> {
        let mut sample = Self { segments: bounds.segments, ..Self::default() };
        let started = Instant::now();
        let mut after = None;
        while sample.n_items < bounds.n_items_max {
            let n_left = bounds.n_items_max - sample.n_items;
            let limit = n_left.min(PAGE_ITEMS);
            let read = page(&opened.clients.dynamodb, table, (0, bounds.segments), limit, after).await;
            let read = read.with_context(|| format!("cannot read the table {table}"))?;
            sample.units += read.units;
            sample.n_items += u32::try_from(read.items.len())?;
            each(read.items);
            after = read.after;
            if after.is_none() {
                sample.is_whole = true;
                break;
            }
            sleep_until(started + Duration::from_secs_f64(sample.units / f64::from(bounds.units_per_second))).await;
        }
        Ok(sample)
    }

    /// The share of the table that was read, from 0 to 1; `None` if the table's size is unknown.
    fn share(&self, n_table: u64) -> Option<f64> {
        if self.is_whole {
            return Some(1.0 / f64::from(self.segments));
        }
        // The table's item count may be hours old.
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more than the 15 digits that stay exact")]
        let share = f64::from(self.n_items) / n_table as f64;
        (n_table > 0).then(|| share.min(1.0))
    }
}

/// A page of a segment of a table.
pub(in crate::commands) struct Page {
    pub(in crate::commands) items: Vec<Item>,
    /// Consumed read units, as the database reports them.
    pub(in crate::commands) units: f64,
    /// Where the next page starts, if this is not the last.
    pub(in crate::commands) after: Option<HashMap<String, AttributeValue>>,
}

/// Reads a page of at most `limit` items: of which segment, of how many.
pub(in crate::commands) async fn page(
    client: &Client,
    table: &str,
    (segment, segments): (u32, u32),
    limit: u32,
    after: Option<HashMap<String, AttributeValue>>,
) -> Result<Page, SdkError<ScanError>> {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let call = client.scan().table_name(table).segment(number(segment)).total_segments(number(segments));
    let call = call.limit(number(limit)).set_exclusive_start_key(after);
    let answer = call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await?;
    let units = answer.consumed_capacity.and_then(|capacity| capacity.capacity_units).unwrap_or_default();
    let items = answer.items.into_iter().flatten().map(of_sdk).collect();
    // Some emulators end with an empty key instead of none.
    let after = answer.last_evaluated_key.filter(|key| !key.is_empty());
    Ok(Page { items, units, after })
}

fn of_sdk(item: HashMap<String, AttributeValue>) -> Item {
    item.into_iter().map(|(name, value)| (name, value.into())).collect()
}

// ---- The items that fit, those that do not, and those that the derivations would write ----

/// Number of keys to give as examples of a group, and of the missing targets of a derivation.
const EXAMPLES: usize = 3;

/// Items with the same result.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Group {
    pub(in crate::commands) n_items: u64,
    /// Keys of some of the items.
    pub(in crate::commands) examples: Vec<Key>,
}

impl Group {
    fn add(&mut self, key: &Key) {
        self.n_items += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(key.clone());
        }
    }
}

/// The results for the items of a sample.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Fitting {
    pub(in crate::commands) n_items: u64,
    /// Items by entity.
    pub(in crate::commands) entities: BTreeMap<String, u64>,
    /// Items without an entity type.
    pub(in crate::commands) untyped: Group,
    /// Items with an undeclared entity, or with a key of an undeclared form.
    pub(in crate::commands) unknown: Group,
    /// Items that a derivation cannot read, by derivation and reason.
    pub(in crate::commands) unreadable: BTreeMap<(String, String), Group>,
    /// Items that derivations would write, by derivation: those that inserts of the sampled items would refresh or add
    /// to.
    pub(in crate::commands) derived: BTreeMap<DerivationAt, BTreeSet<Key>>,
    /// One item of each entity.
    pub(in crate::commands) samples: BTreeMap<String, Item>,
}

impl Fitting {
    /// Adds an item of the sample; `None` if its key does not have the declared form.
    pub(in crate::commands) fn add(&mut self, schema: &Schema, catalogue: &Catalogue, item: Option<Item>) {
        self.n_items += 1;
        let addressed = item.and_then(|item| Some((schema.layout.key(&item)?, item)));
        let Some((key, item)) = addressed else { return self.untyped.add(&Key::new("", "")) };
        let (id, sequence_number) = (String::new(), String::new());
        let change = Change { id, sequence_number, created_ms: None, key, images: Images::Inserted(item) };
        let families = [Family::Additive, Family::LevelTriggered];
        let planned = match caught("planning it", || plan(schema, catalogue, &families, &change)) {
            Ok(planned) => planned,
            Err(why) => return self.unreadable(ALL_DERIVATIONS, why, &change.key),
        };
        if let Some(why) = planned.misfit {
            self.unreadable(ALL_DERIVATIONS, why.to_string(), &change.key);
            if change.new_image().and_then(|item| schema.image(&change.key, item)).is_none() {
                return;
            }
        }
        match planned.record {
            RecordKind::Untyped | RecordKind::Unknown if change.key == clock::key() => return,
            RecordKind::Untyped => return self.untyped.add(&change.key),
            RecordKind::Unknown => return self.unknown.add(&change.key),
            RecordKind::Change | RecordKind::Echo => {}
        }
        for (at, effect) in planned.effects {
            if let Effect::List { unreadable: Some(why) } = &effect {
                self.unreadable(catalogue.label(at), why.to_string(), &change.key);
            }
            self.derived.entry(at).or_default().extend(written(catalogue.name(at), effect));
        }
        let Images::Inserted(item) = change.images else { return };
        if let Some(image) = schema.image(&change.key, &item) {
            let entity = image.definition.name.clone();
            *self.entities.entry(entity.clone()).or_default() += 1;
            self.samples.entry(entity).or_insert(item);
        }
    }

    fn unreadable(&mut self, derivation: &str, why: String, key: &Key) {
        self.unreadable.entry((derivation.to_owned(), why)).or_default().add(key);
    }

    /// Number of items of a declared entity.
    pub(in crate::commands) fn n_fitting(&self) -> u64 {
        self.entities.values().sum()
    }
}

/// The item that an effect would write. Items that a search would find are skipped, because their own inserts cover
/// them.
fn written(derivation: &str, effect: Effect) -> Option<Key> {
    match effect {
        // The shard differs from batch to batch; a backfill uses one.
        Effect::Add(add) => CounterKey::home(add.target, derivation).key().ok(),
        Effect::Measure(measure) => Some(measure.bucket),
        Effect::Look(request) | Effect::Vacated(request) => Some(request.item),
        Effect::Ground(_) | Effect::Find(_) | Effect::Late | Effect::Later(..) | Effect::List { .. } => None,
    }
}

// ---- Whether the links of counts lead to existing items ----
//
// A link with wrong keys counts for items that do not exist, without an error.

/// Maximum number of targets to check for each derivation.
const CHECKED_MAX: usize = 100;

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
            let stored: BTreeSet<Key> = if targets.is_empty() {
                BTreeSet::new()
            } else {
                let stored = opened.store.get(Table::Main, &targets).await?;
                stored.into_iter().map(|(key, _)| key).collect()
            };
            let (derivation, n_checked) = (derivation.label().to_owned(), targets.len());
            let missing = targets.into_iter().filter(|target| !stored.contains(target)).collect();
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

// ---- The cost of a backfill ----

/// Bytes of a consistent read unit. Source: `DynamoDB`, "Read and write operations".
const READ_UNIT_BYTES: u64 = 4_096;

/// Write units of one addition to a count: the counter, the receipt and the right to repair, in one transaction.
const REPAIR_UNITS: f64 = 6.0;

/// The estimated writes for a derivation.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) struct WriteEstimate {
    pub(in crate::commands) derivation: String,
    /// Number of items in the whole table.
    pub(in crate::commands) n_items: f64,
    /// Write units in the whole table.
    pub(in crate::commands) units: f64,
}

impl WriteEstimate {
    /// The upper limit, in words.
    pub(in crate::commands) fn at_most(&self) -> String {
        let of = |n: f64, noun: &str| format!("{n:.0} {noun}{}", if n > 0.5 && n < 1.5 { "" } else { "s" });
        format!("at most {}, {}", of(self.n_items, "item"), of(self.units, "write unit"))
    }
}

/// The estimated cost of a backfill.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct BackfillCost {
    /// Read units of one consistent read of the whole table. An eventually consistent one takes half.
    pub(in crate::commands) read_units: u64,
    /// By derivation; `None` if the sampled share of the table is unknown.
    pub(in crate::commands) parts: Option<Vec<WriteEstimate>>,
    /// Write units of all derivations. An item that several derivations write counts once.
    pub(in crate::commands) write_units: f64,
    /// Derivations that cannot be filled.
    pub(in crate::commands) history: Vec<String>,
}

impl BackfillCost {
    /// Makes an estimate from samples of the application's tables.
    pub(in crate::commands) fn estimate(opened: &Opened, tables: &[SampledTable]) -> Self {
        let (schema, catalogue) = ((*opened.schema).clone(), (*opened.catalogue).clone());
        let samples = tables.iter().flat_map(|table| table.fitting.samples.values().cloned()).collect();
        let samples = Samples::of(&schema, samples);
        let design = Design { samples, ..Design::declared(schema, catalogue) };
        let read_units = tables.iter().map(|table| table.bytes.div_ceil(READ_UNIT_BYTES)).sum();
        let is_sampled =
            |at| tables.iter().any(|table| table.fitting.derived.get(&at).is_some_and(|it| !it.is_empty()));
        let history = design.catalogue.positioned().filter(|(at, it)| it.kind.is_history() && is_sampled(*at));
        let history = history.map(|(_, derivation)| derivation.label().to_owned()).collect();
        let mut estimated = Self { read_units, history, ..Self::default() };
        let (mut all, mut is_known) = (BTreeMap::<DerivationAt, WriteEstimate>::new(), true);
        for table in tables {
            let Some(share) = table.share.filter(|share| *share > 0.0) else {
                is_known = false;
                continue;
            };
            let (parts, units) = of_table(&design, &table.fitting, share);
            estimated.write_units += units;
            for (at, part) in parts {
                let none = || WriteEstimate { n_items: 0.0, units: 0.0, ..part.clone() };
                let sum = all.entry(at).or_insert_with(none);
                (sum.n_items, sum.units) = (sum.n_items + part.n_items, sum.units + part.units);
            }
        }
        estimated.parts = is_known.then(|| all.into_values().collect());
        estimated
    }
}

/// The writes for one table, by derivation, and the write units of all of them. `share` is the part of the table that
/// was read. An item that several derivations write counts once in the sum.
fn of_table(design: &Design, fitting: &Fitting, share: f64) -> (Vec<(DerivationAt, WriteEstimate)>, f64) {
    let whole = |of_share: f64| (of_share / share).ceil();
    let (mut parts, mut looked, mut counted) = (Vec::new(), BTreeMap::<&Key, f64>::new(), 0.0);
    for (at, derivation) in design.catalogue.positioned().filter(|(_, derivation)| !derivation.kind.is_history()) {
        let Some(items) = fitting.derived.get(&at).filter(|items| !items.is_empty()) else { continue };
        let is_counted = derivation.kind.family() == Family::Additive;
        let units = if is_counted { REPAIR_UNITS } else { price(design, derivation).map_or(0.0, |it| it.total()) };
        let n_items = items.iter().fold(0.0, |sum, _| sum + 1.0);
        let derivation = derivation.label().to_owned();
        parts.push((at, WriteEstimate { derivation, n_items: whole(n_items), units: whole(n_items * units) }));
        if is_counted {
            counted += n_items * units;
            continue;
        }
        for item in items {
            let stored = looked.entry(item).or_default();
            *stored = stored.max(units);
        }
    }
    (parts, whole(counted + looked.values().sum::<f64>()))
}
