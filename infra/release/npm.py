"""Packs `ripple` for npm: `python3 infra/release/npm.py VERSION FOLDER [BINARY TARGET]`.

With a BINARY it makes the package of its platform, and without one the main package, whose launcher starts the binary of
the package that npm installed for this platform. Each file is what `npm pack` would make. Prints the file's path.
"""

import gzip
import io
import json
import sys
import tarfile
from pathlib import Path

NAME = "ripple-dynamodb"
ROOT = Path(__file__).resolve().parents[2]
# By Rust's name of the target: npm's names of the system and the processor.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": ("linux", "x64"),
    "aarch64-unknown-linux-gnu": ("linux", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
}


def main(version, folder, binary=None, target=None):
    about = {
        "version": version,
        "description": "Keeps derived data in a DynamoDB table in step with the data it is derived from",
        "license": "MIT OR Apache-2.0",
    }
    if binary:
        system, processor = PLATFORMS[target]
        name = f"{NAME}-{system}-{processor}"
        about |= {"os": [system], "cpu": [processor]} | ({"libc": ["glibc"]} if system == "linux" else {})
        files = {"ripple": Path(binary).read_bytes()}
    else:
        name = NAME
        about |= {
            "bin": {"ripple": "launcher.js"},
            "exports": {"./vitest": "./vitest.mjs"},
            "engines": {"node": ">=20"},
            "optionalDependencies": {f"{NAME}-{system}-{processor}": version for system, processor in PLATFORMS.values()},
        }
        sources = {"launcher.js": "infra/release/launcher.js", "vitest.mjs": "clients/vitest/vitest.mjs"}
        files = {file: (ROOT / source).read_bytes() for file, source in sources.items()}
    files["package.json"] = (json.dumps({"name": name} | about, indent=2) + "\n").encode()
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
        files[licence] = (ROOT / licence).read_bytes()
    package = Path(folder) / f"{name}-{version}.tgz"
    # Fixed times, so that the same content gives the same file.
    with open(package, "wb") as file, gzip.GzipFile("", "wb", 6, file, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path, content in sorted(files.items()):
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size, entry.mode = len(content), 0o755 if path in ("ripple", "launcher.js") else 0o644
                archive.addfile(entry, io.BytesIO(content))
    print(package)


if __name__ == "__main__":
    main(*sys.argv[1:])
