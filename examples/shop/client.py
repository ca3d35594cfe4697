"""The shop's application: each of its writes and reads.

It writes ground items only, and makes every key with keys.py, which
`ripple types --language python --config examples/shop/ripple.toml` printed.
Run as a program, it writes a few items to the table of `ripple dev` and prints what Ripple made of them.
Needs: boto3, and Python 3.11 or later.
"""

import argparse
import subprocess
from decimal import Decimal

import boto3
from boto3.dynamodb.conditions import Key
from keys import (
    CUSTOMER_KEY,
    LINE_BY_PRODUCT,
    LINE_KEY,
    MOVEMENT_KEY,
    ORDER_BY_CUSTOMER,
    ORDER_KEY,
    PRODUCT_BEST_SELLERS,
    PRODUCT_KEY,
)


class Shop:
    def __init__(self, table):
        self.table, self.client = table, table.meta.client

    def put_customer(self, customer_id, name, email):
        key = CUSTOMER_KEY.build({"customerId": customer_id})
        self.table.put_item(Item=key | {"type": "Customer", "name": name, "email": email})

    def rename_customer(self, customer_id, name):
        self._set(CUSTOMER_KEY.build({"customerId": customer_id}), "name", name)

    def remove_customer(self, customer_id):
        self.table.delete_item(Key=CUSTOMER_KEY.build({"customerId": customer_id}))

    def put_product(self, sku, name, category, price):
        key = PRODUCT_KEY.build({"sku": sku})
        product = {"type": "Product", "name": name, "category": category, "price": price}
        self.table.put_item(Item=key | product)

    def rename_product(self, sku, name):
        self._set(PRODUCT_KEY.build({"sku": sku}), "name", name)

    def move_stock(self, sku, quantity, moved_at, movement_id):
        self.table.put_item(Item=self._movement(sku, quantity, moved_at, movement_id))

    def undo_movement(self, sku, moved_at, movement_id):
        key = {"sku": sku, "movedAt": moved_at, "movementId": movement_id}
        self.table.delete_item(Key=MOVEMENT_KEY.build(key))

    def place_order(self, order_id, customer_id, ordered_at, lines):
        """Writes an order, its lines and their stock movements in one transaction. `lines` are (sku, quantity, amount).

        A repeated call writes the same items, so a client may retry it.
        """
        key = ORDER_KEY.build({"orderId": order_id})
        key |= ORDER_BY_CUSTOMER.build({"orderId": order_id, "customerId": customer_id, "orderedAt": ordered_at})
        order = {"type": "Order", "customerId": customer_id, "orderedAt": ordered_at, "status": "placed"}
        items = [key | order]
        for sku, quantity, amount in lines:
            key = LINE_KEY.build({"orderId": order_id, "sku": sku})
            key |= LINE_BY_PRODUCT.build({"orderId": order_id, "sku": sku})
            items.append(key | {"type": "Line", "quantity": quantity, "amount": amount})
            items.append(self._movement(sku, -quantity, ordered_at, order_id))
        puts = [{"Put": {"TableName": self.table.name, "Item": item}} for item in items]
        self.client.transact_write_items(TransactItems=puts)

    def set_status(self, order_id, status):
        self._set(ORDER_KEY.build({"orderId": order_id}), "status", status)

    def remove_line(self, order_id, sku):
        self.table.delete_item(Key=LINE_KEY.build({"orderId": order_id, "sku": sku}))

    def remove_order(self, order_id):
        self.table.delete_item(Key=ORDER_KEY.build({"orderId": order_id}))

    def customer(self, customer_id):
        return self.table.get_item(Key=CUSTOMER_KEY.build({"customerId": customer_id})).get("Item")

    def product(self, sku):
        return self.table.get_item(Key=PRODUCT_KEY.build({"sku": sku})).get("Item")

    def order_with_lines(self, order_id):
        """The order and its lines: one query, since they have one partition key."""
        [partition] = ORDER_KEY.partition_keys({"orderId": order_id})
        items = self.table.query(KeyConditionExpression=Key("pk").eq(partition))["Items"]
        # The counters of the order are in its partition too.
        return [item for item in items if item["type"] in ("Order", "Line")]

    def orders_of(self, customer_id):
        """The orders of a customer, newest first."""
        [partition] = ORDER_BY_CUSTOMER.partition_keys({"customerId": customer_id})
        return self._index("byCustomer", Key("customerPk").eq(partition), newest_first=True)

    def best_sellers(self, category):
        [partition] = PRODUCT_BEST_SELLERS.partition_keys({"category": category})
        return self._index("bestSellers", Key("bestPk").eq(partition))

    def _movement(self, sku, quantity, moved_at, movement_id):
        key = MOVEMENT_KEY.build({"sku": sku, "movedAt": moved_at, "movementId": movement_id})
        return key | {"type": "Movement", "quantity": quantity}

    def _index(self, index, condition, newest_first=False):
        query = {"IndexName": index, "KeyConditionExpression": condition, "ScanIndexForward": not newest_first}
        return self.table.query(**query)["Items"]

    def _set(self, key, attribute, value):
        """Sets an attribute of an item that exists: an update alone would make one without a type."""
        try:
            self.table.update_item(
                Key=key,
                UpdateExpression="SET #attribute = :value",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeNames={"#attribute": attribute},
                ExpressionAttributeValues={":value": value},
            )
        except self.client.exceptions.ConditionalCheckFailedException:
            return False
        return True


def shop_at(endpoint, table="ripple"):
    resource = boto3.resource(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    return Shop(resource.Table(table))


def main():
    parser = argparse.ArgumentParser(description="Writes a few items, and prints what Ripple made of them.")
    parser.add_argument("--endpoint", default="http://127.0.0.1:8000")
    parser.add_argument("--wait", required=True, help="the command that waits for Ripple, such as `ripple wait …`")
    arguments = parser.parse_args()
    shop = shop_at(arguments.endpoint)
    shop.put_customer("ada", "Ada", "ada@example.org")
    shop.put_product("tea", "Green tea", "drinks", Decimal("4.50"))
    shop.put_product("mate", "Mate", "drinks", Decimal("6.25"))
    shop.move_stock("tea", 100, "2026-01-01T08:00:00Z", "first")
    shop.place_order("1", "ada", "2026-01-02T09:30:00Z", [("tea", 2, Decimal("9.00")), ("mate", 1, Decimal("6.25"))])
    shop.place_order("2", "ada", "2026-01-03T12:00:00Z", [("mate", 4, Decimal("25.00"))])
    shop.rename_customer("ada", "Ada Lovelace")
    subprocess.run(arguments.wait.split(), check=True, stdout=subprocess.DEVNULL)
    ada = shop.customer("ada")
    print(f"{ada['name']}: {ada['orderCount']} orders, {ada['spent']} spent")
    for order in shop.orders_of("ada"):
        if key := ORDER_KEY.parse(order):
            print(f"order {key['orderId']}: {order['total']}")
    for listed in shop.best_sellers("drinks"):
        if product := PRODUCT_KEY.parse(listed):
            print(f"{listed['name']}: {shop.product(product['sku'])['unitsSold']} sold")
    print(f"stock of tea: {shop.product('tea')['stock']}")


if __name__ == "__main__":
    main()
