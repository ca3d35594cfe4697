"""The files of a release: the wheel puts a `ripple` into an environment that has no Rust and no other variables, and the
bill of materials is valid CycloneDX.

Packs the binary of a development build, so it says nothing about the platforms of a release.
Needs: cyclonedx-python-lib with the extra json-validation.
"""

import json
import subprocess
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from cargo_lambda import ROOT


def printed(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def wheel(folder):
    subprocess.run(["cargo", "build", "--locked", "--quiet", "--workspace", "--bins"], cwd=ROOT, check=True)
    pack = ["infra/release/wheel.py", "target/debug/ripple", "0.1.0", "linux_x86_64", folder]
    file = printed(sys.executable, *pack, cwd=ROOT).strip()
    printed(sys.executable, "-m", "venv", f"{folder}/venv")
    printed(f"{folder}/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", file)
    clean = {"PATH": f"{folder}/venv/bin:/usr/bin:/bin"}
    for command in ["ripple --version", "ripple demo --writes 50 --seed 7 --json"]:
        print(" ", command, printed("env", "-i", *[f"{k}={v}" for k, v in clean.items()], *command.split())[:60].strip())


def bill_of_materials():
    text = printed(sys.executable, "infra/release/sbom.py", cwd=ROOT)
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    if error is not None:
        sys.exit(f"the bill of materials is not valid: {error!r}"[:2000])
    names = {component["name"] for component in json.loads(text)["components"]}
    for name in ["aws-sdk-dynamodb", "lambda_runtime", "dynoxide-rs", "sqlite", "engine"]:
        assert name in names, name
    for name in ["proptest", "cc", "divan"]:
        assert name not in names, name
    print(f"  {len(names)} components")


def main():
    with tempfile.TemporaryDirectory() as folder:
        wheel(folder)
    bill_of_materials()


if __name__ == "__main__":
    main()
