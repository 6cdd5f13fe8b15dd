"""Reads and caches decrypted operations about a branch's set or dict, for `documents` to reduce. Texts are `text_reading`'s.

Bodies do not change, so what was opened is remembered within a bound; which of it counts is asked of the store each time.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from node.content.lineage import lineage, lineage_nums, load_state
from node.ingest.replica import Replica, load_blocks_of, open_stored_commit
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from protocol.codec import encode
from protocol.formats.body import Carried, UnreadableBody, content_of, kind_name
from protocol.formats.document_kinds import DOCUMENT_KINDS, ValuesEdit, ValuesKind, ValuesSnapshot
from protocol.ids import CommitId
from protocol.limits.users import DOCUMENT_OPERATIONS_CACHED_MAX, DOCUMENT_SNAPSHOT_COUNT_MAX
from storage.commits.commits import TimelineRow, load_document_names, load_graph
from storage.repos.repos import Branch
from verifier.documents import (
    DocumentCommit,
    DocumentValue,
    ErasedValues,
    empty_body,
)

_LOADED_AT_ONCE: Final = 500
_OPERATION_SIZE: Final = 400
"""Bytes of a body that weigh as much as an operation: values may have 256 KiB."""
_COVERING: Final = {kind_name(kind.snapshot) for kind in DOCUMENT_KINDS if kind.snapshots_cover}


class OpenedBody(NamedTuple):
    """First id of a commit, its operations (None: not of sets and dicts, or absent), and its body's size."""

    name: CommitId
    content: ValuesEdit | ValuesSnapshot | None
    size: int


class DocumentOperationReader:
    """Reads what is said of documents. Thread-safe."""

    def __init__(
        self, replica: Replica | Tables, *, operations_cached_max: int = DOCUMENT_OPERATIONS_CACHED_MAX
    ) -> None:
        self._replica = replica
        self._lock = threading.Lock()
        self._kept: dict[int, OpenedBody] = {}  # by the commit's number
        self.operations_cached = 0
        self._operations_cached_max = operations_cached_max

    def read(
        self, connection: Connection, branch: Branch, kind: ValuesKind, name: str = ""
    ) -> Iterator[tuple[DocumentCommit, int]]:
        """Load the operations of a set or dict as `read_numbered`, without the commits' numbers."""
        return ((one, size) for _, one, size in self.read_numbered(connection, branch, kind, name))

    def read_numbered(
        self, connection: Connection, branch: Branch, kind: ValuesKind, name: str = ""
    ) -> Iterator[tuple[int, DocumentCommit, int]]:
        """Load the operations of a set or dict of the branch and of the branches that it continues, carried ones too.

        Yields the commit's number, its operations and the size of its body. Costs O(commits of the branch). The
        operations are None if the body is not here, and empty if it cannot be read. Raises ServiceError `too_large`,
        `incomplete`.
        """
        depths = find_depths(self._replica, connection, branch)
        kinds = {"carried", *map(kind_name, kind.bodies)}
        rows = load_state(self._replica, connection, branch, kinds=kinds, document=name)
        snapshots = [row for row in rows if row.body_kind in _COVERING and not row.is_erased]
        if len(snapshots) > DOCUMENT_SNAPSHOT_COUNT_MAX:
            raise ServiceError(
                "too_large",
                f"the branch's {kind.name} has over {DOCUMENT_SNAPSHOT_COUNT_MAX} snapshots",
                "begin another branch with what is in use",
            )
        said_again = [
            row
            for start in range(0, len(snapshots), _LOADED_AT_ONCE)
            for row, opened in self.open(connection, snapshots[start : start + _LOADED_AT_ONCE])
            if isinstance(opened.content, ValuesSnapshot)  # else it cannot be read
        ]
        bits = {row.commit_id: 1 << number for number, row in enumerate(said_again)}
        pasts = find_pasts(connection, lineage(self._replica, connection, branch), bits)
        for start in range(0, len(rows), _LOADED_AT_ONCE):
            part = rows[start : start + _LOADED_AT_ONCE]
            for row, opened in self.open(connection, part):
                if row.is_erased or isinstance(opened.content, kind.bodies):
                    place = (depths[row.branch_num], row.passed, row.rank, row.commit_id)
                    bit, covered_by = bits.get(row.commit_id, 0), pasts.get(row.commit_id, 0)
                    said = DocumentCommit(opened.name, place, opened.content, bit, covered_by)
                    yield row.num, said, opened.size

    def keep_written(self, written: Mapping[int, tuple[CommitId, ValuesEdit]]) -> None:
        """Remember the operations of this node's commits, by number, so that the next edit need not open them."""
        self._keep({num: OpenedBody(name, edit, len(encode(edit))) for num, (name, edit) in written.items()})

    def kept(self, nums: Iterable[int]) -> dict[int, OpenedBody]:
        """Return what is remembered of commits that are here, by number: no row is read for it."""
        return {num: found for num in nums if (found := self._kept.get(num)) is not None}

    def open(
        self, connection: Connection, rows: Sequence[TimelineRow]
    ) -> list[tuple[TimelineRow, OpenedBody]]:
        """Return the operations on documents in these commits, from the cache or opened."""
        known = {row.num: None if row.is_erased else self._kept.get(row.num) for row in rows}
        missing = [row for row in rows if known[row.num] is None]
        fresh = dict(zip([row.num for row in missing], self._open(connection, missing), strict=True))
        self._keep({row.num: fresh[row.num] for row in missing if not row.is_erased})  # which may still come
        return [(row, known[row.num] or fresh[row.num]) for row in rows]

    def _open(self, connection: Connection, rows: Sequence[TimelineRow]) -> Iterator[OpenedBody]:
        blocks = load_blocks_of(connection, list(rows))
        for row in rows:
            _, body, encoded = open_stored_commit(self._replica, row, blocks[row.num])
            said = empty_body(body.tag) if isinstance(body, UnreadableBody) else content_of(body)
            content = said if isinstance(said, ValuesEdit | ValuesSnapshot) else None
            yield OpenedBody(
                body.commit if isinstance(body, Carried) else row.commit_id, content, len(encoded)
            )

    def _keep(self, fresh: dict[int, OpenedBody]) -> None:
        operations = sum(_weight(opened) for opened in fresh.values())
        with self._lock:
            if (
                self.operations_cached + operations > self._operations_cached_max
            ):  # rather begin anew than choose
                self._kept, self.operations_cached = {}, 0
            if operations <= self._operations_cached_max:
                self._kept.update(fresh)
                self.operations_cached += operations


def find_documents(
    tables: Replica | Tables, connection: Connection, branch: Branch
) -> list[tuple[ValuesKind, str]]:
    """List the kinds and names of sets and dicts that the branch may have, or continue; the unnamed ones first.

    Costs O(commits of these branches). Raises ServiceError `incomplete`.
    """
    parts = lineage_nums(tables, connection, branch)
    names = load_document_names(connection, parts)
    return [(kind, name) for name in names for kind in DOCUMENT_KINDS if isinstance(kind, ValuesKind)]


def not_here(error: ErasedValues) -> ServiceError:
    """Make the error for bodies that are needed and not here: never come, or erased while what stood for them is void."""
    return ServiceError(
        "incomplete",
        f"{error}, and nothing that counts stands for them",
        "connect to a peer that has them; keep the branch here (`ravel repo keep`); adopt what is void of it "
        "(`ravel branch adopt`); or give them up, for everybody: "
        "`ravel branch compact --without-missing`",
    )


def deps_of(replaced: Iterable[DocumentCommit | DocumentValue], own: int) -> tuple[CommitId, ...]:
    """Return the replaced commits of the branch itself, whose places begin with `own`: no others may be deps."""
    return tuple(dict.fromkeys(one.place[-1] for one in replaced if one.place[0] == own))


def find_depths(tables: Replica | Tables, connection: Connection, branch: Branch) -> dict[int, int]:
    """Return the first parts of commits' places, by branch number. The branch itself has the last of them."""
    parts = reversed(lineage(tables, connection, branch))
    return {part.num: depth for depth, (part, _) in enumerate(parts)}


def _weight(opened: OpenedBody) -> int:
    """Return what a commit counts for in a bounded store of operations: its operations, or its bytes if they weigh more."""
    content = opened.content
    count = 0 if content is None else content.value_count + _replaced_count(content)
    return 1 + max(count, opened.size // _OPERATION_SIZE)


def _replaced_count(content: ValuesEdit | ValuesSnapshot) -> int:
    return sum(map(len, content.replaced().values())) if isinstance(content, ValuesEdit) else 0


def find_pasts(
    connection: Connection, parts: Sequence[tuple[Branch, tuple[CommitId, ...]]], bits: Mapping[CommitId, int]
) -> dict[CommitId, int]:
    """Map each commit to a bit set of the commits that have it in their past; leave out commits without any.

    `parts` are a branch and what it continues (`lineage`). Costs a look at each commit of them, void ones included.
    """
    if not bits:
        return {}
    found: dict[CommitId, int] = {}
    later = 0
    for branch, commits in parts:
        for commit_id in commits:  # where what came later began
            found[commit_id] = found.get(commit_id, 0) | later
        for commit_id, acks in load_graph(connection, branch.num):
            own = bits.get(commit_id, 0)
            passed_on = found.get(commit_id, 0) | own
            later |= own
            if passed_on:
                for ack in acks:
                    found[ack] = found.get(ack, 0) | passed_on
    return found
