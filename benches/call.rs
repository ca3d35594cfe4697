//! What a call of DynamoDB costs a function, in instructions.
//!
//! `cargo bench -p benches --bench call`, with valgrind installed. The call is the update of a counter under watermarks,
//! whose answer is the whole counter, and it goes over HTTP to a process beside this one that always answers the same. So
//! the number is that of the client alone, without TLS, and without the kernel, which callgrind does not count. A run of
//! N calls is compared with one of 2N, so what happens once drops out.
//!
//! Two clients are compared, both with the allocator of the functions: the SDK's own [`Client`], with the configuration of
//! a function, and the store that the functions use. Valgrind has no instructions for SHA-256, as some processors have
//! them, so signing takes a larger part than it does there. A deployed function is compiled with the two variables
//! `CARGO_PROFILE_BENCH_LTO=thin` and `CARGO_PROFILE_BENCH_CODEGEN_UNITS=1`.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write as _},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
};

use aws_sdk_dynamodb::{
    Client,
    primitives::Blob,
    types::{
        AttributeValue as SdkValue, ReturnConsumedCapacity::Total, ReturnValue::AllNew,
        ReturnValuesOnConditionCheckFailure::AllOld,
    },
};
use derive::{
    guard::{Ask, Guard, Purpose},
    write::{Action, Table, Update, Write},
};
use functions::{config::sdk_config, logging};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::{
    Store, Updated,
    dynamo::{DynamoStore, TableNames},
};

/// Calls of the shorter run.
const N_CALLS: u64 = 2_000;

/// Calls before anything is counted.
const N_WARM: u64 = 50;

/// Bytes of a session token, as a function has one in Lambda.
const TOKEN_BYTES: usize = 900;

const PK: &str = "POST#p1";
const SK: &str = "METADATA#COUNT#like-count#00";
const MARK: &str = "wAbCdEfGh";
const TABLE: &str = "ripple-main";

/// The allocator of the functions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => compare(),
        ["serve"] => serve(),
        [way, n_calls] => send(way, n_calls.parse()?),
        _ => Err("run it without arguments".into()),
    }
}

/// Counts the instructions of both clients.
fn compare() -> Result<()> {
    let mut server = Command::new(env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
    let mut port = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut port)?;
    let endpoint = format!("http://127.0.0.1:{}", port.trim());
    let counted = ["client", "store"].map(|way| {
        let [once, twice] = [N_CALLS, 2 * N_CALLS].map(|n_calls| instructions(&endpoint, way, n_calls));
        Ok::<u64, Box<dyn Error>>((twice? - once?) / N_CALLS)
    });
    server.kill()?;
    server.wait()?;
    let [client, store] = counted;
    let (client, store) = (client?, store?);
    println!("the SDK's client  {client:>9} instructions a call");
    println!("the store         {store:>9} instructions a call: {:.2} of it", ratio(store, client));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "the numbers are far below what a double holds")]
fn ratio(one: u64, other: u64) -> f64 {
    one as f64 / other as f64
}

/// The instructions of a process that sends so many calls.
fn instructions(endpoint: &str, way: &str, n_calls: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(env::current_exe()?);
    command.args([way, &n_calls.to_string()]).env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "eu-west-1");
    command
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_SESSION_TOKEN", "t".repeat(TOKEN_BYTES));
    let output = command.output().map_err(|error| format!("valgrind cannot be run, install it: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    // A run in which a call failed counts too few.
    let counted = counted.filter(|_| output.status.success());
    counted.ok_or_else(|| format!("not all {n_calls} calls were made and counted:\n{text}").into())
}

// ---- The calls ----

fn send(way: &str, n_calls: u64) -> Result<()> {
    logging::for_function();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let config = sdk_config().await;
        let client = Client::new(&config);
        let schema = catalogue::schema();
        let names = TableNames { main: TABLE.to_owned(), ledger: "ripple-ledger".to_owned() };
        let store = DynamoStore::new(client.clone(), schema.layout.clone(), names);
        let write = counting();
        for at in 0..N_WARM + n_calls {
            match way {
                "client" => by_client(&client, at).await?,
                _ => by_store(&store, &write).await?,
            }
        }
        Ok(())
    })
}

async fn by_store(store: &DynamoStore, write: &Write) -> Result<()> {
    match store.update(write).await? {
        Updated::Done { item, .. } if item.get("Value") == Some(&AttributeValue::N("7".to_owned())) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// The update of a counter under watermarks.
fn counting() -> Write {
    let set = [
        ("EntityType", AttributeValue::S("Counter".to_owned())),
        (MARK, AttributeValue::B(watermark(7))),
        ("Shown", AttributeValue::Bool(true)),
    ];
    let update = Update {
        set: Item::from(set.map(|(name, value)| (name.to_owned(), value))),
        add: Item::from([("Value".to_owned(), AttributeValue::N("1".to_owned()))]),
        count_from: Item::from([("Rev".to_owned(), AttributeValue::N("1764340000000".to_owned()))]),
        ..Update::default()
    };
    let asks = vec![
        Ask::LacksOrBelow(MARK.to_owned(), AttributeValue::B(watermark(7))),
        Ask::LacksOrEqual("EntityType".to_owned(), AttributeValue::S("Counter".to_owned())),
    ];
    let guard = Some(Guard { purpose: Purpose::Watermark, asks });
    Write { table: Table::Main, key: Key::new(PK, SK), action: Action::Update(update), guard }
}

async fn by_client(client: &Client, at: u64) -> Result<()> {
    let call = client.update_item().table_name(TABLE);
    let call = call.key("PK", SdkValue::S(PK.to_owned())).key("SK", SdkValue::S(SK.to_owned()));
    let call =
        call.update_expression("SET #s0 = :s0, #s1 = :s1, #s2 = :s2, #c0 = if_not_exists(#c0, :c0) + :one ADD #a0 :a0");
    let condition = "(attribute_not_exists(#g0) OR #g0 < :g0) AND (attribute_not_exists(#g1) OR #g1 = :g1)";
    let call = call.condition_expression(condition);
    let names = [
        ("#s0", "EntityType"),
        ("#s1", "Shown"),
        ("#s2", MARK),
        ("#c0", "Rev"),
        ("#a0", "Value"),
        ("#g0", MARK),
        ("#g1", "EntityType"),
    ];
    let call = names.iter().fold(call, |call, (short, name)| call.expression_attribute_names(*short, *name));
    let values = [
        (":s0", SdkValue::S("Counter".to_owned())),
        (":s1", SdkValue::Bool(true)),
        (":s2", SdkValue::B(Blob::new(watermark(at)))),
        (":c0", SdkValue::N(at.to_string())),
        (":one", SdkValue::N("1".to_owned())),
        (":a0", SdkValue::N("1".to_owned())),
        (":g0", SdkValue::B(Blob::new(watermark(at)))),
        (":g1", SdkValue::S("Counter".to_owned())),
    ];
    let call = values.into_iter().fold(call, |call, (short, value)| call.expression_attribute_values(short, value));
    let call = call.return_consumed_capacity(Total);
    let call = call.return_values(AllNew).return_values_on_condition_check_failure(AllOld);
    let item = call.send().await?.attributes.unwrap_or_default();
    match item.get("Value") {
        Some(SdkValue::N(value)) if value == "7" => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// A watermark, with this number as its sequence number.
fn watermark(at: u64) -> Vec<u8> {
    [0; 9].into_iter().chain(at.to_be_bytes()).chain([1, 2, 3, 4]).collect()
}

// ---- The endpoint ----

/// Answers every call of every connection, until the process is ended. Prints its port.
fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for connection in listener.incoming() {
        let connection = connection?;
        thread::spawn(move || answer_all(connection));
    }
    Ok(())
}

fn answer_all(mut connection: TcpStream) -> std::io::Result<()> {
    let body = format!(
        r#"{{"Attributes":{{"PK":{{"S":"{PK}"}},"SK":{{"S":"{SK}"}},"EntityType":{{"S":"Counter"}},"Value":{{"N":"7"}},"Rev":{{"N":"1764340000007"}},"Shown":{{"BOOL":true}},"{MARK}":{{"B":"AAAAAAAAAAAAAAAAAAAAAAABAgME"}}}},"ConsumedCapacity":{{"CapacityUnits":1.0,"TableName":"{TABLE}"}}}}"#
    );
    let mut answer = String::from("HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Sat, 28 Nov 2026 14:00:00 GMT\r\n");
    answer.push_str("Content-Type: application/x-amz-json-1.0\r\nConnection: keep-alive\r\n");
    answer.push_str(
        "x-amzn-RequestId: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\nx-amz-crc32: 2745614147\r\n",
    );
    write!(answer, "Content-Length: {}\r\n\r\n{body}", body.len()).map_err(std::io::Error::other)?;
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    loop {
        let mut n_body = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                n_body = value.trim().parse().map_err(std::io::Error::other)?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; n_body])?;
        connection.write_all(answer.as_bytes())?;
    }
}
