//! The functions that the mappings invoke: in this process, or at a URL.

use std::{sync::Arc, time::Instant};

use engine::{
    batch::Engine,
    clock::{Clock as _, SystemClock},
    fan_out::limits::FanOutLimits,
    registry::{Hold, watch::RegistryWatch},
};
use functions::handler::{Function, answer};
use futures::future::BoxFuture;
use store::dynamo::DynamoStore;
use stream::function::{FunctionError, HttpFunction, LambdaFunction};

use super::{Plan, Witness};

/// Time limit for an invocation, in milliseconds.
const INVOCATION_MS: u64 = 60_000;

/// Time between two reads of the registry by a function in this process, in milliseconds.
const LOOK_MS: u64 = 1_000;

/// Greatest difference between clocks and the times of records, in milliseconds: the embedded database reports whole
/// seconds, DynamoDB Local whole minutes.
const MARGIN_MS: u64 = 1_500;
const MARGIN_LOCAL_MS: u64 = 61_500;

/// A part of the ARNs of DynamoDB Local.
const LOCAL: &str = ":ddblocal:";

pub(super) fn invoked(plan: &Plan<'_>, function: Function, witness: &Arc<dyn Witness>) -> Arc<dyn LambdaFunction> {
    if let Some(url) = plan.functions {
        return Arc::new(HttpFunction::new(url, &function.to_string()));
    }
    Arc::new(InProcess { engine: engine(plan, function), function, witness: Arc::clone(witness) })
}

/// A function's engine. Its cascades are due at once, because the sweeper knows when everything written before has been
/// handled.
pub(super) fn engine(plan: &Plan<'_>, function: Function) -> Engine<Arc<DynamoStore>> {
    let (schema, catalogue) = (Arc::clone(&plan.schema), Arc::clone(&plan.catalogue));
    let store = Arc::clone(&plan.store);
    let engine = Engine::new(schema, catalogue, function.families(), store, Arc::new(SystemClock));
    // The emulators' indexes do not lag.
    let fan_out = FanOutLimits { index_lag_ms: 0, ..FanOutLimits::default() };
    let margin_ms = if plan.mappings.iter().any(|(_, mapping)| mapping.stream_arn.contains(LOCAL)) {
        MARGIN_LOCAL_MS
    } else {
        MARGIN_MS
    };
    let hold = Hold { hold_ms: LOOK_MS + INVOCATION_MS, margin_ms };
    let engine = engine.with_ledger(plan.ledger).with_limits(plan.limits).with_settling(0).with_fan_out(fan_out);
    engine.watching(RegistryWatch::publishing(LOOK_MS, hold))
}

struct InProcess {
    engine: Engine<Arc<DynamoStore>>,
    function: Function,
    witness: Arc<dyn Witness>,
}

impl LambdaFunction for InProcess {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let started = Instant::now();
            let deadline_ms = SystemClock.now_ms() + INVOCATION_MS;
            let handled = self.engine.handle(&event, deadline_ms).await;
            let handled = handled.map_err(|error| FunctionError::Unhandled { message: error.to_string() })?;
            self.witness.handled(self.function, &handled, started.elapsed());
            let answer = answer(&handled).map_err(|error| FunctionError::Unhandled { message: error.to_string() })?;
            Ok(answer.to_string())
        })
    }
}
