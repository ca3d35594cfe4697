//! Each form of a file, and files that contain no records.

use serde_json::{Value, json};

use super::{Capture, CaptureError, Lane};

const ARN: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/ripple/stream/2024-01-15T09:00:00.000";

fn lane(stream: Option<&str>, shard: Option<&str>) -> Lane {
    Lane { stream_arn: stream.map(str::to_owned), shard: shard.map(str::to_owned) }
}

fn read(file: &Value, given: &Lane) -> Capture {
    Capture::read(&file.to_string(), given, &catalogue::schema().layout).unwrap()
}

fn error(file: &str) -> CaptureError {
    Capture::read(file, &Lane::default(), &catalogue::schema().layout).unwrap_err()
}

fn records(capture: &Capture) -> Vec<Value> {
    capture.records.iter().map(|record| serde_json::from_str(record.get()).unwrap()).collect()
}

/// A record of `GetRecords` for a removal by time to live.
fn of_the_api(created: &Value) -> Value {
    json!({
        "eventID": "1", "eventName": "REMOVE", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
        "awsRegion": "eu-west-1",
        "dynamodb": {"ApproximateCreationDateTime": created, "Keys": {"PK": {"S": "a"}, "SK": {"S": "b"}},
            "OldImage": {"PK": {"S": "a"}, "SK": {"S": "b"}}, "SequenceNumber": "100", "SizeBytes": 9,
            "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "userIdentity": {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"},
    })
}

fn of_an_event() -> Value {
    let mut record = of_the_api(&json!(1_705_314_600.0));
    record["userIdentity"] = json!({"principalId": "dynamodb.amazonaws.com", "type": "Service"});
    record["eventSourceARN"] = json!(ARN);
    record
}

#[test]
fn an_event_is_taken_as_it_is() {
    let capture = read(&json!({"Records": [of_an_event()]}), &lane(Some("another"), None));
    assert_eq!(records(&capture), [of_an_event()]);
    assert_eq!((capture.origin.lane, capture.origin.was_given_up), (lane(Some(ARN), None), false));

    let window =
        json!({"Records": [of_an_event()], "shardId": "s-1", "eventSourceARN": ARN, "window": {}, "state": {}});
    assert_eq!(read(&window, &lane(None, Some("another"))).origin.lane, lane(Some(ARN), Some("s-1")));
}

#[test]
fn a_page_is_shaped_into_an_event_whoever_printed_it() {
    let times = [
        json!(1_705_314_600),
        json!(1_705_314_600.0),
        json!("2024-01-15T11:30:00+01:00"),
        json!("2024-01-15T10:30:00.000Z"),
        json!("2024-01-15 10:30:00+00:00"),
    ];
    for time in times {
        let page = json!({"Records": [of_the_api(&time)], "NextShardIterator": "AAAA"});
        let capture = read(&page, &lane(Some(ARN), Some("s-1")));
        let mut records = records(&capture);
        let created = &mut records[0]["dynamodb"]["ApproximateCreationDateTime"];
        *created = json!(created.as_f64());
        assert_eq!(records, [of_an_event()], "{time}");
        assert_eq!(capture.origin.lane, lane(Some(ARN), Some("s-1")));
    }
    let unnamed = records(&read(&json!({"Records": [of_the_api(&json!(0))]}), &Lane::default()));
    assert_eq!(unnamed[0].get("eventSourceARN"), None);
}

#[test]
fn an_on_failure_record_holds_its_event_and_names_the_shard() {
    let failure = |payload: Option<String>| {
        let mut failure = json!({
            "requestContext": {"condition": "RetryAttemptsExhausted"}, "version": "1.0",
            "DDBStreamBatchInfo": {"shardId": "s-1", "startSequenceNumber": "100", "endSequenceNumber": "200",
                "batchSize": 1, "streamArn": ARN},
        });
        failure["payload"] = json!(payload);
        failure
    };
    let capture = read(&failure(Some(json!({"Records": [of_an_event()]}).to_string())), &Lane::default());
    assert_eq!(records(&capture), [of_an_event()]);
    assert_eq!((capture.origin.lane, capture.origin.was_given_up), (lane(Some(ARN), Some("s-1")), true));
    let of_a_window = json!({"Records": [of_an_event()], "shardId": "s-2", "window": {}}).to_string();
    assert_eq!(read(&failure(Some(of_a_window)), &Lane::default()).origin.lane.shard.as_deref(), Some("s-2"));

    let message = error(&failure(None).to_string()).to_string();
    assert_eq!(
        message,
        format!(
            "it is a failure record without the records: Lambda writes them only to S3, in `payload`, and a pipe of \
             EventBridge nowhere; while the stream {ARN} holds them (24 hours), GetRecords gives them, 100 to 200 of the \
             shard s-1"
        )
    );
    assert_eq!(error(&failure(Some("[".to_owned())).to_string()).to_string(), "its payload cannot be read");
}

#[test]
fn what_is_none_of_them_says_why() {
    let none = "unknown format: give a Lambda event, a list of its records, a page of GetRecords, or an on-failure record of a \
                DynamoDB stream as Lambda writes it to S3";
    let mut kinesis = of_an_event();
    kinesis["eventSource"] = json!("aws:kinesis");
    for (file, why) in [
        (String::new(), "it is not JSON"),
        ("{\"Records\": [".to_owned(), "it is not JSON"),
        ("7".to_owned(), none),
        ("[]".to_owned(), none),
        ("{}".to_owned(), none),
        (json!({"records": []}).to_string(), none),
        (json!({"requestContext": {}, "payload": "{}"}).to_string(), none),
        (
            json!({"Records": [of_an_event(), kinesis]}).to_string(),
            "its record 2 is of aws:kinesis, not of aws:dynamodb: it lacks the sequence number and the shard by which a \
             ledger knows a change; give the records of the table's own stream",
        ),
        (
            json!({"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "{}"}}]}).to_string(),
            "its record 1 is of aws:sns, not of aws:dynamodb: give the message that it holds, as a file",
        ),
        (of_an_event().to_string(), "it is a single record; put it into a list: { \"Records\": [ … ] }"),
        (json!({"Records": [7]}).to_string(), "its record 1 is not a stream record: it has no `dynamodb`"),
        ("[7]".to_owned(), "its record 1 is not a stream record: it has no `dynamodb`"),
        (json!({"Records": [{"s3": {}}]}).to_string(), "its record 1 is not a stream record: it has no `dynamodb`"),
        (
            json!({"Records": [of_the_api(&json!("noon"))]}).to_string(),
            "its record 1 has an ApproximateCreationDateTime that is not a time: noon",
        ),
    ] {
        assert_eq!(error(&file).to_string(), why, "{file}");
    }
}

/// The text of a file of the case `19-other-envelopes`.
fn envelope(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/19-other-envelopes");
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

#[test]
fn what_a_pipe_hands_to_a_function_is_read_and_every_other_envelope_is_named() {
    let list = Capture::raw(&envelope("event-pipes.json"), &Lane::default()).unwrap();
    let stream = "arn:aws:dynamodb:eu-west-1:123456789012:table/\
                  dynamodb-streams-test-experiment-NewOldTable-7U1U2U9UKTB7/stream/2020-07-16T21:40:16.952";
    assert_eq!((list.records.len(), list.streams), (1, [stream.to_owned()].into()));
    assert_eq!(list.origin.lane, lane(Some(stream), None));
    for (file, why) in [
        ("event.json", "its record 1 is of aws:kinesis, not of aws:dynamodb: it lacks the sequence number"),
        ("event-firehose.json", "it is an event of Firehose; it lacks the sequence number"),
        ("kinesis-record.json", "it is a change in the form of Kinesis Data Streams; it lacks the sequence number"),
        ("pipes-failure.json", "it is a failure record without the records: Lambda writes them only to S3"),
        ("sqs-failure.json", "it is a failure record without the records: Lambda writes them only to S3"),
    ] {
        let message = error(&envelope(file)).to_string();
        assert!(message.starts_with(why), "{file}: {message}");
    }
    let message = error(&envelope("pipes-failure.json")).to_string();
    let where_to_read = "1234567800000000001234567891 to 1234567800000000001234567899 of the shard \
                         shardId-00000001234567891234-aaa1abcd";
    assert!(message.ends_with(where_to_read), "{message}");
}

#[test]
fn a_page_that_lost_something_when_it_was_printed_is_refused_and_an_event_is_left_to_the_engine() {
    // Python's notation for bytes.
    let binary = json!({"B": "b'Zm9v'"});
    let mut printed = of_the_api(&json!(0));
    printed["dynamodb"]["OldImage"]["Picture"] = binary.clone();
    let message = error(&json!({"Records": [of_the_api(&json!(0)), printed]}).to_string()).to_string();
    assert_eq!(
        message,
        "its record 2 cannot be read; binary values must be base64, as the AWS command line prints them"
    );
    let mut of_an_event = of_an_event();
    of_an_event["dynamodb"]["OldImage"]["Picture"] = binary;
    assert_eq!(records(&read(&json!({"Records": [of_an_event]}), &Lane::default())), [of_an_event]);
}
