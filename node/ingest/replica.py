"""In-memory view of followed repos: branches by topic and number, and each repo's membership.

Everything here is derived from the store and rebuilt from it at start; the store is what counts. Used from worker
threads: the tables are replaced whole, never changed in place, and show only what was committed.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import structlog
from sqlalchemy import Connection

from node.ingest.author_clocks import AuthorClocks
from node.ingest.key_givers import KeyGivingCommits
from node.ingest.membership_facts import NO_FACTS, MembershipFacts, find_facts
from node.ingest.membership_snapshots import (
    SAVED_AT_STOP_FROM,
    SAVED_FROM,
    restore_membership,
    save_membership,
    unsaved,
)
from node.ingest.own_feeds import OwnFeeds
from node.ingest.people import People
from node.ingest.publication_reading import open_parts
from node.ingest.recent_commits import RecentCommits
from node.ingest.tables import ShownTables, Tables, load_tables, renew_tables
from protocol.codec import DecodeError
from protocol.crypto.keys import ConvergenceSecret, StoreKey
from protocol.formats.block import WrongKey, decode_block
from protocol.formats.body import Body, ErasedBody, Permission, RepoInit, UnknownBody
from protocol.formats.commit import Commit, UnknownVersion, open_commit
from protocol.formats.declared_kind import read_body
from protocol.formats.epochs import EpochHand, EpochInit, StartParts
from protocol.formats.object import MissingBlocks
from protocol.ids import BlockId, CommitId, EpochId, RepoId, TopicKey, UserId
from storage.blobs.files import FileRow
from storage.blobs.packs import Packs
from storage.commits.blocks import DamagedBlock, read_blocks
from storage.commits.commits import TimelineRow, iterate_arrivals, load_rows
from storage.commits.damaged import DamagedCount, count_damaged, find_damaged_in
from storage.commits.pending import count_waiting
from storage.commits.pending_release import is_any_pending
from storage.engine.database import Database, StorageError
from storage.engine.id_keys import unpack_nums
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Branch, Repo, finish_join
from storage.repos.row_changes import forget_row_changes, row_changes
from storage.topics.publishing import MadeSignatures
from storage.topics.sketches import Sketches
from verifier.membership import Membership
from verifier.membership_snapshots import encode_parts
from verifier.posts import Hidden
from verifier.refusal import CommitRefused

log = structlog.get_logger()


class Replica:
    """The store and the tables that are kept in memory beside it."""

    def __init__(self, folder: Path, store_key: StoreKey | None = None, url: str = "") -> None:
        """Open the store of a folder, and of a PostgreSQL database where `url` names one. Raises StorageError."""
        self.database = Database(folder, store_key, url)
        try:
            self._open()
        except BaseException:
            self.database.close()
            raise

    def _open(self) -> None:
        self.packs = Packs(self.database)
        self.sketches = Sketches(self.database)
        self.signatures = MadeSignatures()
        """Topics' signatures of commits that others brought and this node has sent on."""
        self.recent_commits = RecentCommits()
        self.own_feeds = OwnFeeds(self.database.folder)
        self.author_clocks = AuthorClocks()
        self.packs.sweep()
        with self.database.read() as connection:
            self.has_damaged = count_damaged(connection) != DamagedCount(0, 0)
            """True if anything was damaged that peers are asked for; until none of it is left."""
        self.membership_lock = threading.RLock()
        """Held while memberships change or are asked: by a transaction that judges, until it is committed or undone."""
        self.givers = KeyGivingCommits()
        self.unreleased: dict[int, bool] = {}
        """Settled causes of which a transaction had no time to wake what waits for them (`storage.commits.pending_release`).

        A crash loses none: what waits and which causes are settled is in the store.
        """
        self.has_ready = False
        """True if commits were marked as ready to be judged, for want of time."""
        self.waiting: Mapping[int, int] = {}
        """How many commits wait for causes or keys, by the numbers of the topics that they came on; zeros are left out."""
        self._memberships: dict[RepoId, Membership] = {}
        self._facts: Mapping[RepoId, MembershipFacts] = {}
        self.people = People()
        """What people are called."""
        self.lobbies: Mapping[RepoId, RepoId] = {}
        """Lobbies (`protocol.formats.lobbies`), each with the repo that users ask for there, as it was last committed."""
        with self.database.read() as connection:
            self.shown = ShownTables(load_tables(connection))
            self.waiting = count_waiting(connection)
        self.own_feeds.load(repo.repo_id for repo in self.repos.values() if repo.has_members)
        for repo in self.repos.values():
            if repo.has_members:
                self._load_membership(repo.repo_id)
        self._show_facts(self.find_facts(repo.repo_id for repo in self.repos.values()))
        self._save_snapshots(SAVED_FROM)

    @property
    def tables(self) -> Tables:
        """The tables as the last change has left them: counts of commits may be older than the store's."""
        return self.shown.tables

    def read_tables(self) -> Tables:
        """Return the tables with the store's present counts. Reads only counts that have changed. Raises StorageError."""
        return self.shown.count(self.database)

    def _load_membership(self, repo_id: RepoId) -> None:
        """Load at start. A repo whose root branch has damaged commits has no membership until they are back."""
        try:
            self.membership(repo_id)
        except DamagedBlock as error:
            if self.find_damaged_root(repo_id) is None:
                raise
            log.error("a repo waits for damaged commits", repo=repo_id.hex(), error=str(error))

    def find_damaged_root(self, repo_id: RepoId) -> CommitId | None:
        """Return a damaged commit of a repo's root branch, if there is one. Raises StorageError."""
        if not self.has_damaged:
            return None
        root = self.tables.roots.get(repo_id)
        with self.database.read() as connection:
            return None if root is None else find_damaged_in(connection, root.num)

    def close(self) -> None:
        """Save what the next start need not judge again, and close the store."""
        try:
            self._save_snapshots(SAVED_AT_STOP_FROM)
        finally:
            self.database.close()

    @property
    def repos(self) -> Mapping[int, Repo]:
        """Repos by number."""
        return self.tables.repos

    @property
    def branches(self) -> Mapping[int, Branch]:
        """Branches by number."""
        return self.tables.branches

    def branches_in(self, repo_num: int) -> list[Branch]:
        """Branches of a repo."""
        return self.tables.branches_in(repo_num)

    def convergence_secret(self, row: TimelineRow | FileRow) -> ConvergenceSecret:
        """Return what the blocks of a stored commit were made with. Raises StorageError where its epoch is not here."""
        return self.tables.convergence_secret(row)

    @property
    def topics(self) -> Mapping[int, Topic]:
        """Topics by number."""
        return self.tables.topics

    @property
    def by_topic(self) -> Mapping[TopicKey, Topic]:
        """Topics by name."""
        return self.tables.by_topic

    def waiting_in(self, repo_num: int) -> int:
        """Count the commits of a repo that wait for causes or keys."""
        nums = self.tables.topics_of_repo.get(repo_num, ())
        return sum(self.waiting.get(num, 0) for num in nums) if self.waiting else 0

    @contextmanager
    def change(
        self, turn: AbstractContextManager[object] | None = None, *, is_patient: bool = False
    ) -> "Iterator[Change]":
        """Change repos, epochs, branches, topics and memberships in one write transaction: the only way to do so.

        The next writer begins when memory shows the store, so none judges by older tables. `membership_lock` is held from
        when this is the writer until then. When the block raises, neither store nor memory shows anything of it. Raises
        StorageError, and then too nothing changed. `turn` and `is_patient` are those of `Database.write`.
        """
        change = Change(self)
        with ExitStack() as until_shown:
            try:
                with self.database.write(turn, change.show, is_patient=is_patient) as connection:
                    until_shown.enter_context(self.membership_lock)
                    change.begin(connection)
                    yield change
                    change.prepare()
            except BaseException:  # an interrupt too: memory must not show what the store does not
                change.undo()
                raise

    def membership(self, repo_id: RepoId) -> Membership:
        """Return the membership of a repo; empty for one whose init is not here yet. Use it while `membership_lock` is held.

        Raises StorageError.
        """
        found = self._memberships.get(repo_id)
        if found is None:
            with self.database.read() as connection:
                found = open_membership(connection, self.tables, repo_id)
            self._memberships[repo_id] = found
        return found

    def _save_snapshots(self, least: int) -> None:
        """Save a snapshot of each repo that has had enough operations since its last one."""
        with self.membership_lock:
            due = [repo_id for repo_id, one in self._memberships.items() if unsaved(one) >= least]
        if not due or self.database.fault:
            return
        try:
            with self.change() as change:
                change.save_snapshots(due)
        except StorageError as error:  # nothing is lost: it is judged again
            log.warning("a snapshot of memberships was not kept", error=str(error))

    def permission(self, repo: Repo, user: UserId) -> Permission | None:
        """Return the present permission of a user in a repo; None if the user is not a member."""
        with self.membership_lock:
            return self.membership(repo.repo_id).now().permission(user)

    def was_member(self, repo: Repo, user: UserId) -> bool:
        """Return True if a user ever held a permission in a repo."""
        with self.membership_lock:
            return bool(self.membership(repo.repo_id).operations.grants_of(user))

    def members(self, repo: Repo) -> dict[UserId, Permission]:
        """Return every member of a repo with the highest permission held."""
        with self.membership_lock:
            return self.membership(repo.repo_id).now().members()

    def persons(self, repo_id: RepoId) -> Mapping[UserId, UserId]:
        """Map members of a repo who are devices of others to these, as it was last committed. Waits for nobody."""
        return self._facts.get(repo_id, NO_FACTS).persons

    @property
    def with_devices(self) -> list[RepoId]:
        """Repos in which anything is said of devices, as they were last committed."""
        return [repo_id for repo_id, facts in self._facts.items() if facts.has_devices]

    def has_own_user(self, repo_id: RepoId) -> bool:
        """Return True if this node's user is a member of a repo, as it was last committed. Waits for nobody."""
        return self._facts.get(repo_id, NO_FACTS).has_own_user

    def set_own_user(self, user: UserId) -> None:
        """State whose node this is, at its start. Costs O(repos)."""
        self.own_feeds.user = user
        with self.membership_lock:
            self._show_facts(self.find_facts(repo.repo_id for repo in self.repos.values()))

    def tells_of_devices(self, repo_id: RepoId) -> bool:
        """Return True if anything is said of devices in a repo, as it was last committed."""
        return self._facts.get(repo_id, NO_FACTS).has_devices

    def hidden(self, repo_id: RepoId) -> Hidden:
        """Return what admins of a repo have hidden, as it was last committed. Waits for nobody."""
        return self._facts.get(repo_id, NO_FACTS).hidden

    def find_facts(self, repo_ids: Iterable[RepoId]) -> Mapping[RepoId, MembershipFacts]:
        """Find the facts of these repos anew; returns only those that differ. Hold `membership_lock`."""
        found = {}
        for repo_id in repo_ids:
            before = self._facts.get(repo_id, NO_FACTS)
            facts = find_facts(self._memberships.get(repo_id), before, self.own_feeds.user)
            if facts is not before:
                found[repo_id] = facts
        return found

    def _show_facts(self, changed: Mapping[RepoId, MembershipFacts]) -> None:
        if changed:
            before, self._facts = self._facts, {**self._facts, **changed}
            if any(facts.lobby_of != before.get(one, NO_FACTS).lobby_of for one, facts in changed.items()):
                lobbies = ((repo_id, facts.lobby_of) for repo_id, facts in self._facts.items())
                self.lobbies = {repo_id: target for repo_id, target in lobbies if target is not None}
            self.people.set_facts(self._facts, changed)

    def show(self, change: "Change") -> None:
        """Show what was committed. For `Change` alone: nobody else knows that it was."""
        self.shown.show(
            change.tables,
            change.uncounted,
            change.moved,
            change.touched,
            change.rooted,
            is_counted=change.is_counted,
        )
        self._show_facts(change.facts)
        for repo_id, count in change.saved.items():
            self._memberships[repo_id].saved_count = count
        self.waiting = change.waiting
        self.unreleased, self.has_ready = change.unreleased, change.has_ready
        self.sketches.drop(change.reduced)

    def is_saving_due(self, repo_id: RepoId) -> bool:
        """Return True if enough operations of a membership were judged since its last snapshot to save another."""
        found = self._memberships.get(repo_id)
        return found is not None and unsaved(found) >= SAVED_FROM

    def forget_membership(self, repo_id: RepoId) -> None:
        """Forget a membership that an undone transaction had changed: it is built anew from what is committed."""
        self._memberships.pop(repo_id, None)

    def forget_invitation(self, repo: Repo) -> None:
        """Forget the link of a repo that was joined."""
        with self.change() as change:
            finish_join(change.connection, repo.num)

    def writing_epoch(self, repo: Repo) -> Epoch:
        """Return the epoch in which this node writes to a repo."""
        return self.tables.epochs[self.repos[repo.num].epoch_num]

    def root_branch(self, repo: Repo) -> Branch:
        """Return the repo's root branch."""
        found = self.tables.roots.get(repo.repo_id)
        if found is None:
            raise StorageError("a repo without a root branch")
        return found


class Change:
    """One write transaction, with the changes that the memory takes over after COMMIT."""

    connection: Connection
    tables: Tables
    """This transaction's own: others see a branch when it is committed."""
    unreleased: dict[int, bool]
    has_ready: bool

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.is_counted = False
        """True if the tables have the counts of this transaction, but of `uncounted` branches."""
        self.uncounted: set[int] = set()
        """Branches that have got commits since the tables were read."""
        self.moved: set[TopicKey] = set()
        """Topics that are new, gone, or of another number."""
        self.reduced: set[TopicKey] = set()
        """Topics that have lost commits, and stay."""
        self.changed_repos: set[RepoId] = set()
        """Repos whose membership it has changed."""
        self.touched: set[int] = set()
        """Numbers of repos of which it has changed anything."""
        self.rooted: set[int] = set()
        """Of these, such whose rows or root branches it has changed."""
        self.facts: Mapping[RepoId, MembershipFacts] = {}
        """Facts of changed repos that differ from those of before."""
        self.waiting: Mapping[int, int] = {}
        """As `Replica.waiting` is to be."""
        self.saved: dict[RepoId, int] = {}
        """Operations that snapshots of memberships are to have."""

    def begin(self, connection: Connection) -> None:
        """Take the tables as the last writer has left them: no other changes them before this one has ended."""
        self.connection, self.tables = connection, self._replica.tables
        forget_row_changes(connection)
        self.unreleased, self.has_ready = dict(self._replica.unreleased), self._replica.has_ready

    def refresh(self) -> Tables:
        """See the repos, epochs, branches and topics that this transaction has added or altered."""
        return self.reload() if row_changes(self.connection).is_structure else self.tables

    def reload(self) -> Tables:
        """Return this transaction's tables with counts of commits as they are now."""
        changes = row_changes(self.connection)
        before, counted = self.tables, set(changes.counted)
        if not self.is_counted:
            changes.counted |= self._replica.shown.stale()
        self.tables, moved = renew_tables(self.connection, self.tables, changes)
        self.moved |= moved
        self.reduced |= changes.reduced
        self.rooted |= changes.repos | changes.repo_rows
        self.touched |= self.rooted
        self._touch(changes.branches | counted, before)
        self.is_counted = True
        forget_row_changes(self.connection)
        return self.tables

    def prepare(self) -> None:
        """Read and compute what memory will show, while it can still fail with the transaction."""
        self.refresh()
        self.uncounted = row_changes(self.connection).counted
        self._touch(self.uncounted, self.tables)
        for tables in (self._replica.tables, self.tables):
            roots = (tables.roots.get(repo_id) for repo_id in self.changed_repos)
            self.rooted.update(root.repo_num for root in roots if root is not None)
        self.touched |= self.rooted
        self.facts = self._replica.find_facts(self.changed_repos)
        if is_any_pending(self.connection):
            self.waiting = count_waiting(self.connection)
        self.save_snapshots(one for one in self.changed_repos if self._replica.is_saving_due(one))

    def save_snapshots(self, repo_ids: Iterable[RepoId]) -> None:
        """Save the memberships of these repos as far as they grew since the last save. Costs O(that)."""
        for repo_id in repo_ids:
            root, membership = self.tables.roots.get(repo_id), self._replica.membership(repo_id)
            if root is not None:
                save_membership(self.connection, root.num, repo_id, membership)
                self.saved[repo_id] = len(membership.operations)

    def _touch(self, branch_nums: Iterable[int], before: Tables) -> None:
        """Note the repos of branches, some of which may be new or gone."""
        for num in branch_nums:
            branch = self.tables.branches.get(num) or before.branches.get(num)
            if branch is not None:
                self.touched.add(branch.repo_num)
                if branch.facts.is_root_branch:
                    self.rooted.add(branch.repo_num)

    def show(self) -> None:
        """Apply the committed changes to memory, before the next writer begins."""
        self._replica.show(self)

    def undo(self) -> None:
        """Take back what memory holds of it."""
        for repo_id in self.changed_repos:
            self._replica.forget_membership(repo_id)


def open_membership(connection: Connection, tables: Tables, repo_id: RepoId) -> Membership:
    """Load a repo's membership from its snapshot, and judge the commits since. Raises StorageError.

    Costs O(root branch commits), some 30 us each, and the judging of those since.
    """
    root = tables.roots.get(repo_id)
    if root is None:
        return Membership(repo_id)
    membership, rows = restore_membership(connection, root.num, repo_id)
    _judge_again(connection, tables, root, membership, rows)
    return membership


def load_membership(connection: Connection, tables: Tables, repo_id: RepoId) -> Membership:
    """Load a repo's membership from the accepted commits of its root branch alone. Raises StorageError."""
    membership = Membership(repo_id)
    root = tables.roots.get(repo_id)
    if root is not None:
        _judge_again(connection, tables, root, membership, iterate_arrivals(connection, [root.num]))
    return membership


def is_snapshot_wrong(connection: Connection, tables: Tables, repo_id: RepoId) -> bool:
    """Return True if judging the commits of a membership's snapshot, in its order, says something else than it does.

    Costs as `load_membership`. Raises StorageError.
    """
    root = tables.roots.get(repo_id)
    if root is None:
        return False
    restored, _ = restore_membership(connection, root.num, repo_id)
    names = [one.commit_id for one in restored.operations.since(0)]
    rows = load_rows(connection, names)
    judged = Membership(repo_id)
    _judge_again(connection, tables, root, judged, (rows[name] for name in names))
    return list(encode_parts(judged, repo_id, 0)) != list(encode_parts(restored, repo_id, 0))


def _judge_again(
    connection: Connection, tables: Tables, root: Branch, membership: Membership, rows: Iterable[TimelineRow]
) -> None:
    for row in rows:
        blocks = load_blocks_of(connection, [row])[row.num]
        commit, body = open_stored(tables, row, blocks)
        key, parts = None, None
        about = body.epoch if isinstance(body, EpochHand) else EpochId(row.commit_id)
        if isinstance(body, RepoInit | EpochInit | EpochHand):
            epoch = tables.find_epoch(root.repo_num, about)
            key = None if epoch is None else epoch.key
        if isinstance(body, EpochInit):
            parts = _open_parts(tables, row, body, blocks)
        try:
            operation = membership.authorise_root_commit(commit, body, key, parts, checks_boxes=False)
        except CommitRefused as error:
            raise StorageError(
                f"an older version accepted what this one refuses ({error}); join the repo anew, "
                "with another folder"
            ) from None
        membership.add(operation, commit.acks)


def load_start_parts(connection: Connection, tables: Tables, commit_id: CommitId) -> StartParts:
    """Load what an accepted init of an epoch names. Raises KeyError, DamagedBlock, StorageError."""
    row = load_rows(connection, [commit_id])[commit_id]
    blocks = load_blocks_of(connection, [row])[row.num]
    _, body = open_stored(tables, row, blocks)
    if not isinstance(body, EpochInit):
        raise StorageError(f"commit {commit_id.hex()} starts no epoch")
    return _open_parts(tables, row, body, blocks)


def _open_parts(tables: Tables, row: TimelineRow, body: EpochInit, blocks: list[bytes]) -> StartParts:
    found = {block.block_id: block for block in map(decode_block, blocks[1:])}
    try:
        return open_parts(body, found.get, tables.convergence_secret(row))
    except (MissingBlocks, WrongKey, DecodeError) as error:
        raise DamagedBlock(f"commit {row.commit_id.hex()}: {error}") from error


def load_blocks_of(connection: Connection, rows: list[TimelineRow]) -> dict[int, list[bytes]]:
    """Encoded blocks of each commit by its number, the commit's own first, hashed again. Raises DamagedBlock."""
    try:
        nums = {row.num: unpack_nums(row.block_nums) for row in rows}
        expected: dict[int, BlockId | None] = {num: None for of_one in nums.values() for num in of_one}
        expected.update((nums[row.num][0], row.commit_id) for row in rows)
    except (IndexError, TypeError) as error:  # no number, or a value of another type
        raise DamagedBlock(f"a commit's row does not name its blocks: {error}") from None
    encoded = read_blocks(connection, expected)
    return {num: [encoded[block_num] for block_num in block_nums] for num, block_nums in nums.items()}


def open_stored(
    tables: Tables | Replica, row: TimelineRow, encoded: list[bytes]
) -> tuple[Commit, Body | UnknownBody]:
    """Load an accepted commit and its body: an ErasedBody where it is not here, an UnreadableBody where another was said."""
    commit, body, _ = open_stored_commit(tables, row, encoded)
    return commit, body


def open_stored_commit(
    tables: Tables | Replica, row: TimelineRow, encoded: list[bytes]
) -> tuple[Commit, Body | UnknownBody, bytes]:
    """Open an accepted commit from its encoded blocks; the body's bytes are empty where it was erased or is unreadable.

    Raises DamagedBlock: what was accepted could be opened, so the row or one of its blocks has changed since.
    """
    secret = tables.convergence_secret(row)
    is_root_branch = tables.branches[row.branch_num].facts.is_root_branch
    try:
        commit = open_commit(decode_block(encoded[0]), row.commit_key, secret)
        if row.is_erased:
            return commit, ErasedBody(row.body_kind), b""
        blocks = {block.block_id: block for block in map(decode_block, encoded[1:])}
        body = read_body(commit, blocks.get, secret, is_root_branch=is_root_branch)
    except (MissingBlocks, WrongKey, DecodeError, UnknownVersion) as error:
        raise DamagedBlock(f"commit {row.commit_id.hex()}: {error}") from error
    return commit, *body
