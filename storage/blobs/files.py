"""Tables of a branch's files: which commits add or remove a file. Also reads file content from packs.

A file is one object that one commit added. A commit removes it when its header names the object among the negative
files and the commit that added it among the deps: an add that the remover had not seen stays. Which files there are
thus follows from the set of accepted commits alone.
"""

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select

from protocol.crypto.keys import BlockKey, ConvergenceSecret
from protocol.formats.block import Block, Reference
from protocol.formats.body import content_of
from protocol.formats.commit import Commit
from protocol.formats.content import Files
from protocol.formats.object import ObjectReader
from protocol.ids import AnyId, BlockId, CommitId, ObjectId, UserId
from storage.blobs.packs import Packs
from storage.commits.commits import NewCommit
from storage.engine.bulk import insert_rows, select_by_ids, select_in, select_rows
from storage.engine.column_encryption import cipher_of, file_place
from storage.engine.database import Database
from storage.engine.id_keys import chunks, id_key
from storage.schema.schema import (
    authors,
    awaited_adders,
    commits,
    file_removals,
    files,
    late_removals,
    spared_files,
)

_COLUMNS: Final = tuple(files.c.keys())
_REMOVERS = commits.alias()
IS_REMOVED: Final = (
    select(file_removals.c.file_num)
    .join(_REMOVERS, _REMOVERS.c.num == file_removals.c.commit_num)
    .where(file_removals.c.file_num == files.c.num, ~_REMOVERS.c.is_void)
    .exists()
)
"""Condition that a commit that counts removes a file."""
IS_SPARED: Final = (
    select(spared_files.c.file_num).where(spared_files.c.file_num == files.c.num).correlate(files).exists()
)
"""Condition that the content of a file was given up here."""
_THERE: Final = (
    select(
        files.c.num,
        files.c.object_id,
        files.c.object_key,
        files.c.name,
        files.c.size,
        commits.c.topic_num,
        commits.c.epoch_num,
        commits.c.commit_id,
        authors.c.user,
        commits.c.timestamp,
        commits.c.body_kind,
    )
    .join(commits, commits.c.num == files.c.commit_num)
    .join(authors, authors.c.num == commits.c.author_num)
    .where(~commits.c.is_void, ~IS_REMOVED, files.c.branch_num == bindparam("branch"))
    .order_by(files.c.num)
)
"""Files of a branch that no commit removes."""
_ADDED: Final = (
    select(files.c.commit_num, files.c.object_id, files.c.name, files.c.size)
    .where(files.c.commit_num.in_(bindparam("keys", expanding=True)), ~IS_REMOVED)
    .order_by(files.c.num)
)
_COUNTS: Final = (
    select(files.c.commit_num, func.count())
    .where(files.c.commit_num.in_(bindparam("keys", expanding=True)))
    .group_by(files.c.commit_num)
)
_OF_NAMES: Final = _THERE.where(files.c.name.in_(bindparam("keys", expanding=True)))
_AWAITING: Final = (
    select(awaited_adders.c.commit_num, awaited_adders.c.adder, late_removals.c.objects)
    .join(commits, commits.c.num == awaited_adders.c.commit_num)
    .join(late_removals, late_removals.c.commit_num == awaited_adders.c.commit_num)
    .where(awaited_adders.c.id_key == bindparam("key"), commits.c.branch_num == bindparam("branch"))
)
"""Commits of a branch that remove what a commit adds."""
_COMMIT_NUMS: Final = select(commits.c.commit_id, commits.c.num).where(
    commits.c.id_key.in_(bindparam("keys", expanding=True))
)


class AddedFileRow(NamedTuple):
    """File that a commit added: what its author says of it."""

    object_id: ObjectId
    name: str
    size: int | None


@dataclass(frozen=True, slots=True)
class FileRow:
    """File of a branch. Its key never shows in its repr."""

    num: int
    object_id: ObjectId
    object_key: BlockKey = field(repr=False)
    name: str
    size: int | None
    topic_num: int  # of the commit that added it
    epoch_num: int
    commit_id: CommitId
    author: UserId
    timestamp: int
    body_kind: str

    @property
    def reference(self) -> Reference | None:
        """Return what names and opens the content, or None if the author gave no key."""
        return Reference(self.object_id, self.object_key) if self.object_key else None


def apply_files(
    database: Database,
    connection: Connection,
    branch_num: int,
    nums: Sequence[int],
    new: Sequence[NewCommit],
) -> None:
    """Store what newly accepted commits (of the numbers `nums`) add and remove. Costs O(files named)."""
    touching = [
        (num, item)
        for num, item in zip(nums, new, strict=True)
        if item.verified.commit.links.files or item.verified.commit.links.nfiles
    ]
    if not touching:
        return
    rows: list[tuple[Any, ...]] = []
    for commit_num, item in touching:
        commit, body = item.verified.commit, content_of(item.verified.body)
        entries = body.added if isinstance(body, Files) else ()
        for place, object_id in enumerate(commit.links.files):
            name, size = (entries[place].name, entries[place].size) if entries else ("", None)
            rows.append((branch_num, commit_num, object_id, commit.content.file_keys[place], name, size))
    fresh = database.next_nums(connection, files, len(rows))
    mask = cipher_of(connection).mask
    sealed = [
        (num, branch, commit, object_id, mask(file_place(num, object_id), key), *rest)
        for num, (branch, commit, object_id, key, *rest) in zip(fresh, rows, strict=True)
    ]
    insert_rows(connection, files, _COLUMNS, sealed)
    for commit_num, item in touching:
        commit = item.verified.commit
        if commit.links.nfiles:
            _remove(connection, branch_num, commit_num, commit)
        if commit.links.files:
            _remove_late(connection, branch_num, commit_num, commit.commit_id)


def find_absent_adders(connection: Connection, commit: Commit) -> list[CommitId]:
    """Return the commits whose files this one removes, as far as they are not here."""
    if not commit.links.nfiles:
        return []
    deps = dict.fromkeys(commit.links.deps)
    return [dep for dep in deps if dep not in _find_adders(connection, deps)]


def find_unawaited_adders(connection: Connection, commit_num: int, commit: Commit) -> list[CommitId]:
    """Return those of a commit's absent adders (`find_absent_adders`) that are not recorded as they must be."""
    query = select(awaited_adders.c.adder, late_removals.c.objects).join(
        late_removals, late_removals.c.commit_num == awaited_adders.c.commit_num
    )
    rows = connection.execute(query.where(awaited_adders.c.commit_num == commit_num))
    kept = {row[0]: row[1] for row in rows}
    objects = b"".join(commit.links.nfiles)
    return [dep for dep in find_absent_adders(connection, commit) if kept.get(dep) != objects]


def await_adders(connection: Connection, commit_num: int, commit: Commit) -> None:
    """Record the absent commits whose files this one removes, in place of an earlier record."""
    for table in (awaited_adders, late_removals):
        connection.execute(delete(table).where(table.c.commit_num == commit_num))
    rows = [(id_key(dep), commit_num, dep) for dep in find_absent_adders(connection, commit)]
    if rows:
        insert_rows(connection, awaited_adders, ("id_key", "commit_num", "adder"), rows)
        removed = [(commit_num, b"".join(commit.links.nfiles))]
        insert_rows(connection, late_removals, ("commit_num", "objects"), removed)


def load_files(connection: Connection, branch_num: int, after: int, limit: int) -> list[FileRow]:
    """Load a window of the branch's files that are not removed, in order of arrival. Costs O(limit)."""
    return _load(connection, branch_num, files.c.num > after, limit)


def find_files(
    connection: Connection, branch_num: int, name: str, ids: tuple[AnyId, AnyId] | None, limit: int
) -> list[FileRow]:
    """Find files by name, else by a range of object ids (both ends included). Costs O(limit)."""
    forms = [unicodedata.normalize(form, name) for form in ("NFC", "NFD")]
    found = _load(connection, branch_num, files.c.name == name, limit)
    # Files keep the names that they have on disk, where macOS keeps letters and accents apart, and keyboards do not.
    found = found or _load(connection, branch_num, files.c.name.in_(forms), limit)
    if found or ids is None:
        return found
    return _load(connection, branch_num, files.c.object_id.between(*ids), limit)


def find_same_files(
    connection: Connection, branch_num: int, wanted: Collection[tuple[str, Reference]]
) -> dict[tuple[str, Reference], FileRow]:
    """Find the given names and contents that the branch has, each with its first file. Costs O(files of the names)."""
    found: dict[tuple[str, Reference], FileRow] = {}
    looked_for = set(wanted)
    for names in chunks([name for name, _ in wanted]):
        rows = select_in(connection, _OF_NAMES, names, branch=branch_num)
        for row in _as_files(connection, rows):  # one by one: a name may have been added any number of times
            if row.reference is not None and (row.name, row.reference) in looked_for:
                found.setdefault((row.name, row.reference), row)
    return found


def load_added(
    connection: Connection, commit_nums: Sequence[int], limit: int
) -> dict[int, list[AddedFileRow]]:
    """Load the files that these commits add and none removes, by the commit's number. Costs O(commits + limit).

    The first commits are taken, each whole, that have added `limit` files together: others cannot take a commit's files
    away from it.
    """
    counts: dict[int, int] = {}
    for part in chunks(commit_nums):
        counts.update(select_in(connection, _COUNTS, part))
    found: dict[int, list[AddedFileRow]] = {}
    for num in commit_nums:
        limit -= counts.get(num, 0)
        if limit < 0:
            break
        found[num] = []
    for part in chunks([*found]):
        for num, *row in select_in(connection, _ADDED, part):
            found[num].append(AddedFileRow(*row))
    return found


class StoredObject:
    """Object in the store, to be read piece by piece. Each call is one short read transaction."""

    def __init__(
        self, database: Database, packs: Packs, reference: Reference, convergence_secret: ConvergenceSecret
    ) -> None:
        """Find the size. Raises MissingBlocks, WrongKey, DecodeError `bad_tree`, StorageError."""
        self._database = database
        self._packs = packs
        with database.read() as connection:
            self._connection = connection
            self._reader = ObjectReader(reference, self._look_up, convergence_secret)

    @property
    def size(self) -> int:
        """Return the bytes of plaintext."""
        return self._reader.size

    def read(self, start: int, stop: int) -> list[bytes]:
        """Read the bytes from `start` to before `stop`, in pieces. Raises like the constructor. One thread at a time."""
        held = self.read_held(start, stop)
        if held is not None:
            return [held] if held else []
        with self._database.read() as connection:
            self._connection = connection
            return list(self._reader.read(start, stop))

    def find_missing(self, start: int, stop: int, limit: int) -> list[BlockId]:
        """Return the first blocks that have to come before this range can be read. Raises like the constructor."""
        with self._database.read() as connection:
            self._connection = connection
            return self._reader.find_missing(start, stop, partial(self._packs.find_held, connection), limit)

    def read_held(self, start: int, stop: int) -> bytes | None:
        """Return the bytes of a range if they are in memory, as all of a small object is; else None."""
        return self._reader.read_held(start, stop)

    def _look_up(self, block_id: BlockId) -> Block | None:
        return self._packs.find(self._connection, block_id)


def _remove(connection: Connection, branch_num: int, commit_num: int, commit: Commit) -> None:
    """Remove files as a commit states it (objects, and the commits that added them); record those that are absent."""
    adders = _find_adders(connection, dict.fromkeys(commit.links.deps))
    _keep_removed(connection, branch_num, commit_num, list(adders.values()), commit.links.nfiles)
    await_adders(connection, commit_num, commit)


def _find_adders(connection: Connection, deps: Collection[CommitId]) -> dict[CommitId, int]:
    """Find the numbers of the given commits that are here."""
    return dict(select_by_ids(connection, _COMMIT_NUMS, deps))


def _remove_late(connection: Connection, branch_num: int, commit_num: int, commit_id: CommitId) -> None:
    """Remove what a commit has added and others have removed that came before it."""
    rows = select_rows(connection, _AWAITING, key=id_key(commit_id), branch=branch_num)
    for remover_num, adder, objects in [*rows]:
        if adder == commit_id:
            ids = [objects[start : start + 32] for start in range(0, len(objects), 32)]
            _keep_removed(connection, branch_num, remover_num, [commit_num], ids)


def _keep_removed(
    connection: Connection,
    branch_num: int,
    remover_num: int,
    adders: Sequence[int],
    objects: Sequence[bytes],
) -> None:
    for part in chunks(objects):
        named = select(files.c.num).where(
            files.c.branch_num == branch_num,
            files.c.object_id.in_(part),
            files.c.commit_num.in_(adders),
        )
        removed = [
            {"file_num": num, "commit_num": remover_num} for num in connection.execute(named).scalars()
        ]
        if removed:
            connection.execute(insert(file_removals), removed)


def _load(
    connection: Connection, branch_num: int, condition: ColumnElement[bool], limit: int
) -> list[FileRow]:
    query = _THERE.where(condition).limit(limit)
    return [*_as_files(connection, connection.execute(query, {"branch": branch_num}))]


def _as_files(connection: Connection, rows: Iterable[tuple[Any, ...]]) -> Iterator[FileRow]:
    mask = cipher_of(connection).mask
    for num, object_id, key, *rest in rows:
        yield FileRow(num, object_id, mask(file_place(num, object_id), key), *rest)
