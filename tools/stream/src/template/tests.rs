//! Every parameter of reference B1, from a template. BC is the API's model, U3 Lambda's page on these parameters.

use super::{Local, Parameters, SamTemplate};
use crate::filter::Filters;
use crate::mapping::{Mapping, OnFailure, StartingPosition};
use crate::tests::world::ARN;

const LOCAL: Local<'_> = Local { name: "aggregate", stream_arn: ARN, event: "Stream", idle_poll_ms: 250 };

/// What every event must have.
const REQUIRED: &str = "Stream: !GetAtt Table.StreamArn\nStartingPosition: TRIM_HORIZON\n";

/// A template whose one function has an event with these properties.
fn template(properties: &str) -> String {
    let properties: Vec<String> = properties.lines().map(|line| format!("            {line}\n")).collect();
    let properties = properties.concat();
    format!(
        r#"
Parameters:
  Ledger: {{ Type: String, Default: receipts, AllowedValues: [receipts, checkpoint] }}
  BatchSize: {{ Type: Number, Default: 500 }}
  Bucket: {{ Type: String }}
Conditions:
  Checkpoint: !Equals [!Ref Ledger, checkpoint]
  Receipts: !Not [!Condition Checkpoint]
  Both: !And [!Condition Checkpoint, !Condition Receipts]
  Either: {{ "Fn::Or": [{{ Condition: Checkpoint }}, {{ Condition: Receipts }}] }}
Resources:
  Failures: {{ Type: AWS::S3::Bucket }}
  Queue: {{ Type: AWS::SQS::Queue }}
  Absent:
    Type: AWS::Serverless::Function
    Condition: Both
  Aggregate:
    Type: AWS::Serverless::Function
    Condition: Either
    Properties:
      Events:
        Schedule: {{ Type: ScheduleV2, Properties: {{ ScheduleExpression: rate(15 minutes) }} }}
        Stream:
          Type: DynamoDB
          Properties:
{properties}"#
    )
}

fn read_with(properties: &str, parameters: &[(&str, &str)]) -> Result<Mapping, String> {
    let parameters: Parameters =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let template = SamTemplate::parse(&template(properties)).unwrap();
    template.mapping("Aggregate", &parameters, &LOCAL).map_err(|error| error.to_string())
}

/// The mapping of an event with what it must have and these properties.
fn read(properties: &str) -> Result<Mapping, String> {
    read_with(&format!("{REQUIRED}{properties}"), &[])
}

/// What is said of properties that are refused.
fn refused(properties: &str) -> String {
    read(properties).unwrap_err().replace("the template's Aggregate: ", "")
}

/// A mapping with what AWS has where nothing is said.
fn plain() -> Mapping {
    Mapping {
        name: "aggregate".to_owned(),
        stream_arn: ARN.to_owned(),
        batch_size: 100,
        batching_window_ms: 0,
        tumbling_window_seconds: 0,
        parallelization_factor: 1,
        retry_attempts_max: None,
        record_age_ms_max: None,
        bisect_batch_on_function_error: false,
        report_batch_item_failures: false,
        filters: Filters::default(),
        on_failure: None,
        starting_position: StartingPosition::TrimHorizon,
        idle_poll_ms: 250,
    }
}

/// Source: BC, U3; the live create response in LS has the same.
#[test]
fn settings_that_are_not_given_have_the_defaults_of_aws() {
    assert_eq!(read(""), Ok(plain()));
}

/// Source: BC, U3.
#[test]
fn a_batch_size_is_1_to_10000() {
    assert_eq!(read("BatchSize: 1").unwrap().batch_size, 1);
    assert_eq!(read("BatchSize: 10000").unwrap().batch_size, 10_000);
    assert_eq!(refused("BatchSize: 0"), "the batch size 0 of aggregate is not between 1 and 10000");
    assert_eq!(refused("BatchSize: 10001"), "the batch size 10001 of aggregate is not between 1 and 10000");
    assert_eq!(refused("BatchSize: -1"), "BatchSize is -1: give a whole number");
}

/// Source: BC, U3.
#[test]
fn a_batching_window_is_0_to_300_seconds() {
    assert_eq!(read("MaximumBatchingWindowInSeconds: 300").unwrap().batching_window_ms, 300_000);
    let text = "the batching window 301000 ms of aggregate is longer than 300000 ms";
    assert_eq!(refused("MaximumBatchingWindowInSeconds: 301"), text);
    assert!(refused("MaximumBatchingWindowInSeconds: 0.5").contains("give a whole number"));
}

/// Source: BC; `AT_TIMESTAMP` is for Kinesis only.
#[test]
fn a_starting_position_is_required_and_is_the_oldest_or_the_newest_record() {
    let stream = "Stream: !GetAtt Table.StreamArn\n";
    let position = |text: &str| read_with(&format!("{stream}StartingPosition: {text}"), &[]);
    assert_eq!(position("LATEST").unwrap().starting_position, StartingPosition::Latest);
    assert!(position("AT_TIMESTAMP").unwrap_err().contains("a DynamoDB stream has TRIM_HORIZON and LATEST"));
    let missing = read_with(stream, &[]).unwrap_err();
    assert_eq!(missing, "the template's Aggregate: StartingPosition is missing: give TRIM_HORIZON or LATEST");
    assert!(refused("StartingPositionTimestamp: 1").starts_with("StartingPositionTimestamp is no setting"));
}

/// Source: BC, U3.
#[test]
fn a_parallelization_factor_is_1_to_10() {
    assert_eq!(read("ParallelizationFactor: 10").unwrap().parallelization_factor, 10);
    assert!(refused("ParallelizationFactor: 0").contains("is not between 1 and 10"));
    assert!(refused("ParallelizationFactor: 11").contains("is not between 1 and 10"));
}

/// Ours: reference G2 leaves open whose the state of a window is.
#[test]
fn several_lanes_with_tumbling_windows_are_refused() {
    let text = refused("ParallelizationFactor: 2\nTumblingWindowInSeconds: 60");
    assert!(text.starts_with("aggregate has tumbling windows and a parallelization factor of 2"), "{text}");
}

/// Source: BC.
#[test]
fn bisecting_is_true_or_false() {
    assert!(read("BisectBatchOnFunctionError: true").unwrap().bisect_batch_on_function_error);
    assert!(!read("BisectBatchOnFunctionError: 'false'").unwrap().bisect_batch_on_function_error);
    let text = "BisectBatchOnFunctionError is maybe: give true or false";
    assert_eq!(refused("BisectBatchOnFunctionError: maybe"), text);
}

/// Source: BC; U3's "Minimum 0" is wrong.
#[test]
fn retry_attempts_are_minus_1_to_10000() {
    assert_eq!(read("MaximumRetryAttempts: -1").unwrap().retry_attempts_max, None);
    assert_eq!(read("MaximumRetryAttempts: 0").unwrap().retry_attempts_max, Some(0));
    assert_eq!(read("MaximumRetryAttempts: 10000").unwrap().retry_attempts_max, Some(10_000));
    assert_eq!(refused("MaximumRetryAttempts: -2"), "MaximumRetryAttempts is -2: give -1 for no end, or 0 or more");
    assert_eq!(refused("MaximumRetryAttempts: 10001"), "the 10001 retry attempts of aggregate are more than 10000");
}

/// Source: BC; for what is below 60, the documentation of `EventSourceMappingConfiguration`.
#[test]
fn a_record_age_is_minus_1_or_60_to_604800_seconds() {
    assert_eq!(read("MaximumRecordAgeInSeconds: -1").unwrap().record_age_ms_max, None);
    assert_eq!(read("MaximumRecordAgeInSeconds: 60").unwrap().record_age_ms_max, Some(60_000));
    assert_eq!(read("MaximumRecordAgeInSeconds: 604800").unwrap().record_age_ms_max, Some(604_800_000));
    assert_eq!(refused("MaximumRecordAgeInSeconds: 59"), "MaximumRecordAgeInSeconds is 59: give -1, or 60 or more");
    assert!(refused("MaximumRecordAgeInSeconds: 604801").contains("is greater than 604800000 ms"));
    assert!(refused("MaximumRecordAgeInSeconds: -2").contains("give -1 for no end"));
}

/// Source: BC, U6.
#[test]
fn a_tumbling_window_is_0_to_900_seconds() {
    assert_eq!(read("TumblingWindowInSeconds: 900").unwrap().tumbling_window_seconds, 900);
    let text = "the tumbling window 901 s of aggregate is longer than 900 s";
    assert_eq!(refused("TumblingWindowInSeconds: 901"), text);
}

/// Source: BC: at most one item, of one kind.
#[test]
fn function_response_types_are_none_or_report_batch_item_failures() {
    assert!(read("FunctionResponseTypes: [ReportBatchItemFailures]").unwrap().report_batch_item_failures);
    assert!(!read("FunctionResponseTypes: []").unwrap().report_batch_item_failures);
    assert!(refused("FunctionResponseTypes: [Report]").contains("give ReportBatchItemFailures"));
    let twice = "FunctionResponseTypes: [ReportBatchItemFailures, ReportBatchItemFailures]";
    assert!(refused(twice).contains("more than one"));
}

/// Source: BC.
#[test]
fn filter_criteria_are_a_list_of_patterns() {
    let mapping = read("FilterCriteria:\n  Filters:\n    - Pattern: '{\"eventName\": [\"INSERT\"]}'").unwrap();
    assert_eq!(mapping.filters, Filters::new([r#"{"eventName": ["INSERT"]}"#]).unwrap());
    assert!(read("FilterCriteria: { Filters: [] }").unwrap().filters.is_empty());
    let text = refused("FilterCriteria:\n  Filters:\n    - Pattern: single-string");
    assert!(text.starts_with("Invalid filter pattern definition. Pattern 1: it is no JSON"), "{text}");
    assert_eq!(refused("FilterCriteria: { Filters: [{}] }"), "a filter must have a Pattern");
    assert_eq!(refused("FilterCriteria: { Filter: [] }"), "FilterCriteria has an unknown Filter: take it out");
}

/// Source: BC and U5: a standard queue, a standard topic, a bucket. Kafka, which the model lists too, is not emulated.
#[test]
fn an_on_failure_destination_is_a_queue_a_topic_or_a_bucket() {
    let kind = |destination: &str| {
        read(&format!("DestinationConfig:\n  OnFailure:\n    {destination}")).map(|mapping| mapping.on_failure)
    };
    assert_eq!(kind("Destination: !GetAtt Failures.Arn"), Ok(Some(OnFailure::S3)));
    assert_eq!(kind("Destination: !GetAtt Queue.Arn"), Ok(Some(OnFailure::Sqs)));
    assert_eq!(kind("Destination: arn:aws:sns:eu-west-1:123456789012:topic"), Ok(Some(OnFailure::Sns)));
    assert_eq!(kind("{ Type: S3, Destination: !Sub \"arn:aws:s3:::${Bucket}\" }"), Ok(Some(OnFailure::S3)));
    assert_eq!(read("DestinationConfig: { OnFailure: {} }").unwrap().on_failure, None);
    assert!(kind("Destination: !Sub \"arn:aws:s3:::${Bucket}\"").unwrap_err().contains("give it a Type"));
    assert!(kind("Destination: arn:aws:kafka:eu-west-1:123456789012:topic").is_err());
    assert!(refused("DestinationConfig: { OnSuccess: {} }").contains("an unknown OnSuccess"));
}

/// Source: BC.
#[test]
fn metrics_are_event_count_only() {
    assert_eq!(read("MetricsConfig: { Metrics: [EventCount] }"), Ok(plain()));
    assert!(refused("MetricsConfig: { Metrics: [ErrorCount] }").contains("has EventCount only"));
}

/// Source: BC: `ProvisionedPollerConfig` is for queues and Kafka.
#[test]
fn a_setting_that_a_stream_does_not_have_is_refused_by_its_name() {
    let text = "ProvisionedPollerConfig is no setting of a DynamoDB stream's event source mapping: take it out";
    assert_eq!(refused("ProvisionedPollerConfig: { MinimumPollers: 1 }"), text);
    let text = "MaximumRetryAttempt is no setting of a DynamoDB stream's event source mapping: take it out";
    assert_eq!(refused("MaximumRetryAttempt: 3"), text);
}

/// Ours: a mapping that is disabled would read nothing, and nobody would know why.
#[test]
fn a_mapping_that_is_disabled_is_refused() {
    assert_eq!(read("Enabled: true"), Ok(plain()));
    assert_eq!(refused("Enabled: false"), "Enabled is false, so it would read nothing: give true");
}

#[test]
fn parameters_have_the_value_that_is_given_or_their_default() {
    let properties = format!(
        "{REQUIRED}BatchSize: !Ref BatchSize\nTumblingWindowInSeconds: !If [Checkpoint, 60, !Ref AWS::NoValue]\nParallelizationFactor: !If [Receipts, '4', 1]"
    );
    let receipts = Mapping { batch_size: 500, parallelization_factor: 4, ..plain() };
    assert_eq!(read_with(&properties, &[]), Ok(receipts));
    let checkpoint = Mapping { batch_size: 10, tumbling_window_seconds: 60, ..plain() };
    assert_eq!(read_with(&properties, &[("Ledger", "checkpoint"), ("BatchSize", "10")]), Ok(checkpoint));
}

#[test]
fn a_value_that_only_aws_knows_is_refused_where_a_setting_needs_it() {
    assert_eq!(refused("BatchSize: !Ref Bucket"), "BatchSize is !Ref Bucket, of which no value is known here");
    let text = refused("BatchSize: !FindInMap [Sizes, large, batch]");
    assert_eq!(text, "BatchSize is !FindInMap, of which no value is known here");
}

#[test]
fn parameters_that_the_template_does_not_have_or_allow_are_refused() {
    let text = "the template has no parameter Readers: declare it, with two among its values";
    assert_eq!(read_with(REQUIRED, &[("Readers", "two")]).unwrap_err(), text);
    let text = "the template's parameter Ledger does not allow offsets";
    assert_eq!(read_with(REQUIRED, &[("Ledger", "offsets")]).unwrap_err(), text);
}

#[test]
fn a_function_that_is_not_there_is_named() {
    let template = SamTemplate::parse(&template(REQUIRED)).unwrap();
    for function in ["Combined", "Absent", "Table"] {
        let error = template.mapping(function, &Parameters::new(), &LOCAL).unwrap_err().to_string();
        assert_eq!(error, format!("the template's {function}: there is no such function with these parameters"));
    }
    let error = template.mapping("Failures", &Parameters::new(), &LOCAL).unwrap_err().to_string();
    assert_eq!(error, "the template's Failures: it has no Events");
}

#[test]
fn a_template_that_is_no_yaml_is_refused() {
    assert!(SamTemplate::parse("a: [").unwrap_err().to_string().starts_with("the template is no YAML: "));
    assert!(SamTemplate::parse("").unwrap_err().to_string().contains("it must be one"));
    let error = SamTemplate::parse("Conditions: { A: !Condition A }\nResources: { F: { Condition: A } }").unwrap();
    let error = error.mapping("F", &Parameters::new(), &LOCAL).unwrap_err().to_string();
    assert!(error.contains("condition A refers to itself"), "{error}");
}
