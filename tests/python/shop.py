"""The shop of examples/shop under `ripple dev`: its client writes, retries, cancels and deletes, and loops over the ground
items recount every derived attribute.

Needs: boto3.
"""

import collections
import decimal
import os
import random
import subprocess
import sys
import threading
from decimal import Decimal

from built import ROOT
from served import RIPPLE, compare, in_step, served

FOLDER = os.path.join(ROOT, "examples", "shop")
MANIFEST = os.path.join(FOLDER, "ripple.toml")
sys.path.insert(0, FOLDER)
import client as application  # noqa: E402
import keys  # noqa: E402

SEED = 20
N_THREADS = 4
# Actions of each thread.
N_ACTIONS = 150
CUSTOMERS = [f"c{number}" for number in range(8)] + ["Ann & Bob #1", "50%"]
PRODUCTS = [f"p{number}" for number in range(6)] + ["a/b#c"]
CATEGORIES = ["drinks", "food & more"]
STATUSES = ["placed", "paid", "sent", "cancelled"]


class Client:
    """A client of the shop: some of its calls are repeated, as after an answer that did not arrive."""

    def __init__(self, endpoint, number):
        self.shop, self.random = application.shop_at(endpoint), random.Random(SEED * 100 + number)
        self.number, self.orders, self.moved, self.failure = number, {}, [], None

    def run(self):
        try:
            for step in range(N_ACTIONS):
                self.act(step, f"2026-01-{1 + step % 28:02}T00:{step % 60:02}:00.{self.number}{step:03}Z")
        except Exception as failure:  # The main thread reports it.
            self.failure = failure

    def act(self, step, now):
        draw, shop = self.random, self.shop
        customer, sku, status = draw.choice(CUSTOMERS), draw.choice(PRODUCTS), draw.choice(STATUSES)
        order = draw.choice(sorted(self.orders)) if self.orders else None
        action = draw.choices(
            ["order", "status", "customer", "product", "stock", "undo", "line", "remove", "leave"], [30, 25, 10, 8, 12, 6, 8, 5, 2]
        )[0]
        repeats = draw.choice([1, 1, 1, 2])
        amount = lambda: Decimal(draw.randrange(0, 10_000)) / 100
        lines = [(sku, draw.randrange(1, 9), amount()) for sku in draw.sample(PRODUCTS, draw.randrange(1, 4))]
        for _ in range(repeats):
            if action == "order":
                self.orders[f"{self.number}-{step}"] = [line[0] for line in lines]
                shop.place_order(f"{self.number}-{step}", customer, now, lines)
            elif action == "customer":
                rename = draw.random() < 0.6
                _ = shop.rename_customer(customer, f"{customer} at {now}") if rename else shop.put_customer(customer, now, now)
            elif action == "product":
                rename = draw.random() < 0.6
                put = lambda: shop.put_product(sku, now, CATEGORIES[len(sku) % 2], Decimal("9.99"))
                _ = shop.rename_product(sku, f"{sku} at {now}") if rename else put()
            elif action == "stock":
                shop.move_stock(sku, draw.randrange(-5, 50), now, f"{self.number}-{step}")
                self.moved.append((sku, now, f"{self.number}-{step}"))
            elif action == "undo" and self.moved:
                shop.undo_movement(*self.moved[-1])
            elif action == "leave":
                shop.remove_customer(customer)
            elif order and action == "status":
                shop.set_status(order, status)
            elif order and action == "line":
                shop.remove_line(order, self.orders[order][0])
            elif order and action == "remove":
                shop.remove_order(order)


def ground_and_derived(table):
    """The items of each entity by their keys, and what Ripple wrote of them."""
    derived_names = {
        "Customer": ["orderCount", "spent", "averageOrder", "isBuyer"],
        "Order": ["customerName", "lineCount", "total"],
        "Line": ["productName", "orderStatus"],
        "Product": ["unitsSold", "revenue", "stock", "lastMovedAt"],
        "Movement": [],
    }
    forms = {"Customer": keys.CUSTOMER_KEY, "Order": keys.ORDER_KEY, "Line": keys.LINE_KEY}
    forms |= {"Product": keys.PRODUCT_KEY, "Movement": keys.MOVEMENT_KEY}
    ground, derived = collections.defaultdict(dict), collections.defaultdict(dict)
    pages = table.meta.client.get_paginator("scan").paginate(TableName=table.name, ConsistentRead=True)
    for item in (item for page in pages for item in page["Items"]):
        entity = item["type"]
        if entity == "Counter":
            continue
        fields = forms[entity].parse(item)
        names = derived_names[entity]
        key = tuple(fields.values())
        ground[entity][key] = fields | {name: value for name, value in item.items() if name not in names}
        derived[entity][key] = {name: item.get(name) for name in names}
    return ground, derived


def recounted(ground):
    """Every derived attribute, from the ground items alone."""
    wanted = {entity: {key: {} for key in items} for entity, items in ground.items()}
    orders, products, customers = ground["Order"], ground["Product"], ground["Customer"]
    for order in orders:
        lines = [line for line in ground["Line"].values() if line["orderId"] == order[0]]
        customer = customers.get((orders[order]["customerId"],), {})
        total = sum(line["amount"] for line in lines)
        wanted["Order"][order] = {"customerName": customer.get("name"), "lineCount": len(lines), "total": total}
    for customer in customers:
        bought = [order for order, it in orders.items() if it["customerId"] == customer[0] and it["status"] != "cancelled"]
        spent = sum(wanted["Order"][order]["total"] for order in bought)
        wanted["Customer"][customer] = {"orderCount": len(bought), "spent": spent}
        if bought:
            average = (spent / Decimal(len(bought))).quantize(Decimal("0.000001"), decimal.ROUND_HALF_EVEN)
            wanted["Customer"][customer] |= {"averageOrder": average, "isBuyer": True}
    for key, line in ground["Line"].items():
        order, product = orders.get((line["orderId"],), {}), products.get((line["sku"],), {})
        wanted["Line"][key] = {"productName": product.get("name"), "orderStatus": order.get("status")}
    for (sku,) in products:
        lines = [(key, line) for key, line in ground["Line"].items() if line["sku"] == sku]
        sold = [line for key, line in lines if wanted["Line"][key]["orderStatus"] not in (None, "cancelled")]
        moves = [move for move in ground["Movement"].values() if move["sku"] == sku]
        wanted["Product"][(sku,)] = {
            "unitsSold": sum(line["quantity"] for line in sold),
            "revenue": sum(line["amount"] for line in sold),
            "stock": sum(move["quantity"] for move in moves),
            "lastMovedAt": max((move["movedAt"] for move in moves), default=None),
        }
    return wanted


def best_sellers(shop, ground, wanted):
    for category in CATEGORIES:
        sold = {key[0]: wanted["Product"][key]["unitsSold"] for key, it in ground["Product"].items() if it["category"] == category}
        by_sales = sorted((sku for sku in sold if sold[sku]), key=lambda sku: (-sold[sku], sku.replace("#", "%23")))
        listed = [keys.PRODUCT_KEY.parse(item)["sku"] for item in shop.best_sellers(category)]
        if listed != by_sales:
            sys.exit(f"the best sellers of {category} are {listed}, and a recount gives {by_sales}")
        print(f"  {len(listed)} best sellers of {category}")


def main():
    with served(MANIFEST) as endpoint:
        printed = subprocess.run([RIPPLE, "types", "--language", "python", "--config", MANIFEST], capture_output=True, text=True)
        with open(f"{FOLDER}/keys.py", encoding="utf-8") as file:
            if file.read() != printed.stdout:
                sys.exit("examples/shop/keys.py is not what `ripple types` prints: print it again")
        clients = [Client(endpoint, number) for number in range(N_THREADS)]
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            if client.failure:
                raise client.failure
        in_step(endpoint, MANIFEST)
        shop = clients[0].shop
        ground, derived = ground_and_derived(shop.table)
        wanted = recounted(ground)
        for entity in ("Customer", "Order", "Line", "Product"):
            compare(f"items of {entity}", derived[entity], wanted[entity])
        best_sellers(shop, ground, wanted)


if __name__ == "__main__":
    main()
