"""What cargo builds for these tests: the workspace's targets, with the features that `cargo test --workspace` gives to
their dependencies. A build of one package would compile the dependencies again."""

import functools
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RIPPLE = os.path.join(ROOT, "target", "debug", "ripple")


@functools.cache
def build(*targets):
    """Builds the commands and functions, or these targets."""
    command = ["cargo", "build", "--locked", "--quiet", "--workspace", *(targets or ["--bins"])]
    subprocess.run(command, cwd=ROOT, check=True)
