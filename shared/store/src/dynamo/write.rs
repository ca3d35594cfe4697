//! A single write: `PutItem`, `UpdateItem` or `DeleteItem`.

use std::collections::BTreeMap;

use derive::{
    guard::Guard,
    write::{Action, Write},
};
use keys::item::Item;
use serde::{Deserialize, Serialize};

use super::{
    DynamoStore,
    call::{Failure, ServiceError},
    failed,
    stored::StoredWrite,
};
use crate::{
    Outcome, StoreError, Units, Updated, check, expression::UpdateExpression, operation, refusal::Refusal, returns_item,
};

/// The code of a failed condition.
const CONDITION_FAILED: &str = "ConditionalCheckFailedException";

/// That the answer has the units that the call consumed.
pub(super) const TOTAL: &str = "TOTAL";

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
    pub(super) capacity_units: Option<Units>,
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
