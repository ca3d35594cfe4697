//! Alarms and the dashboard name only metrics that exist.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use engine::{account::Account, batch::Engine, clock::SystemClock};
use functions::{
    declared::{Choice, declared},
    handler::Function,
    metrics::{self, batch::LAG},
    mode::Mode,
};
use serde_json::{Value, json};
use store::memory::MemoryStore;

use crate::infra::template::{BOTH, READERS, at, read, resources};

/// Metrics of the functions that read the stream, by table and function.
static OF_READERS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let (schema, catalogue) = declared(Choice::default()).unwrap();
    let (store, clock) = (Arc::new(MemoryStore::new(schema.layout.clone())), Arc::new(SystemClock));
    let engine = Engine::new(schema, catalogue, Function::Combined.families(), store, clock);
    let metrics = metrics::batch::BatchMetrics::of(&engine, &Account::default());
    let mut names = names(&metrics.line("table", Function::Combined, Mode::Apply, 0));
    // A batch that commits nothing has no `Lag`.
    names.insert(LAG.to_owned());
    names
});

/// Metrics of `sweep`, by table.
static OF_SWEEP: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| names(&metrics::SweepMetrics::default().line("table", Mode::Apply, 0)));

/// The metrics of a line.
fn names(line: &Value) -> BTreeSet<String> {
    let metrics = line["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap();
    metrics.iter().map(|metric| metric["Name"].as_str().unwrap().to_owned()).collect()
}

/// The metrics of Lambda and DynamoDB that the templates name.
const OF_THE_PLATFORM: [(&str, &str); 9] = [
    ("AWS/Lambda", "IteratorAge"),
    ("AWS/Lambda", "Errors"),
    ("AWS/Lambda", "Throttles"),
    ("AWS/Lambda", "Duration"),
    ("AWS/Lambda", "Invocations"),
    ("AWS/Lambda", "OnFailureDestinationDeliveredEventCount"),
    ("AWS/Lambda", "DestinationDeliveryFailures"),
    ("AWS/DynamoDB", "ConsumedWriteCapacityUnits"),
    ("AWS/DynamoDB", "WriteThrottleEvents"),
];

/// Does this metric exist, with these dimensions?
fn there_is(namespace: &str, metric: &str, dimensions: &[&str]) -> bool {
    match (namespace, dimensions) {
        ("Ripple", ["Table", "Function"]) => OF_READERS.contains(metric),
        ("Ripple", ["Table"]) => OF_SWEEP.contains(metric),
        ("AWS/Lambda", ["EventSourceMappingUUID"]) => metric == "OnFailureDestinationDeliveredEventCount",
        ("AWS/Lambda", ["FunctionName"]) | ("AWS/DynamoDB", ["TableName"]) => {
            OF_THE_PLATFORM.contains(&(namespace, metric))
        }
        _ => false,
    }
}

#[test]
fn every_alarm_is_on_a_metric_that_there_is() {
    for name in BOTH {
        let template = read(name);
        for (id, alarm) in resources(&template, "AWS::CloudWatch::Alarm") {
            let dimensions: Vec<&str> =
                alarm["Dimensions"].as_array().unwrap().iter().map(|it| it["Name"].as_str().unwrap()).collect();
            let [namespace, metric] = ["Namespace", "MetricName"].map(|it| alarm[it].as_str().unwrap());
            assert!(there_is(namespace, metric, &dimensions), "{id}: {namespace} {metric} by {dimensions:?}");
            let description = alarm["AlarmDescription"].as_str().unwrap();
            assert!(description.contains("docs/alarms.md#"), "{id} says where the operator reads on: {description}");
            let topic = json!({ "Fn::If": ["HasAlarmTopic", [{ "Ref": "AlarmTopicArn" }], { "Ref": "AWS::NoValue" }] });
            assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&topic, &topic), "{id}");
        }
    }
}

#[test]
fn every_function_has_its_alarms() {
    let of_each = [
        "IteratorAge",
        "Errors",
        "OnFailureDestinationDeliveredEventCount",
        "DestinationDeliveryFailures",
        "Parked",
        "Refused",
        "PossibleLoss",
    ];
    for name in BOTH {
        let template = read(name);
        let on = |function: &str, metric: &str| {
            resources(&template, "AWS::CloudWatch::Alarm").any(|(id, alarm)| {
                let own = alarm["Dimensions"].as_array().unwrap().iter().any(|it| {
                    let value = &it["Value"];
                    *value == json!(function.to_lowercase())
                        || value["Ref"] == function
                        || value["Ref"] == format!("{function}Stream")
                });
                let condition = &template["Resources"][id]["Condition"];
                own && alarm["MetricName"] == metric && *condition == template["Resources"][function]["Condition"]
            })
        };
        for (id, _) in READERS {
            for metric in of_each {
                assert!(on(id, metric), "{name} has no alarm on {metric} of {id}");
            }
        }
        assert!(on("Sweep", "Errors") && on("Sweep", "Invocations"));
        assert!(resources(&template, "AWS::CloudWatch::Alarm").any(|(_, alarm)| alarm["MetricName"] == "Drift"));
    }
}

/// The searches of a dashboard: the namespace, its dimensions, and the metrics.
fn searches(dashboard: &Value) -> Vec<(String, Vec<String>, Vec<String>)> {
    let mut searches = Vec::new();
    for widget in dashboard["widgets"].as_array().unwrap() {
        let search = widget["properties"]["metrics"][0][0]["expression"].as_str().unwrap();
        let (schema, rest) = search.strip_prefix("SEARCH('{").unwrap().split_once('}').unwrap();
        let mut schema = schema.split(',').map(str::to_owned);
        let named = rest.split_once("MetricName=").unwrap().1;
        let end = if named.starts_with('(') { named.find(')') } else { named[1..].find('"').map(|at| at + 1) };
        let named = named[..end.unwrap()].split('"').skip(1).step_by(2).map(str::to_owned);
        searches.push((schema.next().unwrap(), schema.collect(), named.collect()));
    }
    searches
}

#[test]
fn the_dashboard_shows_every_metric_that_there_is_and_no_other() {
    for name in BOTH {
        let template = read(name);
        let body = at(&template, &["Resources", "Dashboard", "Properties", "DashboardBody", "Fn::Sub"]);
        let searches = searches(&serde_json::from_str(body.as_str().unwrap()).unwrap());
        let mut shown = BTreeSet::new();
        for (namespace, dimensions, metrics) in &searches {
            let dimensions: Vec<&str> = dimensions.iter().map(String::as_str).collect();
            for metric in metrics {
                assert!(there_is(namespace, metric, &dimensions), "{name}: {namespace} {metric} by {dimensions:?}");
                shown.insert((namespace.as_str(), metric.as_str()));
            }
        }
        for metric in OF_READERS.iter().chain(&*OF_SWEEP) {
            assert!(shown.contains(&("Ripple", metric.as_str())), "{name} does not show {metric}");
        }
    }
}
