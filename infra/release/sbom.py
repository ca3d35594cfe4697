"""Prints the bill of materials of a release in CycloneDX 1.5: `python3 infra/release/sbom.py > sbom.cdx.json`.

Lists the crates that are compiled into `ripple` and the functions, on any platform, with the checksums of Cargo.lock,
and the SQLite whose C source one of them has. Crates of tests, build scripts and benchmarks are left out.
The same clone always gives the same text. Needs: Python 3.11 and cargo.
"""

import json
import re
import subprocess
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ["cli", "functions"]


def ref(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def shipped(metadata):
    """The packages that a shipped one needs at run time, by id, each with the ids of those that it needs."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in metadata["packages"] if package["name"] in SHIPPED and not package["source"]]
    needed = {}
    while waiting:
        at = waiting.pop()
        if at in needed:
            continue
        is_normal = lambda dep: any(kind["kind"] is None for kind in dep["dep_kinds"])
        needed[at] = sorted(dep["pkg"] for dep in nodes[at]["deps"] if is_normal(dep))
        waiting += needed[at]
    return needed


def component(package, checksums):
    made = {"type": "library", "bom-ref": ref(package), "name": package["name"], "version": package["version"]}
    if package["source"]:
        made["purl"] = ref(package)
        made["hashes"] = [{"alg": "SHA-256", "content": checksums[package["name"], package["version"]]}]
    if package["license"]:
        expression = re.sub(r"\s*/\s*", " OR ", package["license"])
        made["licenses"] = [{"expression": expression}]
    return made


def sqlite(packages):
    """The C source in libsqlite3-sys, which no other component names."""
    [binding] = [package for package in packages if package["name"] == "libsqlite3-sys"]
    header = Path(binding["manifest_path"]).parent / "sqlite3" / "sqlite3.h"
    version = re.search(r'#define SQLITE_VERSION\s+"([^"]+)"', header.read_text(encoding="utf-8"))[1]
    purl = f"pkg:generic/sqlite@{version}"
    made = {"type": "library", "bom-ref": purl, "name": "sqlite", "version": version, "purl": purl}
    return ref(binding), made | {"cpe": f"cpe:2.3:a:sqlite:sqlite:{version}:*:*:*:*:*:*:*"}


def main():
    cargo = ["cargo", "metadata", "--locked", "--format-version", "1"]
    metadata = json.loads(subprocess.run(cargo, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    checksums = {(it["name"], it["version"]): it.get("checksum") for it in tomllib.loads(lock)["package"]}
    needed = shipped(metadata)
    packages = sorted((it for it in metadata["packages"] if it["id"] in needed), key=ref)
    refs = {package["id"]: ref(package) for package in packages}
    binding, source = sqlite(packages)
    dependencies = {refs[at]: sorted({refs[dep] for dep in deps}) for at, deps in needed.items()}
    dependencies[binding].append(source["bom-ref"])
    [command] = [package for package in packages if package["name"] == "cli"]
    about = {"type": "application", "bom-ref": "ripple", "name": "ripple", "version": command["version"]}
    dependencies["ripple"] = sorted(refs[it["id"]] for it in packages if it["name"] in SHIPPED and not it["source"])
    print(json.dumps({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, lock + about["version"]).urn,
        "version": 1,
        "metadata": {"component": about},
        "components": [component(package, checksums) for package in packages] + [source],
        "dependencies": [{"ref": at, "dependsOn": deps} for at, deps in sorted(dependencies.items())],
    }, indent=1))


if __name__ == "__main__":
    main()
