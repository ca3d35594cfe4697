"""Plain `ADD` and `SET`: an update for each change, and an error fails the whole batch."""

from changes import client, updates


def lambda_handler(event, context):
    for record in event["Records"]:
        for update in updates(record):
            client.update_item(**update)
