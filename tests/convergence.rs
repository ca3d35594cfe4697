//! Convergence: whatever an application writes and whatever the platform does, derived data ends as it is defined.
//!
//! One seed drives an application over a few ids, a store with faults, and the delivery of its stream: in lanes, in
//! batches of any size, again, twice, out of place, at once, killed in the middle. When the stream is quiet, `verify`
//! finds nothing, nothing is parked, and delivering everything once more changes nothing.
//!
//! ```text
//! CONVERGENCE_CASES=1000 cargo nextest run -p tests --test convergence     # more seeds
//! CONVERGENCE_SEED=42 cargo nextest run -p tests --test convergence        # one of them
//! ```

#[path = "convergence/application.rs"]
mod application;
#[path = "convergence/bed.rs"]
mod bed;
#[path = "convergence/chance.rs"]
mod chance;
#[path = "convergence/delivery.rs"]
mod delivery;
#[path = "convergence/faulty.rs"]
mod faulty;
#[path = "convergence/listing.rs"]
mod listing;
#[path = "convergence/manual_clock.rs"]
mod manual_clock;
#[path = "convergence/panicking_look.rs"]
mod panicking_look;
#[path = "convergence/single_records.rs"]
mod single_records;

use std::{collections::BTreeMap, env, sync::Arc};

use application::Application;
use chance::Chance;
use delivery::{Batch, Deliveries, Function, Stream};
use derive::{
    catalogue::Catalogue,
    derivation::{Family, Items},
    refresh::sums,
    schema::{Schema, Seen},
    write::Table,
};
use engine::{
    batch::Handled,
    verify::{Verified, compare},
};
use faulty::Faulty;
use keys::{item::Item, key::Key};

/// Seeds a test.
const CASES: usize = 24;

/// Batches after which a run is taken for endless.
const BATCHES_MAX: usize = 20_000;

/// One run.
struct Run {
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    store: Faulty,
    stream: Stream,
    functions: Vec<Function>,
    application: Application,
    /// Writes that the application has left to do.
    n_writes: usize,
    chance: Chance,
    deliveries: Arc<Deliveries>,
}

impl Run {
    fn new(seed: u64, families: &[&[Family]], deliveries: &Arc<Deliveries>) -> Self {
        let mut chance = Chance::new(seed);
        let schema = Arc::new(catalogue::schema());
        let catalogue = Arc::new(catalogue::catalogue(&schema).unwrap());
        let percent = *chance.one_of(&[0, 6, 15]).unwrap();
        let store = Faulty::new(schema.layout.clone(), chance.next(), percent);
        let mut function = |families: &&[Family]| {
            Function::new((&schema, &catalogue), families.to_vec(), &store, chance.between(1, 3))
        };
        let functions = families.iter().map(&mut function).collect();
        let application = Application::new(schema.clone(), chance.next());
        let n_writes = variable("CONVERGENCE_WRITES").unwrap_or_else(|| chance.between(60, 150));
        Self {
            application,
            n_writes,
            schema,
            catalogue,
            store,
            stream: Stream::default(),
            functions,
            chance,
            deliveries: deliveries.clone(),
        }
    }

    /// Writes, delivers, and ends when nothing is left to deliver.
    async fn run(&mut self) -> Result<(), String> {
        // In some runs the functions sleep while the application writes.
        let percent = *self.chance.one_of(&[0, 40, 70]).unwrap();
        while self.n_writes > 0 {
            self.n_writes -= 1;
            self.application.write(self.store.memory()).await;
            self.take();
            while self.chance.percent(percent) {
                self.deliver_any().await?;
            }
        }
        self.deliver_all().await
    }

    fn take(&mut self) {
        self.stream.take(&self.store);
        self.functions.iter_mut().for_each(|function| function.take(&self.stream));
    }

    async fn deliver_all(&mut self) -> Result<(), String> {
        for _ in 0..BATCHES_MAX {
            self.take();
            if self.functions.iter().all(Function::is_quiet) && !self.store.land_one().await {
                return Ok(());
            }
            self.deliver_any().await?;
        }
        Err(format!("after {BATCHES_MAX} batches the stream is not quiet"))
    }

    /// One batch of one function; or two at once, of two functions, or the same one twice.
    async fn deliver_any(&mut self) -> Result<(), String> {
        let (first, second) = (self.chance.below(self.functions.len()), self.chance.below(self.functions.len()));
        let Some(one) = self.functions[first].next_batch(&mut self.chance, &self.deliveries) else { return Ok(()) };
        let other = match self.chance.below(10) {
            0 => Some((first, one.clone())),
            1..=3 => self.functions[second].next_batch(&mut self.chance, &self.deliveries).map(|batch| (second, batch)),
            _ => None,
        };
        self.deliveries.count("at once", other.is_some());
        let second = other.as_ref().map_or(first, |(second, _)| *second);
        let invoked = async |function: usize, batch: Option<&Batch>| match batch {
            Some(batch) => self.functions[function].invoke(&self.stream, batch).await,
            None => None,
        };
        let other = other.map(|(_, batch)| batch);
        let (one_end, other_end, ()) = tokio::join!(
            invoked(first, Some(&one)),
            invoked(second, other.as_ref()),
            write_between(&mut self.application, &mut self.n_writes, &mut self.chance, &self.store)
        );
        self.commit(first, &one, one_end.as_ref())?;
        if let Some(other) = other {
            self.commit(second, &other, other_end.as_ref())?;
        }
        if self.chance.percent(5) {
            self.store.land_one().await;
        }
        self.take();
        Ok(())
    }

    fn commit(&mut self, function: usize, batch: &Batch, handled: Option<&Handled>) -> Result<(), String> {
        self.functions[function].commit(&self.stream, batch, handled, &self.deliveries);
        match handled.and_then(|handled| handled.account.parked.first()) {
            Some(parked) => Err(format!("{} is parked: {}", parked.id, parked.cause)),
            None => Ok(()),
        }
    }

    /// Holds what must be true when the stream is quiet.
    fn audit(&self) -> Result<Verified, String> {
        let items = self.store.memory().snapshot(Table::Main);
        let verified = compare(&self.schema, &self.catalogue, &items);
        if let Some(finding) = verified.findings.first() {
            return Err(format!("{} findings, the first: {finding:#?}", verified.findings.len()));
        }
        let parked = self.store.memory().snapshot(Table::Ledger).into_keys().find(|key| key.pk.starts_with("PARKED"));
        if let Some(parked) = parked {
            return Err(format!("{parked} is in the ledger"));
        }
        let is_torso = |(key, item): &(&Key, &Item)| {
            matches!(self.schema.see(key, item), Seen::Untyped) && !self.application.untyped().contains(*key)
        };
        if let Some((key, _)) = items.iter().find(is_torso) {
            return Err(format!("{key} has no type, and the application wrote none such"));
        }
        self.views_are_exact(&items)?;
        Ok(verified)
    }

    /// What `verify` cannot tell from the ground: each insert of a view counts once.
    fn views_are_exact(&self, items: &Items) -> Result<(), String> {
        let view = self.schema.entity("View").unwrap();
        let detail = self.schema.entity("PostDetail").unwrap();
        let mut inserted: BTreeMap<(Key, String), i64> = BTreeMap::new();
        for key in self.stream.inserts("View") {
            let target = detail.build(&view.key.parse_key(key).unwrap()).unwrap();
            *inserted.entry((target, "view-count".to_owned())).or_default() += 1;
        }
        let mut counted = sums(&self.schema, items.values());
        counted.retain(|(_, derivation), _| derivation == "view-count");
        if inserted == counted { Ok(()) } else { Err(format!("views inserted {inserted:?}, counted {counted:?}")) }
    }

    /// Delivers everything once more; nothing may change.
    async fn replay(&mut self) -> Result<(), String> {
        let before = self.store.memory().snapshot(Table::Main);
        self.store.heal();
        self.functions.iter_mut().for_each(Function::rewind);
        let n_records = self.stream.len();
        self.deliver_all().await?;
        if self.stream.len() > n_records || self.store.memory().snapshot(Table::Main) != before {
            return Err("delivering everything once more changed something".to_owned());
        }
        Ok(())
    }
}

/// In one of four cases the application writes in the middle of an invocation.
async fn write_between(application: &mut Application, n_writes: &mut usize, chance: &mut Chance, store: &Faulty) {
    if *n_writes == 0 || !chance.percent(25) {
        return;
    }
    for _ in 0..chance.below(12) {
        tokio::task::yield_now().await;
    }
    *n_writes -= 1;
    application.write(store.memory()).await;
}

/// Runs the seeds that the environment asks for.
fn converges(families: &[&[Family]]) {
    let deliveries = Arc::new(Deliveries::default());
    let mut faults: BTreeMap<&'static str, usize> = BTreeMap::new();
    let n_cases = variable("CONVERGENCE_CASES").unwrap_or(CASES);
    let first = variable("CONVERGENCE_SEED");
    let seeds = first.map_or(0..n_cases, |seed| seed..seed + 1);
    for seed in seeds.clone() {
        let _told = Told(seed);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut run = Run::new(u64::try_from(seed).unwrap(), families, &deliveries);
        let ended = runtime.block_on(async {
            run.run().await?;
            run.audit()?;
            run.replay().await?;
            run.audit()
        });
        if let Err(why) = ended {
            panic!("{why}");
        }
        for (fault, n) in run.store.counts() {
            *faults.entry(fault).or_default() += n;
        }
    }
    faults.extend(deliveries.counts());
    println!("{faults:?}");
    if seeds.len() >= CASES {
        let is_rare = |(_, n): &(&str, usize)| *n < seeds.len() / 8;
        let rare: Vec<_> = faults.into_iter().filter(is_rare).collect();
        assert!(rare.is_empty(), "the run proves less than it says, since these are rare: {rare:?}");
    }
}

/// Says how a run is repeated that panics.
struct Told(usize);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat: CONVERGENCE_SEED={} cargo nextest run -p tests --test convergence", self.0);
        }
    }
}

fn variable(name: &str) -> Option<usize> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn two_functions_bring_every_derived_value_in_step() {
    converges(&[&[Family::Additive], &[Family::LevelTriggered]]);
}

#[test]
fn one_function_brings_every_derived_value_in_step() {
    converges(&[&[Family::Additive, Family::LevelTriggered]]);
}
