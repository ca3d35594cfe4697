"""`ripple dev` with the manifest of an example, on a free port of this machine, for a test of that example."""

import contextlib
import json
import subprocess
import sys
import threading

from built import RIPPLE, ROOT, build
from cargo_lambda import running


@contextlib.contextmanager
def served(manifest, *options):
    """Builds the command, starts the service with these options, and ends it with the block. Gives its endpoint."""
    build()
    dev = [RIPPLE, "dev", "--port", "0", "--config", manifest, *options]
    with running(dev, stdout=subprocess.PIPE, text=True) as service:
        lines = []
        for line in service.stdout:
            lines.append(line.strip())
            if lines[-1] == "ready":
                break
        # A pipe that nobody reads fills up, and the service would wait for it.
        threading.Thread(target=lambda: list(service.stdout), daemon=True).start()
        yield next(line.split()[-1] for line in lines if line.startswith("endpoint "))


def in_step(endpoint, manifest):
    """Waits until all that was written is handled. Then `ripple verify` may find nothing, and nothing may be parked."""
    options = ["--endpoint", endpoint, "--config", manifest]
    subprocess.run([RIPPLE, "wait", "--timeout", "120", *options], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    for command in ("verify", "parked"):
        done = subprocess.run([RIPPLE, command, "--json", *options], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"ripple {command} ended with {done.returncode}: {done.stdout}{done.stderr}")
        if command == "verify":
            print(f"  {json.loads(done.stdout)['items']} items in step")


def compare(what, stored, recounted):
    """Ends the test if two dictionaries differ. A zero is as good as no number: a count shows 0 only if it was more."""
    differing = []
    for key in sorted(stored.keys() | recounted.keys()):
        pair = [{name: value for name, value in side.get(key, {}).items() if value} for side in (stored, recounted)]
        if pair[0] != pair[1]:
            differing.append((key, *pair))
    if differing:
        sys.exit(f"{what}: {len(differing)} of {len(recounted)} differ, such as (key, stored, recounted) {differing[:3]}")
    print(f"  {len(recounted)} {what} are what a recount gives")
