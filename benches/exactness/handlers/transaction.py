"""A marker and the updates of a change in one transaction, as by hand. A change that has its marker is done."""

import os

from botocore.exceptions import ClientError
from changes import client, updates

# DynamoDB takes 100 actions in a transaction; one is the marker.
UPDATES_MAX = 99


def once(event_id, some):
    marker = {
        "TableName": os.environ["MARKERS_TABLE"],
        "Item": {"id": {"S": event_id}},
        "ConditionExpression": "attribute_not_exists(id)",
    }
    try:
        client.transact_write_items(TransactItems=[{"Put": marker}] + [{"Update": update} for update in some])
    except ClientError as error:
        reasons = error.response.get("CancellationReasons", [{}])
        if reasons[0].get("Code") != "ConditionalCheckFailed":
            raise


def lambda_handler(event, context):
    for record in event["Records"]:
        wanted = updates(record)
        for start in range(0, len(wanted), UPDATES_MAX):
            once(f"{record['eventID']}#{start}", wanted[start : start + UPDATES_MAX])
