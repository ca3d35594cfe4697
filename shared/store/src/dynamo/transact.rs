//! A transaction: `TransactWriteItems`.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::{
    error::{BuildError, SdkError},
    operation::transact_write_items::TransactWriteItemsError,
    types::{
        CancellationReason, ConditionCheck, ConsumedCapacity, Delete, Put, ReturnConsumedCapacity, TransactWriteItem,
        Update,
    },
};
use derive::write::{Action, Table, Transaction};

use super::{DynamoStore, TableNames, stored::StoredWrite, write::Text};
use crate::dynamo::failed;
use crate::dynamo::to_sdk;
use crate::dynamo::without_values;
use crate::{Busy, Reason, StoreError, TransactOutcome, Units, check};

const OPERATION: &str = "TransactWriteItems";

pub(super) async fn transact(store: &DynamoStore, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
    check::transaction(&store.layout, transaction).map_err(|(key, refusal)| refusal.of(OPERATION, &key.for_log()))?;
    let mut actions = Vec::new();
    for write in transaction.writes() {
        let stored = store.stored(write).map_err(|refusal| refusal.of(OPERATION, &write.key.for_log()))?;
        actions.push(action(stored).map_err(|error| StoreError::Reject {
            operation: OPERATION,
            item: write.key.for_log(),
            source: Box::new(error),
        })?);
    }
    let call = store.client.transact_write_items().set_transact_items(Some(actions));
    match call.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await {
        Ok(answer) => Ok(TransactOutcome::Done { units: units(&store.names, answer.consumed_capacity()) }),
        Err(error) => match reasons(&error, transaction.writes().len()) {
            Some(reasons) => Ok(TransactOutcome::Cancelled { reasons }),
            None => Err(failed(OPERATION, items(transaction), &error)),
        },
    }
}

/// The items of a transaction, for a message.
fn items(transaction: &Transaction) -> String {
    match transaction.writes() {
        [] => String::new(),
        [only] => only.key.for_log(),
        [first, rest @ ..] => format!("{} and {} more", first.key.for_log(), rest.len()),
    }
}

fn action(StoredWrite { table, pk, key, write }: StoredWrite<'_>) -> Result<TransactWriteItem, BuildError> {
    let Text { update, condition, names, values } = Text::new(pk, &write);
    let key = Some(to_sdk(&key));
    let item = TransactWriteItem::builder();
    Ok(match &write.action {
        Action::Put(put) => {
            let put = Put::builder().table_name(table).set_item(Some(to_sdk(put))).set_condition_expression(condition);
            item.put(put.set_expression_attribute_names(names).set_expression_attribute_values(values).build()?)
        }
        Action::Update(_) => {
            let up = Update::builder().table_name(table).set_key(key).set_update_expression(update);
            let up = up.set_condition_expression(condition).set_expression_attribute_names(names);
            item.update(up.set_expression_attribute_values(values).build()?)
        }
        Action::Delete => {
            let delete = Delete::builder().table_name(table).set_key(key).set_condition_expression(condition);
            item.delete(delete.set_expression_attribute_names(names).set_expression_attribute_values(values).build()?)
        }
        Action::Check => {
            let check = ConditionCheck::builder().table_name(table).set_key(key).set_condition_expression(condition);
            let check = check.set_expression_attribute_names(names).set_expression_attribute_values(values);
            item.condition_check(check.build()?)
        }
    }
    .build())
}

fn units(names: &TableNames, capacity: &[ConsumedCapacity]) -> Vec<(Table, Units)> {
    let mut units = BTreeMap::<Table, Units>::new();
    for one in capacity {
        // If the service uses a single table, its units count as the main one's.
        let is_main = one.table_name().is_none_or(|name| name != names.ledger || name == names.main);
        let table = if is_main { Table::Main } else { Table::Ledger };
        *units.entry(table).or_default() += one.capacity_units().unwrap_or_default();
    }
    units.into_iter().collect()
}

/// The reasons for a cancellation, one for each write; `None` for another failure.
///
/// A cancellation without a reason for each write counts as another failure: its positions cannot be trusted.
fn reasons<R>(error: &SdkError<TransactWriteItemsError, R>, n_writes: usize) -> Option<Vec<Reason>> {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
        return None;
    };
    let reasons: Vec<Reason> = cancelled.cancellation_reasons().iter().map(reason).collect();
    (reasons.len() == n_writes).then_some(reasons)
}

fn reason(reason: &CancellationReason) -> Reason {
    match reason.code() {
        None | Some("None") => Reason::None,
        Some("ConditionalCheckFailed") => Reason::GuardFailed,
        Some("TransactionConflict") => Reason::Busy(Busy::Conflict),
        Some("ProvisionedThroughputExceeded" | "ThrottlingError" | "RequestLimitExceeded") => {
            Reason::Busy(Busy::Throttled)
        }
        // ValidationError, ItemCollectionSizeLimitExceeded, and future codes of DynamoDB.
        Some(code) => Reason::Rejected(match reason.message() {
            Some(message) => format!("{code}: {}", without_values(message)),
            None => code.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_what_to_do() {
        let of = |code: &str| reason(&CancellationReason::builder().code(code).message("why").build());
        assert_eq!(of("None"), Reason::None);
        assert_eq!(of("ConditionalCheckFailed"), Reason::GuardFailed);
        assert_eq!(of("TransactionConflict"), Reason::Busy(Busy::Conflict));
        for code in ["ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"] {
            assert_eq!(of(code), Reason::Busy(Busy::Throttled), "{code}");
        }
        for code in ["ValidationError", "ItemCollectionSizeLimitExceeded"] {
            assert_eq!(of(code), Reason::Rejected(format!("{code}: why")));
        }
        assert_eq!(reason(&CancellationReason::builder().build()), Reason::None);
    }

    #[test]
    fn units_are_told_apart_by_table() {
        let names = |main: &str, ledger: &str| TableNames { main: main.to_owned(), ledger: ledger.to_owned() };
        let consumed = |table: &str, units| ConsumedCapacity::builder().table_name(table).capacity_units(units).build();
        let two = [consumed("l", 4.0), consumed("m", 2.0)];
        assert_eq!(units(&names("m", "l"), &two), vec![(Table::Main, 2.0), (Table::Ledger, 4.0)]);
        assert_eq!(units(&names("m", "m"), &[consumed("m", 2.0)]), vec![(Table::Main, 2.0)]);
    }
}
