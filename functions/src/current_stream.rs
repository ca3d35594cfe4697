//! Checks whether the table still has the stream that the functions read.
//!
//! If an operator disables a stream and enables it again, the table has another stream with another ARN. The mappings
//! continue to read the old stream, which gets no new records, and no failure shows it. So `sweep` compares the two
//! ARNs.

use aws_sdk_dynamodb::{Client, types::TableDescription};
use engine::{backoff::describe, record::table_of};

use crate::config::Config;

/// True if the table's stream is disabled, or differs from the deployed one. `None` if unknown: no ARN is configured,
/// or the table cannot be described.
pub async fn stream_changed(client: &Client, config: &Config) -> Option<bool> {
    let mut changed = None;
    for deployed in config.stream_arn.as_deref()?.split(',') {
        // A changed stream is reported, even if others are unknown.
        let name = table_of(deployed).unwrap_or(&config.table);
        changed = changed.max(has_changed(client, deployed, name).await);
    }
    changed
}

async fn has_changed(client: &Client, deployed: &str, name: &str) -> Option<bool> {
    let table = match client.describe_table().table_name(name).send().await {
        Ok(output) => output.table?,
        Err(error) => {
            // The next sweep tries again; if the failure persists, the sweep's other calls fail too.
            tracing::warn!(why = describe(&error), "the table cannot be described, so its stream is not compared");
            return None;
        }
    };
    let current = enabled(&table);
    let has_changed = current != Some(deployed);
    if has_changed {
        tracing::error!(deployed, current, "the table's stream is not the one that the functions read");
    }
    Some(has_changed)
}

/// The ARN of the table's stream; `None` if it has none, or if it is disabled. A table keeps the ARN of a disabled one.
fn enabled(table: &TableDescription) -> Option<&str> {
    let is_enabled = table.stream_specification().is_some_and(|stream| stream.stream_enabled);
    table.latest_stream_arn().filter(|_| is_enabled)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::StreamSpecification;

    use super::*;

    #[test]
    fn a_stream_that_is_disabled_is_none_although_the_table_keeps_its_arn() {
        let table = |is_enabled: bool| {
            let stream = StreamSpecification::builder().stream_enabled(is_enabled).build().unwrap();
            TableDescription::builder().latest_stream_arn("arn").stream_specification(stream).build()
        };
        assert_eq!((enabled(&table(true)), enabled(&table(false))), (Some("arn"), None));
        assert_eq!(enabled(&TableDescription::builder().latest_stream_arn("arn").build()), None);
    }
}
