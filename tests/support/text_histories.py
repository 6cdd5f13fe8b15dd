"""Random histories of a text: honest editors, sessions that are used twice, liars, copies, late commits of low rank."""

import random
from typing import Any

from pycrdt import Doc, Text

from protocol.crypto.hashing import text_clients
from protocol.ids import BranchId, UserId
from tests.support.reference_texts import SESSION_BITS, Word, fill, varint
from tests.vectors.second_texts import Clock

MAIN = BranchId(b"m" * 32)
SIDE = BranchId(b"s" * 32)
USERS = [UserId(letter * 32) for letter in (b"a", b"b", b"c")]
TYPED = "abcdefgh"
"""Letters that editors type; what is crafted has others."""
_FUTURE = 60


class _Editor:
    """One document that a user types into, under a client id that may be anybody's."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.document: Doc[Any] = Doc(client_id=client)
        self.text = self.document.get("t", type=Text)

    @property
    def clock(self) -> int:
        """Clock at which it goes on."""
        return _vector(self.document).get(self.client, 0)

    def insert(self, place: int, letters: str) -> bytes:
        """Type; return what was typed and nothing else."""
        made: list[bytes] = []
        watching = self.document.observe(lambda event: made.append(event.update))
        self.text.insert(place, letters)
        self.document.unobserve(watching)
        return made[-1]


class TextHistory:
    """Makes words, one after another."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._editors: list[tuple[UserId, _Editor]] = []
        self._crafted: set[bytes] = set()
        self.words: list[Word] = []

    def write(self, count: int) -> list[Word]:
        """Make so many words."""
        while len(self.words) < count:
            rng = self._rng
            match rng.choice(["type"] * 6 + ["craft"] * 2 + ["open", "delete", "lie", "blank", "copy"]):
                case "craft":
                    self._craft(rng.choice(USERS))
                case "open":
                    self._open()
                case "type":
                    self._type(*self._choose())
                case "delete":
                    self._delete(rng.choice(USERS))
                case "lie":
                    self._fill(rng.choice(USERS), rng.choice(USERS))
                case "blank":
                    self._delete_ahead(rng.choice(USERS), rng.choice(USERS))
                case "copy" if self.words:
                    self._copy(rng.choice(self.words))
        return self.words

    def _place(self) -> tuple[int, ...]:
        """Often at the end, and sometimes before what is there: a late commit of low rank."""
        rank = len(self.words) if self._rng.random() < 0.7 else self._rng.randrange(len(self.words) + 1)
        return (0, 0, rank, self._rng.getrandbits(60))

    def _open(self) -> _Editor:
        """An editor with a client id of its own, one that another has too, or one of another user."""
        rng = self._rng
        user = rng.choice(USERS)
        owner = user if rng.random() < 0.85 else rng.choice(USERS)
        client = text_clients(owner, MAIN) << SESSION_BITS | rng.randrange(3)
        editor = _Editor(client)
        self._editors.append((user, editor))
        return editor

    def _choose(self) -> tuple[UserId, _Editor]:
        if not self._editors:
            self._open()
        return self._rng.choice(self._editors)

    def _type(self, user: UserId, editor: _Editor) -> None:
        rng = self._rng
        for word in self.words if rng.random() < 0.5 else ():
            # What has its own id is its own to say; what is crafted, a library may not take.
            if editor.client not in word.said and word.structs not in self._crafted:
                editor.document.apply_update(word.structs)
        start = editor.clock
        letters = "".join(rng.choice(TYPED) for _ in range(rng.randint(1, 4)))
        structs = editor.insert(rng.randint(0, len(str(editor.text))), letters)
        said = {editor.client: range(start, start + len(letters))}
        self._say(user, structs, said, frozenset(), ())

    def _delete(self, user: UserId) -> None:
        """Delete clocks of some words, and name some of their commits."""
        rng = self._rng
        some = rng.sample(self.words, min(len(self.words), 2))
        clocks = [(client, clock) for word in some for client, said in word.said.items() for clock in said]
        deletes = frozenset(rng.sample(clocks, rng.randint(0, len(clocks))))
        names = tuple(word.name for word in some if rng.random() < 0.8)
        self._say(user, b"\0\0", {}, deletes, names)

    def _craft(self, user: UserId) -> None:
        """Write an item that stands wherever it likes: beside items of two lists, in what is no type, before it is there."""
        rng = self._rng
        client = text_clients(user, MAIN) << SESSION_BITS | 3 + rng.randrange(2)
        clock = max(
            (said.stop for word in self.words for of, said in word.said.items() if of == client), default=0
        )
        clock += rng.random() < 0.1
        left, right = (self._some_item(client, clock) if rng.random() < 0.6 else None for _ in range(2))
        info = 0x80 * (left is not None) | 0x40 * (right is not None)
        head = b"".join(varint(of) + varint(at) for of, at in filter(None, (left, right)))
        if not head:
            parent = self._some_item(client, clock) if rng.random() < 0.5 else None
            head = (
                b"\0" + varint(parent[0]) + varint(parent[1])
                if parent
                else b"\1\1" + rng.choice([b"t", b"u"])
            )
            if rng.random() < 0.4:
                info, head = info | 0x20, head + b"\1k"
        kind, content, length = rng.choice(
            [(4, b"\2xy", 2), (4, b"\1z", 1), (1, b"\2", 2), (7, b"\0", 1), (7, b"\1", 1), (8, b"\1\x7e", 1)]
        )
        structs = b"\1\1" + varint(client) + varint(clock) + bytes([kind | info]) + head + content + b"\0"
        self._say(user, structs, {client: range(clock, clock + length)}, frozenset(), ())
        self._crafted.add(structs)

    def _some_item(self, client: int, clock: int) -> Clock | None:
        """Any clock that some word says, or the one behind it; of the same client an earlier one."""
        found = [
            (of, at)
            for word in self.words
            for of, said in word.said.items()
            for at in (said.start, said.stop - 1, said.stop)
            if of != client or at < clock
        ]
        return self._rng.choice(found) if found else None

    def _fill(self, liar: UserId, victim: UserId) -> None:
        """Claim that clocks at which another is going to write are used up."""
        client = text_clients(victim, MAIN) << SESSION_BITS | self._rng.randrange(3)
        clocks = range(start := self._rng.randrange(4), start + self._rng.randint(1, _FUTURE))
        self._say(liar, fill(client, clocks), {client: clocks}, frozenset(), ())

    def _delete_ahead(self, liar: UserId, victim: UserId) -> None:
        """Delete clocks at which another is going to write, and name all commits there are."""
        client = text_clients(victim, MAIN) << SESSION_BITS | self._rng.randrange(3)
        clocks: frozenset[Clock] = frozenset(
            (client, clock) for clock in range(self._rng.randrange(6), _FUTURE)
        )
        names = tuple(word.name for word in self.words) if self._rng.random() < 0.3 else ()
        self._say(liar, b"\0\0", {}, clocks, names)

    def _copy(self, word: Word) -> None:
        """A copy that somebody carried, of this branch or another, and true or not."""
        rng = self._rng
        author, branch = rng.choice(USERS), rng.choice([MAIN, SIDE])
        structs, said = word.structs, word.said
        if rng.random() < 0.5:  # of words that were said in the other branch
            client = text_clients(author, SIDE) << SESSION_BITS | rng.randrange(2)
            clocks = range(start := rng.randrange(3), start + rng.randint(1, 5))
            structs, said = fill(client, clocks), {client: clocks}
        is_copy = rng.random() < 0.8
        self.words.append(
            Word(
                rng.choice([word.name, f"copy {len(self.words)}"]),
                self._place(),
                text_clients(author, branch),
                structs,
                said,
                word.deletes,
                word.replaces,
                is_copy,
                is_copy and branch == MAIN,
            )
        )

    def _say(
        self,
        user: UserId,
        structs: bytes,
        said: dict[int, range],
        deletes: frozenset[Clock],
        names: tuple[str, ...],
    ) -> None:
        name = f"word {len(self.words)}"
        self.words.append(Word(name, self._place(), text_clients(user, MAIN), structs, said, deletes, names))


def _vector(document: "Doc[Any]") -> dict[int, int]:
    encoded, place, numbers = document.get_state(), 0, []
    while place < len(encoded):
        number = shift = 0
        while encoded[place] > 127:
            number |= (encoded[place] & 127) << shift
            shift, place = shift + 7, place + 1
        numbers.append(number | encoded[place] << shift)
        place += 1
    return dict(zip(numbers[1::2], numbers[2::2], strict=True))
