"""Orders of documents by fields, as bytes: where a document stands, and the part of an order that a query asks for. Pure."""

from collections.abc import Iterator
from typing import Final

from node.content.document_filters import (
    All,
    FieldPath,
    FilterError,
    Term,
    kind_range,
    parse_path,
    prefix_key,
    sort_key,
    value_at,
)
from protocol.limits.users import QUERY_SORT_FIELDS_MAX

Fields = tuple[tuple[FieldPath, bool], ...]
"""Fields in the order in which they decide, each with True where it goes downwards. Names decide at last."""
BEGIN: Final = b""
"""Before the place of any document."""
END: Final = b"\xff" * (2 * QUERY_SORT_FIELDS_MAX)
"""Behind the rest of any place: a key begins with it where it goes downwards, and is one byte then; names never have it."""
_DOWNWARDS: Final = bytes(range(255, -1, -1))


def parse_fields(text: str) -> Fields:
    """Parse fields with commas between them, `-` in front of those that go downwards. Raises FilterError."""
    fields = text.split(",") if text else []
    if len(fields) > QUERY_SORT_FIELDS_MAX:
        raise FilterError(f"an order has at most {QUERY_SORT_FIELDS_MAX} fields")
    return tuple((parse_path(field.removeprefix("-")), field.startswith("-")) for field in fields)


def place_of(fields: Fields, name: str, value: object) -> bytes:
    """Return where a document stands in an order.

    No key of a value is the beginning of another, so they are compared one by one, and their complements downwards.
    """
    keys = (_turned(sort_key(value_at(value, path)), is_downwards) for path, is_downwards in fields)
    return b"".join(keys) + name.encode()


def find_range(fields: Fields, where: All, sort: Fields) -> tuple[bytes, bytes, bytes] | None:
    """Return the range (start, end) of an index over these fields that has all results of a query in the query's order,
    and the prefix of the range's places. None if the index does not suit.

    It suits if the filter fixes the first fields, and the others are the query's order. A condition on the next field
    narrows the range.
    """
    terms = list(_terms_that_must_hold(where))
    base = b""
    for count in range(len(fields) + 1):
        if fields[count:] == sort:
            start, end = _limits(terms, fields[count]) if sort else (b"", b"")
            return base + start, base + end + END, base
        if count == len(fields):
            break
        path, is_downwards = fields[count]
        fixed = next((one for one in terms if one.path == path and one.operator == "$eq"), None)
        if fixed is None:
            break
        base += _turned(sort_key(fixed.argument), is_downwards)
    return None


def _terms_that_must_hold(where: All) -> Iterator[Term]:
    for part in where.parts:
        if isinstance(part, Term):
            yield part
        elif isinstance(part, All):
            yield from _terms_that_must_hold(part)


def _limits(terms: list[Term], field: tuple[FieldPath, bool]) -> tuple[bytes, bytes]:
    """Return beginnings of the first and the last keys of a field that conditions allow, as they stand in the order."""
    path, is_downwards = field
    first, last = b"", END
    for term in terms:
        if term.path != path:
            continue
        low, high = b"", END
        if term.operator in ("$eq", "$lt", "$lte", "$gt", "$gte"):
            low, high = kind_range(term.argument)
            key = sort_key(term.argument)
            low = low if term.operator in ("$lt", "$lte") else key
            high = high if term.operator in ("$gt", "$gte") else key
        elif term.operator == "$prefix":
            low = high = prefix_key(str(term.argument))
        first, last = max(first, low), min(last, high, key=lambda one: one + END)
    if is_downwards:
        first, last = (b"" if one in (b"", END) else _turned(one, True) for one in (last, first))
    return first, b"" if last == END else last


def _turned(key: bytes, is_downwards: bool) -> bytes:
    return key.translate(_DOWNWARDS) if is_downwards else key
