//! Which failures are worth sending again.

use std::error::Error;

use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};

use super::message::without_values;
use crate::{Busy, StoreError};

/// Codes of failures that lie in what was sent, so that the same will be refused whenever it comes. Source: DynamoDB
/// developer guide, "Error handling", and the SDK's error types.
///
/// Everything else may pass, and a person who mends a policy or a table's name must find nothing parked that had no
/// fault: throttles, conflicts, lost connections, missing permissions, expired credentials, missing tables.
const REFUSED_CODES: &[&str] =
    &["ItemCollectionSizeLimitExceededException", "SerializationException", "ValidationException"];

/// Codes of failures that ask a caller to slow down. Source: as above.
const THROTTLED_CODES: &[&str] =
    &["ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"];

/// Codes of failures that last until somebody changes the set-up. Source: DynamoDB developer guide, "Error handling"; the
/// codes that begin with `KMS` are of the table's encryption key.
const STANDING_CODES: &[&str] = &[
    "AccessDeniedException",
    "MissingAuthenticationTokenException",
    "ResourceNotFoundException",
    "UnrecognizedClientException",
];
const KMS: &str = "KMS";

/// A failed call as an error that says what to do.
pub(super) fn failed<E>(operation: &'static str, item: String, error: &SdkError<E, HttpResponse>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let (passes, busy, is_standing) = (passes(error), busy(error), is_standing(error));
    let source = in_a_line(error).into();
    if passes {
        let is_unreachable = matches!(error, SdkError::DispatchFailure(_) | SdkError::TimeoutError(_));
        StoreError::Retry { operation, item, busy, is_standing, is_unreachable, source }
    } else {
        StoreError::Reject { operation, item, source }
    }
}

/// What happened, in a line without the values that a message may quote. A failure of the service's own is shown without
/// the SDK's wrapping, which says nothing more.
fn in_a_line<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E, HttpResponse>) -> String {
    if let Some(service) = error.as_service_error()
        && let Some(code) = service.code()
    {
        let message = service.message().map(|message| format!(": {}", without_values(message)));
        return format!("{code}{}", message.unwrap_or_default());
    }
    let (mut causes, mut next) = (Vec::new(), Some(error as &dyn Error));
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    without_values(&causes.join(": "))
}

fn busy<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Option<Busy> {
    match error.as_service_error()?.code()? {
        "TransactionConflictException" => Some(Busy::Conflict),
        code if THROTTLED_CODES.contains(&code) => Some(Busy::Throttled),
        _ => None,
    }
}

fn is_standing<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    let code = error.as_service_error().and_then(ProvideErrorMetadata::code);
    code.is_some_and(|code| STANDING_CODES.contains(&code) || code.starts_with(KMS))
}

fn passes<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        // A call that could not be built.
        SdkError::ConstructionFailure(_) => false,
        SdkError::ServiceError(service) => !service.err().code().is_some_and(|code| REFUSED_CODES.contains(&code)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{error::ErrorMetadata, operation::update_item::UpdateItemError};

    use super::*;

    fn answered(status: u16, code: &str) -> StoreError {
        let error = UpdateItemError::generic(ErrorMetadata::builder().code(code).build());
        let response = HttpResponse::new(status.try_into().unwrap(), "".into());
        failed("UpdateItem", "a / b".to_owned(), &SdkError::service_error(error, response))
    }

    #[test]
    fn what_passes_is_sent_again() {
        for code in ["ThrottlingException", "TransactionConflictException", "ExpiredTokenException"] {
            assert!(answered(400, code).is_retry(), "{code}");
        }
        assert!(answered(503, "Whatever").is_retry());
        let timeout = SdkError::<UpdateItemError, HttpResponse>::timeout_error("late");
        assert!(failed("UpdateItem", "a / b".to_owned(), &timeout).is_retry());
    }

    #[test]
    fn an_error_holds_nothing_that_a_message_quotes() {
        let metadata = ErrorMetadata::builder().code("ValidationException").message("numeric value: Ada").build();
        let response = HttpResponse::new(400.try_into().unwrap(), "Ada".into());
        let error = SdkError::service_error(UpdateItemError::generic(metadata), response);
        let error = failed("UpdateItem", "a / b".to_owned(), &error);
        assert!(!format!("{error:?}").contains("Ada"), "{error:?}");
        assert_eq!(error.source().unwrap().to_string(), "ValidationException: numeric value:…");
    }

    #[test]
    fn a_conflict_and_a_throttle_are_told_apart() {
        assert_eq!(answered(400, "TransactionConflictException").busy(), Some(Busy::Conflict));
        for code in THROTTLED_CODES {
            assert_eq!(answered(400, code).busy(), Some(Busy::Throttled), "{code}");
        }
        for code in ["ExpiredTokenException", "ValidationException"] {
            assert_eq!(answered(400, code).busy(), None, "{code}");
        }
    }

    #[test]
    fn a_missing_permission_or_table_is_no_fault_of_the_change() {
        for code in ["AccessDeniedException", "ResourceNotFoundException", "KMSDisabledException"] {
            let error = answered(400, code);
            assert!(error.is_retry() && error.is_standing(), "{code}");
        }
        assert!(!answered(400, "ThrottlingException").is_standing());
        assert!(!answered(400, "ExpiredTokenException").is_standing(), "new credentials come by themselves");
    }

    #[test]
    fn what_never_will_be_done_is_refused_and_names_the_item() {
        for code in REFUSED_CODES {
            let error = answered(400, code);
            assert!(!error.is_retry(), "{code}");
            assert_eq!(error.to_string(), "UpdateItem on a / b: refused");
        }
        let unbuilt = SdkError::<UpdateItemError, HttpResponse>::construction_failure("no table");
        assert!(!failed("UpdateItem", "a / b".to_owned(), &unbuilt).is_retry());
    }
}
