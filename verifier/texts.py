"""Reduction of a branch's updates to a text (a CRDT). Pure; a function of the set of commits alone.

`reduce_text` takes the updates of accepted commits that are not void, in any order, and gives what each of them adds. What
they add never overlaps, so it merges to the same text in any order and grouping.

**Author.** A Yjs client id has 53 bits. The first 40 are computed from its author and the branch (`hashing.text_clients`);
the others are a session that the author chooses. An update with any other client id says nothing. So nobody can use up
clocks at which another is going to write. A commit that was carried from another branch is its author's, there. Carrying
is no proof, so copies are walked after all others, and a copy that claims to come from the branch in which it stands says
nothing, unless its author wrote it again.

**Clocks.** Updates are walked in canonical order. Where the first clock of a client id is taken, the update is cut to what
follows that taken range. If the rest meets a taken range, the update says nothing at all. Only updates of one author can
meet, so this settles what an author says twice, and nothing between authors.

**Deletions.** An update deletes clocks that it said itself, and clocks that were said by commits that it names. Nobody can
name a commit that is not written yet, so nobody can delete words before they are typed.

**Places.** Clocks behind clocks that nobody said are taken, and *wait*, and so do items beside others that are not here:
the text has them once what they need is there (`text_places`). What is misplaced ends its client id. So a text has nothing
that libraries would set aside, or disagree about.

Snapshots change nothing here: they keep bodies, each of which is its own commit's word (`node.content.text_reading`).

A walk of u updates with r runs of clocks costs O((u + r) log (u + r)), and its deletions O(l log r) for l looks: a client
id, or a range, of a commit that is named. Honest texts have about one look for each deletion; TEXT_LOOK_COUNT_MAX bounds
all others. A run of an author who leaves gaps on purpose also moves the author's runs behind it, 8 bytes each.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

from protocol.formats.clock_spans import Span, join_spans, overlap_spans
from protocol.formats.document_kinds import TEXT_CLIENT_COUNT_MAX, TEXT_SESSION_BITS, TEXT_SPAN_COUNT_MAX
from protocol.formats.yjs_updates import BadUpdate, ItemId, read_update
from protocol.ids import CommitId
from protocol.limits.users import TEXT_LOOK_COUNT_MAX
from verifier.documents import ErasedValues, OrderKey
from verifier.text_places import Places, TextItem, list_items

Run = tuple[int, int, int]
"""Clocks of a client: (client, from, to)."""
WHOLE: Final = None
"""The shape of an update of which nothing is left out."""


class TooManyDeletions(Exception):
    """Error of too many deletions, and commits that they name, to be compared."""


class TextFault(StrEnum):
    """Reason why an update, or a part of it, says nothing."""

    UNREADABLE = "unreadable"
    OTHER_CLIENT = "other_client"
    USED_CLOCKS = "used_clocks"
    MISPLACED = "misplaced"


class TextRanges(NamedTuple):
    """Clocks that an update says, one run for each client id, and clocks that it deletes; `items` stand at the runs."""

    runs: tuple[Run, ...]
    deletes: tuple[Run, ...]
    items: tuple[tuple[TextItem, ...], ...] = ()


class TextShape(NamedTuple):
    """Rest of an update that is not taken whole: its runs, and what of its deletions counts."""

    runs: tuple[Run, ...]
    deletes: tuple[Run, ...]


SAYS_NOTHING: Final = TextRanges((), ())


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One update of a text, as its commit says it.

    `name` is the id that the commit had first, and `clients` the bits that its author's client ids begin with. `content`
    is None where the update cannot be read; `is_missing` where its body is not here.
    """

    name: CommitId
    place: OrderKey
    clients: int
    content: TextRanges | None
    replaces: tuple[CommitId, ...] = ()
    is_copy: bool = False
    is_stray: bool = False
    """True of a copy that claims to come from the branch in which it stands."""
    is_missing: bool = False

    @property
    def commit(self) -> CommitId:
        """Id of the commit that stands in the branch."""
        return self.place[-1]


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """An update that adds something: the clocks that are taken from it, and what of its deletions counts."""

    edit: TextEdit
    runs: tuple[Run, ...]
    deletes: tuple[Run, ...]

    @property
    def shape(self) -> TextShape | None:
        """Rest that is left of it, or WHOLE."""
        content = self.edit.content
        is_whole = content is not None and (self.runs, self.deletes) == content[:2]
        return WHOLE if is_whole else TextShape(self.runs, self.deletes)


@dataclass(frozen=True, slots=True)
class TextState:
    """Updates that a text is made of, in the order of the walk.

    `places` say up to which clock each client id is in it. `waiting` are runs that are taken and not in it.
    `passed_over` says nothing, or less than it would, with the reason.
    """

    shown: tuple[ShownEdit, ...]
    places: Places
    waiting: tuple[Run, ...]
    passed_over: tuple[tuple[TextEdit, TextFault], ...]
    looks: int = 0
    """Looks that its deletions took."""


def read_ranges(encoded: bytes) -> TextRanges:
    """Return the clocks that an update of a commit says and deletes.

    Args:
        encoded: a Yjs update of format v1, of any length. An empty one says nothing.

    Raises:
        BadUpdate: it is no update, has fillers, or is past the bounds: one run of clocks for each of at most
            TEXT_CLIENT_COUNT_MAX client ids, and TEXT_SPAN_COUNT_MAX deleted ranges.
    """
    if not encoded:
        return SAYS_NOTHING
    read = read_update(encoded)
    if any(one.is_filler for structs in read.structs.values() for one in structs):
        raise BadUpdate("a filler, beside which not all libraries show the same")
    runs = tuple(read.runs())
    if len(runs) != len(read.structs) or len(runs) > TEXT_CLIENT_COUNT_MAX:
        raise BadUpdate("client ids with gaps, or too many of them")
    deletes = tuple((client, *span) for client, spans in read.deletes.items() for span in spans)
    if len(deletes) > TEXT_SPAN_COUNT_MAX:
        raise BadUpdate("too many deleted ranges")
    items = tuple(tuple(list_items(client, structs)) for client, structs in read.structs.items())
    return TextRanges(runs, deletes, items)


def is_client_of(client: int, clients: int) -> bool:
    """Return True if a client id begins with these bits."""
    return client >> TEXT_SESSION_BITS == clients


def reduce_text(edits: Iterable[TextEdit], *, look_count_max: int = TEXT_LOOK_COUNT_MAX) -> TextState:
    """Walk the updates of a text in canonical order, copies last.

    Args:
        edits: updates of accepted commits that are not void, in any order.
        look_count_max: how many (named commit, client id, deleted range) may be compared.

    Raises:
        ErasedValues: a body is neither here nor in a snapshot.
        TooManyDeletions: more would have to be compared. Only commits that name each other's words on purpose reach it.
    """
    ordered = sorted(edits, key=lambda one: (one.is_copy, one.place))
    missing = sum(one.is_missing for one in ordered)
    if missing:
        raise ErasedValues(missing)
    walk = _Walk(look_count_max)
    removals_taking = [(one, runs) for one in ordered if (runs := walk.take(one)) is not None]
    misplaced = walk.place()
    shown: list[ShownEdit] = []
    waiting: list[Run] = []
    passed_over = walk.passed_over
    for one, runs in removals_taking:
        ends = [(run, min(run[2], walk.places.end(run[0]))) for run in runs]
        here = tuple((client, start, end) for (client, start, _), end in ends if start < end)
        deletes = walk.count_deletes(one, here)
        if here or deletes:
            shown.append(ShownEdit(one, here, deletes))
        away = [(client, max(start, end), stop) for (client, start, stop), end in ends if end < stop]
        waiting += away
        if any((client, start) in misplaced for client, start, _ in away):
            passed_over.append((one, TextFault.MISPLACED))
    looks = look_count_max - walk.looks_left
    return TextState(tuple(shown), walk.places, tuple(waiting), tuple(passed_over), looks)


class _Walk:
    """The clocks that are taken so far."""

    def __init__(self, look_count_max: int) -> None:
        self.looks_left = look_count_max
        self._taken: dict[int, list[Span]] = {}
        # By the commit's first name and by client, what was taken from it. Several copies may have one name.
        self._said: dict[CommitId, dict[int, list[Span]]] = {}
        self._items: dict[int, list[TextItem]] = {}
        self.places = Places()
        self.passed_over: list[tuple[TextEdit, TextFault]] = []

    def take(self, one: TextEdit) -> tuple[Run, ...] | None:
        """Take what an update may say, and return it; None where it says nothing at all."""
        if one.content is None:
            self.passed_over.append((one, TextFault.UNREADABLE))
            return None
        said = one.content.runs
        if one.is_stray or not all(is_client_of(client, one.clients) for client, _, _ in said):
            self.passed_over.append((one, TextFault.OTHER_CLIENT))
            return None
        runs = tuple(left for run in said if (left := self._cut(run))[1] < left[2])
        meets = any(self._meets(run) for run in runs)
        if (
            meets or runs != said
        ) and one.name not in self._said:  # else it is a copy of what was walked before
            self.passed_over.append((one, TextFault.USED_CLOCKS))
        if meets:
            return None
        by_client = self._said.setdefault(one.name, {})
        for client, start, end in runs:
            _keep(self._taken.setdefault(client, []), start, end)
            _keep(by_client.setdefault(client, []), start, end)
        self._keep_items(one.content, runs)
        return runs

    def _keep_items(self, content: TextRanges, runs: Sequence[Run]) -> None:
        """Note what stands at runs that were taken."""
        starts = {client: start for client, start, _ in runs}
        for (client, _, _), items in zip(content.runs, content.items, strict=True):
            if client in starts:
                start = starts[client]
                self._items.setdefault(client, []).extend(
                    item if item.clock >= start else item.after(client, start)
                    for item in items
                    if item.end > start
                )

    def place(self) -> set[ItemId]:
        """Find the places of all that was taken; return misplaced items."""
        for items in self._items.values():
            items.sort(key=itemgetter(0))
        return set(self.places.add(self._items))

    def _cut(self, run: Run) -> Run:
        client, start, end = run
        taken = self._taken.get(client, [])
        place = bisect_right(taken, start, key=itemgetter(0)) - 1
        return (client, max(start, taken[place][1]), end) if place >= 0 else run

    def _meets(self, run: Run) -> bool:
        client, start, end = run
        taken = self._taken.get(client, [])
        place = bisect_right(taken, start, key=itemgetter(0))
        return place < len(taken) and taken[place][0] < end

    def count_deletes(self, one: TextEdit, own: Sequence[Run]) -> tuple[Run, ...]:
        """Return what counts of an update's deletions: of its own clocks, and of those that it names commits for."""
        if one.content is None or not one.content.deletes:
            return ()
        said = [self._said[name] for name in dict.fromkeys(one.replaces) if name in self._said]
        return find_deletes(one.content.deletes, own, said, self.places.end, self._look)

    def _look(self, count: int) -> None:
        self.looks_left -= count
        if self.looks_left < 0:
            raise TooManyDeletions


def find_deletes(
    deletes: Iterable[Run],
    own: Iterable[Run],
    named: Iterable[Mapping[int, Sequence[Span]]],
    find_end: Callable[[int], int],
    look: Callable[[int], None],
) -> tuple[Run, ...]:
    """Return the part of an update's deletions that counts.

    Args:
        deletes: what the update deletes.
        own: clocks that it says itself.
        named: by client id, the clocks that were taken from each commit that it names.
        find_end: the first clock of a client id that is not in the text.
        look: is given how many looks are about to be made, and raises where they are too many.
    """
    wanted: dict[int, list[Span]] = {}
    for client, start, end in deletes:
        wanted.setdefault(client, []).append((start, end))
    found: dict[int, list[Span]] = {client: [] for client in wanted}
    for by_client in ({client: [(start, end)] for client, start, end in own}, *named):
        fewer = by_client if len(by_client) < len(wanted) else wanted
        look(len(fewer))
        for client in fewer:
            if client in by_client and client in wanted:
                common = overlap_spans(wanted[client], by_client[client])
                look(min(len(wanted[client]), len(by_client[client])) + len(common))
                end = find_end(client)
                found[client] += [(start, min(stop, end)) for start, stop in common if start < end]
    return tuple((client, *span) for client, spans in found.items() for span in join_spans(spans))


def _keep(taken: list[Span], start: int, end: int) -> None:
    """Add clocks that meet none before them; neighbours become one."""
    place = bisect_right(taken, start, key=itemgetter(0))
    if place < len(taken) and taken[place][0] == end:
        end = taken.pop(place)[1]
    if place and taken[place - 1][1] == start:
        taken[place - 1] = (taken[place - 1][0], end)
    else:
        taken.insert(place, (start, end))
