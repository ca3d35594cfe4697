"""The pytest file of docs/test-your-application.md, run as it stands there, against the example manifest.

Needs: boto3 and pytest.
"""

import os
import re
import subprocess
import sys
import tempfile

from cargo_lambda import ROOT

FILE = re.compile(r"<!-- file: test_followers\.py -->\n```python\n(.*?)```\n", re.DOTALL)


def main():
    subprocess.run(["cargo", "build", "--locked", "--quiet", "--package", "cli"], cwd=ROOT, check=True)
    with open(f"{ROOT}/docs/test-your-application.md", encoding="utf-8") as page:
        [text] = FILE.findall(page.read())
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/test_followers.py", "w", encoding="utf-8") as file:
            file.write(text)
        environment = os.environ | {
            "RIPPLE": f"{ROOT}/target/debug/ripple",
        }
        dev = [environment["RIPPLE"], "dev", "--config", f"{ROOT}/examples/own-table/ripple.toml", "--"]
        pytest = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", folder]
        done = subprocess.run([*dev, *pytest], cwd=folder, env=environment, timeout=300)
    if done.returncode != 0:
        sys.exit(f"the tests ended with {done.returncode}")


if __name__ == "__main__":
    main()
