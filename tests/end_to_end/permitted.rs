//! The policies for people permit the calls that the commands make, and those for readers no write.
//!
//! The built commands run through a proxy that notes each call of theirs. They call the same as on AWS, and read the progress
//! of `ripple dev` beside it.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use support::{
    command::Ended,
    server::{Request, serve},
};

use crate::{
    NOON,
    database::{LEDGER, alter, client, delete, follow, key, make_unaddable, n, put, user},
    replayed::{captured, page},
    ripple::{Ripple, ripple},
};

/// A statement of a policy and one of its actions, such as `Ledger` and `GetItem`.
type Call = (&'static str, String);

/// A proxy in front of a database.
struct Proxy {
    endpoint: String,
    calls: Arc<Mutex<BTreeSet<Call>>>,
}

impl Proxy {
    fn before(database: &str) -> Self {
        let calls = Arc::<Mutex<BTreeSet<Call>>>::default();
        let (database, noted) = (database.trim_start_matches("http://").to_owned(), Arc::clone(&calls));
        let address = serve(move |connection| forward(connection, &database, &noted));
        Self { endpoint: format!("http://{address}"), calls }
    }

    /// Runs a command at the proxy; its exit code must be one of these.
    fn runs(&self, name: &str, arguments: &[&str], codes: &[i32]) -> Ended {
        let ended = said_at(name, &self.endpoint, arguments);
        assert!(ended.code.is_some_and(|code| codes.contains(&code)), "{name} {arguments:?}: {ended:?}");
        ended
    }

    /// Takes the calls up to now.
    fn take(&self) -> BTreeSet<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

/// Runs a command with these arguments, and then the endpoint. The first argument may be a subcommand.
fn said_at(name: &str, endpoint: &str, arguments: &[&str]) -> Ended {
    Ended::of(&mut ripple(name, &[arguments, &["--endpoint", endpoint]].concat()))
}

/// Notes a request, and hands it and its answer on. Each connection is closed after one.
fn forward(mut client: TcpStream, database: &str, calls: &Mutex<BTreeSet<Call>>) {
    let Some(request) = Request::read(&client) else { return };
    let target = request.header("x-amz-target").unwrap();
    calls.lock().unwrap().extend(noted(target, &serde_json::from_slice(&request.body).unwrap()));

    let mut server = TcpStream::connect(database).unwrap();
    server.write_all(&request.closing()).unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).unwrap();
    let line = answer.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
    // The command may have ended already.
    drop(client.write_all(&[&answer[..line], b"Connection: close\r\n", &answer[line..]].concat()));
}

/// The calls of a request, as a policy names them.
fn noted(target: &str, request: &Value) -> Vec<Call> {
    let (service, operation) = target.split_once('.').unwrap();
    if service.starts_with("DynamoDBStreams") {
        return vec![("Streams", operation.to_owned())];
    }
    let place = |table: &str| if table == LEDGER { "Ledger" } else { "Table" };
    let of = |request: &Value| place(request["TableName"].as_str().unwrap());
    match operation {
        "TransactWriteItems" => {
            let actions = request["TransactItems"].as_array().unwrap().iter().flat_map(|it| it.as_object().unwrap());
            actions.map(|(name, action)| (of(action), format!("{name}Item"))).collect()
        }
        "BatchGetItem" => request["RequestItems"]
            .as_object()
            .unwrap()
            .keys()
            .map(|table| (place(table), operation.to_owned()))
            .collect(),
        "Query" if request.get("IndexName").is_some() => vec![("Indexes", operation.to_owned())],
        _ => vec![(of(request), operation.to_owned())],
    }
}

/// The calls that a policy of a template permits.
fn permitted(template: &str, policy: &str) -> BTreeSet<(String, String)> {
    let file = format!("{}/../../infra/{template}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once(&format!("\n  {policy}:\n")).unwrap();
    let mut permitted = BTreeSet::new();
    let mut sid = "";
    for line in rest.lines().take_while(|line| !line.is_empty()).map(|line| line.trim().trim_start_matches("- ")) {
        if let Some(named) = line.strip_prefix("Sid: ") {
            sid = named;
        } else if let Some(action) = line.strip_prefix("dynamodb:") {
            permitted.insert((sid.to_owned(), action.to_owned()));
        }
    }
    permitted
}

/// Holds these calls to a policy of both templates.
fn are_permitted(calls: &BTreeSet<Call>, policy: &str) {
    for template in ["template.yaml", "attach.yaml"] {
        let permitted = permitted(template, policy);
        let missing: Vec<_> =
            calls.iter().filter(|(sid, action)| !permitted.contains(&((*sid).to_owned(), action.clone()))).collect();
        assert!(missing.is_empty(), "{policy} of {template} lacks {missing:?}");
    }
}

/// A counter that was altered differs, with the source that it counts and the change that moved it; and of one that cannot
/// be added to, the change is parked.
fn explained(proxy: &Proxy) {
    let why = |item: &str| -> Value {
        serde_json::from_str(&proxy.runs("why", &[item, "FollowingCount", "--json"], &[3]).stdout).unwrap()
    };
    let ann = why("USER#ann / PROFILE");
    let counter = &ann["counters"][0];
    assert_eq!(
        (&counter["state"], &counter["count"], &counter["sources"]["count"]),
        (&json!("differs"), &json!(7), &json!(1)),
        "{ann}"
    );
    assert_eq!(counter["sources"]["listed"][0]["item"], json!({ "pk": "USER#ann", "sk": "FOLLOWS#bob" }));
    assert_eq!(ann["values"][0]["stored"], json!({ "FollowingCount": { "N": "7" } }), "the display shows the counter");
    let events = ann["changes"]["listed"].as_array().unwrap();
    let is_follow = |event: &&Value| event["item"]["sk"] == "FOLLOWS#bob" && event["name"] == "INSERT";
    assert_eq!(events.iter().filter(is_follow).count(), 1, "{ann}");
    let bob = why("USER#bob / PROFILE");
    assert_eq!(bob["parked"][0]["item"], json!({ "pk": "USER#bob", "sk": "FOLLOWS#ann" }), "{bob}");
    assert_eq!(bob["counters"][0]["state"], "waits", "{bob}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policies_for_people_permit_what_the_commands_call() {
    let mut service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    let proxy = Proxy::before(&endpoint);
    for id in ["ann", "bob", "cy"] {
        put(&client, user(id, "R", NOON)).await;
    }
    put(&client, follow("ann", "bob", NOON)).await;
    service.caught_up(&client).await;
    let wrong = key("USER#ann", "PROFILE#COUNT#following-count#00");
    alter(&client, &wrong, "Value", Some(n(7))).await;
    let counter = key("USER#bob", "PROFILE#COUNT#following-count#00");
    make_unaddable(&client, &counter).await;
    put(&client, follow("bob", "ann", NOON)).await;
    delete(&client, &key("USER#cy", "PROFILE")).await;
    service.caught_up(&client).await;

    // An audit needs a part of the policy: it never calls the ledger.
    proxy.runs("audit", &[], &[0, 3]);
    let audited = proxy.take();
    are_permitted(&audited, "ReadOnlyPolicy");
    let reads = BTreeSet::from([("Table", "BatchGetItem"), ("Table", "DescribeTable"), ("Table", "Scan")]);
    let others: Vec<_> = audited.iter().filter(|(sid, action)| !reads.contains(&(*sid, action.as_str()))).collect();
    assert!(others.is_empty() && audited.len() > 1, "{audited:?}");

    // A repair without `--apply` verifies as `verify` does on AWS without `--yes`; here `verify` may write its marks.
    for (name, arguments) in [
        ("repair", &[][..]),
        ("parked", &[]),
        ("jobs", &[]),
        ("preflight", &[]),
        ("catalogue", &["diff"]),
        ("rates", &[]),
    ] {
        proxy.runs(name, arguments, &[0, 3]);
    }
    explained(&proxy);
    let parked: Value = serde_json::from_str(&proxy.runs("parked", &["--json"], &[3]).stdout).unwrap();
    let read = proxy.take();
    are_permitted(&read, "ReadOnlyPolicy");
    let writes: Vec<_> = read.iter().filter(|(_, action)| ["Put", "Upd", "Del"].contains(&&action[..3])).collect();
    assert!(writes.is_empty(), "{writes:?}");

    let id = parked["parked"][0]["id"].as_str().unwrap();
    proxy.runs("redrive", &[id], &[3]);
    delete(&client, &counter).await;
    proxy.runs("redrive", &["--all"], &[0]);
    // The policy permits each of the four writes that there are on both tables, so also those to a job.
    for order in ["--pause", "--resume", "--cancel"] {
        proxy.runs("jobs", &[order, "user-cascade#none"], &[2]);
    }
    let captured = captured(&client, &endpoint).await;
    let folder = tempfile::tempdir().unwrap();
    let records = page(folder.path(), "records", &captured.records);
    let of = ["--stream", &captured.stream, "--shard", &captured.shard];
    proxy.runs("replay", &[&[records.as_str()], &of[..]].concat(), &[0, 3]);
    proxy.runs("repair", &["--apply"], &[0, 3]);
    proxy.runs("backfill", &["follower-count"], &[0, 3]);
    proxy.runs("verify", &[], &[0, 3]);
    let written = proxy.take();
    are_permitted(&written, "OperatorPolicy");
    let all: BTreeSet<_> = read.union(&written).map(|(sid, action)| ((*sid).to_owned(), action.clone())).collect();
    // A repair and a cancelled job delete, and nothing here does; what no command calls is not permitted.
    let unused: Vec<_> = permitted("template.yaml", "OperatorPolicy").difference(&all).cloned().collect();
    let is_a_deletion = |(sid, action): &(String, String)| sid == "Table" && action == "DeleteItem";
    assert!(unused.iter().all(is_a_deletion), "{unused:?}");
}
