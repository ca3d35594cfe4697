//! Writes: a single `PutItem`, `UpdateItem` or `DeleteItem`, and a transaction of them.

use std::collections::BTreeMap;

use derive::{
    guard::Guard,
    write::{Action, Table, Transaction, Write},
};
use keys::item::Item;
use serde::{Deserialize, Serialize};

use crate::{
    Busy, Outcome, Reason, StoreError, TransactOutcome, Units, Updated,
    check::{self, Refusal},
    dynamo::{
        DynamoStore, StoredWrite, TableNames,
        call::{CancellationReason, Failure, ServiceError},
        failed, without_values,
    },
    expression::UpdateExpression,
    operation, returns_item,
};

/// The code of a failed condition.
const CONDITION_FAILED: &str = "ConditionalCheckFailedException";

/// That the answer has the units that the call consumed.
const TOTAL: &str = "TOTAL";

/// The input of a single write, and of one of a transaction.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct WriteInput<'a> {
    table_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a Item>,
    #[serde(skip_serializing_if = "String::is_empty")]
    update_expression: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    condition_expression: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    expression_attribute_names: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Item::is_empty")]
    expression_attribute_values: Item,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_consumed_capacity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_values: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_values_on_condition_check_failure: Option<&'static str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WriteOutput {
    attributes: Option<Item>,
    consumed_capacity: Option<ConsumedCapacity>,
}

/// What a call consumed in a table.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ConsumedCapacity {
    pub(super) table_name: Option<String>,
    /// The total includes the index units.
    capacity_units: Option<Units>,
}

impl WriteOutput {
    fn units(&self) -> Units {
        self.consumed_capacity.as_ref().and_then(|capacity| capacity.capacity_units).unwrap_or_default()
    }
}

impl<'a> WriteInput<'a> {
    /// Of a write in its stored form.
    pub(super) fn new(StoredWrite { table, pk, key, write }: &'a StoredWrite<'a>) -> Self {
        let (item, UpdateExpression { text, mut names, mut values }) = match &write.action {
            Action::Put(item) => (Some(item), UpdateExpression::default()),
            Action::Update(update) => (None, UpdateExpression::new(update)),
            Action::Delete | Action::Check => (None, UpdateExpression::default()),
        };
        let condition = write.guard.as_ref().map(|guard: &Guard| {
            let condition = guard.condition(pk);
            names.extend(condition.names);
            values.extend(condition.values);
            condition.expression
        });
        Self {
            table_name: table,
            key: item.is_none().then_some(key),
            item,
            update_expression: text,
            condition_expression: condition.unwrap_or_default(),
            expression_attribute_names: names,
            expression_attribute_values: values,
            ..Self::default()
        }
    }
}

pub(super) async fn write(store: &DynamoStore, write: &Write) -> Result<Outcome, StoreError> {
    let (operation, item) = (operation(&write.action), || write.key.for_log());
    check::single(&store.layout, write).map_err(|refusal| refusal.of(operation, &item()))?;
    if matches!(write.action, Action::Check) {
        // Only a transaction has such an action.
        return Err(Refusal::CheckAlone.of(operation, &item()));
    }
    let stored = store.stored(write).map_err(|refusal| refusal.of(operation, &item()))?;
    let input = WriteInput { return_consumed_capacity: Some(TOTAL), ..WriteInput::new(&stored) };
    match store.calls.send::<WriteOutput>(operation, &input).await {
        Ok(output) => Ok(Outcome::Done { units: output.units() }),
        Err(Failure::Refused(ServiceError { code, .. })) if code == CONDITION_FAILED => Ok(Outcome::GuardFailed),
        Err(failure) => Err(failed(operation, item(), failure)),
    }
}

pub(super) async fn update(store: &DynamoStore, write: &Write) -> Result<Updated, StoreError> {
    let (operation, item) = (operation(&write.action), || write.key.for_log());
    check::single(&store.layout, write).map_err(|refusal| refusal.of(operation, &item()))?;
    let stored = store.stored(write).map_err(|refusal| refusal.of(operation, &item()))?;
    let input = WriteInput {
        return_consumed_capacity: Some(TOTAL),
        return_values: returns_item(write).then_some("ALL_NEW"),
        return_values_on_condition_check_failure: Some("ALL_OLD"),
        ..WriteInput::new(&stored)
    };
    let stands = store.stands(write.table, &write.key);
    let inward = |item: Option<Item>| item.and_then(|item| stands.inward(item));
    match store.calls.send::<WriteOutput>(operation, &input).await {
        Ok(output) => Ok(Updated::Done { units: output.units(), item: inward(output.attributes).unwrap_or_default() }),
        Err(Failure::Refused(ServiceError { code, item, .. })) if code == CONDITION_FAILED => {
            Ok(Updated::GuardFailed { item: inward(item) })
        }
        Err(failure) => Err(failed(operation, item(), failure)),
    }
}

// ---- A transaction: `TransactWriteItems` ----

const OPERATION: &str = "TransactWriteItems";

/// Bytes of a token. Source: DynamoDB API reference, `ClientRequestToken`: at most 36 characters, here in hexadecimal.
const TOKEN_BYTES: usize = 16;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Input<'a> {
    transact_items: Vec<TransactItem<'a>>,
    return_consumed_capacity: &'static str,
    client_request_token: String,
}

#[derive(Debug, Serialize)]
enum TransactItem<'a> {
    Put(WriteInput<'a>),
    Update(WriteInput<'a>),
    Delete(WriteInput<'a>),
    ConditionCheck(WriteInput<'a>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Output {
    #[serde(default)]
    consumed_capacity: Vec<ConsumedCapacity>,
}

pub(super) async fn transact(store: &DynamoStore, transaction: &Transaction) -> Result<TransactOutcome, StoreError> {
    check::transaction(&store.layout, transaction).map_err(|(key, refusal)| refusal.of(OPERATION, &key.for_log()))?;
    let stored = |write| store.stored(write).map_err(|refusal| refusal.of(OPERATION, &write.key.for_log()));
    let writes = transaction.writes().iter().map(stored).collect::<Result<Vec<StoredWrite<'_>>, _>>()?;
    let input = Input {
        transact_items: writes.iter().map(action).collect(),
        return_consumed_capacity: TOTAL,
        // It is the same in each attempt of this call.
        client_request_token: token()?,
    };
    match store.calls.send::<Output>(OPERATION, &input).await {
        Ok(output) => Ok(TransactOutcome::Done { units: units(&store.names, &output.consumed_capacity) }),
        Err(failure) => match reasons(&failure, transaction.writes().len()) {
            Some(reasons) => Ok(TransactOutcome::Cancelled { reasons }),
            None => Err(failed(OPERATION, items(transaction), failure)),
        },
    }
}

fn token() -> Result<String, StoreError> {
    let mut bytes = [0; TOKEN_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| StoreError::Retry {
        operation: OPERATION,
        item: String::new(),
        busy: None,
        is_standing: false,
        is_unreachable: false,
        source: "no random bytes for the token of the transaction".into(),
    })?;
    Ok(hex::encode(bytes))
}

/// The items of a transaction, for a message.
fn items(transaction: &Transaction) -> String {
    match transaction.writes() {
        [] => String::new(),
        [only] => only.key.for_log(),
        [first, rest @ ..] => format!("{} and {} more", first.key.for_log(), rest.len()),
    }
}

fn action<'a>(stored: &'a StoredWrite<'a>) -> TransactItem<'a> {
    let input = WriteInput::new(stored);
    match &stored.write.action {
        Action::Put(_) => TransactItem::Put(input),
        Action::Update(_) => TransactItem::Update(input),
        Action::Delete => TransactItem::Delete(input),
        Action::Check => TransactItem::ConditionCheck(input),
    }
}

fn units(names: &TableNames, capacity: &[ConsumedCapacity]) -> Vec<(Table, Units)> {
    let mut units = BTreeMap::<Table, Units>::new();
    for one in capacity {
        // If the service uses a single table, its units count as the main one's.
        let is_main = one.table_name.as_ref().is_none_or(|name| *name != names.ledger || *name == names.main);
        let table = if is_main { Table::Main } else { Table::Ledger };
        *units.entry(table).or_default() += one.capacity_units.unwrap_or_default();
    }
    units.into_iter().collect()
}

/// The reasons for a cancellation, one for each write; `None` for another failure.
///
/// A cancellation without a reason for each write counts as another failure: its positions cannot be trusted.
fn reasons(failure: &Failure, n_writes: usize) -> Option<Vec<Reason>> {
    let Failure::Refused(error) = failure else { return None };
    let reasons: Vec<Reason> = error.reasons.iter().map(reason).collect();
    (error.code == "TransactionCanceledException" && reasons.len() == n_writes).then_some(reasons)
}

fn reason(reason: &CancellationReason) -> Reason {
    match reason.code.as_deref() {
        None | Some("None") => Reason::None,
        Some("ConditionalCheckFailed") => Reason::GuardFailed,
        Some("TransactionConflict") => Reason::Busy(Busy::Conflict),
        Some("ProvisionedThroughputExceeded" | "ThrottlingError" | "RequestLimitExceeded") => {
            Reason::Busy(Busy::Throttled)
        }
        // ValidationError, ItemCollectionSizeLimitExceeded, and future codes of DynamoDB.
        Some(code) => Reason::Rejected(match &reason.message {
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
        let of = |code: &str| {
            let text = |text: &str| Some(text.to_owned());
            reason(&CancellationReason { code: text(code), message: text("why") })
        };
        assert_eq!(of("None"), Reason::None);
        assert_eq!(of("ConditionalCheckFailed"), Reason::GuardFailed);
        assert_eq!(of("TransactionConflict"), Reason::Busy(Busy::Conflict));
        for code in ["ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"] {
            assert_eq!(of(code), Reason::Busy(Busy::Throttled), "{code}");
        }
        for code in ["ValidationError", "ItemCollectionSizeLimitExceeded"] {
            assert_eq!(of(code), Reason::Rejected(format!("{code}: why")));
        }
        assert_eq!(reason(&CancellationReason::default()), Reason::None);
    }

    #[test]
    fn units_are_told_apart_by_table() {
        let names = |main: &str, ledger: &str| TableNames { main: main.to_owned(), ledger: ledger.to_owned() };
        let consumed =
            |table: &str, units| ConsumedCapacity { table_name: Some(table.to_owned()), capacity_units: Some(units) };
        let two = [consumed("l", 4.0), consumed("m", 2.0)];
        assert_eq!(units(&names("m", "l"), &two), vec![(Table::Main, 2.0), (Table::Ledger, 4.0)]);
        assert_eq!(units(&names("m", "m"), &[consumed("m", 2.0)]), vec![(Table::Main, 2.0)]);
    }
}
