//! The function that a mapping invokes: in this process, or over Lambda's invoke API.

use std::time::Duration;

use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, StatusCode, body::Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use thiserror::Error;

/// The longest invocation over HTTP, in seconds.
///
/// Source: Lambda's limit on a function's timeout. `cargo lambda watch` has no limit.
const INVOCATION_SECONDS_MAX: u64 = 900;

/// A function that can be invoked synchronously.
pub trait LambdaFunction: Send + Sync {
    /// Invokes the function once: JSON text of the event in, JSON text of the response out.
    ///
    /// The mapping catches a panic and counts it as [`FunctionError::Unhandled`].
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>>;
}

/// An invocation without a response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FunctionError {
    /// The function ran and failed. This counts as an attempt.
    #[error("the function failed: {message}")]
    Unhandled {
        /// The error message.
        message: String,
    },
    /// The function did not run (throttled or not reachable). The mapping retries, and no attempt is counted.
    #[error("the function is not available: {message}")]
    Unavailable {
        /// The reason.
        message: String,
    },
}

/// A function behind Lambda's invoke API over plain HTTP, as `cargo lambda watch` serves it.
///
/// | answer | result |
/// |---|---|
/// | 2xx | the response |
/// | 2xx with `X-Amz-Function-Error` | [`FunctionError::Unhandled`] (AWS) |
/// | 500 with `errorType` and `errorMessage` | [`FunctionError::Unhandled`] (cargo-lambda) |
/// | 404, 408, 429, any other 5xx, no connection | [`FunctionError::Unavailable`] |
/// | any other status, connection lost during the invocation, timeout | [`FunctionError::Unhandled`] |
///
/// A connection that is lost during the invocation counts as an attempt, because the function may have run. Otherwise a
/// crashing record would be retried forever.
#[derive(Debug)]
pub struct HttpFunction {
    url: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl HttpFunction {
    /// The function of this name at this base URL, for example `http://localhost:9000`.
    ///
    /// Does not connect. An invalid base URL is reported by the first invocation, as [`FunctionError::Unavailable`].
    #[must_use]
    pub fn new(base_url: &str, function_name: &str) -> Self {
        let base_url = base_url.trim_end_matches('/');
        let url = format!("{base_url}/2015-03-31/functions/{function_name}/invocations");
        Self { url, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    async fn post(&self, event: String) -> Result<String, FunctionError> {
        let request = Request::post(&self.url)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(event)))
            .map_err(|error| self.unavailable(&error))?;
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| if error.is_connect() { self.unavailable(&error) } else { self.lost(&error) })?;
        let status = response.status();
        let is_function_error = response.headers().contains_key("x-amz-function-error");
        let bytes = response.into_body().collect().await.map_err(|error| self.lost(&error))?.to_bytes();
        let body = String::from_utf8_lossy(&bytes).into_owned();
        answer(status, is_function_error, body)
    }

    fn unavailable(&self, error: &dyn std::error::Error) -> FunctionError {
        FunctionError::Unavailable { message: format!("{}: {}", self.url, crate::poller::chain(error)) }
    }

    fn lost(&self, error: &dyn std::error::Error) -> FunctionError {
        FunctionError::Unhandled { message: format!("{}: {}", self.url, crate::poller::chain(error)) }
    }
}

impl LambdaFunction for HttpFunction {
    fn invoke(&self, event: String) -> BoxFuture<'_, Result<String, FunctionError>> {
        Box::pin(async move {
            let limit = Duration::from_secs(INVOCATION_SECONDS_MAX);
            tokio::time::timeout(limit, self.post(event)).await.unwrap_or_else(|_elapsed| {
                Err(FunctionError::Unhandled { message: format!("no answer in {INVOCATION_SECONDS_MAX} s") })
            })
        })
    }
}

/// Interprets an HTTP answer.
fn answer(status: StatusCode, is_function_error: bool, body: String) -> Result<String, FunctionError> {
    let said = serde_json::from_str::<serde_json::Value>(&body).unwrap_or_default();
    let field = |name: &str| said.get(name).and_then(serde_json::Value::as_str);
    let message = match (field("errorType"), field("errorMessage").or_else(|| field("message"))) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (None, Some(message)) => message.to_owned(),
        (Some(kind), None) => kind.to_owned(),
        (None, None) => body.chars().take(200).collect(),
    };
    if status.is_success() {
        return if is_function_error { Err(FunctionError::Unhandled { message }) } else { Ok(body) };
    }
    let is_cargo_lambda = status == StatusCode::INTERNAL_SERVER_ERROR && field("errorType").is_some();
    let is_service = status.is_server_error()
        || [StatusCode::NOT_FOUND, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    if is_function_error || is_cargo_lambda {
        Err(FunctionError::Unhandled { message })
    } else if is_service {
        Err(FunctionError::Unavailable { message: format!("HTTP {status}: {message}") })
    } else {
        Err(FunctionError::Unhandled { message: format!("HTTP {status}: {message}") })
    }
}

#[cfg(test)]
mod tests {
    use super::{FunctionError, HttpFunction, LambdaFunction as _};
    use crate::tests::fakes::{Loopback, answer};

    async fn invoke(answers: Vec<String>) -> (Result<String, FunctionError>, Vec<String>) {
        let server = Loopback::start(answers).await;
        let outcome = HttpFunction::new(&format!("{}/", server.url()), "aggregate").invoke("{\"a\":1}".into()).await;
        (outcome, server.requests())
    }

    fn unhandled(message: &str) -> Result<String, FunctionError> {
        Err(FunctionError::Unhandled { message: message.to_owned() })
    }

    #[tokio::test]
    async fn a_response_comes_back_as_the_function_wrote_it() {
        let (outcome, requests) = invoke(vec![answer("200 OK", "", r#"{"batchItemFailures":[]}"#)]).await;
        assert_eq!(outcome.unwrap(), r#"{"batchItemFailures":[]}"#);
        assert!(requests[0].starts_with("POST /2015-03-31/functions/aggregate/invocations HTTP/1.1\r\n"));
        assert!(requests[0].ends_with("\r\n\r\n{\"a\":1}"));
    }

    #[tokio::test]
    async fn both_spellings_of_a_function_error_count_as_an_attempt() {
        let body = r#"{"errorType":"Panic","errorMessage":"boom"}"#;
        let aws = answer("200 OK", "X-Amz-Function-Error: Unhandled\r\n", body);
        assert_eq!(invoke(vec![aws]).await.0, unhandled("Panic: boom"));
        let cargo_lambda = answer("500 Internal Server Error", "", body);
        assert_eq!(invoke(vec![cargo_lambda]).await.0, unhandled("Panic: boom"));
    }

    /// Source: U5.
    #[tokio::test]
    async fn throttles_and_service_errors_are_not_attempts() {
        for status in ["429 Too Many Requests", "404 Not Found", "500 Internal Server Error", "503 Unavailable"] {
            let (outcome, _) = invoke(vec![answer(status, "", r#"{"message":"no"}"#)]).await;
            assert!(matches!(outcome, Err(FunctionError::Unavailable { .. })), "{status}: {outcome:?}");
        }
    }

    #[tokio::test]
    async fn nobody_listening_is_not_an_attempt() {
        let url = Loopback::start(Vec::new()).await.url();
        let outcome = HttpFunction::new(&url, "aggregate").invoke(String::new()).await;
        assert!(matches!(outcome, Err(FunctionError::Unavailable { .. })), "{outcome:?}");
        let outcome = HttpFunction::new("not a url", "aggregate").invoke(String::new()).await;
        assert!(matches!(outcome, Err(FunctionError::Unavailable { .. })), "{outcome:?}");
    }

    /// Source: Lambda's limit on a function's timeout; U4: a timeout is a function error.
    #[tokio::test(start_paused = true)]
    async fn an_invocation_without_an_answer_in_900_seconds_has_failed() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let began = tokio::time::Instant::now();
        let outcome = HttpFunction::new(&url, "aggregate").invoke(String::new()).await;
        assert_eq!(outcome, unhandled("no answer in 900 s"));
        assert_eq!(began.elapsed().as_secs(), 900);
    }

    #[tokio::test]
    async fn a_connection_that_is_lost_on_the_way_is_an_attempt() {
        let (outcome, _) = invoke(vec![String::new()]).await;
        assert!(matches!(outcome, Err(FunctionError::Unhandled { .. })), "{outcome:?}");
    }
}
