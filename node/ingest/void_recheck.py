"""Re-evaluates which commits are void, at the end of each transaction that may change it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection

from node.ingest.tables import Tables
from protocol.formats.body import Adopt, FeedEnd, Permission, Remove, kind_name
from protocol.formats.content import Compaction
from protocol.ids import BranchId, CommitId, UserId
from storage.commits.blocks import DamagedBlock
from storage.commits.checkpoints import load_checkpoint_ids
from storage.commits.feeds import FeedPath
from storage.commits.void_marks import (
    Judged,
    are_forked,
    has_forks,
    load_judged,
    load_judged_by,
    load_seen,
    mark_void,
)
from storage.engine.database import Database
from storage.repos.repos import Branch
from verifier.facts import CommitFacts
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.resolution import Settled
from verifier.void_rules import Void, find_affected, find_void

_COMPACTION: Final = kind_name(Compaction)
NO_FACTS: Final[Mapping[CommitId, CommitFacts]] = MappingProxyType({})


class VoidRecheck:
    """Judges content commits of one repo again, as its membership stands now. Belongs to one transaction."""

    def __init__(
        self,
        connection: Connection,
        tables: Tables,
        repo_num: int,
        membership: Membership,
        database: Database | None = None,
        facts: Mapping[CommitId, CommitFacts] = NO_FACTS,
    ) -> None:
        """Make a recheck; one that only asks has no `database`. Commits in `facts` need not be read."""
        self._database = database
        self._facts = facts
        self._connection = connection
        self._membership = membership
        self._tables = tables
        self._repo_num = repo_num
        # By branch, author, and where it begins.
        self._ways_back: dict[tuple[int, UserId, int, CommitId], FeedPath] = {}
        # By branch and author: for each removal by another that counts, the ends in this branch that it names; none where
        # something that gives the author permissions does not count.
        self._named: dict[tuple[int, UserId], list[list[FeedEnd]] | None] = {}
        self._forked: dict[tuple[int, UserId, int], bool] = {}  # by branch, author and last place
        self._seen: dict[int, tuple[CommitId, ...]] = {}  # by numbers of places, which many commits share
        self._fresh: set[CommitId] = set()  # accepted in this transaction
        self.changed = 0
        """How many commits have become void or ceased to be."""

    def after_removals(self, before: Settled) -> None:
        """Look at all that may be void, or no longer, since other rights hold the removals than `before`."""
        changed = self._membership.changed_since(before)
        if not changed:
            return
        for user in find_affected(self._membership, changed):
            for branch in self._find_branches():
                self._look_at(branch, load_judged_by(self._connection, branch.num, user))
        for (
            branch
        ) in self._find_branches():  # no matter who wrote them, approvals may count no longer, or again
            ids = load_checkpoint_ids(self._connection, branch.num)
            self._look_at(branch, load_judged(self._connection, branch.num, ids))
        for adoption in self._membership.operations.adoptions:  # may count no longer, or again
            if isinstance(adoption.body, Adopt):
                self.of_adopted(adoption.body.branch, adoption.body.commits)

    def of_commits(
        self,
        branch_num: int,
        ids: Iterable[CommitId],
        made: Collection[CommitId] = (),
        are_back: Collection[CommitId] = (),
    ) -> None:
        """Recheck these commits of a branch, if anything there could void them; `made` are the checkpoints among them.

        Those that `are_back` were damaged; the others are accepted in this transaction. Costs O(commits), and looks into
        the store for those alone of whose authors somebody else took something.
        """
        if self._membership.now().has_no_removals:
            return
        branch = self._tables.branches[branch_num]
        ids = [one for one in ids if one in made or one in are_back or not self._is_sure(branch, one)]
        if not ids:
            return
        judged = load_judged(self._connection, branch.num, ids)
        self._fresh |= {one.commit_id for one in judged}.difference(are_back)
        self._look_at(branch, judged)
        for author in {one.author for one in judged}:
            new = [one for one in judged if one.author == author]
            # Who leaves voids nothing, and may leave any number of times, each time with ends of feeds.
            now = self._membership.now()
            removals = self._membership.operations.removals_by_others(author)
            counted = [one.body for one in removals if now.has_effect(one)]
            ends = {end for body in counted if isinstance(body, Remove) for end in body.feeds}
            for end in ends:  # each is looked at for itself: their order decides nothing
                self._look_at(branch, self._find_renamed(branch, author, end, new))

    def _find_renamed(
        self, branch: Branch, author: UserId, end: FeedEnd, new: Sequence[Judged]
    ) -> Iterable[Judged]:
        """Find commits of a feed that a removal's end names now and did not before new commits came, or the reverse.

        Costs O(1) if no new commit is on the way back from the end, else O(what it leads to): each commit once. An end that
        arrives and leads to the beginning of a feed without forks names the same commits as before.
        """
        if end.branch != branch.branch_id:
            return ()
        ids = [one.commit_id for one in new]
        if not self._fresh.issuperset(ids):
            return load_judged_by(self._connection, branch.num, author)
        way = self._path_back(branch, author, end)
        if end.commit in ids:
            is_same = way.is_whole and not self._has_forks(branch, author, end)
            return () if is_same else load_judged_by(self._connection, branch.num, author)
        if way.is_here:
            on_way = [
                one.sequence
                for one in new
                if one.sequence <= end.sequence and way.passes(one.commit_id, one.sequence)
            ]
            return load_judged(self._connection, branch.num, way.below(max(on_way))) if on_way else ()
        # Without the end all up to its place is named until a fork leaves that in doubt: the first one.
        is_first_fork = (
            are_forked(self._connection, branch.num, ids)
            and self._has_forks(branch, author, end)
            and not has_forks(self._connection, branch.num, author, end.sequence, but=ids)
        )
        return load_judged_by(self._connection, branch.num, author) if is_first_fork else ()

    def of_adopted(self, branch_id: BranchId, ids: Sequence[CommitId]) -> None:
        """Look at commits that are adopted."""
        for branch in self._find_branches():
            if branch.branch_id == branch_id:
                self._look_at(branch, load_judged(self._connection, branch.num, ids))

    def find_reason(self, branch: Branch, one: Judged) -> Void | None:
        """Return why a commit is void; None if it counts."""
        if self._membership.now().has_no_removals or self._is_untouched(branch, one):
            return None
        return find_void(
            self._membership,
            one.commit_id,
            branch.branch_id,
            one.author,
            self._find_seen(one),
            lambda end: self._is_in_feed(branch, one, end),
            one.proposal,
            Permission.MANAGE if one.body_kind == _COMPACTION else Permission.WRITE,
        )

    def find_voids(self, branch: Branch, ids: Sequence[CommitId]) -> dict[CommitId, bool]:
        """Decide by id which of these commits are void; leave out those whose places are damaged."""
        facts = branch.facts
        if not facts.has_members or facts.is_root_branch or self._membership.now().has_no_removals:
            return dict.fromkeys(ids, False)
        found: dict[CommitId, bool] = {}
        for one in load_judged(self._connection, branch.num, ids):
            with suppress(DamagedBlock):
                found[one.commit_id] = self.find_reason(branch, one) is not None
        return found

    def _find_branches(self) -> list[Branch]:
        """Return the branches with content. A lone commit does without them: a repo may have thousands."""
        return [one for one in self._tables.branches_in(self._repo_num) if not one.facts.is_root_branch]

    def _look_at(self, branch: Branch, judged: Iterable[Judged]) -> None:
        new: dict[bool, list[int]] = {True: [], False: []}
        for one in judged:
            try:
                is_void = self.find_reason(branch, one) is not None
            except DamagedBlock:  # looked at again when it is back
                continue
            if is_void != one.is_void:
                new[is_void].append(one.num)
        for is_void, nums in new.items():
            if nums:
                assert self._database is not None, "who only asks marks nothing"
                mark_void(self._database, self._connection, branch.num, nums, is_void=is_void)
                self.changed += len(nums)

    def _is_untouched(self, branch: Branch, one: Judged) -> bool:
        """Return True if nothing takes from a commit the right by which it was accepted; False if that is not sure.

        It is sure if all credentials of its author count and each removal that counts names the commit (N2). Its causes
        need not be read then: an exclusion has all commits of its user judged again.
        """
        if one.proposal is not None:
            return False
        named = self._named_of(branch, one.author)
        return named is not None and all(
            any(self._is_in_feed(branch, one, end) for end in ends) for ends in named
        )

    def _is_sure(self, branch: Branch, commit_id: CommitId) -> bool:
        """Return True if nothing was ever taken from the author of a commit; False if that is not known."""
        facts = self._facts.get(commit_id)
        return facts is not None and self._named_of(branch, facts.author) == []

    def _named_of(self, branch: Branch, author: UserId) -> list[list[FeedEnd]] | None:
        place = branch.num, author
        if place not in self._named:
            self._named[place] = self._find_named(branch, author)
        return self._named[place]

    def _find_named(self, branch: Branch, author: UserId) -> list[list[FeedEnd]] | None:
        now, operations = self._membership.now(), self._membership.operations
        grants = operations.grants_of(author)
        if not grants or not all(map(now.is_undiminished, grants)):
            return None
        removals = [one for one in operations.removals_by_others(author) if now.has_effect(one)]
        return [_ends_in(removal, branch.branch_id) for removal in removals]

    def _has_forks(self, branch: Branch, author: UserId, end: FeedEnd) -> bool:
        place = branch.num, author, end.sequence
        if place not in self._forked:
            self._forked[place] = has_forks(self._connection, *place)
        return self._forked[place]

    def _is_in_feed(self, branch: Branch, one: Judged, end: FeedEnd) -> bool:
        """Return True if a removal names a commit of a feed by its end (N2)."""
        if one.sequence > end.sequence:
            return False
        way = self._path_back(branch, one.author, end)
        if way.is_here:
            return way.passes(one.commit_id, one.sequence)
        return not self._has_forks(branch, one.author, end)

    def _path_back(self, branch: Branch, author: UserId, end: FeedEnd) -> FeedPath:
        place = (branch.num, author, end.sequence, end.commit)
        if place not in self._ways_back:
            self._ways_back[place] = FeedPath(self._connection, branch.num, author, end.sequence, end.commit)
        return self._ways_back[place]

    def _find_seen(self, one: Judged) -> tuple[CommitId, ...]:
        """Return the root branch commits that a commit follows. Raises DamagedBlock."""
        if one.commit_id in self._facts:
            return self._facts[one.commit_id].seen
        if one.place_num not in self._seen:
            self._seen[one.place_num] = load_seen(self._connection, one.place_num)
        seen = self._seen[one.place_num]
        if not seen:  # each commit outside of the root branch follows some (V3)
            raise DamagedBlock(f"the place of commit {one.commit_id.hex()} is not here")
        return seen


def _ends_in(removal: Operation, branch: BranchId) -> list[FeedEnd]:
    body = removal.body
    return [end for end in body.feeds if end.branch == branch] if isinstance(body, Remove) else []
