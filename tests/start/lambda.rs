//! A server on the loopback address with minimal HTTP, Lambda's runtime API on it, and several invocations at once in one
//! process, as on Lambda Managed Instances.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    process::Command,
    sync::{Condvar, Mutex, mpsc},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use keys::item::Item;
use serde_json::{Value, json};
use support::{
    record::{Record, Window, event},
    server::{Request, serve},
};

use crate::{Database, binary, named};

/// A server that answers each request, given by its head and its body as text, with a status and a body. Returns its
/// host and port.
pub(crate) fn answering(answer: impl Fn(&str, String) -> (u16, String) + Send + Sync + 'static) -> String {
    serve(move |mut connection| {
        let Some(Request { head, body }) = Request::read(&connection) else { return };
        let (status, body) = answer(&head, String::from_utf8_lossy(&body).into_owned());
        let head = format!("HTTP/1.1 {status} status\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        // The client may have disconnected.
        drop(connection.write_all(format!("{head}{INVOCATION}\r\n{body}").as_bytes()));
    })
}

/// The headers of an invocation.
const INVOCATION: &str = "Lambda-Runtime-Aws-Request-Id: request-1\r\nLambda-Runtime-Deadline-Ms: 4102444800000\r\n\
                          Lambda-Runtime-Invoked-Function-Arn: arn\r\n";

/// Invokes a function once, as Lambda does, and stops it: returns its response and its log.
pub(crate) fn invoked(mut function: Command, event: String) -> (String, Vec<String>) {
    let (sender, answers) = mpsc::channel();
    let (again, asked_again) = mpsc::channel::<()>();
    let asked_again = std::sync::Mutex::new(asked_again);
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let api = answering(move |head, body| {
        if head.starts_with("GET ") {
            if is_first.swap(false, std::sync::atomic::Ordering::SeqCst) {
                return (200, event.clone());
            }
            // There is no further invocation: this request waits until the function is stopped.
            let _ended = asked_again.lock().unwrap().recv();
        }
        drop(sender.send(body));
        (202, String::new())
    });
    function.env("AWS_LAMBDA_RUNTIME_API", api);
    function.env("AWS_LAMBDA_FUNCTION_NAME", "aggregate").env("AWS_LAMBDA_FUNCTION_VERSION", "1");
    function.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512");
    let mut child = function.spawn().expect("the function starts");
    let (log, line) = (child.stderr.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let lines = thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let metrics = thread::spawn(move || BufReader::new(line).lines().map_while(Result::ok).collect::<Vec<_>>());
    let answer = answers.recv().expect("the function answers");
    child.kill().expect("it waits for the next invocation");
    child.wait().expect("it ran");
    drop(again);
    let mut log = lines.join().expect("the log is read");
    log.extend(metrics.join().expect("the log is read"));
    (answer, log)
}

// ---- Several invocations at once in one process ----

/// How many invocations a process handles at once.
const AT_ONCE: usize = 8;

/// How many shards there are, and follows in each.
const N_SHARDS: usize = 8;
const N_FOLLOWS: usize = 20;

/// The invocations that wait, and how many requests for one do.
struct Waiting {
    events: VecDeque<(String, String)>,
    n_asking: usize,
}

/// Lambda's runtime API for one process. It gives no invocation away before [`AT_ONCE`] are asked for.
struct RuntimeApi {
    waiting: Mutex<Waiting>,
    all_ask: Condvar,
    answers: mpsc::Sender<(String, String)>,
}

impl RuntimeApi {
    fn answer(&self, mut connection: TcpStream) {
        let Some(Request { head, body }) = Request::read(&connection) else { return };
        let (id, body) = if head.starts_with("GET ") {
            self.next()
        } else {
            let id = head.split('/').nth(4).unwrap().to_owned();
            self.answers.send((id, String::from_utf8_lossy(&body).into_owned())).unwrap();
            (String::new(), String::new())
        };
        let headers = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\nLambda-Runtime-Aws-Request-Id: {id}\r\n\
             Lambda-Runtime-Deadline-Ms: 4102444800000\r\nLambda-Runtime-Invoked-Function-Arn: arn\r\n\r\n{body}",
            body.len()
        );
        // The process may have been stopped.
        drop(connection.write_all(headers.as_bytes()));
    }

    /// The next invocation. If there is none, the request waits until the test ends.
    fn next(&self) -> (String, String) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.n_asking += 1;
        self.all_ask.notify_all();
        let is_early = |waiting: &mut Waiting| waiting.n_asking < AT_ONCE || waiting.events.is_empty();
        self.all_ask.wait_while(waiting, is_early).unwrap().events.pop_front().unwrap()
    }
}

/// The responses by request id, and the lines of the log.
struct Handled {
    answers: BTreeMap<String, String>,
    log: Vec<Value>,
}

/// Lets a process handle these events, and stops it. The request ids are the positions.
fn handled(mut function: Command, events: Vec<String>) -> Handled {
    let n_events = events.len();
    let (sender, answers) = mpsc::channel();
    let events = events.into_iter().enumerate().map(|(at, event)| (format!("request-{at}"), event)).collect();
    let waiting = Mutex::new(Waiting { events, n_asking: 0 });
    let api = RuntimeApi { waiting, all_ask: Condvar::new(), answers: sender };
    function.env("AWS_LAMBDA_RUNTIME_API", serve(move |connection| api.answer(connection)));
    function.env("AWS_LAMBDA_MAX_CONCURRENCY", AT_ONCE.to_string());
    function.env("AWS_LAMBDA_FUNCTION_NAME", "function").env("AWS_LAMBDA_FUNCTION_VERSION", "1");
    function.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512").env("AWS_EXECUTION_ENV", "AWS_Lambda_Image");
    let mut child = function.spawn().expect("the function starts");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let lines = thread::spawn(move || stdout.lines().map_while(Result::ok).collect::<Vec<_>>());
    let answers = answers.iter().take(n_events).collect();
    child.kill().expect("it waits for the next invocation");
    child.wait().expect("it ran");
    // A line that another cuts in two is no JSON.
    let log = lines.join().unwrap().iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    Handled { answers, log }
}

/// The lines about batches, by the ids of their invocations.
fn batches(log: &[Value]) -> BTreeMap<&str, &Value> {
    let batches = log.iter().filter(|line| line["message"] == "handled a batch");
    batches.map(|line| (line["span"]["request_id"].as_str().unwrap(), line)).collect()
}

/// A batch of each shard: users who follow Ada, each in one batch.
pub(crate) fn follows() -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let batch = |shard: usize| {
        let records = (shard * N_FOLLOWS..(shard + 1) * N_FOLLOWS).map(|at| {
            let item = |value: Value| serde_json::from_value::<Item>(value).unwrap();
            let key = json!({ "PK": { "S": format!("USER#u{at:03}") }, "SK": { "S": "FOLLOWS#ada" } });
            let mut follow = key.clone();
            follow["EntityType"] = json!({ "S": "Follow" });
            let (keys, follow) = (item(key), item(follow));
            let (id, sequence_number) = (format!("event-{at}"), format!("{}", 100_000 + at));
            let (new, at_ms) = (Some(&follow), u64::try_from(now).unwrap());
            let (id, sequence_number) = (id.as_str(), sequence_number.as_str());
            Record { id, sequence_number, keys: &keys, old: None, new, at_ms, is_expiry: false }.json()
        });
        Window::of_shard(&format!("shard-{shard}")).around(&event(&records.collect::<Vec<_>>()))
    };
    (0..N_SHARDS).map(batch).collect()
}

/// The sum of the counters of a derivation below a partition key.
fn counted(database: &Database, pk: &str, derivation: &str) -> u64 {
    let items = database.runtime.block_on(database.client.scan().table_name("ripple").consistent_read(true).send());
    let items = items.unwrap().items.unwrap();
    items
        .iter()
        .filter(|item| item["PK"].as_s().unwrap() == pk && item["SK"].as_s().unwrap().contains(derivation))
        .map(|item| item["Value"].as_n().unwrap().parse::<u64>().unwrap())
        .sum()
}

#[test]
fn batches_at_once_in_one_process_count_each_change_once() {
    for (function, ledger) in
        [(env!("CARGO_BIN_EXE_combined"), "receipts"), (env!("CARGO_BIN_EXE_aggregate"), "watermarks")]
    {
        let database = Database::with_tables();
        let variables = named(&[("LEDGER", ledger)]);
        // Lambda delivers each batch twice, the second time while the first is in progress.
        let events = follows().into_iter().flat_map(|event| [event.clone(), event]).collect();
        let Handled { answers, log } = handled(binary(function, &variables, &database.endpoint), events);
        for (id, answer) in &answers {
            assert!(answer.starts_with(r#"{"batchItemFailures":[]"#), "{ledger}: {id} {answer}");
        }
        assert_eq!(counted(&database, "USER#ada", "#COUNT#follower-count#"), 160, "{ledger}");
        let own = (0..160).map(|at| counted(&database, &format!("USER#u{at:03}"), "#COUNT#following-count#"));
        assert!(own.into_iter().all(|count| count == 1), "{ledger}");
        let ids: Vec<&str> = answers.keys().map(String::as_str).collect();
        assert_eq!(batches(&log).into_keys().collect::<Vec<_>>(), ids, "{ledger}: a line for each invocation");
        let metrics = log.iter().filter(|line| line["Records"] == N_FOLLOWS).count();
        assert_eq!(metrics, 2 * N_SHARDS, "{ledger}: a line of metrics for each invocation");
    }
}

#[test]
fn a_process_that_observes_sees_nothing_of_its_other_invocations() {
    let database = Database::with_tables();
    let variables = named(&[("MODE", "observe"), ("LEDGER", "receipts")]);
    let events = vec![follows().remove(0); 2 * AT_ONCE];
    let Handled { log, .. } = handled(binary(env!("CARGO_BIN_EXE_combined"), &variables, &database.endpoint), events);
    let batches = batches(&log);
    let writes: Vec<&Value> = batches.values().map(|line| &line["Writes"]).collect();
    assert_eq!(writes.len(), 2 * AT_ONCE);
    assert!(writes.iter().all(|n_writes| n_writes.as_u64() > Some(40) && *n_writes == writes[0]), "{writes:?}");
}
