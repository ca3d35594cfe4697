//! A sample run: items are put into the store's model at the rate of the load, and the engine handles their records in
//! the batches that Lambda would gather. Invocations, and what they write, read and log, are counted.
//!
//! *Example*: 10 likes a second of 100 posts, on 4 shards with a window of a second, come in batches of 3 or 4. A batch's
//! likes seldom share a post, so each costs nearly a write unit for the counter, and one for its display.
//!
//! The last invocations of tumbling windows are the exception: a run is too short to count them. A window of a shard has
//! one if it has a record, and records that come at random leave a window of 60 seconds empty in e^(-60 × their rate) of
//! cases.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use derive::family::Family;
use engine::{
    batch::{Engine, Handled},
    ledger::LedgerKind,
};
use infra::mapping::TUMBLING_WINDOW_S;
use keys::{item::Item, key::Key};
use store::{memory::MemoryStore, recording::Recording};

use super::{
    Load, LoadError,
    bed::{Arriving, SampleBed},
    world::{World, scattered},
};
use crate::Design;

/// Fewest items of a run, and of one of an entity that is rare in the load.
const ITEMS_MIN: (u32, u32) = (800, 40);

/// Most items of a run.
const ITEMS_MAX: u32 = 4_000;

/// Batching windows of a run, and its least time in seconds.
const WINDOWS: f64 = 24.0;
const SECONDS_MIN: f64 = 60.0;

/// Most shards of a run: the others are like them.
const SHARDS_MAX: u32 = 4;

/// Batching windows at the start of a run that are not counted, since nothing follows from earlier items yet.
const WINDOWS_BEFORE: f64 = 3.0;

/// Maximum number of rounds. Each round adds the items that the functions read and did not find.
const ROUNDS_MAX: usize = 8;

/// The engine of a sample run.
pub type SampleEngine = Engine<Arc<Recording<Arc<MemoryStore>>>>;

/// Gives the bytes that a function of these families logs of a batch; `true` if the line also has the metrics that are 0.
pub type LogBytes<'a> = &'a (dyn Fn(&SampleEngine, &[Family], &Handled, bool) -> usize + Sync);

/// The resources that a run uses, or a second of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadUsage {
    /// Items that the application puts.
    pub items: f64,
    /// Write units by part: the derivations of a write, the receipts, other items of the ledger.
    pub write_units: BTreeMap<String, f64>,
    /// Number of receipts written.
    pub receipts: f64,
    /// Read units.
    pub read_units: f64,
    /// The invocations with records, by the family of the function.
    pub invocations: BTreeMap<Family, InvocationUsage>,
    /// The invocations at the ends of tumbling windows.
    pub window_ends: InvocationUsage,
}

/// Invocations, and what they use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InvocationUsage {
    /// How many they are.
    pub n: f64,
    /// The records of their batches.
    pub n_records: f64,
    /// Their time, in milliseconds.
    pub duration_ms: f64,
    /// What they log without the metrics that are 0, in bytes.
    pub log_bytes: f64,
    /// What those metrics would add if each line had them, in bytes.
    pub zeros_bytes: f64,
}

/// The part of receipts among the write units.
pub const RECEIPTS: &str = "receipts";

/// The part of other items of the ledger among the write units.
pub const OTHER: &str = "other items of the ledger";

/// The part of heartbeats among the write units.
pub const HEARTBEATS: &str = "heartbeats";

impl LoadUsage {
    /// Adds another usage, times a factor.
    pub(super) fn add(&mut self, other: Self, factor: f64) {
        for (part, units) in other.write_units {
            *self.write_units.entry(part).or_default() += units * factor;
        }
        for (family, invocations) in other.invocations {
            self.invocations.entry(family).or_default().add(invocations, factor);
        }
        self.window_ends.add(other.window_ends, factor);
        for (sum, more) in [
            (&mut self.items, other.items),
            (&mut self.receipts, other.receipts),
            (&mut self.read_units, other.read_units),
        ] {
            *sum += more * factor;
        }
    }

    /// All invocations.
    #[must_use]
    pub fn all_invocations(&self) -> InvocationUsage {
        let mut all = self.window_ends;
        self.invocations.values().for_each(|invocations| all.add(*invocations, 1.0));
        all
    }
}

impl InvocationUsage {
    /// Adds other invocations, times a factor.
    pub(super) fn add(&mut self, other: Self, factor: f64) {
        for (sum, more) in [
            (&mut self.n, other.n),
            (&mut self.n_records, other.n_records),
            (&mut self.duration_ms, other.duration_ms),
            (&mut self.log_bytes, other.log_bytes),
            (&mut self.zeros_bytes, other.zeros_bytes),
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

/// What a heartbeat uses, which the sweep writes at each run; nothing where no derivation needs heartbeats.
pub(super) async fn heartbeat(design: &Design, load: &Load, log: LogBytes<'_>) -> LoadUsage {
    SampleBed::new(design, load, log).heartbeat().await
}

/// What a second of a load uses whose items are all of one table, so that they come in the batches of one stream.
async fn usage_of_table(
    design: &Design,
    world: &World<'_>,
    load: &Load,
    log: LogBytes<'_>,
) -> Result<LoadUsage, LoadError> {
    let rate = load.rate();
    let plan = RunPlan::new(load);
    // An entity that is rare would be left to chance beside the others, so it has a run of its own.
    let (often, rare): (Vec<_>, Vec<_>) =
        load.rates.iter().partition(|(_, one)| *one / rate * f64::from(plan.n_items) >= 1.0);
    let mut a_second = LoadUsage::default();
    let often = (!often.is_empty()).then_some((often, plan.n_items));
    let runs = often.into_iter().chain(rare.into_iter().map(|one| (vec![one], ITEMS_MIN.1)));
    for (rates, n_items) in runs {
        let rate: f64 = rates.iter().map(|(_, rate)| *rate).sum();
        let items = mixed(world, &rates, n_items)?;
        let before = named(design, world, load, &items).await;
        let before: Vec<Item> = before.into_iter().flat_map(|(named, _)| named.into_values()).collect();
        let mut bed = SampleBed::new(design, load, log);
        bed.put(&before).await;
        let items = plan.arriving(items, rate, load);
        let counted = counted(&items, load);
        let used = bed.run(&Arriving { items: &items, n_shards: plan.n_shards.into(), counted }).await;
        let factor = rate / used.items.max(1.0);
        a_second.add(used, factor);
    }
    if load.ledger == LedgerKind::Watermarks {
        let counting = a_second.invocations.get(&Family::Additive).map_or(0.0, |it| it.n_records);
        let end = SampleBed::new(design, load, log).window_end().await;
        a_second.window_ends.add(end, window_ends(counting, load.n_shards));
    }
    Ok(a_second)
}

/// Windows with a record that end in a second, if so many records come a second at random.
fn window_ends(records: f64, n_shards: u32) -> f64 {
    let length_s = f64::from(TUMBLING_WINDOW_S);
    let each = records / f64::from(n_shards);
    f64::from(n_shards) / length_s * (1.0 - (-length_s * each).exp())
}

/// How long a run is, and on how many shards.
struct RunPlan {
    n_shards: u32,
    n_items: u32,
}

impl RunPlan {
    fn new(load: &Load) -> Self {
        let seconds = (load.window_seconds * WINDOWS).max(SECONDS_MIN);
        let of_a_shard = load.rate() / f64::from(load.n_shards) * seconds;
        let fits = |n_shards: &u32| of_a_shard * f64::from(*n_shards) <= f64::from(ITEMS_MAX);
        let n_shards = (1..=load.n_shards.min(SHARDS_MAX)).rev().find(fits).unwrap_or(1);
        let n_items = (of_a_shard * f64::from(n_shards)).clamp(ITEMS_MIN.0.into(), ITEMS_MAX.into());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
        let n_items = n_items.round() as u32;
        Self { n_shards, n_items }
    }

    /// Items at random times, so many a second on all shards of the load.
    fn arriving(&self, items: Vec<Item>, rate: f64, load: &Load) -> Vec<(u64, Item)> {
        let apart_ms = 1_000.0 / rate * f64::from(load.n_shards) / f64::from(self.n_shards);
        let mut at_ms = 0.0;
        let items = items.into_iter().zip(0..).map(|(item, n)| {
            // The time between two random events is distributed exponentially.
            let chance = f64::from(u32::try_from(scattered(n) >> 32).unwrap_or_default()) + 1.0;
            at_ms += -(chance / 4_294_967_296.0).ln() * apart_ms;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of a run is short")]
            (at_ms as u64, item)
        });
        items.collect()
    }
}

/// The time of a run that is counted: from when things follow from earlier items, to the last item; all of a short run.
fn counted(items: &[(u64, Item)], load: &Load) -> Range<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a batching window is short")]
    let start_ms = ((load.window_seconds + 1.0) * WINDOWS_BEFORE * 1_000.0) as u64;
    let end_ms = items.last().map_or(0, |(at_ms, _)| *at_ms);
    if end_ms > start_ms.saturating_mul(3) { start_ms..end_ms } else { 0..u64::MAX }
}

/// So many items, each entity as often as its rate says, spread evenly.
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

/// The items that these items name, which the application created before.
pub(super) async fn named(
    design: &Design,
    world: &World<'_>,
    load: &Load,
    items: &[Item],
) -> Option<(BTreeMap<Key, Item>, Arc<MemoryStore>)> {
    let mut named: BTreeMap<Key, Item> = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        let mut bed = SampleBed::new(design, load, &|_, _, _, _| 0);
        bed.put(&named.values().cloned().collect::<Vec<_>>()).await;
        bed.put(items).await;
        let layout = &design.schema.layout;
        let missing = bed.read.iter().filter(|key| !bed.has(key)).filter_map(|key| world.at(key));
        let missing: Vec<(Key, Item)> = missing.filter_map(|item| Some((layout.key(&item)?, item))).collect();
        let n_before = named.len();
        for (key, item) in missing {
            named.entry(key).or_insert(item);
        }
        if named.len() == n_before {
            return Some((named, bed.store));
        }
    }
    None
}
