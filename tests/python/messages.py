"""docs/messages.md: every message with which a command ends, as the tests that provoke it have it.

    python tests/python/messages.py                  fails if the page is not what the tests say
    UPDATE_EXPECT=1 python tests/python/messages.py  writes it
"""

import ast
import collections
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "messages.md"
# What checks a message: with another manifest, and with a command.
MANIFEST = r"(?:refused\w*|misled|check)"
COMMAND = r"(?:refuses|fails_saying|fails|misused|at)"
# A message about a manifest: behind its place, or with the key that it is about.
SAID = r"(?:(?:[\w.]+:)?\d+:\d+: |(?=(?:table|tables|index|entity|derivation)[.:]))(.*)$"
TEXT = r'r#"(?P<raw>.*?)"#|"(?P<text>(?:[^"\\]|\\.)*)"'

HEAD = """# Messages

What a command prints when it ends without a result: what is wrong, and what to do.
Each is provoked by a test, from which `UPDATE_EXPECT=1 python tests/python/messages.py` writes this page.
`{…}` stands for a name, a path or an address; exit codes are those of [the command line](settings.md#the-command-line).
"""


def literal(match):
    raw = match.group("raw")
    if raw is not None:
        return raw
    text = re.sub(r"\\\n\s*", "", match.group("text"))
    text = re.sub(r"\\u\{([0-9a-f]+)\}", lambda code: chr(int(code.group(1), 16)), text)
    return ast.literal_eval('"' + text.replace("\n", "\\n") + '"')


def texts(source):
    return [literal(match) for match in re.finditer(TEXT, source, re.S)]


def argument_lists(source, function):
    """The arguments of each call, as they are written, with where the call is."""
    for call in re.finditer(r"(?<![\w.])" + function + r"\(", source):
        if source[: call.start()].rstrip().endswith("fn"):
            continue
        depth, at = 1, call.end()
        while depth:
            skipped = re.compile(TEXT, re.S).match(source, at)
            if skipped:
                at = skipped.end()
                continue
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1
        yield call.start(), source[call.end() : at - 1]


def of_manifests():
    """The messages about a manifest, without the place in the file."""
    found = set()
    folder = ROOT / "shared" / "manifest" / "src"
    for path in [folder / "tests.rs", *sorted((folder / "tests").glob("*.rs"))]:
        for _, arguments in argument_lists(path.read_text(), MANIFEST):
            for expected in re.findall(r"expect!\[\[?(.*?)\]\]?\s*,?\s*$", arguments, re.S):
                lines = [line.strip() for text in texts(expected) for line in text.splitlines()]
                found |= {said.group(1) for line in lines if (said := re.match(SAID, line))}
    return found


def values(name, before):
    """What a variable of a test may be: its last text before the call, or one of a list that a loop goes through."""
    found = re.findall(r"let " + name + r"(?:: [^=]+)? =\s*(.*?);\n", before, re.S)
    if found:
        return texts(found[-1])[:1]
    loops = list(re.finditer(r"for \(\w+, " + name + r"\) in \[(.*?)\n? *\] \{", before, re.S))
    if not loops:
        return []
    pairs = re.findall(r"\(\s*(?:[a-z]+|" + TEXT.replace("?P<raw>", "?:").replace("?P<text>", "?:") + r"),\s*(.*?),?\s*\)(?=,|$)", loops[-1].group(1), re.S)
    return [text for pair in pairs for text in (texts(pair)[:1] or values(pair, before[: loops[-1].start()]))]


def filled(message, before):
    """The message with each value of the texts that a test puts into it."""
    for name in re.findall(r"\{([a-z_]+)\}", message):
        found = values(name, before)
        if found:
            return [text for value in found for text in filled(message.replace(f"{{{name}}}", value), before)]
    return [message]


def of_commands():
    found = collections.defaultdict(set)
    for path in sorted((ROOT / "tests" / "command_line").glob("*.rs")):
        source = path.read_text()
        for at, arguments in argument_lists(source, COMMAND):
            before = source[source.rfind("\nfn ", 0, at) : at]
            given, _, rest = arguments.partition("]")
            words = texts(given)
            name = words[0] if words and re.match(r"[a-z]+$", words[0]) else "several commands"
            variable = re.search(r"&?([a-z_]+)(?:\([^()]*\))?\s*,?\s*$", rest)
            told = values(variable.group(1), before) if variable else texts(rest)[-1:]
            for message in (text for template in told for text in filled(template, before)):
                line = re.sub(r"^(error|ripple): ", "", message.strip().splitlines()[0].strip())
                # The parser of arguments says these of each command; mistakes in a manifest have a section of their own.
                if not re.match(r"the following required|unrecognized|unexpected|\{\w+\}:\d+:\d+: ", line):
                    found[name].add(line.replace("{}", "{…}"))
    times = collections.Counter(line for messages in found.values() for line in messages)
    several = {line for line, n in times.items() if n > 2} | found.pop("several commands")
    return {name: messages - several for name, messages in found.items()} | {"several commands": several}


def rows(messages):
    return "".join(f"- {code(message)}\n" for message in sorted(messages, key=lambda text: (re.sub(r"\W", "", text).lower(), text)))


def code(message):
    fence = "``" if "`" in message else "`"
    pad = " " if fence == "``" else ""
    return f"{fence}{pad}{message}{pad}{fence}"


def page():
    commands, manifests = of_commands(), of_manifests()
    parts = [HEAD]
    for name in sorted(filter(commands.get, commands), key=lambda name: (name == "several commands", name)):
        parts.append(f"## {'`ripple ' + name + '`' if name != 'several commands' else 'Several commands'}\n\n{rows(commands[name])}")
    about = collections.defaultdict(set)
    for message in manifests:
        key = re.match(r"(table|tables|index|entity|derivation)\b", message)
        about[key.group(1) if key else "the file"].add(message)
    parts.append("## A manifest\n\nBehind the file, the line and the column: `ripple check ripple.toml` prints `ripple.toml:36:1: derivation.…`, and no function or command starts with such a file.\n")
    for name in ["the file", "table", "tables", "index", "entity", "derivation"]:
        if about[name]:
            parts.append(f"### {'The file' if name == 'the file' else '`[' + name + (']`' if name == 'table' else '.NAME]`')}\n\n{rows(about[name])}")
    return "\n".join(parts), sum(map(len, commands.values())), len(manifests)


def main():
    text, n_commands, n_manifests = page()
    if n_commands < 60 or n_manifests < 150:
        sys.exit(f"too few messages were found: {n_commands} of commands, {n_manifests} of manifests")
    if os.environ.get("UPDATE_EXPECT"):
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        sys.exit("docs/messages.md is not what the tests say: write it with UPDATE_EXPECT=1")
    print(f"  {n_commands} messages of commands, {n_manifests} about manifests")


if __name__ == "__main__":
    main()
