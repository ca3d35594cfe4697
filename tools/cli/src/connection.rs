//! Clients of a DynamoDB: an emulator at a URL, or the real AWS.

use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};

/// Both parts of the credentials for an emulator, if the environment has none.
pub(crate) const ANY_CREDENTIALS: &str = "local";

/// Longest wait for one response, in seconds: a busy laptop is slower than AWS, and a person waits for the second try too.
const ANSWER_S_MAX: u64 = 15;

/// Does the environment have credentials? A part of them, or an empty one, is none.
pub(crate) fn has_credentials() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("AWS_ACCESS_KEY_ID") && is_set("AWS_SECRET_ACCESS_KEY")
}

#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) streams: aws_sdk_dynamodbstreams::Client,
}

impl Clients {
    /// Clients of the DynamoDB at a URL.
    ///
    /// Emulators accept any credentials. Those of the environment are used if there are some, because DynamoDB Local
    /// keeps a database per access key and region.
    pub(crate) async fn at(endpoint: &str, region: &str) -> Self {
        let mut loader = loader()
            .endpoint_url(endpoint)
            .region(Region::new(region.to_owned()))
            .retry_config(RetryConfig::standard().with_max_attempts(2));
        if !has_credentials() {
            let credentials = Credentials::new(ANY_CREDENTIALS, ANY_CREDENTIALS, None, None, "an emulator takes any");
            loader = loader.credentials_provider(SharedCredentialsProvider::new(credentials));
        }
        Self::of(&Box::pin(loader.load()).await)
    }

    /// Clients of the real AWS, with the standard AWS environment.
    pub(crate) async fn aws(region: Option<&str>) -> Self {
        let mut loader = loader();
        if let Some(region) = region {
            loader = loader.region(Region::new(region.to_owned()));
        }
        Self::of(&Box::pin(loader.load()).await)
    }

    fn of(config: &SdkConfig) -> Self {
        Self { dynamodb: aws_sdk_dynamodb::Client::new(config), streams: aws_sdk_dynamodbstreams::Client::new(config) }
    }
}

/// The standard AWS environment, with a limit on the wait for a response.
fn loader() -> ConfigLoader {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(ANSWER_S_MAX)).build();
    aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts)
}
