"""Places of the items of a text: which of them have all that they stand beside, and in which list. Pure.

A Yjs item names the item left of it, the item right of it, or its parent: a root, or an item that is a type, and a key
where that is a map. So each item stands in one *list*: a parent and a key. `Places` adds items in the order of each
client's clocks, once all that they name is there. An item is *misplaced* if it names items of two lists, a parent that is
no type, or a type in types past the bound, or if it has several clocks in a map. Nothing of its client from there on is
in the text: libraries lose other items beside such ones, or fail.

Adding n items costs O(n log n).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from protocol.formats.document_kinds import TEXT_DEPTH_MAX
from protocol.formats.yjs_updates import ItemId, Struct

TextList = tuple[str | ItemId, str | None]
"""Parent of items, which is a root or a type, and a key if it is a map."""


class TextItem(NamedTuple):
    """Structs of one client that stand one behind another, at the clocks [clock, end).

    It has what the first of them names. Each of them `is_long`, or none: it has more clocks than one.
    """

    clock: int
    end: int
    left: ItemId | None
    right: ItemId | None
    parent: str | ItemId | None
    key: str | None
    is_type: bool
    is_long: bool

    def after(self, client: int, clock: int) -> "TextItem":
        """Return what is left of it from a clock on."""
        return self._replace(clock=clock, left=(client, clock - 1), parent=None, key=None)


def list_items(client: int, structs: Sequence[Struct]) -> list[TextItem]:
    """Return the items of one client in an update; letters that were typed in a row are one."""
    items: list[TextItem] = []
    for one in structs:
        if items and _continues(client, one, items[-1]):
            items[-1] = items[-1]._replace(end=one.end)
            continue
        items.append(
            TextItem(
                one.clock,
                one.end,
                one.left,
                one.right,
                one.parent,
                one.key,
                one.is_type,
                one.end - one.clock > 1,
            )
        )
    return items


def _continues(client: int, one: Struct, last: TextItem) -> bool:
    """Return True if a struct stands behind an item as if both were one; in a map that makes no difference either."""
    is_next = last.end == one.clock and one.left == (client, one.clock - 1) and one.right == last.right
    return is_next and not one.is_type and not last.is_type and (one.end - one.clock > 1) == last.is_long


PlacesDump = tuple[
    dict[int, tuple[int, list[int], list[tuple[str | ItemId, str | None]]]], list[tuple[int, int, int]]
]
"""What `Places` say: by client its end, where its lists begin, and which these are; and (client, clock, depth) of types."""


class Places:
    """Lists in which the items of a text lie."""

    def __init__(self, base: "Places | None" = None) -> None:
        """Begin with the places of `base`, which is not changed."""
        self._base = base
        self._ends: dict[int, int] = {}
        self._starts: dict[int, list[int]] = {}
        self._lists: dict[int, list[TextList]] = {}
        self._depths: dict[ItemId, int] = {}  # of types: how many types they are in, themselves included

    def end(self, client: int) -> int:
        """Return the first clock of a client that is not in the text."""
        end = self._ends.get(client)
        if end is not None:
            return end
        return 0 if self._base is None else self._base.end(client)

    def ends(self) -> dict[int, int]:
        """Return all of these that were added here."""
        return dict(self._ends)

    def dump(self) -> PlacesDump:
        """Return the places for `restore_places`. Only for places without a base."""
        clients = {
            client: (end, self._starts[client], self._lists[client]) for client, end in self._ends.items()
        }
        return clients, [(client, clock, depth) for (client, clock), depth in self._depths.items()]

    def add(self, items: Mapping[int, Sequence[TextItem]]) -> list[ItemId]:
        """Add items by client, in the order of their clocks, as far as they have what they name; return misplaced ones."""
        ahead = dict.fromkeys(items, 0)
        waiting: dict[int, list[tuple[int, int]]] = {}  # by client: from which clock on others can go on
        misplaced: list[ItemId] = []
        ready = list(items)
        while ready:
            client = ready.pop()
            row = items[client]
            while ahead[client] < len(row) and row[ahead[client]].clock == self.end(client):
                one = row[ahead[client]]
                lacking = self._find_lacking(one)
                if lacking is not None:
                    heappush(waiting.setdefault(lacking[0], []), (lacking[1], client))
                    break
                found = self._list_for(one)
                if found is None:
                    misplaced.append((client, one.clock))
                    break
                self._put(client, one, found)
                ahead[client] += 1
            others = waiting.get(client, [])
            while others and others[0][0] < self.end(client):
                ready.append(heappop(others)[1])
        return misplaced

    def _find_lacking(self, one: TextItem) -> ItemId | None:
        for named in (one.left, one.right, one.parent):
            if isinstance(named, tuple) and named[1] >= self.end(named[0]):
                return named
        return None

    def _list_for(self, one: TextItem) -> TextList | None:
        """Return the list of an item that has all that it names; None if it is misplaced."""
        found = {self._list_of(named) for named in (one.left, one.right) if named is not None}
        if len(found) > 1:
            return None
        if found:
            (place,) = found
        elif one.parent is None or (isinstance(one.parent, tuple) and not self._depth_of(one.parent)):
            return None
        else:
            place = one.parent, one.key
        if place[1] is not None and one.is_long:
            return None
        return place if not one.is_type or self._depth_in(place) < TEXT_DEPTH_MAX else None

    def _put(self, client: int, one: TextItem, place: TextList) -> None:
        lists = self._lists.setdefault(client, [])
        if not lists or lists[-1] != place:
            lists.append(place)
            self._starts.setdefault(client, []).append(one.clock)
        if one.is_type:
            self._depths[client, one.clock] = self._depth_in(place) + 1
        self._ends[client] = one.end

    def _list_of(self, named: ItemId) -> TextList:
        client, clock = named
        starts = self._starts.get(client)
        if not starts or clock < starts[0]:
            assert self._base is not None, "it is there"
            return self._base._list_of(named)
        return self._lists[client][bisect_right(starts, clock) - 1]

    def _depth_of(self, named: ItemId) -> int:
        """Return how many types a type is in, with itself; 0 of what is no type."""
        return self._depths.get(named, 0) or (0 if self._base is None else self._base._depth_of(named))

    def _depth_in(self, place: TextList) -> int:
        return 0 if isinstance(place[0], str) else self._depth_of(place[0])


def restore_places(dump: PlacesDump) -> Places:
    """Make places from a dump of `Places.dump`."""
    places = Places()
    clients, depths = dump
    for client, (end, starts, lists) in clients.items():
        places._ends[client], places._starts[client], places._lists[client] = end, starts, lists
    places._depths.update({(client, clock): depth for client, clock, depth in depths})
    return places
