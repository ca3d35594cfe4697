//! Interprets a function's response to its batch, with `ReportBatchItemFailures`.
//!
//! | response | result |
//! |---|---|
//! | nothing, `null`, `""`, `{}`, `[]`, no `batchItemFailures`, or `null` or `[]` in it | success |
//! | an `itemIdentifier` that is missing, null, empty or not of this batch | the whole batch failed |
//! | identifiers of this batch | all records from the lowest on failed |
//! | anything else: not JSON, a scalar, an array that is not empty | the whole batch failed |
//!
//! Source: U4, LS. The last line is our decision: a response that cannot be understood must not count as success.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::batch::order;

/// The result of a batch by its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseVerdict {
    /// The batch is done.
    Success,
    /// The records before this index are done; this one and those after it are not.
    FailedFrom(usize),
    /// No record of the batch counts as done.
    Failed,
}

/// Interprets a response. `sequence_numbers` are those of the batch, in its order.
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

/// The index with the lower sequence number. A batch is already in that order; this compares the numbers, not the
/// positions.
fn lower(a: usize, b: usize, sequence_numbers: &[&str]) -> usize {
    let at = |index: usize| sequence_numbers.get(index).map(|number| order(number));
    if at(b) < at(a) { b } else { a }
}

// ---- Destinations of failure records ----

/// An on-failure destination. It gets the body that Lambda would send to the mapping's type of destination, and the key
/// that Lambda would write to S3. On AWS, a queue or a topic gets no key.
pub trait Destination: Send + Sync {
    /// Stores one failure record.
    ///
    /// The mapping continues only after this succeeded. After an error it tries again with the same key.
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>>;
}

/// A destination that writes one file per failure record. The path is the key that S3 would have: `aws/lambda/<mapping
/// UUID>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<random UUID>`.
///
/// A file is complete or absent. The UUID of a mapping depends only on its name and its stream.
#[derive(Debug, Clone)]
pub struct FolderDestination {
    folder: PathBuf,
}

impl FolderDestination {
    /// Stores records below this folder, which the first record creates.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

impl Destination for FolderDestination {
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let key = Path::new(&key);
            if !key.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the key leads out of the folder"));
            }
            let path = self.folder.join(key);
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await?;
            }
            let mut part = path.clone().into_os_string();
            part.push(".part");
            tokio::fs::write(&part, body).await?;
            tokio::fs::rename(&part, &path).await
        })
    }
}

#[cfg(test)]
mod destination_tests {
    use super::{Destination as _, FolderDestination};

    #[tokio::test]
    async fn a_failure_record_is_a_file_under_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let destination = FolderDestination::new(folder.path().join("failures"));
        let key = "aws/lambda/id/shard/2026/11/21/2026-11-21T10.00.00-uuid";
        destination.put(key.to_owned(), "{}".to_owned()).await.unwrap();
        let path = folder.path().join("failures").join(key);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_key_cannot_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let destination = FolderDestination::new(folder.path().join("failures"));
        assert!(destination.put("../x".to_owned(), String::new()).await.is_err());
        assert!(destination.put("/x".to_owned(), String::new()).await.is_err());
    }
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
