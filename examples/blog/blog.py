"""A blog in one table. A hand-written function counts its likes and comments, and copies the users' names onto comments.

    python3 examples/blog/blog.py ENDPOINT                makes the table `blog`, and writes into it
    python3 examples/blog/blog.py ENDPOINT --on           writes on, until it is stopped
    python3 examples/blog/blog.py ENDPOINT --on --alone   the same, without the function

The function gets the changes in batches, as from Lambda. Of 100 batches 4 are delivered again, because the function was
killed, and of 100 writes 2 lose their answer, so that the SDK repeats them. A seed decides which: the first run always
writes the same. Needs: boto3.
"""

import argparse
import itertools
import random
import time

import boto3

TABLE = "blog"
SEED = 47
N_USERS, N_POSTS, N_ACTIONS, BATCH = 40, 60, 1_000, 20
KILLED, LOST = 0.04, 0.02
# Of a run that goes on, in seconds.
PAUSE_S = 0.05


def client_of(endpoint):
    local = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return boto3.client("dynamodb", endpoint_url=endpoint, **local)


def key(pk, sk):
    return {"PK": {"S": pk}, "SK": {"S": sk}}


def make(client):
    """The table with its index."""
    names = ["PK", "SK", "GSI1PK", "GSI1SK"]
    keys = lambda pk, sk: [{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}]
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=keys("PK", "SK"),
        GlobalSecondaryIndexes=[{"IndexName": "GSI1", "KeySchema": keys("GSI1PK", "GSI1SK"), "Projection": {"ProjectionType": "ALL"}}],
    )


class Function:
    """The hand-written function, and what goes wrong with it."""

    def __init__(self, client, draw):
        self.client, self.draw = client, draw

    def invoke(self, batch):
        while self.draw.random() < KILLED:
            # Killed somewhere behind its first write, so the whole batch is delivered again.
            self.handle(batch[: self.draw.randrange(1, len(batch) + 1)])
        self.handle(batch)

    def handle(self, batch):
        for old, new in batch:
            entity = (new or old)["EntityType"]["S"]
            if entity in ("Like", "Comment") and (old is None or new is None):
                self.add((new or old)["PK"], f"{entity}Count", 1 if new else -1)
            elif entity == "User" and old and old["Name"] != new["Name"]:
                self.copy(new["PK"], new["Name"])

    def add(self, post, attribute, number):
        update = {"UpdateExpression": "ADD #count :number", "ExpressionAttributeNames": {"#count": attribute}}
        for _ in range(2 if self.draw.random() < LOST else 1):
            values = {":number": {"N": str(number)}}
            self.client.update_item(TableName=TABLE, Key=key(post["S"], "METADATA"), ExpressionAttributeValues=values, **update)

    def copy(self, user, name):
        condition = "GSI1PK = :user AND begins_with(GSI1SK, :comment)"
        values = {":user": user, ":comment": {"S": "COMMENT#"}}
        of_user = {"IndexName": "GSI1", "KeyConditionExpression": condition, "ExpressionAttributeValues": values}
        for comment in self.client.query(TableName=TABLE, **of_user)["Items"]:
            update = {"UpdateExpression": "SET UserName = :name", "ExpressionAttributeValues": {":name": name}}
            self.client.update_item(TableName=TABLE, Key={"PK": comment["PK"], "SK": comment["SK"]}, **update)


class Application:
    """Writes likes and comments, takes some back, and renames users."""

    def __init__(self, client, seed):
        self.client, self.draw = client, random.Random(seed)
        self.items, self.records = {}, []
        # The name that a user's session shows, which is as old as the session.
        self.sessions = {}

    def put(self, pk, sk, entity, **attributes):
        item = {name: {"S": text} for name, text in {"PK": pk, "SK": sk, "EntityType": entity, **attributes}.items()}
        self.client.put_item(TableName=TABLE, Item=item)
        self.records.append((self.items.get((pk, sk)), item))
        self.items[(pk, sk)] = item

    def delete(self, pk, sk):
        self.client.delete_item(TableName=TABLE, Key=key(pk, sk))
        self.records.append((self.items.pop((pk, sk)), None))

    def begin(self):
        for number in range(N_USERS):
            self.sessions[number] = f"User {number}"
            self.put(f"USER#u{number}", "PROFILE", "User", Name=f"User {number}", Email=f"u{number}@example.org")
        for number in range(N_POSTS):
            author = f"u{self.draw.randrange(N_USERS)}"
            self.put(f"POST#p{number}", "METADATA", "Post", Title=f"About {number}", AuthorId=author)

    def act(self, step):
        draw, user, post = self.draw, self.draw.randrange(N_USERS), f"POST#p{self.draw.randrange(N_POSTS)}"
        action = draw.choices(["like", "comment", "rename", "unlike", "remove"], [50, 35, 4, 8, 3])[0]
        if action == "like":
            self.put(post, f"LIKE#u{user}", "Like", UserId=f"u{user}")
        elif action == "comment":
            keys = {"GSI1PK": f"USER#u{user}", "GSI1SK": f"COMMENT#c{step:05}"}
            self.put(post, f"COMMENT#c{step:05}", "Comment", UserId=f"u{user}", UserName=self.sessions[user], Text="First!", **keys)
        elif action == "rename":
            # A session of this user goes on with the old name now and then.
            name = f"User {user} since {step}"
            self.put(f"USER#u{user}", "PROFILE", "User", Name=name, Email=f"u{user}@example.org")
            self.sessions[user] = draw.choice([name, name, self.sessions[user]])
        else:
            prefix = "LIKE#" if action == "unlike" else "COMMENT#"
            those = sorted(key for key in self.items if key[1].startswith(prefix))
            if those:
                self.delete(*draw.choice(those))

    def load(self):
        """Finds what an earlier run has written, and gives the number of the next action."""
        pages = self.client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
        self.items = {(item["PK"]["S"], item["SK"]["S"]): item for page in pages for item in page["Items"]}
        users = [item for item in self.items.values() if item["EntityType"]["S"] == "User"]
        self.sessions = {int(user["PK"]["S"].removeprefix("USER#u")): user["Name"]["S"] for user in users}
        return 1 + max(int(sk.removeprefix("COMMENT#c")) for _, sk in self.items if sk.startswith("COMMENT#"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("endpoint")
    parser.add_argument("--on", action="store_true", help="writes on, until it is stopped")
    parser.add_argument("--alone", action="store_true", help="without the hand-written function")
    arguments = parser.parse_args()
    client = client_of(arguments.endpoint)
    application, function = Application(client, SEED), Function(client, random.Random(SEED))
    if arguments.on:
        steps = itertools.count(application.load())
    else:
        make(client)
        application.begin()
        steps = range(N_ACTIONS)
    for step in steps:
        application.act(step)
        if len(application.records) >= BATCH or step == N_ACTIONS - 1:
            batch, application.records = application.records, []
            if not arguments.alone:
                function.invoke(batch)
        if arguments.on:
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
