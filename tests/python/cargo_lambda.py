"""The compiled functions under `cargo lambda watch`, as Lambda runs them.

Starts `cargo lambda watch` and `ripple dev --functions` on free ports of the loopback address, has an application that
is not ours do writes (`application.py`), waits until the service has caught up, has `ripple verify` find nothing, and
compares the derived data with what the application knows that it wrote. So it does under either ledger. Then invokes
each function with each captured event, and one of a schedule; under receipts, since those events name no shard. Ends
every process that it starts.
Needs: cargo-lambda and boto3.
"""

import contextlib
import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import boto3
import botocore.config
from application import N_THREADS, differing, expected, written
from built import RIPPLE, ROOT, build

DEADLINE_S = 600
# Writes under each ledger.
N_WRITES = {"watermarks": 2_000, "receipts": 5_000}
SEED = 1
# Instances of a function at once; it is one where nothing is said. Lambda starts one a lane, of which `propagate` has ten.
CONCURRENCY = 4
# A captured event that is of a tumbling window is answered with the window's state, without which it would have failed.
DONE = {"batchItemFailures": []}
STATES = {"tumbling-window.json": {"state": {}}}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, **options):
    """A process in a group of its own, which ends with the block."""
    process = subprocess.Popen(command, **{"cwd": ROOT, "start_new_session": True, **options})
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


def in_step(client, endpoint, lines):
    """Waits until the service has caught up with all that was written; then nothing may be found."""
    # The printed time is a whole number of milliseconds, so it changes only in a later one.
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    time.sleep(0.002)
    # Nothing follows from it, but without a write nothing would be printed.
    client.put_item(TableName="ripple", Item={"PK": {"S": "MARK"}, "SK": {"S": now}})

    def caught_up():
        printed = [line.split()[-1] for line in lines if line.startswith("caught up ")]
        return printed[-1:] > [now] or f"caught up with {printed[-1:]}, not with {now}"

    until("caught up", caught_up)
    verify = subprocess.run([RIPPLE, "verify", "--endpoint", endpoint, "--json"], cwd=ROOT, capture_output=True)
    found = json.loads(verify.stdout)
    assert (verify.returncode, found["findings"], found["unreadable"]) == (0, [], []), (verify, lines[-20:])
    return found


def workload(client, endpoint, lines, wanted_writes):
    """The application's writes, and whether all that follows from them is there."""
    began = time.monotonic()
    writers = written(client, wanted_writes, SEED)
    n_writes = sum(writer.n_writes for writer in writers)
    assert n_writes == wanted_writes, n_writes
    print(f"  {n_writes} writes by {N_THREADS} threads in {time.monotonic() - began:.0f} s")
    found = in_step(client, endpoint, lines)
    print(f"  {found['items']} items in step, {time.monotonic() - began:.0f} s after the first write")
    wanted = expected(writers)
    differences = differing(client, wanted)
    assert not differences, f"{len(differences)} of {len(wanted)} differ: {differences[:5]}"
    print(f"  {len(wanted)} derived items are what the application expects")


def events(invoked):
    """Each captured event, to each function that reads the stream."""
    files = sorted(name for name in os.listdir(os.path.join(ROOT, "tests", "events")) if name.endswith(".json"))
    assert len(files) >= 9, files
    for function in ("aggregate", "propagate", "combined"):
        for file in files:
            response = invoked(function, "--data-file", f"tests/events/{file}")
            assert response == DONE | STATES.get(file, {}), (function, file, response)
        print(f"  {function} takes {len(files)} captured events")


def main():
    build()
    for ledger in N_WRITES:
        print(f"  the ledger of {ledger}")
        under(ledger)


def under(ledger):
    database, lambdas = free_port(), free_port()
    endpoint = f"http://127.0.0.1:{database}"
    environment = os.environ | {
        "TABLE_NAME": "ripple",
        "LEDGER_TABLE_NAME": "ripple-ledger",
        "LEDGER": ledger,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        # What hung on a removed post goes when the removal has been seen, not 25 hours later.
        "SETTLE_SECONDS": "0",
    }
    watch = ["cargo", "lambda", "watch", "--ignore-changes", "--concurrency", str(CONCURRENCY)]
    watch += ["-A", "127.0.0.1", "-P", str(lambdas)]
    dev = [RIPPLE, "dev", "--port", str(database), "--functions", f"http://127.0.0.1:{lambdas}", "--ledger", ledger]
    with running(watch, env=environment), running(dev, env=environment, stdout=subprocess.PIPE, text=True) as service:
        for line in service.stdout:
            print(" ", line.rstrip())
            if line.strip() == "ready":
                break
        # A pipe that nobody reads fills up, and the service would wait for it.
        lines = []
        threading.Thread(target=lambda: lines.extend(service.stdout), daemon=True).start()
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=botocore.config.Config(max_pool_connections=N_THREADS),
        )
        workload(client, endpoint, lines, N_WRITES[ledger])
        print(f"  {sum(' done' in line for line in lines)} invocations")

        def invoked(function, *event):
            invoke = ["cargo", "lambda", "invoke", function, "-A", "127.0.0.1", "-P", str(lambdas), *event]
            output = subprocess.run(invoke, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
            return json.loads(output.stdout)

        scheduled = {"source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": {}}

        def jobs_ended():
            swept = invoked("sweep", "--data-ascii", json.dumps(scheduled))
            assert swept["SweptItems"] > 0 and (swept["Suspects"], swept.get("Drift", 0)) == (0, 0), swept
            return swept["due"] == 0 or swept

        # What hung on a removed item is gone over once more, by as many runs as it takes.
        until("sweep takes scheduled events, nothing has drifted, and no job is left", jobs_ended)
        if ledger != "receipts":
            return
        events(invoked)
        # Their records are behind the ledger's horizon, so what would count is refused and listed, and what cannot be
        # decoded is parked. Nothing of it has touched the table.
        parked = subprocess.run([RIPPLE, "parked", "--endpoint", endpoint, "--json"], cwd=ROOT, capture_output=True)
        listed = json.loads(parked.stdout)
        assert parked.returncode == 3 and listed["parked"] and listed["recount"], listed
        in_step(client, endpoint, lines)


if __name__ == "__main__":
    main()
