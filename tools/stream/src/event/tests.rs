use aws_lambda_events::event::dynamodb;
use aws_sdk_dynamodbstreams::primitives::DateTime;
use aws_sdk_dynamodbstreams::types::{AttributeValue, Identity, OperationType, Record, StreamRecord, StreamViewType};
use expect_test::{Expect, expect};
use serde_json::json;

use super::{LambdaRecord, Reading, event_text, read};

const ARN: &str = "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000";

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: &str) -> AttributeValue {
    AttributeValue::N(value.to_owned())
}

fn record(operation: OperationType, change: impl FnOnce(&mut StreamRecord)) -> Record {
    let mut stream_record = StreamRecord::builder()
        .approximate_creation_date_time(DateTime::from_secs(1_480_642_020))
        .keys("id", text("id_value"))
        .sequence_number("000000000000000000042")
        .size_bytes(999)
        .stream_view_type(StreamViewType::NewAndOldImages)
        .build();
    change(&mut stream_record);
    Record::builder()
        .event_id("f07f8ca4b0b26cb9c4e5e77e69f274ee")
        .event_name(operation)
        .event_version("1.0")
        .aws_region("ddblocal")
        .dynamodb(stream_record)
        .build()
}

fn delivered(record: &Record) -> LambdaRecord {
    match read(record, ARN).unwrap() {
        Reading::Deliver(record) => record,
        Reading::Equal => panic!("the record was taken for one that changes nothing"),
    }
}

fn check(record: &Record, expected: &Expect) {
    let value: serde_json::Value = serde_json::from_str(&delivered(record).json).unwrap();
    // Cargo features of other crates decide whether a JSON map keeps its order, so the lines are sorted.
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    let mut lines: Vec<&str> = pretty.lines().map(|line| line.trim_end_matches(',')).collect();
    lines.sort_unstable();
    expected.assert_eq(&format!("{}\n", lines.join("\n")));
}

/// Source: LS.
#[test]
fn an_insert_becomes_the_record_that_lambda_sends() {
    let insert = record(OperationType::Insert, |change| {
        change.new_image = Some([("id".into(), text("id_value")), ("data".into(), text("0123456789abcdefgh"))].into());
    });
    let delivered = delivered(&insert);
    assert_eq!(delivered.sequence_number, "000000000000000000042");
    assert_eq!(
        delivered.json,
        concat!(
            r#"{"eventID":"f07f8ca4b0b26cb9c4e5e77e69f274ee","eventName":"INSERT","eventVersion":"1.1","#,
            r#""eventSource":"aws:dynamodb","awsRegion":"ddblocal","dynamodb":{"#,
            r#""ApproximateCreationDateTime":1480642020.0,"Keys":{"id":{"S":"id_value"}},"#,
            r#""NewImage":{"data":{"S":"0123456789abcdefgh"},"id":{"S":"id_value"}},"#,
            r#""SequenceNumber":"000000000000000000042","SizeBytes":42,"StreamViewType":"NEW_AND_OLD_IMAGES"},"#,
            r#""eventSourceARN":"arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000"}"#,
        )
    );
}

/// Functions that use `aws_lambda_events` can read the events of this crate.
#[test]
fn an_event_is_one_to_the_types_of_aws_lambda_events() {
    let modify = record(OperationType::Modify, |change| {
        change.old_image = Some([("id".into(), text("id_value")), ("n".into(), number("1"))].into());
        change.new_image = Some([("id".into(), text("id_value")), ("n".into(), number("2"))].into());
    });
    let typed: dynamodb::Event = serde_json::from_str(&event_text(&[delivered(&modify)])).unwrap();
    let [typed] = typed.records.as_slice() else { panic!("{typed:?}") };
    assert_eq!((typed.event_name.as_str(), typed.aws_region.as_str()), ("MODIFY", "ddblocal"));
    assert_eq!(typed.event_source_arn.as_deref(), Some(ARN));
    let change = &typed.change;
    assert_eq!(change.approximate_creation_date_time.timestamp(), 1_480_642_020);
    assert_eq!(change.stream_view_type, Some(dynamodb::StreamViewType::NewAndOldImages));
    let item = |n: &str| json!({ "id": { "S": "id_value" }, "n": { "N": n } });
    assert_eq!((json!(change.old_image), json!(change.new_image)), (item("1"), item("2")));
}

#[test]
fn an_identity_that_reads_as_empty_on_a_remove_is_the_ttl_service() {
    let mut remove = record(OperationType::Remove, |_| ());
    remove.user_identity = Some(Identity::builder().build());
    check(
        &remove,
        &expect![[r#"
                  "S": "id_value"
                "id": {
                }
              "ApproximateCreationDateTime": 1480642020.0
              "Keys": {
              "SequenceNumber": "000000000000000000042"
              "SizeBytes": 10
              "StreamViewType": "NEW_AND_OLD_IMAGES"
              "principalId": "dynamodb.amazonaws.com"
              "type": "Service"
              }
            "awsRegion": "ddblocal"
            "dynamodb": {
            "eventID": "f07f8ca4b0b26cb9c4e5e77e69f274ee"
            "eventName": "REMOVE"
            "eventSource": "aws:dynamodb"
            "eventSourceARN": "arn:aws:dynamodb:eu-west-1:000000000000:table/app/stream/2026-11-21T10:00:00.000"
            "eventVersion": "1.1"
            "userIdentity": {
            }
            }
          {
          }
        "#]],
    );
}

#[test]
fn an_identity_that_the_sdk_could_read_keeps_its_values_under_lambdas_keys() {
    let mut remove = record(OperationType::Remove, |_| ());
    remove.user_identity = Some(Identity::builder().principal_id("someone").r#type("Service").build());
    assert!(delivered(&remove).json.contains(r#""userIdentity":{"principalId":"someone","type":"Service"}"#));
    let mut insert = record(OperationType::Insert, |_| ());
    insert.user_identity = Some(Identity::builder().build());
    assert!(!delivered(&insert).json.contains("userIdentity"));
}

#[test]
fn a_modify_that_changes_nothing_by_value_is_not_delivered() {
    let modify = |old: &str, new: &str| {
        record(OperationType::Modify, |change| {
            change.old_image = Some([("n".into(), number(old))].into());
            change.new_image = Some([("n".into(), number(new))].into());
        })
    };
    assert_eq!(read(&modify("2.0", "2"), ARN).unwrap(), Reading::Equal);
    assert!(matches!(read(&modify("2", "3"), ARN).unwrap(), Reading::Deliver(_)));
}

#[test]
fn a_record_without_both_images_is_always_delivered() {
    let modify = record(OperationType::Modify, |change| change.stream_view_type = Some(StreamViewType::KeysOnly));
    assert!(matches!(read(&modify, ARN).unwrap(), Reading::Deliver(_)));
}

#[test]
fn a_record_without_a_sequence_number_is_an_error() {
    let broken = record(OperationType::Insert, |change| change.sequence_number = None);
    assert_eq!(read(&broken, ARN).unwrap_err().to_string(), "a stream record has no sequence number");
}

#[test]
fn an_event_is_its_records_and_nothing_else() {
    let one = |json: &str| LambdaRecord { sequence_number: "1".into(), created: None, json: json.into() };
    assert_eq!(event_text(&[one("{}"), one("[]")]), r#"{"Records":[{},[]]}"#);
    assert_eq!(event_text(&[]).len(), super::EVENT_OVERHEAD_BYTES);
}
