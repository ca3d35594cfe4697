//! The service under test: the shipped table with a derivation of each kind that it lacks, the engines, and what they have
//! stored beside derived values.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use derive::{
    catalogue::Catalogue,
    declaration::Link,
    derivation::Derivation,
    expression::pairs,
    family::Family,
    kinds::{
        display::{Display, Shows, Zero},
        latest::Latest,
    },
    query::Order,
    schema::Schema,
    write::Table,
};
use engine::{
    batch::{Engine, Handled},
    clock::Clock,
    count::RECOUNT,
    job::Job,
    ledger::LedgerKind,
    limits::FanOutLimits,
    registry::RegistryWatch,
};
use functions::handler::response;
use futures::future::BoxFuture;
use keys::{item::Item, job::JobKey, key::Key};
use serde_json::Value;
use store::Store;
use support::clock::ManualClock;

use crate::{mutant::Mutant, scene::Scene};

/// Derived attributes that the shipped table lacks, by entity.
const ATTRIBUTES: [(&str, &str); 4] = [
    ("PostDetail", "LastCommentBy"),
    ("PostDetail", "LastCommentAt"),
    ("PostDetail", "FirstCommentAt"),
    ("Organization", "HasTeams"),
];

pub(crate) fn schema() -> Schema {
    let shipped = catalogue::schema();
    let with_more = |definition: &keys::entity::Definition| {
        let mut definition = definition.clone();
        let more = ATTRIBUTES.into_iter().filter(|(entity, _)| *entity == definition.name);
        definition.derived_attributes.extend(more.map(|(_, name)| name.to_owned()));
        definition
    };
    Schema::new(shipped.layout.clone(), shipped.entities().map(with_more))
}

pub(crate) fn derivations() -> Vec<Derivation> {
    let last = [("UserId", "LastCommentBy"), ("CreatedAt", "LastCommentAt")];
    let team_exists = Display {
        count: "team-count".to_owned(),
        target: "Organization".to_owned(),
        shows: Shows::Exists,
        attribute: "HasTeams".to_owned(),
        zero: Zero::Write,
    };
    let mut derivations = catalogue::derivations();
    derivations.extend([
        Derivation::new("S-01", "last-comment", latest(Order::Descending, &last)),
        Derivation::new("S-02", "first-comment", latest(Order::Ascending, &[("CreatedAt", "FirstCommentAt")])),
        Derivation::new("S-03", "team-exists", team_exists),
    ]);
    derivations
}

fn latest(order: Order, attributes: &[(&str, &str)]) -> Latest {
    Latest {
        source: "Comment".to_owned(),
        target: "PostDetail".to_owned(),
        link: Some(Link::of(&[("PostId", "PostId")])),
        order,
        attributes: pairs(attributes),
        list: None,
    }
}

pub(crate) fn catalogue(schema: &Schema) -> Catalogue {
    Catalogue::new(schema, derivations()).unwrap()
}

// ---- Engines as the functions and the operators make them, and the handler: the text of an event in, a response out ----

/// How long after a removal a cascade begins, in milliseconds.
pub(crate) const SETTLE_MS: u64 = 30_000;

/// Small limits, so that there are jobs with several pages.
pub(crate) const FAN_OUT: FanOutLimits = FanOutLimits {
    direct_max: 2,
    page_items: 2,
    page_ms: 30,
    page_ms_max: 30,
    page_beside_ms: 5,
    units_per_second: None,
    index_lag_ms: 15_000,
};

/// How far a clock is off that is wrong by years, in milliseconds: 16 years.
const YEARS_OFF_MS: i64 = 16 * 366 * 24 * 3_600_000;

/// The clock of one instance, which may be off.
pub(crate) struct InstanceClock {
    clock: ManualClock,
    /// By how much, in milliseconds.
    off_ms: i64,
}

impl InstanceClock {
    pub(crate) fn drawn(scene: &Scene) -> Self {
        let (chance, max) = (&scene.chance, scene.clocks_off_ms);
        let off_ms = i64::try_from(chance.below(2 * max + 1)).unwrap();
        // A draw of 0 is a clock that is right.
        let off_ms = if off_ms % 2 == 0 { off_ms / 2 } else { -(off_ms / 2) - 1 };
        scene.count_all("clocks off", usize::from(off_ms != 0));
        Self { clock: scene.clock.clone(), off_ms }
    }

    /// One that is wrong by years. DynamoDB refuses each call that it signs.
    pub(crate) fn years_off(scene: &Scene) -> Self {
        let off_ms = *scene.chance.one_of(&[YEARS_OFF_MS, -YEARS_OFF_MS]).unwrap();
        scene.count("clocks off by years");
        Self { clock: scene.clock.clone(), off_ms }
    }
}

impl Clock for InstanceClock {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add_signed(self.off_ms)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }

    fn until(&self, at_ms: u64) -> BoxFuture<'static, ()> {
        self.clock.until(at_ms.saturating_add_signed(-self.off_ms))
    }

    fn chance(&self, below: u64) -> u64 {
        self.clock.chance(below)
    }
}

/// The engine of a function's instance that starts with this clock, of the old or the new version.
pub(crate) fn function<S: Store>(
    scene: &Scene,
    clock: InstanceClock,
    (families, ledger): (&[Family], LedgerKind),
    store: S,
    is_old: bool,
) -> Engine<S> {
    let old = scene.rollout.old().filter(|_| is_old);
    let catalogue = old.map_or_else(|| Arc::clone(&scene.catalogue), Arc::clone);
    // A process checks the registry before anything else. One whose calls are all refused so handles nothing.
    let is_alone = clock.off_ms.abs() == YEARS_OFF_MS;
    let watch = if is_alone { scene.rollout.own_watch() } else { scene.rollout.watch(is_old, families) };
    built(scene, clock, catalogue, (families, ledger), store).watching(watch)
}

/// The families of a function that runs everything, and of the operator's commands.
pub(crate) const BOTH: [Family; 2] = [Family::Additive, Family::LevelTriggered];

/// The engine of an operator's command with this catalogue.
pub(crate) fn engine<S: Store>(scene: &Scene, catalogue: &Arc<Catalogue>, ledger: LedgerKind, store: S) -> Engine<S> {
    let (clock, catalogue) = (InstanceClock::drawn(scene), Arc::clone(catalogue));
    built(scene, clock, catalogue, (&BOTH, ledger), store).watching(RegistryWatch::reading(0))
}

fn built<S: Store>(
    scene: &Scene,
    clock: InstanceClock,
    catalogue: Arc<Catalogue>,
    (families, ledger): (&[Family], LedgerKind),
    store: S,
) -> Engine<S> {
    let schema = Arc::clone(&scene.schema);
    let engine = Engine::new(schema, catalogue, families.to_vec(), store, Arc::new(clock));
    let left_out = scene.config.mutant.and_then(Mutant::step);
    let engine = engine.with_ledger(ledger).with_limits(scene.limits());
    let engine = engine.with_settling(scene.settle_ms()).with_fan_out(FAN_OUT).with_spread(scene.spread);
    engine.with_hot_for(scene.hot_for_ms).without(left_out)
}

/// The handler's response, with the engine's account. An error is a function error.
pub(crate) async fn respond<S: Store>(
    engine: &Engine<S>,
    event: &str,
    deadline_ms: u64,
) -> Result<(Value, Handled), String> {
    let handled = engine.handle(event, deadline_ms).await.map_err(|error| error.to_string())?;
    Ok((response(&handled), handled))
}

// ---- What the service has stored beside derived values: parked records, jobs, and notes of searches to repeat ----

/// Prefix of the partition keys of notes.
const NOTES: &str = "AGAIN#";

pub(crate) struct Parked {
    pub(crate) key: Key,
    /// Id of the event.
    pub(crate) id: String,
    /// Why it is parked.
    pub(crate) cause: String,
}

/// Counts that are listed for a recount: the derivation, and the item that the count is about.
pub(crate) type ToRecount = BTreeSet<(String, Key)>;

fn field(item: &Item, name: &str) -> String {
    keys::item::text(item, name).unwrap_or_default().to_owned()
}

pub(crate) fn to_recount(scene: &Scene) -> ToRecount {
    scene.database.memory().view(Table::Ledger, |items| {
        let listed = items.iter().filter(|(key, _)| key.pk == RECOUNT);
        let target = |item: &Item| (field(item, "Derivation"), Key::new(field(item, "ItemPK"), field(item, "ItemSK")));
        listed.map(|(_, item)| target(item)).collect()
    })
}

/// Ids of the records that are refused without being read.
pub(crate) fn refused_unread(scene: &Scene) -> BTreeSet<String> {
    scene.database.memory().view(Table::Ledger, |items| {
        let listed = items.keys().filter(|key| key.pk == RECOUNT);
        listed.filter_map(|key| key.sk.strip_prefix("*#").map(str::to_owned)).collect()
    })
}

pub(crate) fn parked(scene: &Scene) -> Vec<Parked> {
    scene.database.memory().view(Table::Ledger, |items| {
        let parked = items.iter().filter(|(key, _)| key.pk.starts_with("PARKED#"));
        let parked = parked.map(|(key, item)| Parked {
            key: key.clone(),
            id: field(item, "EventId"),
            cause: field(item, "Cause"),
        });
        parked.collect()
    })
}

pub(crate) fn jobs(scene: &Scene) -> Vec<Job> {
    let layout = &scene.schema.layout;
    let is_job = |(key, _): &(&Key, &Item)| JobKey::parse(key).is_some();
    scene
        .database
        .memory()
        .view(Table::Main, |items| items.iter().filter(is_job).filter_map(|(_, item)| Job::of(layout, item)).collect())
}

/// Is there a mark of a possible loss that holds cascades?
pub(crate) fn may_have_lost(scene: &Scene) -> bool {
    scene
        .database
        .memory()
        .view(Table::Ledger, |items| items.keys().any(|key| key.pk == "LOSS" && key.sk.starts_with("level-triggered#")))
}

/// How long a run waits for a note at its end, in milliseconds. Notes of days that leave a window stay.
const NOTED_MS: u64 = 3_600 * 1_000;

/// The times at which noted searches are due, in milliseconds since the epoch.
pub(crate) fn notes(scene: &Scene) -> Vec<u64> {
    let until_ms = scene.clock.now_ms() + NOTED_MS;
    let due_ms = |key: &Key| {
        let (due_ms, _) = key.sk.split_once('#').filter(|_| key.pk.starts_with(NOTES))?;
        due_ms.parse().ok().filter(|due_ms| *due_ms <= until_ms)
    };
    scene.database.memory().view(Table::Ledger, |items| items.keys().filter_map(due_ms).collect())
}
