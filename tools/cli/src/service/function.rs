//! The functions that the mappings invoke: in this process, or at a URL.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use console::{
    flow::entry::{NoAnswer, UnansweredInvocation},
    step::{Passage, StepGate, SteppedFunction, killing::KillingStore},
};
use derive::{catalogue::Catalogue, family::Family, schema::Schema};
use engine::{
    account::Account,
    batch::{Engine, Handled},
    clock::{Clock as _, SystemClock},
    ledger::LedgerKind,
    limits::{BrakeLimits, FanOutLimits},
    registry::{Hold, RegistryWatch},
};
use functions::{
    config::{Mode, Moded},
    handler::{Function, answer},
};
use futures::future::BoxFuture;
use store::{Store, dynamo::DynamoStore};
use stream::function::{FunctionError, LambdaFunction};

use super::{Fate, Faults, Plan, Witness};

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
