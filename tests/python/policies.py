"""Audits the policies of the templates with parliament: every action exists, and belongs to its resource.

Needs: parliament, aws-sam-translator, which reads the templates, and cargo, for those of several tables.
"""

import json
import pathlib
import re
import sys

from parliament import analyze_policy_string
from samtranslator.yaml_helper import yaml_parse
from several_templates import several_templates

INFRA = pathlib.Path(__file__).resolve().parent.parent.parent / "infra"

TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table"
# In place of references. The label of a stream has no colon here, because parliament splits an ARN at each.
VALUES = {
    "Table.Arn": f"{TABLE}/ripple",
    "Table.StreamArn": f"{TABLE}/ripple/stream/2024",
    "StreamArn": f"{TABLE}/ripple/stream/2024",
    "LedgerTable.Arn": f"{TABLE}/ripple-ledger",
    "FailedBatches.Arn": "arn:aws:s3:::failed-batches",
    "KmsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/key",
    "TableName": "ripple",
    "AWS::StackName": "ripple",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
}

# What parliament says for no good reason.
EXCUSED = {
    # It knows no resource of ListStreams. SAM's own policy for a stream has this resource.
    ("RESOURCE_MISMATCH", "dynamodb:ListStreams"),
    # The result of a query belongs to no resource. Source: service authorization reference, "CloudWatch Logs".
    ("RESOURCE_STAR", "logs:GetQueryResults"),
}


def resolved(value):
    """The policy with a customer key, and with values in place of references."""
    if isinstance(value, list):
        return [made for made in map(resolved, value) if made is not None]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (function, of), = value.items()
        if function == "Fn::If":
            return resolved(of[1])
        if function == "Ref":
            return VALUES["StreamArn"] if of.endswith(("StreamArn", "TableStream")) else VALUES.get(of)
        if function == "Fn::GetAtt":
            name = ".".join(of) if isinstance(of, list) else of
            # One of several tables, as PostTable.StreamArn.
            name = re.sub(r"^(?!Ledger)\w+Table\.", "Table.", name)
            return VALUES.get(name, f"arn:aws:logs:eu-west-1:123456789012:log-group:{name}:*")
        if function == "Fn::Sub":
            of = re.sub(r"\$\{\w+(Table\.|TableName)", r"${\1", of)
            for name, text in VALUES.items():
                of = of.replace(f"${{{name}}}", text)
            return of
    return {name: resolved(member) for name, member in value.items()}


def documents(resource):
    properties = resource.get("Properties", {})
    if resource["Type"] == "AWS::IAM::ManagedPolicy":
        yield properties["PolicyDocument"]
    if resource["Type"] == "AWS::IAM::Role":
        yield from (policy["PolicyDocument"] for policy in properties["Policies"])


def is_excused(finding):
    detail = finding.detail if isinstance(finding.detail, list) else [finding.detail]
    return all((finding.issue, at.get("action") if isinstance(at, dict) else at) in EXCUSED for at in detail)


def main():
    n_policies, findings = 0, []
    templates = {name: (INFRA / name).read_text() for name in ["template.yaml", "attach.yaml"]}
    templates.update(several_templates())
    for name, text in templates.items():
        template = yaml_parse(text)
        for resource_name, resource in template["Resources"].items():
            for document in documents(resource):
                n_policies += 1
                audited = analyze_policy_string(json.dumps(resolved(document)))
                found = [finding for finding in audited.findings if not is_excused(finding)]
                findings += [f"{name} {resource_name}: {it.issue} {it.detail}" for it in found]
    if findings or n_policies != 6 * len(templates):
        sys.exit("\n".join([f"{n_policies} policies", *findings]))
    print(f"  {n_policies} policies")


if __name__ == "__main__":
    main()
