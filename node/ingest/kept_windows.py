"""Commits of windows: newest ones of branches whose past is not here, apart from what is accepted.

They are kept in memory. A window says only what a peer has now, and each connection asks for it anew in one round trip. So
nothing of it is lost with the process, and what is accepted meanwhile costs no statement to clear away. None of it is acked,
counted, exported or sent on.
"""

import threading
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from node.ingest.publication_parsing import Opened
from node.ingest.replica import Replica
from node.ingest.vouchers import Vouched, Vouchers, has_its_topics, is_believed
from protocol.crypto.keys import EpochKey
from protocol.formats.body import UnopenedBody
from protocol.formats.links import NewestPosts
from protocol.ids import CommitId, EpochId, Mark, TopicKey, UserId
from protocol.limits.peers import (
    WINDOW_KEPT_AUTHOR_SHARE,
    WINDOW_KEPT_COUNT_MAX,
    WINDOW_KEPT_SIZE_MAX,
    WINDOWS_KEPT_SIZE_MAX,
)
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import load_facts
from storage.commits.pending import find_last_rejection, load_rejected
from storage.repos.epochs import Topic
from verifier.facts import CommitFacts, TopicFacts
from verifier.tangle_kinds import GROUP
from verifier.windows import Standing, WindowCommit, confirm, find_witnesses


@dataclass(frozen=True, slots=True)
class KeptCommit:
    """A commit of a window, as it came."""

    opened: Opened
    topic: TopicFacts
    size: int  # bytes of its publication, and of a body that was decrypted beside it

    @property
    def commit_id(self) -> CommitId:
        """Return its id."""
        return self.opened.signed.commit.commit_id

    @property
    def author(self) -> UserId:
        """Return its author."""
        return self.opened.signed.commit.content.author


@dataclass(slots=True)
class _Kept:
    """Window that is kept of one branch."""

    commits: dict[CommitId, KeptCommit] = field(default_factory=dict)
    confirmed: frozenset[CommitId] = frozenset()
    """Of these, as they were looked at last."""
    liars: frozenset[UserId] = frozenset()
    """Authors who said `whole` of a rejected commit, also if the commit is no longer kept."""
    version: int = 0
    found: "tuple[object, ShownWindow | None] | None" = None


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """Part of a branch's window that may be shown."""

    listed: tuple[KeptCommit, ...]
    """By stated rank and id: the last of the timeline, as far as they are here."""
    waiting: int
    """Others that nobody confirms whom this node trusts."""
    earlier: int
    """Commits before them that are not here, at least."""
    vouched: NewestPosts | None
    """Statement of the link that alone confirms some of them."""


def _size_of(opened: Opened) -> int:
    body = opened.signed.body
    return len(opened.publication.encoded) + (len(body.encoded) if isinstance(body, UnopenedBody) else 0)


class KeptWindows:
    """Windows of all branches. Thread-safe."""

    def __init__(self, replica: Replica, vouchers: Vouchers | None = None) -> None:
        self._replica = replica
        self.vouchers = vouchers or Vouchers(replica)
        """Statement of the link on which posts rest before the root branch is here."""
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}  # by number of the branch, the one longest without news first

    def keep(self, branch_num: int, topic: Topic, opened: Sequence[Opened]) -> int:
        """Keep commits of a branch that came on a topic, as far as they fit. Return how many are new. Costs O(kept).

        Of a branch WINDOW_KEPT_COUNT_MAX are kept, half of them of one author. What was found confirmed stays. Of what
        waits that goes first which came first: keys are free, so anybody could fill the place for good. Of all branches the
        one without news for longest goes first.
        """
        with self._lock:
            kept = self._kept.pop(branch_num, None) or _Kept()
            self._kept[branch_num] = kept
            before = kept.commits
            came = [KeptCommit(item, topic.facts, _size_of(item)) for item in opened]
            new = {one.commit_id: one for one in came if one.commit_id not in before}
            confirmed = [one for one in before.values() if one.commit_id in kept.confirmed]
            waiting = [one for one in before.values() if one.commit_id not in kept.confirmed]
            fitting = _find_fitting([*confirmed, *new.values(), *reversed(waiting)])
            # As they came: what waits goes by that.
            kept.commits = {raw: one for raw, one in {**before, **new}.items() if raw in fitting}
            kept.version += 1
            self._shrink()
            return len(new.keys() & fitting)

    def forget_gone(self) -> None:
        """Forget what is kept of branches that are not here any more. Costs O(branches with windows)."""
        there = self._replica.tables.branches
        with self._lock:
            for num in [num for num in self._kept if num not in there]:
                del self._kept[num]

    def find(self, branch_num: int) -> ShownWindow | None:
        """Find what of a branch's window may be shown now; None where nothing is kept. Raises StorageError.

        Costs O(window) where anything has changed. What was accepted or rejected meanwhile is kept no more.
        """
        with self._lock:
            kept = self._kept.get(branch_num)
            if kept is None:
                return None
            commits, version = list(kept.commits.values()), kept.version
        tables = self._replica.read_tables()
        branch = tables.branches.get(branch_num)
        root = None if branch is None else tables.roots.get(branch.facts.repo_id)
        if branch is None or root is None:
            self.forget_gone()
            return None
        with self._replica.database.read() as connection:
            last = find_last_rejection(connection, root.num)  # it changes no branch's row
        vouched = self.vouchers.find(branch.repo_num)
        if vouched is not None and (
            vouched.states.branch != branch.branch_id or not has_its_topics(vouched, branch.repo_num, tables)
        ):
            vouched = None
        state = version, branch.commit_count, root.commit_count, last, vouched
        if kept.found is not None and kept.found[0] == state:
            return kept.found[1]
        repo_id = branch.facts.repo_id
        with self._replica.membership_lock, self._replica.database.read() as connection:
            try:
                membership = self._replica.membership(repo_id)
            except DamagedBlock:
                return None
            named = {one for kept_one in commits for one in _named_by(kept_one)}
            named.update(() if vouched is None else vouched.states.heads)
            lookup = _Lookup(load_facts(connection, named), load_rejected(connection, sorted(named)))
            promised = set[TopicKey]() if vouched is None else {*vouched.topics.values()}
            left = [
                one
                for one in commits
                if not lookup.knows(one.commit_id)
                and (
                    one.opened.publication.topic in tables.by_topic
                    or one.opened.publication.topic in promised
                )
            ]
            persons, user = self._replica.persons(repo_id), self._replica.own_feeds.user
            own = {} if user is None else _devices_of(persons, user)
            liars = kept.liars | _find_liars(commits, lookup.rejected) | _find_false(vouched, lookup.rejected)
            if vouched is not None and (
                vouched.states.maker in liars or not is_believed(vouched, membership)
            ):
                vouched = None
            standing = confirm(
                [WindowCommit(one.opened.signed, one.topic) for one in left],
                branch.facts,
                lookup,
                membership,
                find_witnesses(membership, own) - liars,
                () if vouched is None else vouched.states.heads,
                has_past=branch.commit_count > 0,
                has_invitation=vouched is not None and vouched.invitation in membership.operations,
            )
        shown = _show(left, standing, branch.commit_count, vouched)
        with self._lock:
            gone = {one.commit_id for one in commits} - {one.commit_id for one in left}
            for commit_id in gone.union(standing.misplaced):
                kept.commits.pop(commit_id, None)
            kept.confirmed = frozenset(standing.confirmed)
            kept.liars |= liars | _find_liars(commits, standing.rejected)
            if not kept.commits:
                if not kept.liars:
                    self._kept.pop(branch_num, None)
                return None
            kept.found = (state, shown) if kept.version == version else None
        return shown

    def _shrink(self) -> None:
        sizes = {num: sum(one.size for one in kept.commits.values()) for num, kept in self._kept.items()}
        for num in list(self._kept)[:-1]:
            if sum(sizes.values()) <= WINDOWS_KEPT_SIZE_MAX:
                return
            del self._kept[num], sizes[num]


class _Lookup:
    """Lookup of the commits that a window names (`CommitLookup`)."""

    def __init__(self, facts: dict[CommitId, CommitFacts], rejected: set[CommitId]) -> None:
        self._facts = facts
        self.rejected = rejected

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        return self._facts.get(commit_id)

    def is_rejected(self, commit_id: CommitId) -> bool:
        return commit_id in self.rejected

    def epoch_key(self, epoch: EpochId, mark: Mark) -> EpochKey | None:
        del epoch, mark  # no window has inits
        return None

    def knows(self, commit_id: CommitId) -> bool:
        """Return True if there is a verdict."""
        return commit_id in self._facts or commit_id in self.rejected


def _find_fitting(ordered: Sequence[KeptCommit]) -> set[CommitId]:
    """Return the given commits that fit the bounds of one branch, the first before the others."""
    found: set[CommitId] = set()
    of_author = Counter[UserId]()
    size = 0
    for one in ordered:
        if len(found) >= WINDOW_KEPT_COUNT_MAX:
            break
        fits = size + one.size <= WINDOW_KEPT_SIZE_MAX
        if fits and of_author[one.author] < WINDOW_KEPT_COUNT_MAX // WINDOW_KEPT_AUTHOR_SHARE:
            found.add(one.commit_id)
            of_author[one.author] += 1
            size += one.size
    return found


def _find_liars(commits: Iterable[KeptCommit], rejected: Container[CommitId]) -> frozenset[UserId]:
    said = (one for one in commits if one.opened.signed.commit.content.whole)
    return frozenset(one.author for one in said if one.commit_id in rejected)


def _find_false(vouched: Vouched | None, rejected: Container[CommitId]) -> frozenset[UserId]:
    """Return the maker of a link that says of a rejected commit that it was accepted."""
    if vouched is None or not any(head in rejected for head in vouched.states.heads):
        return frozenset()
    return frozenset((vouched.states.maker,))


def _named_by(one: KeptCommit) -> list[CommitId]:
    """Return the ids of a commit, its acks, and the commits that its places name."""
    commit = one.opened.signed.commit
    place = commit.place(GROUP)
    return [commit.commit_id, *commit.acks, *(() if place is None else place.previous)]


def _devices_of(persons: Mapping[UserId, UserId], user: UserId) -> set[UserId]:
    person = persons.get(user, user)
    return {user, person, *(device for device, of in persons.items() if of == person)}


def _show(
    left: Sequence[KeptCommit], standing: Standing, accepted_count: int, vouched: Vouched | None
) -> ShownWindow:
    by_id = {one.commit_id: one for one in left}
    listed = tuple(by_id[commit_id] for commit_id in standing.listed)
    lowest = listed[0].opened.signed.commit.rank if listed else 0
    by_word = vouched is not None and any(one.commit_id in standing.by_word for one in listed)
    states = vouched.states if vouched is not None and by_word else None
    return ShownWindow(listed, len(standing.waiting), max(0, lowest - accepted_count), states)
