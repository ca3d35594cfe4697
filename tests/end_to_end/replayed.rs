//! Captured records that are handed to the service again, in every form and under both ledgers.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
};

use aws_sdk_dynamodb::Client;
use serde_json::{Value, json};
use support::database::embedded_endpoint;

use crate::{
    NOON,
    database::{LEDGER, TABLE, client, follow, key, key_item, put, put_each, scan},
    in_step,
    recount::right,
    ripple::{Ripple, json, said},
    small_town,
};

const LEDGERS: [&str; 2] = ["receipts", "watermarks"];

/// All records of the table's stream, as the API answers, and where they come from.
pub(crate) struct Captured {
    pub(crate) records: Vec<Value>,
    pub(crate) stream: String,
    pub(crate) shard: String,
}

/// Captures a stream of one shard.
pub(crate) async fn captured(client: &Client, endpoint: &str) -> Captured {
    let table = client.describe_table().table_name(TABLE).send().await.unwrap().table.unwrap();
    let stream = table.latest_stream_arn.unwrap();
    let described = asked(endpoint, "DescribeStream", &json!({"StreamArn": stream}));
    let shards = described["StreamDescription"]["Shards"].as_array().unwrap();
    assert_eq!(shards.len(), 1, "{described:#}");
    let shard = shards[0]["ShardId"].as_str().unwrap().to_owned();
    let from = json!({"StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
    let mut iterator = asked(endpoint, "GetShardIterator", &from)["ShardIterator"].clone();
    let mut records = Vec::new();
    loop {
        let mut page = asked(endpoint, "GetRecords", &json!({"ShardIterator": iterator}));
        let Value::Array(more) = page["Records"].take() else { panic!("no records: {page:#}") };
        if more.is_empty() {
            return Captured { records, stream, shard };
        }
        records.extend(more);
        iterator = page["NextShardIterator"].take();
    }
}

/// An answer of the Streams API, as the AWS command line of version 1 prints it.
fn asked(endpoint: &str, operation: &str, request: &Value) -> Value {
    let host = endpoint.trim_start_matches("http://");
    let body = request.to_string();
    let mut connection = TcpStream::connect(host).unwrap();
    let scope = "Credential=somebody/20240101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0";
    let head = [
        "POST / HTTP/1.1".to_owned(),
        format!("Host: {host}"),
        "Connection: close".to_owned(),
        "Content-Type: application/x-amz-json-1.0".to_owned(),
        format!("X-Amz-Target: DynamoDBStreams_20120810.{operation}"),
        format!("Authorization: AWS4-HMAC-SHA256 {scope}"),
        "X-Amz-Date: 20240101T000000Z".to_owned(),
        format!("Content-Length: {}", body.len()),
    ];
    connection.write_all(format!("{}\r\n\r\n{body}", head.join("\r\n")).as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (_head, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// A page as version 2 of the AWS command line prints it: times as text, here of another time zone.
fn with_iso_times(records: &[Value]) -> Vec<Value> {
    let mut records = records.to_vec();
    for record in &mut records {
        let created = &mut record["dynamodb"]["ApproximateCreationDateTime"];
        let seconds = created.as_f64().expect("seconds since the epoch");
        // Two hours ahead of UTC.
        let time = aws_sdk_dynamodb::primitives::DateTime::from_secs_f64(seconds + 7_200.0);
        let time = time.fmt(aws_sdk_dynamodb::primitives::DateTimeFormat::DateTime).unwrap();
        *created = json!(time.replace('Z', "+02:00"));
    }
    records
}

fn file(folder: &Path, name: &str, content: &Value) -> String {
    let path = folder.join(name);
    fs::write(&path, content.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A page of these records, in a file.
pub(crate) fn page(folder: &Path, name: &str, records: &[Value]) -> String {
    file(folder, name, &json!({"Records": records, "NextShardIterator": "AAAA"}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_of_the_whole_stream_changes_nothing_under_either_ledger() {
    for ledger in LEDGERS {
        let service = Ripple::embedded(&["--ledger", ledger]).await;
        let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
        put_each(&client, small_town()).await;
        right(&client).await;
        let before = scan(&client, TABLE).await;
        let captured = captured(&client, &endpoint).await;
        let folder = tempfile::tempdir().unwrap();
        let (front, back) = captured.records.split_at(captured.records.len() / 2);
        let pages = [
            page(folder.path(), "iso", &with_iso_times(&captured.records)),
            page(folder.path(), "back", back),
            page(folder.path(), "front", front),
        ];
        let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
        let of = ["--stream", &captured.stream, "--shard", &captured.shard];
        if ledger == "watermarks" {
            wants_the_shard(&endpoint, &pages, &captured);
        }
        let (code, replayed) = json("replay", &endpoint, &[pages.as_slice(), &of].concat());
        assert_eq!((code, &replayed["ledger"]), (Some(0), &json!(ledger)), "{replayed:#}");
        let sum = |name: &str| {
            let files = replayed["files"].as_array().unwrap();
            files.iter().map(|file| file[name].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(usize::try_from(sum("records")).unwrap(), 2 * captured.records.len());
        // Seven items of the small town count something, and each record is there twice.
        assert_eq!(["in_already", "applied", "writes"].map(sum), [2 * 7, 0, 0], "{replayed:#}");
        assert_eq!(scan(&client, TABLE).await, before);
        in_step(&endpoint);
        assert_eq!(said("parked", &endpoint, &[]).code, Some(0));
    }
}

/// A page does not name its stream or shard: the error names the file and what to give.
fn wants_the_shard(endpoint: &str, pages: &[&str], captured: &Captured) {
    let stream = ["--stream", &captured.stream];
    for (given, wanted) in [(&[][..], "--stream"), (&stream[..], "--shard")] {
        let refused = said("replay", endpoint, &[pages, given].concat());
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.stderr.contains(pages[0]) && refused.stderr.contains(wanted), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_behind_the_horizon_are_refused_and_listed_for_a_recount() {
    let service = Ripple::embedded(&["--ledger", "receipts"]).await;
    let (endpoint, client) = (service.endpoint.clone(), client(&service.endpoint));
    let event = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/events/insert.json");
    let event = event.to_str().unwrap();
    let (code, replayed) = json("replay", &endpoint, &[event]);
    let report = &replayed["files"][0];
    assert_eq!((code, &report["applied"], &report["writes"]), (Some(3), &json!(0), &json!(0)), "{replayed:#}");
    let refused = report["refused"].as_array().unwrap();
    assert_eq!((refused.len(), &refused[0]["id"]), (3, &json!("34d30e10884303047e842a3b67bd5624")));
    let targets = json!([
        {"derivation": "follower-count", "pk": "USER#ada", "sk": "PROFILE"},
        {"derivation": "following-count", "pk": "USER#grace", "sk": "PROFILE"},
    ]);
    assert_eq!(refused[0]["targets"], targets);
    let why = "it is older than the ledger's horizon of 14 days";
    assert!(refused.iter().all(|refused| refused["why"] == json!(why)), "{replayed:#}");
    let said_so = said("replay", &endpoint, &[event]);
    assert_eq!((said_so.code, said_so.stderr.as_str()), (Some(3), ""));
    assert!(said_so.stdout.contains(&format!("\nrefused   34d30e10884303047e842a3b67bd5624  {why}\n")), "{said_so:?}");

    let (code, parked) = json("parked", &endpoint, &[]);
    let recount = parked["recount"].as_array().unwrap();
    let derivations: Vec<&str> = recount.iter().map(|listed| listed["derivation"].as_str().unwrap()).collect();
    assert_eq!(derivations, ["comment-count", "follower-count", "following-count", "like-count"]);
    assert_eq!((code, &parked["parked"], &recount[1]["why"]), (Some(3), &json!([]), &json!(why)));
    in_step(&endpoint);

    let settings = key("LEDGER", "SETTINGS");
    client.delete_item().table_name(LEDGER).set_key(Some(key_item(&settings))).send().await.unwrap();
    let unclaimed = said("replay", &endpoint, &[event]);
    assert_eq!((unclaimed.code, unclaimed.stdout.as_str()), (Some(1), ""));
    assert!(unclaimed.stderr.starts_with("ripple: no service has used this ledger's table yet, "), "{unclaimed:?}");
}

/// A verification that finds nothing has counted everything, and a replay of what is older says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_after_a_verification_says_why_it_applies_nothing() {
    let service = Ripple::embedded(&["--ledger", "receipts"]).await;
    in_step(&service.endpoint);
    let event = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/events/insert.json");
    let event = event.to_str().unwrap();
    let (code, replayed) = json("replay", &service.endpoint, &[event]);
    let report = &replayed["files"][0];
    assert_eq!((code, &report["applied"], &report["refused"]), (Some(0), &json!(0), &json!([])), "{replayed:#}");
    assert_eq!(report["before_birth"], json!(3), "{replayed:#}");
    let said_so = said("replay", &service.endpoint, &[event]);
    let why =
        "\n       3  older than the last verification or backfill that found every count right, which counted them\n";
    assert!(said_so.stdout.contains(why), "{said_so:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lambda_gave_up_is_applied_under_receipts_and_refused_under_watermarks() {
    for ledger in LEDGERS {
        let endpoint = embedded_endpoint().await;
        let at = ["--endpoint", &endpoint, "--ledger", ledger];
        let service = Ripple::dev(&at).await;
        let client = client(&endpoint);
        put_each(&client, small_town()).await;
        right(&client).await;
        assert_eq!(service.stop().code(), Some(0));
        put(&client, follow("cy", "bob", NOON)).await;
        let folder = tempfile::tempdir().unwrap();
        let given_up = given_up(folder.path(), &captured(&client, &endpoint).await);

        let (code, replayed) = json("replay", &endpoint, &[&given_up]);
        let report = &replayed["files"][0];
        // The mirror, which either ledger lets be looked at, and what is copied.
        assert!(scan(&client, TABLE).await.contains_key(&key("USER#bob", "FOLLOWER#cy")));
        if ledger == "receipts" {
            assert_eq!((code, &report["applied"], &report["refused"]), (Some(0), &json!(1), &json!([])), "{report:#}");
            let (code, again) = json("replay", &endpoint, &[&given_up]);
            let report = &again["files"][0];
            let changed = ["in_already", "applied", "writes"].map(|name| report[name].as_u64().unwrap());
            assert_eq!((code, changed), (Some(0), [1, 0, 0]), "{report:#}");
        } else {
            let why = "Lambda dropped it, and no later record of its shard is counted";
            assert_eq!((code, &report["applied"], &report["refused"][0]["why"]), (Some(3), &json!(0), &json!(why)));
            let (code, parked) = json("parked", &endpoint, &[]);
            assert_eq!((code, parked["recount"].as_array().unwrap().len()), (Some(3), 2), "{parked:#}");
        }
        // Here the stream brings the record all the same, and it counts once.
        let _service = Ripple::dev(&at).await;
        right(&client).await;
        in_step(&endpoint);
    }
}

/// An on-failure record of the last record of a stream, as Lambda writes it to S3.
fn given_up(folder: &Path, captured: &Captured) -> String {
    let mut record = captured.records.last().unwrap().clone();
    record["eventSourceARN"] = json!(captured.stream);
    let number = record["dynamodb"]["SequenceNumber"].clone();
    let failure = json!({
        "requestContext": {"requestId": "r", "functionArn": "f", "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": 4},
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0",
        "timestamp": "2024-03-01T12:00:00.000Z",
        "DDBStreamBatchInfo": {"shardId": captured.shard, "startSequenceNumber": number, "endSequenceNumber": number,
            "approximateArrivalOfFirstRecord": "2024-03-01T12:00:00Z",
            "approximateArrivalOfLastRecord": "2024-03-01T12:00:00Z", "batchSize": 1, "streamArn": captured.stream},
        "payload": json!({"Records": [record]}).to_string(),
    });
    file(folder, "given up", &failure)
}
