"""Size and start of the functions, measured: `python tests/python/size.py [--json] [--no-build]`.

Builds the zips that are deployed (arm64), and the functions for this machine, which it runs: a runtime API of its own on
the loopback address hands out events, and an embedded DynamoDB takes the writes. Prints for each function the size of its
zip, the time from its start to its first poll and to its first answer, and the most memory that it had.
Times are of this machine and say nothing of Lambda's; only sizes and answers are held.
Needs: cargo-lambda, ziglang and boto3.
"""

import argparse
import copy
import hashlib
import http.server
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time

import boto3
from built import ROOT
from cargo_lambda import free_port, running

FUNCTIONS = ("aggregate", "propagate", "combined", "sweep")
# Lambda's limit of a zip that is uploaded directly: 50 MB.
ZIP_BYTES_MAX = 50 * 1_000 * 1_000
# How often a function is started for its times; the median is printed.
N_STARTS = 9
# What it is given before its memory is read.
N_EVENTS, N_RECORDS = 40, 50
# A sweep looks at thousands of items, so a few have seen them all.
N_SWEEPS = 3
DEADLINE_S = 60


class RuntimeApi(http.server.ThreadingHTTPServer):
    """What Lambda gives a function: the next event when it asks, and a place for its answers."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Exchange)
        self.polls, self.events, self.answers = queue.Queue(), queue.Queue(), queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """A function that is ended breaks its connection; one that fails is seen by its missing answer."""


class Exchange(http.server.BaseHTTPRequestHandler):
    """A request of a function."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.polls.put(time.monotonic())
        identity, event = self.server.events.get()
        body = json.dumps(event).encode()
        self.send_response(200)
        self.send_header("Lambda-Runtime-Aws-Request-Id", identity)
        self.send_header("Lambda-Runtime-Deadline-Ms", str(int(time.time() * 1_000) + 60_000))
        self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:f")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        answered = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.headers.get("Content-Length"):
            body = self.chunks()
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.answers.put((answered, self.path, body.decode()))

    def chunks(self):
        whole = b""
        while length := int(self.rfile.readline().strip() or b"0", 16):
            whole += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def log_message(self, *_):
        pass


class Started:
    """A function that was started, up to its first poll."""

    def __init__(self, api, process, began):
        self.api, self.process = api, process
        self.first_poll_ms = (api.polls.get(timeout=DEADLINE_S) - began) * 1_000
        self.began = began

    def answer(self, identity, event):
        """What it answers, and when, in milliseconds since it was started."""
        self.api.events.put((identity, event))
        answered, path, body = self.api.answers.get(timeout=DEADLINE_S)
        assert path.endswith(f"/invocation/{identity}/response"), (path, body)
        return json.loads(body), (answered - self.began) * 1_000

    def peak_bytes(self):
        """The most memory that was resident: `VmHWM`, of Linux."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            (line,) = [line for line in status if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1_024


def follow(template, run, number):
    """A record of now: somebody follows one of ten."""
    record = copy.deepcopy(template)
    keys = {"PK": {"S": f"USER#{run}-{number}"}, "SK": {"S": f"FOLLOWS#{run}-star-{number % 10}"}}
    record["eventID"] = hashlib.md5(f"{run} {number}".encode(), usedforsecurity=False).hexdigest()
    record["dynamodb"]["ApproximateCreationDateTime"] = float(int(time.time()))
    record["dynamodb"]["SequenceNumber"] = str(9_000_000_000_000_000_000_000_000 + number)
    record["dynamodb"]["Keys"] = keys
    record["dynamodb"]["NewImage"] = keys | {"EntityType": {"S": "Follow"}}
    return record


def batches(run, n_events, n_records):
    """Events of follows, no two alike."""
    with open(os.path.join(ROOT, "tests", "events", "insert.json"), encoding="utf-8") as file:
        template = json.load(file)["Records"][0]
    for first in range(0, n_events * n_records, n_records):
        yield {"Records": [follow(template, run, number) for number in range(first, first + n_records)]}


def ground(table, run, n_follows):
    """What the records are of: the follows, and those who are followed."""
    with table.batch_writer() as batch:
        for number in range(10):
            batch.put_item(Item={"PK": f"USER#{run}-star-{number}", "SK": "PROFILE", "EntityType": "User", "Name": "A"})
        for number in range(n_follows):
            key = {"PK": f"USER#{run}-{number}", "SK": f"FOLLOWS#{run}-star-{number % 10}"}
            batch.put_item(Item=key | {"EntityType": "Follow"})


def derived(table, run, function):
    """How many follows are in what the function derives, by the table."""
    total = 0
    for number in range(10):
        prefix = "PROFILE#COUNT#follower-count#" if function != "propagate" else "FOLLOWER#"
        condition = boto3.dynamodb.conditions.Key("PK").eq(f"USER#{run}-star-{number}")
        condition &= boto3.dynamodb.conditions.Key("SK").begins_with(prefix)
        items = table.query(KeyConditionExpression=condition)["Items"]
        total += sum(int(item["Value"]) for item in items) if function != "propagate" else len(items)
    return total


def started(function, environment):
    """The function of this machine's build, with a runtime API of its own."""
    binary = os.path.join(ROOT, "target", "release", function)
    api = RuntimeApi()
    variables = environment | {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_port}",
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
    }
    began = time.monotonic()
    return api, running([binary], env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), began


def measured(function, environment, table):
    """Its start, some times, and its memory after many events."""
    polls, answers = [], []
    for start in range(N_STARTS + 1):
        last = start == N_STARTS
        run = f"{function}-{start}"
        n_events, n_records = (N_EVENTS, N_RECORDS) if last else (1, 3)
        if function == "sweep":
            n_events = min(n_events, N_SWEEPS)
        ground(table, run, n_events * n_records)
        events = [{"source": "aws.scheduler"}] * n_events if function == "sweep" else batches(run, n_events, n_records)
        api, child, began = started(function, environment)
        with child as process:
            alive = Started(api, process, began)
            for number, event in enumerate(events):
                answer, answered_ms = alive.answer(f"{run}-{number}", event)
                if function == "sweep":
                    assert answer["SweptItems"] > 0, answer
                else:
                    assert answer == {"batchItemFailures": []}, answer
                if number == 0 and not last:
                    polls.append(alive.first_poll_ms)
                    answers.append(answered_ms)
            peak_bytes = alive.peak_bytes()
        api.shutdown()
        if function != "sweep":
            assert derived(table, run, function) == n_events * n_records, (function, derived(table, run, function))
    return {
        "first_poll_ms": round(statistics.median(polls), 1),
        "first_answer_ms": round(statistics.median(answers), 1),
        "peak_memory_bytes": peak_bytes,
    }


def sizes(function):
    folder = os.path.join(ROOT, "target", "lambda", function)
    zip_bytes = os.path.getsize(os.path.join(folder, "bootstrap.zip"))
    assert zip_bytes < ZIP_BYTES_MAX, (function, zip_bytes)
    return {"zip_bytes": zip_bytes}


def build():
    """The zips for Lambda; and for this machine the functions, and the command line for its database."""
    packages = ["--package", "functions"]
    zips = ["cargo", "lambda", "build", "--locked", "--release", "--arm64", "--output-format", "zip"]
    subprocess.run([*zips, *packages], cwd=ROOT, check=True, stdout=sys.stderr)
    native = ["cargo", "build", "--locked", "--release", "--package", "cli", *packages]
    subprocess.run(native, cwd=ROOT, check=True, stdout=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="prints one JSON object")
    parser.add_argument("--no-build", action="store_true", help="takes what was built before")
    arguments = parser.parse_args()
    if not arguments.no_build:
        build()
    port = free_port()
    environment = os.environ | {
        "TABLE_NAME": "ripple",
        "LEDGER_TABLE_NAME": "ripple-ledger",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    # A database alone: its own functions are said to be where nobody listens.
    dev = [os.path.join(ROOT, "target", "release", "ripple"), "dev", "--port", str(port)]
    dev += ["--functions", f"http://127.0.0.1:{free_port()}"]
    with running(dev, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        for line in service.stdout:
            if line.strip() == "ready":
                break
        table = boto3.resource(
            "dynamodb",
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        ).Table("ripple")
        figures = {function: sizes(function) | measured(function, environment, table) for function in FUNCTIONS}
    if arguments.json:
        print(json.dumps({"n_cores": os.cpu_count(), "n_starts": N_STARTS, "functions": figures}))
        return
    print("| function | zip, arm64 | start to first poll | start to first answer | memory |")
    print("|---|---|---|---|---|")
    for function, figure in figures.items():
        mb, memory_mb = figure["zip_bytes"] / 1e6, figure["peak_memory_bytes"] / 1e6
        times = f"{figure['first_poll_ms']:.0f} ms | {figure['first_answer_ms']:.0f} ms"
        print(f"| `{function}` | {mb:.1f} MB | {times} | {memory_mb:.0f} MB |")


if __name__ == "__main__":
    main()
