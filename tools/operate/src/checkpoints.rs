//! Checkpoints of the local event source mapping, stored in the ledger's table. They live as long as the tables: after
//! a restart the mapping continues where it stopped, with any database.

use std::sync::Arc;

use derive::{
    query::Query,
    write::{Action, Table, Write},
};
use engine::ledger::ledger_item;
use futures::future::BoxFuture;
use keys::{item::text, key::Key, layout::Layout};
use serde_dynamo::AttributeValue;
use store::{Store, StoreError};
use stream::checkpoint::{CheckpointError, Checkpoints, Position};

/// Separates the function from the table in the name of a mapping.
pub const OF: &str = "--";

/// Attribute with the position, as JSON. Stored, so it is stable.
const POSITION: &str = "Position";

/// Attribute with the stream's ARN. A recreated table has a new stream, where old positions mean nothing.
const STREAM: &str = "Stream";

/// Checkpoints in the ledger's table.
pub struct LedgerCheckpoints<S> {
    store: Arc<S>,
    layout: Layout,
    stream_arn: String,
}

impl<S: Store> LedgerCheckpoints<S> {
    /// Checkpoints of the mappings of one stream.
    #[must_use]
    pub fn new(store: Arc<S>, layout: Layout, stream_arn: &str) -> Self {
        Self { store, layout, stream_arn: stream_arn.to_owned() }
    }

    /// True if a mapping has stored a position in this stream.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the positions cannot be read.
    pub async fn has_any(&self, mapping: &str) -> Result<bool, StoreError> {
        let (query, mut after) = (Query::prefix(None, &key(mapping, "").pk, ""), None);
        loop {
            let page = self.store.query(Table::Ledger, &query, after).await?;
            if page.items.iter().any(|item| text(item, STREAM) == Some(&self.stream_arn)) {
                return Ok(true);
            }
            after = page.next;
            if after.is_none() {
                return Ok(false);
            }
        }
    }

    async fn loaded(&self, key: Key) -> Result<Option<Position>, CheckpointError> {
        let items = self.store.get(Table::Ledger, &[key]).await.map_err(called)?;
        let Some((_, item)) = items.first() else { return Ok(None) };
        if text(item, STREAM) != Some(&self.stream_arn) {
            return Ok(None);
        }
        text(item, POSITION).map(serde_json::from_str).transpose().map_err(lasting)
    }

    async fn saved(&self, key: Key, position: &Position) -> Result<(), CheckpointError> {
        let attributes = [
            (POSITION, AttributeValue::S(serde_json::to_string(position).map_err(lasting)?)),
            (STREAM, AttributeValue::S(self.stream_arn.clone())),
        ];
        let item = ledger_item(&self.layout, &key, attributes);
        let write = Write { table: Table::Ledger, key, action: Action::Put(item), guard: None };
        self.store.write(&write).await.map(drop).map_err(called)
    }
}

impl<S: Store> Checkpoints for LedgerCheckpoints<S> {
    fn load<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
    ) -> BoxFuture<'a, Result<Option<Position>, CheckpointError>> {
        Box::pin(self.loaded(key(mapping, shard)))
    }

    fn save<'a>(
        &'a self,
        mapping: &'a str,
        shard: &'a str,
        position: &'a Position,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        Box::pin(self.saved(key(mapping, shard), position))
    }
}

/// Key of a function's position in a shard. A function has a mapping for each table, with the table's name after
/// [`OF`]; shard names are unique across streams.
fn key(mapping: &str, shard: &str) -> Key {
    let function = mapping.split_once(OF).map_or(mapping, |(function, _)| function);
    Key::new(format!("MAPPING#{function}"), shard)
}

/// Classifies the error of a database call.
fn called(error: StoreError) -> CheckpointError {
    if error.is_unreachable() {
        CheckpointError::Unreachable(error.into())
    } else if error.is_retry() && !error.is_standing() {
        CheckpointError::Transient(error.into())
    } else {
        CheckpointError::Lasting(error.into())
    }
}

fn lasting(error: serde_json::Error) -> CheckpointError {
    CheckpointError::Lasting(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_database_says_whether_to_try_again() {
        let failed = |is_standing, is_unreachable| {
            let (operation, item, source) = ("GetItem", "M".to_owned(), "why".into());
            called(StoreError::Retry { operation, item, busy: None, is_standing, is_unreachable, source })
        };
        assert!(matches!(failed(false, true), CheckpointError::Unreachable(_)));
        assert!(matches!(failed(false, false), CheckpointError::Transient(_)));
        assert!(matches!(failed(true, false), CheckpointError::Lasting(_)));
        let (operation, item, source) = ("GetItem", "M".to_owned(), "why".into());
        assert!(matches!(called(StoreError::Reject { operation, item, source }), CheckpointError::Lasting(_)));
    }
}
