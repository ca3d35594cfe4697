

# ---- Reads. `table` is a `Table` of boto3's resource. ----

import base64
import json
import time
from dataclasses import dataclass
from typing import Iterable

Of = TypeVar("Of")
Bound = TypeVar("Bound")


@dataclass
class Page(Generic[Of]):
    """A page of items. Without a cursor it is the last one, even if another has fewer items than its limit."""

    items: list[Of]
    cursor: str | None = None


@dataclass
class Found(Generic[Of, Fields]):
    """Items in any order, and the fields of those that are not there."""

    items: list[Of]
    missing: list[Fields]


@dataclass
class Counted:
    """The count and the sum of a derivation."""

    count: int
    sum: Decimal | None = None


class InvalidCursor(ValueError):
    """A cursor that is damaged, or of another query."""


# Requests to a partition for a page. A page ends early if nearly all items are left out.
ROUNDS_MAX = 10
LIMIT_MAX = 1000
# Failures in a row until a batch of keys counts as failed.
FAILURES_MAX = 8


@dataclass(frozen=True)
class _Read(Generic[Fields, Of]):
    name: str
    form: KeyForm[Any, Any, Any]
    # Key attributes of the table, and those that are numbers.
    table: tuple[str, ...]
    numbers: tuple[str, ...]
    # The type attribute, and the entities of its items; or the forms of their keys; neither if all items are.
    entities: tuple[str, ...]
    forms: tuple[KeyForm[Any, Any, Any], ...]
    type: str | None
    consistent: bool

    def _is_of(self, item: Mapping[str, Any]) -> bool:
        if self.type is not None:
            return item.get(self.type) in self.entities
        return not self.forms or any(form.parse(item) is not None for form in self.forms)

    def _typed(self, name: str, text: str) -> Any:
        if name not in self.numbers:
            return text
        if _decimal(text) is None:
            raise InvalidKey(self.form.entity, name, "is not a number of at most 38 digits")
        # In one spelling, as DynamoDB returns it.
        return Decimal(text).normalize()

    def _key(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._typed(name, text) for name, text in self.form.build(fields).items()}


@dataclass(frozen=True)
class Get(_Read[Fields, Of]):
    def __call__(self, table: Any, fields: Fields, *, consistent: bool | None = None) -> Of | None:
        """The item; None if there is none."""
        is_consistent = self.consistent if consistent is None else consistent
        item: Any = table.get_item(Key=self._key(fields), ConsistentRead=is_consistent).get("Item")
        return item if item is not None and self._is_of(item) else None


@dataclass(frozen=True)
class BatchGet(_Read[Fields, Of]):
    def __call__(self, table: Any, all: Iterable[Fields], *, consistent: bool | None = None) -> Found[Of, Fields]:
        """The items with these keys. Each key is read once."""
        is_consistent = self.consistent if consistent is None else consistent
        text = lambda item: tuple(_spelled(item[name]) for name in self.table)
        missing = {text(self._key(fields)): fields for fields in all}
        waiting = [self._key(fields) for fields in missing.values()]
        items: list[Any] = []
        failures = 0
        while waiting:
            keys, waiting = waiting[:100], waiting[100:]
            request = {table.name: {"Keys": keys, "ConsistentRead": is_consistent}}
            output = table.meta.client.batch_get_item(RequestItems=request)
            for item in output.get("Responses", {}).get(table.name, []):
                if self._is_of(item) and missing.pop(text(item), None) is not None:
                    items.append(item)
            unprocessed = output.get("UnprocessedKeys", {}).get(table.name, {}).get("Keys", [])
            waiting += unprocessed
            failures = failures + 1 if len(unprocessed) == len(keys) else 0
            if failures > FAILURES_MAX:
                raise TimeoutError(f"DynamoDB has not processed {len(waiting)} keys of {self.name}")
            if unprocessed:
                time.sleep(0.025 * 2**failures)
        return Found(items, list(missing.values()))


@dataclass(frozen=True)
class Counts(_Read[Fields, None]):
    def __call__(self, table: Any, fields: Fields) -> dict[str, Counted]:
        """By the name of the derivation; one that never counted anything is absent."""
        (partition, sort), key = self.table, self._key(fields)
        prefix = f"{key[sort]}#COUNT#"
        counts: dict[str, Counted] = {}
        request: dict[str, Any] = {
            "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
            "ExpressionAttributeNames": {"#p": partition, "#s": sort},
            "ExpressionAttributeValues": {":p": key[partition], ":s": prefix},
            "ConsistentRead": self.consistent,
        }
        while True:
            output = table.query(**request)
            for item in output["Items"]:
                key_of = re.fullmatch("([^#]+)#[0-9]{2}", item[sort][len(prefix) :])
                if key_of is None or not self._is_of(item):
                    continue
                counted = counts.setdefault(key_of[1], Counted(0))
                counted.count += int(item.get("Value", 0))
                if "Sum" in item:
                    counted.sum = (counted.sum or Decimal(0)) + item["Sum"]
            if "LastEvaluatedKey" not in output:
                return counts
            request["ExclusiveStartKey"] = output["LastEvaluatedKey"]


@dataclass
class _Lane:
    partition: str
    # Before all of the partition (0), at its end (1), or behind the item with this key.
    position: Any
    ahead: list[Any]
    is_read: bool


@dataclass(frozen=True)
class Query(_Read[Fields, Of], Generic[Fields, Of, Bound]):
    fields: tuple[str, ...]
    descending: bool
    limit: int
    next: str | None = None
    below: bool = False
    range: tuple[str, str] | None = None
    filter: tuple[str, tuple[str, ...], tuple[tuple[str, Any], ...]] | None = None

    def __call__(
        self,
        table: Any,
        fields: Fields,
        *,
        low: Bound | None = None,
        high: Bound | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        order: Literal["ascending", "descending"] | None = None,
        consistent: bool | None = None,
    ) -> Page[Of]:
        """A page. `low` and `high` are bounds of the next field of the sort key, inclusive."""
        limit = self.limit if limit is None else limit
        if not 1 <= limit <= LIMIT_MAX:
            raise ValueError(f"limit is from 1 to {LIMIT_MAX}")
        descending = self.descending if order is None else order == "descending"
        if order not in (None, "ascending", "descending"):
            raise ValueError("order is ascending or descending")
        request = self._request(fields, low, high)
        request["ScanIndexForward"] = not descending
        if consistent and self.form.index is not None:
            raise ValueError("an index is never read consistently: leave consistent out")
        request["ConsistentRead"] = self.consistent if consistent is None else consistent
        partitions, sort = self.form.partition_keys(fields), self.form.names[1]
        scope = json.dumps([self.name, partitions, request], default=str)
        positions = [0] * len(partitions) if cursor is None else self._opened(cursor, scope)
        lanes = [_Lane(partition, at, [], at == 1) for partition, at in zip(partitions, positions)]
        share = min(limit, -(-2 * limit // len(lanes)))
        items: list[Any] = []
        rounds = 0
        while len(items) < limit and rounds < ROUNDS_MAX:
            wanted = min(LIMIT_MAX, (share if len(lanes) > 1 else limit - len(items)) * 2**rounds)
            for lane in lanes:
                if not lane.ahead and not lane.is_read:
                    self._fill(table, request, lane, wanted)
            rounds += 1
            while len(items) < limit and all(lane.ahead or lane.is_read for lane in lanes):
                ahead = [lane for lane in lanes if lane.ahead]
                if not ahead:
                    return Page(items)
                # The first of equals, in either order.
                lane = (max if descending else min)(ahead, key=lambda lane: self._order(lane.ahead[0].get(sort, "")))
                item = lane.ahead.pop(0)
                lane.position = self._position(item)
                if self._is_of(item):
                    items.append(item)
        ended = [lane.is_read and not lane.ahead for lane in lanes]
        if all(ended):
            return Page(items)
        text = json.dumps([1 if is_ended else lane.position for lane, is_ended in zip(lanes, ended)])
        sealed = f"{zlib.crc32((scope + text).encode())}.{text}"
        return Page(items, base64.urlsafe_b64encode(sealed.encode()).decode().rstrip("="))

    def _request(self, fields: Mapping[str, Any], low: Any, high: Any) -> dict[str, Any]:
        partition, sort = self.form.names
        names, values = {"#p": partition}, {}
        # What is missing would widen the range.
        inputs = [value for kind, value in self.filter[2] if kind == "input"] if self.filter else []
        needed = [*self.fields, *([self.next] if self.below else []), *inputs]
        for name in needed:
            if fields.get(name or "") is None:
                raise InvalidKey(self.form.entity, name or "", "is missing; the read needs it")
        # What is not used would seem to narrow the range.
        known = [piece[1] for piece in self.form.partition if piece[0] != "literal"]
        for name in fields:
            if name not in known and name not in needed:
                raise InvalidKey(self.form.entity, name, "is no value of this read: leave it out")
        condition, bounds = self._sort_keys(fields, low, high)
        if condition:
            names["#s"] = sort
            values = {name: self._typed(sort, text) for name, text in bounds.items() if name in condition}
        if ":l AND :g" in condition and self._order(values[":g"]) < self._order(values[":l"]):
            problem = "has a low that is behind its high in the order of the key"
            raise InvalidKey(self.form.entity, self.next or "", problem)
        request: dict[str, Any] = {"KeyConditionExpression": "#p = :p" + condition}
        if self.form.index is not None:
            request["IndexName"] = self.form.index
        if self.filter is not None:
            request["FilterExpression"], attributes, given = self.filter
            names |= {f"#n{at}": name for at, name in enumerate(attributes)}
            for at, (kind, value) in enumerate(given):
                values[f":v{at}"] = fields[value] if kind == "input" else value
        return request | {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}

    def _sort_keys(self, given: Mapping[str, Any], low: Any, high: Any) -> tuple[str, dict[str, str]]:
        """The condition on the sort key, and its values."""
        if self.range == ("", ""):
            return "", {}
        if self.range is not None:
            return " AND #s BETWEEN :l AND :g", dict(zip((":l", ":g"), self.range))
        form, next = self.form, self.next
        sort = {name: given[name] for name in self.fields}
        prefix = form.sort_key_prefix(sort)
        begins = lambda prefix: (" AND begins_with(#s, :l)" if prefix else "", {":l": prefix})
        if next is None:
            is_whole = prefix and all(form == "literal" or name in sort for form, name, *_ in self.form.sort)
            return (" AND #s = :l", {":l": prefix}) if is_whole else begins(prefix)
        if self.below:
            return begins(form.sort_key_prefix(sort | {next: given[next]}) + "/")
        if low is None and high is None:
            return begins(prefix)
        if any(form == "inverted" and name == next for form, name, *_ in form.sort):
            low, high = high, low
        least = prefix if low is None else form.sort_key_prefix(sort | {next: low})
        if high is None:
            greatest = _past(prefix)
        else:
            greatest = form.sort_key_prefix(sort | {next: high})
            greatest = greatest if form.sort[-1][1] == next else _past(greatest)
        if greatest is None:
            return " AND #s >= :l", {":l": least}
        condition = " AND #s BETWEEN :l AND :g" if least else " AND #s <= :g"
        return condition, {":l": least, ":g": greatest}

    def _fill(self, table: Any, request: dict[str, Any], lane: _Lane, wanted: int) -> None:
        partition = self._typed(self.form.names[0], lane.partition)
        values = request["ExpressionAttributeValues"] | {":p": partition}
        start = {}
        if isinstance(lane.position, list):
            key = zip(self._position_names(), lane.position)
            key_of = {name: self._typed(name, text) for name, text in key}
            start = {"ExclusiveStartKey": {self.form.names[0]: partition} | key_of}
        output = table.query(**request | {"ExpressionAttributeValues": values, "Limit": wanted} | start)
        lane.ahead, last = output["Items"], output.get("LastEvaluatedKey")
        lane.is_read = last is None
        if not lane.ahead and last is not None:
            lane.position = self._position(last)

    def _order(self, key: Any) -> Any:
        return key.encode() if isinstance(key, str) else key

    def _position_names(self) -> list[str]:
        """The key attributes of a position, without the partition key of the query, which the caller gives again."""
        names = dict.fromkeys((self.form.names[1], *self.table))
        return [name for name in names if name and name != self.form.names[0]]

    def _position(self, item: Mapping[str, Any]) -> list[str]:
        return [_spelled(item[name]) for name in self._position_names()]

    def _opened(self, cursor: str, scope: str) -> list[Any]:
        try:
            sealed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
            checksum, text = sealed.split(".", 1)
            if int(checksum) == zlib.crc32((scope + text).encode()):
                positions: list[Any] = json.loads(text)
                return positions
        except ValueError:
            pass  # It is damaged, as below.
        raise InvalidCursor(f"the cursor is damaged, or not one of {self.name} with these values")


def _spelled(value: Any) -> str:
    """A value of a key, a number in one spelling."""
    return str(value.normalize()) if isinstance(value, Decimal) else str(value)


def _past(prefix: str) -> str | None:
    """The least text that is greater than every text with this prefix; None if there is none."""
    while prefix:
        last, prefix = ord(prefix[-1]), prefix[:-1]
        if last < 0x10FFFF:
            return prefix + chr(0xE000 if last == 0xD7FF else last + 1)
    return None
