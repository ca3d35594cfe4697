//! Single records and batches: what the runs rarely meet, or cannot check exactly.
//!
//! Each is on a table of a few items with an engine on it, the [`Bed`].

mod attempts;
mod cascades;
mod drift;
mod exceptions;
mod fan_out;
mod figures;
mod refusals;
mod scripts;
mod single_records;
mod spread;
mod sums;
mod verification;
mod watermarks;

use std::sync::{Arc, Mutex};

use derive::{
    catalogue::Catalogue,
    family::Family,
    guard::{Guard, Purpose},
    schema::Schema,
    sources::sums,
    write::{Action, Table, Update, Write},
};
use engine::{
    batch::{Engine, HandleError, Handled},
    clock::Clock as _,
    jobs::sweep::Swept,
    ledger::LedgerKind,
    limits::{BrakeLimits, FanOutLimits, SpreadLimits},
    park::parked,
    protocol::ProtocolStep,
    redrive::Redriven,
    registry::RegistryWatch,
};
use keys::{fields::Fields, item::Item, key::Key};
use operate::verify::definition::compare;
use serde_dynamo::AttributeValue;
use serde_json::{Value, json};
use store::{
    Store as _,
    faulty::{Call, Database, Decider, Fault, Faulty, Lagging, Side},
    memory::MemoryStore,
};
use support::{
    clock::ManualClock,
    record::{Record, STREAM_ARN, Window},
};

use crate::{
    caller::{Gone, Permissions, Role, Task},
    items::{n, s},
    judge::judged,
    platform::put_true,
};

/// When a test begins, in milliseconds since the epoch.
const BEGIN_MS: u64 = 1_705_315_200_000;

pub(crate) const LEDGERS: [LedgerKind; 2] = [LedgerKind::Receipts, LedgerKind::Watermarks];

/// Longer than a cascade waits, in milliseconds.
pub(crate) const SETTLED_MS: u64 = 26 * 3_600 * 1_000;

/// Time that an invocation has, in milliseconds.
pub(crate) const INVOCATION_MS: u64 = 5_000;

/// The shard of every record.
pub(crate) const SHARD: &str = "shardId-00000001573689847184-a1b2c3d4";

/// Ann follows Bob.
pub(crate) const FOLLOW: [(&str, &str); 2] = [("FollowerId", "ann"), ("FolloweeId", "bob")];

/// A comment of the post `p`, and one with any id.
pub(crate) const COMMENT: [(&str, &str); 3] = comment("c");

pub(crate) const fn comment(id: &str) -> [(&'static str, &str); 3] {
    [("PostId", "p"), ("CreatedAt", "t"), ("CommentId", id)]
}

/// Bytes of a page: small, so that a search has several.
const PAGE_BYTES: usize = 400;

/// Chooses the fault of a call.
type Hook = Box<dyn FnMut(&Call<'_>) -> Option<(Side, Fault)> + Send>;

/// How a call ends that is cancelled, since an item of it is in a transaction that is under way, or it is one.
pub(crate) const MET: &str = "met another call on an item";

/// The faults of an invocation's calls, and how the calls ended.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    hook: Arc<Mutex<Option<Hook>>>,
    calls: Arc<Mutex<Vec<String>>>,
    /// Do calls conflict that are under way at once?
    conflict: bool,
    /// Purposes of the guards that came up since [`Bed::stops_before`] began to look, sent or not.
    guards: Arc<Mutex<Vec<Purpose>>>,
    /// Guards of this purpose are not sent.
    unguarded: Option<Purpose>,
    gone: Gone,
    policy: Option<(Arc<Permissions>, Role)>,
}

impl Decider for Faults {
    fn fault(&self, call: &Call<'_>) -> Option<(Side, Fault)> {
        let denied = self.policy.as_ref().and_then(|(permissions, role)| permissions.denied(*role, call));
        assert_eq!(denied, None);
        let fault = self.hook.lock().unwrap().as_mut().and_then(|hook| hook(call));
        if matches!(fault, Some((_, Fault::Killed) | (Side::Before, Fault::Late))) {
            self.gone.set();
        }
        fault
    }

    fn conflicts(&self, call: &Call<'_>) -> bool {
        if self.conflict {
            self.calls.lock().unwrap().push(format!("{call} : {MET}"));
        }
        self.conflict
    }

    fn ended(&self, call: &Call<'_>, how: &str) {
        self.calls.lock().unwrap().push(format!("{call} : {how}"));
    }

    fn sends(&self, guard: &Guard) -> bool {
        self.guards.lock().unwrap().push(guard.purpose);
        self.unguarded != Some(guard.purpose)
    }
}

/// The table, the function's configuration, and the number of records so far.
pub(crate) struct Bed {
    pub(crate) schema: Arc<Schema>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) clock: ManualClock,
    families: Vec<Family>,
    ledger: LedgerKind,
    limits: BrakeLimits,
    fan_out: FanOutLimits,
    pub(crate) spread: SpreadLimits,
    /// How long a counter is hot, in milliseconds.
    pub(crate) hot_for_ms: u64,
    database: Arc<Database>,
    faults: Faults,
    permissions: Arc<Permissions>,
    /// The step that the engine does not take.
    left_out: Option<ProtocolStep>,
    /// How the instances that come next watch the registry; `None` if they do not.
    pub(crate) watch: Option<RegistryWatch>,
    n_records: usize,
}

impl Bed {
    /// An empty table with the shipped schema, a function that runs everything, and a ledger of receipts.
    pub(crate) fn new() -> Self {
        let schema = catalogue::schema();
        let catalogue = catalogue::catalogue(&schema).unwrap();
        Self::with(schema, catalogue)
    }

    pub(crate) fn with(schema: Schema, catalogue: Catalogue) -> Self {
        let permissions = Arc::new(Permissions::of(&schema));
        let (schema, catalogue) = (Arc::new(schema), Arc::new(catalogue));
        let database = Arc::new(Database::new(schema.layout.clone(), PAGE_BYTES).judged(judged));
        Self {
            schema,
            catalogue,
            clock: ManualClock::at(BEGIN_MS),
            families: vec![Family::Additive, Family::LevelTriggered],
            ledger: LedgerKind::Receipts,
            limits: BrakeLimits::default(),
            fan_out: FanOutLimits::default(),
            spread: SpreadLimits::default(),
            hot_for_ms: 0,
            database,
            faults: Faults::default(),
            permissions,
            left_out: None,
            watch: None,
            n_records: 0,
        }
    }

    /// The same with an empty table that this manifest declares.
    pub(crate) fn declaring(self, text: &str) -> Self {
        let (schema, catalogue) = manifest::load(text).unwrap();
        let Self { schema, catalogue, database, permissions, .. } = Self::with(schema, catalogue);
        Self { schema, catalogue, database, permissions, ..self }
    }

    pub(crate) fn under(self, ledger: LedgerKind) -> Self {
        Self { ledger, ..self }
    }

    pub(crate) fn running(self, family: Family) -> Self {
        Self { families: vec![family], ..self }
    }

    pub(crate) fn limited(self, limits: BrakeLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same with counters that spread from so many watermarks over so many satellites.
    pub(crate) fn spreading(self, marks_max: usize, n_satellites: u32) -> Self {
        Self { spread: SpreadLimits { marks_max, n_satellites }, ..self }
    }

    pub(crate) fn fanning(self, fan_out: FanOutLimits) -> Self {
        Self { fan_out, ..self }
    }

    /// The same with a service that sends no guard of this purpose.
    pub(crate) fn unguarded(self, purpose: Purpose) -> Self {
        let faults = Faults { unguarded: Some(purpose), ..self.faults.clone() };
        Self { faults, ..self }
    }

    /// The same with calls that conflict where they are under way at once.
    pub(crate) fn conflicting(self) -> Self {
        let faults = Faults { conflict: true, ..self.faults.clone() };
        Self { faults, ..self }
    }

    /// The same with an engine that does not take this step.
    pub(crate) fn without(self, left_out: Option<ProtocolStep>) -> Self {
        Self { left_out, ..self }
    }

    /// The same with indexes that lag until [`index_follows`](Self::index_follows).
    pub(crate) fn lagging(self) -> Self {
        let database = Database::lagging(self.schema.layout.clone(), PAGE_BYTES, Lagging::Indexes).judged(judged);
        Self { database: Arc::new(database), ..self }
    }

    /// The indexes have followed.
    pub(crate) fn index_follows(&self) {
        while self.database.n_behind() > 0 {
            self.database.catch_up(0);
        }
    }

    /// The engine of an operator's command.
    pub(crate) fn engine(&self) -> Engine<Faulty<Faults>> {
        self.engine_of(Role::Operator, &Gone::default())
    }

    /// The engine of the sweep.
    pub(crate) fn sweeper(&self) -> Engine<Faulty<Faults>> {
        self.engine_of(Role::Sweep, &Gone::default())
    }

    fn engine_of(&self, role: Role, gone: &Gone) -> Engine<Faulty<Faults>> {
        let policy = Some((Arc::clone(&self.permissions), role));
        let store = Faulty::new(&self.database, Faults { gone: gone.clone(), policy, ..self.faults.clone() });
        let (schema, catalogue, clock) = (self.schema.clone(), self.catalogue.clone(), Arc::new(self.clock.clone()));
        let engine = Engine::new(schema, catalogue, self.families.clone(), store, clock);
        let engine = engine.with_ledger(self.ledger).with_limits(self.limits).with_fan_out(self.fan_out);
        let engine = engine.with_spread(self.spread).with_hot_for(self.hot_for_ms).without(self.left_out);
        self.watch.iter().fold(engine, |engine, watch| engine.watching(watch.clone()))
    }

    /// The engine of an invocation.
    fn function(&self, gone: &Gone) -> Engine<Faulty<Faults>> {
        self.engine_of(Role::of_function(&self.families), gone)
    }

    /// The engine of an environment that handles several invocations.
    pub(crate) fn environment(&self) -> Arc<Engine<Faulty<Faults>>> {
        Arc::new(self.function(&Gone::default()))
    }

    /// The tables for a caller that may do everything.
    pub(crate) fn store(&self) -> Faulty<Faults> {
        Faulty::new(&self.database, self.faults.clone())
    }

    pub(crate) fn memory(&self) -> &MemoryStore {
        self.database.memory()
    }

    /// From now on calls have these faults only.
    pub(crate) fn fails(&self, hook: impl FnMut(&Call<'_>) -> Option<(Side, Fault)> + Send + 'static) {
        *self.faults.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// From now on single writes of such keys have this fault before they are done.
    pub(crate) fn writes_fail(&self, fault: Fault, is_meant: impl Fn(&Key) -> bool + Send + 'static) {
        self.fails(move |call| match call {
            Call::Write(write) if is_meant(&write.key) => Some((Side::Before, fault.clone())),
            _ => None,
        });
    }

    /// From now on reads of such keys, alone or beside others, have this fault.
    pub(crate) fn reads_fail(&self, fault: Fault, is_meant: impl Fn(&Key) -> bool + Send + 'static) {
        self.fails(move |call| match call {
            Call::Get(_, keys) if keys.iter().any(&is_meant) => Some((Side::Before, fault.clone())),
            _ => None,
        });
    }

    /// The calls that ended since the last time, and how each ended.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.faults.calls.lock().unwrap())
    }

    /// A late call lands. Returns how it ends.
    pub(crate) fn land(&self) -> String {
        self.database.land(0).unwrap().how
    }

    /// Puts an item of an entity and returns its key. A number is written `N:1`.
    pub(crate) async fn put(&self, entity: &str, fields: &[(&str, &str)], attributes: &[(&str, &str)]) -> Key {
        let definition = self.schema.entity(entity).unwrap();
        let key = definition.build(&fields.iter().copied().collect::<Fields>()).unwrap();
        let mut item = self.schema.layout.key_item(&key);
        item.extend(self.schema.layout.type_of(entity));
        item.extend(attributes.iter().map(|(name, text)| ((*name).to_owned(), written(text))));
        let index = definition.index_attributes(&self.schema.layout, &definition.fields(&key, &item).unwrap());
        item.extend(index.into_iter().filter_map(|(name, value)| Some((name, value?))));
        self.write(&key, Action::Put(item)).await;
        key
    }

    pub(crate) async fn set(&self, key: &Key, name: &str, text: &str) {
        let set = Item::from([(name.to_owned(), written(text))]);
        self.write(key, Action::Update(Update::set(set))).await;
    }

    /// Puts an item of this type, whatever its key and attributes are.
    pub(crate) fn put_raw<'a>(
        &self,
        key: &Key,
        kind: &str,
        attributes: impl IntoIterator<Item = (&'a str, AttributeValue)>,
    ) -> Item {
        let mut item = self.schema.layout.key_item(key);
        item.extend(self.schema.layout.type_of(kind));
        item.extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.memory().put_raw(Table::Main, item.clone()).unwrap();
        item
    }

    pub(crate) async fn delete(&self, key: &Key) {
        self.write(key, Action::Delete).await;
    }

    /// The same, and everybody handles that.
    pub(crate) async fn put_settled(
        &mut self,
        entity: &str,
        fields: &[(&str, &str)],
        attributes: &[(&str, &str)],
    ) -> Key {
        let key = self.put(entity, fields, attributes).await;
        self.settle().await;
        key
    }

    pub(crate) async fn handle_settled(&mut self, records: &[Value]) {
        self.handle(records).await;
        self.settle().await;
    }

    pub(crate) async fn set_settled(&mut self, key: &Key, name: &str, text: &str) {
        self.set(key, name, text).await;
        self.settle().await;
    }

    pub(crate) async fn delete_settled(&mut self, key: &Key) {
        self.delete(key).await;
        self.settle().await;
    }

    async fn write(&self, key: &Key, action: Action) {
        let write = Write { table: Table::Main, key: key.clone(), action, guard: None };
        self.memory().write(&write).await.unwrap();
    }

    /// The records of what was written since the last time.
    pub(crate) fn records(&mut self) -> Vec<Value> {
        let mut records = Vec::new();
        for (key, old, new) in self.database.take_records() {
            self.n_records += 1;
            let (id, number) = (event_id(self.n_records), (1_000 + self.n_records).to_string());
            let (keys, at_ms) = (self.schema.layout.key_item(&key), self.clock.now_ms());
            let (old, new) = (old.as_ref(), new.as_ref());
            let record = Record { id: &id, sequence_number: &number, keys: &keys, old, new, at_ms, is_expiry: false };
            records.push(serde_json::from_str(&record.json()).unwrap());
        }
        records
    }

    /// The text of an event of these records; under watermarks in a tumbling window.
    pub(crate) fn event(&self, records: &[Value]) -> String {
        let records = json!({ "Records": records }).to_string();
        match self.ledger {
            LedgerKind::Receipts => records,
            LedgerKind::Watermarks => in_window(&records, r#"{"seen": 1.50, "by": null}"#, false),
        }
    }

    /// The deadline of an invocation that starts now.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.clock.now_ms() + INVOCATION_MS
    }

    pub(crate) fn start(&self, event: &str) -> Task<Result<Handled, HandleError>> {
        let gone = Gone::default();
        let (engine, event, deadline_ms) = (self.function(&gone), event.to_owned(), self.deadline_ms());
        Task::new(&gone, async move { engine.handle(&event, deadline_ms).await })
    }

    /// Starts an invocation in this environment.
    pub(crate) fn start_in(
        &self,
        environment: &Arc<Engine<Faulty<Faults>>>,
        records: &[Value],
    ) -> Task<Result<Handled, HandleError>> {
        let (engine, event, deadline_ms) = (Arc::clone(environment), self.event(records), self.deadline_ms());
        Task::new(&Gone::default(), async move { engine.handle(&event, deadline_ms).await })
    }

    /// Runs a task until its next call has a guard of this purpose. The call is not done yet, but other calls that the task
    /// makes at the same time may be: hold such a write back with [`Fault::Late`] instead.
    pub(crate) fn stops_before<T>(&self, task: &mut Task<T>, purpose: Purpose) {
        let guards = || self.faults.guards.lock().unwrap();
        guards().clear();
        while !guards().contains(&purpose) {
            assert!(!task.ends(), "it ends without a guard of {purpose:?}");
        }
    }

    pub(crate) async fn try_handle(&self, event: &str) -> Result<Handled, HandleError> {
        self.function(&Gone::default()).handle(event, self.deadline_ms()).await
    }

    /// Hands these records to the engine, as one batch.
    pub(crate) async fn handle(&self, records: &[Value]) -> Handled {
        self.try_handle(&self.event(records)).await.unwrap()
    }

    /// Handles records of another stream shard.
    pub(crate) async fn handle_of(&self, shard: &str, records: &[Value]) {
        let handled = self.try_handle(&self.event(records).replace(SHARD, shard)).await.unwrap();
        assert_eq!(handled.failed_from, None);
    }

    pub(crate) async fn goes_on(&mut self) -> Handled {
        let records = self.records();
        self.handle(&records).await
    }

    /// Delivers everything written, and what follows from it, a batch at a time until the stream is quiet.
    pub(crate) async fn settle(&mut self) -> Vec<Handled> {
        let mut all = Vec::new();
        loop {
            let records = self.records();
            if records.is_empty() {
                return all;
            }
            all.push(self.handle(&records).await);
        }
    }

    /// The sweep starts the jobs that are due, and everything is taken for handled.
    pub(crate) async fn sweep(&self) -> Swept {
        self.sweeper().sweep(|_| true, self.deadline_ms()).await.unwrap()
    }

    /// A day passes, and the jobs that are due begin.
    pub(crate) async fn a_day_passes(&self) -> Swept {
        self.clock.advance(SETTLED_MS);
        self.sweep().await
    }

    /// Everybody handles what these days bring. In two days a due cascade lists what belongs to its owner, waits once more, and
    /// ends.
    pub(crate) async fn days_pass(&mut self, n_days: usize) {
        for _ in 0..n_days {
            self.a_day_passes().await;
            self.settle().await;
        }
    }

    /// The user `ann` is removed, and a subscription of hers waits for the cascade. Returns its key.
    pub(crate) async fn removed_user(&mut self) -> Key {
        let user = self.put("User", &[("UserId", "ann")], &[]).await;
        let subscription = self.put_settled("Subscription", &[("UserId", "ann"), ("SubscriptionId", "s")], &[]).await;
        self.delete_settled(&user).await;
        subscription
    }

    pub(crate) fn item(&self, key: &Key) -> Option<Item> {
        self.memory().snapshot(Table::Main).remove(key)
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.item(key).is_some()
    }

    /// An attribute of an item as text; empty when it does not exist.
    pub(crate) fn shown(&self, key: &Key, name: &str) -> String {
        let value = self.item(key).and_then(|item| item.get(name).map(|value| serde_json::to_value(value).unwrap()));
        let shown = |value: Value| value.as_object().unwrap().values().map(ToString::to_string).collect::<String>();
        value.map(shown).unwrap_or_default().replace('"', "")
    }

    /// What `verify` finds, as `derivation: key`.
    pub(crate) fn findings(&self) -> Vec<String> {
        let verified = compare(&self.schema, &self.catalogue, &self.memory().snapshot(Table::Main));
        verified.findings.iter().map(|f| format!("{}: {} / {}", f.derivation, f.pk, f.sk)).collect()
    }

    /// The counts of a derivation, all targets together.
    pub(crate) fn counted(&self, derivation: &str) -> i64 {
        let items = self.memory().snapshot(Table::Main);
        let sums = sums(&self.schema, items.values()).into_iter();
        sums.filter(|((_, name), _)| name == derivation).map(|(_, tally)| tally.count).sum()
    }

    /// Puts memberships of these users in these groups, and returns their records.
    pub(crate) async fn memberships(&mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Vec<Value> {
        for (user, group) in pairs {
            self.put("Membership", &[("UserId", &user), ("GroupId", &group)], &[]).await;
        }
        self.records()
    }

    /// A user joins so many groups.
    pub(crate) async fn joins(&mut self, n_groups: usize) -> Vec<Value> {
        self.memberships((0..n_groups).map(|group| ("ann".to_owned(), format!("g{group}")))).await
    }

    /// The ledger's items whose partition keys have this prefix.
    pub(crate) fn ledger(&self, prefix: &str) -> Vec<Item> {
        let ledger = self.memory().snapshot(Table::Ledger).into_iter();
        ledger.filter(|(key, _)| key.pk.starts_with(prefix)).map(|(_, item)| item).collect()
    }

    /// Redrives all that is parked. Each change must be applied.
    pub(crate) async fn redrive_all(&self) {
        for redriven in self.try_redrive_all().await {
            assert!(matches!(redriven, Redriven::Applied(_)), "{redriven:?}");
        }
    }

    /// The same, whatever becomes of it.
    pub(crate) async fn try_redrive_all(&self) -> Vec<Redriven> {
        let mut redriven = Vec::new();
        for change in parked(self.memory()).await.unwrap() {
            redriven.push(self.engine().redrive(&change, self.deadline_ms()).await.unwrap());
        }
        redriven
    }

    /// What the ledger has of a stream shard that counted when each counter of this derivation had so many items.
    pub(crate) fn had_shards(&self, shard: &str, derivation: &str, n_items: u32) {
        let (_, label) = STREAM_ARN.split_once("/stream/").unwrap();
        let mut item = self.schema.layout.key_item(&Key::new(format!("SHARD#{label}#{shard}"), "SHARD"));
        item.insert(format!("Shards:{derivation}"), n(&n_items.to_string()));
        self.memory().put_raw(Table::Ledger, item).unwrap();
    }

    /// Deletes what the ledger holds under partition keys with this beginning.
    pub(crate) async fn forget(&self, prefix: &str) {
        for key in self.memory().snapshot(Table::Ledger).into_keys().filter(|key| key.pk.starts_with(prefix)) {
            let write = Write { table: Table::Ledger, key, action: Action::Delete, guard: None };
            self.memory().write(&write).await.unwrap();
        }
    }

    /// Replaces the corrupt records that are parked by this one.
    pub(crate) fn put_true(&self, json: &str) {
        for key in self.memory().snapshot(Table::Ledger).into_keys().filter(|key| key.pk.starts_with("PARKED")) {
            put_true(self.memory(), &key, json);
        }
    }

    /// Keys of what is parked, by family.
    pub(crate) fn parked(&self) -> Vec<String> {
        let ledger = self.memory().snapshot(Table::Ledger);
        ledger.keys().filter(|key| key.pk.starts_with("PARKED")).map(ToString::to_string).collect()
    }
}

/// Replaces an image of a record, or its keys, by one that does not decode.
pub(crate) fn corrupt(record: &mut Value, image: &str) {
    record["dynamodb"][image] = json!({"PK": {"Q": 1}});
}

/// Does this call count something? A transaction does under receipts, an update of a counter under watermarks.
pub(crate) fn counts(call: &Call<'_>) -> bool {
    match call {
        Call::Transact(_) => true,
        Call::Write(write) => write.key.sk.contains("#COUNT#"),
        _ => false,
    }
}

/// A value from its text.
fn written(text: &str) -> AttributeValue {
    text.strip_prefix("N:").map_or_else(|| s(text), n)
}

/// An event within a tumbling window.
pub(crate) fn in_window(event: &str, state: &str, is_final: bool) -> String {
    Window { state: state.to_owned(), is_final, ..Window::of_shard(SHARD) }.around(event)
}

/// The id of the event of a bed's record, counted from 1.
pub(crate) fn event_id(number: usize) -> String {
    format!("{number:032x}")
}
