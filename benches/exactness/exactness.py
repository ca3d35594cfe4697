"""Which designs keep derived data right when functions and calls fail: `docs/exactness.md`, by one command.

For each design and workload: starts `ripple dev` as a DynamoDB with streams, whose own functions do nothing; writes;
delivers the stream's records to the design's handlers through one mapping, with the same seeded faults; and recounts.
Then, without faults, the rate at which a design works off a backlog, if an answer of DynamoDB takes 5 ms.
Needs boto3, aws-lambda-powertools, Node, and `@aws-sdk/client-dynamodb` in target/exactness.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata

import boto3
import botocore.config
import mapping as mappings
import plots
import process as processes

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
from served import served  # noqa: E402

HANDLERS = HERE / "handlers"
MANIFEST = str(HERE / "ripple.toml")
PAGE = ROOT / "docs" / "exactness.md"
BEGIN, END = "<!-- exactness: begin -->", "<!-- exactness: end -->"
N_CHANGES = 200
N_DELETED, N_RECREATED = 12, 6
N_RENAMES = 40
N_COMMENTS = 60
N_COMMENTS_BEFORE = 20
N_LANES = 4
# Of the rate: likes that warm the functions, backlogs and their likes, and Lambda's default for the records of a batch.
N_WARM, N_BACKLOGS, N_BACKLOG, N_RECORDS = 200, 3, 1000, 100
CREDENTIALS = {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local",
               "AWS_SECRET_ACCESS_KEY": "local"}
RENAMES, TARGETS, RATE = "renames", "targets", "rate"
# Their titles, with the number of targets.
WORKLOADS = {
    "hot": "hot: 4 posts, {} targets",
    "zipf": "Zipf: 100 posts, exponent 1.2, {} targets",
    "cold": "cold: a post for each like, {} targets",
    "deletes": "deletes: 60 posts, and likes come and go, {} targets",
    TARGETS: f"targets: 40 posts with likes; {N_DELETED} posts are deleted, and {N_RECREATED} of them are created again, {{}} targets",
    RENAMES: f"renames: {N_RENAMES} renames of 10 users and {N_COMMENTS} new comments, {{}} comments",
    RATE: f"Records a second: the fastest of {N_BACKLOGS} backlogs of {N_BACKLOG:,} likes, each of another post",
}
DESIGNS = {
    "plain.py": "plain `ADD`/`SET`, Python",
    "plain.mjs": "plain `ADD`/`SET`, Node",
    "powertools.py": "Powertools' idempotency, Python",
    "transaction.py": "transactions with markers, Python",
    "watermarks": "Ripple, watermarks",
    "receipts": "Ripple, receipts",
}
LEDGERS = ("watermarks", "receipts")


class Nothing(BaseHTTPRequestHandler):
    """Answers each invocation of `ripple dev` at once: the mapping of the bench delivers, not that of `dev`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = b'{"batchItemFailures":[],"state":{}}'
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def database(ledger):
    """The endpoint of an empty DynamoDB with the application's table."""
    nothing = ThreadingHTTPServer(("127.0.0.1", 0), Nothing)
    nothing.daemon_threads = True
    threading.Thread(target=nothing.serve_forever, daemon=True).start()
    functions_at = f"http://127.0.0.1:{nothing.server_address[1]}"
    try:
        with served(MANIFEST, "--console-port", "0", "--ledger", ledger, "--functions", functions_at) as endpoint:
            yield endpoint
    finally:
        nothing.shutdown()
        nothing.server_close()


def client(name, endpoint):
    # The embedded database's names of shards are shorter than those that botocore accepts.
    config = botocore.config.Config(parameter_validation=False)
    return boto3.client(name, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local",
                        aws_secret_access_key="local", config=config)


def item(pk, sk, kind, **attributes):
    texts = {"pk": pk, "sk": sk, "type": kind, **attributes}
    return {name: {"S": text} for name, text in texts.items()}


def like(user, post):
    return item(f"USER#{user:05}", f"LIKE#{post:05}", "Like")


def post_item(post):
    return item(f"POST#{post:05}", "POST", "Post")


def comment(number, user):
    name = f"{number:05}"
    return item(f"POST#{number % 40:05}", f"COMMENT#{name}", "Comment", userId=f"{user:05}",
                gsi1pk=f"USER#{user:05}", gsi1sk=f"COMMENT#{name}")


def likes(kind, draw):
    """The posts, and the writes: an item to put, or to delete."""
    if kind == "deletes":
        present, writes = [], []
        for user in range(N_CHANGES):
            if present and draw.random() < 0.45:
                writes.append(("delete", present.pop(draw.randrange(len(present)))))
            else:
                present.append(like(user, draw.randrange(60)))
                writes.append(("put", present[-1]))
        return range(60), writes
    if kind == TARGETS:
        # The posts are deleted after half of the likes, and created again before the last quarter.
        posts, writes = range(40), [("put", like(user, draw.randrange(40))) for user in range(N_CHANGES // 2)]
        deleted = draw.sample(posts, N_DELETED)
        present = [each for _, each in writes]
        for place, user in enumerate(range(N_CHANGES // 2, N_CHANGES)):
            if place == 0:
                writes += [("delete", post_item(post)) for post in deleted]
            if place == N_CHANGES // 4:
                writes += [("put", post_item(post)) for post in deleted[:N_RECREATED]]
            if draw.random() < 0.5:
                writes.append(("delete", present.pop(draw.randrange(len(present)))))
            else:
                present.append(like(user, draw.randrange(40)))
                writes.append(("put", present[-1]))
        return posts, writes
    posts = {"hot": range(4), "zipf": range(100), "cold": range(N_CHANGES), RATE: range(N_WARM + N_BACKLOGS * N_BACKLOG)}[kind]
    if kind in ("cold", RATE):
        chosen = list(posts)
    else:
        weights = [1 / (post + 1) ** 1.2 if kind == "zipf" else 1 for post in posts]
        chosen = draw.choices(posts, weights, k=N_CHANGES)
    return posts, [("put", like(user, post)) for user, post in enumerate(chosen)]


def renames(draw):
    """Users with comments, and writes: a rename, often with a new comment of the same user beside it."""
    user = lambda number, name: item(f"USER#{number:05}", "PROFILE", "User", userName=name)
    before = [user(number, f"name-{number}") for number in range(10)]
    before += [comment(number, number % 10) | {"userName": {"S": f"name-{number % 10}"}} for number in range(N_COMMENTS_BEFORE)]
    writes = [user(draw.randrange(10), f"renamed-{number}") for number in range(N_RENAMES)]
    for number in range(N_COMMENTS):
        place = draw.randrange(len(writes))
        author = writes[place].get("gsi1pk") or writes[place]["pk"]
        writes.insert(place + draw.randrange(2), comment(N_COMMENTS_BEFORE + number, int(author["S"].removeprefix("USER#"))))
    return before, [("put", each) for each in writes]


def write(dynamodb, writes, pause_s=0.0):
    for way, each in writes:
        if way == "put":
            dynamodb.put_item(TableName="ripple", Item=each)
        else:
            dynamodb.delete_item(TableName="ripple", Key={name: each[name] for name in ("pk", "sk")})
        time.sleep(pause_s)


def scan(dynamodb):
    for page in dynamodb.get_paginator("scan").paginate(TableName="ripple", ConsistentRead=True):
        yield from page["Items"]


def errors(dynamodb, workload):
    """The error of each target: of a count its distance, of a copied name 0 or 1."""
    items = list(scan(dynamodb))
    of = lambda kind: [each for each in items if each.get("type", {}).get("S") == kind]
    if workload == RENAMES:
        names = {each["pk"]["S"]: each["userName"] for each in of("User")}
        return [int(each.get("userName") != names[each["gsi1pk"]["S"]]) for each in of("Comment")]
    counted = {}
    for each in of("Like"):
        post = each["sk"]["S"].removeprefix("LIKE#")
        counted[post] = counted.get(post, 0) + 1
    stored = {each["pk"]["S"].removeprefix("POST#"): int(each.get("likeCount", {}).get("N", 0)) for each in of("Post")}
    return [abs(stored[post] - counted.get(post, 0)) for post in stored]


def remains(dynamodb):
    """Of the posts that are deleted: those that are an item with a count alone, and those with a counter."""
    items = [each for each in scan(dynamodb) if each["pk"]["S"].startswith("POST#")]
    posts = {each["pk"]["S"] for each in items if each.get("type", {}).get("S") == "Post"}
    left = [each for each in items if each["pk"]["S"] not in posts]
    stubs = {each["pk"]["S"] for each in left if each["sk"]["S"] == "POST"}
    return [len(stubs), len({each["pk"]["S"] for each in left} - stubs)]


def is_applications(record):
    """The event filter of the handlers by hand: a new or removed like, a new comment, a changed user."""
    image = record["dynamodb"].get("NewImage") or record["dynamodb"]["OldImage"]
    kind, event = image.get("type", {}).get("S"), record["eventName"]
    return (kind, event) in {("Like", "INSERT"), ("Like", "REMOVE"), ("Comment", "INSERT"), ("User", "MODIFY")}


def is_like(record):
    """The event filter of `aggregate`, by `ripple infra`. That of `propagate` passes all others."""
    return record["dynamodb"]["Keys"]["sk"]["S"].startswith("LIKE#")


def functions(design, workload, arguments):
    """The commands of a design, each with its event filter, its lanes, and whether its mapping has a window."""
    lanes = N_LANES if workload in (RENAMES, RATE) else 1
    if design.endswith(".py"):
        return [([sys.executable, str(HANDLERS / "run.py"), design[:-3]], is_applications, lanes, False)]
    if design.endswith(".mjs"):
        return [([arguments.node, str(HANDLERS / design)], is_applications, lanes, False)]
    counting = ([str(arguments.binaries / "aggregate")], is_like, lanes, design == "watermarks")
    following = ([str(arguments.binaries / "propagate")], lambda record: not is_like(record), lanes, False)
    # The first one gets the faults of the handlers by hand.
    return [following, counting] if workload == RENAMES else [counting, following]


@contextlib.contextmanager
def delayed(endpoint, meter):
    """The endpoint behind a relay, which delays each answer and counts the calls."""
    command = [sys.executable, str(HERE / "relay.py"), endpoint.rsplit(":")[-1]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as relay:
        yield f"http://127.0.0.1:{int(relay.stdout.readline())}"
        meter.n_calls = int(relay.communicate()[0])


def written(record):
    """When it was written, in seconds. The embedded database numbers its records by a clock in microseconds."""
    return int(record["dynamodb"]["SequenceNumber"]) % 10**17 / 1e6


def effects(taken, started):
    """For each change of the application: when it was written, and when its effect was, in seconds.

    That is the end of the delivery that handled its record. If that left the display of a counter to `propagate`, it is
    the end of the delivery of the counter's record, which has no `Shown`.
    """
    def handled(record):
        return next(each.ends[record["dynamodb"]["SequenceNumber"]] for each in started if each.passes(record))

    displays, found = {}, []
    for record in taken:
        key, image = record["dynamodb"]["Keys"], record["dynamodb"].get("NewImage", {})
        if "#COUNT#" in key["sk"]["S"] and "Shown" not in image:
            displays.setdefault(key["pk"]["S"], []).append((written(record), handled(record)))
    for record in filter(is_applications, taken):
        counted, post = handled(record), record["dynamodb"]["Keys"]["sk"]["S"].replace("LIKE#", "POST#")
        displayed = [end for start, end in displays.get(post, []) if start <= counted]
        found.append((written(record), max([counted, *displayed])))
    return found


def records(stream, arn, iterators):
    """The records of one look at each shard, as Lambda passes them on."""
    for shard, iterator in list(iterators.items()):
        page = stream.get_records(ShardIterator=iterator)
        iterators[shard] = page.get("NextShardIterator", iterator)
        for record in page["Records"]:
            changed = record["dynamodb"]
            changed["ApproximateCreationDateTime"] = changed["ApproximateCreationDateTime"].timestamp()
            record.pop("userIdentity", None)
            yield record | {"eventSourceARN": arn}


def run(design, workload, seed, arguments):
    """One design under one workload."""
    draw = random.Random(f"{seed}/{workload}")
    meter = processes.Meter()
    ledger = design if design == "receipts" else "watermarks"
    environment = os.environ | CREDENTIALS | {
        "TABLE_NAME": "ripple", "LEDGER_TABLE_NAME": "ripple-ledger", "MARKERS_TABLE": "markers", "LEDGER": ledger,
        "CONFIG": MANIFEST, "NODE_ROOT": str(arguments.node_root / "package.json"), "RUST_LOG": "warn",
    }
    with database(ledger) as endpoint, open(arguments.log, "ab") as log, contextlib.ExitStack() as stack:
        dynamodb, stream = client("dynamodb", endpoint), client("dynamodbstreams", endpoint)
        dynamodb.create_table(TableName="markers", KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                              AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                              BillingMode="PAY_PER_REQUEST")
        if workload == RENAMES:
            before, writes = renames(draw)
        else:
            posts, writes = likes(workload, draw)
            before = [post_item(post) for post in posts]
        write(dynamodb, [("put", each) for each in before])
        arn = dynamodb.describe_table(TableName="ripple")["Table"]["LatestStreamArn"]
        shards = stream.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        iterators = {shard["ShardId"]: stream.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST")["ShardIterator"] for shard in shards}
        # Counts: all is written before the first delivery, so that batches are the same for each design; where posts are
        # deleted, the half before that is delivered first; of the rate, each backlog after the one before.
        writer = threading.Thread(target=write, args=(client("dynamodb", endpoint), writes, 0.02))
        first, size = {TARGETS: (N_CHANGES // 2, len(writes)), RATE: (N_WARM, N_BACKLOG)}.get(workload, (len(writes), 1))
        parts = [writes[:first], *(writes[at : at + size] for at in range(first, len(writes), size))]
        draws, n_records, database_at = f"{seed}/{workload}", mappings.BATCH, endpoint
        if workload == RATE:
            draws, n_records, database_at = None, N_RECORDS, stack.enter_context(delayed(endpoint, meter))
        if workload == RENAMES:
            writer.start()
        else:
            write(dynamodb, parts[0])
        started = [mappings.Mapping(command, environment, database_at, passes, draws and f"{draws}/{place}", n_lanes, n_records,
                                    is_windowed, meter, log)
                   for place, (command, passes, n_lanes, is_windowed)
                   in enumerate(functions(design, workload, arguments))]
        n_quiet, taken, later = 0, [], parts[1:]
        try:
            while n_quiet < 3 or later:
                if n_quiet == 3:
                    write(dynamodb, later.pop(0))
                    n_quiet = 0
                is_writing, page = writer.is_alive(), list(records(stream, arn, iterators))
                for record in page:
                    for each in started:
                        each.take(record)
                taken += page
                is_quiet = not page and not is_writing and all(each.is_idle for each in started)
                n_quiet = n_quiet + 1 if is_quiet else 0
                time.sleep(0.1)
        finally:
            for each in started:
                each.end()
        return Result(design, workload, errors(dynamodb, workload), remains(dynamodb), len(writes), effects(taken, started), meter)


@dataclasses.dataclass
class Result:
    design: str
    workload: str
    errors: list
    remains: list
    n_changes: int
    effects: list
    meter: processes.Meter

    def row(self):
        """Its cells, by the head of their column."""
        row, m = {"design": DESIGNS[self.design]}, self.meter
        cost = {"calls a change": f"{m.n_calls / self.n_changes:.2f}", "CPU seconds for 1,000": f"{1000 * m.cpu_s / self.n_changes:.2f}"}
        if self.workload == RATE:
            backlogs = [self.effects[at : at + N_BACKLOG] for at in range(N_WARM, len(self.effects), N_BACKLOG)]
            # From the last write of a backlog to the last effect.
            elapsed_s = min(max(end for _, end in backlog) - backlog[-1][0] for backlog in backlogs)
            return row | {"records a second": f"{N_BACKLOG / elapsed_s:.0f}"} | cost
        # Rounding may not make a wrong count invisible.
        right = min(100 * self.errors.count(0) / len(self.errors), 99.9)
        row["right"] = f"{right:.1f} %" if any(self.errors) else "100 %"
        if self.workload != RENAMES:
            row |= {"mean error": f"{sum(self.errors) / len(self.errors):.2f}", "largest error": max(self.errors)}
        if self.workload == TARGETS:
            row |= dict(zip(("stubs", "counters left"), self.remains))
        lags = sorted(1000 * (end - start) for start, end in self.effects)
        lags = {f"lag p{percent}, ms": f"{lags[math.ceil(len(lags) * percent / 100) - 1]:,.0f}" for percent in (50, 99)}
        return row | {"write units a change": f"{m.write_units / self.n_changes:.2f}"} | cost | lags

    def faults(self):
        m = self.meter
        return {"deliveries": m.n_deliveries, "killed": m.n_killed, "unanswered": m.n_unanswered, "twice at once": m.n_twice,
                "hung": m.n_hung, "calls lost": m.n_lost, "calls throttled": m.n_throttled, "failed": m.n_failed}


def table(rows):
    lines = [rows[0], ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def versions(arguments):
    """Those of the chosen designs."""
    said = lambda *command: subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    packages = ["boto3"] + ["aws-lambda-powertools"] * ("powertools.py" in arguments.designs)
    all_of = [said(ROOT / "target/debug/ripple", "--version"), f"Python {sys.version.split()[0]}",
              *(f"`{name}` {metadata.version(name)}" for name in packages)]
    if "plain.mjs" in arguments.designs:
        sdk = json.loads((arguments.node_root / "node_modules/@aws-sdk/client-dynamodb/package.json").read_text())
        all_of += [f"Node {said(arguments.node, '--version').lstrip('v')}", f"`@aws-sdk/client-dynamodb` {sdk['version']}"]
    return ", ".join(all_of)


def report(results, seed, arguments):
    """The tables of the page."""
    parts = [f"Seed {seed}; {versions(arguments)}.\n"]
    for workload in arguments.workloads:
        of = [result for result in results if result.workload == workload]
        parts.append(f"### {WORKLOADS[workload].format(len(of[0].errors))}\n\n" + table([result.row() for result in of]))
    totals = {}
    for result in results:
        if result.workload != RATE:
            totals.setdefault(result.design, collections.Counter()).update(result.faults())
    if totals:
        parts.append("### The faults\n\n" + table([{"design": DESIGNS[design]} | total for design, total in totals.items()]))
    return "\n".join(parts)


def draw(name, title, results, workloads, column):
    """Draws a column of the tables, with a panel for each workload."""
    label = lambda result: re.sub("`|' idempotency| with markers", "", DESIGNS[result.design])
    panels = {workload: [(label(it), it.row()[column], it.design in LEDGERS) for it in results if it.workload == workload]
              for workload in workloads}
    PAGE.with_name(name).write_text(plots.plot(title, panels))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--node", default="node")
    parser.add_argument("--node-root", type=pathlib.Path, default=ROOT / "target" / "exactness", help="folder with node_modules")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--log", default=os.devnull, help="file for what the handlers print")
    parser.add_argument("--release", action="store_true", help="measures release builds of Ripple's functions")
    parser.add_argument("--page", action="store_true", help="writes the tables and plots of docs/exactness.md; implies --release")
    arguments = parser.parse_args()
    profile = ["--release"] if arguments.release or arguments.page else []
    arguments.binaries = ROOT / "target" / ("release" if profile else "debug")
    # So that the processes of the bench end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Without --release, the build that the tests use: dependencies have other features in a build of one package.
    packages = ["--package", "functions"] if profile else ["--workspace"]
    build = ["cargo", "build", "--locked", "--quiet", *packages, "--bin", "aggregate", "--bin", "propagate"]
    subprocess.run([*build, *profile], cwd=ROOT, check=True)
    results = []
    for workload in arguments.workloads:
        for design in arguments.designs:
            # A copy uses no ledger.
            if workload == RENAMES and design == "receipts":
                continue
            results.append(run(design, workload, arguments.seed, arguments))
            print(workload, results[-1].row(), results[-1].meter, file=sys.stderr, flush=True)
    text = report(results, arguments.seed, arguments)
    if arguments.page:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}")
        draw("exactness-right.svg", "Share of targets that are right", results, list(WORKLOADS)[:-1], "right")
        draw("exactness-rate.svg", "Records a second, if an answer takes 5 ms", results, [RATE], "records a second")
    else:
        print(text)
    # Without faults, each design is right.
    wrong = [result for result in results if (result.design in LEDGERS or result.workload == RATE) and any(result.errors)]
    if wrong:
        sys.exit("; ".join(f"{DESIGNS[it.design]} is wrong under {it.workload}, seed {arguments.seed}" for it in wrong))


if __name__ == "__main__":
    main()
