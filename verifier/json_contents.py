"""Reads and writes what registers of JSON documents hold, and their addresses. `json_documents` makes documents of them.

A register is a key of a document of values (`documents`), whose standing operations hold JSON. The key is an address: its
owner (the root, or an item of a list), then map keys.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, cast

import msgspec

from protocol.codec import Value
from protocol.formats.document_kinds import (
    DOCUMENT_KEY_SIZE_MAX,
    JSON_DEPTH_MAX,
    JSON_FRACTION_SIZE_MAX,
    JSON_PIECE_COUNT_MAX,
    is_document_key,
)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Address = tuple[str, ...]
"""Owner of a register ("" is the root, else the id of an item), then map keys."""
ROOT: Final = ""
PLACE: Final = "@"
"""First part of the address of an item's place; the second is the item's id."""
WHOLE_NUMBER_MAX: Final = 2**53 - 1
"""Largest whole number that every language reads from JSON as it was written."""
_ITEM: Final = re.compile(r"[a-z2-7]{16}")
_LISTS_REMEMBERED_MAX: Final = 256
_FRACTION: Final = re.compile(rf"[0-9A-Za-z]{{1,{JSON_FRACTION_SIZE_MAX}}}")


class Whole(Value, frozen=True):
    """A scalar, or an array that is replaced as a whole."""

    value: Json


class MapMark(Value, frozen=True):
    """A map, also where nothing is below it."""


class ListMark(Value, frozen=True):
    """A list, whose items say themselves where they are."""


class Added(Value, frozen=True):
    """An increment: all that stand are added."""

    number: int


class Linked(Value, frozen=True):
    """A text of the branch by its name, or a file by its id: `kind` is `text` or `file`."""

    kind: str
    name: str


class Pieces(Value, frozen=True):
    """A scalar or array that no register holds: its JSON text is cut into so many, which stand below (`piece_at`)."""

    name: str
    count: int


class Place(Value, frozen=True):
    """Position of an item: the address of its list, and a fraction that orders the list's items."""

    list_address: Address
    fraction: str


Content = Whole | Pieces | MapMark | ListMark | Added | Linked | Place
"""What one operation says of a register."""


def key_of(address: Sequence[str]) -> str:
    """Return the key of a register."""
    return "\0".join(address)


def parse_key(key: str) -> Address | None:
    """Return the address that a key is, or None if it is none."""
    address = tuple(key.split("\0"))
    owner = address[0]
    if not is_document_key(key) or len(address) > JSON_DEPTH_MAX + 1:
        return None
    if owner == PLACE:
        return address if len(address) == 2 and _ITEM.fullmatch(address[1]) else None
    return address if (owner == ROOT or _ITEM.fullmatch(owner)) and "\0$" not in key else None


def piece_at(address: Address, pieces: Pieces, number: int) -> Address:
    """Return where a piece of the value at an address stands. No map key begins with $, so it is no value's address."""
    return (*address, f"${pieces.name}", str(number))


def is_piece(address: Address) -> bool:
    """Return True if a piece of a long value may stand at an address."""
    is_named = len(address) > 2 and address[-2].startswith("$")
    return is_named and parse_key(key_of(address[:-2])) is not None


def parse_content(text: str) -> Content | None:
    """Return what an operation says, or None if it is nothing that the profile knows."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    if not isinstance(value, dict):
        clean = clean_value(value)
        return None if clean is REFUSED else Whole(cast("Json", clean))
    if len(value) == 2:
        if "in" in value:  # of each item of a list
            return _parse_place(value["in"], value.get("at"))
        match value:
            case {"long": str(name), "pieces": int(count)} if not isinstance(count, bool):
                is_one = _ITEM.fullmatch(name) and 0 < count <= JSON_PIECE_COUNT_MAX
                return Pieces(name, count) if is_one else None
        return None
    match [*value.items()]:
        case [("map", 1)]:
            return MapMark()
        case [("list", 1)]:
            return ListMark()
        case [("add", int(number))] if not isinstance(number, bool):
            return Added(number) if abs(number) <= WHOLE_NUMBER_MAX else None
        case [(("text" | "file") as kind, str(name))]:
            return Linked(kind, name)
    return None


def _parse_place(parts: object, fraction: object) -> Place | None:
    if not isinstance(parts, list) or not isinstance(fraction, str) or not _FRACTION.fullmatch(fraction):
        return None
    try:
        key = key_of(parts)
    except TypeError:  # not all are texts
        return None
    address = _parse_list_address(key) if len(key) <= DOCUMENT_KEY_SIZE_MAX else ()
    return Place(address, fraction) if address == tuple(parts) else None


@lru_cache(_LISTS_REMEMBERED_MAX)  # many items lie in one list
def _parse_list_address(key: str) -> Address:
    """Return the address of a list that a key is, or an empty one where it is none."""
    address = parse_key(key)
    return () if address is None or address[0] == PLACE else address


def content_text(content: Content) -> str:
    """Return the text that an operation puts."""
    match content:
        case Whole(value):
            said: object = value
        case MapMark():
            said = {"map": 1}
        case ListMark():
            said = {"list": 1}
        case Added(number):
            said = {"add": number}
        case Linked(kind, name):
            said = {kind: name}
        case Pieces(name, count):
            said = {"long": name, "pieces": count}
        case Place(list_address, fraction):
            said = {"in": list_address, "at": fraction}
    return msgspec.json.encode(said).decode()


REFUSED: Final = object()
"""Stands for a JSON value that no document holds."""


def clean_value(value: object, depth: int = 0) -> object:
    """Return a JSON value with one form for each number, or REFUSED.

    Refused are what is too deep, half surrogate pairs, and numbers that languages read differently.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return value if _is_text(value) else REFUSED
    if isinstance(value, int):  # of any length: no float can be made of some
        return value if abs(value) <= WHOLE_NUMBER_MAX else REFUSED
    if isinstance(value, float):
        if not math.isfinite(value):
            return REFUSED
        if value.is_integer():
            return int(value) if abs(value) <= WHOLE_NUMBER_MAX else REFUSED
        return value
    if depth == JSON_DEPTH_MAX:
        return REFUSED
    if isinstance(value, list | tuple):
        items = [clean_value(one, depth + 1) for one in value]
        return REFUSED if any(one is REFUSED for one in items) else items
    if isinstance(value, dict):
        fields = {key: clean_value(one, depth + 1) for key, one in value.items()}
        is_refused = any(one is REFUSED for one in fields.values())
        return (
            REFUSED
            if is_refused or not all(isinstance(key, str) and _is_text(key) for key in fields)
            else fields
        )
    return REFUSED


def _is_text(text: str) -> bool:
    """Return False if half of a surrogate pair is in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def find_position(key: str, value: str | None) -> bytes | None:
    """Return the position that an operation gives an item, as `position_of`; None for other operations."""
    if value is None or not key.startswith(f"{PLACE}\0"):
        return None
    address, content = parse_key(key), parse_content(value)
    return None if address is None or not isinstance(content, Place) else position_of(address[1], content)


def find_increment(key: str, value: str | None) -> int | None:
    """Return the number that an operation adds to a counter; None for others, and for what is written otherwise.

    So two copies of an operation add one number if, and only if, they say the same.
    """
    if value is None or not value.startswith('{"add":'):
        return None
    address, content = parse_key(key), parse_content(value)
    if address is None or address[0] == PLACE or not isinstance(content, Added):
        return None
    return content.number if value == content_text(content) else None


def increment_text(added: int) -> str:
    """Return an increment that says what several add up to."""
    return content_text(Added(bounded_number(added)))


def position_of(item: str, place: Place) -> bytes:
    """Return bytes that order items by their lists, and those of a list by fraction, then id.

    No other position is the same. 0xFF, which is in no UTF-8, ends the address of the list.
    """
    return b"\xff".join((key_of(place.list_address).encode(), f"{place.fraction}\0{item}".encode()))


def positions_in(list_address: Address) -> tuple[bytes, bytes]:
    """Return two positions between which those of a list lie."""
    start = key_of(list_address).encode() + b"\xff"
    return start, start + b"\xff"


def parse_position(position: bytes) -> tuple[str, str]:
    """Return the fraction and the item of a position."""
    fraction, _, item = position.rpartition(b"\xff")[2].decode().partition("\0")
    return fraction, item


def bounded_number(number: int) -> int:
    """Return the number, or the nearest one that every language reads."""
    return max(-WHOLE_NUMBER_MAX, min(number, WHOLE_NUMBER_MAX))
