//! Alarms and the dashboard name only metrics that exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{Arc, LazyLock},
};

use derive::{
    family::Family,
    position::RecordAt,
    write::{Action, Table, Write},
};
use engine::{
    account::{Account, Parked, Refused},
    batch::Engine,
    clock::SystemClock,
    fan_out::again::Again,
    jobs::sweep::Swept,
    sweep::{COUNTED_MAX, Damage, Drift, Slice},
};
use functions::{
    config::Mode,
    declared::{Choice, declared},
    handler::Function,
    metrics::{self, GAUGES, LAG, STREAM_CHANGED, SweepMetrics, Zeros},
};
use keys::key::Key;
use serde_json::{Value, json};
use store::{Store as _, memory::MemoryStore};

use crate::infra::{BOTH, READERS, at, both, read, resources};

/// An engine on an empty table.
fn engine(families: Vec<Family>) -> Engine<Arc<MemoryStore>> {
    let (schema, catalogue) = declared(Choice::default()).unwrap();
    let store = Arc::new(MemoryStore::new(schema.layout.clone()));
    Engine::new(schema, catalogue, families, store, Arc::new(SystemClock))
}

/// Metrics of the functions that read the stream, by table and function.
static OF_READERS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let engine = engine(Function::Combined.families());
    let metrics = metrics::BatchMetrics::of(&engine, &Account::default());
    let mut names = names(&metrics.line("table", Function::Combined, Mode::Apply, 0, Zeros::Shown));
    // A batch that commits nothing has no `Lag`.
    names.insert(LAG.to_owned());
    names
});

/// Metrics of `sweep`, by table.
static OF_SWEEP: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| names(&swept(Damage::default(), 0, 0, false).line("table", Mode::Apply, 0)));

/// The metrics of a whole sweep that counted these.
fn swept(damage: Damage, n_blocked: usize, n_drifts: usize, stream_changed: bool) -> SweepMetrics {
    let drift = Drift { item: Key::new("USER#ann", "PROFILE"), derivations: vec!["post-count".to_owned()] };
    SweepMetrics {
        jobs: Some(Swept { n_blocked, ..Swept::default() }),
        again: Some(Again::default()),
        slice: Some(Slice { drifts: vec![drift; n_drifts], has_all_suspects: true, ..Slice::default() }),
        damage: Some(damage),
        stream_changed: Some(stream_changed),
    }
}

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
        // `MetricsConfig` of every mapping asks for these.
        ("AWS/Lambda", ["EventSourceMappingUUID"]) => {
            ["OnFailureDestinationDeliveredEventCount", "PolledEventCount"].contains(&metric)
        }
        ("AWS/Lambda", ["FunctionName"]) | ("AWS/DynamoDB", ["TableName"]) => {
            OF_THE_PLATFORM.contains(&(namespace, metric))
        }
        _ => false,
    }
}

/// A metric that an alarm is on: its namespace, its name, and its dimensions with their values.
type AlarmMetric = (String, String, BTreeMap<String, Value>);

/// The metrics of an alarm: one, or those of its expression.
pub(crate) fn metrics_of(alarm: &Value) -> Vec<AlarmMetric> {
    let named = |it: &Value| {
        let dimensions = it["Dimensions"].as_array().unwrap().iter();
        let dimensions = dimensions.map(|it| (it["Name"].as_str().unwrap().to_owned(), it["Value"].clone())).collect();
        let [namespace, metric] = ["Namespace", "MetricName"].map(|name| it[name].as_str().unwrap().to_owned());
        (namespace, metric, dimensions)
    };
    match alarm["Metrics"].as_array() {
        Some(all) => all.iter().filter_map(|it| it["MetricStat"].get("Metric")).map(named).collect(),
        None => vec![named(alarm)],
    }
}

/// The section of docs/alarms.md that an alarm's description names.
fn section(alarm: &Value) -> &str {
    let description = alarm["AlarmDescription"].as_str().unwrap();
    let (_, section) = description.split_once("docs/alarms.md#").unwrap_or_else(|| panic!("no section: {description}"));
    section
}

#[test]
fn every_alarm_is_on_a_metric_that_there_is() {
    for (_, template) in both() {
        for (id, alarm) in resources(&template, "AWS::CloudWatch::Alarm") {
            for (namespace, metric, dimensions) in metrics_of(alarm) {
                let dimensions: Vec<&str> = dimensions.keys().map(String::as_str).collect();
                // A line declares them in this order, and the alarm in any.
                let dimensions =
                    if dimensions == ["Function", "Table"] { vec!["Table", "Function"] } else { dimensions };
                assert!(there_is(&namespace, &metric, &dimensions), "{id}: {namespace} {metric} by {dimensions:?}");
            }
            let topic = |of: &str| {
                let arn = json!({ "Ref": format!("{of}TopicArn") });
                json!({ "Fn::If": [format!("Has{of}Topic"), [arn], { "Ref": "AWS::NoValue" }] })
            };
            let beginning = if id == "SweepSilentAlarm" { "InsufficientDataActions" } else { "AlarmActions" };
            let topic = topic(if is_urgent(section(alarm)) { "Page" } else { "Ticket" });
            assert_eq!(alarm[beginning], topic, "{id}");
            let is_event =
                ["Dropped", "Destination", "OutOfOrder"].iter().any(|event| id.ends_with(&format!("{event}Alarm")));
            assert_eq!(alarm.get("OKActions"), (!is_event).then_some(&topic), "{id}");
        }
    }
}

#[test]
fn every_function_has_its_alarms() {
    let of_each = [
        "IteratorAge",
        "Errors",
        "PolledEventCount",
        "OnFailureDestinationDeliveredEventCount",
        "DestinationDeliveryFailures",
        "Undone",
    ];
    for (name, template) in both() {
        let on = |function: &str, metric: &str| {
            resources(&template, "AWS::CloudWatch::Alarm").any(|(id, alarm)| {
                let condition = &template["Resources"][id]["Condition"];
                let is_its = |(_, named, dimensions): &AlarmMetric| {
                    let is_function = |value: &Value| {
                        *value == json!(function.to_lowercase())
                            || value["Ref"] == function
                            || value["Ref"] == format!("{function}Stream")
                    };
                    named == metric && dimensions.values().any(is_function)
                };
                metrics_of(alarm).iter().any(is_its) && *condition == template["Resources"][function]["Condition"]
            })
        };
        for (id, _) in READERS {
            for metric in of_each {
                assert!(on(id, metric), "{name} has no alarm on {metric} of {id}");
            }
            assert_eq!(on(id, "OutOfOrder"), id != "Propagate", "{name}: only counts rest on the order");
        }
        assert!(on("Sweep", "Errors") && on("Sweep", "Invocations"));
        for metric in GAUGES.into_iter().chain([STREAM_CHANGED]) {
            assert!(resources(&template, "AWS::CloudWatch::Alarm").any(|(_, alarm)| alarm["MetricName"] == metric));
        }
    }
}

/// Does docs/alarms.md want a person within hours for the alarms of this section?
fn is_urgent(section: &str) -> bool {
    let (rows, _) = documented();
    let row = rows.iter().find(|row| row[0].contains(&format!("](#{section})"))).unwrap();
    ["within hours", "at once"].contains(&row[1].as_str())
}

/// The state of an alarm on a gauge after a period with this line of the sweep, or without any, as CloudWatch decides.
/// Source: CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data".
fn after_period(alarm: &Value, is_ringing: bool, line: Option<&Value>) -> bool {
    assert_eq!((&alarm["Statistic"], &alarm["EvaluationPeriods"]), (&json!("Maximum"), &json!(1)));
    assert_eq!(alarm["ComparisonOperator"], "GreaterThanThreshold");
    let metric = alarm["MetricName"].as_str().unwrap();
    match line.and_then(|line| line.get(metric)) {
        Some(value) => value.as_u64() > alarm["Threshold"].as_u64(),
        None => match alarm["TreatMissingData"].as_str() {
            Some("ignore") => is_ringing,
            Some("breaching") => true,
            _ => false,
        },
    }
}

#[tokio::test]
async fn a_parked_change_of_several_parts_is_one_and_no_number_is_above_a_thousand() {
    let engine = engine(Vec::new());
    let (store, layout) = (engine.store(), &engine.schema().layout);
    let parts = ["1#00", "1#01", "2#00"].map(|part| Key::new("PARKED#additive", part));
    for key in parts.into_iter().chain((0..=COUNTED_MAX).map(|at| Key::new("RECOUNT", format!("{at:04}")))) {
        let action = Action::Put(layout.key_item(&key));
        store.write(&Write { table: Table::Ledger, key, action, guard: None }).await.unwrap();
    }
    let damage = engine.damage(u64::MAX).await.unwrap();
    assert_eq!(damage, Damage { n_parked: 2, n_to_recount: COUNTED_MAX, ..Damage::default() });
}

/// Puts one thing of each kind into the ledger, and removes it again: what a sweep then reports decides each alarm.
#[tokio::test]
async fn the_alarm_on_a_gauge_begins_with_the_damage_and_ends_when_it_is_gone_and_not_before() {
    let engine = engine(Vec::new());
    let (store, layout) = (engine.store(), &engine.schema().layout);
    let keys = [
        ("ParkedChanges", Key::new("PARKED#additive", "1#00")),
        ("ParkedChanges", Key::new("PARKED#level-triggered", "2@0badcafe#00")),
        ("CountsToRecount", Key::new("RECOUNT", "post-count#USER#ann#PROFILE")),
        ("UnreadableItems", Key::new("UNREADABLE", "post-count#USER#ann#POST#1")),
        ("PossibleLosses", Key::new("LOSS", "additive#2026-11-28#shard-1")),
    ];
    let write = |key: &Key, action| Write { table: Table::Ledger, key: key.clone(), action, guard: None };
    let line = async |n_blocked, n_drifts, stream_changed| {
        let damage = engine.damage(u64::MAX).await.unwrap();
        swept(damage, n_blocked, n_drifts, stream_changed).line("table", Mode::Apply, 0)
    };
    let clean = line(0, 0, false).await;
    let mut damaged = vec![
        ("BlockedCascades", line(1, 0, false).await),
        ("Drift", line(0, 1, false).await),
        (STREAM_CHANGED, line(0, 0, true).await),
    ];
    for (metric, key) in &keys {
        store.write(&write(key, Action::Put(layout.key_item(key)))).await.unwrap();
        damaged.push((metric, line(0, 0, false).await));
        store.write(&write(key, Action::Delete)).await.unwrap();
    }
    let failed = SweepMetrics::default().line("table", Mode::Apply, 0);
    for (_, template) in both() {
        for (metric, damaged) in &damaged {
            let all =
                || resources(&template, "AWS::CloudWatch::Alarm").filter(|(_, it)| it.get("MetricName").is_some());
            let (id, alarm) = all().find(|(_, it)| it["MetricName"] == *metric).unwrap();
            let mut is_ringing = false;
            let mut next = |line: Option<&Value>| {
                is_ringing = after_period(alarm, is_ringing, line);
                is_ringing
            };
            assert!(!next(None) && !next(Some(&clean)), "{id}");
            for _ in 0..3 {
                assert!(next(Some(damaged)) && next(None) && next(Some(&failed)), "{id} ends while the damage stands");
            }
            assert!(!next(Some(&clean)) && !next(None), "{id} goes on when the damage is gone");
            let others = all().filter(|(other, it)| *other != id && it["TreatMissingData"] == "ignore");
            let ringing: Vec<&str> =
                others.filter(|(_, it)| after_period(it, false, Some(damaged))).map(|it| it.0).collect();
            assert_eq!(ringing, [""; 0], "{metric}");
        }
    }
}

#[test]
fn a_mapping_that_polls_nothing_while_the_table_is_written_to_rings_after_half_an_hour() {
    for (name, table) in BOTH.into_iter().zip(["Table", "TableName"]) {
        let template = read(name);
        for (id, _) in READERS {
            let alarm = at(&template, &["Resources", &format!("{id}NotReadingAlarm"), "Properties"]);
            let [expression, metrics @ ..] = alarm["Metrics"].as_array().unwrap().as_slice() else { panic!("{alarm}") };
            // A disabled mapping has no data, and neither has an idle table: both are 0.
            assert_eq!(expression["Expression"], "IF(FILL(written, 0) > 0 AND FILL(polled, 0) == 0, 1, 0)");
            let stored: Vec<_> = metrics.iter().map(|it| (&it["Id"], &it["MetricStat"]["Period"])).collect();
            assert_eq!(stored, [(&json!("written"), &json!(900)), (&json!("polled"), &json!(900))], "{name}: {id}");
            // Two quarters of an hour, so that a write at the end of one that is polled in the next rings nothing.
            assert_eq!((&alarm["DatapointsToAlarm"], &alarm["EvaluationPeriods"]), (&json!(2), &json!(4)));
            assert_eq!(alarm["TreatMissingData"], "ignore", "an idle table does not end it");
            let returned = |it: &Value| it["ReturnData"] == true;
            assert!(returned(expression) && !metrics.iter().any(returned), "an alarm is on one series");
            let on: Vec<_> = metrics_of(alarm).into_iter().map(|(_, metric, of)| (metric, of)).collect();
            let of = |name: &str, resource: String| BTreeMap::from([(name.to_owned(), json!({ "Ref": resource }))]);
            let written = ("ConsumedWriteCapacityUnits".to_owned(), of("TableName", table.to_owned()));
            let polled = ("PolledEventCount".to_owned(), of("EventSourceMappingUUID", format!("{id}Stream")));
            assert_eq!(on, [written, polled], "{name}: {id}");
        }
    }
}

/// The metrics that say that records were given up or may have expired: no harm while nothing is derived.
const OF_LOST_RECORDS: [&str; 2] = ["OnFailureDestinationDeliveredEventCount", "DestinationDeliveryFailures"];

#[test]
fn the_first_backlog_of_a_function_that_observes_rings_nothing() {
    for (name, template) in both() {
        let applying = json!({ "Fn::Equals": [{ "Ref": "Mode" }, "apply"] });
        assert_eq!(at(&template, &["Conditions", "Applying"]), &applying);
        for (id, alarm) in resources(&template, "AWS::CloudWatch::Alarm") {
            let is_of_lost = alarm["MetricName"].as_str().is_some_and(|metric| OF_LOST_RECORDS.contains(&metric));
            let only_applying = json!({ "Fn::If": ["Applying", true, false] });
            assert_eq!(alarm.get("ActionsEnabled"), is_of_lost.then_some(&only_applying), "{name}: {id}");
        }
    }
    assert_eq!(at(&read("attach.yaml"), &["Parameters", "Mode", "Default"]), "observe");
}

#[test]
fn one_failed_invocation_rings_nothing() {
    for (name, template) in both() {
        for (id, alarm) in resources(&template, "AWS::CloudWatch::Alarm").filter(|(_, it)| it["MetricName"] == "Errors")
        {
            let n_periods = alarm["DatapointsToAlarm"].as_u64().unwrap_or(1);
            let n_in_a_period = alarm["Threshold"].as_u64().unwrap() + 1;
            assert!(n_periods * n_in_a_period > 1, "{name}: {id}");
        }
    }
}

#[test]
fn the_estimate_of_costs_counts_the_metrics_and_the_alarms_of_a_stack_with_two_readers() {
    let n_metrics = 2 * OF_READERS.len() + OF_SWEEP.len();
    assert_eq!(n_metrics, usize::try_from(design::cost::estimate::METRICS).unwrap());
    for (name, template) in both() {
        let of_two = |id: &str| template["Resources"][id]["Condition"] != "OneReader";
        let alarms = resources(&template, "AWS::CloudWatch::Alarm").filter(|(id, _)| of_two(id));
        let n_alarm_metrics: usize = alarms.map(|(_, alarm)| metrics_of(alarm).len()).sum();
        let (schema, catalogue) = declared(Choice::default()).unwrap();
        let wanted = design::cost::estimate::alarm_metrics(&schema, &catalogue);
        assert_eq!(n_alarm_metrics, usize::try_from(wanted).unwrap(), "{name}");
    }
}

#[test]
fn a_batch_says_in_its_metrics_what_the_alarms_are_about() {
    let engine = engine(Function::Combined.families());
    let mut account = Account::default();
    let said = |account: &Account, metric: &str| {
        metrics::BatchMetrics::of(&engine, account).line("table", Function::Combined, Mode::Apply, 0, Zeros::Shown)
            [metric]
            .clone()
    };
    let metrics = ["Parked", "Refused", "Undone", "OutOfOrder", "PossibleLoss"];
    for metric in metrics {
        assert_eq!(said(&account, metric), json!(0), "{metric}");
    }
    account.n_out_of_order = 1;
    account.undone.insert(RecordAt(3), "throttled".to_owned());
    account.late_ms = Some(72_000_000);
    account.parked.push(Parked { position: RecordAt(0), id: "1".to_owned(), cause: "too large".to_owned() });
    let why = "too old".to_owned();
    account.refused.push(Refused { position: RecordAt(1), id: "2".to_owned(), why, targets: Vec::new() });
    for metric in metrics {
        assert_eq!(said(&account, metric), json!(1), "{metric}");
    }
}

/// The rows of the table of alarms in docs/alarms.md, and the whole page.
fn documented() -> (Vec<Vec<String>>, String) {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/alarms.md")).unwrap();
    let rows =
        page.lines().skip_while(|line| !line.starts_with("| alarm |")).skip(2).take_while(|it| it.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    (rows.map(cells).collect(), page.clone())
}

#[test]
fn the_table_of_alarms_says_of_each_what_it_means_what_a_user_sees_and_what_to_do() {
    let (rows, page) = documented();
    let mut listed = BTreeSet::new();
    for (_, template) in both() {
        for (id, alarm) in resources(&template, "AWS::CloudWatch::Alarm") {
            let of_a_reader = READERS.iter().find_map(|(reader, _)| id.strip_prefix(reader));
            let shown = of_a_reader.map_or(format!("`{id}`"), |rest| format!("`…{rest}`"));
            let row = rows.iter().find(|row| row[0].contains(&shown)).unwrap_or_else(|| panic!("no row has {shown}"));
            assert_eq!(row.len(), 5, "{shown}: what it means, how urgent it is, what a user sees, what to do");
            assert!(row.iter().all(|cell| !cell.is_empty()), "{shown}");
            let link = format!("](#{})", section(alarm));
            assert!(row[0].contains(&link), "{shown} is described under {link}: {}", row[0]);
            let heading = page.lines().filter(|line| line.starts_with("## "));
            let anchors: Vec<String> = heading.map(|it| it[3..].to_lowercase().replace(' ', "-")).collect();
            assert!(anchors.iter().any(|anchor| anchor == section(alarm)), "{shown}: {link}");
            listed.insert(row[0].clone());
        }
    }
    let stale: Vec<_> = rows.iter().map(|row| &row[0]).filter(|alarm| !listed.contains(*alarm)).collect();
    assert!(stale.is_empty(), "no template has {stale:?}");
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
    for (name, template) in both() {
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
