"""Writes what `ripple verify --json` says is derived: a table whose items were there before Ripple was.

    ripple verify … --json > findings.json
    python3 set-findings.py findings.json --table TABLE

Only while nobody writes, since a counter is set to what was verified. Deletes nothing: what should not be there is
named, as is what a person must change. Ends with 0 when everything was written, and with 3 when something is named.
Needs boto3, and the standard AWS environment; `--endpoint-url` is for an emulator.
"""

import argparse
import base64
import decimal
import json
import sys

import boto3
from botocore.exceptions import ClientError


def from_json(value):
    """An attribute's value as boto3 wants it: in JSON, binary is base64."""
    ((kind, content),) = value.items()
    if kind == "B":
        return {kind: base64.b64decode(content)}
    if kind == "BS":
        return {kind: [base64.b64decode(part) for part in content]}
    if kind == "L":
        return {kind: [from_json(part) for part in content]}
    if kind == "M":
        return {kind: {name: from_json(part) for name, part in content.items()}}
    return value


def is_counter(finding):
    return f"#COUNT#{finding['derivation']}#" in finding["sk"]


def added(finding, arguments):
    """The update that brings a counter to what is derived: on the named shard, what all of its shards lack together."""
    stored, derived = finding["stored"] or {}, finding["derived"] or {}
    names = sorted({"Value", "Sum"} & (stored.keys() | derived.keys()))
    zero = {"N": "0"}
    # 38 digits, as DynamoDB has them.
    exact = decimal.Context(prec=38)
    lacking = {name: exact.subtract(*(exact.create_decimal(of.get(name, zero)["N"]) for of in (derived, stored))) for name in names}
    return {
        "UpdateExpression": "SET #type = :type ADD " + ", ".join(f"#{name} :{name}" for name in names),
        "ExpressionAttributeNames": {"#type": arguments.type} | {f"#{name}": name for name in names},
        "ExpressionAttributeValues": {":type": {"S": "Counter"}}
        | {f":{name}": {"N": format(number, "f")} for name, number in lacking.items()},
    }


def changed(finding, keys):
    """The update that gives an item the attributes that are derived, and takes those that are not."""
    derived = {name: value for name, value in finding["derived"].items() if name not in keys}
    gone = [name for name in finding["stored"] if name not in finding["derived"] and name not in keys]
    sets = [f"#s{number} = :s{number}" for number in range(len(derived))]
    removes = [f"#r{number}" for number in range(len(gone))]
    names = {f"#s{number}": name for number, name in enumerate(derived)}
    update = {
        "UpdateExpression": " ".join(
            [f"SET {', '.join(sets)}"] * bool(sets) + [f"REMOVE {', '.join(removes)}"] * bool(removes)
        ),
        "ConditionExpression": "attribute_exists(#key)",
        "ExpressionAttributeNames": names | {f"#r{number}": name for number, name in enumerate(gone)} | {"#key": keys[0]},
    }
    values = {f":s{number}": from_json(value) for number, value in enumerate(derived.values())}
    return update | ({"ExpressionAttributeValues": values} if values else {})


def written(client, finding, arguments):
    """Writes what a finding says; `None`, or why a person must look."""
    keys = (arguments.partition_key, arguments.sort_key)
    key = {keys[0]: {"S": finding["pk"]}, keys[1]: {"S": finding["sk"]}}
    if "flaw" in finding:
        return finding["flaw"]
    try:
        if is_counter(finding):
            if any("N" not in value for value in (finding["stored"] or {}).values()):
                return "the counter is not a number"
            client.update_item(TableName=arguments.table, Key=key, **added(finding, arguments))
        elif finding["derived"] is None:
            return "it should not be there"
        elif finding["stored"] is None:
            item = {name: from_json(value) for name, value in finding["derived"].items()}
            condition = {"ConditionExpression": "attribute_not_exists(#key)", "ExpressionAttributeNames": {"#key": keys[0]}}
            client.put_item(TableName=arguments.table, Item=item | key, **condition)
        else:
            client.update_item(TableName=arguments.table, Key=key, **changed(finding, keys))
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return "it came or went since it was verified"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("findings", help="what `ripple verify --json` printed")
    parser.add_argument("--table", required=True)
    parser.add_argument("--partition-key", default="PK", help="attribute of the partition key; PK where not given")
    parser.add_argument("--sort-key", default="SK", help="attribute of the sort key; SK where not given")
    parser.add_argument("--type", default="EntityType", help="attribute of the type; EntityType where not given")
    parser.add_argument("--endpoint-url", help="of an emulator")
    arguments = parser.parse_args()
    client = boto3.client("dynamodb", endpoint_url=arguments.endpoint_url)
    with open(arguments.findings, encoding="utf-8") as file:
        findings = json.load(file)["findings"]
    n_named = 0
    for finding in findings:
        if why := written(client, finding, arguments):
            n_named += 1
            print(f"left        {finding['derivation']}  {finding['pk']} / {finding['sk']}: {why}")
    print(f"{len(findings) - n_named} written, {n_named} left for a person")
    sys.exit(3 if n_named else 0)


if __name__ == "__main__":
    main()
