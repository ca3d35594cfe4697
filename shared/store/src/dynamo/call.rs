//! Calls of DynamoDB over the connection of the SDK's client.
//!
//! The SDK resolves its configuration anew in each call: endpoint, credentials, interceptors and retries. That is most of
//! what a call costs a function. Here [`Calls`] lets the SDK prepare one call, takes from it what all calls have in
//! common, and then sends JSON itself.
//!
//! *Keeps true*: endpoint, Region, credentials, time limits, connection and the number of attempts are those of the
//! client. The identity cache of the SDK renews credentials. DynamoDB sees the same request with fewer headers.
//!
//! | left out | because |
//! |---|---|
//! | deriving the signing key in each call, and hashing the headers | they depend on the second and the credentials, so they are derived once a second |
//! | the SDK's types of inputs and outputs | items are serialized and parsed as they are |
//! | correcting the clock by DynamoDB's answers | AWS sets the clock of a function; elsewhere a call fails with DynamoDB's message |
//! | protection from stalled streams | functions and commands limit the time of an attempt, and the limit covers the body |
//!
//! `cargo bench -p benches --bench call` counts the instructions of a call.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    digest::{Context, SHA256, digest},
    hmac,
};
use aws_runtime::auth::sigv4::SCHEME_ID;
use aws_sdk_dynamodb::{
    Client,
    config::{ConfigBag, Credentials, Intercept, RuntimeComponents, retry::RetryConfig, timeout::TimeoutConfig},
    error::{BoxError, DisplayErrorContext},
    primitives::{DateTime, DateTimeFormat},
};
use aws_smithy_runtime_api::client::{
    http::{HttpClient, HttpConnector, HttpConnectorSettings, SharedHttpConnector},
    identity::{ResolveCachedIdentity, SharedIdentityResolver},
    interceptors::{context::BeforeTransmitInterceptorContextRef, dyn_dispatch_hint},
    orchestrator::HttpRequest,
    runtime_components::GetIdentityResolver,
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use http::HeaderValue;
use keys::item::Item;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::sync::OnceCell;

use super::THROTTLED_CODES;

/// What DynamoDB's logs show of the caller.
const USER_AGENT: &str = concat!("ripple/", env!("CARGO_PKG_VERSION"));

/// Calls of DynamoDB, as this client is configured.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    client: Client,
    prepared: Arc<OnceCell<Prepared>>,
}

/// Why a call has no output.
#[derive(Debug)]
pub(super) enum Failure {
    /// DynamoDB did not answer, or not in a form that can be read.
    NoAnswer { is_unreachable: bool, why: String },
    /// DynamoDB answered with an error.
    Refused(ServiceError),
}

/// An error of DynamoDB.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServiceError {
    /// Its code, such as `ValidationException`.
    #[serde(rename = "__type", default)]
    pub(super) code: String,
    #[serde(alias = "Message")]
    pub(super) message: Option<String>,
    /// The current item, if a condition failed.
    #[serde(rename = "Item")]
    pub(super) item: Option<Item>,
    /// One for each write of a cancelled transaction.
    #[serde(rename = "CancellationReasons", default)]
    pub(super) reasons: Vec<CancellationReason>,
}

/// Why DynamoDB cancelled a transaction, for one of its writes.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CancellationReason {
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
}

impl Failure {
    /// True if the same call may succeed at once.
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer { .. } => true,
            Self::Refused(error) => {
                THROTTLED_CODES.contains(&error.code.as_str())
                    || matches!(error.code.as_str(), "InternalServerError" | "ServiceUnavailable")
            }
        }
    }
}

impl Calls {
    pub(super) fn new(client: Client) -> Self {
        Self { client, prepared: Arc::default() }
    }

    /// Sends a call, again after a failure that may pass as often as the client is configured to.
    pub(super) async fn send<O: DeserializeOwned>(
        &self,
        operation: &'static str,
        input: &impl Serialize,
    ) -> Result<O, Failure> {
        let prepared = self.prepared.get_or_try_init(|| prepare(&self.client)).await?;
        let body = serde_json::to_vec(input).map_err(|error| no_answer(false, error.to_string()))?;
        let body = SdkBody::from(body);
        let mut attempt = 1;
        loop {
            let answered = prepared.attempt(operation, &body).await;
            match answered {
                Err(failure) if attempt < prepared.attempts_max && failure.is_transient() => {
                    tokio::time::sleep(prepared.pause(attempt)).await;
                    attempt += 1;
                }
                answered => return answered,
            }
        }
    }
}

fn no_answer(is_unreachable: bool, why: String) -> Failure {
    Failure::NoAnswer { is_unreachable, why }
}

// ---- What all calls have in common ----

/// What the calls of a client have in common.
#[derive(Debug)]
struct Prepared {
    endpoint: http::Uri,
    signer: Signer,
    components: RuntimeComponents,
    credentials: SharedIdentityResolver,
    connector: SharedHttpConnector,
    /// Time limit of an attempt.
    limit: Option<Duration>,
    attempts_max: u32,
    pause_first: Duration,
}

/// A call that the SDK has prepared.
#[derive(Debug)]
struct Seen {
    uri: String,
    authorization: String,
    components: RuntimeComponents,
    timeouts: TimeoutConfig,
    retries: RetryConfig,
}

/// Keeps what the SDK has prepared, and ends the call before it is sent.
#[derive(Clone, Debug, Default)]
struct Preparing(Arc<Mutex<Option<Seen>>>);

#[dyn_dispatch_hint]
impl Intercept for Preparing {
    fn name(&self) -> &'static str {
        "Preparing"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let seen = Seen {
            uri: request.uri().to_owned(),
            authorization: request.headers().get("authorization").unwrap_or_default().to_owned(),
            components: components.clone(),
            timeouts: config.load::<TimeoutConfig>().cloned().unwrap_or_else(TimeoutConfig::disabled),
            retries: config.load::<RetryConfig>().cloned().unwrap_or_else(RetryConfig::disabled),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Err("the call is only prepared".into())
    }
}

/// Lets the SDK prepare a call, which is not sent.
async fn prepare(client: &Client) -> Result<Prepared, Failure> {
    let preparing = Preparing::default();
    let ended = client.list_tables().customize().interceptor(preparing.clone()).send().await;
    let seen = preparing.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Seen { uri, authorization, components, timeouts, retries }) = seen else {
        let why = ended.err().map(|error| DisplayErrorContext(&error).to_string());
        return Err(no_answer(false, why.unwrap_or_default()));
    };
    let missing = |what: &str| no_answer(false, format!("the client has no {what}"));
    let endpoint: http::Uri = uri.parse().map_err(|_| missing("endpoint that can be read"))?;
    let host = endpoint.authority().ok_or_else(|| missing("host"))?;
    let host = match (endpoint.scheme_str(), host.port_u16()) {
        (Some("https"), Some(443)) | (Some("http"), Some(80)) => host.host().to_owned(),
        _ => host.to_string(),
    };
    // `AWS4-HMAC-SHA256 Credential=KEY/20261130/eu-west-1/dynamodb/aws4_request, …`
    let region = authorization.split('/').nth(2).ok_or_else(|| missing("Region"))?.to_owned();
    let mut settings = HttpConnectorSettings::builder();
    settings.set_connect_timeout(timeouts.connect_timeout()).set_read_timeout(timeouts.read_timeout());
    let http = components.http_client().ok_or_else(|| missing("connection"))?;
    Ok(Prepared {
        signer: Signer { region, host, path: endpoint.path().to_owned(), derived: Mutex::default() },
        endpoint,
        credentials: components.identity_resolver(SCHEME_ID).ok_or_else(|| missing("credentials"))?,
        connector: http.http_connector(&settings.build(), &components),
        components,
        limit: timeouts.operation_attempt_timeout().or(timeouts.operation_timeout()),
        attempts_max: retries.max_attempts(),
        pause_first: retries.initial_backoff(),
    })
}

impl Prepared {
    /// The pause after this failed attempt: the mean of the SDK's, which is random.
    fn pause(&self, attempt: u32) -> Duration {
        self.pause_first / 2 * 2_u32.saturating_pow(attempt - 1)
    }

    async fn attempt<O: DeserializeOwned>(&self, operation: &'static str, body: &SdkBody) -> Result<O, Failure> {
        let answered = self.answered(operation, body);
        let (status, body) = match self.limit {
            Some(limit) => tokio::time::timeout(limit, answered)
                .await
                .map_err(|_| no_answer(true, format!("no answer within {} ms", limit.as_millis())))??,
            None => answered.await?,
        };
        let unreadable = |error: serde_json::Error| no_answer(false, format!("the answer cannot be read: {error}"));
        if status == 200 {
            return serde_json::from_slice(body.as_ref()).map_err(unreadable);
        }
        let mut error: ServiceError = serde_json::from_slice(body.as_ref())
            .map_err(|_| no_answer(false, format!("the answer has status {status} and no error of DynamoDB")))?;
        // Its form is `com.amazonaws.dynamodb.v20120810#ValidationException`.
        if let Some((_, code)) = error.code.rsplit_once('#') {
            error.code = code.to_owned();
        }
        Err(Failure::Refused(error))
    }

    /// The status and the body of the answer.
    async fn answered(
        &self,
        operation: &'static str,
        body: &SdkBody,
    ) -> Result<(u16, impl AsRef<[u8]> + use<>), Failure> {
        let text = |error: &dyn std::error::Error| DisplayErrorContext(error).to_string();
        let identity = self.components.identity_cache();
        let config = ConfigBag::base();
        let identity = identity.resolve_cached_identity(self.credentials.clone(), &self.components, &config).await;
        let identity = identity.map_err(|error| no_answer(false, text(&*error)))?;
        let credentials =
            identity.data::<Credentials>().ok_or_else(|| no_answer(false, "no credentials".to_owned()))?;
        let now = self.components.time_source().unwrap_or_default().now();
        let target = ["DynamoDB_20120810.", operation].concat();
        // It is in memory, so this copies a reference.
        let mut request = HttpRequest::new(body.try_clone().unwrap_or_else(SdkBody::taken));
        let built = request.set_method("POST").map_err(BoxError::from);
        let built = built.and_then(|()| Ok(request.set_uri(self.endpoint.clone())?));
        let built = built.and_then(|()| self.signer.sign(&mut request, target, now, credentials));
        built.map_err(|error| no_answer(false, text(&*error)))?;
        let answer = self.connector.call(request).await.map_err(|error| no_answer(true, text(&error)))?;
        let status = answer.status().as_u16();
        let body = ByteStream::new(answer.into_body()).collect().await;
        Ok((status, body.map_err(|error| no_answer(true, text(&error)))?.into_bytes()))
    }
}

// ---- Signature Version 4 with a signing key that is kept ----

/// Header with the name of the operation.
const TARGET: &str = "x-amz-target";

/// The type of each body that DynamoDB reads.
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// Signs requests to DynamoDB in one Region.
struct Signer {
    region: String,
    /// The host of the endpoint, as the header has it.
    host: String,
    /// The path of the endpoint.
    path: String,
    derived: Mutex<Option<Arc<Derived>>>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

/// A header's value, which no debug output shows.
fn secret(value: &str) -> Result<HeaderValue, BoxError> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What the signatures of one second have in common.
struct Derived {
    /// Since the epoch.
    second: u64,
    access_key: String,
    /// The time, such as `20261128T151000Z`.
    stamp: String,
    /// `date/Region/service/aws4_request`
    scope: String,
    /// The names of the signed headers.
    names: &'static str,
    /// The canonical request up to the target, which comes last of the signed headers.
    canonical: Context,
    key: hmac::Key,
}

impl Signer {
    /// Sets the headers of a call, with its signature.
    fn sign(
        &self,
        request: &mut HttpRequest,
        target: String,
        now: SystemTime,
        credentials: &Credentials,
    ) -> Result<(), BoxError> {
        let body = request.body().bytes().ok_or("the body is not in memory")?;
        let (hash, n_body) = (hex::encode(digest(&SHA256, body)), body.len());
        let derived = self.derived(now, credentials);
        let Derived { stamp, scope, names, canonical, key, .. } = &*derived;
        let mut canonical = canonical.clone();
        canonical.update([&target, "\n\n", names, "\n", &hash].concat().as_bytes());
        let canonical = hex::encode(canonical.finish());
        let text = ["AWS4-HMAC-SHA256\n", stamp, "\n", scope, "\n", &canonical].concat();
        let signature = hex::encode(hmac::sign(key, text.as_bytes()));
        let credential = ["AWS4-HMAC-SHA256 Credential=", credentials.access_key_id(), "/", scope].concat();
        let authorization = [&credential, ", SignedHeaders=", names, ", Signature=", &signature].concat();
        let headers = request.headers_mut();
        headers.insert("content-type", CONTENT_TYPE);
        headers.insert("content-length", n_body.to_string());
        headers.insert(TARGET, target);
        headers.insert("user-agent", USER_AGENT);
        headers.insert("x-amz-date", stamp.clone());
        if let Some(token) = credentials.session_token() {
            headers.insert("x-amz-security-token", secret(token)?);
        }
        headers.insert("authorization", secret(&authorization)?);
        Ok(())
    }

    fn derived(&self, now: SystemTime, credentials: &Credentials) -> Arc<Derived> {
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut kept = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let access_key = credentials.access_key_id();
        let is_of = |it: &&Arc<Derived>| it.second == second && it.access_key == access_key;
        if let Some(derived) = kept.as_ref().filter(is_of) {
            return Arc::clone(derived);
        }
        Arc::clone(kept.insert(Arc::new(self.derive(second, credentials))))
    }

    fn derive(&self, second: u64, credentials: &Credentials) -> Derived {
        let time = DateTime::from_secs(i64::try_from(second).unwrap_or_default());
        // Only a time after the year 9999 cannot be written.
        let stamp = time.fmt(DateTimeFormat::DateTime).unwrap_or_default().replace(['-', ':'], "");
        let date = stamp.split('T').next().unwrap_or_default();
        let parts = [date, &self.region, "dynamodb", "aws4_request"];
        let first = ["AWS4", credentials.secret_access_key()].concat();
        let key = parts.iter().fold(hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes()), |key, part| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
        });
        let Self { host, path, .. } = self;
        let mut canonical = Context::new(&SHA256);
        let (names, token) = match credentials.session_token() {
            Some(token) => {
                let names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target";
                (names, ["x-amz-security-token:", token, "\n"].concat())
            }
            None => ("content-type;host;x-amz-date;x-amz-target", String::new()),
        };
        let text =
            format!("POST\n{path}\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:{stamp}\n{token}{TARGET}:");
        canonical.update(text.as_bytes());
        let access_key = credentials.access_key_id().to_owned();
        Derived { second, access_key, scope: parts.join("/"), stamp, names, canonical, key }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Region};
    use aws_sigv4::{
        http_request::{SignableBody, SignableRequest, SigningSettings, sign},
        sign::v4::SigningParams,
    };
    use aws_smithy_runtime_api::client::{
        http::{HttpConnectorFuture, http_client_fn},
        identity::Identity,
        orchestrator::HttpResponse,
        result::ConnectorError,
    };
    use serde_json::{Value, json};

    use super::*;

    /// The status and the body of an answer, or none.
    type Answer = Option<(u16, &'static str)>;

    /// Keeps the requests, and gives these answers in turn.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<(Vec<HttpRequest>, Vec<Answer>)>>);

    impl HttpConnector for Kept {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            let mut kept = self.0.lock().unwrap();
            kept.0.push(request);
            let answer = if kept.1.is_empty() { Some((200, "{}")) } else { kept.1.remove(0) };
            HttpConnectorFuture::ready(match answer {
                Some((status, body)) => Ok(HttpResponse::new(status.try_into().unwrap(), body.into())),
                None => Err(ConnectorError::io("the connection is lost".into())),
            })
        }
    }

    fn calls(kept: &Kept, endpoint: &str, credentials: &Credentials, retries: RetryConfig) -> Calls {
        let connector = SharedHttpConnector::new(kept.clone());
        let config = Builder::new().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-west-1"));
        let config = config.endpoint_url(endpoint).credentials_provider(credentials.clone()).retry_config(retries);
        let config = config.http_client(http_client_fn(move |_, _| connector.clone()));
        Calls::new(Client::from_conf(config.build()))
    }

    /// The request of a call to this endpoint.
    async fn request(endpoint: &str, credentials: &Credentials) -> HttpRequest {
        let kept = Kept::default();
        let calls = calls(&kept, endpoint, credentials, RetryConfig::disabled());
        calls.send::<Value>("GetItem", &json!({ "TableName": "t", "Key": { "PK": { "S": "a" } } })).await.unwrap();
        let mut requests = std::mem::take(&mut kept.0.lock().unwrap().0);
        assert_eq!(requests.len(), 1, "the prepared call is not sent");
        requests.remove(0)
    }

    /// How a call ends whose attempts get these answers, and their number.
    async fn ends(answers: &[Answer], attempts_max: u32) -> (Result<Value, Failure>, usize) {
        let kept = Kept(Arc::new(Mutex::new((Vec::new(), answers.to_vec()))));
        let credentials = Credentials::new("AKIDEXAMPLE", "a secret", None, None, "test");
        let retries = RetryConfig::standard().with_max_attempts(attempts_max);
        let retries = retries.with_initial_backoff(Duration::from_millis(1));
        let ended = calls(&kept, "http://a", &credentials, retries).send("GetItem", &json!({})).await;
        let n_sent = kept.0.lock().unwrap().0.len();
        (ended, n_sent)
    }

    /// The time of a request, whose header has no separators.
    fn signed_at(stamp: &str) -> SystemTime {
        let [year, month, day, hour, minute, second] =
            [0..4, 4..6, 6..8, 9..11, 11..13, 13..15].map(|range| &stamp[range]);
        let text = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
        DateTime::from_str(&text, DateTimeFormat::DateTime).unwrap().try_into().unwrap()
    }

    /// The signature of the same request by the SDK's own code.
    fn authorization(request: &HttpRequest, credentials: &Credentials) -> String {
        let identity: Identity = credentials.clone().into();
        let params = SigningParams::builder().identity(&identity).region("eu-west-1").name("dynamodb");
        let params = params.time(signed_at(request.headers().get("x-amz-date").unwrap()));
        let params = params.settings(SigningSettings::default()).build().unwrap().into();
        let is_given = |name: &str| name == "content-type" || name == "x-amz-target";
        let headers = request.headers().iter().filter(|(name, _)| is_given(name));
        let body = SignableBody::Bytes(request.body().bytes().unwrap());
        let signable = SignableRequest::new(request.method(), request.uri(), headers, body).unwrap();
        let (instructions, _) = sign(signable, &params).unwrap().into_parts();
        let headers = instructions.headers().find(|(name, _)| *name == "authorization");
        headers.unwrap().1.to_owned()
    }

    #[tokio::test]
    async fn a_signature_is_that_of_the_sdk() {
        for token in [None, Some("a+token/==".to_owned())] {
            let credentials = Credentials::new("AKIDEXAMPLE", "a secret", token, None, "test");
            let amazon = "https://dynamodb.eu-west-1.amazonaws.com:443";
            for endpoint in ["http://127.0.0.1:8000", amazon, "http://a:80/", "http://a:8000/under/it"] {
                let request = request(endpoint, &credentials).await;
                let signed = request.headers().get("authorization").unwrap();
                assert_eq!(signed, authorization(&request, &credentials), "{endpoint}");
                assert_eq!(request.headers().get("x-amz-security-token"), credentials.session_token());
            }
        }
    }

    #[tokio::test]
    async fn a_request_has_no_header_that_serves_nothing_and_shows_no_secret() {
        let credentials = Credentials::new("AKIDEXAMPLE", "a secret", Some("a token".to_owned()), None, "test");
        let request = request("http://127.0.0.1:8000", &credentials).await;
        let mut names: Vec<&str> = request.headers().iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let wanted = ["authorization", "content-length", "content-type", "user-agent", "x-amz-date"];
        assert_eq!(names, [&wanted[..], &["x-amz-security-token", "x-amz-target"]].concat());
        assert_eq!(request.headers().get("user-agent"), Some(USER_AGENT));
        let shown = format!("{request:?}");
        assert!(!shown.contains("a token") && !shown.contains("Signature="), "{shown}");
    }

    #[tokio::test]
    async fn a_call_is_sent_again_after_what_may_pass_as_often_as_the_client_says() {
        let throttled = Some((400, r#"{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}"#));
        let done = Some((200, r#"{"Item":{}}"#));
        let (ended, n_sent) = ends(&[throttled, None, done], 3).await;
        assert_eq!((ended.unwrap(), n_sent), (json!({ "Item": {} }), 3));
        assert_eq!(ends(&[throttled, throttled, done], 2).await.1, 2);
        let refused = Some((400, r#"{"__type":"ValidationException","message":"why"}"#));
        let (ended, n_sent) = ends(&[refused, done], 3).await;
        let Err(Failure::Refused(error)) = ended else { panic!("{ended:?}") };
        assert_eq!((error.code.as_str(), error.message.as_deref(), n_sent), ("ValidationException", Some("why"), 1));
    }

    #[tokio::test]
    async fn an_answer_that_is_not_dynamodb_s_is_no_answer() {
        for answer in [Some((502, "<html>")), Some((200, "<html>")), None] {
            let (ended, _) = ends(&[answer], 1).await;
            let Err(Failure::NoAnswer { is_unreachable, why }) = ended else { panic!("{ended:?}") };
            assert_eq!(is_unreachable, answer.is_none(), "{why}");
        }
    }

    /// Never answers.
    #[derive(Clone, Debug)]
    struct Silent;

    impl HttpConnector for Silent {
        fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
            HttpConnectorFuture::new(std::future::pending())
        }
    }

    #[tokio::test]
    async fn an_attempt_ends_at_the_client_s_time_limit() {
        let connector = SharedHttpConnector::new(Silent);
        let limits = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_millis(1)).build();
        let config = Builder::new().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-west-1"));
        let config = config.credentials_provider(Credentials::new("A", "a", None, None, "test")).timeout_config(limits);
        let config = config.retry_config(RetryConfig::disabled());
        let client = Client::from_conf(config.http_client(http_client_fn(move |_, _| connector.clone())).build());
        let ended = Calls::new(client).send::<Value>("GetItem", &json!({})).await;
        assert!(matches!(ended, Err(Failure::NoAnswer { is_unreachable: true, .. })), "{ended:?}");
    }

    #[tokio::test]
    async fn a_client_without_credentials_is_told_so() {
        let config = Builder::new().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-west-1"));
        let client = Client::from_conf(config.build());
        let ended = Calls::new(client).send::<Value>("GetItem", &json!({})).await;
        let Err(Failure::NoAnswer { why, .. }) = ended else { panic!("{ended:?}") };
        assert!(why.contains("credentials") || why.contains("identity"), "{why}");
    }

    #[test]
    fn a_key_is_derived_again_for_other_credentials_and_in_another_second() {
        let signer = Signer {
            region: "eu-west-1".to_owned(),
            host: "a".to_owned(),
            path: "/".to_owned(),
            derived: Mutex::default(),
        };
        let signature = |second, access_key: &str, secret: &str| {
            let credentials = Credentials::new(access_key, secret, None, None, "test");
            let derived = signer.derived(UNIX_EPOCH + Duration::from_secs(second), &credentials);
            (derived.stamp.clone(), hex::encode(hmac::sign(&derived.key, b"text")))
        };
        let first = signature(86_399, "A", "a");
        assert_eq!(first.0, "19700101T235959Z");
        assert_eq!(signature(86_399, "A", "a"), first);
        assert_ne!(signature(86_399, "B", "b").1, first.1);
        assert_ne!(signature(86_400, "A", "a").1, first.1, "of the next day");
    }
}
