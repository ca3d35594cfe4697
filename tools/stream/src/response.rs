//! What a function's response says about its batch, with `ReportBatchItemFailures`.
//!
//! | response | means |
//! |---|---|
//! | nothing, `null`, `""`, `{}`, `[]`, no `batchItemFailures`, or `null` or `[]` in it | success |
//! | an `itemIdentifier` that is missing, null, empty or not of this batch | the whole batch failed |
//! | identifiers of this batch | everything from the lowest on failed |
//! | anything else: no JSON, a scalar, a full array | the whole batch failed |
//!
//! Source: reference B4, recorded on AWS. The last line is ours: a response that cannot be understood must not count
//! as success.

use serde_json::Value;

use crate::sequence::order;

/// What the response says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseVerdict {
    /// The batch is done.
    Success,
    /// The records before this index are done; it and everything behind it are not.
    FailedFrom(usize),
    /// Nothing of the batch counts as done.
    Failed,
}

/// Reads a response to the batch with these sequence numbers, in the order of the batch.
pub(crate) fn judge(response: &str, sequence_numbers: &[&str]) -> ResponseVerdict {
    if response.trim().is_empty() {
        return ResponseVerdict::Success;
    }
    let failures = match serde_json::from_str(response) {
        Ok(Value::Null) => return ResponseVerdict::Success,
        Ok(Value::String(text)) if text.is_empty() => return ResponseVerdict::Success,
        Ok(Value::Array(items)) if items.is_empty() => return ResponseVerdict::Success,
        Ok(Value::Object(mut object)) => object.remove("batchItemFailures").unwrap_or(Value::Null),
        _ => return ResponseVerdict::Failed,
    };
    match failures {
        Value::Null => ResponseVerdict::Success,
        Value::Array(items) => lowest(&items, sequence_numbers),
        _ => ResponseVerdict::Failed,
    }
}

fn lowest(items: &[Value], sequence_numbers: &[&str]) -> ResponseVerdict {
    let mut lowest: Option<usize> = None;
    for item in items {
        let failed = item.get("itemIdentifier").and_then(Value::as_str).filter(|text| !text.is_empty());
        let index = failed.and_then(|failed| sequence_numbers.iter().position(|number| order(number) == order(failed)));
        match index {
            None => return ResponseVerdict::Failed,
            Some(index) => lowest = Some(lowest.map_or(index, |lowest| lower(lowest, index, sequence_numbers))),
        }
    }
    lowest.map_or(ResponseVerdict::Success, ResponseVerdict::FailedFrom)
}

/// The index with the lower sequence number. A batch is in that order already; this holds it to the number, not to
/// the place.
fn lower(a: usize, b: usize, sequence_numbers: &[&str]) -> usize {
    let at = |index: usize| sequence_numbers.get(index).map(|number| order(number));
    if at(b) < at(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::{ResponseVerdict, judge};

    const BATCH: [&str; 3] = ["82000000", "168300000", "0257400000"];

    fn failures(identifiers: &[&str]) -> String {
        let items: Vec<_> = identifiers.iter().map(|id| serde_json::json!({ "itemIdentifier": id })).collect();
        serde_json::json!({ "batchItemFailures": items }).to_string()
    }

    /// Source: U4, LS.
    #[test]
    fn empty_responses_are_success() {
        for response in
            ["", " ", "null", "\"\"", "{}", "[]", r#"{"batchItemFailures":null}"#, r#"{"batchItemFailures":[]}"#]
        {
            assert_eq!(judge(response, &BATCH), ResponseVerdict::Success, "{response:?}");
        }
        assert_eq!(judge(r#"{"statusCode":200}"#, &BATCH), ResponseVerdict::Success);
    }

    /// Source: U4, LS.
    #[test]
    fn identifiers_that_are_not_of_the_batch_fail_all_of_it() {
        for response in [
            r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
            r#"{"batchItemFailures":[{"foo":"82000000"}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":"123"}]}"#,
            r#"{"batchItemFailures":[{"itemIdentifier":"168300000"},{"itemIdentifier":"123"}]}"#,
            r#"{"batchItemFailures":"168300000"}"#,
            "true",
            "[1]",
            "not json",
        ] {
            assert_eq!(judge(response, &BATCH), ResponseVerdict::Failed, "{response:?}");
        }
    }

    /// Source: U4.
    #[test]
    fn the_lowest_sequence_number_counts_as_an_integer_not_as_text() {
        assert_eq!(judge(&failures(&["0257400000", "168300000"]), &BATCH), ResponseVerdict::FailedFrom(1));
        assert_eq!(judge(&failures(&["168300000", "82000000"]), &BATCH), ResponseVerdict::FailedFrom(0));
        assert_eq!(judge(&failures(&["257400000"]), &BATCH), ResponseVerdict::FailedFrom(2));
    }
}
