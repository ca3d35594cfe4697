"""The page docs/attach-by-example.md, as it stands there: a table that a hand-written function kept wrongly, on a database
without functions, from `ripple init` to a clean `ripple verify` while the application writes. Compares what each
command prints with what the page says, and in the end every count and name with a recount.

Numbers in the output of a running service are those of its moment, so they are not compared. Needs: awscli and boto3.
"""

import collections
import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading

from built import ROOT
from cargo_lambda import free_port, running
from readme import CREDENTIALS
from served import RIPPLE, served

sys.path.insert(0, os.path.join(ROOT, "examples", "blog"))
from blog import client_of  # noqa: E402

BLOCK = re.compile(r"<!-- test: (attach-[a-z]+) -->\n```sh\n(.*?)```\n(?:\n```(?:text|toml)\n(.*?)```)?", re.DOTALL)
TIME = r"\d{4}-\d\d-\d\dT[\d:.]+Z"
# Until a service has printed what the page shows.
DEADLINE_S = 600
# Rounds of a command that the page for operators tells to repeat until it ends with 0.
ROUNDS_MAX = 5


def as_shown(shown, has_own_numbers):
    """The pattern of what a page shows: `…` is any lines, or any number of lines at the end."""
    lines = []
    for line in shown.splitlines():
        text = TIME.join(re.escape(part) for part in re.split(TIME, line))
        lines.append(r"(?:.*\n)*?" if line == "…" else (re.sub(r"\d+", r"\\d+", text) if has_own_numbers else text) + r"\n")
    return re.compile("".join(lines))


class Page:
    """The commands of the page, run in a folder against a database on another port."""

    def __init__(self, endpoint, folder):
        with open(f"{ROOT}/docs/attach-by-example.md", encoding="utf-8") as text:
            self.blocks = {name: (commands, shown) for name, commands, shown in BLOCK.findall(text.read())}
        os.symlink(f"{ROOT}/examples", f"{folder}/examples")
        path = [os.path.dirname(RIPPLE), os.path.dirname(sys.executable), os.environ["PATH"]]
        credentials = dict(pair.split("=") for pair in CREDENTIALS.split())
        self.environment = os.environ | credentials | {"AWS_ENDPOINT_URL_DYNAMODB": endpoint, "PATH": os.pathsep.join(path)}
        self.endpoint, self.folder = endpoint, folder

    def commands(self, name):
        return self.blocks[name][0].replace("http://127.0.0.1:8000", self.endpoint).replace("pip install boto3\n", "")

    def run(self, name, codes=(0,), has_own_numbers=False, rounds=1):
        """Runs a block until it ends with the code, and compares what it prints."""
        shell = ["bash", "-euo", "pipefail", "-c", self.commands(name)]
        for _ in range(rounds):
            done = subprocess.run(shell, cwd=self.folder, env=self.environment, capture_output=True, text=True)
            if done.returncode in codes:
                break
        else:
            sys.exit(f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        shown = self.blocks[name][1]
        if not as_shown(shown, has_own_numbers).fullmatch(done.stdout):
            sys.exit(f"{name} prints\n{done.stdout}\nand the page says\n{shown}")
        print(f"  {name}")

    @contextlib.contextmanager
    def serving(self, name):
        """Runs a service beside the block of code, which begins when it has printed what the page shows."""
        command, pattern = shlex.split(self.commands(name)), as_shown(self.blocks[name][1], True)
        options = {"cwd": self.folder, "env": self.environment, "text": True}
        with running([*command, "--console-port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as service:
            deadline = threading.Timer(DEADLINE_S, service.kill)
            deadline.start()
            printed = ""
            for line in service.stdout:
                printed += line
                if pattern.fullmatch(printed):
                    break
            else:
                sys.exit(f"{name} prints\n{printed}\nand the page says\n{self.blocks[name][1]}")
            deadline.cancel()
            print(f"  {name}")
            # A pipe that nobody reads fills up, and the service would wait for it.
            threading.Thread(target=lambda: list(service.stdout), daemon=True).start()
            yield

    def writing(self, *options):
        """The application, which goes on."""
        blog = [sys.executable, "examples/blog/blog.py", self.endpoint, "--on", *options]
        return running(blog, cwd=self.folder, env=self.environment)


def recount(client):
    """Ends the test if a count or a name differs from what the application's items give."""
    items = [item for page in client.get_paginator("scan").paginate(TableName="blog") for item in page["Items"]]
    text = lambda item, name: next(iter(item.get(name, {"N": "0"}).values()))
    names = {text(item, "PK"): text(item, "Name") for item in items if text(item, "EntityType") == "User"}
    n_of = collections.Counter((text(item, "PK"), text(item, "EntityType")) for item in items)
    wrong = [item for item in items if text(item, "EntityType") == "Comment" and text(item, "UserName") != names[text(item, "GSI1PK")]]
    for post in (item for item in items if text(item, "EntityType") == "Post"):
        wrong += [post for entity in ("Like", "Comment") if int(text(post, f"{entity}Count")) != n_of[text(post, "PK"), entity]]
    if wrong or not names:
        sys.exit(f"{len(wrong)} of {len(items)} items are not what a recount gives, such as {wrong[:3]}")
    print(f"  {len(items)} items are what a recount gives")


def main():
    # A database alone: its functions are said to be where nobody listens.
    alone = ["--functions", f"http://127.0.0.1:{free_port()}"]
    with served(f"{ROOT}/examples/own-table/ripple.toml", *alone) as endpoint, tempfile.TemporaryDirectory() as folder:
        page, client = Page(endpoint, folder), client_of(endpoint)
        for name in ("table", "init", "edit"):
            page.run(f"attach-{name}")
        page.run("attach-audit", codes=(3,))
        page.run("attach-stream")
        with page.writing(), page.serving("attach-observe"):
            assert client.scan(TableName="blog-ledger")["Count"] == 0, "an observing function has written"
        with page.writing("--alone") as writer, page.serving("attach-apply"):
            page.run("attach-backfill", has_own_numbers=True, rounds=ROUNDS_MAX)
            page.run("attach-verify", has_own_numbers=True, rounds=ROUNDS_MAX)
            assert writer.poll() is None, "the application has ended"
            writer.terminate()
            writer.wait()
            tables = ["--endpoint", endpoint, "--table", "blog", "--config", f"{folder}/ripple.toml"]
            subprocess.run([RIPPLE, "wait", "--timeout", "120", *tables], check=True, stdout=subprocess.DEVNULL)
            page.run("attach-verify", has_own_numbers=True)
            recount(client)


if __name__ == "__main__":
    main()
