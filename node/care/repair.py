"""`ravel fsck --repair`: fixes what this folder allows, and lists for peers what must be fetched again.

One transaction of the stopped node's store, after a copy of it: damaged blocks are taken out, rows are made again from
commits and ranks, heads, marks and counts from rows, and everything is checked again. Commits and blocks whose bytes are
not here any more are written down as damaged; the daemon asks peers for them (`node.sync.block_repair`). What is wrong after
that cannot be put right here, and is named. Killed at any moment, the store is as it was, or repaired.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from node.care.fsck import check_all
from node.home.folder_mark import check_store_stayed, write_mark
from node.home.home import hold_content, lock_home
from node.ingest.publication_parsing import Opened
from node.ingest.replica import load_membership
from node.ingest.stored_commits import (
    UNREADABLE,
    open_kept,
    wanted_columns,
    wanted_files,
    wanted_second_place,
)
from node.ingest.tables import Tables, load_tables
from node.ingest.void_recheck import VoidRecheck
from protocol.crypto.keys import BlockKey, StoreKey
from protocol.formats.commit import Commit
from protocol.ids import BlockId, ObjectId
from storage.blobs.files import await_adders, find_unawaited_adders
from storage.blobs.packs import Packs
from storage.check.check_integrity import CheckFindings
from storage.check.kept_rows import (
    CheckpointRow,
    drop_erasure,
    drop_files,
    find_erased,
    find_removed_files,
    load_kept_files,
    load_kept_removals,
    load_kept_rows,
    load_nums_on,
    load_second_places,
    load_void_marks,
    rewrite_checkpoint,
    rewrite_commit,
    rewrite_removals,
    rewrite_second_places,
    write_file,
)
from storage.check.rebuild_file import RebuildResult, find_damage, rebuild_store
from storage.check.repair_derived import (
    drop_index,
    drop_wrong_pending,
    drop_wrong_sketches,
    repair_forks,
    repair_heads,
    repair_keys,
    repair_order,
    repair_passed,
    repair_places,
    repair_sums,
    reset_edits,
)
from storage.check.repair_relay import drop_wrong_accounts, repair_relayed, repair_relayed_files
from storage.check.salvage import drop_dangling, find_bodiless, mark_content_damaged, remove_damaged
from storage.commits.commits import number_authors, number_places
from storage.commits.damaged import DamagedCount, count_damaged, mark_commits_damaged
from storage.commits.document_index_rows import reset_indexes
from storage.commits.document_making import reset_documents
from storage.commits.kept_texts import drop_all_texts
from storage.engine.column_encryption import ColumnCipher, cipher_of, file_place
from storage.engine.database import DATABASE_NAME, Database, LostStore, StorageError, read_store
from storage.engine.id_keys import PackedIds, chunks, pack_ids, unpack_ids
from storage.engine.losses import Loss, discard_lost_store, read_loss, settle_loss
from storage.repos.epochs import Topic
from storage.repos.membership_parts import drop_all_parts
from storage.repos.repos import Branch
from storage.schema.schema import files
from verifier.verify import find_checkpoint

COPY_LABEL: Final = "before-repair"
_BATCH: Final = 200


@dataclass(slots=True)
class RepairReport:
    """Findings before and after a repair, and the changes between."""

    found: CheckFindings
    left: CheckFindings
    changed: Counter[str] = field(default_factory=Counter)
    """Rows that were changed, by what they are about; `blocks`: those that were taken out."""
    damaged: DamagedCount = field(default_factory=lambda: DamagedCount(0, 0))
    copy: Path | None = None
    """The store as it was before."""


class _RolledBack(Exception):
    """Raised to roll a repair back."""


def repair_store(
    home: Path, store_key: StoreKey | None, url: str = "", *, dry_run: bool = False
) -> RepairReport:
    """Put right what can be; with `dry_run` do all of it, and keep nothing. Raises ServiceError, StorageError."""
    with lock_home(home), hold_content(home, alone=True):
        rebuilt: RebuildResult | None = None
        if not url and (damage := find_damage(home)).kinds:
            if dry_run:
                return RepairReport(damage, damage, Counter(database=1))
            rebuilt = rebuild_store(home, store_key)
        with read_store(home, store_key, url):
            pass  # of this schema, and of these keys: nothing is migrated here
        database = Database(home, store_key, url)
        try:
            found = _repair(database, home, dry_run=dry_run)
            if rebuilt is not None:
                # Another object: what is left may be the same one.
                found.found = replace(found.found, kinds=found.found.kinds + damage.kinds)
                found.changed["database"] += 1
                found.changed["recalled"] += rebuilt.recalled.total()
                found.changed["dropped"] += rebuilt.dropped
                found.changed = +found.changed
                found.copy = rebuilt.kept
            if found.copy is not None:
                Packs(database).sweep()
            return found
        finally:
            database.close()


def _repair(database: Database, home: Path, *, dry_run: bool) -> RepairReport:
    repair: RepairReport | None = None
    try:
        with database.write() as connection:
            found = check_all(connection, home)
            repair = RepairReport(found, found)
            if found.kinds and not found.kinds["database"]:
                work = _Work(database, connection, home)
                work.run(found)
                repair.changed = +work.changed
                repair.left = check_all(connection, home)
            repair.damaged = count_damaged(connection)
            if dry_run or not repair.changed:
                raise _RolledBack
            repair.copy = database.copy_aside(COPY_LABEL)
    except _RolledBack:
        assert repair is not None, "raised after it"
    return repair


class _Work:
    """State of one repair in its transaction."""

    def __init__(self, database: Database, connection: Connection, home: Path) -> None:
        self._database = database
        self._connection = connection
        self._home = home
        self._cipher: ColumnCipher = cipher_of(connection)
        self._unreadable: list[int] = []
        self._removers: list[tuple[int, int, Commit]] = []  # the commit's number, its branch's, and it
        self.changed: Counter[str] = Counter()

    def run(self, found: CheckFindings) -> None:
        """Repair everything, each thing after those that it is derived from."""
        connection, changed = self._connection, self.changed
        removed = remove_damaged(connection, found.damage)
        changed["blocks"] += removed.count
        changed["packs"] += len(found.damage.sizes)
        changed["references"] += drop_dangling(connection)
        changed["commits"] += repair_keys(connection)
        try:
            tables = load_tables(connection)
        except UNREADABLE:  # the check names it
            tables = None
        if tables is not None:
            self._restate_commits(tables)
        changed["damaged"] += mark_commits_damaged(
            connection, {*find_bodiless(connection), *self._unreadable}
        )
        changed["damaged"] += mark_content_damaged(connection, self._home, removed)
        changed["places"] += repair_places(connection)
        changed["heads"] += repair_heads(connection)
        changed["feeds"] += repair_forks(connection)
        moved = self._restate_voids(tables) if tables is not None else Counter[int]()
        changed["voids"] += moved.total()
        passed = repair_passed(connection)
        changed["passed"] += sum(passed.values())
        changed["orders"] += repair_order(connection)
        changed["counts"] += repair_sums(connection)
        reset_edits(self._database, connection, sorted(moved.keys() | passed.keys()))
        changed["sketches"] += drop_wrong_sketches(connection, {} if tables is None else tables.by_topic)
        changed["waiting"] += drop_wrong_pending(connection)
        changed["relayed"] += repair_relayed(connection)
        if found.kinds["membership"] or +changed:  # as for the index
            changed["memberships"] += drop_all_parts(connection)
        if found.kinds["document"] or +changed:  # as for the index
            changed["documents"] += reset_documents(self._database, connection)
        if found.kinds["document index"] or +changed:
            changed["document indexes"] += reset_indexes(connection)
        if found.kinds["search"] or +changed:  # it may be of commits that are otherwise now
            changed["search"] += drop_index(connection)
        if found.kinds["text"] or +changed:  # the same
            changed["texts"] += drop_all_texts(connection)
        changed["relayed"] += repair_relayed_files(connection, found.damage.relayed, int(time.time() * 1000))
        changed["accounts"] += drop_wrong_accounts(connection)

    def _restate_commits(self, tables: Tables) -> None:
        for topic in tables.topics.values():
            for branch_num, part in load_nums_on(self._connection, topic.num):
                self._restate_part(tables, topic, tables.branches[branch_num], part)
        for num, branch_num, commit in self._removers:
            self._restate_removals(num, find_removed_files(self._connection, branch_num, commit))
            if find_unawaited_adders(self._connection, num, commit):
                await_adders(self._connection, num, commit)
                self.changed["files"] += 1

    def _restate_part(self, tables: Tables, topic: Topic, branch: Branch, nums: Sequence[int]) -> None:
        opened: dict[int, Opened] = {}
        for num, found in open_kept(self._connection, topic, nums):
            if isinstance(found, str):
                self._unreadable.append(num)
            else:
                opened[num] = found
        kept_files = load_kept_files(self._connection, nums)
        removals = load_kept_removals(self._connection, nums)
        second_places = load_second_places(self._connection, nums)
        bodies = find_erased(self._connection, nums)
        for row in load_kept_rows(self._connection, nums):
            num = row["num"]
            if num not in opened:
                continue
            commit = opened[num].signed.commit
            self._restate_row(tables, topic, branch, row, opened[num])
            second = wanted_second_place(tables, topic, branch, opened[num])
            if second_places.get(num, set()) != second:
                rewrite_second_places(self._connection, num, second)
                self.changed["commits"] += 1
            self._restate_checkpoint(branch, num, opened[num])
            kept = kept_files.get(num, [])
            if [file for _, file in kept] != wanted_files(opened[num]):
                self._restate_files(branch, num, [file_num for file_num, _ in kept], opened[num])
            if commit.links.nfiles:
                self._removers.append((num, branch.num, commit))
            elif num in removals:
                self._restate_removals(num, set())
            if num in bodies and opened[num].publication.body_id is None:
                drop_erasure(self._connection, num)
                self.changed["erasures"] += 1

    def _restate_row(
        self, tables: Tables, topic: Topic, branch: Branch, row: dict[str, Any], opened: Opened
    ) -> None:
        values = wanted_columns(self._cipher, tables, topic, branch, opened)
        values = {column: value for column, value in values.items() if row[column] != value}
        if "seen" in values:
            seen = unpack_ids(PackedIds(values.pop("seen") or b""))
            values["place_num"] = number_places(self._database, self._connection, {seen})[seen]
        if "user" in values:
            user = values.pop("user")
            values["author_num"] = number_authors(self._database, self._connection, {user})[user]
        if values:
            rewrite_commit(self._connection, row["num"], values)
            self.changed["commits"] += 1

    def _restate_checkpoint(self, branch: Branch, num: int, opened: Opened) -> None:
        commit, body = opened.signed.commit, opened.signed.body
        wanted = None
        checkpoint = find_checkpoint(body, branch.facts)
        if checkpoint is not None:
            wanted = CheckpointRow(branch.num, checkpoint.proposal, pack_ids(sorted(commit.acks)))
        if rewrite_checkpoint(self._connection, num, wanted):
            self.changed["checkpoints"] += 1

    def _restate_files(self, branch: Branch, num: int, kept: Sequence[int], opened: Opened) -> None:
        """Write the rows of a commit's files again. Rows that are there keep their numbers, which others name."""
        wanted = wanted_files(opened)
        surplus = kept[len(wanted) :]
        drop_files(self._connection, surplus)
        fresh = self._database.next_nums(self._connection, files, max(0, len(wanted) - len(kept)))
        for file_num, (object_id, key, name, size) in zip([*kept, *fresh], wanted, strict=False):
            assert isinstance(object_id, bytes), "an id"
            assert isinstance(key, bytes), "a key"
            place = file_place(file_num, ObjectId(BlockId(object_id)))
            values = {
                "branch_num": branch.num,
                "commit_num": num,
                "object_id": object_id,
                "object_key": self._cipher.mask(place, BlockKey(key)),
                "name": name,
                "size": size,
            }
            write_file(self._connection, file_num, values, is_new=file_num in fresh)
        self.changed["files"] += 1

    def _restate_removals(self, num: int, wanted: set[int]) -> None:
        kept = load_kept_removals(self._connection, [num]).get(num, set())
        if kept == wanted:
            return
        rewrite_removals(self._connection, num, wanted)
        self.changed["files"] += 1

    def _restate_voids(self, tables: Tables) -> Counter[int]:
        """Put void marks right, and count them by branch. Repos whose membership cannot be read stay as they are."""
        moved: Counter[int] = Counter()
        for repo in tables.repos.values():
            try:
                membership = load_membership(self._connection, tables, repo.repo_id)
            except UNREADABLE:
                continue
            review = VoidRecheck(self._connection, tables, repo.num, membership)
            for branch in tables.branches.values():
                if branch.repo_num == repo.num:
                    moved += self._restate_voids_of(branch, review)
        return moved

    def _restate_voids_of(self, branch: Branch, review: VoidRecheck) -> Counter[int]:
        moved: Counter[int] = Counter()
        for part in chunks(load_void_marks(self._connection, branch.num), _BATCH):
            is_void = review.find_voids(branch, [commit_id for _, commit_id, _ in part])
            for num, commit_id, kept in part:
                wanted = is_void.get(commit_id, kept)
                if wanted != kept:
                    rewrite_commit(self._connection, num, {"is_void": wanted})
                    moved[branch.num] += 1
        return moved


def accept_loss(home: Path) -> Loss | None:
    """Write to all repos again with what is here, of a stopped node; gives what had been lost, if anything.

    In the place of a store that is lost the next start makes an empty one. Raises ServiceError `already_running`,
    OSError.
    """
    with lock_home(home):
        try:
            check_store_stayed(home)
            with read_store(home):
                pass
        except LostStore:
            discard_lost_store(home, home / DATABASE_NAME)
            write_mark(home)
        except StorageError:  # it is looked at next, by who accepts the loss
            pass
        loss = read_loss(home)
        settle_loss(home, ())
    return loss
