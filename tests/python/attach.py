"""A table whose items were there before Ripple was: `docs/attach.md`, "Fill existing items".

Has an application write (`application.py`) while no function runs, lets `ripple verify` say what is missing, has
`examples/set-findings.py` write it, and compares the table with what the application expects.
Needs: boto3.
"""

import json
import os
import subprocess
import sys
import tempfile

import boto3
import botocore.config
from application import N_THREADS, differing, expected, written
from cargo_lambda import ROOT, free_port, running

N_WRITES = 1_000
SEED = 2
# A copy onto a mirror is found when the mirror is there.
ROUNDS_MAX = 2


def main():
    subprocess.run(["cargo", "build", "--locked", "--workspace", "--bins"], cwd=ROOT, check=True)
    ripple = os.path.join(ROOT, "target", "debug", "ripple")
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    # A database alone: the functions are said to be where nobody listens.
    dev = [ripple, "dev", "--port", str(port), "--functions", f"http://127.0.0.1:{free_port()}"]
    with running(dev, env=environment, stdout=subprocess.PIPE, text=True) as service:
        for line in service.stdout:
            if line.strip() == "ready":
                break
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=botocore.config.Config(max_pool_connections=N_THREADS),
        )
        wanted = expected(written(client, N_WRITES, SEED))
        missing = differing(client, wanted)
        assert missing, "something has derived already"

        for n_rounds in range(ROUNDS_MAX + 1):
            verify = [ripple, "verify", "--endpoint", endpoint, "--at-rest", "--json"]
            ended = subprocess.run(verify, cwd=ROOT, env=environment, capture_output=True, text=True)
            assert ended.returncode in (0, 3), ended
            found = json.loads(ended.stdout)
            if ended.returncode == 0:
                break
            assert n_rounds < ROUNDS_MAX, found
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(ended.stdout)
                file.flush()
                script = [sys.executable, "examples/set-findings.py", file.name, "--table", "ripple"]
                subprocess.run([*script, "--endpoint-url", endpoint], cwd=ROOT, env=environment, check=True)
        differences = differing(client, wanted)
        assert not differences, f"{len(differences)} of {len(wanted)} differ: {differences[:5]}"
        print(f"  {len(missing)} derived items were missing, and are there after {n_rounds} rounds")


if __name__ == "__main__":
    main()
