"""Which commits of a repo are void, looked at again at the end of a transaction that may have changed it."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from node.replica import Tables
from protocol.block import decode_block
from protocol.body import Adopt, FeedEnd
from protocol.commit import Commit, open_commit, skip_path
from storage.blocks import read_blocks
from storage.id_keys import unpack_nums
from storage.repos import Branch
from storage.voids import Judged, has_forks, load_judged, load_judged_by, mark_void
from verifier.membership import Membership
from verifier.tangle_kinds import GROUP
from verifier.voiding import Void, find_affected, find_void


class Review:
    """Judges content commits of one repo again, as its membership stands now. Belongs to one transaction."""

    def __init__(self, connection: Connection, tables: Tables, repo_num: int, membership: Membership) -> None:
        self._connection = connection
        self._membership = membership
        self._branches = [
            branch
            for branch in tables.branches.values()
            if branch.repo_num == repo_num and not branch.facts.is_root_branch
        ]
        self.changed: dict[bytes, int] = {}
        """By topic: how many commits have become void or ceased to be."""

    def after_removals(self, before: frozenset[bytes]) -> None:
        """Look at all that may be void, or no longer, since other removals count than `before`."""
        changed = before ^ self._membership.now().counting
        if not changed:
            return
        for user in find_affected(self._membership, changed):
            for branch in self._branches:
                self._look_at(branch, load_judged_by(self._connection, branch.num, user))
        for adoption in self._membership.operations.adoptions:  # may count no longer, or again
            if isinstance(adoption.body, Adopt):
                self.of_adopted(adoption.body.branch, adoption.body.commits)

    def of_commits(self, branch_num: int, ids: Sequence[bytes]) -> None:
        """Look at these commits of a branch, where anything could make them void."""
        if not self._membership.now().counting:
            return
        branch = next(branch for branch in self._branches if branch.num == branch_num)
        judged = load_judged(self._connection, branch.num, ids)
        self._look_at(branch, judged)
        for author in {one.author for one in judged}:
            # Which commits a removal names depends on the whole feed when the feed is forked.
            removals = self._membership.now().counting_removals_of(author)
            last = max((one.sequence for one in judged if one.author == author), default=0)
            if removals and has_forks(self._connection, branch.num, author, last):
                self._look_at(branch, load_judged_by(self._connection, branch.num, author))

    def of_adopted(self, branch_id: bytes, ids: Sequence[bytes]) -> None:
        """Look at commits that are adopted."""
        for branch in self._branches:
            if branch.branch_id == branch_id:
                self._look_at(branch, load_judged(self._connection, branch.num, ids))

    def find_void(self, branch: Branch, one: Judged) -> Void | None:
        """Whether a commit is void, and why."""
        if not self._membership.now().counting:
            return None
        place = self._open(branch, one).place(GROUP)
        assert place is not None, "V3"
        return find_void(
            self._membership,
            one.commit_id,
            branch.branch_id,
            one.author,
            place.previous,
            lambda end: self._is_in_feed(branch, one, end),
        )

    def _look_at(self, branch: Branch, judged: Iterable[Judged]) -> None:
        new: dict[bool, list[int]] = {True: [], False: []}
        for one in judged:
            is_void = self.find_void(branch, one) is not None
            if is_void != one.is_void:
                new[is_void].append(one.num)
        for is_void, nums in new.items():
            if nums:
                mark_void(self._connection, nums, is_void=is_void)
                self.changed[branch.topic] = self.changed.get(branch.topic, 0) + len(nums)

    def _is_in_feed(self, branch: Branch, one: Judged, end: FeedEnd) -> bool:
        """Whether the feed whose last commit is `end` contains a commit of the same author."""
        if one.sequence > end.sequence:
            return False
        if not has_forks(self._connection, branch.num, one.author, end.sequence):
            return True
        current = end.commit
        for sequence, following in zip(
            skip_path(end.sequence, one.sequence), skip_path(end.sequence, one.sequence)[1:], strict=False
        ):
            found = load_judged(self._connection, branch.num, [current])
            if not found or (found[0].author, found[0].sequence) != (one.author, sequence):
                return False
            commit = self._open(branch, found[0])
            link = commit.content.feed_previous if following == sequence - 1 else commit.links.lipmaa
            assert link is not None, "the shape demands it"
            current = link
        return current == one.commit_id

    def _open(self, branch: Branch, one: Judged) -> Commit:
        num = unpack_nums(one.block_nums)[0]
        encoded = read_blocks(self._connection, {num: one.commit_id})[num]
        return open_commit(decode_block(encoded), one.commit_key, branch.convergence_secret)
