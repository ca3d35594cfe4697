"""The demonstration of the README, and the tours of docs and examples, run as they stand there: every block under
`<!-- test: … -->`, on a free port instead of 8000.

Compares what a tour prints with what the page says that it prints. Ends every process that it starts.
Needs: the aws command line and boto3.
"""

import re
import subprocess
import sys
import tempfile

from built import ROOT
from cargo_lambda import free_port, running

BLOCK = re.compile(r"<!-- test: ([a-z0-9-]+) -->\n```sh\n(.*?)```\n(?:(?:(?!```).)*?```text\n(.*?)```)?", re.DOTALL)
CREDENTIALS = "AWS_DEFAULT_REGION=us-east-1 AWS_PAGER= AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local"


def rows(text):
    """Lines as their words, in any order."""
    return sorted(" ".join(line.split()) for line in text.splitlines())


def tour(page, tested, arguments, manifest="ripple.toml"):
    with open(f"{ROOT}/{page}", encoding="utf-8") as text:
        blocks = BLOCK.findall(text.read().replace("--config ripple.toml", f"--config {manifest}"))
    if [name for name, _, _ in blocks] != tested:
        sys.exit(f"the tested blocks of {page} are {[name for name, _, _ in blocks]}")
    port = str(free_port())
    dev = ["cargo", "run", "--locked", "--quiet", "--", "dev", "--port", port, *arguments]
    with running(dev, stdout=subprocess.PIPE, text=True) as service:
        for line in service.stdout:
            if line.strip() == "ready":
                break
        for name, commands, printed in blocks:
            # The page has the variables once, for one terminal.
            variables = f"export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:{port} {CREDENTIALS}\n"
            shell = ["bash", "-euo", "pipefail", "-c", variables + commands.replace("8000", port)]
            done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
            if (name.endswith("-aws") or name in ("tour-replay", "shop-boto3", "models-boto3", "chat-boto3")) and rows(printed) != rows(done.stdout.split("\n}\n")[-1]):
                sys.exit(f"{name} prints\n{done.stdout}\nand {page} says\n{printed}")
            print(f"  {name}")


def story():
    """The README prints the demonstration as it is, but for its numbers."""
    with open(f"{ROOT}/README.md", encoding="utf-8") as text:
        shown = re.search(r"<!-- test: story -->\n```text\n(.*?)```", text.read(), re.DOTALL)
    done = subprocess.run(["cargo", "run", "--locked", "--quiet"], cwd=ROOT, capture_output=True, text=True, check=True)
    said, printed = (re.sub(r" *\d+", " N", text) for text in (shown.group(1), done.stdout))
    if said != printed:
        sys.exit(f"the demonstration prints\n{done.stdout}\nand the README says\n{shown.group(1)}")
    print("  story")


def main():
    story()
    tour("docs/tour.md", ["tour-aws", "tour-verify", "tour-why", "tour-replay"], [])
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as manifest, open(f"{ROOT}/docs/first-count.md", encoding="utf-8") as page:
        manifest.write(page.read().split("```toml\n")[1].split("```")[0])
        manifest.flush()
        tour("docs/first-count.md", ["count-write", "count-aws"], ["--config", manifest.name], manifest.name)
    own, shop = "examples/own-table", "examples/shop"
    tour(f"{own}/README.md", ["own-aws", "own-boto3", "own-verify"], ["--config", f"{own}/ripple.toml"])
    tour(f"{shop}/README.md", ["shop-boto3", "shop-verify"], ["--config", f"{shop}/ripple.toml"])
    for name in ("models", "chat"):
        tour(f"examples/{name}/README.md", [f"{name}-boto3", f"{name}-verify"], ["--config", f"examples/{name}/ripple.toml"])


if __name__ == "__main__":
    main()
