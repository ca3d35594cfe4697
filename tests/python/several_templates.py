"""The templates that `ripple infra` prints for the examples with several tables.

With a folder as argument, writes them there. Needs: cargo.
"""

import itertools
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# The streams that each function needs of each example: a function reads a table's if an item of it changes what the
# function derives. Told by hand, from the manifests. Nothing stands for the table of Ripple's own items.
STREAMS = {
    "models": {"Aggregate": ["Post", "Comment", "Like"], "Propagate": ["", "User", "Post", "Comment"]},
    "chat": {"Aggregate": ["Rooms", "Messages"], "Propagate": ["", "Workspaces", "Rooms", "Messages", "Users"]},
}


def infra(*arguments):
    command = ["cargo", "run", "--quiet", "--locked", "--bin", "ripple", "--", "infra", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def several_templates():
    """Each template's text, by the name of its example and whether its tables exist."""
    options = {"": [], "-attach": ["--attach"]}
    return {
        name + ending: infra("--config", f"examples/{name}/ripple.toml", *options[ending])
        for name, ending in itertools.product(STREAMS, options)
    }


if __name__ == "__main__":
    for name, text in several_templates().items():
        (pathlib.Path(sys.argv[1]) / f"{name}.yaml").write_text(text)
