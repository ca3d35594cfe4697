//! The properties of a function's `DynamoDB` event, as a mapping.
//!
//! Names, defaults and ranges are those of reference B1 (`CreateEventSourceMapping`); SAM passes them on as they are.

use std::collections::BTreeMap;

use super::Local;
use crate::filter::Filters;
use crate::mapping::{Mapping, OnFailure, StartingPosition};
use crate::template::Node;
use crate::template::{TemplateScope, Value};

/// `BatchSize` where nothing is said. Source: Lambda's guide; SAM's says so too.
const BATCH_SIZE_DEFAULT: usize = 100;

/// The least age that can be asked for, in seconds. Source: `EventSourceMappingConfiguration`,
/// `MaximumRecordAgeInSeconds`: "values less than 60 and greater than -1 \[…\] are not allowed".
const RECORD_AGE_SECONDS_MIN: u64 = 60;

/// Milliseconds of a second.
const MS_A_SECOND: u64 = 1_000;

/// The mapping of the function with this logical id.
pub(super) fn mapping(scope: &TemplateScope<'_>, function: &str, local: &Local<'_>) -> Result<Mapping, String> {
    let mut settings = Settings(properties(scope, function, local.event)?);
    let seconds =
        |name: &str, seconds: u64| seconds.checked_mul(MS_A_SECOND).ok_or_else(|| format!("{name} is too great"));
    settings.must_be_enabled()?;
    settings.take("Stream").ok_or("Stream is missing: name the stream that the function reads")?;
    // What it encrypts is the filters, which are in the template here.
    settings.take("KmsKeyArn");
    settings.metrics()?;
    let batching_window = "MaximumBatchingWindowInSeconds";
    let record_age_seconds: Option<u64> = settings.limit("MaximumRecordAgeInSeconds")?;
    if let Some(seconds) = record_age_seconds.filter(|seconds| *seconds < RECORD_AGE_SECONDS_MIN) {
        return Err(format!("MaximumRecordAgeInSeconds is {seconds}: give -1, or {RECORD_AGE_SECONDS_MIN} or more"));
    }
    let mapping = Mapping {
        name: local.name.to_owned(),
        stream_arn: local.stream_arn.to_owned(),
        batch_size: settings.number("BatchSize")?.unwrap_or(BATCH_SIZE_DEFAULT),
        batching_window_ms: seconds(batching_window, settings.number(batching_window)?.unwrap_or(0))?,
        tumbling_window_seconds: settings.number("TumblingWindowInSeconds")?.unwrap_or(0),
        parallelization_factor: settings.number("ParallelizationFactor")?.unwrap_or(1),
        retry_attempts_max: settings.limit("MaximumRetryAttempts")?,
        record_age_ms_max: record_age_seconds.map(|age| seconds("MaximumRecordAgeInSeconds", age)).transpose()?,
        bisect_batch_on_function_error: settings.flag("BisectBatchOnFunctionError")?.unwrap_or(false),
        report_batch_item_failures: settings.reports_failures()?,
        filters: settings.filters()?,
        on_failure: settings.on_failure(scope)?,
        starting_position: settings.starting_position()?,
        idle_poll_ms: local.idle_poll_ms,
    };
    if let Some(name) = settings.0.keys().next() {
        return Err(format!("{name} is no setting of a DynamoDB stream's event source mapping: take it out"));
    }
    mapping.check().map_err(|error| error.to_string())?;
    Ok(mapping)
}

/// A function's events.
pub(super) fn events(resource: &Node) -> Option<&BTreeMap<String, Node>> {
    match resource.get("Properties")?.get("Events")? {
        Node::Map(events) => Some(events),
        _ => None,
    }
}

/// Those that read streams, with their ids.
pub(super) fn streams(events: &BTreeMap<String, Node>) -> impl Iterator<Item = (&String, &Node)> {
    events.iter().filter(|(_, event)| event.get("Type").and_then(Node::text) == Some("DynamoDB"))
}

/// The properties of a function's event of type `DynamoDB`: its only one, or the one with this id.
fn properties(scope: &TemplateScope<'_>, function: &str, id: &str) -> Result<BTreeMap<String, Value>, String> {
    let resource = scope.resource(function)?.ok_or("there is no such function with these parameters")?;
    let events = events(resource).ok_or("it has no Events")?;
    let all: Vec<(&String, &Node)> = streams(events).collect();
    let stream = match all.as_slice() {
        [] => return Err("it has no event of type DynamoDB".to_owned()),
        [(_, only)] => only,
        several => {
            let named = several.iter().find(|(name, _)| *name == id).map(|(_, event)| event);
            named.ok_or_else(|| format!("none of its {} events of type DynamoDB is called {id}", several.len()))?
        }
    };
    match stream.get("Properties").map(|properties| scope.value(properties)).transpose()?.flatten() {
        Some(Value::Map(properties)) => Ok(properties),
        _ => Err("its event has no Properties".to_owned()),
    }
}

/// The properties that are not read yet.
struct Settings(BTreeMap<String, Value>);

impl Settings {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        self.take(name).map(|value| text(name, value)).transpose()
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let number = |text: String| text.parse().map_err(|_| format!("{name} is {text}: give a whole number"));
        self.text(name)?.map(number).transpose()
    }

    /// A number, or -1 for none.
    fn limit<T: TryFrom<i64>>(&mut self, name: &str) -> Result<Option<T>, String> {
        match self.number::<i64>(name)? {
            None | Some(-1) => Ok(None),
            Some(number) => {
                let limit = T::try_from(number);
                limit.map(Some).map_err(|_| format!("{name} is {number}: give -1 for no end, or 0 or more"))
            }
        }
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, String> {
        let flag = |text: String| text.parse().map_err(|_| format!("{name} is {text}: give true or false"));
        self.text(name)?.map(flag).transpose()
    }

    fn list(&mut self, name: &str) -> Result<Vec<String>, String> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::List(items)) => items.into_iter().map(|item| text(name, item)).collect(),
            Some(_) => Err(format!("{name} must be a list")),
        }
    }

    fn must_be_enabled(&mut self) -> Result<(), String> {
        match self.flag("Enabled")? {
            Some(false) => Err("Enabled is false, so it would read nothing: give true".to_owned()),
            Some(true) | None => Ok(()),
        }
    }

    /// Counted here always, so only that AWS would take it is looked at.
    fn metrics(&mut self) -> Result<(), String> {
        let Some(mut config) = self.object("MetricsConfig")? else { return Ok(()) };
        match config.list("Metrics")?.iter().find(|metric| *metric != "EventCount") {
            Some(metric) => Err(format!("MetricsConfig has {metric}: a DynamoDB stream has EventCount only")),
            None => config.end("MetricsConfig"),
        }
    }

    fn reports_failures(&mut self) -> Result<bool, String> {
        let name = "FunctionResponseTypes";
        match self.list(name)?.as_slice() {
            [] => Ok(false),
            [one] if one == "ReportBatchItemFailures" => Ok(true),
            [one] => Err(format!("{name} has {one}: give ReportBatchItemFailures")),
            _ => Err(format!("{name} has more than one: give ReportBatchItemFailures alone")),
        }
    }

    fn filters(&mut self) -> Result<Filters, String> {
        let Some(mut criteria) = self.object("FilterCriteria")? else { return Ok(Filters::default()) };
        let filters = match criteria.take("Filters") {
            None => Vec::new(),
            Some(Value::List(filters)) => filters,
            Some(_) => return Err("FilterCriteria.Filters must be a list".to_owned()),
        };
        criteria.end("FilterCriteria")?;
        let mut patterns = Vec::new();
        for filter in filters {
            let Value::Map(filter) = filter else { return Err("a filter must have a Pattern".to_owned()) };
            let mut filter = Self(filter);
            patterns.push(filter.text("Pattern")?.ok_or("a filter must have a Pattern")?);
            filter.end("a filter")?;
        }
        Filters::new(patterns).map_err(|error| error.to_string())
    }

    fn on_failure(&mut self, scope: &TemplateScope<'_>) -> Result<Option<OnFailure>, String> {
        let Some(mut config) = self.object("DestinationConfig")? else { return Ok(None) };
        let on_failure = config.object("OnFailure")?;
        config.end("DestinationConfig")?;
        let Some(mut on_failure) = on_failure else { return Ok(None) };
        let kind = on_failure.text("Type")?;
        let destination = on_failure.take("Destination");
        on_failure.end("DestinationConfig.OnFailure")?;
        let Some(destination) = destination else { return Ok(None) };
        let kind = match (kind, destination) {
            (Some(kind), _) => kind,
            (None, Value::Text(arn)) => arn.split(':').nth(2).unwrap_or_default().to_uppercase(),
            (None, Value::Opaque { resource: Some(resource), .. }) => {
                let resource = scope.resource(&resource)?.and_then(|resource| resource.get("Type")?.text());
                resource.and_then(|kind| kind.split("::").nth(1)).unwrap_or_default().to_uppercase()
            }
            (None, _) => String::new(),
        };
        match kind.as_str() {
            "S3" => Ok(Some(OnFailure::S3)),
            "SQS" => Ok(Some(OnFailure::Sqs)),
            "SNS" => Ok(Some(OnFailure::Sns)),
            _ => {
                Err("of its OnFailure destination it is not known what it is: give it a Type, S3, SQS or SNS"
                    .to_owned())
            }
        }
    }

    fn starting_position(&mut self) -> Result<StartingPosition, String> {
        let name = "StartingPosition";
        match self.text(name)?.as_deref() {
            Some("TRIM_HORIZON") => Ok(StartingPosition::TrimHorizon),
            Some("LATEST") => Ok(StartingPosition::Latest),
            Some(other) => Err(format!("{name} is {other}: a DynamoDB stream has TRIM_HORIZON and LATEST")),
            None => Err(format!("{name} is missing: give TRIM_HORIZON or LATEST")),
        }
    }

    fn object(&mut self, name: &str) -> Result<Option<Self>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Map(fields)) => Ok(Some(Self(fields))),
            Some(_) => Err(format!("{name} must be an object")),
        }
    }

    /// All of it was read.
    fn end(&self, name: &str) -> Result<(), String> {
        self.0.keys().next().map_or(Ok(()), |unknown| Err(format!("{name} has an unknown {unknown}: take it out")))
    }
}

fn text(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Opaque { what, .. } => Err(format!("{name} is {what}, of which no value is known here")),
        Value::Null | Value::List(_) | Value::Map(_) => Err(format!("{name} must be one value")),
    }
}
