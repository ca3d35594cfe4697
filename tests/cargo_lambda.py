"""The compiled functions under `cargo lambda watch`, as Lambda runs them.

Starts `cargo lambda watch` and `ripple dev --functions` on free ports of the loopback address, writes with boto3, and
waits until the derived data is right. Then invokes each function, with a captured event or one of a schedule. Ends
every process that it starts.
Needs: cargo-lambda and boto3.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import boto3

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEADLINE_S = 600


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, **options):
    """A process in a group of its own, which ends with the block."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until(what, holds):
    """Asks again until it holds: the first answer waits for the functions to be compiled."""
    end = time.monotonic() + DEADLINE_S
    last = None
    while time.monotonic() < end:
        last = holds()
        if last is True:
            print(f"  {what}")
            return
        time.sleep(0.2)
    sys.exit(f"not after {DEADLINE_S} s: {what}: {last}")


def main():
    database, lambdas = free_port(), free_port()
    environment = os.environ | {
        "TABLE_NAME": "ripple",
        "LEDGER_TABLE_NAME": "ripple-ledger",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{database}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    subprocess.run(["cargo", "build", "--locked", "--workspace", "--bins"], cwd=ROOT, check=True)
    ripple = os.path.join(ROOT, "target", "debug", "ripple")
    watch = ["cargo", "lambda", "watch", "--ignore-changes", "-A", "127.0.0.1", "-P", str(lambdas)]
    dev = [ripple, "dev", "--port", str(database), "--functions", f"http://127.0.0.1:{lambdas}"]
    with running(watch, env=environment), running(dev, env=environment, stdout=subprocess.PIPE, text=True) as service:
        for line in service.stdout:
            print(" ", line.rstrip())
            if line.strip() == "ready":
                break
        client = boto3.client(
            "dynamodb",
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )

        def put(**attributes):
            client.put_item(TableName="ripple", Item={name: {"S": text} for name, text in attributes.items()})

        def get(pk, sk):
            item = client.get_item(TableName="ripple", Key={"PK": {"S": pk}, "SK": {"S": sk}}).get("Item", {})
            return {name: next(iter(value.values())) for name, value in item.items()}

        put(PK="USER#bob", SK="PROFILE", EntityType="User", Name="Bob")
        for name in ("ann", "cid", "dan"):
            put(PK=f"USER#{name}", SK="PROFILE", EntityType="User", Name=name)
            put(PK=f"USER#{name}", SK="FOLLOWS#bob", EntityType="Follow")
        put(PK="USER#ann", SK="PROFILE", EntityType="User", Name="Anna")
        client.delete_item(TableName="ripple", Key={"PK": {"S": "USER#dan"}, "SK": {"S": "FOLLOWS#bob"}})

        def right():
            bob, follower = get("USER#bob", "PROFILE"), get("USER#bob", "FOLLOWER#ann")
            gone = get("USER#bob", "FOLLOWER#dan")
            seen = (bob.get("FollowerCount"), follower.get("FollowerName"), gone)
            return seen == ("2", "Anna", {}) or seen

        until("aggregate and propagate keep count, mirror and name", right)
        verify = subprocess.run([ripple, "verify", "--endpoint", environment["AWS_ENDPOINT_URL"]], cwd=ROOT)
        assert verify.returncode == 0, verify

        def invoked(function, *event):
            invoke = ["cargo", "lambda", "invoke", function, "-A", "127.0.0.1", "-P", str(lambdas), *event]
            output = subprocess.run(invoke, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
            return json.loads(output.stdout)

        scheduled = {"source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": {}}
        swept = invoked("sweep", "--data-ascii", json.dumps(scheduled))
        assert swept["items"] > 0 and (swept["jobs"], swept["drift"]) == (0, 0), swept
        print("  sweep takes a scheduled event, and nothing has drifted")
        for function in ("aggregate", "propagate"):
            response = invoked(function, "--data-file", "tests/events/insert.json")
            assert response == {"batchItemFailures": []}, response
            print(f"  {function} takes a captured event")
        # Its records are behind the ledger's horizon: refused, and listed.
        parked = subprocess.run([ripple, "parked", "--endpoint", environment["AWS_ENDPOINT_URL"]], cwd=ROOT)
        assert parked.returncode == 3, parked


if __name__ == "__main__":
    main()
