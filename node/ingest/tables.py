"""`Tables`: repos, epochs and branches as one moment of the store has them, in memory.

A node may have thousands of branches, and most changes touch one. So tables are made of those before them, and only of
changed rows anew (`storage.repos.row_changes`).
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

from sqlalchemy import Connection

from node.ingest.layered_map import LayeredMap
from protocol.crypto.keys import ConvergenceSecret, EpochKey
from protocol.formats.commit import NO_EPOCH, Commit
from protocol.ids import BranchId, CommitId, EpochId, Mark, RepoId, TopicKey, first_commit, root_branch
from ravel.characters import composed
from storage.blobs.files import FileRow
from storage.commits.commits import TimelineRow
from storage.engine.database import Database, StorageError
from storage.repos.epochs import Epoch, Topic, find_topics, load_epochs, load_topics
from storage.repos.repos import (
    Branch,
    Repo,
    load_branches,
    load_counts,
    load_repos,
)
from storage.repos.row_changes import RowChanges
from verifier.facts import BranchFacts
from verifier.names import MAIN

K = TypeVar("K")
V = TypeVar("V")
Row = TypeVar("Row", bound=Branch | Repo | Epoch | Topic)
PlacedFacts = tuple[Repo, BranchFacts, int]
"""Repo of a commit, its branch, and the branch's number: 0 of one that nobody has added yet."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Repos, epochs, topics and branches as one moment of the store has them. Each table is in the order of its numbers."""

    repos: Mapping[int, Repo]
    of_id: Mapping[RepoId, Repo]
    repos_named: Mapping[str, tuple[int, ...]]  # numbers of repos by their names in the form NFC
    invited: Mapping[int, Repo]  # of these, such as keep the link that they were joined or asked for by
    epochs: Mapping[int, Epoch]
    topics: Mapping[int, Topic]
    by_topic: Mapping[TopicKey, Topic]
    branches: Mapping[int, Branch]
    roots: Mapping[RepoId, Branch]  # root branches, by their repos' ids
    epochs_of_repo: Mapping[int, tuple[int, ...]]  # by the repo's number: numbers of its epochs
    topics_of_repo: Mapping[
        int, tuple[int, ...]
    ]  # likewise of topics that its epochs, or its branches alone, have
    branches_of_repo: Mapping[int, tuple[int, ...]]  # and of its branches
    links_of_branch: Mapping[int, tuple[int, ...]]  # by the branch's number: numbers of its link topics
    branches_of_id: Mapping[
        BranchId, tuple[int, ...]
    ]  # numbers of branches by their ids, which two repos may state
    branches_named: Mapping[str, tuple[int, ...]]  # and by their names in that form
    commit_count: int  # of all branches, without void ones

    def branches_in(self, repo_num: int) -> list[Branch]:
        """Branches of a repo."""
        return [self.branches[num] for num in self.branches_of_repo.get(repo_num, ())]

    def find_branch(self, repo_num: int, branch_id: BranchId) -> Branch | None:
        """Find a branch of a repo by its id."""
        for num in self.branches_of_id.get(branch_id, ()):
            if self.branches[num].repo_num == repo_num:
                return self.branches[num]
        return None

    def with_root(self, branch: Branch) -> set[int]:
        """Return the numbers of a branch and of its repo's root branch, which decides what counts in it."""
        root = self.roots.get(branch.facts.repo_id)
        return {branch.num} if root is None else {branch.num, root.num}

    def topics_in(self, repo_num: int) -> list[Topic]:
        """Topics of a repo: of its epochs, and of branches that are followed by links."""
        return [self.topics[num] for num in self.topics_of_repo.get(repo_num, ())]

    def writing_topics(self, repo_num: int) -> set[TopicKey]:
        """Return the topics on which this user's node writes now: those of the writing epoch, or of followed branches."""
        epoch = self.epochs.get(self.repos[repo_num].epoch_num)
        if epoch is None:
            return {one.topic for one in self.topics_in(repo_num)}
        return {epoch.topic} if epoch.writers_topic is None else {epoch.topic, epoch.writers_topic}

    def is_link_in_use(self, topic: TopicKey) -> bool:
        """Return True if a topic carries one branch of the epoch in which its repo is written now."""
        opened = self.by_topic.get(topic)
        if opened is None or not opened.is_link:
            return False
        return any(self.repos[one.repo_num].epoch_num == one.num for one in opened.epochs)

    def links_of(self, branch_num: int) -> list[Topic]:
        """Link topics of a branch."""
        return [self.topics[num] for num in self.links_of_branch.get(branch_num, ())]

    def repos_with_name(self, name: str) -> list[Repo]:
        """Repos of a name: a user's own, and what others call theirs."""
        return [self.repos[num] for num in self.repos_named.get(composed(name), ())]

    def with_id(self, branch_id: BranchId) -> list[Branch]:
        """Branches of an id, of all repos."""
        return [self.branches[num] for num in self.branches_of_id.get(branch_id, ())]

    def with_name(self, name: str) -> list[Branch]:
        """List the branches of a name, of all repos. `main` is the branch that the pointer main names, if there is one."""
        found = self.taking_name(name)
        pointed = {one.repo_num for one in found if one.is_main and name == MAIN}
        return [one for one in found if one.is_main or one.repo_num not in pointed]

    def taking_name(self, name: str) -> list[Branch]:
        """List the branches that take a name, of all repos: those of the name, and for `main` also the main branch."""
        return [self.branches[num] for num in self.branches_named.get(composed(name), ())]

    def epochs_in(self, repo_num: int) -> list[Epoch]:
        """Epochs of a repo, and keys that are said to be theirs."""
        return [self.epochs[num] for num in self.epochs_of_repo.get(repo_num, ())]

    def find_epoch(self, repo_num: int, epoch_id: EpochId) -> Epoch | None:
        """Find an epoch of a repo by its id: with the key that its init proves, else with one that is not disproved."""
        found = [one for one in self.epochs_in(repo_num) if one.epoch_id == epoch_id]
        return min(
            found,
            key=lambda one: (one.writers_topic is None, one.claimed_by is not None, one.num),
            default=None,
        )

    def find_key(self, repo_num: int, epoch_id: EpochId, mark: Mark) -> EpochKey | None:
        """Find the key of an epoch that gives this mark, if it is held here."""
        for one in self.epochs_in(repo_num):
            if one.epoch_id == epoch_id and one.keys.mark == mark:
                return one.key
        return None

    def written_on(self, topic: TopicKey) -> Epoch | None:
        """Find the epoch with this own topic in which a repo is written now; None if there is none."""
        opened = self.by_topic.get(topic)
        for epoch in () if opened is None or opened.is_link else opened.epochs:
            if self.repos[epoch.repo_num].epoch_num == epoch.num:
                return epoch
        return None

    def held_epochs(self, repo_num: int) -> dict[EpochId, Epoch]:
        """Epochs of a repo whose inits were accepted, by id."""
        return {one.epoch_id: one for one in self.epochs_in(repo_num) if one.writers_topic is not None}

    def find_place(self, repo_num: int, commit: Commit) -> tuple[Epoch, Topic] | None:
        """Find the epoch and the topic that a commit of a repo says, if they are here; it may have come on another topic."""
        epoch_id = EpochId(commit.commit_id) if commit.content.epoch == NO_EPOCH else commit.content.epoch
        epoch = self.find_epoch(repo_num, epoch_id)
        if epoch is None:
            return None
        name = epoch.writers_topic if commit.content.by_writer else epoch.topic
        topic = None if name is None else self.by_topic.get(name)
        return None if topic is None else (epoch, topic)

    def find_second_place(self, repo_num: int, commit_id: CommitId, topic_num: int) -> tuple[int, ...]:
        """Find the number of the second topic of an init: that of the epoch that it starts (E6).

        Return None if that is the topic on which it was published: an init may have stated it as its epoch's writers'
        topic.
        """
        epoch = self.find_epoch(repo_num, EpochId(commit_id))
        topic = None if epoch is None else self.by_topic.get(epoch.topic)
        return () if topic is None or topic.num == topic_num else (topic.num,)

    def convergence_secret(self, row: TimelineRow | FileRow) -> ConvergenceSecret:
        """Return the secret that a stored commit's blocks were made with. Raises StorageError if its epoch is not here."""
        epoch = self.epochs.get(row.epoch_num)
        if epoch is not None:
            return epoch.convergence_secret
        topic = self.topics.get(row.topic_num)
        if topic is None or topic.channel is None:
            raise StorageError("a commit of an epoch that is not here")
        return topic.channel.convergence_secret

    def topics_beside(self, topic: Topic) -> list[TopicKey]:
        """Find the topics on which causes of a topic's commits may be: of the same epochs, and of the current one."""
        if topic.channel is not None:
            return [topic.topic]
        epochs = [*topic.epochs, *topic.writers_of]
        current = self.epochs.get(self.repos[topic.repo_num].epoch_num)
        if current is not None:
            epochs.append(current)
        names = {name: None for one in epochs for name in (one.topic, one.writers_topic) if name is not None}
        return [topic.topic, *(name for name in names if name != topic.topic)]

    def find_facts(self, topic: Topic, commit: Commit) -> PlacedFacts | None:
        """Find the repo and the branch of a commit that came on a topic; None for a branch that is not followed here."""
        repo_num = topic.repo_num
        for epoch in (*topic.epochs, *topic.writers_of):
            if epoch.epoch_id in (commit.content.epoch, commit.commit_id):
                repo_num = epoch.repo_num
        repo = self.repos[repo_num]
        if commit.branch_id == root_branch(repo.repo_id):
            root = self.roots[repo.repo_id]
            return repo, root.facts, root.num
        known = self.find_branch(repo_num, commit.branch_id)
        if known is not None:
            return repo, known.facts, known.num
        if not repo.has_members:
            return None
        first = first_commit(commit.branch_id)
        return repo, BranchFacts(repo.repo_id, repo.init_id, commit.branch_id, first), 0

    def unread_under(self, topic: Topic) -> int:
        """Return the number of the branch under which unreadable publications of a topic are counted."""
        if topic.branch_num is not None:
            return topic.branch_num
        return self.roots[self.repos[topic.repo_num].repo_id].num


_NOTHING = Tables({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, 0)


def load_tables(connection: Connection) -> Tables:
    """Return the tables as this transaction sees them, its own changes included, read and made whole."""
    repos = {repo.num: repo for repo in load_repos(connection)}
    epochs = {epoch.num: epoch for epoch in load_epochs(connection)}
    tables = replace(
        _NOTHING,
        repos=repos,
        of_id={repo.repo_id: repo for repo in repos.values()},
        repos_named=_numbers((composed(repo.name), repo.num) for repo in repos.values()),
        invited=_invited(repos),
        epochs=epochs,
        epochs_of_repo=_numbers((one.repo_num, one.num) for one in epochs.values()),
    )
    tables = _with_topics(tables, (), load_topics(connection, epochs))
    return _with_branches(tables, (), load_branches(connection, repos))


def renew_tables(connection: Connection, before: Tables, changes: RowChanges) -> tuple[Tables, set[TopicKey]]:
    """Tables of this transaction, made of those before it: only rows that have changed are read again.

    Also gives topics that are new, gone, or of another number now.
    """
    tables, moved = before, set[TopicKey]()
    if changes.repos or changes.repo_rows:
        tables = _with_repos(connection, before, changes)
        topic_nums = changes.topics | _topics_of(before, changes.epochs)
        if changes.repos:
            # Topics of several repos are looked at with all topics of these: one may go on where another has ended.
            of_repos = changes.repos.union(
                *(one.repo_nums for num in changes.repos for one in before.topics_in(num))
            )
            topic_nums |= find_topics(connection, of_repos)
            topic_nums |= {one.num for num in of_repos for one in before.topics_in(num)}
        old = [before.topics[num] for num in sorted(topic_nums) if num in before.topics]
        found = load_topics(connection, tables.epochs, topic_nums)
        tables = _with_topics(tables, old, found)
        moved = {
            key for key, _ in {(one.topic, one.num) for one in old} ^ {(one.topic, one.num) for one in found}
        }
    nums = {num for repo_num in changes.repos for num in before.branches_of_repo.get(repo_num, ())}
    nums |= changes.branches
    branches = []
    if changes.is_structure:
        branches = load_branches(connection, tables.repos, changes.repos, changes.branches)
    counted = _counted(connection, before, changes.counted - nums)
    return _with_branches(tables, nums.union(one.num for one in counted), [*branches, *counted]), moved


def count_anew(connection: Connection, tables: Tables, branch_nums: Collection[int]) -> Tables:
    """Return the tables with the counts of commits of these branches as this transaction sees them."""
    found = _counted(connection, tables, branch_nums)
    return _with_branches(tables, {branch.num for branch in found}, found)


def _counted(connection: Connection, tables: Tables, branch_nums: Collection[int]) -> list[Branch]:
    """Branches with new counts."""
    counts = load_counts(connection, branch_nums)
    return [
        replace(tables.branches[num], commit_count=counts[num].commits, void_count=counts[num].void)
        for num in branch_nums
        if num in counts and num in tables.branches  # else it was forgotten meanwhile
    ]


def _topics_of(tables: Tables, epoch_nums: Collection[int]) -> set[int]:
    """Find the numbers of the topics that these epochs open. Costs O(these, and branches of their repos)."""
    found = set[int]()
    for epoch in (tables.epochs[num] for num in epoch_nums if num in tables.epochs):
        named = (tables.by_topic.get(one) for one in (epoch.topic, epoch.writers_topic) if one is not None)
        links = (
            one for num in tables.branches_of_repo.get(epoch.repo_num, ()) for one in tables.links_of(num)
        )
        found |= {one.num for one in named if one is not None}
        found |= {one.num for one in links if epoch in one.epochs}
    return found


def _with_repos(connection: Connection, before: Tables, changes: RowChanges) -> Tables:
    """Tables in which changed repos and epochs are as this transaction sees them; not yet their topics and branches."""
    nums = changes.repos | changes.repo_rows
    repos = {repo.num: repo for repo in load_repos(connection, nums)}
    epochs = {epoch.num: epoch for epoch in load_epochs(connection, changes.repos, changes.epochs)}
    gone = {num for repo_num in changes.repos for num in before.epochs_of_repo.get(repo_num, ())}
    old_epochs = [before.epochs[num] for num in sorted(gone | changes.epochs) if num in before.epochs]
    old_repos = [before.repos[num] for num in nums if num in before.repos]
    return replace(
        before,
        repos=_replaced(before.repos, nums, repos),
        of_id=_replaced(
            before.of_id,
            [one.repo_id for one in old_repos],
            {repo.repo_id: repo for repo in repos.values()},
        ),
        repos_named=_grouped(
            before.repos_named, old_repos, repos.values(), lambda one: (composed(one.name),)
        ),
        invited=_replaced(before.invited, nums, _invited(repos)),
        epochs=_replaced(before.epochs, [one.num for one in old_epochs], epochs),
        epochs_of_repo=_grouped(
            before.epochs_of_repo, old_epochs, epochs.values(), lambda one: (one.repo_num,)
        ),
    )


def _invited(repos: Mapping[int, Repo]) -> dict[int, Repo]:
    return {num: repo for num, repo in repos.items() if repo.invitation is not None}


def _with_topics(before: Tables, old: Collection[Topic], found: Collection[Topic]) -> Tables:
    """Return tables in which the `found` topics replace the `old` ones."""
    if not old and not found:
        return before
    new = sorted(found, key=lambda one: one.num)
    gone: dict[int, set[int]] = {}
    come: dict[int, set[int]] = {}
    for topics, nums in ((old, gone), (new, come)):
        for one in topics:
            for repo_num in one.repo_nums:
                nums.setdefault(repo_num, set()).add(one.num)
    of_repo = {}
    for repo_num in gone.keys() | come.keys():
        nums_now = {*before.topics_of_repo.get(repo_num, ())} - gone.get(repo_num, set())
        of_repo[repo_num] = tuple(sorted(nums_now | come.get(repo_num, set())))
    return replace(
        before,
        topics=_replaced(before.topics, [one.num for one in old], {one.num: one for one in new}),
        by_topic=_replaced(before.by_topic, [one.topic for one in old], {one.topic: one for one in new}),
        topics_of_repo=_replaced(
            before.topics_of_repo,
            [num for num, nums in of_repo.items() if not nums],
            {num: nums for num, nums in of_repo.items() if nums},
        ),
        links_of_branch=_grouped(before.links_of_branch, old, new, _linked_branch),
    )


def _linked_branch(topic: Topic) -> tuple[int, ...]:
    """Return the number of the one branch that a topic carries."""
    return () if topic.branch_num is None else (topic.branch_num,)


def _with_branches(before: Tables, nums: Collection[int], found: Collection[Branch]) -> Tables:
    """Return tables with the found rows for the branches with these numbers."""
    if not nums and not found:
        return before
    new = {one.num: one for one in sorted(found, key=lambda one: one.num)}
    old = [before.branches[num] for num in nums if num in before.branches]
    roots = {one.facts.repo_id: one for one in new.values() if one.facts.is_root_branch}
    return replace(
        before,
        branches=_replaced(before.branches, nums, new),
        roots=_replaced(before.roots, [one.facts.repo_id for one in old if one.facts.is_root_branch], roots),
        branches_of_repo=_grouped(before.branches_of_repo, old, new.values(), lambda one: (one.repo_num,)),
        branches_of_id=_grouped(before.branches_of_id, old, new.values(), lambda one: (one.branch_id,)),
        branches_named=_grouped(before.branches_named, old, new.values(), _names_of),
        commit_count=before.commit_count
        + sum(one.commit_count - one.void_count for one in new.values())
        - sum(one.commit_count - one.void_count for one in old),
    )


def _names_of(branch: Branch) -> set[str]:
    """Return what a branch is called: by its name, and as main."""
    return {composed(branch.name), MAIN} if branch.is_main else {composed(branch.name)}


def _grouped(
    before: Mapping[K, tuple[int, ...]],
    old: Iterable[Row],
    new: Iterable[Row],
    keys_of: Callable[[Row], Iterable[K]],
) -> Mapping[K, tuple[int, ...]]:
    """Map keys to row numbers after the old rows were replaced by the new ones."""
    gone, come = (
        _numbers((key, one.num) for one in old for key in keys_of(one)),
        _numbers((key, one.num) for one in new for key in keys_of(one)),
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
    """Replace rows: without some, and with new ones. A new row with a removed key takes its place; others come last."""
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
    """Find what has changed after a tick: looks at no older changes but one."""
    return list(takewhile(lambda key: log[key] > tick, reversed(log)))


class ShownTables:
    """Tables that memory shows, with the branches that grew since they were read and the changed topics.
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

    def touch(self, repo_num: int) -> None:
        """Note that the store has got more of a repo than these tables show: commits that wait, or were rejected."""
        with self._lock:
            self._tick += 1
            _note(self._touched, [repo_num], self._tick)
            _note(self._rooted, [repo_num], self._tick)

    def restate(self, repo_nums: Iterable[int]) -> None:
        """Note that these repos are to be described anew, for a reason that is in no branch of theirs."""
        with self._lock:
            self._tick += 1
            _note(self._restated, repo_nums, self._tick)

    def repos_since(self, tick: int | None) -> tuple[int, list[int], list[int]]:
        """Return the present tick, and repos that were touched after a tick, then those that were restated.

        Some may be gone. After None: all there are were touched.
        """
        with self._lock:
            if tick is None:
                return self._tick, list(self.tables.repos), []
            return self._tick, _since(self._touched, tick), _since(self._restated, tick)

    def topics_since(self, tick: int | None) -> tuple[int, Mapping[TopicKey, Topic], list[TopicKey]]:
        """Return the present tick, topics by name, and topics that have moved after a tick; after None: all there are."""
        with self._lock:
            by_topic = self.tables.by_topic
            return self._tick, by_topic, list(by_topic) if tick is None else _since(self._moved, tick)

    def roots_since(self, tick: int | None) -> tuple[int, list[int]]:
        """Return the present tick, and repos whose rows or root branches have changed after a tick, also removed ones.

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
            counted = {one.num: one for one in found}
        return {
            repo_num: [counted.get(one.num, one) for one in tables.branches_in(repo_num)]
            for repo_num in repo_nums
        }

    def count(self, database: Database) -> Tables:
        """Return the tables with present counts: reads what has changed since the last call. Raises StorageError."""
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
