//! A single write: `PutItem`, `UpdateItem` or `DeleteItem`.

use std::{collections::HashMap, error::Error};

use super::{DynamoStore, stored::StoredWrite};
use crate::dynamo::failed;
use crate::dynamo::{from_sdk, to_sdk, unless_empty};
use crate::{Outcome, StoreError, Updated, check, expression::UpdateExpression, operation, refusal::Refusal};
use aws_sdk_dynamodb::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    operation::update_item::UpdateItemError,
    types::{
        AttributeValue as SdkValue, ConsumedCapacity, ReturnConsumedCapacity::Total, ReturnValue::AllNew,
        ReturnValuesOnConditionCheckFailure::AllOld,
    },
};
use derive::{
    guard::Guard,
    write::{Action, Write},
};

/// The expressions of a write, without its item.
pub(super) struct Text {
    pub(super) update: Option<String>,
    pub(super) condition: Option<String>,
    pub(super) names: Option<HashMap<String, String>>,
    pub(super) values: Option<HashMap<String, SdkValue>>,
}

impl Text {
    /// Of a write in its stored form, in a table with this partition key.
    pub(super) fn new(pk: &str, write: &Write) -> Self {
        let UpdateExpression { text: update, mut names, mut values } = match &write.action {
            Action::Update(update) => UpdateExpression::new(update),
            Action::Put(_) | Action::Delete | Action::Check => UpdateExpression::default(),
        };
        let condition = write.guard.as_ref().map(|guard: &Guard| {
            let condition = guard.condition(pk);
            names.extend(condition.names);
            values.extend(condition.values);
            condition.expression
        });
        Self {
            update: (!update.is_empty()).then_some(update),
            condition,
            names: unless_empty(names),
            values: unless_empty(to_sdk(&values)),
        }
    }
}

pub(super) async fn write(store: &DynamoStore, write: &Write) -> Result<Outcome, StoreError> {
    check::single(&store.layout, write)
        .map_err(|refusal| refusal.of(operation(&write.action), &write.key.for_log()))?;
    let StoredWrite { table, pk, key, write: stored } = stored(store, write)?;
    let Text { update, condition, names, values } = Text::new(pk, &stored);
    let key = Some(to_sdk(&key));
    match &stored.action {
        Action::Put(item) => {
            let call = store.client.put_item().table_name(table).set_item(Some(to_sdk(item)));
            let call = call.set_condition_expression(condition).return_consumed_capacity(Total);
            let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
            outcome(write, call.send().await.map(|answer| answer.consumed_capacity))
        }
        Action::Update(_) => {
            let call = store.client.update_item().table_name(table).set_key(key).set_update_expression(update);
            let call = call.set_condition_expression(condition).return_consumed_capacity(Total);
            let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
            outcome(write, call.send().await.map(|answer| answer.consumed_capacity))
        }
        Action::Delete => {
            let call = store.client.delete_item().table_name(table).set_key(key);
            let call = call.set_condition_expression(condition).return_consumed_capacity(Total);
            let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
            outcome(write, call.send().await.map(|answer| answer.consumed_capacity))
        }
        // Only a transaction has such an action; it was refused earlier.
        Action::Check => Err(Refusal::CheckAlone.of(operation(&write.action), &write.key.for_log())),
    }
}

pub(super) async fn update(store: &DynamoStore, write: &Write) -> Result<Updated, StoreError> {
    check::single(&store.layout, write)
        .map_err(|refusal| refusal.of(operation(&write.action), &write.key.for_log()))?;
    let StoredWrite { table, pk, key, write: stored } = stored(store, write)?;
    let stands = store.stands(write.table, &write.key);
    let Text { update, condition, names, values } = Text::new(pk, &stored);
    let call = store.client.update_item().table_name(table);
    let call = call.set_key(Some(to_sdk(&key))).set_update_expression(update);
    let call = call.set_condition_expression(condition).return_consumed_capacity(Total);
    let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
    let call = call.return_values(AllNew).return_values_on_condition_check_failure(AllOld);
    match call.send().await {
        Ok(answer) => Ok(Updated::Done {
            units: answer.consumed_capacity.and_then(|capacity| capacity.capacity_units).unwrap_or_default(),
            item: answer.attributes.and_then(|item| stands.inward(from_sdk(item))).unwrap_or_default(),
        }),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(failure)) => {
                Ok(Updated::GuardFailed { item: failure.item.clone().and_then(|item| stands.inward(from_sdk(item))) })
            }
            _ => Err(failed(operation(&write.action), write.key.for_log(), &error)),
        },
    }
}

fn stored<'a>(store: &'a DynamoStore, write: &'a Write) -> Result<StoredWrite<'a>, StoreError> {
    store.stored(write).map_err(|refusal| refusal.of(operation(&write.action), &write.key.for_log()))
}

fn outcome<E>(
    write: &Write,
    answer: Result<Option<ConsumedCapacity>, SdkError<E, HttpResponse>>,
) -> Result<Outcome, StoreError>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match answer {
        // The total includes the index units.
        Ok(capacity) => Ok(Outcome::Done { units: capacity.and_then(|c| c.capacity_units).unwrap_or_default() }),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(Outcome::GuardFailed),
        Err(error) => Err(failed(operation(&write.action), write.key.for_log(), &error)),
    }
}
