"""The models of examples/models and the chat of examples/chat under `ripple dev`: clients write, repeat, move and delete in
several tables, and loops over the ground items recount every derived attribute.

Needs: boto3.
"""

import collections
import importlib.util
import os
import random
import subprocess
import sys
import threading

import boto3
from built import ROOT
from served import RIPPLE, compare, in_step, served

SEED = 27
N_THREADS = 4
# Actions of each thread.
N_ACTIONS = 150
# Ids with the characters that join parts of a key, and texts that look like escapes.
USERS = [f"u{number}" for number in range(6)] + ["Ann & Bob #1", "50%", "a%23b"]
POSTS = [f"p{number}" for number in range(8)] + ["x#y", "-"]
# Their order as numbers is not that of their texts.
TIMES = [0, 3, 20, 100, 1_700_000_000_000, -5, -40]


def example(name):
    """The folder of an example, and its client."""
    folder = os.path.join(ROOT, "examples", name)
    spec = importlib.util.spec_from_file_location(f"client_of_{name}", os.path.join(folder, "client.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return os.path.join(folder, "ripple.toml"), module


def run(act):
    """Runs the actions of each thread; some are repeated, as after an answer that did not arrive."""
    failures = []

    def actions(number):
        draw = random.Random(SEED * 100 + number)
        try:
            for step in range(N_ACTIONS):
                action = act(draw, number, step)
                for _ in range(draw.choice([1, 1, 1, 2])):
                    action()
        except Exception as failure:  # The main thread reports it.
            failures.append(failure)

    threads = [threading.Thread(target=actions, args=(number,)) for number in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def items(table):
    pages = table.meta.client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]


def stored(all_items, key, names):
    return {key(item): {name: item.get(name) for name in names} for item in all_items}


def act_on_models(models, draw, number, step):
    user, post, at = draw.choice(USERS), draw.choice(POSTS), draw.choice(TIMES) + step
    comment, other = f"c{number}-{draw.randrange(20)}", draw.choice(POSTS)
    return draw.choices(
        [
            lambda: models.put_user(user, f"{user} {step}"),
            lambda: models.rename_user(user, f"{user} {step}"),
            lambda: models.remove_user(user),
            lambda: models.put_post(post, user, at, f"title {step}", step % 3 != 0),
            lambda: models.publish(post, step % 2 == 0),
            lambda: models.remove_post(post),
            lambda: models.put_comment(comment, post, user, at, "text"),
            lambda: models.move_comment(comment, other),
            lambda: models.remove_comment(comment),
            lambda: models.like(post, user),
            lambda: models.unlike(post, user),
        ],
        [10, 10, 2, 15, 8, 3, 20, 8, 8, 20, 8],
    )[0]


def check_models(models):
    users, posts = items(models.users), items(models.posts)
    comments, likes = items(models.comments), items(models.likes)
    names = {user["id"]: user["name"] for user in users}
    of_user = {
        user["id"]: {
            "postCount": sum(post["authorId"] == user["id"] and post["published"] for post in posts),
            "commentCount": sum(comment["authorId"] == user["id"] for comment in comments),
        }
        for user in users
    }
    of_post = {}
    for post in posts:
        n_likes = sum(like["postId"] == post["id"] for like in likes)
        of_post[post["id"]] = {
            "authorName": names.get(post["authorId"]),
            "commentCount": sum(comment["postId"] == post["id"] for comment in comments),
            "likeCount": n_likes,
            "popular": n_likes > 0,
        }
    of_comment = {comment["id"]: {"authorName": names.get(comment["authorId"])} for comment in comments}
    by_id = lambda item: item["id"]
    compare("users", stored(users, by_id, ["postCount", "commentCount"]), of_user)
    compare("posts", stored(posts, by_id, ["authorName", "commentCount", "likeCount", "popular"]), of_post)
    compare("comments", stored(comments, by_id, ["authorName"]), of_comment)


WORKSPACES = ["w1", "w 2", "w#3"]
CHANNELS = [f"ch{number}" for number in range(5)]
MEMBERS = [f"u{number}" for number in range(6)]


def act_on_chat(chat, draw, number, step):
    # A text of a declared form holds `%23` for a `#`, and the application writes it so.
    workspace, channel, user = draw.choice(WORKSPACES), draw.choice(CHANNELS), draw.choice(MEMBERS)
    in_form = workspace.replace("#", "%23")
    at = draw.choice(TIMES) + draw.randrange(10)
    return draw.choices(
        [
            lambda: chat.put_workspace(workspace),
            lambda: chat.put_user(user, f"{user} {step}"),
            lambda: chat.put_channel(channel, workspace, f"channel {step}"),
            lambda: chat.remove_channel(channel),
            lambda: chat.join(in_form, user, draw.choice(["owner", "guest"])),
            lambda: chat.leave(in_form, user),
            lambda: chat.send(channel, at, user, "x" * (step % 9), mentioned(draw, at)),
            lambda: chat.unsend(channel, at),
        ],
        [8, 12, 10, 2, 12, 8, 35, 13],
    )[0]


def mentioned(draw, at):
    """Users that a message mentions, some of them twice. The form of a mention's key has no negative time."""
    return [] if at < 0 else draw.choices(MEMBERS, k=draw.choice([0, 0, 1, 2, 4]))


def check_chat(chat):
    rooms, messages = items(chat.rooms), items(chat.messages)
    names = {user["userId"]: user["name"] for user in items(chat.users)}
    of_type = collections.defaultdict(list)
    for room in rooms:
        of_type[room["type"]].append(room)
    part = lambda text: text.split("#", 1)[1].replace("%23", "#")
    of_workspace = {
        it["workspaceId"]: {
            "channelCount": sum(channel["workspaceId"] == it["workspaceId"] for channel in of_type["Channel"]),
            "memberCount": sum(part(member["pk"]) == it["workspaceId"] for member in of_type["Member"]),
        }
        for it in items(chat.workspaces)
    }
    of_channel = {}
    for channel in of_type["Channel"]:
        here = sorted((m for m in messages if m["channelId"] == part(channel["pk"])), key=lambda m: m["sentAt"])
        last = here[-1] if here else {}
        of_channel[channel["pk"]] = {
            "messageCount": len(here),
            "bytes": sum(message["size"] for message in here),
            "firstAt": here[0]["sentAt"] if here else None,
            "lastAt": last.get("sentAt"),
            "lastText": last.get("text"),
            "lastBy": last.get("authorId"),
            "authorCount": len({message["authorId"] for message in here}),
            "recent": [{name: m[name] for name in ("sentAt", "authorId", "text")} for m in reversed(here[-3:])],
        }
    of_member = {(it["pk"], it["sk"]): {"userName": names.get(part(it["sk"]))} for it in of_type["Member"]}
    mirrors = {(f"USER#{part(it['sk'])}", it["pk"]): {"role": it["role"]} for it in of_type["Member"]}
    of_message = {(it["channelId"], it["sentAt"]): {"authorName": names.get(it["authorId"])} for it in messages}
    authors, mentions = collections.Counter(), {}
    for message in messages:
        authors[(f"CHANNEL#{message['channelId']}", f"AUTHOR#{message['authorId']}")] += 1
        for user in message["mentions"]:
            sort_key = f"MENTION#{int(message['sentAt']):013}#{message['channelId']}"
            mentions[(f"USER#{user}", sort_key)] = {"authorId": message["authorId"], "text": message["text"]}
    of_author = {pair: {"messageCount": number} for pair, number in authors.items()}
    counts = ["messageCount", "bytes", "firstAt", "lastAt", "lastText", "lastBy", "authorCount", "recent"]
    key = lambda item: (item["pk"], item["sk"])
    of_workspaces = stored(items(chat.workspaces), lambda it: it["workspaceId"], ["channelCount", "memberCount"])
    compare("workspaces", of_workspaces, of_workspace)
    compare("channels", stored(of_type["Channel"], lambda it: it["pk"], counts), of_channel)
    compare("members", stored(of_type["Member"], key, ["userName"]), of_member)
    compare("workspaces of users", stored(of_type["WorkspaceOfUser"], key, ["role"]), mirrors)
    compare("authors", stored(of_type["Author"], key, ["messageCount"]), of_author)
    compare("mentions", stored(of_type["Mention"], key, ["authorId", "text"]), mentions)
    compare("messages", stored(messages, lambda it: (it["channelId"], it["sentAt"]), ["authorName"]), of_message)


def cascaded(models, endpoint, manifest):
    """Removes a post. Its comments and likes in the other tables must go with it, and nothing else."""
    models.put_user("owner", "Owner")
    for post in ("kept", "removed"):
        models.put_post(post, "owner", 1, post, True)
        for number in range(30):
            models.put_comment(f"{post}-{number}", post, "owner", number, "text")
            models.like(post, f"u{number}")
    in_step(endpoint, manifest)
    models.remove_post("removed")
    in_step(endpoint, manifest)
    left = {
        post: (
            sum(comment["postId"] == post for comment in items(models.comments)),
            sum(like["postId"] == post for like in items(models.likes)),
        )
        for post in ("kept", "removed")
    }
    if left != {"kept": (30, 30), "removed": (0, 0)}:
        sys.exit(f"comments and likes after a post was removed: {left}")
    print("  what hangs on a removed post is gone, and nothing else")
    check_models(models)


def repaired(endpoint, manifest):
    """Alters a counter, which stands in Ripple's own table. A verification must find it, and a repair must mend it."""
    given = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    own = boto3.resource("dynamodb", endpoint_url=endpoint, **given).Table("ripple")
    counter = next(item for item in items(own) if item["RippleType"] == "Counter" and item["Value"] > 0)
    key = {name: counter[name] for name in ("RipplePK", "RippleSK")}
    own.update_item(Key=key, AttributeUpdates={"Value": {"Action": "ADD", "Value": 5}})
    options = ["--endpoint", endpoint, "--config", manifest]
    subprocess.run([RIPPLE, "wait", "--timeout", "120", *options], check=True, stdout=subprocess.DEVNULL)
    for command, code in [(["verify"], 3), (["repair", "--apply"], 0)]:
        done = subprocess.run([RIPPLE, *command, *options], capture_output=True, text=True)
        if done.returncode != code:
            sys.exit(f"ripple {command[0]} ended with {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    in_step(endpoint, manifest)


def main():
    for name, of, act, check, options in [
        ("models", "models_at", act_on_models, check_models, ["--ledger", "watermarks"]),
        ("chat", "chat_at", act_on_chat, check_chat, ["--ledger", "receipts"]),
        ("chat", "chat_at", act_on_chat, check_chat, ["--ledger", "watermarks"]),
    ]:
        manifest, client = example(name)
        print(f"{name}, {' '.join(options)}")
        with served(manifest, *options) as endpoint:
            application = getattr(client, of)(endpoint)
            run(lambda draw, number, step: act(application, draw, number, step))
            in_step(endpoint, manifest)
            check(application)
            if name == "models":
                cascaded(application, endpoint, manifest)
            repaired(endpoint, manifest)
            check(application)


if __name__ == "__main__":
    main()
