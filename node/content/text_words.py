"""A text as it stands, which grows by one update at the cost of that update. Pure.

`TextWords` holds what `verifier.texts.reduce_text` and `merge_pieces` come to, by client id: the bytes of the structs in the
order of their clocks, from 0 on. So an update that is *simple* is appended: one that everybody reads, by the author of its
client ids, at the clocks where these end, beside items that are in the text, and that nothing else waited for. Any other
update, and all that leaves a text or comes back, needs the reduction of all updates: `grow` then says no.

Growing by an update costs O(its bytes, and log n for each commit that its deletions name).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from node.content.text_versions import Piece
from protocol.formats.clock_spans import Span, join_spans, subtract_spans
from protocol.formats.yjs_structs import WrittenStructs, encode_update
from protocol.formats.yjs_updates import ReadUpdate, read_update
from protocol.ids import CommitId
from protocol.limits.users import (
    DOCUMENT_HISTORY_MAX,
    DOCUMENT_SIZE_MAX,
    TEXT_FAULTS_SHOWN_MAX,
    TEXT_LOOK_COUNT_MAX,
)
from verifier.documents import OrderKey
from verifier.text_places import Places
from verifier.texts import (
    Run,
    ShownEdit,
    TextEdit,
    TextFault,
    TextState,
    TooManyDeletions,
    find_deletes,
    is_client_of,
)

LISTED_MAX: Final = 65_536
"""Names, of each sort, that a text remembers to know what is not simple: 2 MiB. With more it is reduced at each change."""
_NEWS_MAX: Final = 1024
"""Updates that are remembered for followers. Who is further behind gets the whole text."""
_MARKS: Final = count()
_LOOKS_MAX: Final = TEXT_LOOK_COUNT_MAX // 2
"""Looks after which the reduction counts: it says exactly which text has too many."""


@dataclass(slots=True)
class ClientWords:
    """Words of one client id in a text: structs at the clocks [0, end), in runs that one commit says."""

    end: int = 0
    data: bytearray = field(default_factory=bytearray)
    struct_count: int = 0
    starts: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    """Structs of each run."""
    offsets: list[int] = field(default_factory=list)
    names: list[CommitId] = field(default_factory=list)
    deleted: list[Span] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    """First runs of the blocks in which it is kept."""

    def append(self, structs: WrittenStructs, name: CommitId) -> None:
        """Add a run at the end."""
        assert structs.clock == self.end, "a text has no gaps"
        self.starts.append(structs.clock)
        self.counts.append(structs.struct_count)
        self.offsets.append(len(self.data))
        self.names.append(name)
        self.data += structs.encoded
        self.end = structs.end
        self.struct_count += structs.struct_count

    def whole(self) -> WrittenStructs:
        """Return all of it."""
        return WrittenStructs(0, self.end, self.struct_count, bytes(self.data))

    def run(self, place: int) -> WrittenStructs:
        """Return one run."""
        is_last = place + 1 == len(self.starts)
        end, stop = (
            (self.end, len(self.data)) if is_last else (self.starts[place + 1], self.offsets[place + 1])
        )
        encoded = bytes(self.data[self.offsets[place] : stop])
        return WrittenStructs(self.starts[place], end, self.counts[place], encoded)

    def has_all(self, other: "ClientWords") -> bool:
        """Return True if it says and deletes what the other does."""
        return self.data.startswith(other.data) and not any(subtract_spans(other.deleted, self.deleted))

    def find(self, clock: int) -> int:
        """Return the place of the run that has a clock. O(log n)."""
        return bisect_right(self.starts, clock) - 1

    def end_of(self, place: int) -> int:
        """Return the clock behind a run."""
        return self.starts[place + 1] if place + 1 < len(self.starts) else self.end


class Said(NamedTuple):
    """Run of clocks, and whose it is: None for one that has no commit yet."""

    client: int
    start: int
    name: CommitId | None


@dataclass(slots=True)
class TextWords:
    """A text as it stands.

    `waiting` are clocks that are taken and not in the text, `beyond` all clocks that some update claims behind those of its
    client id that are in it. `ends` are the clocks behind all that was said under a client id, whether it counts or not.
    `log` are the updates that came last.
    """

    clients: dict[int, ClientWords]
    places: Places
    waiting: dict[int, list[Span]]
    beyond: dict[int, list[Span]]
    ends: dict[int, int]
    lacked: set[int]
    """Client ids that something waits for."""
    unmet: set[CommitId]
    """Commits that deletions name, and that say nothing here."""
    copied: set[CommitId]
    """Names of carried commits."""
    given_up: set[CommitId]
    faults: list[tuple[CommitId, TextFault]]
    """The first ones by commit."""
    fault_counts: Counter[TextFault]
    last: OrderKey | None
    """Place of the last update that is shown."""
    depth: int
    """First part of the places of the branch's own commits."""
    count: int = 0
    """Updates that are shown."""
    size: int = 0
    weight: int = 0
    looks: int = 0
    is_simple: bool = True
    """False where every change needs the reduction."""
    has_refused: bool = False
    """True where something of it is in no update, since no library took it."""
    log: list[bytes] = field(default_factory=list)
    touched: dict[int, list[Span]] = field(default_factory=dict)
    """Clocks that were said or deleted since it was kept, by client id."""
    unkept: int = 0
    """Updates since then."""
    summary_size: int = 0
    upto: int = 0
    """Number of the last commit that it knows."""
    mark: int = field(default_factory=lambda: next(_MARKS))
    """Tells it from any other in this process."""
    before: set[int] = field(default_factory=set)
    """Marks of earlier versions of this text that it contains as a whole."""
    _runs_of: dict[CommitId, list[Run]] | None = None
    """Commit -> the runs that it says; made when a deletion first needs it."""

    @classmethod
    def reduced(
        cls,
        edits: Sequence[TextEdit],
        state: TextState,
        pieces: Mapping[CommitId, Piece],
        refused: frozenset[CommitId] = frozenset(),
        *,
        depth: int,
        given_up: Iterable[CommitId] = (),
        size: int = 0,
        weight: int = 0,
    ) -> "TextWords":
        """Make words from a text's reduced updates. `pieces`: what each adds; `refused`: those that no library
        accepts.
        """
        words = cls(
            {}, state.places, {}, {}, {}, set(), set(), set(), set(given_up), [], Counter(), None, depth
        )
        words.size, words.weight, words.looks = size, weight, state.looks
        structs: dict[int, list[tuple[WrittenStructs, CommitId]]] = {}
        deletes: dict[int, list[Span]] = {}
        for shown in state.shown:
            words.count += 1
            words.last = max(words.last or shown.edit.place, shown.edit.place)
            piece = pieces[shown.edit.commit]
            for client, run in piece.structs:
                structs.setdefault(client, []).append((run, shown.edit.name))
            for client, start, end in piece.deletes:
                deletes.setdefault(client, []).append((start, end))
        for client, runs in structs.items():
            runs.sort(key=_clock_of)
            words.clients[client] = ClientWords()
            for run, name in runs:
                words.clients[client].append(run, name)
        for client, spans in deletes.items():
            words.clients[client].deleted = join_spans(spans)
        words.touched = {client: [(0, found.end)] for client, found in words.clients.items()}
        words.unkept = words.count
        for client, start, end in state.waiting:
            words.waiting.setdefault(client, []).append((start, end))
        for client, spans in words.waiting.items():
            words.waiting[client] = join_spans(spans)
        for one, fault in state.passed_over:
            words._note_fault(one.commit, fault)
        for commit in refused:
            words._note_fault(commit, TextFault.UNREADABLE)
        words._note_claims(edits)
        words.has_refused = bool(refused)
        words.is_simple = not refused and all(
            len(names) <= LISTED_MAX for names in (words.unmet, words.copied, words.given_up)
        )
        return words

    def _note_claims(self, edits: Sequence[TextEdit]) -> None:
        """Note what keeps later updates from being simple."""
        names = {one.name for one in edits}
        for one in edits:
            if one.name != one.commit:
                self.copied.add(one.name)
            if one.content is None:
                continue
            if one.content.deletes:
                self.unmet.update(name for name in one.replaces if name not in names)
            for (client, start, end), items in zip(one.content.runs, one.content.items, strict=True):
                self.ends[client] = max(end, self.ends.get(client, 0))
                here = self.places.end(client)
                if end <= here or one.is_stray or not is_client_of(client, one.clients):
                    continue
                self.beyond.setdefault(client, []).append((max(start, here), end))
                if client in self.waiting:
                    self.lacked.add(client)
                    self.lacked.update(
                        named[0]
                        for item in items
                        if item.end > here
                        for named in (item.left, item.right, item.parent)
                        if isinstance(named, tuple) and named[1] >= self.places.end(named[0])
                    )
        for client, spans in self.beyond.items():
            self.beyond[client] = join_spans(spans)

    # --- growing ---

    def grow(self, one: TextEdit, update: bytes, size: int, weight: int) -> bool:
        """Add the newest update if it is simple; else return False and change nothing."""
        if not self._is_alone(one) or self.size + size > DOCUMENT_SIZE_MAX:
            return False
        if self.weight + weight > DOCUMENT_HISTORY_MAX:
            return False
        if one.name in self.given_up:
            return True
        if one.content is None:
            self._grow_by_fault(one, TextFault.UNREADABLE, size, weight)
            return True
        runs, items = one.content.runs, one.content.items
        if not all(is_client_of(client, one.clients) for client, _, _ in runs):
            self._grow_by_fault(one, TextFault.OTHER_CLIENT, size, weight)
            return True
        if any(
            start != self.places.end(client) or client in self.beyond or client in self.lacked
            for client, start, _ in runs
        ):
            return False
        by_client = {client: found for (client, _, _), found in zip(runs, items, strict=True)}
        trial = Places(self.places)
        trial.add(by_client)
        if any(trial.end(client) != end for client, _, end in runs):
            return False
        looks = Counter[str]()
        try:
            deletes = self._find_deletes(one, trial, looks)
        except TooManyDeletions:
            return False
        self.places.add(by_client)
        self.looks += looks["looks"]
        self._append(one, update, deletes)
        self._count(one, size, weight)
        return True

    def _is_alone(self, one: TextEdit) -> bool:
        """Return True if no other update of the text is about the same commit, or named it before it came."""
        return (
            self.is_simple
            and not one.is_missing
            and one.name == one.commit
            and one.name not in self.unmet
            and one.name not in self.copied
        )

    def _grow_by_fault(self, one: TextEdit, fault: TextFault, size: int, weight: int) -> None:
        self._note_fault(one.commit, fault)
        self._count(one, size, weight)

    def _count(self, one: TextEdit, size: int, weight: int) -> None:
        for client, _, end in () if one.content is None else one.content.runs:
            self.ends[client] = max(end, self.ends.get(client, 0))
        self.size, self.weight, self.unkept = self.size + size, self.weight + weight, self.unkept + 1

    def _note_fault(self, commit: CommitId, fault: TextFault) -> None:
        self.fault_counts[fault] += 1
        self.faults = sorted([*self.faults, (commit, fault)])[:TEXT_FAULTS_SHOWN_MAX]

    def _find_deletes(self, one: TextEdit, places: Places, looks: Counter[str]) -> tuple[Run, ...]:
        assert one.content is not None, "it was read"
        if not one.content.deletes:
            return ()

        def look(count: int) -> None:
            looks["looks"] += count
            if self.looks + looks["looks"] > _LOOKS_MAX:
                raise TooManyDeletions

        names = [name for name in dict.fromkeys(one.replaces) if name != one.name]
        unmet = [name for name in names if name not in self._runs()]
        if len(self.unmet) + len(unmet) > LISTED_MAX:
            raise TooManyDeletions
        self.unmet.update(unmet)
        named = []
        for name in names:
            by_client: dict[int, list[Span]] = {}
            for client, start, end in self._runs().get(name, ()):
                by_client.setdefault(client, []).append((start, end))
            named.append(by_client)
        return find_deletes(one.content.deletes, one.content.runs, named, places.end, look)

    def _runs(self) -> dict[CommitId, list[Run]]:
        if self._runs_of is None:
            self._runs_of = {}
            for client, words in self.clients.items():
                for place, name in enumerate(words.names):
                    run = (client, words.starts[place], words.end_of(place))
                    self._runs_of.setdefault(name, []).append(run)
        return self._runs_of

    def _append(self, one: TextEdit, update: bytes, deletes: tuple[Run, ...]) -> None:
        assert one.content is not None, "it was read"
        is_whole = deletes == one.content.deletes
        piece = Piece.whole(update) if update else Piece(b"", (), ())
        if not is_whole:
            structs = {client: [run] for client, run in piece.structs}
            by_client: dict[int, list[Span]] = {}
            for client, start, end in deletes:
                by_client.setdefault(client, []).append((start, end))
            piece = Piece(encode_update(structs, by_client), piece.structs, deletes)
        if not piece.structs and not deletes:
            return
        for client, run in piece.structs:
            self.clients.setdefault(client, ClientWords()).append(run, one.name)
            self.touched.setdefault(client, []).append((run.clock, run.end))
            if self._runs_of is not None:
                self._runs_of.setdefault(one.name, []).append((client, run.clock, run.end))
        for client, start, end in deletes:
            _add_span(self.clients[client].deleted, start, end)
            self.touched.setdefault(client, []).append((start, end))
        self.count += 1
        self.last = max(self.last or one.place, one.place)
        self.log.append(piece.encoded)
        if len(self.log) > 2 * _NEWS_MAX:
            del self.log[:_NEWS_MAX]

    # --- reading ---

    def encode(self) -> bytes:
        """Return the whole text as one update. O(its bytes)."""
        structs = {client: [words.whole()] for client, words in self.clients.items()}
        deletes = {client: words.deleted for client, words in self.clients.items() if words.deleted}
        return encode_update(structs, deletes)

    def news(self, shown: int) -> list[bytes] | None:
        """Return what came after `shown` updates were shown; None where that is not remembered."""
        behind = self.count - shown
        return self.log[len(self.log) - behind :] if 0 <= behind <= len(self.log) else None

    def find_piece(self, one: ShownEdit) -> Piece | None:
        """Return what an update adds, as its bytes stand here; None where they do not. Costs O(them)."""
        if one.edit.name != one.edit.commit or one.edit.name in self.copied:
            return None  # a copy may say something else under the same name
        if not set(one.runs) <= set(self._runs().get(one.edit.name, ())):
            return None
        structs = [(client, self.clients[client]) for client, _, _ in one.runs]
        found = [
            (client, words.run(words.find(start)))
            for (client, words), (_, start, _) in zip(structs, one.runs, strict=True)
        ]
        return Piece(b"", tuple(found), one.deletes)

    def has_all(self, other: "TextWords") -> bool:
        """Return True if all that another text says and deletes is in this one."""
        return all(
            client in self.clients and self.clients[client].has_all(words)
            for client, words in other.clients.items()
        )

    @property
    def memory(self) -> int:
        """Bytes that are held, about."""
        runs = sum(len(words.starts) for words in self.clients.values())
        return sum(len(words.data) for words in self.clients.values()) + 160 * runs + 40 * len(self.log)


class TextIndex:
    """A text by clocks: its authors and its deletions. Also takes in updates that are about to be written."""

    def __init__(self, words: TextWords) -> None:
        self._words = words
        self._new: dict[int, list[WrittenStructs]] = {}
        self._deleted: dict[int, list[Span]] = {}

    def add(
        self, structs: Mapping[int, Sequence[WrittenStructs]], deletes: Mapping[int, Sequence[Span]]
    ) -> None:
        """Add an update that is about to be written."""
        for client, found in structs.items():
            self._new.setdefault(client, []).extend(found)
        for client, spans in deletes.items():
            self._deleted[client] = join_spans([*self._deleted.get(client, ()), *spans])

    def find(self, client: int, start: int, end: int) -> Iterator[tuple[Span, Said | None]]:
        """Cut a span into parts, in order: each with the run that contains its clocks, or None where none does."""
        words = self._words.clients.get(client)
        while words is not None and start < min(end, words.end):
            place = words.find(start)
            stop = min(end, words.end_of(place))
            yield (start, stop), Said(client, words.starts[place], words.names[place])
            start = stop
        for one in self._new.get(client, ()):
            if one.clock <= start < min(end, one.end):
                stop = min(end, one.end)
                yield (start, stop), Said(client, one.clock, None)
                start = stop
        if start < end:
            yield (start, end), None

    def end(self, client: int) -> int:
        """Return the next clock of a client."""
        new = self._new.get(client)
        if new:
            return new[-1].end
        words = self._words.clients.get(client)
        return 0 if words is None else words.end

    def waiting(self, client: int) -> Sequence[Span]:
        """Return clocks of a client that are taken, and behind others that are missing."""
        return self._words.waiting.get(client, ())

    def deleted(self, client: int) -> Sequence[Span]:
        """Return the deleted clocks of a client."""
        words = self._words.clients.get(client)
        before = () if words is None else words.deleted
        return join_spans([*before, *self._deleted[client]]) if client in self._deleted else before

    def encode(self) -> bytes:
        """Return all of it as one update. O(its bytes)."""
        clients = self._words.clients
        structs = {
            client: [*([clients[client].whole()] if client in clients else []), *self._new.get(client, ())]
            for client in clients.keys() | self._new.keys()  # `encode_update` puts them in order
        }
        deleted = {client: [*self.deleted(client)] for client in structs}
        return encode_update(structs, {client: spans for client, spans in deleted.items() if spans})

    def read(self, said: Said) -> ReadUpdate:
        """Return the run that says some clocks, taken apart."""
        if said.name is None:
            run = next(one for one in self._new[said.client] if one.clock == said.start)
        else:
            words = self._words.clients[said.client]
            run = words.run(words.find(said.start))
        return read_update(encode_update({said.client: [run]}, {}))


@dataclass(frozen=True, slots=True)
class TextVersion:
    """Version of a text: `words`, which may have grown since, after `count` updates.

    `token` is the store's token of that version (`storage.commits.kept_texts`).
    """

    words: TextWords
    token: int
    count: int
    update: bytes

    @property
    def memory(self) -> int:
        """Bytes that are held of it, about."""
        return len(self.update) + self.words.memory

    def news_since(self, told: "TextVersion") -> list[bytes] | None:
        """Return updates that make this version of an earlier one; None where something counts no more, or otherwise."""
        if told.words is not self.words and told.words.mark not in self.words.before:
            return None
        news = self.words.news(told.count) if self.words is told.words else None
        return [self.update] if news is None else news[: self.count - told.count]


def _add_span(spans: list[Span], start: int, end: int) -> None:
    """Add clocks to joined spans. O(log n), and a move of those behind."""
    first = bisect_right(spans, (start, start)) - 1
    first = first if first >= 0 and spans[first][1] >= start else first + 1
    last = first
    while last < len(spans) and spans[last][0] <= end:
        start, end = min(start, spans[last][0]), max(end, spans[last][1])
        last += 1
    spans[first:last] = [(start, end)]


def _clock_of(one: tuple[WrittenStructs, CommitId]) -> int:
    return one[0].clock
