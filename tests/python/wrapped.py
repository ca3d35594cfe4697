"""Holds the Terraform module and the CDK construct of `ripple infra` to the template that they wrap.

The module is formatted by terraform itself where there is one, and read by an HCL parser. The construct is compiled and
synthesized. Needs python-hcl2 and aws-sam-translator, cargo, and npm for the construct; no account.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import hcl2
from samtranslator.yaml_helper import yaml_parse
from several_templates import infra

PACKAGES = ["aws-cdk-lib@2.276.0", "constructs@10.8.1", "typescript@5.9.3", "@types/node@22.18.0"]

# The arguments of the provider's resources that the module uses. Source: its documentation, version 5 and 6.
ARGUMENTS = {
    "aws_s3_object": {"bucket", "key", "content"},
    "aws_cloudformation_stack": {"name", "template_url", "capabilities", "tags", "parameters"},
}

APP = """
import { App, Stack } from "aws-cdk-lib";
import { Ripple } from "./ripple";
const app = new App({ outdir: process.argv[2] });
const stack = new Stack(app, "Stack");
const ripple = new Ripple(stack, "Ripple", { %s });
if (!ripple.template.getResource("LedgerTable")) throw new Error("no table");
app.synth();
"""


def snake(name):
    return "".join(f"_{it.lower()}" if it.isupper() and at else it.lower() for at, it in enumerate(name))


def plain(name):
    return name.strip('"')


def check_terraform(module, template):
    if shutil.which("terraform"):
        subprocess.run(["terraform", "fmt", "-check", "-diff", "-"], input=module, text=True, check=True)
    read = hcl2.loads(module)
    names = lambda kind: {plain(name): body for block in read[kind] for name, body in block.items()}
    wanted = {snake(name): "Default" not in it for name, it in template["Parameters"].items()}
    variables = {name: "default" not in body for name, body in names("variable").items()}
    assert {"stack_name": True, "tags": False, **wanted} == variables, variables
    assert set(names("output")) == {snake(name) for name in template["Outputs"]}
    for block in read["resource"]:
        for kind, of in block.items():
            (body,) = of.values()
            used = {name for name in body if not name.startswith("__")}
            assert used == ARGUMENTS[plain(kind)], (kind, used)
    # HCL's two escapes are all that the module adds to the text.
    text = module.split("template = <<EOT\n")[1].split("EOT\n")[0]
    return text.replace("$${", "${").replace("%%{", "%{")


def one_form(value):
    """A part of a template with `Fn::GetAtt` as a text, whichever way it was written."""
    if isinstance(value, list):
        return [one_form(it) for it in value]
    if isinstance(value, dict):
        if list(value) == ["Fn::GetAtt"] and isinstance(value["Fn::GetAtt"], list):
            return {"Fn::GetAtt": ".".join(value["Fn::GetAtt"])}
        return {name: one_form(it) for name, it in value.items()}
    return value


def check_cdk(folder, construct, template):
    given = {"CodeBucket": "packages", "ConfigUri": "s3://packages/ripple.zip"}
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/theirs/stream/2026-01-01T00:00:00.000"
    for name in (name for name, about in template["Parameters"].items() if "Default" not in about):
        given.setdefault(name, arn if name.endswith("StreamArn") else "theirs")
    props = ", ".join(f"{name[0].lower()}{name[1:]}: {json.dumps(text)}" for name, text in given.items())
    (folder / "ripple.ts").write_text(construct)
    (folder / "app.ts").write_text(APP % props)
    options = ["--strict", "--module", "commonjs", "--target", "es2022", "--skipLibCheck", "--types", "node"]
    subprocess.run(["npx", "--no-install", "tsc", *options, "app.ts"], cwd=folder, check=True)
    subprocess.run(["node", "app.js", "out"], cwd=folder, check=True)
    made = json.loads((folder / "out" / "Stack.template.json").read_text())
    shutil.rmtree(folder / "out")
    assert made["Transform"] == template["Transform"] and made["Globals"], made.keys()
    wanted = dict(template["Resources"])
    for name, resource in made["Resources"].items():
        if resource["Type"] == "AWS::CDK::Metadata":
            continue
        # A resource that CfnInclude takes as it is gets a prefix and a hash.
        id = name if name in wanted else next(it for it in wanted if it in name)
        assert id == name or id.endswith("Alarm"), name
        held, own = one_form(resource), one_form(wanted.pop(id))
        assert held == own, (name, held, own)
    assert not wanted, wanted.keys()
    defaults = {name: it.get("Default") for name, it in made["Parameters"].items()}
    for name, parameter in template["Parameters"].items():
        assert defaults[name] == given.get(name, parameter.get("Default")), (name, defaults[name])


def main():
    own, several = (["--config", f"examples/{name}/ripple.toml"] for name in ("own-table", "models"))
    count = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run(["npm", "init", "-y"], cwd=folder, check=True, capture_output=True)
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES]
        subprocess.run(install, cwd=folder, check=True)
        for arguments in [[], ["--attach"], own, ["--attach", *own], several, ["--attach", *several]]:
            text = infra(*arguments, "--format", "cloudformation")
            template = yaml_parse(text)
            held = check_terraform(infra(*arguments, "--format", "terraform"), template)
            assert held == text, f"{arguments}: the module has another template"
            check_cdk(folder, infra(*arguments, "--format", "cdk"), template)
            count += 1
    formatted = "formatted by terraform" if shutil.which("terraform") else "not formatted: there is no terraform"
    print(f"{count} modules and {count} constructs hold the template; {formatted}")


if __name__ == "__main__":
    sys.exit(main())
