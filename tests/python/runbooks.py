"""Runs every aws, sam and ripple command of the pages for deployers and operators as far as it goes without an account.

- `aws` parses and validates each command, then finds nobody at its endpoint. What a page for a person on call tells to
  do is compared with OperatorPolicy.
- `sam build` from the root finds its template and lays out every package; a stub stands for the compiler.
- `ripple` takes the command's options, then finds nobody at its endpoint.
- `infra/scratch.sh` undoes a fault when a command behind it fails; stubs stand for `aws`, `sam` and `cargo`.

Needs: awscli and aws-sam-translator beside this interpreter, the folder with `sam`, and the compiled `ripple`.

    python tests/python/runbooks.py SAM_BIN
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import botocore.session
from policies import documents, resolved
from samtranslator.yaml_helper import yaml_parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(sys.executable).parent
RIPPLE = ROOT / "target" / "debug" / "ripple"

# Pages for who deploys, and for who is on call.
DEPLOYER = ["docs/deploy.md", "docs/attach.md", "infra/scratch.md", "docs/recover.md", "docs/change-the-catalogue.md", "docs/init.md", "docs/audit.md", "infra/README.md"]
ON_CALL = ["docs/alarms.md", "docs/parked-and-replay.md", "docs/verify-and-repair.md", "docs/jobs.md", "docs/personal-data.md"]

# Words in capitals that a reader replaces.
PLACEHOLDERS = {
    "STREAM": "arn:aws:dynamodb:eu-west-1:123456789012:table/ripple/stream/2026-11-28T00:00:00.000",
    "MY-STREAM-ARN": "arn:aws:dynamodb:eu-west-1:123456789012:table/ripple/stream/2026-11-28T00:00:00.000",
    "REGION": "eu-west-1",
    "SECONDS": "60",
    "SHARD": "shardId-00000001414576573621-f55eea83",
    "NUMBER": "300000000000000499659",
    "URL": "http://127.0.0.1:9000",
    "UUID": "14e0db71-5d35-4eb5-b481-8945cf9d10c2",
    "ACCOUNT": "123456789012",
    "ID": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "DERIVATION": "post-count",
    "KEY": "USER#ada / PROFILE",
}
NOBODY = "http://127.0.0.1:9"
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RUST_"))},
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ENDPOINT_URL": NOBODY,
    "AWS_ENDPOINT_URL_DYNAMODB": NOBODY,
    "AWS_MAX_ATTEMPTS": "1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "SAM_CLI_TELEMETRY": "0",
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
}


def commands(page):
    """The commands of a page, each as words: lines of its code blocks, and code in the text."""
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```", text, re.S | re.M)
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    # Two words in the text are the name of a command.
    lines += re.findall(r"`((?:aws|sam|ripple) [^`\s]+ [^`]+)`", prose)
    for line in lines:
        line = re.sub(r"^\w+=\$\((.*)\)$", r"\1", line.strip())
        for part in re.split(r" && | \| ", line):
            part = re.sub(r" *>>? *\S+$", "", part)
            if not re.match(r"(aws|sam|ripple|cargo run [^|]*--) [^…]", part):
                continue
            words = shlex.split(part.replace("$stream", "STREAM").replace("$iterator", "ITERATOR"), comments=True)
            yield part, [PLACEHOLDERS.get(word.rstrip("…"), word) for word in words]


def run(words, **options):
    return subprocess.run(words, capture_output=True, text=True, **{"env": ENVIRONMENT, "timeout": 300, **options})


def aws_problem(words):
    """What is wrong with a command of the AWS command line, or None."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ["ripple.zip", "config.zip"]:
            (pathlib.Path(folder) / name).write_text("manifest")
        told = run([str(BIN / "aws"), *words[1:]], cwd=folder)
    reached = "Could not connect to the endpoint URL" in told.stderr or "Waiter" in told.stderr
    return None if reached else told.stderr or told.stdout


def ripple_problem(words):
    """What is wrong with a command of ripple, or None: wrong usage is exit code 2."""
    at = words.index("--") + 1 if words[0] == "cargo" else 1
    words = [word for word in words[at:] if word not in ("…", "[…]")]
    if "--aws" in words and "--region" not in words:
        words += ["--region", "eu-west-1"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "tests" / "events" / "insert.json", pathlib.Path(folder) / "page.json")
        try:
            told = run([str(RIPPLE), *words], cwd=folder, timeout=5)
        except subprocess.TimeoutExpired:
            # It took its options, and serves or waits for the database.
            return None
    is_of_file = "No such file" in told.stderr or "no ripple.toml is here" in told.stderr
    return told.stderr if told.returncode == 2 and not is_of_file else None


def action(words):
    """The IAM action of a command of the AWS command line."""
    service, operation = words[1], words[2]
    client = botocore.session.get_session().create_client(service, region_name="eu-west-1")
    names = {name.replace("_", "-"): api for name, api in client.meta.method_to_api_mapping.items()}
    prefix = {"dynamodbstreams": "dynamodb", "cloudwatch": "cloudwatch"}.get(service, service)
    return f"{prefix}:{names[operation]}"


def operator_actions():
    template = yaml_parse((ROOT / "infra" / "template.yaml").read_text())
    statements = [it for of in documents(template["Resources"]["OperatorPolicy"]) for it in resolved(of)["Statement"]]
    return {name for it in statements for name in it["Action"]}


def problem(page, text, words, permitted):
    """What is wrong with a command of a page, or None."""
    found = aws_problem(words) if words[0] == "aws" else ripple_problem(words)
    if words[0] == "aws" and page in ON_CALL and words[1] != "s3" and action(words) not in permitted:
        found = f"OperatorPolicy does not permit {action(words)}"
    return f"{page}: {text}\n  {found.strip()}" if found else None


def check_pages():
    found = [(page, text, words) for page in DEPLOYER + ON_CALL for text, words in commands(page) if words[0] != "sam"]
    n_aws = sum(words[0] == "aws" for _, _, words in found)
    permitted = operator_actions()
    with ThreadPoolExecutor(4) as pool:
        problems = [it for it in pool.map(lambda command: problem(*command, permitted), found) if it]
    if problems:
        sys.exit("\n".join(problems))
    if min(n_aws, len(found) - n_aws) < 10:
        sys.exit(f"too few commands were found: {found}")
    print(f"  {n_aws} commands of aws, {len(found) - n_aws} of ripple")


# Stands for cargo: a package of one byte for each binary that it is asked for.
CARGO = """#!/usr/bin/env bash
[[ $1 == lambda && $2 == build ]] || exit 1
while [[ $# -gt 0 ]]; do [[ $1 != --bin ]] || bin=$2; shift; done
mkdir -p target/lambda/$bin ../target/lambda/$bin
printf x | tee target/lambda/$bin/bootstrap >../target/lambda/$bin/bootstrap
"""


def stub(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    path.chmod(0o755)


def check_sam(sam):
    """The commands of docs/deploy.md, in their order, in a copy of the repository."""
    wanted = [words for page in ["docs/deploy.md", "docs/attach.md", "infra/README.md"] for _, words in commands(page) if words[0] == "sam"]
    builds = {tuple(words) for words in wanted if words[1] == "build"}
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "clone"
        for name in ["infra", "functions", "Cargo.toml", "Cargo.lock", "samconfig.toml"]:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else lambda a, b: (b.parent.mkdir(exist_ok=True), shutil.copy(a, b)))(source, copy / name)
        stub(folder, "cargo", CARGO)
        stub(folder, "rustup", "#!/bin/sh\nexit 0\n")
        environment = {**ENVIRONMENT, "PATH": f"{folder}{os.pathsep}{sam}{os.pathsep}{ENVIRONMENT['PATH']}"}
        own = run([str(RIPPLE), "infra", "--config", str(ROOT / "examples" / "own-table" / "ripple.toml")], cwd=copy)
        (copy / "infra" / "own.yaml").write_text(own.stdout)
        for words in sorted(builds, key=len, reverse=True):
            told = run(words, cwd=copy, env=environment)
            built = sorted(path.parent.name for path in (copy / ".aws-sam" / "build").glob("*/bootstrap"))
            if told.returncode or built != ["Aggregate", "Combined", "Propagate", "Sweep"]:
                sys.exit(f"{' '.join(words)}: built {built}\n{told.stdout}\n{told.stderr}")
        told = run(["sam", "deploy", "--stack-name", "ripple", "--no-execute-changeset"], cwd=copy, env=environment)
        if NOBODY not in told.stderr + told.stdout:
            sys.exit(f"sam deploy does not get as far as AWS:\n{told.stdout}\n{told.stderr}")
        linted = run(["sam", "validate"], cwd=copy, env=environment)
        if linted.returncode:
            sys.exit(f"sam validate:\n{linted.stdout}\n{linted.stderr}")
    print(f"  {len(builds)} builds of sam, its deployment up to the account, its lint")


# Stands for aws: keeps the command, and fails where it is told to.
AWS = """#!/usr/bin/env bash
echo "$*" >>"$CALLS"
case "$*" in
  *get-caller-identity*) echo 123456789012 ;;
  *"$FAILING"*) exit 1 ;;
  *) echo name ;;
esac
"""


def check_scratch():
    """A step that fails behind its fault undoes the fault."""
    undone = {
        "denied": ("batch-write-item", "iam delete-role-policy"),
        "disabled": ("batch-write-item", "--enabled"),
        "killed": ("batch-write-item", "--timeout 60"),
        "given-up": ("batch-write-item", "--maximum-record-age-in-seconds -1"),
    }
    for step, (failing, undoes) in undone.items():
        with tempfile.TemporaryDirectory() as folder:
            calls = pathlib.Path(folder) / "calls"
            stub(folder, "aws", AWS)
            stub(folder, "sleep", "#!/bin/sh\nexit 0\n")
            environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "CALLS": str(calls), "FAILING": failing}
            told = run([str(ROOT / "infra" / "scratch.sh"), "123456789012", "eu-west-1", step], env=environment)
            made = calls.read_text().splitlines()
            at = next((number for number, call in enumerate(made) if failing in call), None)
            if told.returncode == 0 or at is None or not any(undoes in call for call in made[at:]):
                sys.exit(f"scratch.sh {step} leaves its fault behind:\n{told.stdout}\n{told.stderr}")
    print(f"  {len(undone)} faults of scratch.sh are undone when their step fails")


def main():
    check_pages()
    check_scratch()
    check_sam(sys.argv[1])


if __name__ == "__main__":
    main()
