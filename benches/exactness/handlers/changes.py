"""What a stream record asks for, as the arguments of `update_item`. All handlers in Python share it."""

import os

import boto3

TABLE = os.environ["TABLE_NAME"]
client = boto3.client("dynamodb")


def like(record):
    """A like adds one to its post, and a removed like takes one away."""
    post = record["dynamodb"]["Keys"]["sk"]["S"].removeprefix("LIKE#")
    return {
        "TableName": TABLE,
        "Key": {"pk": {"S": f"POST#{post}"}, "sk": {"S": "POST"}},
        "UpdateExpression": "ADD likeCount :n",
        "ExpressionAttributeValues": {":n": {"N": "1" if record["eventName"] == "INSERT" else "-1"}},
    }


def name(comment, user_name):
    return {
        "TableName": TABLE,
        "Key": {"pk": comment["pk"], "sk": comment["sk"]},
        "UpdateExpression": "SET userName = :name",
        "ExpressionAttributeValues": {":name": user_name},
    }


def updates(record):
    item = record["dynamodb"].get("NewImage") or record["dynamodb"]["OldImage"]
    kind, event = item["type"]["S"], record["eventName"]
    if kind == "Like" and event in ("INSERT", "REMOVE"):
        return [like(record)]
    if kind == "Comment" and event == "INSERT":
        key = {"pk": item["gsi1pk"], "sk": {"S": "PROFILE"}}
        user = client.get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item")
        return [name(item, user["userName"])] if user else []
    if kind == "User" and event == "MODIFY" and item["userName"] != record["dynamodb"]["OldImage"]["userName"]:
        pages = client.get_paginator("query").paginate(
            TableName=TABLE,
            IndexName="byUser",
            KeyConditionExpression="gsi1pk = :user",
            ExpressionAttributeValues={":user": item["pk"]},
        )
        return [name(comment, item["userName"]) for page in pages for comment in page["Items"]]
    return []
