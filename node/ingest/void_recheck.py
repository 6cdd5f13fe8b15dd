"""Re-evaluates which commits are void, at the end of each transaction that may change it."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

from sqlalchemy import Connection

from node.ingest.tables import Tables
from protocol.block import WrongKey, decode_block
from protocol.body import Adopt, FeedEnd, Permission, Remove, kind_name
from protocol.codec import DecodeError
from protocol.commit import Commit, open_commit
from protocol.content import Compaction
from protocol.ids import BranchId, CommitId, TopicKey, UserId
from storage.commits.blocks import DamagedBlock, read_blocks
from storage.commits.checkpoints import load_checkpoint_ids
from storage.commits.void_marks import Judged, are_forked, has_forks, load_judged, load_judged_by, mark_void
from storage.engine.database import Database
from storage.engine.id_keys import unpack_nums
from storage.repos.repos import Branch
from verifier.membership import Membership
from verifier.resolution import Settled
from verifier.tangle_kinds import GROUP
from verifier.void_rules import Void, find_affected, find_void

_COMPACTION: Final = kind_name(Compaction)


class VoidRecheck:
    """Judges content commits of one repo again, as its membership stands now. Belongs to one transaction."""

    def __init__(
        self,
        connection: Connection,
        tables: Tables,
        repo_num: int,
        membership: Membership,
        database: Database | None = None,
    ) -> None:
        self._database = database  # none for who only asks
        self._connection = connection
        self._membership = membership
        self._tables = tables
        self._repo_num = repo_num
        # By branch and last commit: what a forked feed contains, None where no fork leaves a doubt.
        self._ways_back: dict[tuple[int, UserId, int, CommitId], set[CommitId] | None] = {}
        self._fresh: set[CommitId] = set()  # accepted in this transaction
        self.changed: dict[TopicKey, int] = {}
        """By topic: how many commits have become void or ceased to be."""

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
        self, branch_num: int, ids: Sequence[CommitId], are_back: Collection[CommitId] = ()
    ) -> None:
        """Look at these commits of a branch, where anything could make them void. Those that `are_back` were damaged; the
        others are accepted in this transaction."""
        if self._membership.now().is_calm:
            return
        branch = self._tables.branches[branch_num]
        judged = load_judged(self._connection, branch.num, ids)
        self._fresh |= {one.commit_id for one in judged}.difference(are_back)
        self._look_at(branch, judged)
        for author in {one.author for one in judged}:
            new = [one.commit_id for one in judged if one.author == author]
            # Who leaves voids nothing, and may leave any number of times, each time with ends of feeds.
            now = self._membership.now()
            removals = self._membership.operations.removals_by_others(author)
            counted = [one.body for one in removals if now.has_effect(one)]
            ends = {end for body in counted if isinstance(body, Remove) for end in body.feeds}
            if any(self._names_others_now(branch, author, end, new) for end in ends):
                self._look_at(branch, load_judged_by(self._connection, branch.num, author))

    def _names_others_now(
        self, branch: Branch, author: UserId, end: FeedEnd, new: Sequence[CommitId]
    ) -> bool:
        """Whether new commits of a feed change which older ones a removal names by its end.

        All that an end leads back to is here when the end is. So what comes later, a fork too, is on no way back. Without
        the end all up to its place is named until a fork leaves that in doubt: the first one.
        """
        if end.branch != branch.branch_id:
            return False
        if end.commit in new or not self._fresh.issuperset(new):
            return True
        return (
            are_forked(self._connection, branch.num, new)
            and has_forks(self._connection, branch.num, author, end.sequence)
            and not self._is_here(branch, author, end)
            and not has_forks(self._connection, branch.num, author, end.sequence, but=new)
        )

    def _is_here(self, branch: Branch, author: UserId, end: FeedEnd) -> bool:
        """Whether the commit that is stated as an end of a feed is here, and stands where that says."""
        found = load_judged(self._connection, branch.num, [end.commit])
        return any((one.author, one.sequence) == (author, end.sequence) for one in found)

    def of_adopted(self, branch_id: BranchId, ids: Sequence[CommitId]) -> None:
        """Look at commits that are adopted."""
        for branch in self._find_branches():
            if branch.branch_id == branch_id:
                self._look_at(branch, load_judged(self._connection, branch.num, ids))

    def find_reason(self, branch: Branch, one: Judged) -> Void | None:
        """Whether a commit is void, and why."""
        if self._membership.now().is_calm:
            return None
        place = self._open(one).place(GROUP)
        assert place is not None, "V3"
        return find_void(
            self._membership,
            one.commit_id,
            branch.branch_id,
            one.author,
            place.previous,
            lambda end: self._is_in_feed(branch, one, end),
            one.proposal,
            Permission.MANAGE if one.body_kind == _COMPACTION else Permission.WRITE,
        )

    def find_voids(self, branch: Branch, ids: Sequence[CommitId]) -> dict[CommitId, bool]:
        """Whether these commits are void, by id; nothing of one where damage hides it."""
        facts = branch.facts
        if not facts.has_members or facts.is_root_branch or self._membership.now().is_calm:
            return dict.fromkeys(ids, False)
        found: dict[CommitId, bool] = {}
        for one in load_judged(self._connection, branch.num, ids):
            with suppress(DamagedBlock, WrongKey, DecodeError):
                found[one.commit_id] = self.find_reason(branch, one) is not None
        return found

    def _find_branches(self) -> list[Branch]:
        """Those with content. Of a commit alone, they are not looked at: a repo may have thousands."""
        return [one for one in self._tables.branches_in(self._repo_num) if not one.facts.is_root_branch]

    def _look_at(self, branch: Branch, judged: Iterable[Judged]) -> None:
        new: dict[bool, list[int]] = {True: [], False: []}
        for one in judged:
            try:
                is_void = self.find_reason(branch, one) is not None
            except DamagedBlock:  # looked at again when its blocks are back
                continue
            if is_void != one.is_void:
                new[is_void].append(one.num)
        for is_void, nums in new.items():
            if nums:
                assert self._database is not None, "who only asks marks nothing"
                mark_void(self._database, self._connection, branch.num, nums, is_void=is_void)
                self.changed[branch.topic] = self.changed.get(branch.topic, 0) + len(nums)

    def _is_in_feed(self, branch: Branch, one: Judged, end: FeedEnd) -> bool:
        """Return True if an end of a feed names a commit of the same author and branch (N2).

        Feed links are causes (V6). So where no place up to the end was used twice, the way back from an end that is here
        passes all up to there, and need not be walked.
        """
        if one.sequence > end.sequence:
            return False
        place = (branch.num, one.author, end.sequence, end.commit)
        if place not in self._ways_back:
            if one.commit_id in self._fresh and end.commit not in self._fresh and end.commit != one.commit_id:
                # To walk back for each fork that comes would cost as much as the feed is long.
                return not has_forks(self._connection, branch.num, one.author, end.sequence)
            is_forked = has_forks(self._connection, branch.num, one.author, end.sequence)
            self._ways_back[place] = self._walk_back(branch, one.author, end) if is_forked else None
        named = self._ways_back[place]
        return named is None or one.commit_id in named

    def _walk_back(self, branch: Branch, author: UserId, end: FeedEnd) -> set[CommitId]:
        """Ids of the feed's commits up to its end, as far as they lead back to one another."""
        found: set[CommitId] = set()
        link: CommitId | None = end.commit
        for sequence in range(end.sequence, 0, -1):
            known = load_judged(self._connection, branch.num, [link]) if link is not None else []
            if not known or (known[0].author, known[0].sequence) != (author, sequence):
                break
            found.add(known[0].commit_id)
            link = self._open(known[0]).content.feed_previous
        return found

    def _open(self, one: Judged) -> Commit:
        num = unpack_nums(one.block_nums)[0]
        encoded = read_blocks(self._connection, {num: one.commit_id})[num]
        return open_commit(
            decode_block(encoded), one.commit_key, self._tables.on_topics[one.topic_num].convergence_secret
        )
