"""The chat's application: each of its writes.

Run as a program, it writes a few items to the tables of `ripple dev` and prints what Ripple made of them.
Needs: boto3, and Python 3.11 or later.
"""

import argparse
import subprocess

import boto3
from boto3.dynamodb.conditions import Key


class Chat:
    def __init__(self, database):
        self.workspaces, self.rooms = database.Table("Workspaces"), database.Table("Rooms")
        self.messages, self.users = database.Table("Messages"), database.Table("Users")

    def put_workspace(self, workspace):
        self.workspaces.put_item(Item={"workspaceId": workspace})

    def put_user(self, user, name):
        self.users.put_item(Item={"userId": user, "name": name})

    def put_channel(self, channel, workspace, name):
        key = f"CHANNEL#{channel}"
        self.rooms.put_item(Item={"pk": key, "sk": key, "type": "Channel", "workspaceId": workspace, "name": name})

    def remove_channel(self, channel):
        self.rooms.delete_item(Key={"pk": f"CHANNEL#{channel}", "sk": f"CHANNEL#{channel}"})

    def join(self, workspace, user, role):
        key = {"pk": f"WORKSPACE#{workspace}", "sk": f"MEMBER#{user}"}
        index = {"gsi1pk": f"USER#{user}", "gsi1sk": f"WORKSPACE#{workspace}"}
        self.rooms.put_item(Item=key | index | {"type": "Member", "role": role})

    def leave(self, workspace, user):
        self.rooms.delete_item(Key={"pk": f"WORKSPACE#{workspace}", "sk": f"MEMBER#{user}"})

    def send(self, channel, sent_at, author, text, mentions=()):
        size = len(text.encode())
        item = {"channelId": channel, "sentAt": sent_at, "authorId": author, "text": text, "size": size}
        self.messages.put_item(Item=item | {"mentions": list(mentions)})

    def unsend(self, channel, sent_at):
        self.messages.delete_item(Key={"channelId": channel, "sentAt": sent_at})

    def channel(self, channel):
        return self.rooms.get_item(Key={"pk": f"CHANNEL#{channel}", "sk": f"CHANNEL#{channel}"}).get("Item")

    def workspaces_of(self, user):
        return self._of(user, "WORKSPACE#")

    def mentions_of(self, user):
        return self._of(user, "MENTION#")

    def _of(self, user, prefix):
        condition = Key("pk").eq(f"USER#{user}") & Key("sk").begins_with(prefix)
        return self.rooms.query(KeyConditionExpression=condition)["Items"]


def chat_at(endpoint):
    given = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return Chat(boto3.resource("dynamodb", endpoint_url=endpoint, **given))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--endpoint", required=True)
    options.add_argument("--wait", required=True, help="command that ends when everything is handled")
    options = options.parse_args()
    chat = chat_at(options.endpoint)
    chat.put_workspace("w1")
    chat.put_user("ada", "Ada")
    chat.put_channel("c1", "w1", "general")
    chat.join("w1", "ada", "owner")
    for sent_at, text in [(9, "hello"), (10, "is anybody there?"), (1_000, "never mind")]:
        chat.send("c1", sent_at, "ada", text, ["ada"] if sent_at == 10 else [])
    chat.unsend("c1", 1_000)
    subprocess.run(options.wait, shell=True, check=True, stdout=subprocess.DEVNULL)
    channel = chat.channel("c1")
    counts = f"{channel['messageCount']} messages by {channel['authorCount']} author"
    print(f"{channel['name']}: {counts}, the last at {channel['lastAt']}: {channel['lastText']}")
    workspace = chat.workspaces.get_item(Key={"workspaceId": "w1"})["Item"]
    print(f"w1: {workspace['channelCount']} channel, {workspace['memberCount']} member")
    role, mentions = chat.workspaces_of("ada")[0]["role"], chat.mentions_of("ada")
    print(f"ada is {role} of w1, and mentioned in {len(mentions)} message")


if __name__ == "__main__":
    main()
