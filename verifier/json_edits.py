"""Turns edits of a JSON document into operations on its registers. Pure: random numbers are given.

An edit speaks of what its author sees: a path of map keys and places in lists. What is replaced or removed is let go where
it stands: each register below, and the places of items in lists there. Fields of a removed item stay, for it may come back.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from protocol.codec import DecodeError
from protocol.crypto.hashing import value_name
from protocol.formats.document_kinds import (
    DICT_VALUE_SIZE_MAX,
    DOCUMENT_KEY_SIZE_MAX,
    JSON_DEPTH_MAX,
    JSON_FRACTION_SIZE_MAX,
    JSON_VALUE_SIZE_MAX,
    is_document_key,
)
from protocol.formats.text import parse_id
from protocol.limits.users import JSON_OPERATIONS_MAX
from verifier.json_contents import (
    PLACE,
    REFUSED,
    ROOT,
    WHOLE_NUMBER_MAX,
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
    clean_value,
    content_text,
    is_piece,
    key_of,
    parse_content,
    parse_key,
    piece_at,
)
from verifier.json_documents import Node, show_tree
from verifier.json_registers import Order, PartialTree, Registers

Path = Sequence[str | int]
"""Map keys, and in lists the places of items, the first 0, the last -1."""
RandomNumber = Callable[[int], int]
"""Returns a random number below its argument."""
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FRACTION_SIZE: Final = 9
"""Characters of a fraction at the end of a list: room for 10^10 items there, however they come."""
_STEP: Final = 62**3
"""Least room for a new fraction: so two who insert at one place apart hardly choose the same."""
_ROOM: Final = 2 * _STEP * 62**3
"""Least room beside each item that is spaced anew: some 18 go between two before that is to be done again."""
_CROWD: Final = 32
"""Items on each side that are spaced anew at first, where there is no room for one between two."""
_PIECE_SIZE: Final = DICT_VALUE_SIZE_MAX // 4 - 1
"""Characters of a piece of a long value: each has at most four bytes as JSON, and there are two quotation marks."""
_ID_DIGITS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_SIZE: Final = 16
_LINK_SHOWN_MAX: Final = 64
"""Characters of a link that a refusal repeats."""


class EditRefused(Exception):
    """Error of an edit that cannot be: nothing of it is written."""


class ValueTooLarge(EditRefused):
    """Error of a single value that no register holds."""


class TooManyOperations(EditRefused):
    """Error of edits that write more, at an address or before it, than one request may."""

    def __init__(self, address: Address) -> None:
        super().__init__(
            f"over {JSON_OPERATIONS_MAX} values and places would change up to {_name_of(address)}"
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """Value to say of a register, or None: it is gone. An increment replaces nothing, others all that stands."""

    key: str
    value: str | None
    is_increment: bool


class JsonEditor:
    """Edits one document: each method as if those before it were written. `operations` has what they come to.

    An edit reads what it speaks of: the way to its address and what lies below that, and of a list the items beside one.
    It costs O(that and what it writes), each part O(log n). After some 64 edits about one list, all of its items are read.
    """

    def __init__(self, registers: Registers, random_number: RandomNumber) -> None:
        self._parts = PartialTree(registers)
        self._tree = self._parts.tree
        self._random = random_number
        self._said: dict[Address, tuple[Content | None, bool]] = {}

    def put(self, path: Path, value: object, item: str = ROOT) -> None:
        """Put a value: maps and lists become registers below it. Raises EditRefused."""
        address = self._address(path, item)
        self._make_way(address)
        depth = self._depth(address)
        clean = REFUSED if depth > JSON_DEPTH_MAX else clean_value(value, depth)
        if clean is REFUSED:
            raise EditRefused(
                f"a value is no JSON, over {JSON_DEPTH_MAX} deep, or has a whole number past 2^53"
            )
        self._put(address, cast("Json", clean))

    def add(self, path: Path, number: int, item: str = ROOT) -> None:
        """Add a whole number to a counter; one that is not there is 0. Raises EditRefused."""
        address = self._address(path, item)
        if abs(number) > WHOLE_NUMBER_MAX:
            raise EditRefused("an increment is past 2^53")
        self._make_way(address)
        node = self._tree.node(address)
        own = None if node is None else node.own
        is_number = own is None or (isinstance(own, Whole) and type(own.value) in (int, float))
        if not is_number or self._parts.has_below(address):
            raise EditRefused(f"{_name_of(address)} is no number")
        base = own.value if isinstance(own, Whole) else 0
        said = self._said.get(address)
        if said is None:
            self._say(address, Added(number), is_increment=True)
        elif said[1]:
            assert isinstance(said[0], Added), "an increment was said"
            self._say(address, Added(said[0].number + number), is_increment=True)
        else:  # it was put by an edit before this one
            self._put(address, cast("Json", clean_value(cast("float", base) + number)))
            return
        self._parts.state(address, Whole(cast("float", base) + number))

    def insert(
        self,
        path: Path,
        value: object,
        item: str = ROOT,
        *,
        before: str = "",
        after: str = "",
        index: int | None = None,
    ) -> str:
        """Insert a new item into a list, at its end if no place is named. Return its id. Raises EditRefused."""
        address = self._list_at(path, item)
        made = self._new_item()
        self._place(made, address, before, after, index)
        self.put((), value, made)
        return made

    def move(
        self,
        moved: str,
        path: Path,
        item: str = ROOT,
        *,
        before: str = "",
        after: str = "",
        index: int | None = None,
    ) -> None:
        """Move an item within its list or into another, at its end if no place is named. Raises EditRefused.

        An item that was removed comes back so.
        """
        if moved == ROOT or not self._is_known(moved):
            raise EditRefused(f"there is no item {moved!r}")
        address = self._list_at(path, item)
        holder, seen = address[0], set[str]()
        while holder not in (ROOT, moved, *seen) and (place := self._parts.place_of(holder)) is not None:
            seen.add(holder)
            holder = place.list_address[0]
        if holder == moved:
            raise EditRefused("an item cannot lie in a list of its own")
        self._read_below((moved,))
        if self._depth(address) + 1 + self._tree.nodes.get(moved, Node()).height > JSON_DEPTH_MAX:
            raise EditRefused(f"{_name_of(address)} is too deep for the item")
        self._place(moved, address, before, after, index)

    def remove(self, path: Path, item: str = ROOT) -> None:
        """Remove a map's key with all below it, or an item of a list. Raises EditRefused."""
        address = self._address(path, item)
        if len(address) == 1 and address[0] != ROOT:
            self._let_go((PLACE, address[0]))
            return
        if self._parts.is_free(address):
            raise EditRefused(f"nothing is at {_name_of(address)}")
        self._clear(address)
        if len(address) > 2 and self._parts.is_free(address[:-1]):
            self._say(address[:-1], MapMark())  # a map that becomes empty is there still

    def value(self) -> Json:
        """Return the value that the document comes to. Costs O(n log n) of what is in it."""
        self._parts.need_all()
        return show_tree(self._tree)[0]

    def operations(self) -> Iterator[Operation]:
        """Yield the operations to write. A register that has this content already needs none.

        Pieces that nothing names any more go last: whoever has a part of the commits reads the value before, or the new one.
        """
        gone: list[Operation] = []
        for address, (content, is_increment) in self._said.items():
            text = None if content is None else content_text(content)
            if not is_increment and self._holds(address, text):
                continue
            if text is not None and len(text.encode()) > DICT_VALUE_SIZE_MAX:
                raise ValueTooLarge(
                    f"{_name_of(address)} names what is over {DICT_VALUE_SIZE_MAX} bytes long"
                )
            operation = Operation(key_of(address), text, is_increment)
            if text is None and is_piece(address):
                gone.append(operation)
            else:
                yield operation
        yield from gone

    def _holds(self, address: Address, text: str | None) -> bool:
        """Return True if just this stands at an address, and of a piece, if what names it stands too.

        Else somebody may let go of the piece who has not seen that it is named anew.
        """
        entry = self._parts.entries.get(address)
        values = set[str | None]() if entry is None else {tip.value for tip in entry.values}
        if values != (set() if text is None else {text}):
            return False
        if text is None or not is_piece(address):
            return True
        named = self._said.get(address[:-2], (None, False))[0]
        return named is None or self._holds(address[:-2], content_text(named))

    def _new_item(self) -> str:
        made = "".join(_ID_DIGITS[self._random(32)] for _ in range(_ID_SIZE))
        self._parts.add_item(made)
        return made

    # --- addresses ---

    def _address(self, path: Path, item: str) -> Address:
        if item != ROOT and not self._is_known(item):
            raise EditRefused(f"there is no item {item!r}")
        address: Address = (item,)
        for number, part in enumerate(path):
            if number == 0 or isinstance(path[number - 1], int):
                self._read_way(address, path[number:])
            is_list = self._parts.is_list(address)
            if isinstance(part, int):
                found = self._item_at(address, part) if is_list else None
                if found is None:
                    raise EditRefused(f"{_name_of(address)} has no item {part}")
                address = (found[1],)
            elif is_list:
                raise EditRefused(f"{_name_of(address)} is a list: name an item of it by its place")
            else:
                address = (*address, part)
        _check_address(address)
        self._parts.need([address])
        return address

    def _read_way(self, address: Address, path: Path) -> None:
        """Read at once what stands on the way along the map keys that a path begins with."""
        way = [address]
        for part in path:
            if isinstance(part, int):
                break
            way.append((*way[-1], part))
        _check_address(way[-1])
        self._parts.need(way)

    def _item_at(self, address: Address, index: int) -> Order | None:
        """Return the item of a list by its place, the first 0, the last -1."""
        skip = index if index >= 0 else -1 - index
        found = self._parts.items(address, None, skip, 1, is_backwards=index < 0)
        return found[0] if found else None

    def _depth(self, address: Address) -> int:
        """Return in how many maps and lists an address lies, as it shows. Costs O(depth), or O(items) in a circle."""
        owner, depth, seen = address[0], len(address) - 1, set[str]()
        while owner not in (ROOT, *seen) and (place := self._parts.place_of(owner)) is not None:
            seen.add(owner)
            owner, depth = place.list_address[0], depth + len(place.list_address)
        return depth

    def _is_known(self, item: str) -> bool:
        if parse_key(item) != (item,):
            return False
        self._parts.need([(PLACE, item), (item,)])
        return (
            self._parts.place_of(item) is not None
            or (PLACE, item) in self._parts.entries
            or not self._parts.is_free((item,))
        )

    def _list_at(self, path: Path, item: str) -> Address:
        address = self._address(path, item)
        if self._parts.is_free(address):
            self._make_way(address)
            self._say(address, ListMark())
        elif not self._parts.is_list(address):
            raise EditRefused(f"{_name_of(address)} is no list")
        return address

    def _make_way(self, address: Address) -> None:
        """Raise EditRefused if a map key on the way is of something that is no map."""
        for end in range(1, len(address)):
            node = self._tree.node(address[:end])
            is_other = node is not None and not isinstance(node.own, MapMark | None)
            if is_other and not self._parts.has_below(address[:end]):
                raise EditRefused(f"{_name_of(address[:end])} is no map")

    # --- registers ---

    def _say(self, address: Address, content: Content | None, *, is_increment: bool = False) -> None:
        self._parts.need([address])  # what stands there is replaced
        self._count(address)
        self._said[address] = (content, is_increment)
        if not is_increment:
            self._parts.state(address, content)

    def _count(self, address: Address) -> None:
        if len(self._said) >= JSON_OPERATIONS_MAX and address not in self._said:
            raise TooManyOperations(address)

    def _let_go(self, address: Address) -> None:
        self._say(address, None)

    def _clear(self, address: Address) -> None:
        """Let go what stands at an address and below it, and the places of items in lists there.

        Items of a list that another value had replaced before they came are unplaced, and stay so.
        """
        self._read_below(address)
        for piece in self._parts.pieces_below(address):
            self._count(piece)
            self._said[piece] = (None, False)
        node = self._tree.node(address)
        if node is None:
            return
        for path, below in list(node.walk()):
            inner = (*address, *path)
            if isinstance(below.own, ListMark) or self._has_list(inner):
                if self._parts.items(inner, None, JSON_OPERATIONS_MAX, 1, is_backwards=False):
                    raise TooManyOperations(inner)
                for item in self._parts.all_items(inner):
                    self._let_go((PLACE, item))
            if below.own is not None:
                self._let_go(inner)

    def _read_below(self, address: Address) -> None:
        if not self._parts.need_below(address, JSON_OPERATIONS_MAX):
            raise TooManyOperations(address)

    def _has_list(self, address: Address) -> bool:
        """Return True if a list was put at an address, where another value may show."""
        entry = self._parts.entries.get(address)
        said = () if entry is None else (parse_content(tip.value) for tip in entry.values if tip.value)
        return any(isinstance(content, ListMark) for content in said)

    def _put(self, address: Address, value: Json) -> None:
        self._clear(address)
        if isinstance(value, dict):
            linked = _linked(value)
            if linked is not None:
                _check_link(address, linked)
                self._say(address, linked)
            elif isinstance(value.get("$whole"), list) and len(value) == 1:
                self._put_whole(address, Whole(value["$whole"]))
            else:
                self._put_map(address, value)
        elif isinstance(value, list):
            self._say(address, ListMark())
            if len(value) > JSON_OPERATIONS_MAX:  # before so many fractions are made
                raise TooManyOperations(address)
            fractions = self._spaced(len(value), None, None)
            assert fractions is not None, "a new list has room"
            for one, fraction in zip(value, fractions, strict=True):
                made = self._new_item()
                self._say((PLACE, made), Place(address, fraction))
                self._put((made,), one)
        else:
            self._put_whole(address, Whole(value))

    def _put_whole(self, address: Address, content: Whole) -> None:
        """Put a scalar or an array; one that no register holds in pieces, before the register that names them."""
        text = content_text(content)
        size = len(text.encode())
        if size <= DICT_VALUE_SIZE_MAX:
            self._say(address, content)
            return
        if size > JSON_VALUE_SIZE_MAX:
            raise ValueTooLarge(f"{_name_of(address)} has over {JSON_VALUE_SIZE_MAX} bytes")
        parts = [text[start : start + _PIECE_SIZE] for start in range(0, len(text), _PIECE_SIZE)]
        # By the value, so that putting the same once more writes nothing.
        pieces = Pieces(value_name(text.encode()), len(parts))
        for number, part in enumerate(parts):
            piece = piece_at(address, pieces, number)
            if not is_document_key(key_of(piece)):
                raise EditRefused(
                    f"{_name_of(address)} has too long keys for a value of over {DICT_VALUE_SIZE_MAX} bytes"
                )
            self._parts.note_piece(piece)
            self._said[piece] = (Whole(part), False)
        self._said.pop(address, None)
        self._say(address, pieces)
        self._parts.state(address, content)

    def _put_map(self, address: Address, value: dict[str, Json]) -> None:
        fields = {
            key: one for key, one in value.items() if key != "$id"
        }  # a map as it was read may be put again
        if not fields:
            self._say(address, MapMark())
        for key, one in fields.items():
            below = (*address, key)
            _check_address(below)
            self._put(below, one)

    # --- places in lists ---

    def _place(self, item: str, address: Address, before: str, after: str, index: int | None) -> None:
        old = self._parts.place_of(item)
        self._parts.state((PLACE, item), None)
        try:
            left, right = self._find_neighbours(address, before, after, index)
        except EditRefused:
            self._parts.state((PLACE, item), old)
            raise
        fraction = fraction_between(left[0] if left else "", right[0] if right else None, self._random)
        if fraction is None:
            self._space_anew(item, address, left, right)
        else:
            self._say((PLACE, item), Place(address, fraction))

    def _find_neighbours(
        self, address: Address, before: str, after: str, index: int | None
    ) -> tuple[Order | None, Order | None]:
        """Return the items between which one is to be placed."""
        if sum((bool(before), bool(after), index is not None)) > 1:
            raise EditRefused("name one of before, after and index")
        named = before or after
        if named:
            place = None if parse_key(named) != (named,) else self._parts.place_of(named)
            if place is None or place.list_address != address:
                raise EditRefused(f"the list has no item {named!r}")
            at = (place.fraction, named)
            found = self._parts.items(address, at, 0, 1, is_backwards=bool(before))
            beside = found[0] if found else None
            return (at, beside) if after else (beside, at)
        if index is None:
            return self._item_at(address, -1), None
        if index == 0:
            return None, self._item_at(address, 0)
        skip = index - 1 if index > 0 else -1 - index
        found = self._parts.items(address, None, skip, 2, is_backwards=index < 0)
        if not found:
            raise EditRefused(f"the list has no place {index}")
        beside = found[1] if len(found) > 1 else None
        return (found[0], beside) if index > 0 else (beside, found[0])

    def _space_anew(self, item: str, address: Address, left: Order | None, right: Order | None) -> None:
        """Place an item between two neighbours without room: as many items on both sides as needed get new fractions."""
        count = _CROWD
        while True:
            before, low = self._crowd(address, left, count, is_backwards=True)
            behind, high = self._crowd(address, right, count, is_backwards=False)
            items = [*reversed(before), item, *behind]
            fractions = self._spaced(len(items), low, high)
            if fractions is not None:
                break
            count *= 4
        self._parts.need([(PLACE, one) for one in items])
        for one, fraction in zip(items, fractions, strict=True):
            self._say((PLACE, one), Place(address, fraction))

    def _crowd(
        self, address: Address, first: Order | None, count: int, *, is_backwards: bool
    ) -> tuple[list[str], str | None]:
        """Return so many items from one on, and the fraction of the one behind them, if there is one."""
        if first is None:
            return [], None
        found = [first, *self._parts.items(address, first, 0, count, is_backwards=is_backwards)]
        return [item for _, item in found[:count]], found[count][0] if len(found) > count else None

    def _spaced(self, count: int, low: str | None, high: str | None) -> list[str] | None:
        """Return fractions for so many items between two, or of a whole list; None where there is no room for them."""
        if low is None and high is None:  # as close as need be, so that there is room at both ends
            start = 62**_FRACTION_SIZE // 2 - count // 2 * 2 * _STEP
            return self._fractions(start, 2 * _STEP, count, _FRACTION_SIZE)
        for size in range(_FRACTION_SIZE, JSON_FRACTION_SIZE_MAX + 1):
            start = 0 if low is None else _fraction_number(low, size)
            end = 62**size if high is None else _fraction_number(high, size)
            step = (end - start) // (count + 1)
            if step >= _ROOM:
                return self._fractions(start + step, step, count, size)
        return None

    def _fractions(self, start: int, step: int, count: int, size: int) -> list[str]:
        return [_fraction_text(start + place * step + self._random(_STEP), size) for place in range(count)]


def _check_address(address: Address) -> None:
    if parse_key(key_of(address)) != address:
        raise EditRefused(
            f"no map has such a key: the keys on the way have at most {DOCUMENT_KEY_SIZE_MAX} bytes together and are "
            f"{JSON_DEPTH_MAX} at most; none begins with $ or has U+0000"
        )


def _linked(value: Mapping[str, Json]) -> Linked | None:
    """Return the text or file that a value names: {"$text": name}, {"$file": id}."""
    for kind in ("text", "file"):
        name = value.get(f"${kind}")
        if len(value) == 1 and isinstance(name, str):
            return Linked(kind, name)
    return None


def _check_link(address: Address, linked: Linked) -> None:
    """Raise EditRefused for a link that can never lead to a file. Whether the file is here, this cannot know."""
    if linked.kind != "file":
        return
    try:
        parse_id(linked.name)
    except DecodeError:
        raise EditRefused(
            f"{_name_of(address)}: {linked.name[:_LINK_SHOWN_MAX]!r} is no id of a file"
        ) from None


def _name_of(address: Address) -> str:
    owner, *keys = address
    inside = f"the item {owner}" if owner else "the document"
    return f"{'.'.join(keys)!r} of {inside}" if keys else inside


def fraction_between(left: str, right: str | None, random_number: RandomNumber) -> str | None:
    """Return a random fraction between two ("" is before all, None behind all), or None if there is no room for one."""
    for size in range(_FRACTION_SIZE, JSON_FRACTION_SIZE_MAX + 1):
        low = _fraction_number(left, size) if left else 0
        high = 62**size if right is None else _fraction_number(right, size)
        if high - low <= 2 * _STEP:
            continue
        if left and right is None:
            chosen = low + 1 + random_number(_STEP)
        elif not left and right is not None:
            chosen = high - 1 - random_number(_STEP)
        else:
            chosen = (low + high) // 2 - _STEP // 2 + random_number(_STEP)
        return _fraction_text(chosen, size)
    return None


def _fraction_number(text: str, size: int) -> int:
    number = 0
    for character in text[:size].ljust(size, _DIGITS[0]):
        number = number * 62 + _DIGITS.index(character)
    return number


def _fraction_text(number: int, size: int) -> str:
    digits: list[str] = []
    for _ in range(size):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
