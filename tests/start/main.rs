//! The compiled function: a configuration that cannot work gives exit code 1 and one line that says what to change.
//!
//! All four functions start by the same code; this is `aggregate`.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod lambda;

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use aws_sdk_dynamodb::{
    Client,
    operation::create_table::builders::CreateTableFluentBuilder,
    types::{AttributeValue, StreamViewType},
};
use expect_test::expect;
use support::database::{client, embedded, indexed, make, make_simple, streamed};

/// The variables of a function, besides those of the SDK.
type Variables<'a> = BTreeMap<&'a str, &'a str>;

/// A database without tables, until the runtime ends.
struct Database {
    runtime: tokio::runtime::Runtime,
    endpoint: String,
    client: Client,
}

impl Database {
    fn new() -> Self {
        let (runtime, endpoint) = embedded();
        let client = client(&endpoint);
        Self { runtime, endpoint, client }
    }

    /// Creates a table with this key and these settings.
    fn make(
        &self,
        name: &str,
        key: [&str; 2],
        more: impl FnOnce(CreateTableFluentBuilder) -> CreateTableFluentBuilder,
    ) {
        self.runtime.block_on(make(&self.client, name, key, more));
    }

    /// The shipped table and its ledger, as they should be.
    fn with_tables() -> Self {
        let database = Self::new();
        database.make("ripple", ["PK", "SK"], |call| {
            streamed(indexed(call, "GSI1SK", true), StreamViewType::NewAndOldImages)
        });
        database.make("ripple-ledger", ["PK", "SK"], |call| call);
        database
    }

    /// Starts the function with the two tables and these variables, and waits until it ends.
    fn starts(&self, variables: &[(&str, &str)]) -> Ended {
        started(&named(variables), &self.endpoint)
    }

    /// Checks exit code 1 and this one line.
    fn refuses(&self, variables: &[(&str, &str)], line: &str) {
        assert_eq!(self.starts(variables).refusal(), format!("aggregate does not start: {line}"));
    }
}

/// The names of the two tables, and these variables.
fn named<'a>(more: &[(&'a str, &'a str)]) -> Variables<'a> {
    let names = [("TABLE_NAME", "ripple"), ("LEDGER_TABLE_NAME", "ripple-ledger")];
    names.into_iter().chain(more.iter().copied()).collect()
}

/// A command of the function, without the variables of this process that it would read.
fn function(variables: &Variables<'_>, endpoint: &str) -> Command {
    binary(env!("CARGO_BIN_EXE_aggregate"), variables, endpoint)
}

fn binary(path: &str, variables: &Variables<'_>, endpoint: &str) -> Command {
    let mut function = Command::new(path);
    function.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    function.env("AWS_ENDPOINT_URL_DYNAMODB", endpoint).env("AWS_REGION", "us-east-1");
    function.env("AWS_ACCESS_KEY_ID", "some").env("AWS_SECRET_ACCESS_KEY", "body");
    function.envs(variables);
    function
}

/// The exit code of a function, and its log: on standard error, because this is not Lambda.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    lines: Vec<String>,
}

impl Ended {
    /// The one line of a function that does not start, without the time.
    fn refusal(&self) -> String {
        assert_eq!((self.code, self.stdout.as_str(), self.lines.len()), (Some(1), "", 1), "{self:?}");
        let line = self.lines.first().unwrap();
        line.split_once("ERROR ").expect("it is an error").1.to_owned()
    }
}

fn started(variables: &Variables<'_>, endpoint: &str) -> Ended {
    let output = function(variables, endpoint).output().expect("the function starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let lines = text(output.stderr).lines().map(str::to_owned).collect();
    Ended { code: output.status.code(), stdout: text(output.stdout), lines }
}

#[test]
fn a_missing_variable_is_named_with_what_it_is_for() {
    let nowhere = "http://127.0.0.1:1";
    expect!["aggregate does not start: the environment variable TABLE_NAME is not set: set it to the name of the application's table"]
        .assert_eq(&started(&Variables::new(), nowhere).refusal());
    expect!["aggregate does not start: the environment variable LEDGER_TABLE_NAME is not set: set it to the name of the ledger's table"]
        .assert_eq(&started(&Variables::from([("TABLE_NAME", "ripple")]), nowhere).refusal());
}

#[test]
fn a_value_that_means_nothing_is_named_with_what_it_may_be() {
    let database = Database::new();
    database
        .refuses(&[("MODE", "dry-run")], "the environment variable MODE is \"dry-run\": set it to apply or observe");
    database.refuses(
        &[("LEDGER", "offsets")],
        "the environment variable LEDGER is \"offsets\": set it to receipts or watermarks",
    );
    database
        .refuses(&[("CONFIG", "no/ripple.toml")], "cannot read no/ripple.toml: No such file or directory (os error 2)");
    let line = database.starts(&[("DISABLED", "user-cascades")]).refusal();
    assert!(
        line.starts_with("aggregate does not start: there is no derivation user-cascades to switch off: did you mean"),
        "{line}"
    );
}

#[test]
fn a_table_that_is_not_there_is_named_with_its_variable() {
    let database = Database::new();
    database.refuses(&[], "there is no table ripple in us-east-1: set TABLE_NAME to another, or create it first");
    let database = Database::with_tables();
    database.refuses(
        &[("LEDGER_TABLE_NAME", "ledger")],
        "there is no table ledger in us-east-1: set LEDGER_TABLE_NAME to another, or create it first",
    );
}

#[test]
fn a_table_with_another_key_is_refused() {
    let database = Database::with_tables();
    database.make("other", ["Id", "SK"], |call| call);
    database.refuses(&[("TABLE_NAME", "other")], "the table other has the key Id (S) and SK (S), and PK (S) and SK (S) is declared: name another table with TABLE_NAME, or declare this one's key with CONFIG");
    database.refuses(&[("LEDGER_TABLE_NAME", "other")], "the table other has the key Id (S) and SK (S), and PK (S) and SK (S) is declared: name another table with LEDGER_TABLE_NAME, or declare this one's key with CONFIG");
}

#[test]
fn a_table_without_an_index_that_is_needed_is_refused() {
    let database = Database::with_tables();
    let both = StreamViewType::NewAndOldImages;
    database.make("none", ["PK", "SK"], |call| streamed(call, both.clone()));
    database.make("keys", ["PK", "SK"], |call| streamed(indexed(call, "SK", true), both.clone()));
    database.make("thin", ["PK", "SK"], |call| streamed(indexed(call, "GSI1SK", false), both.clone()));
    let refusal = |table: &str| database.starts(&[("TABLE_NAME", table)]).refusal();
    let starts =
        |line: String, start: &str| assert!(line.starts_with(&format!("aggregate does not start: {start}")), "{line}");
    starts(refusal("none"), "the table none has no index GSI1, needed by ");
    starts(
        refusal("keys"),
        "the index GSI1 of keys has the key GSI1PK (S) and SK (S), and GSI1PK (S) and GSI1SK (S) is ",
    );
    starts(refusal("thin"), "the index GSI1 of thin does not project EntityType, read there by ");
}

#[test]
fn a_table_whose_stream_lacks_an_image_is_refused() {
    let database = Database::with_tables();
    database.make("quiet", ["PK", "SK"], |call| indexed(call, "GSI1SK", true));
    database.make("new", ["PK", "SK"], |call| streamed(indexed(call, "GSI1SK", true), StreamViewType::NewImage));
    database.refuses(
        &[("TABLE_NAME", "quiet")],
        "the table quiet has no stream: enable one with the view type NEW_AND_OLD_IMAGES",
    );
    database.refuses(
        &[("TABLE_NAME", "new")],
        "the stream of new has the view type NEW_IMAGE: it must be NEW_AND_OLD_IMAGES",
    );
}

/// The output of a function outside Lambda that has nothing else to refuse.
const FITS: &str = "aggregate does not start: the environment variable AWS_LAMBDA_RUNTIME_API is not set, so nobody invokes \
                    it: run it in Lambda, or with `cargo lambda watch`";

#[test]
fn tables_that_fit_are_taken_and_one_may_be_both() {
    let database = Database::with_tables();
    assert_eq!(database.starts(&[]).refusal(), FITS);
    let database = Database::with_tables();
    assert_eq!(database.starts(&[("LEDGER_TABLE_NAME", "ripple")]).refusal(), FITS, "a single table");
}

#[test]
fn several_tables_are_each_held_to_their_own_key_and_stream() {
    let config = ("CONFIG", concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/start/two_tables.toml"));
    let both = |call| streamed(call, StreamViewType::NewAndOldImages);
    let database = Database::new();
    database.make("ripple", ["RipplePK", "RippleSK"], both);
    database.make("ripple-ledger", ["RipplePK", "RippleSK"], |call| call);
    database.make("Like", ["postId", "userId"], both);
    database.refuses(&[config], "there is no table User in us-east-1: set TABLES to another, or create it first");
    let create = make_simple(&database.client, "prod-users", "id");
    database.runtime.block_on(create);
    let called = ("TABLES", "User=prod-users");
    assert_eq!(database.starts(&[config, called]).refusal(), FITS);
    database.refuses(&[config, ("TABLES", "User=Like")], "the table Like has the key postId (S) and userId (S), and id (S) is declared: name another table with TABLES, or declare this one's key with CONFIG");
    database.refuses(&[config, ("TABLES", "Usr=prod-users")], "\"Usr=prod-users\" does not say what a table of the manifest is called: write NAME=TABLE: did you mean \"User\"?");
    database.make("quiet", ["postId", "userId"], |call| call);
    database.refuses(
        &[config, ("TABLES", "User=prod-users,Like=quiet")],
        "the table quiet has no stream: enable one with the view type NEW_AND_OLD_IMAGES",
    );
}

#[test]
fn a_ledger_of_another_kind_is_refused() {
    let database = Database::with_tables();
    assert_eq!(database.starts(&[]).refusal(), FITS);
    database.refuses(&[("LEDGER", "receipts")], "the ledger table was created for watermarks, and receipts is configured: changes already counted would count again; configure watermarks, or see docs/ledgers.md for the way to switch");
}

#[test]
fn a_ledger_with_a_stream_is_accepted_with_one_warning() {
    let database = Database::with_tables();
    database.make("loud", ["PK", "SK"], |call| streamed(call, StreamViewType::KeysOnly));
    let ended = database.starts(&[("LEDGER_TABLE_NAME", "loud")]);
    let [warning, refusal] = ended.lines.as_slice() else { panic!("{ended:?}") };
    assert!(
        warning.ends_with("WARN the ledger's table has a stream, which nobody uses: disable it table=\"loud\""),
        "{ended:?}"
    );
    assert!(refusal.ends_with(FITS), "{ended:?}");
}

#[test]
fn a_function_that_may_not_describe_a_table_says_so_once_for_each_and_starts() {
    let refused = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized to perform: dynamodb:DescribeTable"}"#;
    // It may read the empty ledger, and write to it.
    let address = lambda::answering(move |head, _| {
        if head.contains("DynamoDB_20120810.DescribeTable") {
            (400, refused.to_owned())
        } else {
            (200, "{}".to_owned())
        }
    });
    let names = named(&[]);
    let ended = started(&names, &format!("http://{address}"));
    let [main, ledger, refusal] = ended.lines.as_slice() else { panic!("{ended:?}") };
    for (line, table) in [(main, "ripple"), (ledger, "ripple-ledger")] {
        let warning = format!(
            "WARN the table cannot be described, so it is not checked: allow dynamodb:DescribeTable table=\"{table}\" "
        );
        assert!(line.contains(&warning) && line.contains("AccessDeniedException"), "{ended:?}");
    }
    assert!(refusal.ends_with(FITS), "{ended:?}");
}

#[test]
fn a_function_that_observes_answers_as_one_that_writes_and_writes_nothing() {
    let database = Database::with_tables();
    let event = include_str!("../events/insert.json").to_owned();
    let names = named(&[("MODE", "observe"), ("LEDGER", "receipts")]);
    let (answer, log) = lambda::invoked(function(&names, &database.endpoint), event);
    assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
    for table in ["ripple", "ripple-ledger"] {
        let scan = database.runtime.block_on(database.client.scan().table_name(table).send()).unwrap();
        assert_eq!(scan.items().len(), 0, "{table}");
    }
    let handled = log.iter().find(|line| line.contains("handled a batch")).expect("a line a batch");
    let handled: serde_json::Value = serde_json::from_str(handled).unwrap();
    assert_eq!((&handled["mode"], handled["Writes"].as_u64() > Some(0)), (&"observe".into(), true), "{handled}");
    // The event is old, and what is refused is told beside.
    let n_lines = log.iter().filter(|line| !line.contains(" WARN ")).count();
    assert_eq!(n_lines, 1, "an invocation logs one line: {log:?}");
}

#[test]
fn a_failed_invocation_logs_why_with_its_id() {
    let database = Database::with_tables();
    let names = named(&[("LEDGER", "watermarks")]);
    let mut function = function(&names, &database.endpoint);
    function.env("AWS_EXECUTION_ENV", "AWS_Lambda_rust");
    let (answer, log) = lambda::invoked(function, include_str!("../events/insert.json").to_owned());
    assert!(answer.contains("the event names no shard"), "{answer}");
    let lines = log.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let failed = lines.filter(|line| line["span"]["request_id"] == "request-1").map(|line| line["message"].to_string());
    let failed: Vec<String> = failed.filter(|message| message.contains("the invocation failed")).collect();
    assert!(failed.len() == 1 && failed[0].contains("set TumblingWindowInSeconds"), "{log:?}");
}

/// The counter of followers has the wrong type, so each change is parked.
#[test]
fn a_parked_change_logs_the_key_of_its_item() {
    let database = Database::with_tables();
    for shard in 0..16 {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let put = database.client.put_item().table_name("ripple").item("PK", text("USER#ada"));
        let put = put.item("SK", text(&format!("PROFILE#COUNT#follower-count#{shard:02}")));
        let put = put.item("EntityType", text("Counter")).item("Value", text("many"));
        database.runtime.block_on(put.send()).unwrap();
    }
    let names = named(&[("LEDGER", "watermarks")]);
    let mut function = function(&names, &database.endpoint);
    function.env("AWS_EXECUTION_ENV", "AWS_Lambda_rust");
    let (answer, log) = lambda::invoked(function, lambda::follows().remove(0));
    assert!(answer.contains("\"batchItemFailures\":[]"), "{answer}");
    let lines = log.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let parked = lines.filter(|line| line["message"] == "parked a change that cannot be applied");
    let items: Vec<String> = parked.map(|line| line["item"].to_string()).collect();
    assert!(items.iter().any(|item| item == "\"USER#u000 / FOLLOWS#ada\""), "{items:?} {log:?}");
    assert!(items.iter().all(|item| item.ends_with(" / FOLLOWS#ada\"")), "{items:?}");
}

#[test]
fn a_sweep_tells_a_stream_that_is_another_than_the_deployed_one() {
    let database = Database::with_tables();
    let described = database.client.describe_table().table_name("ripple").send();
    let arn = database.runtime.block_on(described).unwrap().table.unwrap().latest_stream_arn.unwrap();
    let swept = |deployed: &str| {
        let variables = named(&[("STREAM_ARN", deployed)]);
        let sweep = binary(env!("CARGO_BIN_EXE_sweep"), &variables, &database.endpoint);
        let (_, log) = lambda::invoked(sweep, "{}".to_owned());
        let says = "the table's stream is not the one that the functions read";
        let told = log.iter().filter(|line| line.contains(says)).count();
        let line = log.iter().find(|line| line.contains("\"swept\"")).expect("a line a sweep");
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line.get("StreamChanged").and_then(serde_json::Value::as_u64), told)
    };
    assert_eq!(swept(&arn), (Some(0), 0));
    assert_eq!(swept(&format!("{arn}0")), (Some(1), 1));
    assert_eq!(swept(""), (None, 0), "without an ARN nothing is compared");
    database.make("other", ["Id", "SK"], |call| streamed(call, StreamViewType::NewAndOldImages));
    let described = database.client.describe_table().table_name("other").send();
    let other = database.runtime.block_on(described).unwrap().table.unwrap().latest_stream_arn.unwrap();
    assert_eq!(swept(&format!("{arn},{other}")), (Some(0), 0), "each is that of its own table");
    assert_eq!(swept(&format!("{arn},{other}0")), (Some(1), 1));
}
