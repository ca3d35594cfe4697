//! The functions, in this process or at a URL, and the event source mappings that invoke them.
//!
//! The mappings are those of the template, with the filters that `ripple infra` prints for the manifest, except for
//! settings that are too slow for a person at a laptop.
//!
//! | here | instead of | because |
//! |---|---|---|
//! | [`BATCHING_WINDOW_MS`] | `MaximumBatchingWindowInSeconds` | its seconds would be most of the lag |
//! | [`IDLE_POLL_MS`] | four reads a second | the same |
//! | [`LANES`] concurrent batches | `ParallelizationFactor` | all functions share one process |

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use console::{
    flow::entry::{NoAnswer, UnansweredInvocation},
    step::{KillingStore, Passage, StepGate, SteppedFunction},
};
use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use engine::{
    account::Account,
    batch::{Engine, Handled},
    clock::{Clock as _, SystemClock},
    ledger::LedgerKind,
    limits::{BrakeLimits, FanOutLimits},
    record::table_of,
    registry::{Hold, RegistryWatch},
};
use functions::{
    config::{Mode, Moded},
    handler::{Function, answer},
};
use futures::future::BoxFuture;
use infra::mapping::{StreamTable, filters, mapping, needed};
use operate::checkpoints::OF;
use store::{Store, dynamo::DynamoStore};
use stream::{
    function::{FunctionError, LambdaFunction},
    mapping::Mapping,
};

use crate::{
    args::Readers,
    service::{Fate, Faults, Plan, Witness},
};

/// Time limit for an invocation, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

/// Time between two reads of the registry by a function in this process, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// Greatest difference between clocks and the times of records, in milliseconds: the embedded database reports whole
/// seconds, DynamoDB Local whole minutes.
const MARGIN_MS: u64 = 1_500;
const MARGIN_LOCAL_MS: u64 = 61_500;

/// A part of each ARN of DynamoDB Local.
const LOCAL: &str = ":ddblocal:";

/// A function's engine.
pub(super) fn engine(plan: &Plan<'_>, function: Function) -> Engine<Arc<DynamoStore>> {
    FunctionSettings::of(plan, function).engine(Arc::clone(&plan.store))
}

/// The settings of a function's engines. All engines of one set of settings share one watch on the registry, like a
/// single instance.
struct FunctionSettings {
    function: Function,
    schema: Arc<Schema>,
    catalogue: Arc<Catalogue>,
    ledger: LedgerKind,
    mode: Mode,
    limits: BrakeLimits,
    watch: RegistryWatch,
}

impl FunctionSettings {
    fn of(plan: &Plan<'_>, function: Function) -> Self {
        let (schema, catalogue) = (Arc::clone(&plan.schema), Arc::clone(&plan.catalogue));
        let is_local = plan.mappings.iter().any(|(_, mapping)| mapping.stream_arn.contains(LOCAL));
        let margin_ms = if is_local { MARGIN_LOCAL_MS } else { MARGIN_MS };
        let watch = RegistryWatch::publishing(LOOK_MS, Hold { hold_ms: LOOK_MS + INVOCATION_MS, margin_ms });
        Self { function, schema, catalogue, ledger: plan.ledger, mode: plan.mode, limits: plan.limits, watch }
    }

    /// An engine whose cascades are due at once, because the sweeper knows when everything written before has been
    /// handled.
    fn engine<S: Store>(&self, store: S) -> Engine<S> {
        let (schema, catalogue) = (Arc::clone(&self.schema), Arc::clone(&self.catalogue));
        let engine = Engine::new(schema, catalogue, self.function.families(), store, Arc::new(SystemClock));
        // The emulators' indexes do not lag.
        let fan_out = FanOutLimits { index_lag_ms: 0, ..FanOutLimits::default() };
        let engine = engine.with_ledger(self.ledger).with_limits(self.limits).with_settling(0).with_fan_out(fan_out);
        // An observing function does not register.
        if self.mode == Mode::Apply { engine.watching(self.watch.clone()) } else { engine }
    }
}

/// A function of this process, for the deliveries of step mode.
pub(super) struct Stepped {
    settings: FunctionSettings,
    witness: Arc<dyn Witness>,
}

impl Stepped {
    pub(super) fn of(plan: &Plan<'_>, function: Function, witness: &Arc<dyn Witness>) -> Self {
        Self { settings: FunctionSettings::of(plan, function), witness: Arc::clone(witness) }
    }
}

impl SteppedFunction<DynamoStore> for Stepped {
    fn name(&self) -> String {
        self.settings.function.to_string()
    }

    fn families(&self) -> Vec<Family> {
        self.settings.function.families()
    }

    fn instance(&self, store: Arc<KillingStore<Arc<DynamoStore>>>) -> Engine<Arc<KillingStore<Arc<DynamoStore>>>> {
        self.settings.engine(store)
    }

    fn handled(&self, handled: &Handled, elapsed: Duration) {
        self.witness.handled(self.settings.function, handled, elapsed);
    }

    fn unanswered(&self, unanswered: &UnansweredInvocation, elapsed: Duration) {
        self.witness.unanswered(self.settings.function, unanswered, elapsed);
    }
}

/// A function of this process.
pub(super) struct InProcess {
    tables: Arc<Moded<Arc<DynamoStore>>>,
    engine: Engine<Arc<Moded<Arc<DynamoStore>>>>,
    function: Function,
    gate: Arc<StepGate<DynamoStore>>,
    witness: Arc<dyn Witness>,
}

impl InProcess {
    pub(super) fn of(
        plan: &Plan<'_>,
        function: Function,
        gate: &Arc<StepGate<DynamoStore>>,
        witness: &Arc<dyn Witness>,
    ) -> Self {
        let tables = Arc::new(Moded::new(plan.mode, Arc::clone(&plan.store), &plan.schema.layout));
        let engine = FunctionSettings::of(plan, function).engine(Arc::clone(&tables));
        Self { tables, engine, function, gate: Arc::clone(gate), witness: Arc::clone(witness) }
    }

    async fn handle(&self, event: &str) -> Result<Handled, FunctionError> {
        let _turn = self.tables.begin().await;
        let started = Instant::now();
        let deadline_ms = SystemClock.now_ms().saturating_add(INVOCATION_MS);
        let handled = self.engine.handle(event, deadline_ms).await;
        let handled = handled.map_err(|error| {
            let message = error.to_string();
            let why = NoAnswer::Failed(message.clone());
            let unanswered = UnansweredInvocation { event: event.to_owned(), commits: Vec::new(), why };
            self.witness.unanswered(self.function, &unanswered, started.elapsed());
            FunctionError::Unhandled { message }
        })?;
        self.witness.handled(self.function, &handled, started.elapsed());
        Ok(handled)
    }
}

impl LambdaFunction for InProcess {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let handled = match self.gate.pass(&self.function.to_string(), event).await {
                Passage::Handle(event) => self.handle(&event).await?,
                Passage::Delivered { state } => stepped(None, state),
                Passage::Stopped { failed_from: Some(number), state } => stepped(Some(number), state),
                Passage::Stopped { failed_from: None, .. } => {
                    let message = "the stream was held: its records come at the next start".to_owned();
                    return Err(FunctionError::Unavailable { message });
                }
            };
            let answer = answer(&handled).map_err(|error| FunctionError::Unhandled { message: error.to_string() })?;
            Ok(answer.to_string())
        })
    }
}

/// A function whose invocations may be killed.
pub(super) struct Faulty {
    inner: InProcess,
    function: Function,
    /// Instances that are killed after a write.
    stepped: Stepped,
    store: Arc<DynamoStore>,
    faults: Arc<dyn Faults>,
}

impl Faulty {
    pub(super) fn of(plan: &Plan<'_>, function: Function, inner: InProcess, faults: &Arc<dyn Faults>) -> Self {
        let stepped = Stepped::of(plan, function, &inner.witness);
        Self { inner, function, stepped, store: Arc::clone(&plan.store), faults: Arc::clone(faults) }
    }

    /// An invocation that is killed after its first write into the application's table.
    async fn killed_at_once(&self, event: &str) {
        let store = Arc::new(KillingStore::new(Arc::clone(&self.store), Some(1)));
        let instance = self.stepped.instance(Arc::clone(&store));
        let deadline_ms = SystemClock.now_ms().saturating_add(INVOCATION_MS);
        tokio::select! {
            () = store.killed() => {}
            handled = Box::pin(instance.handle(event, deadline_ms)) => drop(handled),
        }
    }
}

impl LambdaFunction for Faulty {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let fate = self.faults.fate(self.function, &event).await;
            match fate.map_err(|error| FunctionError::Unavailable { message: format!("{error:#}") })? {
                Fate::Answered => return self.inner.invoke(event).await,
                Fate::Unanswered => drop(self.inner.invoke(event).await?),
                Fate::KilledAtOnce => self.killed_at_once(&event).await,
            }
            Err(FunctionError::Unhandled { message: "it was killed".to_owned() })
        })
    }
}

/// The result of a batch whose records were delivered and reported one by one.
fn stepped(failed_from: Option<String>, state: Option<String>) -> Handled {
    Handled { changes: Vec::new(), account: Account::default(), failed_from, state }
}

// ---- The event source mappings ----

/// Batching window, in milliseconds: long enough to coalesce records, but short compared with the lag of a second of a
/// chain of three records (a follow, its counter, its display).
const BATCHING_WINDOW_MS: u64 = 50;

/// Concurrent batches of each shard for the function that counts nothing. There are more than in the template, because
/// a person waits for the result, and fewer than Lambda's maximum, because all share one process. Measured with
/// `ripple demo --scenario famous --others 20`: with ten, the batches are smaller, a rename reaches a third fewer items
/// a second, and the lag of other users grows.
const LANES: usize = 4;

/// Pause after an empty read, in milliseconds: short, because a person is watching.
const IDLE_POLL_MS: u64 = 20;

/// The parameters of the mappings.
pub(crate) struct MappingRequest<'a> {
    pub(crate) readers: Readers,
    pub(crate) ledger: LedgerKind,
    /// The ARNs of the streams. The stream of `--table` comes first.
    pub(crate) streams: &'a [String],
    pub(crate) schema: &'a Schema,
    pub(crate) catalogue: &'a Catalogue,
}

/// The functions that read the streams, with one mapping for each function and stream. A function also reads a stream
/// without records for it, because `verify` expects a position in every stream.
pub(crate) fn mappings(wanted: &MappingRequest<'_>) -> anyhow::Result<Vec<(Function, Mapping)>> {
    let functions = match wanted.readers {
        Readers::One => vec![Function::Combined],
        Readers::Two => vec![Function::Aggregate, Function::Propagate],
    };
    let mut mappings = Vec::new();
    for function in functions {
        for (number, (table, stream_arn)) in StreamTable::all(wanted.schema).zip(wanted.streams).enumerate() {
            let families = function.families();
            let filters = filters(&needed(table, wanted.catalogue, &families))?;
            let name = name(function, number, stream_arn, wanted.streams.len());
            let deployed = mapping(&name, stream_arn, &families, wanted.ledger, filters);
            let parallelization_factor = if families.contains(&Family::Additive) { 1 } else { LANES };
            let batching_window_ms = BATCHING_WINDOW_MS;
            let mapping =
                Mapping { batching_window_ms, parallelization_factor, idle_poll_ms: IDLE_POLL_MS, ..deployed };
            mappings.push((function, mapping));
        }
    }
    Ok(mappings)
}

/// The name of a mapping. It allows fewer characters than a table's name, so a number distinguishes several tables.
fn name(function: Function, number: usize, stream_arn: &str, n_streams: usize) -> String {
    let of_name = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    match table_of(stream_arn).filter(|_| n_streams > 1) {
        Some(table) => format!("{function}{OF}{number}-{}", table.chars().map(of_name).collect::<String>()),
        None => function.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use functions::declared::{Choice, declared};
    use stream::mapping::OnFailure;

    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1_000;

    const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000";

    #[test]
    fn every_function_has_a_mapping_under_each_ledger() {
        let (schema, catalogue) = declared(Choice::default()).unwrap();
        for ledger in [LedgerKind::Receipts, LedgerKind::Watermarks] {
            let streams = [ARN.to_owned()];
            let of = |readers| {
                let (schema, catalogue) = (&*schema, &*catalogue);
                let wanted = MappingRequest { readers, ledger, streams: &streams, schema, catalogue };
                mappings(&wanted).unwrap()
            };
            let [(_, aggregate), (_, propagate)] = of(Readers::Two).try_into().unwrap();
            let [(_, combined)] = of(Readers::One).try_into().unwrap();
            assert_eq!([&*aggregate.name, &propagate.name, &combined.name], ["aggregate", "propagate", "combined"]);
            for counting in [&aggregate, &combined] {
                assert_eq!(counting.tumbling_window_seconds > 0, ledger == LedgerKind::Watermarks);
                assert_eq!(counting.parallelization_factor, 1);
                let gives_up = counting.record_age_ms_max.is_some();
                assert_eq!(gives_up, ledger == LedgerKind::Receipts, "under watermarks nothing is given up");
            }
            assert_eq!((propagate.parallelization_factor, propagate.record_age_ms_max), (LANES, Some(23 * HOUR_MS)));
            for mapping in [aggregate, propagate, combined] {
                assert_eq!(mapping.check(), Ok(()));
                assert!(mapping.report_batch_item_failures && mapping.retry_attempts_max.is_none());
                assert!(!mapping.filters.is_empty());
                assert_eq!(mapping.on_failure, Some(OnFailure::S3));
            }
        }
    }

    #[test]
    fn each_of_several_tables_has_a_mapping_of_its_own_with_its_own_filters() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/chat/ripple.toml");
        let (schema, catalogue) = declared(Choice { manifest: Some(&file), ..Choice::default() }).unwrap();
        let streams: Vec<String> =
            ["own", "Workspaces", "Rooms", "Messages", "Users"].map(|table| ARN.replace("app", table)).into();
        let wanted = MappingRequest {
            readers: Readers::Two,
            ledger: LedgerKind::Watermarks,
            streams: &streams,
            schema: &schema,
            catalogue: &catalogue,
        };
        let all = mappings(&wanted).unwrap();
        let names: Vec<&str> = all.iter().map(|(_, it)| it.name.as_str()).collect();
        let first = ["own", "Workspaces", "Rooms", "Messages", "Users"].into_iter().enumerate();
        let first: Vec<String> = first.map(|(number, table)| format!("--{number}-{table}")).collect();
        let wanted = ["aggregate", "propagate"].map(|function| first.iter().map(move |it| format!("{function}{it}")));
        assert_eq!(names, wanted.into_iter().flatten().collect::<Vec<_>>());
        assert!(all.iter().all(|(_, mapping)| mapping.check().is_ok()));
        let unfiltered: Vec<&str> =
            all.iter().filter(|(_, it)| it.filters.is_empty()).map(|(_, it)| it.name.as_str()).collect();
        // The keys of these tables are values as they are, which no text separates.
        let plain = ["aggregate--3-Messages", "propagate--1-Workspaces", "propagate--3-Messages", "propagate--4-Users"];
        assert_eq!(unfiltered, plain);
    }
}
