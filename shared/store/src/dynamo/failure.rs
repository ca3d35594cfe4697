//! Which failures are worth sending again.

use std::error::Error;

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};

use crate::StoreError;

/// Codes of failures that pass. Source: DynamoDB developer guide, "Error handling", and the SDK's error types.
const PASSING_CODES: &[&str] = &[
    "ExpiredTokenException",
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    // Only one that cannot be read gets here, see `transact`.
    "TransactionCanceledException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Least HTTP status that is the server's fault.
const SERVER_STATUS_MIN: u16 = 500;

/// A failed call as an error that says what to do.
pub(super) fn failed<E>(operation: &'static str, item: String, error: SdkError<E, HttpResponse>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let passes = passes(&error);
    // A failure of the service's own is told without the SDK's wrapping, which says nothing more.
    let source: Box<dyn Error + Send + Sync> = match error {
        SdkError::ServiceError(service) => Box::new(service.into_err()),
        other => Box::new(other),
    };
    if passes { StoreError::Retry { operation, item, source } } else { StoreError::Reject { operation, item, source } }
}

fn passes<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
        SdkError::ServiceError(service) => {
            service.raw().status().as_u16() >= SERVER_STATUS_MIN
                || service.err().code().is_some_and(|code| PASSING_CODES.contains(&code))
        }
        // A call that could not be built, and whatever the SDK may add.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{error::ErrorMetadata, operation::update_item::UpdateItemError};

    use super::*;

    fn answered(status: u16, code: &str) -> StoreError {
        let error = UpdateItemError::generic(ErrorMetadata::builder().code(code).build());
        let response = HttpResponse::new(status.try_into().unwrap(), "".into());
        failed("UpdateItem", "a / b".to_owned(), SdkError::service_error(error, response))
    }

    #[test]
    fn what_passes_is_sent_again() {
        for code in PASSING_CODES {
            assert!(answered(400, code).is_retry(), "{code}");
        }
        assert!(answered(503, "Whatever").is_retry());
        let timeout = SdkError::<UpdateItemError, HttpResponse>::timeout_error("late");
        assert!(failed("UpdateItem", "a / b".to_owned(), timeout).is_retry());
    }

    #[test]
    fn what_never_will_be_done_is_refused_and_names_the_item() {
        for code in ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"] {
            let error = answered(400, code);
            assert!(!error.is_retry(), "{code}");
            assert_eq!(error.to_string(), "UpdateItem on a / b: refused");
        }
        let unbuilt = SdkError::<UpdateItemError, HttpResponse>::construction_failure("no table");
        assert!(!failed("UpdateItem", "a / b".to_owned(), unbuilt).is_retry());
    }
}
