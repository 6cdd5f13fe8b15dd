"""Plans what a pushed update writes: what of it is new, and which commits said the words that it deletes. Pure.

A push is refused as a whole where words of it would be lost: they have another author's client id, or clocks at which the
text says something else already. What the text has is left out, and so is deleting what the text does not have.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from node.content.text_words import Said, TextIndex
from node.runtime.errors import ServiceError
from protocol.formats.clock_spans import Span, join_spans, overlap_spans, subtract_spans
from protocol.formats.document_kinds import (
    TEXT_REPLACES_MAX,
    TEXT_SPAN_COUNT_MAX,
    TEXT_UPDATE_SIZE_MAX,
    TextUpdate,
)
from protocol.formats.yjs_structs import WrittenStructs, cut_structs, encode_update, say_same, write_gone
from protocol.formats.yjs_updates import BadUpdate, ReadUpdate, Struct, read_update
from protocol.ids import CommitId
from verifier.texts import is_client_of, read_ranges

PULL_ADVICE: Final = (
    "take the whole text (`ravel text pull`) under a new client id (`ravel text client`), and type what is missing "
    "again"
)
HIDDEN_ADVICE: Final = (
    "wait until what is missing has come, or `ravel branch adopt` what counts no more; else " + PULL_ADVICE
)


@dataclass
class PushPlan:
    """Plan of one commit from updates that are pushed together. `clients` is the common beginning of this user's
    client ids."""

    index: TextIndex
    clients: int
    ends: list[dict[int, int]] = field(default_factory=list)
    """Clocks behind what each update says, by client id of this user."""
    _structs: dict[int, list[WrittenStructs]] = field(default_factory=dict)
    _deletes: dict[int, list[Span]] = field(default_factory=dict)
    """Deleted clocks of words that the same commit says, by client id."""
    _named: dict[tuple[CommitId, int], list[Span]] = field(default_factory=dict)
    """Deleted clocks of words that other commits said, by these commits and client ids."""

    def add(self, encoded: bytes) -> None:
        """Take in an update. Raises ServiceError `bad_input` and then holds a part of it: it is of no more use."""
        try:
            update = read_update(encoded)
        except BadUpdate as error:
            raise ServiceError(
                "bad_input",
                f"that is no Yjs update of format v1 that texts take: {error}",
                "send what a Yjs editor encodes: encodeStateAsUpdate, or the events of the document",
            ) from None
        own = {client for client in update.structs if is_client_of(client, self.clients)}
        self.ends.append({client: update.structs[client][-1].end for client in own})
        structs = {client: new for client in update.structs if (new := self._new_structs(update, client))}
        for client, spans in update.deletes.items():
            said = join_spans((one.clock, one.end) for one in structs.get(client, ()))
            self._add_deletes(client, subtract_spans(spans, self.index.deleted(client)), said)
        self.index.add(structs, update.deletes)
        for client, found in structs.items():
            self._structs[client] = sorted([*self._structs.get(client, ()), *found])

    def bodies(self) -> list[TextUpdate]:
        """Return what is to be written: nothing, one body, or several where many commits' words are deleted.

        Raises ServiceError `too_large` where it does not fit one commit.
        """
        left = [(name, client, span) for (name, client), spans in self._named.items() for span in spans]
        structs, deletes = self._structs, self._deletes
        bodies: list[TextUpdate] = []
        while structs or deletes or left:
            names: dict[CommitId, None] = {}
            count = sum(map(len, deletes.values()))
            while left and len(names) < TEXT_REPLACES_MAX and count < TEXT_SPAN_COUNT_MAX:
                name, client, span = left.pop()
                names[name] = None
                deletes.setdefault(client, []).append(span)
                count += 1
            joined = {client: join_spans(spans) for client, spans in deletes.items()}
            bodies.append(TextUpdate(encode_update(structs, joined), tuple(names)))
            _check(bodies[-1])
            structs, deletes = {}, {}
        return bodies

    def _new_structs(self, update: ReadUpdate, client: int) -> list[WrittenStructs]:
        structs = update.structs[client]
        new: list[Span] = []
        gone: list[Span] | None = None
        for run in join_spans((one.clock, one.end) for one in structs):
            for span, said in self.index.find(client, *run):
                if said is None:
                    new.append(span)
                    continue
                if gone is None:
                    gone = join_spans([*self.index.deleted(client), *update.deletes.get(client, ())])
                self._compare(update, client, span, said, gone)
        if new and not is_client_of(client, self.clients):
            raise ServiceError(
                "bad_input",
                f"the update says words that the text has not here, under the client id {client}, which is not yours in it",
                "give the Yjs document a client id of `ravel text client` (POST .../text/clients) before anything is "
                "typed; what another document holds is typed anew by `ravel text import`",
            )
        if new and (
            len(new) > 1
            or new[0][0] != self.index.end(client)
            or overlap_spans(new, self.index.waiting(client))
        ):
            raise ServiceError(
                "bad_input",
                f"the update builds on words that the text has not here: under the client id {client} it has those up to "
                f"clock {self.index.end(client)}",
                HIDDEN_ADVICE,
            )
        return [
            write_gone(one.clock, one.end) if one.is_filler else one
            for one in cut_structs(update, client, new)
        ]

    def _compare(self, update: ReadUpdate, client: int, span: Span, said: Said, gone: Sequence[Span]) -> None:
        """Check that the text has at these clocks what the update has; `gone` are clocks that either deletes."""
        held = self.index.read(said)
        for mine in _within(update.structs[client], span):
            start, end = max(mine.clock, span[0]), min(mine.end, span[1])
            for theirs in _within(held.structs[client], (start, end)):
                both = max(theirs.clock, start), min(theirs.end, end)
                if mine.is_gone or theirs.is_gone:
                    is_same = not any(subtract_spans([both], gone))
                else:
                    is_same = say_same(client, (update, mine), (held, theirs), both)
                if not is_same:
                    raise ServiceError(
                        "bad_input",
                        f"at clock {both[0]} of the client id {client} the text says something else already",
                        "two documents have used one client id; " + PULL_ADVICE,
                    )

    def _add_deletes(self, client: int, spans: Iterable[Span], new: Sequence[Span]) -> None:
        """Note deletions of this commit's own words, and of those that other commits said."""
        for start, end in spans:
            for part, said in self.index.find(client, start, end):
                if said is not None and said.name is not None:
                    self._named.setdefault((said.name, client), []).append(part)
                elif own := [part] if said is not None else overlap_spans([part], new):
                    self._deletes.setdefault(client, []).extend(own)


def _check(body: TextUpdate) -> None:
    """Raise ServiceError `too_large` if other nodes would not read a body."""
    try:
        read_ranges(body.update)
    except BadUpdate as error:
        raise ServiceError("too_large", f"the update does not fit one commit: {error}") from None
    if len(body.update) > TEXT_UPDATE_SIZE_MAX:
        raise ServiceError(
            "too_large", f"an update has at most {TEXT_UPDATE_SIZE_MAX} bytes", "push it in parts"
        )


def _within(structs: Sequence[Struct], span: Span) -> Iterator[Struct]:
    """Yield the structs that have clocks of a span."""
    for place in range(max(bisect_right(structs, span[0], key=_clock_of) - 1, 0), len(structs)):
        if structs[place].clock >= span[1]:
            return
        if structs[place].end > span[0]:
            yield structs[place]


def _clock_of(one: Struct) -> int:
    return one.clock
