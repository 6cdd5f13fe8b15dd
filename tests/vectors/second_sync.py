"""Whole syncs of one topic, foretold: from sections 9 and 12 of docs/specification/protocol.md, with `second_reader`.

What each side says follows from what both hold. How the two directions interleave is left to time.
"""

from collections.abc import Iterable, Sequence

from blake3 import blake3

from tests.vectors import second_reader as reader
from tests.vectors import second_sets as sets

HEADS_MAX = 256
OPENING = 48


class Side:
    """One side's commits: by id, in the order in which it holds them."""

    def __init__(self, commits: Iterable[bytes]) -> None:
        self.commits = {blake3(commit).digest(): commit for commit in commits}

    def acks(self, commit_id: bytes) -> list[bytes]:
        """What a commit of the vectors acks."""
        commit = self.commits[commit_id]
        return [commit[1 + 32 * at : 33 + 32 * at] for at in range(commit[0])]

    def rank(self, commit_id: bytes) -> int:
        """The longest path to what acks nothing."""
        return 1 + max((self.rank(ack) for ack in self.acks(commit_id)), default=-1)

    def heads(self) -> list[bytes]:
        """Those of highest rank first, then the smaller ids."""
        acked = {ack for one in self.commits for ack in self.acks(one)}
        return sorted(self.commits.keys() - acked, key=lambda one: (-self.rank(one), one))[:HEADS_MAX]

    def size(self) -> tuple[int, bytes]:
        """By what summaries are compared."""
        return len(self.commits), sets.set_digest(list(self.commits))

    def rest(self, heads: Sequence[bytes]) -> list[bytes] | None:
        """What the holder of these heads lacks; None where one of them is not here, or there may be more."""
        short = {one[:16]: one for one in self.commits}
        if len(heads) >= HEADS_MAX or any(head not in short for head in heads):
            return None
        implied: set[bytes] = set()
        ahead = [short[head] for head in heads]
        while ahead:
            one = ahead.pop()
            if one not in implied:
                implied.add(one)
                ahead += self.acks(one)
        return [one for one in self.commits if one not in implied]


class Sync:
    """What both sides say of a topic, from the announcements to the round in which nothing differs."""

    def __init__(self, topic: bytes, session: bytes, dialer: Side, acceptor: Side) -> None:
        self._topic = topic
        self._blind = reader.blinded_topic(topic, session)
        self._sides = (dialer, acceptor)
        self.said: tuple[list[bytes], list[bytes]] = ([], [])
        for number in (0, 1):
            announced = reader.announced_topic(topic, session, 1 - number)
            self.said[number].append(reader.pack(["announce2", [announced]]))
        self._summarise(0)
        if dialer.size() == acceptor.size():
            return
        larger = 0 if dialer.size() > acceptor.size() else 1
        rests = [side.rest([head[:16] for head in other.heads()]) for side, other in self._pairs()]
        if rests[larger]:
            for number, rest in enumerate(rests):
                self._send(number, rest or [])
        else:
            self._reconcile(larger)
        whole = {**dialer.commits, **acceptor.commits}
        dialer.commits, acceptor.commits = whole, dict(whole)
        self._summarise(1, began=larger)

    def _pairs(self) -> tuple[tuple[Side, Side], tuple[Side, Side]]:
        return self._sides, (self._sides[1], self._sides[0])

    def _summarise(self, number: int, began: int | None = None) -> None:
        """Each side's summary. Where one side began an equal round, the other's has no heads."""
        for place, (side, said) in enumerate(zip(self._sides, self.said, strict=True)):
            heads = [head[:16] for head in side.heads()] if began in (None, place) else []
            said.append(reader.pack(["sum3", self._blind, number, heads, *side.size()]))

    def _send(self, sender: int, ids: Sequence[bytes]) -> None:
        """One batch and its receipt."""
        if ids:
            items = [self._sides[sender].commits[one] for one in ids]
            self.said[sender].append(reader.pack(["publications1", self._blind, items]))
            self.said[1 - sender].append(reader.pack(["receipt1", self._blind]))

    def _reconcile(self, answerer: int) -> None:
        asker = 1 - answerer
        key = sets.symbol_key(self._topic)
        symbols: list[list[bytes]] = []
        for side in self._sides:
            ids = list(side.commits)
            symbols.append(sets.symbols_of(ids, key, sets.prefix_length(len(ids))))
        theirs = symbols[answerer]
        opening = ["symbols1", len(theirs), 0, b"".join(theirs[:OPENING]), sets.marks_of(theirs)]
        self._frame(answerer, 0, reader.pack(opening))
        differences = sets.peel(symbols[asker][:OPENING], theirs[:OPENING], key)
        here = {one[:16]: one for one in self._sides[asker].commits}
        lacking = sorted(short for short in differences if short not in here)
        if lacking:
            self._frame(asker, 2, reader.pack(["lacks1", b"".join(lacking)]))
        self._frame(asker, 7, b"")
        self._send(asker, [one for short, one in here.items() if short in differences])
        self._send(answerer, [one for one in self._sides[answerer].commits if one[:16] in lacking])

    def _frame(self, side: int, kind: int, frame: bytes) -> None:
        self.said[side].append(reader.pack(["reconcile1", self._blind, kind, frame]))
