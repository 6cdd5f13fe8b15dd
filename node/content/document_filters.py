"""Filters of queries: a small part of MongoDB's, over the values of documents. Pure.

A filter is JSON: `{"status": "open", "due": {"$gte": "2026-03"}, "$or": [{"owner": "ann"}, {"votes": {"$gt": 3}}]}`. It is
parsed to conditions, which test a document by the values at their paths alone. So a query reads no more of a document than
the filter names.

Comparisons hold within one type: null, truth values, numbers, texts (by UTF-8 bytes). What is not there, and maps and
lists, meet only `$ne`, `$nin` and `$exists`.

`{"owner": {"$conflict": true}}` holds where values of that field, or of one inside it, were put beside each other;
`{"$conflict": true}` where any of the document were, also within lists.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from protocol.formats.document_kinds import DOCUMENT_KEY_SIZE_MAX, JSON_DEPTH_MAX

FieldPath = tuple[str, ...]
"""Map keys from the outside in."""
FILTER_TERMS_MAX: Final = 64
"""Conditions of a filter: each is tested on each document that a query looks at."""
FILTER_DEPTH_MAX: Final = 8
"""`$and` and `$or` inside each other."""
FILTER_VALUES_MAX: Final = 256
"""Values of one `$in` or `$nin`."""
_TEXT_SIZE_MAX: Final = 200
"""Bytes of a text in an index entry: texts that begin alike so far are told apart by the documents."""


NUMBER_MAX: Final = 2.0**1023
"""Largest number in a filter: what is compared is a number of IEEE 754."""


class Missing:
    """Stands for a value that is not there."""


MISSING: Final = Missing()
Value = Missing | object
"""A value of a document, or MISSING."""


class FilterError(Exception):
    """Error of a filter that is none, or too large."""


@dataclass(frozen=True, slots=True)
class Term:
    """A condition on the value at a path."""

    path: FieldPath
    operator: str
    argument: object


@dataclass(frozen=True, slots=True)
class All:
    """Holds where all parts do."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Holds where a part does."""

    parts: tuple["Condition", ...]


Condition = Term | All | Any


def parse_filter(where: object) -> All:
    """Parse a filter. Raises FilterError."""
    parsed = _parse(where, 0)
    if sum(1 for _ in terms_of(parsed)) > FILTER_TERMS_MAX:
        raise FilterError(f"a filter has at most {FILTER_TERMS_MAX} conditions")
    return parsed


def parse_path(text: str) -> FieldPath:
    """Parse a path: map keys with dots between them. Raises FilterError."""
    path = tuple(text.split("."))
    if len(path) > JSON_DEPTH_MAX or len(text.encode()) > DOCUMENT_KEY_SIZE_MAX or "\0" in text:
        raise FilterError(f"{text[:40]!r} is no path of map keys")
    if any(part.startswith("$") for part in path):
        raise FilterError(f"there is no operator {text[:40]!r}")
    return path


def terms_of(condition: Condition) -> Iterator[Term]:
    """Yield all terms of a condition."""
    if isinstance(condition, Term):
        yield condition
    else:
        for part in condition.parts:
            yield from terms_of(part)


def _parse(where: object, depth: int) -> All:
    if not isinstance(where, Mapping):
        raise FilterError("a filter is an object")
    if depth > FILTER_DEPTH_MAX:
        raise FilterError(f"`$and` and `$or` are at most {FILTER_DEPTH_MAX} deep")
    parts: list[Condition] = []
    for key, value in where.items():
        if key == "$conflict":
            parts += _parse_field((), {key: value})
        elif key in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise FilterError(f"`{key}` takes a list of filters")
            inner = tuple(_parse(one, depth + 1) for one in value)
            parts.append(All(inner) if key == "$and" else Any(inner))
        else:
            parts += _parse_field(parse_path(key), value)
    return All(tuple(parts))


def _parse_field(path: FieldPath, value: object) -> Iterator[Term]:
    conditions = value if isinstance(value, Mapping) else {"$eq": value}
    if not conditions:
        raise FilterError(f"{'.'.join(path)!r} has no condition")
    for name, argument in conditions.items():
        if name != "$conflict" and name not in _OPERATORS:
            raise FilterError(f"there is no operator {name[:40]!r}")
        _check_argument(name, argument)
        yield Term(path, name, argument)


def _check_argument(name: str, argument: object) -> None:
    if name in ("$exists", "$conflict"):
        if not isinstance(argument, bool):
            raise FilterError(f"`{name}` takes true or false")
    elif name in ("$in", "$nin"):
        if not isinstance(argument, list) or len(argument) > FILTER_VALUES_MAX:
            raise FilterError(f"`{name}` takes a list of at most {FILTER_VALUES_MAX} values")
        if not all(map(_is_scalar, argument)):
            raise FilterError(f"`{name}` takes texts, finite numbers, true, false and null")
    elif name == "$prefix":
        if not isinstance(argument, str):
            raise FilterError("`$prefix` takes a text")
    elif not _is_scalar(argument):
        raise FilterError(f"`{name}` takes a text, a finite number, true, false or null")


def _is_scalar(value: object) -> bool:
    if isinstance(value, int | float):
        return abs(value) <= NUMBER_MAX
    return value is None or isinstance(value, str)


def matches(
    condition: Condition, read: Callable[[FieldPath], Value], is_in_conflict: Callable[[FieldPath], bool]
) -> bool:
    """Return True if a condition holds for the document whose values `read` returns."""
    match condition:
        case Term(path, "$conflict", argument):
            return is_in_conflict(path) == argument
        case Term(path, name, argument):
            return _OPERATORS[name](read(path), argument)
        case All(parts):
            return all(matches(part, read, is_in_conflict) for part in parts)
        case Any(parts):
            return any(matches(part, read, is_in_conflict) for part in parts)


def value_at(value: object, path: Sequence[str]) -> Value:
    """Return the value at a path of maps, or MISSING."""
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value


def _type_of(value: Value) -> int:
    if value is None:
        return 1
    if isinstance(value, bool):
        return 2
    if isinstance(value, int | float):
        return 3
    return 4 if isinstance(value, str) else 0


def _equal(value: Value, argument: object) -> bool:
    return _type_of(value) == _type_of(argument) != 0 and value == argument


def _ordered(holds: Callable[[int], bool]) -> Callable[[Value, object], bool]:
    return lambda value, argument: _type_of(value) == _type_of(argument) and holds(_compare(value, argument))


def _compare(value: Value, argument: object) -> int:
    """Return -1, 0 or 1 for two values of one type."""
    one, other = sort_key(value, text_size_max=None), sort_key(argument, text_size_max=None)
    return (one > other) - (one < other)


def _is_in(value: Value, argument: object) -> bool:
    assert isinstance(argument, list), "it was checked"
    return any(_equal(value, one) for one in argument)


_OPERATORS: Final[dict[str, Callable[[Value, object], bool]]] = {
    "$eq": _equal,
    "$ne": lambda value, argument: not _equal(value, argument),
    "$lt": _ordered(lambda order: order < 0),
    "$lte": _ordered(lambda order: order <= 0),
    "$gt": _ordered(lambda order: order > 0),
    "$gte": _ordered(lambda order: order >= 0),
    "$in": _is_in,
    "$nin": lambda value, argument: not _is_in(value, argument),
    "$exists": lambda value, argument: (value is not MISSING) == argument,
    "$prefix": lambda value, argument: isinstance(value, str) and value.startswith(str(argument)),
}


def sort_key(value: Value, text_size_max: int | None = _TEXT_SIZE_MAX) -> bytes:
    """Return bytes that order values: what is not there, null, false, true, numbers, texts, maps and lists.

    Two texts that begin with the same `text_size_max` bytes have the same.
    """
    if isinstance(value, Missing):
        return b"\x00"
    if value is None:
        return b"\x01"
    if isinstance(value, bool):
        return b"\x03" if value else b"\x02"
    if isinstance(value, int | float):
        (bits,) = struct.unpack(">Q", struct.pack(">d", float(value) + 0.0))
        return b"\x10" + struct.pack(">Q", bits ^ (2**64 - 1 if bits >> 63 else 1 << 63))
    if isinstance(value, str):
        return b"\x20" + value.encode()[:text_size_max].replace(b"\0", b"\0\xff") + b"\0\0"
    return b"\x30"


def kind_range(value: Value) -> tuple[bytes, bytes]:
    """Return the beginnings of the first and of the last key that a value of the same type may have."""
    tags = {1: b"\x01\x01", 2: b"\x02\x03", 3: b"\x10\x10", 4: b"\x20\x20"}[_type_of(value)]
    return tags[:1], tags[1:]


def prefix_key(text: str) -> bytes:
    """Return the beginning that the keys of all texts have that begin so."""
    return sort_key(text)[:-2]
