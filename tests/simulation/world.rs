//! The state of one run beside the scene. It imports only the pace of those who act: the actors change it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex},
};

use derive::{
    derived::Items,
    family::Family,
    query::{Consistency, Query},
    schema::Schema,
    write::{Action, Table, Transaction, Write},
};
use engine::{
    account::Target,
    batch::{Engine, Handled},
    clock::Clock,
    ledger::LedgerKind,
    sweep::Slice,
};
use futures::future::BoxFuture;
use keys::{
    item::{Item, text},
    key::Key,
};
use operate::verify::{Following, Listener, Retained, ShardRecords, VerifyEvent};
use serde_json::Value;
use store::{
    Cursor, Outcome, Page, Segment, Store, StoreError, TransactOutcome, Updated,
    faulty::{Call, Faulty},
};
use support::record::Window;

use crate::{
    actors::{self, Pace, Step},
    caller::{Caller, Gone, Role, Task, now},
    deployed::{BOTH, InstanceClock, engine, function},
    platform::{
        mapping::{Batch, Mapping},
        stream::{GivenRecord, Stream, StreamRecord, by_shard},
    },
    scene::{Scene, Theme},
    trace::EXCEPTION_PAGES,
};

/// In one run of so many, a process handles several invocations at once.
const SHARED_ONE_IN: usize = 6;

pub(crate) struct World {
    pub(crate) scene: Arc<Scene>,
    pub(crate) stream: Stream,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) tasks: Vec<Running>,
    /// Does a process handle several invocations at once?
    shares_processes: bool,
    pub(crate) processes: Vec<Process>,
    pub(crate) n_tasks: usize,
    pub(crate) application: Application,
    /// Writes that the application still has to do.
    pub(crate) n_writes: usize,
    pub(crate) pace: Pace,
    /// The time since which an index lags.
    pub(crate) behind_since_ms: Option<u64>,
    /// For each event, how many invocations with it died, or ran on after others could assume so.
    pub(crate) n_deaths: BTreeMap<String, usize>,
    pub(crate) verifying: Verifying,
    pub(crate) planted: Planted,
    pub(crate) losses: Losses,
    /// Slices under way in the middle of the run, each with the first change that was not handled when it began.
    pub(crate) slices: Vec<(usize, Arc<Mutex<Option<Slice>>>)>,
}

impl World {
    /// The state before anything happens.
    pub(crate) fn new(scene: &Arc<Scene>, ledger: LedgerKind) -> Self {
        let mut pace = Pace::new(&scene.chance, scene.rollout.is_any(), scene.is_lossy);
        // The brake needs large batches.
        pace.functions_sleep |= scene.is_braked;
        // A repeated removal must start nothing after its cascade, when new items have come.
        if scene.theme == Theme::Removals {
            for step in [Step::Replay, Step::SetBack] {
                pace.more_of(step, 5);
            }
        }
        scene.make_table();
        // One draw, so that a run whose processes are not shared is as it was before any were.
        let drawn = scene.chance.below(3 * SHARED_ONE_IN);
        let (is_combined, shares_processes) = (drawn % 3 == 1, drawn / 3 == 1);
        let mappings = if is_combined {
            vec![Mapping::new(scene, "combined", &BOTH, ledger)]
        } else {
            let aggregate = Mapping::new(scene, "aggregate", &[Family::Additive], ledger);
            let propagate = Mapping::new(scene, "propagate", &[Family::LevelTriggered], LedgerKind::Receipts);
            vec![aggregate, propagate]
        };
        let mut world = Self {
            stream: Stream::new(scene),
            mappings,
            tasks: Vec::new(),
            shares_processes,
            processes: Vec::new(),
            n_tasks: 0,
            application: Application::new(scene),
            n_writes: pace.n_writes,
            pace,
            behind_since_ms: None,
            n_deaths: BTreeMap::new(),
            verifying: Verifying::default(),
            planted: Planted::default(),
            losses: Losses::default(),
            slices: Vec::new(),
            scene: Arc::clone(scene),
        };
        if scene.is_lossy {
            world.beat();
        }
        world
    }

    /// Has the application written everything?
    pub(crate) fn is_written(&self) -> bool {
        self.n_writes == 0 || self.scene.chance.is_exhausted()
    }

    pub(crate) fn caller(&mut self, name: &str) -> TaskCaller {
        self.n_tasks += 1;
        let role = Role::of(name);
        let name: Arc<str> = format!("{name} #{}", self.n_tasks).into();
        let gone = Gone::default();
        let deadline_ms = actors::deadline_ms(&self.scene);
        let caller = Caller::new(&self.scene, &name, role, &gone, deadline_ms);
        let store = Arc::new(Faulty::new(&self.scene.database, caller));
        TaskCaller { name, role, gone, store, deadline_ms, process: None, is_old: false }
    }

    /// The caller and the engine of an operator's command or of the sweep.
    pub(crate) fn command(&mut self, name: &str) -> (TaskCaller, Engine<Arc<Faulty<Caller>>>) {
        let caller = self.caller(name);
        let engine = engine(&self.scene, &self.scene.catalogue, self.mappings[0].ledger, Arc::clone(&caller.store));
        (caller, engine)
    }

    /// Starts the task of a new caller.
    pub(crate) fn start(
        &mut self,
        caller: TaskCaller,
        delivery: Option<Delivery>,
        future: impl Future<Output = Answer> + 'static,
    ) {
        let task = Task::new(&caller.gone, future);
        self.tasks.push(Running { task, caller, delivery });
    }
}

// ---- The stream as verifications follow it, and what they report ----

/// The stream and the progress of the functions, as a verification sees them.
#[derive(Debug, Default)]
pub(crate) struct StreamView {
    /// Records that have arrived since the verification last asked.
    records: Vec<GivenRecord>,
    /// How many records of the stream have arrived so far.
    n_seen: usize,
    /// Everything before this moment has arrived, and everything before the other is handled.
    arrived_ms: u64,
    handled_ms: u64,
    /// Did somebody say, wrongly perhaps, that the functions have handled everything?
    is_guessed: bool,
    /// Is it that of the real AWS, where nobody knows what is handled? Then all that the stream still holds, and of which
    /// state of it that is.
    retained: Option<Vec<GivenRecord>>,
    retained_of: (usize, usize, u64),
}

/// How long a stream holds records, in milliseconds; those that are not handled are held for longer here.
pub(crate) const RETAINED_MS: u64 = 24 * 3_600 * 1_000;

/// A verification's own view of the stream. The scheduler updates it.
pub(crate) type SharedView = Arc<Mutex<StreamView>>;

/// Gives a verification its view of the stream, by the verification's own clock.
pub(crate) struct ViewReader {
    view: SharedView,
    /// How far that clock is off, in milliseconds.
    off_ms: i64,
}

impl ViewReader {
    pub(crate) fn new(scene: &Scene, clock: &dyn Clock, view: SharedView) -> Self {
        Self { view, off_ms: clock.now_ms().cast_signed() - scene.clock.now_ms().cast_signed() }
    }
}

impl Following for ViewReader {
    fn records(&self) -> Vec<ShardRecords> {
        by_shard(&std::mem::take(&mut self.view.lock().unwrap().records))
    }

    fn has_given(&self, moment_ms: u64) -> bool {
        self.view.lock().unwrap().arrived_ms.saturating_add_signed(self.off_ms) >= moment_ms
    }

    fn is_handled(&self, moment_ms: u64) -> Option<bool> {
        let view = self.view.lock().unwrap();
        if view.is_guessed {
            return Some(true);
        }
        Some(view.handled_ms.min(view.arrived_ms).saturating_add_signed(self.off_ms) >= moment_ms)
    }

    fn is_typed(&self) -> bool {
        self.view.lock().unwrap().retained.is_some()
    }

    /// What comes later is given beside it.
    fn retained(&self, _until_ms: u64) -> Box<dyn Retained + '_> {
        let view = self.view.lock().unwrap();
        Box::new(AllAtOnce(by_shard(view.retained.as_deref().unwrap_or_default())))
    }
}

/// All that a stream holds, shard by shard.
pub(crate) struct AllAtOnce(pub(crate) Vec<ShardRecords>);

impl Retained for AllAtOnce {
    fn next(&mut self) -> BoxFuture<'_, io::Result<Option<ShardRecords>>> {
        Box::pin(std::future::ready(Ok(self.0.pop())))
    }
}

impl StreamView {
    /// Follows from the last record on.
    pub(crate) fn from_now(stream: &Stream) -> Self {
        Self { n_seen: stream.records.len(), ..Self::default() }
    }

    /// The same of the real AWS.
    pub(crate) fn typed(self) -> Self {
        Self { retained: Some(Vec::new()), ..self }
    }

    /// The same with a guess that everything is handled.
    pub(crate) fn guessed(self) -> Self {
        Self { is_guessed: true, ..self.typed() }
    }

    /// Adds what has arrived and what was handled since the last time.
    pub(crate) fn update(&mut self, scene: &Scene, stream: &Stream, mappings: &[Mapping]) {
        self.records.extend(stream.given(stream.records[self.n_seen..].iter()));
        self.n_seen = stream.records.len();
        let at_ms = |made: usize| stream.made.get(made).map_or(scene.clock.now_ms(), |made| made.at_ms);
        self.arrived_ms = at_ms(stream.first_on_its_way());
        let undone = mappings.iter().map(|mapping| mapping.first_undone(stream)).min().unwrap_or(0);
        self.handled_ms = at_ms(undone);
        if let Some(retained) = &mut self.retained {
            let since_ms = scene.clock.now_ms().saturating_sub(RETAINED_MS);
            // In minutes, since it is asked for at every step.
            let state = (self.n_seen, undone, since_ms / 60_000);
            if self.retained_of == state {
                return;
            }
            self.retained_of = state;
            let is_held = |record: &&StreamRecord| record.made >= undone || at_ms(record.made) >= since_ms;
            *retained = stream.given(stream.records.iter().filter(is_held));
        }
    }
}

/// The events of a verification that has ended.
pub(crate) type Reported = Arc<Mutex<Option<Vec<VerifyEvent>>>>;

/// A verification under way, and the derivations that were not filled when it began.
type UnderWay = (Reported, BTreeSet<String>);

#[derive(Default)]
pub(crate) struct EventList(pub(crate) Vec<VerifyEvent>);

impl Listener for EventList {
    fn report(&mut self, event: VerifyEvent) -> io::Result<()> {
        self.0.push(event);
        Ok(())
    }

    fn read(&mut self, _n_items: usize) {}

    fn looked(&mut self, _n_items: usize) {}

    fn counted(&mut self, _n_counts: usize) {}
}

#[derive(Default)]
pub(crate) struct Verifying {
    /// The verification that runs.
    pub(crate) under_way: Option<UnderWay>,
    /// The views of all verifications and repairs.
    pub(crate) views: Vec<SharedView>,
}

// ---- What a run remembers of its losses ----

/// What stops, and loses what waits there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    /// One lane of a function.
    Lane,
    /// All of a function.
    Mapping,
    /// All functions; the table has another stream from then on.
    Stream,
}

#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) n: usize,
    pub(crate) stopped: Option<Loss>,
    /// When the last loss was that no mark shows yet, in milliseconds since the epoch. Until a function is at work again, no
    /// pulse comes, so no cascade begins.
    pub(crate) unmarked_since_ms: Option<u64>,
    /// Has no repair ended that began after the last loss, and decided everything?
    pub(crate) is_open: bool,
    /// Did an item wait for what is under way in the last repair that ended?
    pub(crate) waits: bool,
    /// Verifications since then that were begun and may have removed the marks.
    pub(crate) n_verified: usize,
    /// Repairs of losses that were begun.
    pub(crate) n_tries: usize,
}

// ---- Counts that somebody made wrong by hand, and the repairs that mend them ----

/// The planted faults, and the repairs under way.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    /// Targets that were ever made wrong.
    pub(crate) ever: BTreeSet<Target>,
    /// Targets that no repair has mended since, with the number of their last fault.
    pub(crate) left: BTreeMap<Target, usize>,
    pub(crate) n_faults: usize,
    pub(crate) n_repairs: usize,
    pub(crate) under_way: Vec<RepairUnderWay>,
}

#[derive(Debug)]
pub(crate) struct RepairUnderWay {
    /// The number of the last fault, and of the last loss, before it began.
    pub(crate) n_faults: usize,
    pub(crate) n_losses: usize,
    pub(crate) ended: Ended,
}

/// The result of a repair, once it has ended.
pub(crate) type Ended = Arc<Mutex<Option<Mended>>>;

/// What a repair has mended.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    /// Did it decide about everything but counts that wait, and write what it had to?
    pub(crate) is_done: bool,
    /// Does an item wait for what is under way?
    pub(crate) waits: bool,
    /// Did it see everything, and mend all that it could decide?
    pub(crate) is_whole: bool,
    /// Targets that it could not decide.
    pub(crate) undecided: BTreeSet<Target>,
    /// Derivations that are not wholly right.
    pub(crate) open: BTreeSet<String>,
}

// ---- process ----

/// After this many invocations a process ends, and the next one has what is deployed then.
const INVOCATIONS_MAX: usize = 20;

/// Of a hundred processes, how many have a clock that is wrong by years.
const YEARS_OFF_PERCENT: usize = 2;

/// A process, which may have invocations under way.
pub(crate) struct Process {
    engine: Arc<Engine<Arc<TurnStore>>>,
    pub(crate) store: Arc<TurnStore>,
    gone: Gone,
    /// Position of the mapping that invokes it.
    mapping: usize,
    pub(crate) is_old: bool,
    /// Did it start when nothing went wrong any more?
    is_healed: bool,
    /// Is its clock wrong by years, so that DynamoDB refuses each of its calls?
    is_years_off: bool,
    n_invocations: usize,
}

impl Process {
    fn new(scene: &Arc<Scene>, (families, ledger): (&[Family], LedgerKind), mapping: usize, is_old: bool) -> Self {
        let store = Arc::new(TurnStore { scene: Arc::clone(scene), turn: Mutex::default() });
        let (gone, is_healed) = (Gone::default(), scene.is_healed());
        let is_years_off = !is_healed && scene.per_mille > 0 && scene.chance.percent(YEARS_OFF_PERCENT);
        let clock = if is_years_off { InstanceClock::years_off(scene) } else { InstanceClock::drawn(scene) };
        let engine = Arc::new(function(scene, clock, (families, ledger), Arc::clone(&store), is_old));
        Self { engine, store, gone, mapping, is_old, is_healed, is_years_off, n_invocations: 0 }
    }

    /// Does it take another invocation by this mapping, of this version?
    fn takes(&self, scene: &Scene, mapping: usize, is_old: bool) -> bool {
        let is_asked = (self.mapping, self.is_old, self.is_healed) == (mapping, is_old, scene.is_healed());
        is_asked && !self.gone.is_set() && self.n_invocations < INVOCATIONS_MAX
    }
}

impl World {
    /// The engine of an invocation: of a process of its own, or of one that is shared.
    pub(crate) fn placed(&mut self, caller: &mut TaskCaller, mapping: usize) -> Arc<Engine<Arc<TurnStore>>> {
        let (scene, at) = (&self.scene, &self.mappings[mapping]);
        let taken = self.processes.iter().position(|process| process.takes(scene, mapping, caller.is_old));
        let mut process = match taken {
            Some(taken) => self.processes.remove(taken),
            None => Process::new(scene, (&at.families, at.ledger), mapping, caller.is_old),
        };
        process.n_invocations += 1;
        let is_beside = |store: &Arc<TurnStore>| Arc::ptr_eq(store, &process.store);
        if self.tasks.iter().any(|running| running.caller.process.as_ref().is_some_and(is_beside)) {
            scene.count("in one process");
        }
        caller.gone = process.gone.beside();
        let beside = Caller::new(scene, &caller.name, caller.role, &caller.gone, caller.deadline_ms);
        let beside = beside.refused(process.is_years_off);
        caller.store = Arc::new(Faulty::new(&scene.database, beside));
        caller.process = Some(Arc::clone(&process.store));
        let engine = Arc::clone(&process.engine);
        if self.shares_processes {
            self.processes.push(process);
        }
        engine
    }
}

/// The store of a process: a call is of the invocation whose turn it is.
#[derive(Debug)]
pub(crate) struct TurnStore {
    scene: Arc<Scene>,
    turn: Mutex<Option<Arc<Faulty<Caller>>>>,
}

impl TurnStore {
    /// From now on it is this invocation's turn.
    pub(crate) fn turn(&self, store: &Arc<Faulty<Caller>>) {
        *self.turn.lock().unwrap() = Some(Arc::clone(store));
    }

    fn own(&self) -> Arc<Faulty<Caller>> {
        Arc::clone(self.turn.lock().unwrap().as_ref().unwrap())
    }
}

impl Store for TurnStore {
    async fn read(&self, table: Table, keys: &[Key], consistency: Consistency) -> Result<Vec<(Key, Item)>, StoreError> {
        self.own().read(table, keys, consistency).await
    }

    async fn query(&self, table: Table, query: &Query, after: Option<Cursor>) -> Result<Page, StoreError> {
        let is_later = after.is_some() && query.pk.starts_with("SHARD#");
        self.scene.count_all(EXCEPTION_PAGES, usize::from(is_later));
        self.own().query(table, query, after).await
    }

    async fn scan(&self, table: Table, segment: Segment, after: Option<Cursor>) -> Result<Page, StoreError> {
        self.own().scan(table, segment, after).await
    }

    async fn write(&self, write: &Write) -> Result<Outcome, StoreError> {
        self.own().write(write).await
    }

    async fn update(&self, write: &Write) -> Result<Updated, StoreError> {
        self.own().update(write).await
    }

    async fn transact(&self, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
        self.own().transact(transaction).await
    }
}

// ---- The tasks of a run: invocations and operators' commands, with what the platform keeps of each ----

/// Most tasks at once.
pub(crate) const TASKS_MAX: usize = 8;

/// What a task ends with: the response that the platform reads, and the engine's account.
pub(crate) type Answer = Result<Option<(Value, Handled)>, String>;

pub(crate) struct Running {
    pub(crate) task: Task<Answer>,
    pub(crate) caller: TaskCaller,
    pub(crate) delivery: Option<Delivery>,
}

/// A caller of the store with a task.
pub(crate) struct TaskCaller {
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    pub(crate) gone: Gone,
    pub(crate) store: Arc<Faulty<Caller>>,
    pub(crate) deadline_ms: u64,
    /// The process of a function that handles it.
    pub(crate) process: Option<Arc<TurnStore>>,
    /// Is it an instance of the old version?
    pub(crate) is_old: bool,
}

/// What the platform delivered to an invocation.
pub(crate) struct Delivery {
    pub(crate) mapping: usize,
    pub(crate) batch: Batch,
    pub(crate) window: Option<Window>,
    /// Does the platform still wait for the response?
    pub(crate) is_awaited: bool,
}

// ---- The application's memory. What it writes is in `actors/application.rs` ----

/// The attribute by which an item that has the key of a derived one is found again, and its text.
pub(crate) const NOTE: &str = "Note";
pub(crate) const FOREIGN: &str = "foreign";

/// An application, with items that it read before.
pub(crate) struct Application {
    pub(crate) scene: Arc<Scene>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) read_before: Vec<Item>,
    pub(crate) untyped: BTreeSet<Key>,
    /// The item that it wrote last.
    pub(crate) newest: Option<Key>,
}

impl Application {
    pub(crate) fn new(scene: &Arc<Scene>) -> Self {
        let (scene, schema) = (Arc::clone(scene), Arc::clone(&scene.schema));
        Self { scene, schema, read_before: Vec::new(), untyped: BTreeSet::new(), newest: None }
    }

    /// An item that has the key of a derived one, or had it when it was put.
    pub(crate) fn any_foreign(&self) -> Option<Key> {
        self.scene.chance.one_of(&self.foreign()).cloned()
    }

    fn foreign(&self) -> Vec<Key> {
        let makers: Vec<&str> = self.scene.catalogue.makers().map(|(_, entity)| entity).collect();
        let has_derived_key = |key: &Key, item: &Item| {
            let is_of = |entity: &str| self.schema.image(key, item).is_some_and(|image| image.is(entity));
            let fits = |entity: &str| self.schema.entity(entity).is_some_and(|it| it.key.parse_key(key).is_some());
            makers.iter().any(|entity| fits(entity) && !is_of(entity))
        };
        let is_foreign = |(key, item): &(&Key, &Item)| {
            text(item, NOTE) == Some(FOREIGN) || self.untyped.contains(*key) && has_derived_key(key, item)
        };
        let keys = |items: &Items| items.iter().filter(is_foreign).map(|(key, _)| key.clone()).collect();
        self.scene.database.memory().view(Table::Main, keys)
    }

    /// All of them go.
    pub(crate) fn remove_foreign(&self) {
        for key in self.foreign() {
            let write = Write { table: Table::Main, key, action: Action::Delete, guard: None };
            self.scene.trace.note(|| format!("app {}", Call::Write(&write)));
            now(self.scene.database.memory().write(&write)).unwrap();
        }
    }

    /// Keys of items that it left without a known type at some time.
    pub(crate) fn untyped(&self) -> &BTreeSet<Key> {
        &self.untyped
    }
}
