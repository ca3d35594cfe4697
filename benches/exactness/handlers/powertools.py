"""Powertools for AWS Lambda (Python): its batch processor, and its idempotency by event ID for each record."""

import os

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from changes import client, updates

processor = BatchProcessor(event_type=EventType.DynamoDBStreams)
persistence = DynamoDBPersistenceLayer(table_name=os.environ["MARKERS_TABLE"])
config = IdempotencyConfig(event_key_jmespath="eventID")


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=persistence)
def record_handler(record):
    for update in updates(record.raw_event):
        client.update_item(**update)


def lambda_handler(event, context):
    config.register_lambda_context(context)
    return process_partial_response(
        event=event, record_handler=record_handler, processor=processor, context=context
    )
