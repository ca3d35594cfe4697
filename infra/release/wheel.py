"""Packs a built `ripple` as a wheel: `python3 infra/release/wheel.py BINARY VERSION PLATFORM FOLDER`.

`pip install FILE` then puts the command beside the environment's other programs, and the pytest plugin `ripple_pytest`;
nothing is compiled. PLATFORM is a platform tag of Python's packages, such as manylinux_2_17_x86_64. Prints the file's path.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

NAME = "ripple_dynamodb"


def main(binary, version, platform, folder):
    binary, folder = Path(binary), Path(folder)
    info = f"{NAME}-{version}.dist-info"
    root = Path(__file__).resolve().parents[2]
    files = {
        f"{NAME}-{version}.data/scripts/{binary.name}": binary.read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.4\nName: ripple-dynamodb\nVersion: {version}\n"
            "Summary: Keeps derived data in a DynamoDB table in step with the data it is derived from\n"
            "License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\n"
        ).encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: ripple\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
        ).encode(),
    }
    files["ripple_pytest.py"] = (root / "clients/pytest/ripple_pytest.py").read_bytes()
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
        files[f"{info}/licenses/{licence}"] = (root / licence).read_bytes()
    record = f"{info}/RECORD"
    lines = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
    files[record] = ("\n".join([*lines, f"{record},,"]) + "\n").encode()
    wheel = folder / f"{NAME}-{version}-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, content in files.items():
            # A fixed time, so that the same binary gives the same file.
            entry = zipfile.ZipInfo(path, (2024, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            packed.writestr(entry, content, zipfile.ZIP_DEFLATED)
    print(wheel)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(*sys.argv[1:])
