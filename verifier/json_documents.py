"""Builds the value of a JSON document from its registers, with conflicts and unplaced items. Pure; arrival does not matter.

A JSON document is kept as *registers*: keys of a document of values (`documents`), whose standing operations hold JSON.
A register's key is an address: its owner (the root, or an item of a list), then map keys. So nothing is nested in the
store, and what two authors write at different addresses never meets.

The profile `json` has the rules (docs/specification/profiles/json.md); `json_edits` has the writer's side.
"""

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, cast

import msgspec

from protocol.codec import Value
from protocol.crypto.hashing import value_name
from protocol.formats.document_kinds import (
    JSON_DEPTH_MAX,
    JSON_FRACTION_SIZE_MAX,
    JSON_PIECE_COUNT_MAX,
    is_document_key,
)
from protocol.ids import CommitId
from verifier.documents import DocumentEntry

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Address = tuple[str, ...]
"""Owner of a register ("" is the root, else the id of an item), then map keys."""
ROOT: Final = ""
PLACE: Final = "@"
"""First part of the address of an item's place; the second is the item's id."""
WHOLE_NUMBER_MAX: Final = 2**53 - 1
"""Largest whole number that every language reads from JSON as it was written."""
_ITEM: Final = re.compile(r"[a-z2-7]{16}")
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


@dataclass(frozen=True, slots=True)
class JsonConflict:
    """Value that was put beside the one that shows, by a commit. Of a place the value is {"in": list address, "at": ...}.

    No commit is named where increments alone came to it.
    """

    address: Address
    value: Json
    name: CommitId | None


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A document: its value, conflicts by address, the last in canonical order first, and unplaced items by id."""

    value: Json
    conflicts: list[JsonConflict]
    unplaced: list[tuple[str, Json]]


# --- registers ---


def key_of(address: Address) -> str:
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


def join_pieces(address: Address, pieces: Pieces, entries: Mapping[str, DocumentEntry]) -> Whole | None:
    """Return the value of this name of which just so many pieces stand in these registers; None where they do not."""
    parts: list[str] = []
    for number in range(pieces.count + 1):  # one name has one count, or 32 values are of the same bytes
        entry = entries.get(key_of(piece_at(address, pieces, number)))
        said = parse_content(entry.values[0].value or "") if entry is not None and entry.values else None
        if not isinstance(said, Whole) or not isinstance(said.value, str):
            break
        parts.append(said.value)
    if len(parts) != pieces.count:
        return None
    text = "".join(parts)
    # Else another writer could put its words into this one's value.
    joined = parse_content(text) if value_name(text.encode()) == pieces.name else None
    return joined if isinstance(joined, Whole) else None


def parse_content(text: str) -> Content | None:
    """Return what an operation says, or None if it is nothing that the profile knows."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    if not isinstance(value, dict):
        clean = clean_value(value)
        return None if clean is REFUSED else Whole(cast("Json", clean))
    match value:
        case {"map": 1} if len(value) == 1:
            return MapMark()
        case {"list": 1} if len(value) == 1:
            return ListMark()
        case {"add": int(number)} if len(value) == 1 and not isinstance(number, bool):
            return Added(number) if abs(number) <= WHOLE_NUMBER_MAX else None
        case {"text": str(name)} if len(value) == 1:
            return Linked("text", name)
        case {"file": str(name)} if len(value) == 1:
            return Linked("file", name)
        case {"long": str(name), "pieces": int(count)} if len(value) == 2 and not isinstance(count, bool):
            is_one = _ITEM.fullmatch(name) and 0 < count <= JSON_PIECE_COUNT_MAX
            return Pieces(name, count) if is_one else None
        case {"in": [*parts], "at": str(fraction)} if len(value) == 2:
            if parts and all(isinstance(one, str) for one in parts) and _FRACTION.fullmatch(fraction):
                address = tuple(cast("list[str]", parts))
                if address[0] != PLACE and parse_key(key_of(address)) == address:
                    return Place(address, fraction)
    return None


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


def _shown(content: Content) -> Json:
    match content:
        case Whole(value):
            return value
        case MapMark():
            return {}
        case ListMark():
            return []
        case Linked(kind, name):
            return {f"${kind}": name}
        case Place(list_address, fraction):
            return {"in": list(list_address), "at": fraction}
        case Added(number):
            return number
        case Pieces():  # whose pieces nobody has looked for
            return None


# --- the tree ---


@dataclass(slots=True)
class Node:
    """Values that stand at one address, and what is below it by map keys."""

    own: Content | None = None
    below: dict[str, "Node"] = field(default_factory=dict)

    @property
    def is_list(self) -> bool:
        """True if it shows as a list: a map that somebody began beside it goes before."""
        return isinstance(self.own, ListMark) and not self.below

    @property
    def is_free(self) -> bool:
        """True if nothing stands here."""
        return self.own is None and not self.below

    @property
    def height(self) -> int:
        """Number of map keys of the longest address below."""
        return max((1 + one.height for one in self.below.values()), default=0)

    def walk(self, path: Address = ()) -> "Iterator[tuple[Address, Node]]":
        """Yield each node from here on, with its map keys."""
        yield path, self
        for key, one in self.below.items():
            yield from one.walk((*path, key))


class JsonTree:
    """The registers of one document by their owners, where anything stands. `json_edits` changes it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {ROOT: Node()}
        """By owner: the root, and items of which a value or field stands."""
        self.places: dict[str, Place] = {}
        """By item, of those that were not removed."""
        self.lists: dict[Address, list[tuple[str, str]]] = {}
        """By address of a list: fractions and ids of the items that are placed there, sorted, whether it shows or not."""

    def node(self, address: Address) -> Node | None:
        """Return the node at an address, or None. Costs O(the address's length)."""
        owner, *path = address
        node = self.nodes.get(owner)
        for key in path:
            if node is None:
                return None
            node = node.below.get(key)
        return node

    def items_at(self, list_address: Address) -> list[str]:
        """Return the items of a list in their order."""
        return [item for _, item in self.lists.get(list_address, ())]

    def state(self, address: Address, content: Content | None) -> None:
        """Let this stand at an address: nothing, if None."""
        if address[0] == PLACE:
            self._state_place(address[1], content)
            return
        owner, *path = address
        if content is None and self.node(address) is None:
            return
        way = [self.nodes.get(owner) or self.nodes.setdefault(owner, Node())]
        for key in path:
            below = way[-1].below
            way.append(below.get(key) or below.setdefault(key, Node()))
        way[-1].own = content
        if content is not None:
            return
        for key, above, node in zip(reversed(path), reversed(way[:-1]), reversed(way[1:]), strict=True):
            if not node.is_free:
                break
            del above.below[key]

    def _state_place(self, item: str, content: Content | None) -> None:
        old = self.places.pop(item, None)
        if old is not None:
            placed = self.lists[old.list_address]
            del placed[bisect_left(placed, (old.fraction, item))]
        if isinstance(content, Place):
            self.places[item] = content
            insort(self.lists.setdefault(content.list_address, []), (content.fraction, item))


def _is_number(content: Content) -> bool:
    return (
        isinstance(content, Whole)
        and isinstance(content.value, int | float)
        and not isinstance(content.value, bool)
    )


def _sum(base: Content | None, added: Iterable[int]) -> Whole:
    """Return base and increments together; a whole result stays in the range of whole numbers."""
    number = cast("int | float", base.value) if isinstance(base, Whole) else 0
    by = sum(added)
    if isinstance(number, float):
        return Whole(cast("Json", clean_value(number + _bounded(by))))
    return Whole(_bounded(number + _bounded(by)))


def _bounded(number: int) -> int:
    return max(-WHOLE_NUMBER_MAX, min(number, WHOLE_NUMBER_MAX))


def read_register(
    address: Address, entry: DocumentEntry, entries: Mapping[str, DocumentEntry] | None = None
) -> tuple[Content | None, list[JsonConflict]]:
    """Return the value of a register and the values put beside it. Costs O(operations in it).

    With the entries of all registers a long value is joined of its pieces. One whose pieces are not there says nothing.
    """
    if len(entry.tips) == 1 and entry.tips[0].value is not None:  # as most have it
        only = parse_content(entry.tips[0].value)
        if only is not None and not isinstance(only, Added | Pieces):
            return (only if _belongs(address, only) else None), []
    joined: dict[Pieces, Whole | None] = {}

    def parse(text: str) -> Content | None:
        content = parse_content(text)
        if not isinstance(content, Pieces) or entries is None:
            return content
        if content not in joined:
            joined[content] = join_pieces(address, content, entries)
        return joined[content]

    there: list[tuple[CommitId, Content]] = []
    added: list[int] = []
    for tip in entry.tips:
        content = None if tip.value is None else parse(tip.value)
        if isinstance(content, Added):
            added.append(content.number)
        elif content is not None and _belongs(address, content):
            there.append((tip.name, content))
    winner = there[-1][1] if there else None
    seen = [] if winner is None else [content_text(winner)]
    conflicts = []
    for name, content in reversed(there):
        text = content_text(content)
        if text not in seen:
            seen.append(text)
            conflicts.append(JsonConflict(address, _shown(content), name))
    if added and address[0] != PLACE and (winner is None or _is_number(winner)):
        winner = _sum(winner, added)
    return winner, conflicts


def add_registers(tree: JsonTree, entries: Mapping[str, DocumentEntry]) -> list[JsonConflict]:
    """Add the content of all registers to a tree; return their conflicts. Costs O(bytes of them)."""
    conflicts: list[JsonConflict] = []
    for key, entry in entries.items():
        address = parse_key(key)
        if address is None or not entry.values:
            continue
        content, beside = read_register(address, entry, entries)
        tree.state(address, content)
        conflicts += beside
    return conflicts


def _shown_by(address: Address, entry: DocumentEntry) -> CommitId | None:
    """Return the commit whose value a register shows; None where increments alone came to it."""
    for tip in entry.values:
        content = parse_content(tip.value or "")
        if content is not None and not isinstance(content, Added) and _belongs(address, content):
            return tip.name
    return None


def _belongs(address: Address, content: Content) -> bool:
    """Return True if a value may stand at an address: addresses of places take places alone."""
    return isinstance(content, Place) == (address[0] == PLACE)


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
    return content_text(Added(_bounded(added)))


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


def build_tree(entries: Mapping[str, DocumentEntry]) -> tuple[JsonTree, list[JsonConflict]]:
    """Build the tree of a document from the content of its registers. Costs O(bytes of it)."""
    tree = JsonTree()
    conflicts = add_registers(tree, entries)
    for owner, root in tree.nodes.items():
        for path, node in root.walk():
            if node.below and node.own is not None and not isinstance(node.own, MapMark):
                address = (owner, *path)
                said_by = _shown_by(address, entries[key_of(address)])
                conflicts.append(JsonConflict(address, _shown(node.own), said_by))
    conflicts.sort(key=lambda one: key_of(one.address).encode())
    return tree, conflicts


# --- the value ---


class _Showing:
    """Makes JSON of a tree, each item once."""

    def __init__(self, tree: JsonTree) -> None:
        self._tree = tree
        self._held: dict[str, list[str]] = {}
        for item, place in tree.places.items():
            self._held.setdefault(place.list_address[0], []).append(item)
        self._done: set[str] = set()
        self._left_out: list[str] = []

    def show(self) -> tuple[Json, list[tuple[str, Json]]]:
        """Return the value of the root, and unplaced items."""
        value = self._show_owner(ROOT, 0)
        unplaced = self._show_left_out()
        for item in sorted(self._find_circular()):
            if item not in self._done:
                unplaced.append((item, self._show_item(item, 0)))
                unplaced += self._show_left_out()
        return value, sorted(unplaced, key=lambda one: one[0])

    def _show_left_out(self) -> list[tuple[str, Json]]:
        shown: list[tuple[str, Json]] = []
        while self._left_out:
            item = heappop(self._left_out)
            if item not in self._done:
                shown.append((item, self._show_item(item, 0)))
        return shown

    def _show_item(self, item: str, depth: int) -> Json:
        self._done.add(item)
        return self._show_owner(item, depth)

    def _show_owner(self, owner: str, depth: int) -> Json:
        node = self._tree.nodes.get(owner, Node())
        value = self._show_node((owner,), node, depth)
        for item in self._held.get(owner, ()):
            if item not in self._done:
                heappush(self._left_out, item)
        if owner == ROOT:
            return {} if node.is_free else value
        if node.is_free or (isinstance(value, dict) and not isinstance(node.own, Linked)) or node.below:
            return {"$id": owner, **cast("dict[str, Json]", value or {})}
        return value

    def _show_node(self, address: Address, node: Node, depth: int) -> Json:
        if node.below:
            keys = sorted(node.below, key=str.encode)
            return {key: self._show_node((*address, key), node.below[key], depth + 1) for key in keys}
        if not node.is_list:
            return None if node.own is None else _shown(node.own)
        shown: list[Json] = []
        for item in self._tree.items_at(address):
            height = self._tree.nodes.get(item, Node()).height
            if item not in self._done and depth + 1 + height <= JSON_DEPTH_MAX:
                shown.append(self._show_item(item, depth + 1))
        return shown

    def _find_circular(self) -> set[str]:
        """Return the first by id of each circle of items that lie in lists of each other."""
        first: set[str] = set()
        known: set[str] = set()
        for start in self._tree.places:
            way: dict[str, None] = {}
            item = start
            while item in self._tree.places and item not in known and item not in way:
                way[item] = None
                item = self._tree.places[item].list_address[0]
            if item in way:
                around = list(way)
                first.add(min(around[around.index(item) :]))
            known.update(way)
        return first


def show_tree(tree: JsonTree) -> tuple[Json, list[tuple[str, Json]]]:
    """Return the value of a tree, and its unplaced items by id. Costs O(n log n) of what is in it."""
    return _Showing(tree).show()


def read_json(entries: Mapping[str, DocumentEntry]) -> JsonValue:
    """Reduce the registers of a document to its value. Costs O(n log n) of the bytes in them.

    Args:
        entries: Entry of each key, as `documents` reduces it.
    """
    tree, conflicts = build_tree(entries)
    value, unplaced = show_tree(tree)
    return JsonValue(value, conflicts, unplaced)
