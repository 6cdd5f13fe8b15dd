"""Builds the value of a JSON document from its registers, with conflicts and unplaced items. Pure; arrival does not matter.

A JSON document is kept as *registers*: keys of a document of values (`documents`), whose standing operations hold JSON.
A register's key is an address: its owner (the root, or an item of a list), then map keys. So nothing is nested in the
store, and what two authors write at different addresses never meets.

The profile `json` has the rules (docs/specification/profiles/json.md); `json_edits` has the writer's side.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter
from typing import Final, cast

from protocol.crypto.hashing import value_name
from protocol.formats.document_kinds import JSON_DEPTH_MAX
from protocol.ids import CommitId
from verifier.documents import DocumentEntry
from verifier.json_contents import (
    PLACE,
    ROOT,
    Added,
    Address,
    Content,
    Json,
    Linked,
    ListMark,
    MapMark,
    Pieces,
    Place,
    Whole,
    bounded_number,
    clean_value,
    content_text,
    key_of,
    parse_content,
    parse_key,
    piece_at,
)

_KEY: Final = itemgetter(0)


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


def _shown(content: Content | None) -> Json:
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
        case Pieces() | None:  # of pieces nobody has looked for
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
        if not self.below:
            return 0
        return 1 + max([one.height for one in self.below.values() if one.below], default=0)

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
        if content is None:
            self._clear(address)
            return
        node = self.nodes.get(address[0])
        if node is None:
            node = self.nodes[address[0]] = Node()
        for key in address[1:]:
            below = node.below.get(key)
            if below is None:
                below = node.below[key] = Node()
            node = below
        node.own = content

    def _clear(self, address: Address) -> None:
        owner, *path = address
        if self.node(address) is None:
            return
        way = [self.nodes[owner]]
        for key in path:
            way.append(way[-1].below[key])
        way[-1].own = None
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
        return Whole(cast("Json", clean_value(number + bounded_number(by))))
    return Whole(bounded_number(number + bounded_number(by)))


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
    seen = (
        set() if winner is None else {content_text(winner)}
    )  # any number may have been put beside each other
    conflicts = []
    for name, content in reversed(there):
        text = content_text(content)
        if text not in seen:
            seen.add(text)
            conflicts.append(JsonConflict(address, _shown(content), name))
    if added and address[0] != PLACE and (winner is None or _is_number(winner)):
        winner = _sum(winner, added)
    return winner, conflicts


def add_registers(tree: JsonTree, entries: Mapping[str, DocumentEntry]) -> list[JsonConflict]:
    """Add the content of all registers to a tree; return their conflicts. Costs O(bytes of them)."""
    conflicts: list[JsonConflict] = []
    for key, entry in entries.items():
        address = parse_key(key)
        if address is None:
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


def build_tree(entries: Mapping[str, DocumentEntry]) -> tuple[JsonTree, list[JsonConflict]]:
    """Build the tree of a document from the content of its registers. Costs O(bytes of it)."""
    tree = JsonTree()
    conflicts = add_registers(tree, entries)
    left: list[tuple[Address, Node]] = [((owner,), root) for owner, root in tree.nodes.items() if root.below]
    while left:
        address, node = left.pop()
        if node.own is not None and not isinstance(node.own, MapMark):
            said_by = _shown_by(address, entries[key_of(address)])
            conflicts.append(JsonConflict(address, _shown(node.own), said_by))
        left += [((*address, key), one) for key, one in node.below.items() if one.below]
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
        node = self._tree.nodes.get(owner) or Node()
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
            # In the order of code points, which is that of UTF-8. Most are fields, which need no address.
            return {
                key: self._show_node((*address, key), one, depth + 1)
                if one.below or isinstance(one.own, ListMark)
                else _shown(one.own)
                for key, one in sorted(node.below.items(), key=_KEY)
            }
        if not node.is_list:
            return _shown(node.own)
        shown: list[Json] = []
        for item in self._tree.items_at(address):
            node_of_item = self._tree.nodes.get(item)
            height = 0 if node_of_item is None else node_of_item.height
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
