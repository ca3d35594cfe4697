//! A sample run: items are put into the store's model, and the engine handles their records in batches of the size that
//! results from the load. The run counts the engine's writes, reads and log bytes.
//!
//! *Example*: 10 likes a second of 100 posts, on 4 shards with a window of a second, arrive in batches of 2 or 3. A
//! batch's likes seldom share a post, so each costs nearly a write unit for the counter, and one for its display.

use std::{collections::BTreeMap, sync::Arc};

use derive::family::Family;
use engine::batch::{Engine, Handled};
use keys::{item::Item, key::Key};
use store::{memory::MemoryStore, recording::Recording};

use super::{
    bed::SampleBed,
    load::{Load, LoadError},
    world::World,
};
use crate::Design;

/// Number of items in a run, and in the separate run of an entity that is rare in the load.
const ITEMS: (u32, u32) = (200, 20);

/// Maximum number of items in a run.
const ITEMS_MAX: u32 = 2_000;

/// Number of batches in a run.
const BATCHES: f64 = 4.0;

/// Maximum number of rounds. Each round adds the items that the functions read and did not find.
const ROUNDS_MAX: usize = 8;

/// The engine of a sample run.
pub type SampleEngine = Engine<Arc<Recording<Arc<MemoryStore>>>>;

/// Returns the number of bytes that a function of these families logs for a batch.
pub type LogBytes<'a> = &'a (dyn Fn(&SampleEngine, &[Family], &Handled) -> usize + Sync);

/// The resources that a run uses, or a second of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadUsage {
    /// Write units by part: the derivations of a write, the receipts, other items of the ledger.
    pub write_units: BTreeMap<String, f64>,
    /// Number of receipts written.
    pub receipts: f64,
    /// Read units.
    pub read_units: f64,
    /// Invocations.
    pub invocations: f64,
    /// Time of the invocations, in milliseconds.
    pub duration_ms: f64,
    /// Log output of the functions, in bytes.
    pub log_bytes: f64,
}

/// The part of receipts among the write units.
pub const RECEIPTS: &str = "receipts";

/// The part of other items of the ledger among the write units.
pub const OTHER: &str = "other items of the ledger";

impl LoadUsage {
    /// Adds another usage, times a factor.
    fn add(&mut self, other: Self, factor: f64) {
        for (part, units) in other.write_units {
            *self.write_units.entry(part).or_default() += units * factor;
        }
        for (sum, more) in [
            (&mut self.receipts, other.receipts),
            (&mut self.read_units, other.read_units),
            (&mut self.invocations, other.invocations),
            (&mut self.duration_ms, other.duration_ms),
            (&mut self.log_bytes, other.log_bytes),
        ] {
            *sum += more * factor;
        }
    }
}

/// The usage of a second of the load, without its fan-outs.
///
/// # Errors
///
/// [`LoadError`] if the load is empty, names an unknown entity or derivation, or has an entity without a sample.
pub async fn usage(design: &Design, load: &Load, log: LogBytes<'_>) -> Result<LoadUsage, LoadError> {
    load.check(design)?;
    let world = World::new(design, load);
    let mut a_second = LoadUsage::default();
    for load in load.by_table(design) {
        a_second.add(usage_of_table(design, &world, &load, log).await?, 1.0);
    }
    Ok(a_second)
}

/// The usage of a second of a load whose items are all in one table, so that they share the batches of one stream.
async fn usage_of_table(
    design: &Design,
    world: &World<'_>,
    load: &Load,
    log: LogBytes<'_>,
) -> Result<LoadUsage, LoadError> {
    let rate = load.rate();
    let count = |n: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
        let n = n.round().clamp(1.0, f64::from(ITEMS_MAX)) as u32;
        n
    };
    let n_items = count(load.batch() * BATCHES).max(ITEMS.0);
    // A rare entity would appear among the others only by chance, so it has a run of its own.
    let (often, rare): (Vec<_>, Vec<_>) =
        load.rates.iter().partition(|(_, one)| *one / rate * f64::from(n_items) >= 1.0);
    let mut a_second = LoadUsage::default();
    if !often.is_empty() {
        let rate: f64 = often.iter().map(|(_, rate)| *rate).sum();
        let items = mixed(world, &often, n_items)?;
        let (n, batch) = (f64::from(n_items), count(load.batch()));
        a_second.add(run(design, world, load, &items, batch, log).await.used, rate / n);
    }
    for (name, rate) in rare {
        let items = mixed(world, &[(name, rate)], ITEMS.1)?;
        a_second.add(run(design, world, load, &items, 1, log).await.used, rate / f64::from(ITEMS.1));
    }
    Ok(a_second)
}

/// This many items. Each entity appears in proportion to its rate, spread evenly.
fn mixed(world: &World<'_>, rates: &[(&String, &f64)], n_items: u32) -> Result<Vec<Item>, LoadError> {
    let mut due: Vec<(f64, u64)> = vec![(0.0, 0); rates.len()];
    let rate: f64 = rates.iter().map(|(_, rate)| **rate).sum();
    let mut items = Vec::new();
    for _ in 0..n_items {
        for ((due, _), (_, one)) in due.iter_mut().zip(rates) {
            *due += **one / rate;
        }
        let next = due.iter_mut().zip(rates).max_by(|((a, _), _), ((b, _), _)| a.total_cmp(b));
        let Some(((due, n), (name, _))) = next else { break };
        *due -= 1.0;
        *n += 1;
        items.push(world.item(name, *n).ok_or_else(|| LoadError::Sample((*name).clone()))?);
    }
    Ok(items)
}

/// A run of some items.
#[derive(Default)]
pub(super) struct UsageRun {
    /// The resources that the functions used for the items.
    pub(super) used: LoadUsage,
    /// The items that they name, which existed before the run.
    pub(super) named: BTreeMap<Key, Item>,
    /// The tables at the end.
    pub(super) store: Option<Arc<MemoryStore>>,
}

/// Runs these items in batches of this size, after the items that they name.
pub(super) async fn run(
    design: &Design,
    world: &World<'_>,
    load: &Load,
    items: &[Item],
    batch: u32,
    log: LogBytes<'_>,
) -> UsageRun {
    let mut named: BTreeMap<Key, Item> = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let mut bed = SampleBed::new(design, load, log);
        let before = named.values().cloned().collect::<Vec<_>>();
        bed.put(&before, usize::MAX).await;
        let used = bed.put(items, usize::try_from(batch).unwrap_or(usize::MAX)).await;
        let layout = &design.schema.layout;
        let missing = bed.read.iter().filter(|key| !bed.has(key)).filter_map(|key| world.at(key));
        let missing: Vec<(Key, Item)> = missing.filter_map(|item| Some((layout.key(&item)?, item))).collect();
        let n_before = named.len();
        for (key, item) in missing {
            named.entry(key).or_insert(item);
        }
        if named.len() == n_before {
            return UsageRun { used, named, store: Some(bed.store) };
        }
    }
    UsageRun::default()
}
