"""The templates that `ripple infra` prints for the examples with several tables, and for a manifest with ugly names.

With a folder as argument, writes them there, and compares the ugly names with what a reader of YAML 1.1 reads, as
CloudFormation does. Needs: cargo, and aws-sam-translator for the comparison.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

from built import RIPPLE, ROOT, build

# The streams that each function needs of each example: a function reads a table's if an item of it changes what the
# function derives. Told by hand, from the manifests. Nothing stands for the table of Ripple's own items.
STREAMS = {
    "models": {"Aggregate": ["Post", "Comment", "Like"], "Propagate": ["", "User", "Post", "Comment"]},
    "chat": {"Aggregate": ["Rooms", "Messages"], "Propagate": ["", "Workspaces", "Rooms", "Messages", "Users"]},
}


def infra(*arguments):
    build()
    return subprocess.run([RIPPLE, "infra", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def several_templates():
    """Each template's text, by the name of its example and whether its tables exist."""
    options = {"": [], "-attach": ["--attach"]}
    return {
        name + ending: infra("--config", f"examples/{name}/ripple.toml", *options[ending])
        for name, ending in itertools.product(STREAMS, options)
    }


# Legal names of attributes that YAML reads otherwise, or not at all, unless they are quoted.
UGLY = ["@type", "#pk", "a: b", "on", "0x10", "null", "1e3", "=", "~", "it's", 'say "no"', "${AWS::Region}", "{{pk}}",
        "line\nbreak", "\ufeff", "2024-01-15", "12:30:45", "<<", "y", "No", "1_000", "!Ref", "*a", "- x", "a #b", " b "]


def ugly_manifest(names):
    """A table whose keys, type, time to live, and index have these six names."""
    pk, sk, of_type, time_to_live, index, projected = map(json.dumps, names)
    return f"""
[table]
partition-key = {pk}
sort-key = {sk}
type = {of_type}
time-to-live = {time_to_live}
[index.byOther]
partition-key = {index}
sort-key = {sk}
projection = [{projected}]
[entity.Room]
partition-key = "ROOM#{{room}}"
sort-key = "ROOM"
derived-attributes = ["n"]
[entity.Seat]
partition-key = "ROOM#{{room}}"
sort-key = "SEAT#{{seat}}"
[derivation.seats]
kind = "count"
from = "Seat"
into = "Room.n"
"""


def ugly_templates():
    """Templates of which each ugly name is in each place of one, checked."""
    from samtranslator.yaml_helper import yaml_parse

    for start in range(0, len(UGLY)):
        names = [UGLY[(start + at) % len(UGLY)] for at in range(6)]
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(ugly_manifest(names))
            file.flush()
            text = infra("--config", file.name)
        table = yaml_parse(text)["Resources"]["Table"]["Properties"]
        index = table["GlobalSecondaryIndexes"][0]
        key = lambda of: [it["AttributeName"] for it in of["KeySchema"]]
        read = [*key(table), *key(index), table["TimeToLiveSpecification"]["AttributeName"],
                *index["Projection"]["NonKeyAttributes"]]
        pk, sk, _, time_to_live, of_index, projected = names
        assert read == [pk, sk, of_index, sk, time_to_live, projected], (names, read)
        yield f"ugly-{start}", text


if __name__ == "__main__":
    for name, text in ugly_templates():
        if name == "ugly-0":
            (pathlib.Path(sys.argv[1]) / f"{name}.yaml").write_text(text)
    for name, text in several_templates().items():
        (pathlib.Path(sys.argv[1]) / f"{name}.yaml").write_text(text)
