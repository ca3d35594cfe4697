"""An application that is not ours: boto3, several threads, single puts, updates and deletes on the shipped table.

Each thread has users of its own and is the only one that writes what belongs to them, so that what must be derived in
the end follows from what each thread wrote, whatever the order: `expected` says it, without the catalogue.
Follows, likes and comments name whatever user or post there is, will be, or was.
"""

import collections
import random
import threading

TABLE = "ripple"
N_THREADS = 8
USERS_EACH = 8
POSTS_EACH = 40
# What is done, and how often in a hundred.
ACTIONS = {
    "follow": 22,
    "unfollow": 8,
    "like": 18,
    "unlike": 5,
    "post": 8,
    "comment": 20,
    "rename": 10,
    "delete_comment": 6,
    "delete_post": 3,
}
EVERYBODY = [f"u{thread}-{number}" for thread in range(N_THREADS) for number in range(USERS_EACH)]
EVERY_POST = [f"p{thread}-{number}" for thread in range(N_THREADS) for number in range(POSTS_EACH)]


class Writer:
    """A thread of the application, and what it has left in the table."""

    def __init__(self, client, thread, seed):
        self.client, self.thread, self.random = client, thread, random.Random(seed * 1_000 + thread)
        self.users = [user for user in EVERYBODY if user.startswith(f"u{thread}-")]
        self.unused = [post for post in EVERY_POST if post.startswith(f"p{thread}-")]
        self.names, self.posts, self.comments = {}, {}, {}
        self.follows, self.likes, self.removed = set(), set(), set()
        self.n_writes = 0
        self.failure = None

    def run(self, n_writes):
        try:
            for user in self.users:
                self.names[user] = f"{user} as they signed up"
                self.put(f"USER#{user}", "PROFILE", EntityType="User", Name=self.names[user])
            while self.n_writes < n_writes:
                # An action that finds nothing to undo writes nothing, and another is drawn.
                (action,) = self.random.choices(list(ACTIONS), weights=ACTIONS.values())
                getattr(self, action)(self.random.choice(self.users))
        except Exception as failure:  # The code that waits for the thread reports it.
            self.failure = failure

    def put(self, pk, sk, **attributes):
        self.n_writes += 1
        item = {"PK": pk, "SK": sk} | attributes
        self.client.put_item(TableName=TABLE, Item={name: {"S": text} for name, text in item.items()})

    def delete(self, pk, sk):
        self.n_writes += 1
        self.client.delete_item(TableName=TABLE, Key={"PK": {"S": pk}, "SK": {"S": sk}})

    def one_of(self, those):
        return self.random.choice(sorted(those)) if those else None

    def follow(self, user):
        other = self.random.choice([other for other in EVERYBODY if other != user])
        self.follows.add((user, other))
        self.put(f"USER#{user}", f"FOLLOWS#{other}", EntityType="Follow")

    def unfollow(self, _):
        if pair := self.one_of(self.follows):
            self.follows.remove(pair)
            self.delete(f"USER#{pair[0]}", f"FOLLOWS#{pair[1]}")

    def like(self, user):
        post = self.random.choice(EVERY_POST)
        self.likes.add((user, post))
        keys = {"GSI1PK": f"POST#{post}", "GSI1SK": f"LIKE#USER#{user}"}
        self.put(f"USER#{user}", f"LIKE#POST#{post}", EntityType="Like", **keys)

    def unlike(self, _):
        if pair := self.one_of(self.likes):
            self.likes.remove(pair)
            self.delete(f"USER#{pair[0]}", f"LIKE#POST#{pair[1]}")

    def post(self, user):
        if self.unused:
            post, status = self.unused.pop(), self.random.choice(("published", "published", "draft"))
            key = (f"USER#{user}", f"POST#2026-01-01T00:00:00.{self.n_writes:03}Z#{post}")
            self.posts[post] = (user, status, key)
            self.put(*key, EntityType="Post", Title=f"About {post}", Content="A long text", Status=status)

    def delete_post(self, _):
        if post := self.one_of(self.posts):
            self.removed.add(post)
            self.delete(*self.posts.pop(post)[2])

    def comment(self, user):
        post, time = self.random.choice(EVERY_POST), f"2026-01-02T00:00:00.{self.n_writes:03}Z"
        sk = f"COMMENT#{time}#c{self.thread}-{self.n_writes}"
        self.comments[(f"POST#{post}", sk)] = (user, post)
        keys = {"GSI1PK": f"USER#{user}", "GSI1SK": sk}
        self.put(f"POST#{post}", sk, EntityType="Comment", UserId=user, Text="First!", **keys)

    def delete_comment(self, _):
        if key := self.one_of(self.comments):
            del self.comments[key]
            self.delete(*key)

    def rename(self, user):
        self.n_writes += 1
        self.names[user] = f"{user} after {self.n_writes}"
        self.client.update_item(
            TableName=TABLE,
            Key={"PK": {"S": f"USER#{user}"}, "SK": {"S": "PROFILE"}},
            UpdateExpression="SET #name = :name",
            ExpressionAttributeNames={"#name": "Name"},
            ExpressionAttributeValues={":name": {"S": self.names[user]}},
        )


def written(client, n_writes, seed):
    """Writes this many items with all threads at once, and gives the writers."""
    writers = [Writer(client, thread, seed) for thread in range(N_THREADS)]
    threads = [threading.Thread(target=writer.run, args=(n_writes // N_THREADS,)) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        if writer.failure:
            raise writer.failure
    return writers


def expected(writers):
    """Derived attributes by key, as they must be: `None` is an attribute, or with no others an item, that is not there."""
    names = {user: name for writer in writers for user, name in writer.names.items()}
    posts = {post: made for writer in writers for post, made in writer.posts.items()}
    removed = {post for writer in writers for post in writer.removed}
    follows = {pair for writer in writers for pair in writer.follows}
    comments = {key: by for writer in writers for key, by in writer.comments.items()}
    followers = collections.Counter(followee for _, followee in follows)
    following = collections.Counter(follower for follower, _ in follows)
    published = collections.Counter(user for user, status, _ in posts.values() if status == "published")
    likes = collections.Counter(post for writer in writers for _, post in writer.likes)
    commented = collections.Counter(post for _, post in comments.values())

    def count(number):
        return str(number) if number else None

    wanted = {}
    for user in EVERYBODY:
        wanted[(f"USER#{user}", "PROFILE")] = {
            "FollowerCount": count(followers[user]),
            "FollowingCount": count(following[user]),
            "PostCount": count(published[user]),
        }
        for other in EVERYBODY:
            mirror = {"FollowerName": names[other] if (other, user) in follows else None}
            wanted[(f"USER#{user}", f"FOLLOWER#{other}")] = mirror
    for post, (user, status, _) in posts.items():
        wanted[(f"POST#{post}", "METADATA")] = {
            "AuthorName": names[user],
            "Status": status,
            "LikeCount": count(likes[post]),
            "CommentCount": count(commented[post]),
        }
    for post in removed:
        wanted[(f"POST#{post}", "METADATA")] = {"Title": None}
    # What hung on a post that was removed goes too, if it was there by then.
    wanted |= {key: {"UserName": names[user]} for key, (user, post) in comments.items() if post not in removed}
    return wanted


def differing(client, wanted):
    """What of it the table does not say, with what it says."""
    stored = {}
    for page in client.get_paginator("scan").paginate(TableName=TABLE):
        for item in page["Items"]:
            item = {name: next(iter(value.values())) for name, value in item.items()}
            stored[(item["PK"], item["SK"])] = item
    differences = []
    for key, attributes in wanted.items():
        item = stored.get(key, {})
        # A count that came down to zero is shown as 0, one that never was is not there; both are zero.
        seen = {name: None if item.get(name) == "0" else item.get(name) for name in attributes}
        if seen != attributes:
            differences.append((key, seen, attributes))
    return differences
