"""Reads of a JSON document what an edit speaks of, and no more. `json_edits` decides what that is. Pure."""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from verifier.documents import DocumentEntry, in_byte_order
from verifier.json_contents import (
    PLACE,
    Address,
    Content,
    ListMark,
    Pieces,
    Place,
    is_piece,
    key_of,
    parse_key,
    parse_position,
    position_of,
    positions_in,
)
from verifier.json_documents import JsonTree, read_register

_KEYS_END: Final = "{"
"""First character behind all that a register's key may begin with."""
_LOOKED_MIN: Final = 4
"""Registers that are read at first to learn whether any readable one is below an address."""
_SPOKEN_MAX: Final = 64
"""Items of a list that edits have spoken of before its whole order is read: each look costs O(their number)."""
_SKIP_MAX: Final = 2**32
"""Items that are skipped, beyond which no list has any. Databases count up to 2^63, and what asks may give any number."""
Order = tuple[str, str]
"""Fraction and id of an item: what orders those of a list."""


class Registers(ABC):
    """Registers of one document at a moment, wherever they are kept."""

    @abstractmethod
    def load(self, keys: Sequence[str]) -> Mapping[str, DocumentEntry]:
        """Load what stands about some keys."""

    @abstractmethod
    def load_between(self, first: str, end: str, limit: int | None) -> Mapping[str, DocumentEntry]:
        """Load what stands about keys that are there, from one on and before another, by UTF-8 bytes; the first `limit`."""

    @abstractmethod
    def load_positions(
        self, first: bytes, end: bytes, offset: int, limit: int | None, *, is_backwards: bool
    ) -> Sequence[bytes]:
        """Load positions of items, as `position_of`, after one and before another, in their order or against it."""


class HeldRegisters(Registers):
    """Registers of a document whose entries are at hand."""

    def __init__(self, entries: Mapping[str, DocumentEntry]) -> None:
        self._entries = entries

    def load(self, keys: Sequence[str]) -> Mapping[str, DocumentEntry]:
        """Load what stands about some keys."""
        return {key: self._entries[key] for key in keys if key in self._entries}

    def load_between(self, first: str, end: str, limit: int | None) -> Mapping[str, DocumentEntry]:
        """Load what stands about keys that are there. Costs O(log n and what is found); the first time O(n log n)."""
        keys = self._keys
        start = bisect_left(keys, first.encode(), key=str.encode)
        stop = bisect_left(keys, end.encode(), key=str.encode)
        found = keys[start:stop] if limit is None else keys[start : min(stop, start + limit)]
        return {key: self._entries[key] for key in found}

    def load_positions(
        self, first: bytes, end: bytes, offset: int, limit: int | None, *, is_backwards: bool
    ) -> Sequence[bytes]:
        """Load positions of items. Costs as `load_between`."""
        found = self._positions[bisect_right(self._positions, first) : bisect_left(self._positions, end)]
        found = found[::-1] if is_backwards else found
        return found[offset:] if limit is None else found[offset : offset + limit]

    @cached_property
    def _keys(self) -> list[str]:
        return in_byte_order(self._entries)

    @cached_property
    def _positions(self) -> list[bytes]:
        found: list[bytes] = []
        for key, entry in self._entries.items():
            address = parse_key(key)
            if address is not None and address[0] == PLACE:
                content, _ = read_register(address, entry)
                if isinstance(content, Place):
                    found.append(position_of(address[1], content))
        return sorted(found)


class PartialTree:
    """Part of a document's tree: registers are loaded as they are needed, and edits are applied on top."""

    def __init__(self, registers: Registers) -> None:
        self.tree = JsonTree()
        self.entries: dict[Address, DocumentEntry] = {}
        """Entries that were read, by address; also of pieces of long values."""
        self._pieces: list[Address] = []
        """Addresses of pieces that were read or are about to be written. Sorted."""
        self._registers = registers
        self._known: set[Address] = set()
        """Addresses of which it is known what stands."""
        self._whole: set[Address] = set()
        """Addresses of which that is known also of all below."""
        self._ordered: set[Address] = set()
        """Lists of which all items are in the tree."""
        self._stored: dict[Address, list[Order]] = {}
        """By list: items that lie there as the registers have it, of those that are known. Sorted."""

    def need(self, addresses: Iterable[Address]) -> None:
        """Load the registers at some addresses, unless they are known."""
        missing = [one for one in addresses if not self._is_known(one)]
        if missing:
            self._take(self._registers.load([key_of(one) for one in missing]))
            self._known.update(missing)

    def need_below(self, address: Address, limit: int) -> bool:
        """Load the registers at an address and below it, unless they are known. Return False if they are over `limit`.

        Costs O(these, and at most `limit`).
        """
        if not self._is_whole(address):
            key = key_of(address)
            found = self._registers.load_between(key, f"{key}\x01", limit + 1)
            if len(found) > limit:
                return False
            self._take(found)
            self._whole.add(address)
        return True

    def need_all(self) -> None:
        """Load the whole document, and join long values."""
        entries = self._registers.load_between("", _KEYS_END, None)
        self._take(entries)
        for address in self._known:
            node = self.tree.node(address)
            if node is not None and isinstance(node.own, Pieces):
                content, _ = read_register(address, self.entries[address], entries)
                self.tree.state(address, content)
        self._whole.add(())

    def pieces_below(self, address: Address) -> list[Address]:
        """Return the addresses of pieces below one, of which all is known. Costs O(these, and log n)."""
        size = len(address)
        start = bisect_left(self._pieces, address, key=lambda one: one[:size])
        return self._pieces[start : bisect_right(self._pieces, address, key=lambda one: one[:size])]

    def note_piece(self, piece: Address) -> bool:
        """Note that a piece stands at an address, or is about to; return True if that was not known."""
        at = bisect_left(self._pieces, piece)
        is_new = self._pieces[at : at + 1] != [piece]
        if is_new:
            self._pieces.insert(at, piece)
        return is_new

    def add_item(self, item: str) -> None:
        """Take note of a new item: nothing stands of it."""
        self._whole |= {(item,), (PLACE, item)}

    def has_below(self, address: Address) -> bool:
        """Return True if anything readable stands below an address. Costs O(what nobody can read there, and log n)."""
        self.need([address])
        first, end, limit = f"{key_of(address)}\0", f"{key_of(address)}\x01", _LOOKED_MIN
        while (node := self.tree.node(address)) is None or not node.below:
            if self._is_whole(address):
                return False
            found = self._registers.load_between(first, end, limit)
            self._take(found)
            if len(found) < limit:
                self._whole.add(address)
            else:
                first, limit = f"{list(found)[-1]}\0", 2 * limit
        return True

    def is_list(self, address: Address) -> bool:
        """Return True if an address shows as a list: a map that somebody began beside it goes before."""
        self.need([address])
        node = self.tree.node(address)
        return node is not None and isinstance(node.own, ListMark) and not self.has_below(address)

    def is_free(self, address: Address) -> bool:
        """Return True if nothing stands at an address."""
        self.need([address])
        node = self.tree.node(address)
        return (node is None or node.own is None) and not self.has_below(address)

    def place_of(self, item: str) -> Place | None:
        """Return where an item is placed."""
        self.need([(PLACE, item)])
        return self.tree.places.get(item)

    def state(self, address: Address, content: Content | None) -> None:
        """Set the content of an address; None empties it. What stood there must be known already."""
        self.tree.state(address, content)

    # --- lists ---

    def items(
        self, list_address: Address, beside: Order | None, skip: int, count: int, *, is_backwards: bool
    ) -> list[Order]:
        """Return items of a list that follow one, or the first ones, after `skip` others; or that precede it, backwards.

        Costs O(count, items of the list that edits spoke of, and log n).
        """
        if skip > _SKIP_MAX:
            return []
        mine = self.tree.lists.get(list_address, [])
        stored = self._stored.get(list_address, [])
        if len(mine) + len(stored) > _SPOKEN_MAX:
            self._need_order(list_address)
        if list_address in self._ordered or () in self._whole:
            return _part(self.tree.lists.get(list_address, []), beside, skip, count, is_backwards)
        mine = _part(mine, beside, 0, len(mine), is_backwards)
        spoken = _part(stored, beside, 0, len(stored), is_backwards)
        offset = max(0, skip - len(mine))
        rows = self._load_order(
            list_address, beside, offset, skip - offset + count + len(spoken), is_backwards
        )
        if offset and not rows:
            return []
        passed = sum((one > rows[0]) if is_backwards else (one < rows[0]) for one in spoken) if rows else 0
        there = [one for one in rows if not self._is_known((PLACE, one[1]))]
        start = skip - offset + passed
        return sorted([*mine, *there], reverse=is_backwards)[start : start + count]

    def all_items(self, list_address: Address) -> list[str]:
        """Return the items of a list, with their places read. Costs O(n)."""
        self._need_order(list_address)
        items = self.tree.items_at(list_address)
        self.need([(PLACE, item) for item in items])
        return items

    def _need_order(self, list_address: Address) -> None:
        if list_address in self._ordered or () in self._whole:
            return
        for fraction, item in self._load_order(list_address, None, 0, None, is_backwards=False):
            if not self._is_known((PLACE, item)):
                self.tree.state((PLACE, item), Place(list_address, fraction))
        self._ordered.add(list_address)

    def _load_order(
        self, list_address: Address, beside: Order | None, offset: int, limit: int | None, is_backwards: bool
    ) -> list[Order]:
        first, end = positions_in(list_address)
        if beside is not None:
            at = position_of(beside[1], Place(list_address, beside[0]))
            first, end = (first, at) if is_backwards else (at, end)
        found = self._registers.load_positions(first, end, offset, limit, is_backwards=is_backwards)
        return [parse_position(one) for one in found]

    # --- registers ---

    def _is_known(self, address: Address) -> bool:
        return address in self._known or self._is_whole(address)

    def _is_whole(self, address: Address) -> bool:
        first = 1 if address[0] == PLACE else 0  # the whole document has no places that are gone
        return any(address[:size] in self._whole for size in range(first, len(address) + 1))

    def _take(self, entries: Mapping[str, DocumentEntry]) -> None:
        """Add loaded registers that were not known before and that no edit has changed."""
        for key, entry in entries.items():
            address = parse_key(key)
            if address is None:
                piece = tuple(key.split("\0"))
                if is_piece(piece) and self.note_piece(piece):
                    self.entries[piece] = entry
                continue
            if self._is_known(address):
                continue
            self._known.add(address)
            self.entries[address] = entry
            content, _ = read_register(address, entry)
            self.tree.state(address, content)
            if isinstance(content, Place):
                insort(self._stored.setdefault(content.list_address, []), (content.fraction, address[1]))


def _part(
    items: Sequence[Order], beside: Order | None, skip: int, count: int, is_backwards: bool
) -> list[Order]:
    """Return items that follow one in a sorted list, or precede it, the nearest first."""
    if is_backwards:
        end = (len(items) if beside is None else bisect_left(items, beside)) - skip
        return list(items[max(0, end - count) : max(0, end)])[::-1]
    start = (0 if beside is None else bisect_right(items, beside)) + skip
    return list(items[start : start + count])
