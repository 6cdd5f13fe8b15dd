"""`Tables`: repos, epochs and branches as one moment of the store has them, in memory.

A node may have thousands of branches, and most changes touch one. So tables are made of those before them, and only of
changed rows anew (`storage.repos.row_changes`).
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import TypeVar

from sqlalchemy import Connection

from node.ingest.layered_map import LayeredMap
from protocol.epochs import EpochInit
from protocol.ids import BranchId, EpochId, RepoId, TopicKey
from storage.engine.database import Database
from storage.repos.repos import Branch, Epoch, Repo, load_counts, load_epochs, load_repos, make_branches
from storage.repos.row_changes import RowChanges
from verifier.epochs import find_preferred
from verifier.membership import Membership, mark_of

K = TypeVar("K")
V = TypeVar("V")
Row = TypeVar("Row", bound=Branch | Repo)


@dataclass(frozen=True, slots=True)
class Tables:
    """Repos, epochs and branches as one moment of the store has them. Each table is in the order of its numbers."""

    repos: Mapping[int, Repo]
    of_id: Mapping[RepoId, Repo]
    repos_named: Mapping[str, tuple[int, ...]]  # numbers of repos by their names
    invited: Mapping[int, Repo]  # of these, such as keep the link that they were joined or asked for by
    epochs: Mapping[int, Epoch]
    branches: Mapping[int, Branch]  # on the topic that this node writes to
    on_topics: Mapping[int, Branch]  # on each topic, by its number
    by_topic: Mapping[TopicKey, Branch]
    roots: Mapping[RepoId, Branch]  # root branches, by their repos' ids
    topics_of: Mapping[int, tuple[Branch, ...]]  # by the branch's number: the branch on each of its topics
    epochs_of_repo: Mapping[int, tuple[int, ...]]  # by the repo's number: numbers of its epochs
    branches_of_repo: Mapping[int, tuple[int, ...]]  # likewise of its branches
    branches_of_id: Mapping[
        BranchId, tuple[int, ...]
    ]  # numbers of branches by their ids, which two repos may state
    branches_named: Mapping[str, tuple[int, ...]]  # and by their names
    commit_count: int  # of all branches, without void ones

    def branches_in(self, repo_num: int) -> list[Branch]:
        """Branches of a repo, on the topics that this node writes to."""
        return [self.branches[num] for num in self.branches_of_repo.get(repo_num, ())]

    def on_topics_in(self, repo_num: int) -> list[Branch]:
        """Branches of a repo on each of their topics."""
        return [one for num in self.branches_of_repo.get(repo_num, ()) for one in self.topics_of[num]]

    def repos_with_name(self, name: str) -> list[Repo]:
        """Repos of a name: a user's own, and what others call theirs."""
        return [self.repos[num] for num in self.repos_named.get(name, ())]

    def with_id(self, branch_id: BranchId) -> list[Branch]:
        """Branches of an id, of all repos."""
        return [self.branches[num] for num in self.branches_of_id.get(branch_id, ())]

    def with_name(self, name: str) -> list[Branch]:
        """Branches of a name, of all repos."""
        return [self.branches[num] for num in self.branches_named.get(name, ())]

    def epochs_in(self, repo_num: int) -> list[Epoch]:
        """Epochs of a repo."""
        return [self.epochs[num] for num in self.epochs_of_repo.get(repo_num, ())]

    def epochs_of(self, repo: Repo, membership: Membership) -> dict[EpochId, Epoch]:
        """A repo's epochs whose secrets are here, by id.

        Of several secrets that were said to be one epoch's, those that its init marks count; while that is not here, and
        for the first epoch, those that brought commits, else what was said first.
        """
        used = {
            branch.epoch_num
            for branch in self.on_topics_in(repo.num)
            if branch.facts.is_root_branch and branch.topic_commit_count
        }
        found: dict[EpochId, Epoch] = {}
        said = self.epochs_in(repo.num)
        for epoch in sorted(said, key=lambda one: (one.num != repo.epoch_num, one.num not in used, one.num)):
            started = membership.operations.find(epoch.epoch_id)
            if (
                started is not None
                and isinstance(started.body, EpochInit)
                and started.body.mark != mark_of(repo.repo_id, epoch.read_secret)
            ):
                continue
            found.setdefault(epoch.epoch_id, epoch)
        return found


_NOTHING = Tables({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, 0)


def load_tables(connection: Connection) -> Tables:
    """The tables as this transaction sees them, its own changes included, read and made whole."""
    repos = {repo.num: repo for repo in load_repos(connection)}
    epochs = {epoch.num: epoch for epoch in load_epochs(connection)}
    tables = replace(
        _NOTHING,
        repos=repos,
        of_id={repo.repo_id: repo for repo in repos.values()},
        repos_named=_numbers((repo.name, repo.num) for repo in repos.values()),
        invited=_invited(repos),
        epochs=epochs,
        epochs_of_repo=_numbers((one.repo_num, one.num) for one in epochs.values()),
    )
    return _with_branches(tables, (), make_branches(connection, repos, epochs))


def renew_tables(connection: Connection, before: Tables, changes: RowChanges) -> tuple[Tables, set[TopicKey]]:
    """Tables of this transaction, made of those before it: only rows that have changed are read again.

    Also gives topics that are new, gone, or of another number now.
    """
    tables = _with_repos(connection, before, changes.repos) if changes.repos else before
    nums = {num for repo_num in changes.repos for num in before.branches_of_repo.get(repo_num, ())}
    nums |= changes.branches
    found = []
    if changes.is_structure:
        found = make_branches(connection, tables.repos, tables.epochs, changes.repos, changes.branches)
    places = {(one.topic, one.topic_num) for num in nums for one in before.topics_of.get(num, ())}
    moved = {topic for topic, _ in places.symmetric_difference((one.topic, one.topic_num) for one in found)}
    counted = _counted(connection, before, changes.counted - nums)
    return _with_branches(tables, nums.union(one.num for one in counted), [*found, *counted]), moved


def count_anew(connection: Connection, tables: Tables, branch_nums: Collection[int]) -> Tables:
    """The same tables with the counts of commits of these branches as this transaction sees them."""
    found = _counted(connection, tables, branch_nums)
    return _with_branches(tables, {branch.num for branch in found}, found)


def _counted(connection: Connection, tables: Tables, branch_nums: Collection[int]) -> list[Branch]:
    """Branches on all their topics, with new counts."""
    counts = load_counts(connection, branch_nums)
    return [
        replace(
            branch,
            topic_commit_count=counts[branch.topic_num].of_topic,
            commit_count=counts[branch.topic_num].of_branch,
            void_count=counts[branch.topic_num].void,
        )
        for num in branch_nums
        for branch in tables.topics_of.get(num, ())
        if branch.topic_num in counts  # else it was forgotten meanwhile
    ]


def _with_repos(connection: Connection, before: Tables, nums: Collection[int]) -> Tables:
    """Tables in which these repos and their epochs are as this transaction sees them; not yet their branches."""
    repos = {repo.num: repo for repo in load_repos(connection, nums)}
    epochs = {epoch.num: epoch for epoch in load_epochs(connection, nums)}
    old_epochs = [num for repo_num in nums for num in before.epochs_of_repo.get(repo_num, ())]
    return replace(
        before,
        repos=_replaced(before.repos, nums, repos),
        of_id=_replaced(
            before.of_id,
            [before.repos[num].repo_id for num in nums if num in before.repos],
            {repo.repo_id: repo for repo in repos.values()},
        ),
        repos_named=_grouped(
            before.repos_named,
            [before.repos[num] for num in nums if num in before.repos],
            repos.values(),
            lambda one: one.name,
        ),
        invited=_replaced(before.invited, nums, _invited(repos)),
        epochs=_replaced(before.epochs, old_epochs, epochs),
        epochs_of_repo=_replaced(
            before.epochs_of_repo, nums, _numbers((one.repo_num, one.num) for one in epochs.values())
        ),
    )


def _invited(repos: Mapping[int, Repo]) -> dict[int, Repo]:
    return {num: repo for num, repo in repos.items() if repo.invitation is not None}


def _with_branches(before: Tables, nums: Collection[int], found: Collection[Branch]) -> Tables:
    """Tables in which the branches with these numbers are those found, on all their topics."""
    if not nums and not found:
        return before
    of_branch = {
        num: tuple(each) for num, each in groupby(sorted(found, key=_place), key=lambda one: one.num)
    }
    old = [one for num in nums for one in before.topics_of.get(num, ())]
    new = sorted((one for each in of_branch.values() for one in each), key=lambda one: one.topic_num)
    current = {num: _current(before.repos[each[0].repo_num], each) for num, each in of_branch.items()}
    roots = {one.facts.repo_id: one for one in current.values() if one.facts.is_root_branch}
    replaced = [num for num in nums if num in before.branches]
    return replace(
        before,
        branches=_replaced(before.branches, nums, current),
        on_topics=_replaced(
            before.on_topics, [one.topic_num for one in old], {one.topic_num: one for one in new}
        ),
        by_topic=_replaced(before.by_topic, [one.topic for one in old], {one.topic: one for one in new}),
        roots=_replaced(before.roots, [one.facts.repo_id for one in old if one.facts.is_root_branch], roots),
        topics_of=_replaced(before.topics_of, nums, of_branch),
        branches_of_repo=_grouped(before.branches_of_repo, old, current.values(), lambda one: one.repo_num),
        branches_of_id=_grouped(before.branches_of_id, old, current.values(), lambda one: one.branch_id),
        branches_named=_grouped(before.branches_named, old, current.values(), lambda one: one.name),
        commit_count=before.commit_count
        + sum(one.commit_count - one.void_count for one in current.values())
        - sum(before.branches[num].commit_count - before.branches[num].void_count for num in replaced),
    )


def _place(branch: Branch) -> tuple[int, int]:
    return branch.num, branch.topic_num


def _current(repo: Repo, on_topics: Iterable[Branch]) -> Branch:
    """A branch on the topic of the epoch that is written in, else of the latest that has it."""
    return max(
        on_topics,
        key=lambda one: (one.epoch_num == repo.epoch_num, one.epoch_num, one.generation, one.topic_num),
    )


def _grouped(
    before: Mapping[K, tuple[int, ...]],
    old: Iterable[Row],
    new: Iterable[Row],
    key_of: Callable[[Row], K],
) -> Mapping[K, tuple[int, ...]]:
    """Numbers of branches, or of repos, by a key, when the old ones have been replaced by the new ones."""
    gone, come = (
        _numbers((key_of(one), one.num) for one in old),
        _numbers((key_of(one), one.num) for one in new),
    )
    if gone == come:
        return before
    others: dict[K, tuple[int, ...]] = {}
    for key in gone.keys() | come.keys():
        nums = {*before.get(key, ())}.difference(gone.get(key, ())).union(come.get(key, ()))
        if nums:
            others[key] = tuple(sorted(nums))
    return _replaced(before, gone, others)


def _numbers(pairs: Iterable[tuple[K, int]]) -> dict[K, tuple[int, ...]]:
    """Numbers by the key that each has, of pairs of key and number."""
    found: dict[K, set[int]] = {}
    for key, num in pairs:
        found.setdefault(key, set()).add(num)
    return {key: tuple(sorted(nums)) for key, nums in found.items()}


def _replaced(before: Mapping[K, V], gone: Collection[K], new: Mapping[K, V]) -> Mapping[K, V]:
    """Without some, and with new ones. What has the key of one that is gone stands in its place; others come last."""
    if not new and not any(key in before for key in gone):
        return before
    layered = before if isinstance(before, LayeredMap) else LayeredMap(before)
    return layered.replaced(gone, new)


def _note(log: dict[K, int], keys: Iterable[K], tick: int) -> None:
    """Note a change of these keys, as the latest."""
    for key in keys:
        log.pop(key, None)
        log[key] = tick


def _since(log: dict[K, int], tick: int) -> list[K]:
    """What has changed after a tick: looks at no older changes but one."""
    return list(takewhile(lambda key: log[key] > tick, reversed(log)))


class ShownTables:
    """The tables that memory shows, which branches have got commits since these were read, and which topics have changed.

    Thread-safe.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        """As last shown: counts of commits may be older than the store's."""
        self._lock = threading.Lock()
        self._tick = 0
        # By number of a branch, and by topic: the tick of the last change, the latest last.
        self._changed: dict[int, int] = {}
        self._moved: dict[TopicKey, int] = {}
        # The same by the number of a repo: of what the store has of it, and of what is known of it besides.
        self._touched: dict[int, int] = {}
        self._restated: dict[int, int] = {}
        self._rooted: dict[
            int, int
        ] = {}  # of those that were touched: their rows, or their root branches, are others
        self._counting = threading.Lock()
        # Tables that were shown, the same with newer counts, and the tick up to which.
        self._counted = (tables, tables, 0)
        # Tables that were shown, the tick up to which commits were counted, their sum, and newer counts by branch.
        self._total: tuple[Tables | None, int, int, dict[int, int]] = (None, 0, 0, {})

    def stale(self) -> set[int]:
        """Branches whose counts in `tables` are old."""
        with self._lock:
            return set(self._changed)

    def show(
        self,
        tables: Tables,
        changed: Iterable[int],
        moved: Iterable[TopicKey] = (),
        touched: Iterable[int] = (),
        rooted: Iterable[int] = (),
        *,
        is_counted: bool,
    ) -> None:
        """Show these tables; branches that `changed` have got commits since, and topics have `moved` (`renew_tables`).

        `touched` are repos of which anything is otherwise; of those that are `rooted` their rows or root branches.
        `is_counted`: the counts of all other branches are new.
        """
        with self._lock:
            self._tick += 1
            self.tables = tables
            if is_counted:
                self._changed = {}
            _note(self._changed, changed, self._tick)
            _note(self._moved, moved, self._tick)
            _note(self._touched, touched, self._tick)
            _note(self._rooted, rooted, self._tick)

    def touch(self, branch: Branch) -> None:
        """Note that the store has got more of a branch than these tables show: commits that wait, or were rejected."""
        with self._lock:
            self._tick += 1
            _note(self._touched, [branch.repo_num], self._tick)
            if branch.facts.is_root_branch:
                _note(self._rooted, [branch.repo_num], self._tick)

    def restate(self, repo_nums: Iterable[int]) -> None:
        """Note that these repos are to be described anew, for a reason that is in no branch of theirs."""
        with self._lock:
            self._tick += 1
            _note(self._restated, repo_nums, self._tick)

    def repos_since(self, tick: int | None) -> tuple[int, list[int], list[int]]:
        """The tick of now, and repos that were touched after a tick, then those that were restated.

        Some may be gone. After None: all there are were touched.
        """
        with self._lock:
            if tick is None:
                return self._tick, list(self.tables.repos), []
            return self._tick, _since(self._touched, tick), _since(self._restated, tick)

    def topics_since(self, tick: int | None) -> tuple[int, Mapping[TopicKey, Branch], list[TopicKey]]:
        """The tick of now, branches by topic, and topics that have moved after a tick; after None: all there are."""
        with self._lock:
            by_topic = self.tables.by_topic
            return self._tick, by_topic, list(by_topic) if tick is None else _since(self._moved, tick)

    def roots_since(self, tick: int | None) -> tuple[int, list[int]]:
        """The tick of now, and repos whose rows or root branches have changed after a tick, also such as are gone.

        After None: all there are.
        """
        with self._lock:
            return self._tick, list(self.tables.repos) if tick is None else _since(self._rooted, tick)

    def count_in(self, database: Database, repo_nums: Collection[int]) -> dict[int, list[Branch]]:
        """Branches of these repos with counts of this moment: reads those that have changed. Raises StorageError."""
        with self._lock:
            tables = self.tables
            due = {
                num
                for repo_num in repo_nums
                for num in tables.branches_of_repo.get(repo_num, ())
                if num in self._changed
            }
        counted = {}
        if due:
            with database.read() as connection:
                found = _counted(connection, tables, due)
            counted = {(one.num, one.topic_num): one for one in found}
        return {
            repo_num: [counted.get((one.num, one.topic_num), one) for one in tables.branches_in(repo_num)]
            for repo_num in repo_nums
        }

    def count_all(self, database: Database) -> int:
        """Commits of all branches that are not void now: reads what has changed since the last call. Raises StorageError."""
        with self._counting:
            with self._lock:
                tables, tick = self.tables, self._tick
                of, upto, _, _ = self._total
                due = _since(self._changed, upto if of is tables else 0)
            if of is not tables:
                self._total = tables, 0, tables.commit_count, {}
            _, _, total, newer = self._total
            if due:
                with database.read() as connection:
                    found = _counted(connection, tables, due)
                for num, count in {one.num: one.commit_count - one.void_count for one in found}.items():
                    shown = tables.branches[num]
                    total += count - newer.get(num, shown.commit_count - shown.void_count)
                    newer[num] = count
            self._total = tables, tick, total, newer
            return total

    def count(self, database: Database) -> Tables:
        """The tables with counts of this moment: reads what has changed since the last call. Raises StorageError."""
        with self._counting:
            with self._lock:
                tables, tick = self.tables, self._tick
                of, counted, upto = self._counted
                if of is not tables:
                    counted, upto = tables, 0
                due = _since(self._changed, upto)
            if due:
                with database.read() as connection:
                    counted = count_anew(connection, counted, due)
            self._counted = tables, counted, tick
            return counted


def choose_epoch(membership: Membership, repo: Repo, here: Mapping[EpochId, Epoch]) -> tuple[int, bool]:
    """The number of the epoch to write in, of those whose secrets are here, and whether members have gone on to another.

    A newcomer by a link holds an epoch before it knows how that began, and stays with it.
    """
    operations, now = membership.operations, membership.now()
    current = next((one for one in here.values() if one.num == repo.epoch_num), None)
    if not operations.epochs or (current is not None and current.epoch_id not in operations):
        return repo.epoch_num, repo.is_behind
    preferred = find_preferred(now.epoch_tips())
    if preferred.started_epoch in here:
        return here[preferred.started_epoch].num, False
    held = [one for one in operations.epochs if one.started_epoch in here and now.counts(one)]
    latest = [one for one in held if not any(operations.precedes(one, other) for other in held)]
    return (here[find_preferred(latest).started_epoch].num if latest else repo.epoch_num), True
