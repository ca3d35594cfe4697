"""Holds what CloudFormation makes of the templates of infra/ and of those of several tables: the SAM transform, for each
number of readers, ledger and kind of table, and in its result the event source mappings with every setting.

Needs aws-sam-translator, boto3 and cargo; no network, and no account.
"""

import copy
import itertools
import json
import logging
import pathlib
import sys

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse
from several_templates import STREAMS, several_templates

# The library warns of metrics of its own that nobody collects.
logging.disable(logging.WARNING)

INFRA = pathlib.Path(__file__).resolve().parent.parent.parent / "infra"

# Parameters that the attaching template requires.
ATTACHED = {
    "TableName": "theirs",
    "StreamArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/theirs/stream/2026-01-01T00:00:00.000",
}
KEY = {"KmsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"}
LEVERS = {"ReservedConcurrency": "8", "FanOutUnitsPerSecond": "300", "LatencyTarget": "low", "BatchSize": "1000"}
OWN = {"ConfigUri": "s3://their-bucket/ripple.zip"}

ALL_RECORDS_AGE_S = -1
AGE_S_MAX = 82_800


def transformed(text, parameters):
    """The template as CloudFormation gets it, with these parameters."""
    template = yaml_parse(text)
    for resource in template["Resources"].values():
        # `sam deploy` puts the packages into a bucket before the transform.
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://packages/function.zip"
    session = boto3.Session(region_name="eu-west-1")
    translator = Translator({}, Parser(), boto_session=session)
    return translator.translate(sam_template=template, parameter_values=parameters)


def resolved(template, parameters):
    """The resources that there are with these parameters, with every choice made."""
    values = {name: parameter.get("Default") for name, parameter in template["Parameters"].items()}
    values.update(parameters)
    nothing = object()

    def holds(condition):
        (kind, of), = condition.items()
        if kind == "Fn::Equals":
            one, other = (str(values[it["Ref"]]) if isinstance(it, dict) else str(it) for it in of)
            return one == other
        if kind == "Fn::Not":
            return not holds(of[0])
        raise AssertionError(f"no condition is of the kind {kind}")

    def chosen(value):
        if isinstance(value, list):
            return [it for it in map(chosen, value) if it is not nothing]
        if not isinstance(value, dict):
            return value
        if list(value) == ["Fn::If"]:
            condition, yes, no = value["Fn::If"]
            return chosen(yes if holds(template["Conditions"][condition]) else no)
        if list(value) == ["Ref"]:
            return nothing if value["Ref"] == "AWS::NoValue" else values.get(value["Ref"], value)
        if list(value) == ["Fn::Split"]:
            separator, text = chosen(value["Fn::Split"])
            return text.split(separator)
        if list(value) == ["Fn::Select"]:
            place, all_of_them = chosen(value["Fn::Select"])
            return all_of_them[place]
        members = {name: chosen(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member is not nothing}

    def there_is(resource):
        return "Condition" not in resource or holds(template["Conditions"][resource["Condition"]])

    resources = copy.deepcopy(template["Resources"])
    return {name: chosen(resource) for name, resource in resources.items() if there_is(resource)}


def check(name, text, parameters, streams=None):
    """Holds the mappings of one combination. `streams` has what each function reads of several tables."""
    template = transformed(text, parameters)
    # The transform makes resources of its own, whose names must be nobody else's.
    assert not set(template["Parameters"]) & set(template["Resources"]), (name, parameters)
    resources = resolved(template, parameters)
    of_type = lambda kind: {id: it["Properties"] for id, it in resources.items() if it["Type"] == kind}
    mappings = of_type("AWS::Lambda::EventSourceMapping")
    two = parameters["Readers"] == "two"
    reads = streams or {"Aggregate": [""], "Propagate": [""]}
    if not two:
        reads = {"Combined": {table for tables in reads.values() for table in tables}}
    expected = {f"{function}{table}Stream" for function, tables in reads.items() for table in tables}
    assert set(mappings) == expected, (name, parameters, set(mappings))
    watermarks = parameters["Ledger"] == "watermarks"
    low = parameters.get("LatencyTarget") == "low"
    # Lambda's defaults are 100 records and no window; with a size of one's own its API wants a window.
    batch_size = parameters.get("BatchSize", None if low else 500)
    window_seconds, lanes = (1 if batch_size else None, 4) if low else (5, 2)
    # A layer holds a manifest.
    own = "ConfigUri" in parameters
    for id, mapping in mappings.items():
        has_lanes = id.startswith("Propagate")
        window = 60 if watermarks and not has_lanes else None
        age = ALL_RECORDS_AGE_S if watermarks and not has_lanes else AGE_S_MAX
        settings = {
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": batch_size,
            "MaximumBatchingWindowInSeconds": window_seconds,
            "ParallelizationFactor": lanes if has_lanes else 1,
            "TumblingWindowInSeconds": window,
            "MaximumRetryAttempts": -1,
            "MaximumRecordAgeInSeconds": age,
            "BisectBatchOnFunctionError": False,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["FailedBatches", "Arn"]}}},
            "MetricsConfig": {"Metrics": ["EventCount"]},
        }
        for setting, value in settings.items():
            assert mapping.get(setting) == value, (name, parameters, id, setting, mapping.get(setting))
        filters = mapping.get("FilterCriteria", {}).get("Filters", [])
        # One of several tables has filters where its keys have text.
        assert streams or bool(filters) != own, (name, parameters, id, filters)
        assert len(filters) <= 5, (name, parameters, id, filters)
        for pattern in filters:
            json.loads(pattern["Pattern"])
    functions = of_type("AWS::Lambda::Function")
    names = {"Aggregate", "Propagate", "Sweep"} if two else {"Combined", "Sweep"}
    assert set(functions) == names, (name, parameters, set(functions))
    layers = of_type("AWS::Lambda::LayerVersion")
    assert len(layers) == own, layers
    for function in functions.values():
        variables = function["Environment"]["Variables"]
        assert (function["Runtime"], function["Architectures"]) == ("provided.al2023", ["arm64"])
        assert (variables["LEDGER"], function["MemorySize"]) == (parameters["Ledger"], 512)
        assert variables["CONFIG"] == ("/opt/ripple.toml" if own else ""), variables
        assert variables["FAN_OUT_UNITS_PER_SECOND"] == parameters.get("FanOutUnitsPerSecond", ""), variables
        assert [layer["Ref"] for layer in function.get("Layers", [])] == list(layers), function.get("Layers")
    for function, properties in functions.items():
        cap = None if function == "Sweep" else parameters.get("ReservedConcurrency")
        assert properties.get("ReservedConcurrentExecutions") == cap, (name, parameters, function, properties)
    for layer in layers.values():
        assert layer["Content"] == {"S3Bucket": "their-bucket", "S3Key": "ripple.zip"}, layer
    # A role of its own for each function, that may read the stream and write to the bucket, and nothing by AWS' own
    # policies, which are for all tables.
    roles = of_type("AWS::IAM::Role")
    for function in names:
        role = roles[f"{function}Role"]
        policies = json.dumps(role["Policies"])
        assert functions[function]["Role"] == {"Fn::GetAtt": [f"{function}Role", "Arn"]}, functions[function]["Role"]
        assert "ManagedPolicyArns" not in role and '"*"' not in policies, (name, role)
        assert ("s3:PutObject" in policies) == ("GetRecords" in policies) == (function != "Sweep"), (name, function)
        assert ("kms:" in policies) == ("KmsKeyArn" in parameters), (name, function)
    return len(mappings)


def main():
    count, n_stacks = 0, 0
    files = {name: (INFRA / name).read_text() for name in ["template.yaml", "attach.yaml"]}
    several = several_templates()
    for readers, ledger in itertools.product(["one", "two"], ["receipts", "watermarks"]):
        choice = {"Readers": readers, "Ledger": ledger}
        for name, parameters in [
            ("template.yaml", {}),
            ("attach.yaml", ATTACHED),
            ("template.yaml", KEY),
            ("template.yaml", {**OWN, **LEVERS}),
            ("attach.yaml", {**ATTACHED, **OWN, **KEY}),
        ]:
            count, n_stacks = count + check(name, files[name], {**choice, **parameters}), n_stacks + 1
        for name, text in several.items():
            asked = {it for it, about in yaml_parse(text)["Parameters"].items() if "Default" not in about}
            theirs = {it: ATTACHED["StreamArn" if it.endswith("StreamArn") else "TableName"] for it in asked}
            streams = STREAMS[name.removesuffix("-attach")]
            count, n_stacks = count + check(name, text, {**choice, **theirs, **OWN}, streams), n_stacks + 1
    print(f"{count} event source mappings of {n_stacks} stacks are as they should be")


if __name__ == "__main__":
    sys.exit(main())
