//! What a response means to the platform, as AWS documents it and as it was recorded.

use serde_json::Value;

/// What the platform concludes for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchVerdict {
    /// All of it is done.
    Done,
    /// The record at this position and all after it come again.
    From(usize),
    /// All of it comes again.
    Whole,
}

/// Reads a response to a batch with these sequence numbers. An invocation in a tumbling window must give a state.
pub(crate) fn verdict(response: &Value, sequence_numbers: &[&str], in_window: bool) -> BatchVerdict {
    if in_window && response.get("state").is_none() {
        return BatchVerdict::Whole;
    }
    let failures = match response.get("batchItemFailures") {
        None | Some(Value::Null) => return BatchVerdict::Done,
        Some(Value::Array(failures)) => failures,
        Some(_) => return BatchVerdict::Whole,
    };
    let mut lowest: Option<(u128, usize)> = None;
    for failure in failures {
        let named = failure.get("itemIdentifier").and_then(Value::as_str);
        // An identifier that is empty, missing, or of no record of the batch fails all of it.
        let Some(at) = named.and_then(|named| sequence_numbers.iter().position(|number| *number == named)) else {
            return BatchVerdict::Whole;
        };
        let number = sequence_numbers[at].parse().unwrap();
        lowest = Some(lowest.map_or((number, at), |lowest| lowest.min((number, at))));
    }
    lowest.map_or(BatchVerdict::Done, |(_, at)| BatchVerdict::From(at))
}

#[test]
fn a_response_is_read_as_the_platform_reads_it() {
    use serde_json::json;
    let numbers = ["9", "10", "11"];
    let of = |failures: Value| verdict(&json!({ "batchItemFailures": failures }), &numbers, false);
    assert_eq!(of(json!([])), BatchVerdict::Done);
    assert_eq!(of(Value::Null), BatchVerdict::Done);
    assert_eq!(verdict(&Value::Null, &numbers, false), BatchVerdict::Done);
    assert_eq!(of(json!([{"itemIdentifier": "10"}, {"itemIdentifier": "9"}])), BatchVerdict::From(0), "as numbers");
    assert_eq!(of(json!([{"itemIdentifier": "11"}])), BatchVerdict::From(2));
    for wrong in [json!([{"itemIdentifier": ""}]), json!([{"itemIdentifier": null}]), json!([{"id": "9"}])] {
        assert_eq!(of(wrong), BatchVerdict::Whole);
    }
    assert_eq!(of(json!([{"itemIdentifier": "123"}])), BatchVerdict::Whole, "no record of the batch");
    assert_eq!(verdict(&json!({}), &numbers, true), BatchVerdict::Whole, "a window wants its state");
    assert_eq!(verdict(&json!({"state": {}}), &numbers, true), BatchVerdict::Done);
}
