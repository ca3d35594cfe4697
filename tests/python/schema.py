"""Both JSON Schemas. By that of what `--json` prints, each sample of docs/json.md is valid.

By that of manifests, as an editor uses it, every manifest of the examples is valid, the file of docs/own-table.md too, and
each of some mistakes is not.

Needs: jsonschema, which aws-sam-translator brings. Python 3.11 or later, for its TOML reader.
"""

import json
import pathlib
import subprocess
import tomllib

import jsonschema
from built import RIPPLE, ROOT, build

# What is right, and what makes it wrong.
MISTAKES = [
    ('partition-key = "PK"', 'partition-key = 7'),
    ('kind = "mirror"', 'kind = "miror"'),
    ('sum = "SizeBytes"', "sum = 7"),
    ('sum = "SizeBytes"', 'sums = "SizeBytes"'),
    ("history = true", 'history = "true"'),
    ('except = ["Content"]', 'except = "Content"'),
    ('{ entity = "Comment" }', '{ entities = "Comment" }'),
    ('number = "UnitsSold"\n', ""),
    ('shows = { count = "FileCount", sum = "TotalBytes" }', 'shows = { median = "TotalBytes" }'),
    ('only-if = { Status = "published" }', "only-if = { Status = true }"),
]


def main():
    build()
    schema = json.loads(subprocess.run([RIPPLE, "schema"], check=True, capture_output=True, text=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    texts = {str(path): path.read_text() for path in sorted(pathlib.Path(ROOT).glob("examples/*/ripple.toml"))}
    page = (pathlib.Path(ROOT) / "docs" / "own-table.md").read_text()
    texts["docs/own-table.md"] = page.split("```toml\n")[1].split("```")[0]
    assert len(texts) >= 3, texts.keys()
    for name, text in texts.items():
        validator.validate(tomllib.loads(text))
        print(f"{name} is valid")

    social = next(text for name, text in texts.items() if name.endswith("social/ripple.toml"))
    for right, wrong in MISTAKES:
        assert right in social, right
        assert not validator.is_valid(tomllib.loads(social.replace(right, wrong, 1))), wrong
    print(f"{len(MISTAKES)} mistakes are seen")
    printed()


def printed():
    """Holds each sample of docs/json.md to the schema of what is printed."""
    schema = json.loads(
        subprocess.run([RIPPLE, "schema", "--json-output"], check=True, capture_output=True, text=True).stdout
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    sections = (pathlib.Path(ROOT) / "docs" / "json.md").read_text().split("\n## `ripple ")[1:]
    for section in sections:
        name = section.split("`")[0]
        form = {**schema, "anyOf": [{"$ref": "#/$defs/" + name.replace(" --", "_").replace(" ", "_")}]}
        sample = json.loads(section.split("```json\n")[1].split("```")[0])
        # Those of `dev` are a list.
        for each in sample if isinstance(sample, list) else [sample]:
            jsonschema.Draft202012Validator(form).validate(each)
    print(f"{len(sections)} samples of docs/json.md are valid")


if __name__ == "__main__":
    main()
