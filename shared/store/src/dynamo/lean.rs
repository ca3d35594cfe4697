//! The client of the functions: the SDK's own, without the work that serves nothing in a function.
//!
//! *Keeps true*: requests, time limits, retries and errors are those of the SDK and its configuration. DynamoDB sees the
//! same request with fewer headers.
//!
//! | left out | because |
//! |---|---|
//! | deriving the signing key in each call, and hashing the headers | they depend on the second and the credentials, so they are derived once a second |
//! | the SDK's user agent, in two headers | it is built anew in each call; here it is a constant |
//! | `amz-sdk-invocation-id`, `amz-sdk-request` | they number the SDK's retries, and the engine retries instead |
//! | correcting the clock by DynamoDB's answers | AWS sets the clock of a function |
//! | protection from stalled streams | each attempt has a time limit, and the limit covers the body |
//!
//! `cargo bench -p benches --bench call` counts the instructions of a call.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    digest::{Context, SHA256, digest},
    hmac,
};
use aws_runtime::{
    auth::sigv4::{SCHEME_ID, SigV4Signer},
    invocation_id::InvocationIdInterceptor,
    request_info::RequestInfoInterceptor,
    user_agent::UserAgentInterceptor,
};
use aws_sdk_dynamodb::{
    Client,
    config::{Builder, ConfigBag, Credentials, Intercept, RuntimeComponents, StalledStreamProtectionConfig},
    error::BoxError,
    primitives::{DateTime, DateTimeFormat},
};
use aws_smithy_runtime_api::client::{
    auth::{AuthScheme, AuthSchemeEndpointConfig, AuthSchemeId, Sign},
    identity::{Identity, SharedIdentityResolver},
    interceptors::{context::BeforeSerializationInterceptorContextRef, disable_interceptor, dyn_dispatch_hint},
    orchestrator::HttpRequest,
    runtime_components::GetIdentityResolver,
};
use http::HeaderValue;

/// What DynamoDB's logs show of the caller.
const USER_AGENT: &str = concat!("ripple/", env!("CARGO_PKG_VERSION"));

/// A client with this configuration that does only what a function needs.
#[must_use]
pub fn lean(config: Builder) -> Client {
    let config = config.stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    let config = config.disable_clock_skew_correction(true).interceptor(LeftOut);
    let Some(region) = config.clone().build().region().map(ToString::to_string) else {
        return Client::from_conf(config.build());
    };
    Client::from_conf(config.push_auth_scheme(LeanScheme(LeanSigner { region, derived: Mutex::default() })).build())
}

/// Switches off the SDK's interceptors that serve nothing.
#[derive(Debug)]
struct LeftOut;

#[dyn_dispatch_hint]
impl Intercept for LeftOut {
    fn name(&self) -> &'static str {
        "LeftOut"
    }

    fn read_before_execution(
        &self,
        _context: &BeforeSerializationInterceptorContextRef<'_>,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let state = config.interceptor_state();
        state.store_put(disable_interceptor::<UserAgentInterceptor>("the user agent is a constant"));
        state.store_put(disable_interceptor::<InvocationIdInterceptor>("the SDK does not retry"));
        state.store_put(disable_interceptor::<RequestInfoInterceptor>("the SDK does not retry"));
        Ok(())
    }
}

// ---- Signature Version 4 with a signing key that is kept ----

/// Takes the place of the SDK's scheme of the same name.
#[derive(Debug)]
struct LeanScheme(LeanSigner);

impl AuthScheme for LeanScheme {
    fn scheme_id(&self) -> AuthSchemeId {
        SCHEME_ID
    }

    fn identity_resolver(&self, resolvers: &dyn GetIdentityResolver) -> Option<SharedIdentityResolver> {
        resolvers.identity_resolver(SCHEME_ID)
    }

    fn signer(&self) -> &dyn Sign {
        &self.0
    }
}

/// Signs requests to DynamoDB in one Region.
struct LeanSigner {
    region: String,
    derived: Mutex<Option<Arc<Derived>>>,
}

impl fmt::Debug for LeanSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeanSigner")
    }
}

impl Sign for LeanSigner {
    /// Signs a call of DynamoDB whose body is in memory. The SDK's own signer signs any other request.
    fn sign_http_request(
        &self,
        request: &mut HttpRequest,
        identity: &Identity,
        endpoint: AuthSchemeEndpointConfig<'_>,
        components: &RuntimeComponents,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        let is_call = endpoint.as_document().is_none() && is_call(request);
        let (Some(credentials), Some(body), Some(host), Some(target), true) = (
            identity.data::<Credentials>(),
            request.body().bytes(),
            host(request.uri()),
            request.headers().get(TARGET),
            is_call,
        ) else {
            return SigV4Signer::new().sign_http_request(request, identity, endpoint, components, config);
        };
        let derived = self.derived(components.time_source().unwrap_or_default().now(), credentials, host);
        let Derived { stamp, scope, names, canonical, key, .. } = &*derived;
        let mut canonical = canonical.clone();
        canonical.update([target, "\n\n", names, "\n", &hex::encode(digest(&SHA256, body))].concat().as_bytes());
        let canonical = hex::encode(canonical.finish());
        let text = ["AWS4-HMAC-SHA256\n", stamp, "\n", scope, "\n", &canonical].concat();
        let signature = hex::encode(hmac::sign(key, text.as_bytes()));
        let credential = ["AWS4-HMAC-SHA256 Credential=", credentials.access_key_id(), "/", scope].concat();
        let authorization = [&credential, ", SignedHeaders=", names, ", Signature=", &signature].concat();
        let headers = request.headers_mut();
        headers.insert("user-agent", USER_AGENT);
        headers.insert("x-amz-date", stamp.clone());
        if let Some(token) = credentials.session_token() {
            headers.insert("x-amz-security-token", secret(token)?);
        }
        headers.insert("authorization", secret(&authorization)?);
        Ok(())
    }
}

/// Header with the name of the operation.
const TARGET: &str = "x-amz-target";

/// The type of each body that DynamoDB reads.
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// True if the request has the headers of every call, and no other that must be signed.
fn is_call(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let has_another = headers.iter().any(|(name, _)| name.starts_with("x-amz-") && name != TARGET);
    request.method() == "POST" && headers.get("content-type") == Some(CONTENT_TYPE) && !has_another
}

/// A header's value, which no debug output shows.
fn secret(value: &str) -> Result<HeaderValue, BoxError> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The host of a URI without a path and a query, as the header has it: without the scheme's own port.
fn host(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once("://")?;
    let host = rest.strip_suffix('/').filter(|host| !host.contains(['/', '?', '@']))?;
    host.strip_suffix(if scheme == "https" { ":443" } else { ":80" }).or(Some(host))
}

/// What the signatures of one second have in common.
struct Derived {
    /// Since the epoch.
    second: u64,
    access_key: String,
    host: String,
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

impl LeanSigner {
    fn derived(&self, now: SystemTime, credentials: &Credentials, host: &str) -> Arc<Derived> {
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut kept = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let access_key = credentials.access_key_id();
        let is_of = |it: &&Arc<Derived>| it.second == second && it.access_key == access_key && it.host == host;
        if let Some(derived) = kept.as_ref().filter(is_of) {
            return Arc::clone(derived);
        }
        Arc::clone(kept.insert(Arc::new(self.derive(second, credentials, host))))
    }

    fn derive(&self, second: u64, credentials: &Credentials, host: &str) -> Derived {
        let time = DateTime::from_secs(i64::try_from(second).unwrap_or_default());
        // Only a time after the year 9999 cannot be written.
        let stamp = time.fmt(DateTimeFormat::DateTime).unwrap_or_default().replace(['-', ':'], "");
        let date = stamp.split('T').next().unwrap_or_default();
        let parts = [date, &self.region, "dynamodb", "aws4_request"];
        let first = ["AWS4", credentials.secret_access_key()].concat();
        let key = parts.iter().fold(hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes()), |key, part| {
            hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
        });
        let mut canonical = Context::new(&SHA256);
        let (names, token) = match credentials.session_token() {
            Some(token) => {
                let names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target";
                (names, ["x-amz-security-token:", token, "\n"].concat())
            }
            None => ("content-type;host;x-amz-date;x-amz-target", String::new()),
        };
        let text = format!("POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:{stamp}\n{token}{TARGET}:");
        canonical.update(text.as_bytes());
        let (access_key, host) = (credentials.access_key_id().to_owned(), host.to_owned());
        Derived { second, access_key, host, scope: parts.join("/"), stamp, names, canonical, key }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        config::{BehaviorVersion, Region, retry::RetryConfig},
        types::AttributeValue,
    };
    use aws_sigv4::{
        http_request::{SignableBody, SignableRequest, SigningSettings, sign},
        sign::v4::SigningParams,
    };
    use aws_smithy_runtime_api::client::{
        http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn},
        orchestrator::HttpResponse,
    };

    use super::*;

    /// Keeps the last request, and answers that nothing is there.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<Option<HttpRequest>>>);

    impl HttpConnector for Kept {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            *self.0.lock().unwrap() = Some(request);
            HttpConnectorFuture::ready(Ok(HttpResponse::new(200.try_into().unwrap(), "{}".into())))
        }
    }

    /// The request of a call to this endpoint.
    async fn request(endpoint: &str, credentials: &Credentials) -> HttpRequest {
        let kept = Kept::default();
        let connector = SharedHttpConnector::new(kept.clone());
        let config = Builder::new().behavior_version(BehaviorVersion::latest()).region(Region::new("eu-west-1"));
        let config = config.endpoint_url(endpoint).credentials_provider(credentials.clone());
        let config = config.retry_config(RetryConfig::disabled());
        let client = lean(config.http_client(http_client_fn(move |_, _| connector.clone())));
        client.get_item().table_name("t").key("PK", AttributeValue::S("a".to_owned())).send().await.unwrap();
        kept.0.lock().unwrap().take().unwrap()
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
            for endpoint in ["http://127.0.0.1:8000", "https://dynamodb.eu-west-1.amazonaws.com:443", "http://a:80/"] {
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
    async fn another_path_is_signed_by_the_sdk() {
        let credentials = Credentials::new("AKIDEXAMPLE", "a secret", None, None, "test");
        let request = request("http://127.0.0.1:8000/under/it", &credentials).await;
        let signed = request.headers().get("authorization").unwrap();
        // The SDK's signer includes the length, which the one of this file does not.
        assert!(signed.contains("SignedHeaders=content-length;content-type;host;"), "{} {signed}", request.uri());
    }

    #[test]
    fn a_key_is_derived_again_for_other_credentials_and_in_another_second() {
        let signer = LeanSigner { region: "eu-west-1".to_owned(), derived: Mutex::default() };
        let signature = |second, access_key: &str, secret: &str| {
            let credentials = Credentials::new(access_key, secret, None, None, "test");
            let derived = signer.derived(UNIX_EPOCH + std::time::Duration::from_secs(second), &credentials, "a");
            (derived.stamp.clone(), hex::encode(hmac::sign(&derived.key, b"text")))
        };
        let first = signature(86_399, "A", "a");
        assert_eq!(first.0, "19700101T235959Z");
        assert_eq!(signature(86_399, "A", "a"), first);
        assert_ne!(signature(86_399, "B", "b").1, first.1);
        assert_ne!(signature(86_400, "A", "a").1, first.1, "of the next day");
    }
}
