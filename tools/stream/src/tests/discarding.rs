//! Discarded records by the type of their destination, and the counts.

use std::collections::BTreeSet;
use std::time::Duration;

use super::world::{World, mapping, pass_ms, report, succeed, unhandled};
use crate::checkpoint::Position;
use crate::delivered::EventCount;
use crate::filter::Filters;
use crate::mapping::{Mapping, OnFailure};

/// A mapping that discards records at the first failure.
fn giving_up(on_failure: Option<OnFailure>) -> Mapping {
    Mapping { retry_attempts_max: Some(0), on_failure, ..mapping() }
}

/// Source: U5: S3 has the whole event as an escaped string; queues and topics have the metadata only.
#[tokio::test(start_paused = true)]
async fn only_a_bucket_gets_the_payload() {
    for (kind, has_payload) in [(OnFailure::S3, true), (OnFailure::Sqs, false), (OnFailure::Sns, false)] {
        let world = World::new(giving_up(Some(kind)), |_| unhandled());
        world.insert("a", 1);
        world.run().await;
        let mut body = world.destination.bodies().remove(0);
        let payload = body.as_object_mut().unwrap().remove("payload");
        assert_eq!(payload.is_some(), has_payload);
        if let Some(payload) = payload {
            let event: serde_json::Value = serde_json::from_str(payload.as_str().unwrap()).unwrap();
            assert_eq!(event, world.sent()[0].event);
        }
        let keys: BTreeSet<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        let metadata = ["DDBStreamBatchInfo", "requestContext", "responseContext", "timestamp", "version"];
        assert_eq!(keys, BTreeSet::from(metadata));
    }
}

/// Source: U5: exhausted records are discarded, and processing goes on.
#[tokio::test(start_paused = true)]
async fn without_a_destination_records_are_given_up_on_without_a_trace() {
    let world = World::new(giving_up(None), |_| unhandled());
    world.insert("a", 2);
    world.run().await;
    assert!(world.observed().contains("a, 2 records discarded and not kept"), "{}", world.observed());
    assert!(world.destination.bodies().is_empty());
    assert_eq!(world.position("a").await, Some(Position::After("2".to_owned())));
}

/// Source: U8, the `EventCount` metrics.
#[tokio::test(start_paused = true)]
async fn polled_filtered_and_invoked_records_are_counted_and_retries_again() {
    let pattern = r#"{"dynamodb":{"Keys":{"id":{"S":[{"anything-but":"other"}]}}}}"#;
    let filters = Filters::new([pattern]).unwrap();
    let world = World::new(Mapping { filters, retry_attempts_max: Some(1), ..mapping() }, |_| unhandled());
    world.touch("a", ["one", "other", "two"]);
    world.run().await;
    let counted = EventCount {
        polled: 3,
        filtered_out: 1,
        invoked: 4,
        failed_invoke: 4,
        dropped: 0,
        on_failure_delivered: 2,
        iterator_age_max: world.counted().iterator_age_max,
    };
    assert_eq!(world.counted(), counted);
}

/// Source: U8: `FailedInvokeEventCount` includes invocations with reported failures; `DroppedEventCount` counts records
/// that are not delivered to a destination.
#[tokio::test(start_paused = true)]
async fn a_partial_response_counts_as_failed_and_what_has_no_destination_as_dropped() {
    let world = World::new(giving_up(None), |numbers| {
        Ok(if numbers.contains(&"3".to_owned()) { report(&["3"]) } else { String::new() })
    });
    world.insert("a", 3);
    world.run().await;
    let counted = world.counted();
    assert_eq!((counted.invoked, counted.failed_invoke), (4, 4), "three records, then one");
    assert_eq!((counted.dropped, counted.on_failure_delivered), (1, 0));
}

/// Source: U8: the age of the last record of a batch. It counts from the creation time, which is rounded to the second.
#[tokio::test(start_paused = true)]
async fn the_iterator_age_is_that_of_the_last_record_of_a_batch() {
    let world = World::new(mapping(), succeed);
    world.stream.insert("a", 1, world.now() - Duration::from_secs(30));
    world.insert("a", 1);
    pass_ms(5_000).await;
    world.run().await;
    assert_eq!(world.counted().iterator_age_max, Duration::from_secs(5));
}

/// An operator's replay is a new mapping that starts at the oldest record. Source: LS.
#[tokio::test(start_paused = true)]
async fn a_mapping_made_anew_delivers_all_that_the_stream_still_has_again() {
    let world = World::new(mapping(), succeed);
    world.insert("a", 3);
    world.run().await;
    let mut anew = world.clone();
    anew.checkpoints = std::sync::Arc::default();
    anew.run().await;
    assert_eq!(world.sent().len(), 2);
    assert_eq!(world.sent()[0].event, world.sent()[1].event, "under the same event ids");
}
