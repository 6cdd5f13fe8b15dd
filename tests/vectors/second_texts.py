"""Texts of the second reader, written from docs/specification/profiles/documents.md: what updates come to, clock by clock.

Yjs's format v1 is not described there; it is read here as https://github.com/yjs/yjs writes it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from blake3 import blake3
from pycrdt import Doc, Text

from tests.vectors.second_reader import Refused, derive, pack, require

Clock = tuple[int, int]
Units = dict[Clock, tuple["Struct", int]]
"""By clock: the struct that says it, and where in it."""
GAP = 10
Item = tuple[int, int]
"""A client id and a clock."""


class Bytes:
    """Bytes that are read from their beginning."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        require(self.at + size <= len(self.data), "as many bytes as it says")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self) -> int:
        found = shift = 0
        while True:
            (byte,) = self.take(1)
            found |= (byte & 127) << shift
            shift += 7
            require(shift <= 56, "at most 8 bytes")
            if byte < 128:
                require(found < 1 << 53, "at most 53 bits")
                return found

    def text(self) -> bytes:
        found = self.take(self.number())
        try:
            found.decode()
        except UnicodeDecodeError:
            raise Refused("UTF-8") from None
        return found

    def any(self, depth: int = 1) -> None:
        require(depth <= 65, "values in values")
        kind = self.take(1)[0]
        if kind in (118, 117):
            for _ in range(self.number()):
                if kind == 118:
                    self.text()
                self.any(depth + 1)
        elif kind == 125:
            while self.take(1)[0] > 127:
                pass
        elif kind in (119, 116):
            self.take(self.number())
        else:
            sizes = {127: 0, 126: 0, 121: 0, 120: 0, 124: 4, 123: 8, 122: 8}
            require(kind in sizes, "a value")
            self.take(sizes[kind])


def number(value: int) -> bytes:
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


class Struct(NamedTuple):
    """A struct: its bytes, its length in clocks, and where it stands."""

    encoded: bytes
    length: int
    left: Item | None = None
    right: Item | None = None
    parent: bytes | Item | None = None
    key: bytes | None = None
    is_type: bool = False


def read_struct(data: Bytes) -> Struct:
    start = data.at
    info = data.take(1)[0]
    kind = info & 31
    if kind in (0, GAP):
        require(info == kind, "no flags")
        length = data.number()
        require(length > 0, "a length")
        return Struct(data.data[start : data.at], length)
    left = (data.number(), data.number()) if info & 0x80 else None
    right = (data.number(), data.number()) if info & 0x40 else None
    parent: bytes | Item | None = None
    key = None
    if left is None and right is None:
        named = data.number()
        require(named <= 1, "a name or an item")
        parent = data.text() if named else (data.number(), data.number())
        key = data.text() if info & 0x20 else None
    length = 1
    match kind:
        case 1:
            length = data.number()
        case 4:
            length = len(data.text().decode().encode("utf-16-le")) // 2
        case 7:
            kind_of_type = data.number()
            require(kind_of_type <= 6, "a known type")
            if kind_of_type in (3, 5):
                data.text()
        case 8:
            length = data.number()
            for _ in range(length):
                data.any()
        case _:
            raise Refused("content of these vectors")
    require(length > 0, "a length")
    return Struct(data.data[start : data.at], length, left, right, parent, key, kind == 7)


def read_update(encoded: bytes) -> tuple[Units, set[Clock]]:
    """The clocks that it says, and those that it deletes."""
    data = Bytes(encoded)
    said: Units = {}
    clients: set[int] = set()
    for _ in range(data.number()):
        count, client, clock = data.number(), data.number(), data.number()
        require(client not in clients, "each client id once")
        clients.add(client)
        for _ in range(count):
            struct = read_struct(data)
            require(struct.encoded[0] not in (0, GAP), "no filler and no gap")
            for item in (struct.left, struct.right, struct.parent):
                if isinstance(item, tuple):
                    require(item[1] < (clock if item[0] == client else 1 << 31), "an earlier item")
            require(clock + struct.length <= 1 << 31, "so many clocks")
            said |= {(client, clock + at): (struct, at) for at in range(min(struct.length, 5000))}
            clock += struct.length
    deleted: set[Clock] = set()
    for _ in range(data.number()):
        client = data.number()
        for _ in range(data.number()):
            clock, length = data.number(), data.number()
            deleted |= {(client, at) for at in range(clock, clock + length)}
    require(data.at == len(encoded), "nothing behind")
    return said, deleted


def clients_of(author: bytes, branch: bytes) -> int:
    return int.from_bytes(derive("user and branch to Yjs client ids v1", author + branch)[:5], "little")


def reduce_text(branch: bytes, updates: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Find what each update adds, what is passed over, and the text as one update."""
    taken: dict[Clock, int] = {}
    units: Units = {}
    wanted: dict[int, set[Clock]] = {}
    faults: dict[int, str] = {}
    names: set[bytes] = set()

    def is_copy(one: dict[str, Any]) -> bool:
        return one["carried_by"] not in (None, one["author"])

    for number_, one in sorted(enumerate(updates), key=lambda item: (is_copy(item[1]), item[0])):
        try:
            said, deleted = read_update(one["update"])
        except Refused:
            faults[number_] = "unreadable"
            continue
        clients = clients_of(one["author"], one["branch"])
        stays = {client >> 13 == clients for client, _ in said} <= {True}
        if not stays or (is_copy(one) and one["branch"] == branch):
            faults[number_] = "other_client"
            continue
        left = dict(said)
        for client in {client for client, _ in said}:
            clock = min(at for of, at in said if of == client)
            while (client, clock) in left and (client, clock) in taken:
                del left[client, clock]
                clock += 1
        meets = not taken.keys().isdisjoint(left)
        if (meets or len(left) < len(said)) and one["name"] not in names:
            faults[number_] = "used_clocks"
        if meets:
            continue
        names.add(one["name"])
        taken |= dict.fromkeys(left, number_)
        units |= left
        wanted[number_] = deleted
    here, misplaced = place(units)
    for item in misplaced:
        faults[taken[item]] = "misplaced"
    gone: dict[int, set[Clock]] = {}
    for number_, deleted in wanted.items():
        named = set(updates[number_]["replaces"])
        gone[number_] = {
            clock
            for clock in deleted
            if clock in here and (taken[clock] == number_ or updates[taken[clock]]["name"] in named)
        }
    return {
        "takes": [ranges({clock for clock in here if taken[clock] == at}) for at in range(len(updates))],
        "deletes": [ranges(gone.get(at, set())) for at in range(len(updates))],
        "faults": [faults.get(at) for at in range(len(updates))],
        "text_as_one_update": encode({clock: units[clock] for clock in here}, set().union(*gone.values())),
    }


def parts(units: Units, client: int) -> Iterator[tuple[int, int]]:
    """Clocks and lengths of the structs, or of what is left of them, of a client."""
    for _, first, behind in ranges({clock for clock in units if clock[0] == client}):
        clock = first
        while clock < behind:
            struct, at = units[client, clock]
            length = 1
            while units.get((client, clock + length), (None, 0)) == (struct, at + length):
                length += 1
            yield clock, length
            clock += length


def place(units: Units) -> tuple[set[Clock], list[Clock]]:
    """The clocks that are in the text, and the first ones of misplaced items."""
    lists: dict[Clock, tuple[object, object]] = {}
    depths: dict[Clock, int] = {}
    misplaced: dict[int, Clock] = {}
    rows = {client: list(parts(units, client)) for client in {client for client, _ in units}}
    ends = dict.fromkeys(rows, 0)
    grows = True
    while grows:
        grows = False
        for client, row in rows.items():
            while row and row[0][0] == ends[client] and client not in misplaced:
                clock, length = row[0]
                struct, at = units[client, clock]
                left = (client, clock - 1) if at else struct.left
                parent = None if at else struct.parent
                needs = [item for item in (left, struct.right, parent) if isinstance(item, tuple)]
                if any(item not in lists for item in needs):
                    break
                found = {lists[item] for item in (left, struct.right) if item is not None}
                if not found:
                    found = {(parent, struct.key)}
                stands = len(found) == 1 and (not isinstance(parent, tuple) or parent in depths)
                depth = 1 + max(
                    (depths.get(item, 0) for item, _ in found if isinstance(item, tuple)), default=0
                )
                has_key = any(key is not None for _, key in found)
                if not stands or (has_key and length > 1) or (struct.is_type and depth > 64):
                    misplaced[client] = (client, clock)
                    break
                lists |= dict.fromkeys([(client, clock + more) for more in range(length)], found.pop())
                if struct.is_type:
                    depths[client, clock] = depth
                ends[client] = clock + length
                row.pop(0)
                grows = True
    return set(lists), list(misplaced.values())


def ranges(clocks: set[Clock]) -> list[list[int]]:
    """Client, first clock, and the one behind the last."""
    found: list[list[int]] = []
    for client, clock in sorted(clocks):
        if found and found[-1][0] == client and found[-1][2] == clock:
            found[-1][2] += 1
        else:
            found.append([client, clock, clock + 1])
    return found


def encode(units: Units, deleted: set[Clock]) -> bytes:
    """The text as one update."""
    clients = sorted({client for client, _ in units}, reverse=True)
    out = number(len(clients))
    for client in clients:
        structs: list[bytes] = []
        for clock, length in parts(units, client):
            struct, at = units[client, clock]
            structs.append(slice_struct(struct.encoded, client, clock, at, length))
        out += number(len(structs)) + number(client) + number(0) + b"".join(structs)
    clients = sorted({client for client, _ in deleted}, reverse=True)
    out += number(len(clients))
    for client in clients:
        spans = [run[1:] for run in ranges({clock for clock in deleted if clock[0] == client})]
        out += number(client) + number(len(spans))
        out += b"".join(number(first) + number(behind - first) for first, behind in spans)
    return out


def slice_struct(struct: bytes, client: int, clock: int, at: int, length: int) -> bytes:
    """A part of a struct."""
    if (at, length) == (0, read_struct(Bytes(struct)).length):
        return struct
    data = Bytes(struct)
    info = data.take(1)[0]
    require(info & 31 == 4, "only strings are cut in these vectors")
    if info & 0x80:
        data.number(), data.number()
    right = data.at
    if info & 0x40:
        data.number(), data.number()
    head = struct[1 : data.at] if at == 0 else number(client) + number(clock - 1) + struct[right : data.at]
    require(bool(info & 0xC0) or at > 0, "a string at the beginning that loses its end: not in these vectors")
    if not info & 0xC0:
        data.number(), data.text()
        head = number(client) + number(clock - 1)
    part = data.text().decode().encode("utf-16-le")[2 * at : 2 * (at + length)]
    text = (
        part.decode("utf-16-le", "replace")
        if part[1] & 0xFC != 0xDC
        else "\ufffd" + part[2:].decode("utf-16-le")
    )
    encoded = text.encode()
    return bytes([4 | 0x80 | info & 0x40 if at else info]) + head + number(len(encoded)) + encoded


def holds(secret: bytes, key: bytes, update: bytes, replaces: Sequence[bytes]) -> bool:
    """Return True if what a snapshot says of a commit is its body."""
    return blake3(pack(["text1", update, list(replaces)]), key=secret).digest() == key


def remake_texts(vector: Any) -> Any:  # noqa: ANN401  # whatever the file holds
    """The file again."""
    branch = bytes.fromhex(vector["branch"])
    cases = []
    for case in vector["cases"]:
        given = [_given(one) for one in case["updates"]]
        found = reduce_text(branch, given)
        updates = [
            one
            | {
                "clients": clients_of(known["author"], known["branch"]),
                "takes": found["takes"][at],
                "deletes": found["deletes"][at],
                "fault": found["faults"][at],
            }
            for at, (one, known) in enumerate(zip(case["updates"], given, strict=True))
        ]
        document: Doc[Text] = Doc()
        document.apply_update(found["text_as_one_update"])
        text = str(document.get("t", type=Text))
        one_update = found["text_as_one_update"]
        cases.append(case | {"updates": updates, "text_as_one_update": one_update, "text": text})
    snapshot = vector["snapshot"]
    secret, key = bytes.fromhex(snapshot["convergence_secret"]), bytes.fromhex(snapshot["body_key"])
    held = [
        holds(secret, key, bytes.fromhex(update), [bytes.fromhex(name) for name in names])
        for _, update, names in snapshot["said"]
    ]
    return vector | {"cases": cases, "snapshot": snapshot | {"holds": held}}


def _given(one: dict[str, Any]) -> dict[str, Any]:
    named = {name: bytes.fromhex(one[name]) for name in ("name", "author", "branch", "update")}
    carried_by = one["carried_by"]
    return named | {
        "replaces": [bytes.fromhex(name) for name in one["replaces"]],
        "carried_by": None if carried_by is None else bytes.fromhex(carried_by),
    }
