"""Reads the updates of a branch's text from the store, for `verifier.texts` to reduce.

A body that is not here may stand in a snapshot. A commit's header holds a keyed hash of its body, so what a snapshot says
of it is proven or passed over: nobody is believed, and it does not matter who wrote the snapshot or whether it is void.

Bodies do not change, so what was read of them is remembered within a bound; which of them count is asked of the store each
time. The bytes of updates are read again when they are needed.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from sqlalchemy import Connection

from node.content.document_operations import find_depths
from node.content.lineage import lineage, load_state
from node.content.text_versions import Piece
from node.content.text_words import TextWords
from node.ingest.replica import Replica, load_blocks_of, open_stored_commit
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from protocol.crypto.hashing import block_key, text_clients
from protocol.crypto.keys import BlockKey, ConvergenceSecret
from protocol.formats.body import Body, Carried, UnknownBody, content_of, encode_body, kind_name
from protocol.formats.commit import Commit
from protocol.formats.content import Compaction
from protocol.formats.document_kinds import TEXT_REPLACES_MAX, SaidUpdate, TextSnapshot, TextUpdate
from protocol.formats.yjs_updates import BadUpdate
from protocol.ids import BranchId, CommitId, UserId
from protocol.limits.formats import BODY_SIZE_MAX
from protocol.limits.users import (
    DOCUMENT_HISTORY_MAX,
    DOCUMENT_OPERATIONS_CACHED_MAX,
    DOCUMENT_SIZE_MAX,
    FORK_DEPTH_MAX,
    STATE_COUNT_MAX,
)
from storage.commits.commits import (
    TimelineRow,
    load_arrived_of_kinds,
    load_first_of_kinds,
    load_numbered,
    load_void_of_kinds,
)
from storage.repos.repos import Branch
from verifier.texts import SAYS_NOTHING, TextEdit, TextRanges, TextShape, TextState, read_ranges, reduce_text

_LOADED_AT_ONCE: Final = 500
_UPDATE: Final = kind_name(TextUpdate)
_SNAPSHOT: Final = kind_name(TextSnapshot)
_CARRIED: Final = kind_name(Carried)
_COMPACTION: Final = kind_name(Compaction)
_NAME_SIZE: Final = 36
"""Bytes of a name in a list, rounded up."""
_ROOM: Final = 8192
"""Bytes of a body for what is not counted."""
ORIGINS_KNOWN_MAX: Final = 4096
_NEW_MAX: Final = 10_000
"""New updates that are added to a text one by one; with more it is read anew."""
_LAST_DEPTH: Final = FORK_DEPTH_MAX + 1
"""First part of the place of what is not written yet: behind every branch that continues another."""


SnapshotPlace = tuple[int, int]
"""Number of a snapshot's commit, and the place in its list."""


class _Kept(NamedTuple):
    """Content of one commit as it is remembered. Its body is here, or said again in a snapshot."""

    name: CommitId
    clients: int
    is_copy: bool
    is_stray: bool
    content: TextRanges | None
    replaces: tuple[CommitId, ...]
    size: int
    snapshot: SnapshotPlace | None = None
    is_compaction: bool = False

    @property
    def weight(self) -> int:
        """Count the update's parts: replaced commits, runs, deletions and items."""
        ranges = self.content or SAYS_NOTHING
        items = sum(map(len, ranges.items))
        return 1 + len(self.replaces) + len(ranges.runs) + len(ranges.deletes) + items


class _Proof(NamedTuple):
    """Key that only the body of a commit has, for one whose body is not here."""

    row: TimelineRow
    key: BlockKey
    secret: ConvergenceSecret


@dataclass(frozen=True, slots=True)
class ReadText:
    """The updates of a text and, by commit, where the store has each: in its own row or in a snapshot.

    `size` and `weight` are their sums. `given_up` has the commits whose updates are no longer kept.
    """

    edits: tuple[TextEdit, ...]
    sources: Mapping[CommitId, tuple[TimelineRow, SnapshotPlace | None]]
    given_up: frozenset[CommitId] = frozenset()
    size: int = 0
    weight: int = 0
    opened: Mapping[int, bytes] = field(default_factory=dict)
    """Updates that were opened for it, by the commit's number: none is opened twice."""


@dataclass(frozen=True, slots=True)
class ReducedText:
    """A text as all its updates make it. `pieces` are what each adds, in the order of the walk.

    `is_opened`: each was read from its commit's body.
    """

    read: ReadText
    state: TextState
    pieces: Mapping[CommitId, Piece]
    is_opened: bool


class NewUpdate(NamedTuple):
    """Newest update of a text, with its bytes, and what it adds to the text's size and weight."""

    edit: TextEdit
    update: bytes
    size: int
    weight: int


class TextReader:
    """Reads what is said of texts. Thread-safe."""

    def __init__(self, replica: Replica | Tables) -> None:
        self._replica = replica
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept | None] = {}  # by the commit's number; None: it says nothing of a text
        self._weight = 0
        # By branch: for which bodies, in which snapshots, nothing was found.
        self._unfound: dict[int, tuple[frozenset[CommitId], frozenset[int]]] = {}

    def read(self, connection: Connection, branch: Branch) -> ReadText:
        """Read the updates of a text's branch and of the branches that it continues, carried ones too.

        Raises ServiceError `too_large`, `incomplete`.
        """
        depths = find_depths(self._replica, connection, branch)
        rows = load_state(self._replica, connection, branch, kinds={_CARRIED, _COMPACTION, _UPDATE})
        rows = [row for row in rows if not row.document]
        opened: dict[int, bytes] = {}
        kept = self._remembered(connection, branch, rows, opened)
        given_up: set[CommitId] = set()
        for one in kept.values():
            given_up.update(one.replaces if one is not None and one.is_compaction else ())
        edits: list[TextEdit] = []
        sources: dict[CommitId, tuple[TimelineRow, SnapshotPlace | None]] = {}
        size = weight = 0
        for row in rows:
            place = (depths[row.branch_num], row.passed, row.rank, row.commit_id)
            if row.num not in kept:
                is_missing = row.commit_id not in given_up
                edits.append(TextEdit(row.commit_id, place, 0, SAYS_NOTHING, is_missing=is_missing))
                continue
            one = kept[row.num]
            if one is None or one.is_compaction or one.name in given_up:
                continue
            size, weight = size + one.size, weight + one.weight
            if size > DOCUMENT_SIZE_MAX or weight > DOCUMENT_HISTORY_MAX:
                raise ServiceError(
                    "too_large",
                    f"the text's updates have over {DOCUMENT_SIZE_MAX} bytes or {DOCUMENT_HISTORY_MAX} ranges",
                    "begin another branch with the text as it is",
                )
            edits.append(
                TextEdit(one.name, place, one.clients, one.content, one.replaces, one.is_copy, one.is_stray)
            )
            sources[row.commit_id] = row, one.snapshot
        return ReadText(tuple(edits), sources, frozenset(given_up), size, weight, opened)

    def reduce(self, connection: Connection, branch: Branch, before: TextWords | None = None) -> ReducedText:
        """Reduce a text from all its updates. Costs O(n log n) for n of them: the walk of `reduce_text`, and opening each.

        What stands in the text as it was `before` is not opened again, as long as its bodies are remembered.
        Raises ServiceError `too_large`, `incomplete`, and ErasedValues and TooManyDeletions.
        """
        read = self.read(connection, branch)
        state = reduce_text(read.edits)
        found: dict[CommitId, Piece] = {}
        shapes: dict[CommitId, TextShape | None] = {}
        for one in state.shown:
            piece = None if before is None else before.find_piece(one)
            if piece is None:
                shapes[one.edit.commit] = one.shape
            else:
                found[one.edit.commit] = piece
        is_opened = not found
        for commit, update in self.load_updates(connection, read, shapes):
            found[commit] = Piece.left_of(update, shapes[commit])
        pieces = {one.edit.commit: found[one.edit.commit] for one in state.shown}
        return ReducedText(read, state, pieces, is_opened)

    def read_new(
        self, connection: Connection, branch: Branch, after: int, depth: int
    ) -> list[NewUpdate] | None:
        """Read the updates of the branch's own commits above a number; None where others than updates came.

        Costs O(commits above it).
        """
        rows = load_arrived_of_kinds(
            connection, branch.num, {_CARRIED, _COMPACTION, _UPDATE}, after, _NEW_MAX + 1
        )
        if len(rows) > _NEW_MAX or any(row.is_erased or row.body_kind != _UPDATE for row in rows):
            return None
        found: list[NewUpdate] = []
        of_text = [row for row in rows if not row.document]
        for row, _, said, _, size in self._open(connection, of_text):
            assert said is not None, "it is an update"
            kept = self._keepable(row, said, None, size)
            place = (depth, row.passed, row.rank, row.commit_id)
            edit = TextEdit(kept.name, place, kept.clients, kept.content, kept.replaces)
            found.append(NewUpdate(edit, said.update, kept.size, kept.weight))
        return found

    def load_updates(
        self, connection: Connection, text: ReadText, wanted: Iterable[CommitId]
    ) -> Iterator[tuple[CommitId, bytes]]:
        """Yield the updates of these commits, a few hundred bodies at a time."""
        rows: list[TimelineRow] = []
        in_snapshots: dict[int, list[int]] = {}
        for commit_id in wanted:
            row, snapshot = text.sources[commit_id]
            if row.num in text.opened:
                yield commit_id, text.opened[row.num]
            elif snapshot is None:
                rows.append(row)
            else:
                in_snapshots.setdefault(snapshot[0], []).append(snapshot[1])
        for row, _, said, _, _ in self._open(connection, rows):
            assert said is not None, "it was an update"
            yield row.commit_id, said.update
        for row in load_numbered(connection, list(in_snapshots)):
            said_again = self._open_snapshot(connection, row)
            for place in in_snapshots[row.num]:
                yield said_again[place].name, said_again[place].update

    def find_said_again(self, connection: Connection, branch: Branch) -> set[CommitId]:
        """Return the branch's own commits whose bodies are here, and in snapshots of the branch that are not void."""
        here = {row.commit_id: row for row in self._load_own(connection, branch) if not row.is_erased}
        said: dict[CommitId, list[SaidUpdate]] = {}
        for row in load_first_of_kinds(connection, branch.num, {_SNAPSHOT}, STATE_COUNT_MAX):
            for one in self._open_snapshot(connection, row):
                if one.name in here:
                    said.setdefault(one.name, []).append(one)
        found: set[CommitId] = set()
        for row, commit, _, _, _ in self._open(connection, [here[name] for name in said]):
            proof = self._proof(row, commit)
            found.update(one.name for one in said[row.commit_id] if _is_proven(one, proof))
        return found

    def make_snapshots(self, connection: Connection, branch: Branch) -> list[TextSnapshot]:
        """Return snapshots of the branch's own bodies that none holds yet; none where there is just one."""
        said = self.find_said_again(connection, branch)
        rows = [
            row
            for row in self._load_own(connection, branch)
            if not row.is_erased and row.commit_id not in said
        ]
        if len(rows) < 2:
            return []
        groups: list[list[SaidUpdate]] = []
        room = 0
        for row, _, one, _, _ in self._open(connection, rows):
            if one is None or not one.update:  # it cannot be read, and no snapshot could prove it
                continue
            size = len(one.update) + _NAME_SIZE * (2 + len(one.replaces))
            if room < size or len(groups[-1]) == TEXT_REPLACES_MAX:
                groups.append([])
                room = BODY_SIZE_MAX - _ROOM
            groups[-1].append(SaidUpdate(row.commit_id, one.update, one.replaces))
            room -= size
        return [TextSnapshot(tuple(group)) for group in groups]

    def find_missing(self, connection: Connection, branch: Branch) -> list[CommitId]:
        """Return the commits whose bodies the text needs, and that are nowhere."""
        return [one.name for one in self.read(connection, branch).edits if one.is_missing]

    def _load_own(self, connection: Connection, branch: Branch) -> list[TimelineRow]:
        found = load_first_of_kinds(connection, branch.num, {_UPDATE}, STATE_COUNT_MAX)
        return [row for row in found if not row.document]

    # --- steps ---

    def _remembered(
        self, connection: Connection, branch: Branch, rows: Sequence[TimelineRow], opened: dict[int, bytes]
    ) -> dict[int, _Kept | None]:
        """Return the known updates of these commits, by number; leave out those without any body.

        Updates that are opened for it are added to `opened`.
        """
        known: dict[int, _Kept | None] = {}
        kept = self._kept  # another thread may begin anew
        for row in rows:
            if row.num in kept:
                one = kept[row.num]
                if (
                    one is None or one.snapshot is not None or not row.is_erased
                ):  # else its body has gone since
                    known[row.num] = one
        fresh: dict[int, _Kept | None] = {}
        missing: dict[CommitId, _Proof] = {}
        for row, commit, said, body, size in self._open(
            connection, [row for row in rows if row.num not in known]
        ):
            if row.is_erased:
                if row.body_kind == _UPDATE:
                    missing[row.commit_id] = self._proof(row, commit)
            elif isinstance(body, Compaction):
                fresh[row.num] = _Kept(
                    row.commit_id, 0, False, False, SAYS_NOTHING, body.given_up, 0, is_compaction=True
                )
            elif said is None:
                fresh[row.num] = None
            else:
                origin = body if isinstance(body, Carried) else None
                fresh[row.num] = self._keepable(row, said, origin, size)
                opened[row.num] = said.update
        if missing:
            self._find_in_snapshots(connection, branch, missing, fresh)
        self._keep(fresh)
        return known | fresh

    def _find_in_snapshots(
        self,
        connection: Connection,
        branch: Branch,
        missing: Mapping[CommitId, _Proof],
        fresh: dict[int, _Kept | None],
    ) -> None:
        """Add what snapshots prove of bodies that are not here."""
        snapshots: list[TimelineRow] = []
        for part, _ in lineage(self._replica, connection, branch):
            snapshots += load_first_of_kinds(connection, part.num, {_SNAPSHOT}, STATE_COUNT_MAX)
            snapshots += load_void_of_kinds(connection, part.num, {_SNAPSHOT})
        question = frozenset(missing), frozenset(row.num for row in snapshots)
        if self._unfound.get(branch.num) == question:
            return
        for row in snapshots:
            for place, one in enumerate(self._open_snapshot(connection, row)):
                proof = missing.get(one.name)
                if proof is not None and proof.row.num not in fresh and _is_proven(one, proof):
                    said = TextUpdate(one.update, one.replaces)
                    kept = self._keepable(proof.row, said, None, len(one.update))
                    fresh[proof.row.num] = kept._replace(snapshot=(row.num, place))
        if not any(proof.row.num in fresh for proof in missing.values()):
            self._unfound[branch.num] = question

    def _open(
        self, connection: Connection, rows: Sequence[TimelineRow]
    ) -> Iterator[tuple[TimelineRow, Commit, TextUpdate | None, Body | UnknownBody, int]]:
        """Yield rows with their commits, updates if they have any, and bodies and their sizes."""
        for start in range(0, len(rows), _LOADED_AT_ONCE):
            part = rows[start : start + _LOADED_AT_ONCE]
            blocks = load_blocks_of(connection, list(part))
            for row in part:
                commit, body, encoded = open_stored_commit(self._replica, row, blocks[row.num])
                said = content_of(body)
                update = said if isinstance(said, TextUpdate) else None
                if update is None and row.body_kind == _UPDATE:
                    update = TextUpdate(b"", ())  # unreadable: it keeps its name
                yield row, commit, update, body, len(encoded)

    def _open_snapshot(self, connection: Connection, row: TimelineRow) -> tuple[SaidUpdate, ...]:
        blocks = load_blocks_of(connection, [row])
        _, body, _ = open_stored_commit(self._replica, row, blocks[row.num])
        return body.updates if isinstance(body, TextSnapshot) else ()

    def _keepable(self, row: TimelineRow, said: TextUpdate, origin: Carried | None, size: int) -> _Kept:
        here = self._replica.branches[row.branch_num].branch_id
        name, author, branch_id = row.commit_id, row.author, here
        if origin is not None:
            name, author, branch_id = origin.commit, origin.author, origin.branch
        is_copy = author != row.author
        is_stray = is_copy and branch_id == here
        clients = _clients_of(author, branch_id)
        return _Kept(name, clients, is_copy, is_stray, _ranges_of(said), said.replaces, size)

    def _proof(self, row: TimelineRow, commit: Commit) -> _Proof:
        secret = self._replica.convergence_secret(row)
        return _Proof(row, commit.content.body.key, secret)

    def _keep(self, fresh: Mapping[int, _Kept | None]) -> None:
        weight = sum(1 if one is None else one.weight for one in fresh.values())
        with self._lock:
            if self._weight + weight > DOCUMENT_OPERATIONS_CACHED_MAX:  # rather begin anew than choose
                self._kept, self._weight = {}, 0
            if weight <= DOCUMENT_OPERATIONS_CACHED_MAX:
                self._kept.update(fresh)
                self._weight += weight


def carried_edit(
    carried: Carried, said: TextUpdate, author: UserId, branch_id: BranchId, place: int
) -> TextEdit:
    """Return the edit that an update becomes which `author` is to carry over to a branch, behind all that stands there."""
    clients = _clients_of(carried.author, carried.branch)
    is_copy = carried.author != author
    is_stray = is_copy and carried.branch == branch_id
    key = (_LAST_DEPTH, 0, place, carried.commit)
    return TextEdit(carried.commit, key, clients, _ranges_of(said), said.replaces, is_copy, is_stray)


def _ranges_of(said: TextUpdate) -> TextRanges | None:
    try:
        return read_ranges(said.update)
    except BadUpdate:
        return None


@lru_cache(ORIGINS_KNOWN_MAX)
def _clients_of(author: UserId, branch_id: BranchId) -> int:
    return text_clients(author, branch_id)


def _is_proven(said: SaidUpdate, proof: _Proof) -> bool:
    """Return True if a snapshot says what the commit's body was."""
    return block_key(proof.secret, encode_body(TextUpdate(said.update, said.replaces))) == proof.key
