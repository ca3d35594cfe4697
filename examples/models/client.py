"""The application of the models: each of its writes and reads.

It writes plain items, as code that a tool generated from a schema does, and knows nothing of Ripple.
Run as a program, it writes a few items to the tables of `ripple dev` and prints what Ripple made of them.
Needs: boto3, and Python 3.11 or later.
"""

import argparse
import subprocess

import boto3
from boto3.dynamodb.conditions import Key


class Models:
    def __init__(self, database):
        self.users, self.posts = database.Table("User"), database.Table("Post")
        self.comments, self.likes = database.Table("Comment"), database.Table("Like")

    def put_user(self, user, name):
        self.users.put_item(Item={"id": user, "name": name})

    def rename_user(self, user, name):
        self._set(self.users, {"id": user}, "name", name)

    def remove_user(self, user):
        self.users.delete_item(Key={"id": user})

    def put_post(self, post, author, created_at, title, published):
        item = {"id": post, "authorId": author, "createdAt": created_at, "title": title, "published": published}
        self.posts.put_item(Item=item)

    def publish(self, post, published):
        self._set(self.posts, {"id": post}, "published", published)

    def remove_post(self, post):
        self.posts.delete_item(Key={"id": post})

    def put_comment(self, comment, post, author, created_at, text):
        item = {"id": comment, "postId": post, "authorId": author, "createdAt": created_at, "text": text}
        self.comments.put_item(Item=item)

    def move_comment(self, comment, post):
        self._set(self.comments, {"id": comment}, "postId", post)

    def remove_comment(self, comment):
        self.comments.delete_item(Key={"id": comment})

    def like(self, post, user):
        self.likes.put_item(Item={"postId": post, "userId": user})

    def unlike(self, post, user):
        self.likes.delete_item(Key={"postId": post, "userId": user})

    def posts_of(self, author):
        """The author's posts, the newest first."""
        query = self.posts.query(
            IndexName="byAuthor", KeyConditionExpression=Key("authorId").eq(author), ScanIndexForward=False
        )
        return query["Items"]

    @staticmethod
    def _set(table, key, name, value):
        """Sets an attribute of an item that exists."""
        names = {f"#{number}": of for number, of in enumerate([name, *key])}
        exists = " AND ".join(f"attribute_exists(#{number + 1})" for number in range(len(key)))
        try:
            table.update_item(
                Key=key,
                UpdateExpression="SET #0 = :value",
                ConditionExpression=exists,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":value": value},
            )
        except table.meta.client.exceptions.ConditionalCheckFailedException:
            pass


def models_at(endpoint):
    given = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return Models(boto3.resource("dynamodb", endpoint_url=endpoint, **given))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--endpoint", required=True)
    options.add_argument("--wait", required=True, help="command that ends when everything is handled")
    options = options.parse_args()
    models = models_at(options.endpoint)
    models.put_user("u1", "Ada")
    models.put_user("u2", "Grace")
    models.put_post("p1", "u1", 1_700_000_000_000, "Notes", True)
    models.put_post("p2", "u1", 1_700_000_100_000, "Engines", True)
    models.put_comment("c1", "p1", "u2", 1_700_000_200_000, "Well said")
    models.like("p1", "u2")
    models.rename_user("u1", "Ada Lovelace")
    subprocess.run(options.wait, shell=True, check=True, stdout=subprocess.DEVNULL)
    for post in models.posts_of("u1"):
        counts = f"{post.get('commentCount', 0)} comments, {post.get('likeCount', 0)} likes"
        print(f"{post['title']} by {post['authorName']}: {counts}")
    user = models.users.get_item(Key={"id": "u1"})["Item"]
    print(f"{user['name']}: {user['postCount']} posts")


if __name__ == "__main__":
    main()
