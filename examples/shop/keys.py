# Printed by `ripple types`: change the manifest instead, and print it again.

# Python 3.11 or later.
import re
import zlib
from decimal import Decimal
from typing import Any, Generic, Literal, Mapping, NotRequired, Required, TypedDict, TypeVar, Union

# A number as a key takes it: never a float, which is not exact.
Number = Union[int, Decimal, str]
Fields = TypeVar("Fields", bound=Mapping[str, Any])
Read = TypeVar("Read", bound=Mapping[str, Any])
Built = TypeVar("Built")

PARTITION_KEY_BYTES_MAX = 2048
SORT_KEY_BYTES_MAX = 1024


class InvalidKey(ValueError):
    """A value that the key cannot hold."""

    def __init__(self, entity: str, attribute: str, problem: str):
        super().__init__(f"{entity}.{attribute} {problem}")
        self.entity, self.attribute, self.problem = entity, attribute, problem


class KeyForm(Generic[Fields, Read, Built]):
    """The form of a key in the table, or in an index. An attribute that holds a value as it is has no name here."""

    def __init__(
        self,
        entity: str,
        index: str | None,
        names: tuple[str, str],
        partition: tuple[tuple[Any, ...], ...],
        sort: tuple[tuple[Any, ...], ...],
        only_if: tuple[str, tuple[str, ...] | None] | None = None,
    ):
        self.entity, self.index, self.names = entity, index, names
        self.partition, self.sort, self.only_if = partition, sort, only_if

    def build(self, fields: Fields) -> Built:
        """The key's two attributes; None if the item is not in the index. Raises InvalidKey."""
        built: Any = self._build(fields)
        return built

    def _build(self, fields: Mapping[str, Any]) -> dict[str, str] | None:
        if self.only_if:
            attribute, texts = self.only_if
            held = fields.get(attribute)
            if held is None or (texts is not None and held not in texts):
                return None
        limits = (PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX)
        keys = [self._limited(pieces, fields, limit) for pieces, limit in zip((self.partition, self.sort), limits)]
        return {name: key for name, key in zip(self.names, keys) if name}

    def parse(self, item: Mapping[str, Any]) -> Read | None:
        """The fields of the key of an item; None if it is of another form."""
        fields: Any = {}
        for name, pieces in zip(self.names, (self.partition, self.sort)):
            key = item.get(name) if name else ""
            if not isinstance(key, str) or not _read(pieces, key, fields):
                return None
        return fields

    def partition_keys(self, fields: Mapping[str, Any]) -> list[str]:
        """The partition keys that a reader queries: one, or one for each suffix of a spread."""
        spread = next((piece for piece in self.partition if piece[0] == "spread"), None)
        if spread is None:
            return [self._built(self.partition, fields)]
        literals = [("literal", f"{suffix:02}") for suffix in range(spread[2])]
        one = lambda literal: tuple(literal if piece[0] == "spread" else piece for piece in self.partition)
        return [self._built(one(literal), fields) for literal in literals]

    def sort_key_prefix(self, fields: Mapping[str, Any]) -> str:
        """The longest start of the sort key that these fields decide, for begins_with."""
        return self._built(self.sort, fields, is_prefix=True)

    def _limited(self, pieces, fields, limit):
        key = self._built(pieces, fields)
        n_bytes = len(key.encode())
        if n_bytes > limit:
            names = list(dict.fromkeys(piece[1] for piece in pieces if piece[0] != "literal"))
            longest = names[-1] if names else key
            raise InvalidKey(self.entity, longest, f"makes a key of {n_bytes} bytes; the limit is {limit}")
        return key

    def _built(self, pieces, fields, is_prefix=False):
        key = ""
        for form, name, *width in pieces:
            if form == "literal":
                key += name
                continue
            value = fields.get(name)
            if value is None and is_prefix:
                break
            try:
                key += _text(form, _value(value), *width)
            except _Problem as problem:
                raise InvalidKey(self.entity, name, str(problem)) from None
        if not is_prefix and _is_open(pieces):
            self._certain(pieces, key, fields)
        return key

    def _certain(self, pieces, key, fields):
        """Refuses a key that can be read in another way than by these values."""
        read = _read_open(pieces, key)
        shown = [(form, name) for form, name, *_ in pieces if form in _TEXTS]
        if read is not None and all(read.get(name) == _cased(form, str(fields[name])) for form, name in shown):
            return
        texts = [text for form, text, *_ in pieces if form == "literal" and "#" not in text]
        names = list(dict.fromkeys(name for form, name, *_ in pieces if form != "literal"))
        held = [(name, text) for name in names for text in texts if text in str(fields[name])]
        name, text = held[0] if held else (names[0], texts[0])
        problem = f"makes a key that can be read in two ways, as `{text}` separates its values: "
        remedy = "use `#` there, or mark one field whose values hold it with `*`, as in {name*}"
        raise InvalidKey(self.entity, name, problem + remedy)


class _Problem(Exception):
    pass


def _value(value):
    if value is None:
        raise _Problem("is missing; the key needs it")
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise _Problem("is neither a text nor an exact number")
    if value == "":
        raise _Problem("is empty; a key value must not be")
    return str(value)


def _text(form, value, *width):
    match form:
        case "text":
            return _escaped(value)
        case "plain" if "#" in value:
            raise _Problem("holds `#`, which a key of this table cannot hold in a value")
        case "lower" | "upper":
            return _text("text" if width[0] else "plain", _cased(form, value))
        case "path":
            return "".join("/" + _escaped(segment).replace("/", "%2F") for segment in _segments(value))
        case "last":
            return _escaped(_segments(value)[-1])
        case "padded":
            return _padded(value, *width)
        case "inverted":
            return _complement(_padded(value, *width))
        case "spread":
            return f"{zlib.crc32(value.encode()) % width[0]:02}"
        case _:
            return value


# Forms that contain their value as a text.
_TEXTS = {"text", "plain", "lower", "upper", "path", "raw"}


def _cased(form, text):
    return {"lower": text.lower, "upper": text.upper}.get(form, lambda: text)()


def _escaped(text):
    return text.replace("%", "%25").replace("#", "%23")


def _restored(text):
    return re.sub("%(23|25|2F)", lambda escape: {"23": "#", "25": "%", "2F": "/"}[escape[1]], text)


def _segments(text):
    segments = [_restored(segment) for segment in text.split("/")[1:]]
    if not text.startswith("/") or "#" in text or not all(segments):
        raise _Problem("is not a path: it starts with `/`, and no segment is empty or holds `#`")
    return segments


def _padded(value, digits, places):
    """The number in the unit of its last place, padded with zeros."""
    if places == 0 and re.fullmatch("[0-9]+", value):
        unit = value.lstrip("0")
    else:
        number = _decimal(value)
        if number is None or number[0] or (places == 0 and number[2] < 0):
            raise _Problem(
                "is not a number from 0 up, of at most 38 digits" if places else "is not a whole number from 0 up"
            )
        _, unit, exponent = number
        # Too many places do not fit, as too many digits do not.
        unit = unit + "0" * (exponent + places) if exponent + places >= 0 else "0" * (digits + 1)
    if len(unit) > digits:
        raise _Problem(f"does not fit in {digits} digits" + (f", {places} of them behind the point" if places else ""))
    return unit.rjust(digits, "0")


def _decimal(text):
    """Whether a number is negative, its digits without zeros around them, and the power of ten of the last."""
    parts = re.fullmatch(r"([0-9+.-]*)(?:[eE]([+-]?[0-9]+))?", text)
    if len(text) > 512 or parts is None:
        return None
    whole, _, places = parts[1].partition(".")
    number = re.fullmatch("([+-]?)([0-9]+)", whole + places)
    scale = len(places) - int(parts[2] or 0)
    if number is None or not -(2**63) <= scale < 2**63:
        return None
    digits = number[2].lstrip("0")
    if not digits:
        return False, "", 0
    significant = digits.rstrip("0")
    exponent = len(digits) - len(significant) - scale
    if len(significant) > 38 or not -130 <= len(significant) + exponent - 1 <= 125:
        return None
    return number[1] == "-", significant, exponent


def _complement(digits):
    """The largest number of so many digits, less this one."""
    return "".join(str(9 - int(digit)) for digit in digits)


def _plain(unit, places):
    digits = unit.lstrip("0").rjust(places + 1, "0")
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return f"{whole}.{rest}" if rest else whole


def _is_open(pieces):
    """Whether a text that separates fields may be in a value."""
    first = next((at for at, piece in enumerate(pieces) if piece[0] != "literal"), len(pieces))
    return any(piece[0] == "literal" and "#" not in piece[1] for piece in pieces[first:])


# The most ends of fields that are tried.
_ENDS_MAX = 1000


def _read_open(pieces, key):
    """The fields of a key that can be read in one way only. A raw field is as long as it can be."""
    enough = 1 if pieces[-1][0] == "raw" else 2
    found: list[dict[str, str]] = []
    n_ends = 0

    def search(pieces, key, before):
        nonlocal n_ends
        if not pieces:
            if key == "":
                found.append(before)
            return
        (form, name, *width), rest = pieces[0], pieces[1:]
        if form == "literal":
            if key.startswith(name):
                search(rest, key[len(name) :], before)
            return
        for end in _ends(rest, key):
            n_ends += 1
            if len(found) >= enough or n_ends > _ENDS_MAX:
                return
            fields = dict(before)
            if _read_field(form, name, width, key[:end], fields):
                search(rest, key[end:], fields)

    prefix = pieces[0][1] if pieces[0][0] == "literal" else ""
    if not key.startswith(prefix):
        return None
    pieces, key = pieces[1:] if prefix else pieces, key[len(prefix) :]
    if pieces[0][0] != "raw":
        search(pieces, key, {})
    else:
        for end in reversed(_ends(pieces[1:], key)):
            n_ends += 1
            if end == 0:
                break
            search(pieces[1:], key[end:], {pieces[0][1]: key[:end]})
            if found or n_ends > _ENDS_MAX:
                break
    return found[0] if len(found) == 1 and n_ends <= _ENDS_MAX else None


def _ends(rest, key):
    """Where a field may end: before each text that follows it."""
    return [at for at in range(len(key)) if key.startswith(rest[0][1], at)] if rest else [len(key)]


def _read(pieces, key, fields):
    if _is_open(pieces):
        found = _read_open(pieces, key)
        if found is None or any(fields.get(name, value) != value for name, value in found.items()):
            return False
        fields.update(found)
        return True
    if not pieces:
        return key == ""
    (form, name, *width), rest = pieces[0], pieces[1:]
    if form == "literal":
        return key.startswith(name) and _read(rest, key[len(name) :], fields)
    if form == "raw":
        return _read_raw(name, rest, key, fields)
    end = key.find(rest[0][1]) if rest else len(key)
    return end >= 0 and _read_field(form, name, width, key[:end], fields) and _read(rest, key[end:], fields)


def _read_raw(name, rest, key, fields):
    """A raw field may hold anything, so the last place where the rest fits ends it."""
    if not rest:
        fields[name] = key
        return key != ""
    end = len(key)
    while (end := key.rfind(rest[0][1], 0, end)) > 0:
        found: dict[str, str] = {}
        if _read(rest, key[end:], found):
            found[name] = key[:end]
            if all(fields.get(other, value) == value for other, value in found.items()):
                fields.update(found)
                return True
    return False


def _read_field(form, name, width, text, fields):
    is_number = re.fullmatch("[0-9]+", text) is not None
    match form:
        case "text":
            value = _restored(text) if text and "#" not in text else None
            # Only what is written as this text.
            if value is not None and _escaped(value) != text:
                value = None
        case "plain":
            value = text if text and "#" not in text else None
        case "lower" | "upper":
            found: dict[str, str] = {}
            _read_field("text" if width[0] else "plain", name, [], text, found)
            value = found.get(name)
            # In another case, two keys would have the same fields.
            if value is not None and _cased(form, value) != value:
                value = None
        case "raw":
            value = text or None
        case "path":
            try:
                value = text if _text(form, text) == text else None
            except _Problem:
                value = None
        case "padded" | "inverted":
            unit = _complement(text) if form == "inverted" and is_number else text
            value = _plain(unit, width[1]) if is_number and len(text) == width[0] else None
        case "spread":
            return is_number and len(text) == 2 and int(text) < width[0]
        case _:
            return text != ""
    # A field may occur twice; then both must hold the same.
    return value is not None and fields.setdefault(name, value) == value


# Customer.
Customer = TypedDict("Customer", {
    "pk": Required[str],
    "sk": Required[str],
    "type": Required[Literal["Customer"]],
    "name": Any,
    "email": Any,
    "orderCount": Union[int, Decimal],  # Derived: Ripple writes it.
    "spent": Union[int, Decimal],  # Derived: Ripple writes it.
    "averageOrder": Union[int, Decimal],  # Derived: Ripple writes it.
    "isBuyer": bool,  # Derived: Ripple writes it.
}, total=False)
CustomerKey = TypedDict("CustomerKey", {"customerId": str})
# Key of Customer: `CUSTOMER#{customerId}` / `PROFILE`.
CUSTOMER_KEY: KeyForm[CustomerKey, CustomerKey, dict[str, str]] = KeyForm(
    "Customer",
    None,
    ("pk", "sk"),
    (("literal", "CUSTOMER#"), ("text", "customerId"),),
    (("literal", "PROFILE"),),
)

# Line.
Line = TypedDict("Line", {
    "pk": Required[str],
    "sk": Required[str],
    "type": Required[Literal["Line"]],
    "productPk": str,
    "productSk": str,
    "quantity": Union[int, Decimal],
    "amount": Union[int, Decimal],
    "productName": Any,  # Derived: Ripple writes it.
    "orderStatus": Any,  # Derived: Ripple writes it.
}, total=False)
LineKey = TypedDict("LineKey", {"orderId": str, "sku": str})
# Key of Line: `ORDER#{orderId}` / `LINE#{sku}`.
LINE_KEY: KeyForm[LineKey, LineKey, dict[str, str]] = KeyForm(
    "Line",
    None,
    ("pk", "sk"),
    (("literal", "ORDER#"), ("text", "orderId"),),
    (("literal", "LINE#"), ("text", "sku"),),
)
LineByProduct = TypedDict("LineByProduct", {"orderId": str, "sku": str})
# Key of Line in the index byProduct: `PRODUCT#{sku}` / `LINE#{orderId}`.
LINE_BY_PRODUCT: KeyForm[LineByProduct, LineByProduct, dict[str, str]] = KeyForm(
    "Line",
    "byProduct",
    ("productPk", "productSk"),
    (("literal", "PRODUCT#"), ("text", "sku"),),
    (("literal", "LINE#"), ("text", "orderId"),),
)

# Movement.
Movement = TypedDict("Movement", {
    "pk": Required[str],
    "sk": Required[str],
    "type": Required[Literal["Movement"]],
    "quantity": Union[int, Decimal],
}, total=False)
MovementKey = TypedDict("MovementKey", {"movedAt": str, "movementId": str, "sku": str})
# Key of Movement: `PRODUCT#{sku}` / `MOVEMENT#{movedAt}#{movementId}`.
MOVEMENT_KEY: KeyForm[MovementKey, MovementKey, dict[str, str]] = KeyForm(
    "Movement",
    None,
    ("pk", "sk"),
    (("literal", "PRODUCT#"), ("text", "sku"),),
    (("literal", "MOVEMENT#"), ("text", "movedAt"), ("literal", "#"), ("text", "movementId"),),
)

# Order.
Order = TypedDict("Order", {
    "pk": Required[str],
    "sk": Required[str],
    "type": Required[Literal["Order"]],
    "customerPk": str,
    "customerSk": str,
    "customerId": str,
    "orderedAt": str,
    "status": Any,
    "customerName": Any,  # Derived: Ripple writes it.
    "lineCount": Union[int, Decimal],  # Derived: Ripple writes it.
    "total": Union[int, Decimal],  # Derived: Ripple writes it.
}, total=False)
OrderKey = TypedDict("OrderKey", {"orderId": str})
# Key of Order: `ORDER#{orderId}` / `ORDER`.
ORDER_KEY: KeyForm[OrderKey, OrderKey, dict[str, str]] = KeyForm(
    "Order",
    None,
    ("pk", "sk"),
    (("literal", "ORDER#"), ("text", "orderId"),),
    (("literal", "ORDER"),),
)
OrderByCustomer = TypedDict("OrderByCustomer", {"customerId": str, "orderId": str, "orderedAt": str})
# Key of Order in the index byCustomer: `CUSTOMER#{customerId}` / `ORDER#{orderedAt}#{orderId}`.
ORDER_BY_CUSTOMER: KeyForm[OrderByCustomer, OrderByCustomer, dict[str, str]] = KeyForm(
    "Order",
    "byCustomer",
    ("customerPk", "customerSk"),
    (("literal", "CUSTOMER#"), ("text", "customerId"),),
    (("literal", "ORDER#"), ("text", "orderedAt"), ("literal", "#"), ("text", "orderId"),),
)

# Product.
Product = TypedDict("Product", {
    "pk": Required[str],
    "sk": Required[str],
    "type": Required[Literal["Product"]],
    "bestPk": str,  # Derived: Ripple writes it.
    "bestSk": str,  # Derived: Ripple writes it.
    "name": Any,
    "category": str,
    "price": Any,
    "unitsSold": Union[int, Decimal],  # Derived: Ripple writes it.
    "revenue": Union[int, Decimal],  # Derived: Ripple writes it.
    "stock": Union[int, Decimal],  # Derived: Ripple writes it.
    "lastMovedAt": str,  # Derived: Ripple writes it.
}, total=False)
ProductKey = TypedDict("ProductKey", {"sku": str})
# Key of Product: `PRODUCT#{sku}` / `PRODUCT`.
PRODUCT_KEY: KeyForm[ProductKey, ProductKey, dict[str, str]] = KeyForm(
    "Product",
    None,
    ("pk", "sk"),
    (("literal", "PRODUCT#"), ("text", "sku"),),
    (("literal", "PRODUCT"),),
)
ProductBestSellers = TypedDict("ProductBestSellers", {"category": str, "sku": str, "unitsSold": Number})
ProductBestSellersRead = TypedDict("ProductBestSellersRead", {"category": str, "sku": str, "unitsSold": str})
# Key of Product in the index bestSellers: `BEST#{category}` / `{MAX-unitsSold:9}#{sku}`. Ripple alone writes it.
PRODUCT_BEST_SELLERS: KeyForm[ProductBestSellers, ProductBestSellersRead, dict[str, str]] = KeyForm(
    "Product",
    "bestSellers",
    ("bestPk", "bestSk"),
    (("literal", "BEST#"), ("text", "category"),),
    (("inverted", "unitsSold", 9, 0), ("literal", "#"), ("text", "sku"),),
)
