"""In-memory graph of commits with one root, built in any arrival order, with queries for user interfaces.

`Tangle` takes commits in any order. What lacks something that it follows is set aside and enters once that has come;
nothing that is merely incomplete raises. Which commits a tangle is made of, and what each follows, is for
`tangle_kinds` to say; whether they may be believed, for `verify`. The canonical order of a branch does not need
this: it is an index of the store (`storage.commits.position_index`).

No method recurses, and iterators do no more than is taken from them. n below is the number of commits.
"""

import heapq
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from protocol.ids import CommitId
from protocol.limits.peers import TANGLE_PENDING_COUNT_MAX
from verifier.dominators import DominatorTree

_NONE = -1


@dataclass(slots=True)
class _SetAside:
    """Commit that waits for `lacking` others."""

    previous: tuple[CommitId, ...]
    is_shown: bool
    lacking: int


class Tangle:
    """Tangle, from its root on. Questions about commits that are not in it raise KeyError.

    Memory: about 200 bytes for a commit. At most `pending_max` commits are set aside; what comes beyond is not kept, and
    can be added again later.
    """

    def __init__(self, root: CommitId, *, pending_max: int = TANGLE_PENDING_COUNT_MAX) -> None:
        self._ids = [root]
        self.nums = {root: 0}
        """Numbers of the commits, in the order in which they entered."""
        self._tree = DominatorTree()
        # Edges, to what a commit follows: those of commit `num` from _edge_start[num] on. Those that lead to one commit
        # are chained through _other_edge, the newest first.
        self._edge_start = array("i", [0, 0])
        self._edge_to = array("i")
        self._edge_from = array("i")
        self._other_edge = array("i")
        self._last_edge_to = array("i", [_NONE])
        self._tip_ids = [
            root
        ]  # sorted: to sort them when they are asked for took a third of a flood of side branches
        self._hidden: dict[CommitId, tuple[int, ...]] = {}
        self._waiting: dict[CommitId, _SetAside] = {}
        self._waiting_for: dict[CommitId, list[CommitId]] = {}
        self._pending_max = pending_max

    # --- growth ---

    def add(
        self, commit_id: CommitId, previous: Iterable[CommitId], *, is_shown: bool = True
    ) -> tuple[CommitId, ...]:
        """Add a commit that follows `previous` (at least one); return the ids of all commits that entered by it, in order.

        A commit enters once all that it follows is here, and only once. It is part of the tangle if it follows a part of
        it. A commit that is not shown is no part: its followers follow what it follows, or nothing if it lies beside or
        before the root. Of the commits that one follows, those that others among them imply are dropped.
        """
        if commit_id in self.nums or commit_id in self._hidden or commit_id in self._waiting:
            return ()
        followed = tuple(dict.fromkeys(previous))
        if not followed and is_shown:
            return ()  # a second root
        missing = [other for other in followed if other not in self.nums and other not in self._hidden]
        if missing:
            if len(self._waiting) < self._pending_max:
                self._waiting[commit_id] = _SetAside(followed, is_shown, len(missing))
                for other in missing:
                    self._waiting_for.setdefault(other, []).append(commit_id)
            return ()
        return self._enter(commit_id, followed, is_shown)

    def _enter(
        self, commit_id: CommitId, followed: tuple[CommitId, ...], is_shown: bool
    ) -> tuple[CommitId, ...]:
        entered: list[CommitId] = []
        ready = [(commit_id, followed, is_shown)]
        for ready_id, ready_followed, ready_shown in ready:  # grows while it is read
            nums = self._resolve(ready_followed)
            if ready_shown and nums:
                self._append(ready_id, nums)
                entered.append(ready_id)
            else:
                self._hidden[ready_id] = nums
            for waiting_id in self._waiting_for.pop(ready_id, ()):
                aside = self._waiting[waiting_id]
                aside.lacking -= 1
                if not aside.lacking:
                    del self._waiting[waiting_id]
                    ready.append((waiting_id, aside.previous, aside.is_shown))
        return tuple(entered)

    def _resolve(self, followed: Sequence[CommitId]) -> tuple[int, ...]:
        """Return the numbers that these ids stand for, without those that others among them imply."""
        if len(followed) == 1:
            num = self.nums.get(followed[0])
            return self._hidden[followed[0]] if num is None else (num,)
        nums: dict[int, None] = {}
        for commit_id in followed:
            num = self.nums.get(commit_id)
            nums.update(dict.fromkeys(self._hidden[commit_id] if num is None else (num,)))
        return tuple(
            num
            for num in nums
            if self._is_tip(num) or not any(self._precedes(num, other) for other in nums if other != num)
        )

    def _append(self, commit_id: CommitId, previous: tuple[int, ...]) -> None:
        num = self._tree.add(previous)
        self._ids.append(commit_id)
        self.nums[commit_id] = num
        for other in previous:
            last = self._last_edge_to[other]
            if last == _NONE:
                del self._tip_ids[bisect_left(self._tip_ids, self._ids[other])]
            self._last_edge_to[other] = len(self._edge_to)
            self._edge_to.append(other)
            self._edge_from.append(num)
            self._other_edge.append(last)
        self._edge_start.append(len(self._edge_to))
        self._last_edge_to.append(_NONE)
        insort(self._tip_ids, commit_id)

    # --- what is here ---

    @property
    def root(self) -> CommitId:
        """Return the first commit."""
        return self._ids[0]

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, commit_id: object) -> bool:
        return commit_id in self.nums

    @property
    def pending_count(self) -> int:
        """Return how many commits are set aside."""
        return len(self._waiting)

    def missing(self) -> list[CommitId]:
        """Return, sorted, the absent commits that set-aside commits wait for: those to ask other nodes for."""
        return sorted(self._waiting_for.keys() - self._waiting.keys())

    def tips(self) -> list[CommitId]:
        """Return, sorted, what nothing here follows: what a new commit follows, all of it and nothing else."""
        return list(self._tip_ids)

    def are_tips(self, ids: Sequence[CommitId]) -> bool:
        """Return True if these are the `tips`, in order. Costs O(ids)."""
        return len(ids) == len(self._tip_ids) and list(ids) == self._tip_ids

    # --- one commit ---

    def rank(self, commit_id: CommitId) -> int:
        """Return the length of the longest path to the root. Costs O(1)."""
        return self._tree.rank[self.nums[commit_id]]

    def previous(self, commit_id: CommitId) -> list[CommitId]:
        """Return what the commit follows directly, in its own order."""
        return [self._ids[num] for num in self._previous(self.nums[commit_id])]

    def is_tip(self, commit_id: CommitId) -> bool:
        """Return True if nothing follows the commit."""
        return self._is_tip(self.nums[commit_id])

    def is_branch(self, commit_id: CommitId) -> bool:
        """Return True if several commits follow it directly."""
        edge = self._last_edge_to[self.nums[commit_id]]
        return edge != _NONE and self._other_edge[edge] != _NONE

    def is_merge(self, commit_id: CommitId) -> bool:
        """Return True if it follows several commits directly."""
        return len(self._previous(self.nums[commit_id])) > 1

    # --- several commits ---

    def precedes(self, earlier: CommitId, later: CommitId) -> bool:
        """Return True if a path leads from `later` to `earlier`; no commit precedes itself.

        O(w log n), where w counts the commits of higher rank than `earlier` in the part of the tangle around it that no
        single commit separates from it: one in a chain or in a ladder of diamonds, however far apart the two are.
        """
        return self._precedes(self.nums[earlier], self.nums[later])

    def past_above(self, ids: Iterable[CommitId], floor: CommitId) -> set[CommitId]:
        """Return these commits and what precedes them, as far as its rank is above `floor`'s. Costs O(found)."""
        rank, lowest = self._tree.rank, self._tree.rank[self.nums[floor]]
        ahead = [num for commit_id in ids if rank[num := self.nums[commit_id]] > lowest]
        found = set(ahead)
        while ahead:
            for other in self._previous(ahead.pop()):
                if rank[other] > lowest and other not in found:
                    found.add(other)
                    ahead.append(other)
        return {self._ids[num] for num in found}

    def last_common(self, ids: Iterable[CommitId]) -> CommitId:
        """Return the latest commit on every path from these (at least one) to the root. Costs O(log n) for each."""
        nums = [self.nums[commit_id] for commit_id in ids]
        common = nums[0]
        for num in nums[1:]:
            common = self._tree.meet(common, num)
        return self._ids[common]

    def in_order(self) -> Iterator[CommitId]:
        """Yield all commits in canonical order, (rank, id), which is a topological one.

        Costs O(n log n) for all, and no more than the ranks that are reached for those that are taken.
        """
        levels: dict[int, set[int]] = {}
        ranks: list[int] = []
        level: Sequence[int] = [0]
        while True:
            for num in level:
                yield self._ids[num]
                for other in self._followers(num):
                    rank = self._tree.rank[other]
                    if rank not in levels:
                        levels[rank] = set()
                        heapq.heappush(ranks, rank)
                    levels[rank].add(other)
            if not ranks:
                return
            # Every edge leads to a higher rank, so the nearest rank is complete.
            level = sorted(levels.pop(heapq.heappop(ranks)), key=self._ids.__getitem__)

    # --- by number ---

    def _previous(self, num: int) -> Sequence[int]:
        return self._edge_to[self._edge_start[num] : self._edge_start[num + 1]]

    def _is_tip(self, num: int) -> bool:
        return self._last_edge_to[num] == _NONE

    def _followers(self, num: int) -> Iterator[int]:
        edge = self._last_edge_to[num]
        while edge != _NONE:
            yield self._edge_from[edge]
            edge = self._other_edge[edge]

    def _precedes(self, earlier: int, later: int) -> bool:
        """Walk back from `later`, and never below the rank of `earlier`.

        What precedes a commit and is not below its dominator precedes the dominator too. So wherever the walk comes to,
        it goes on from the earliest dominator that is still above that rank.
        """
        rank, tree = self._tree.rank, self._tree
        floor = rank[earlier]
        if rank[later] <= floor or self._is_tip(earlier):
            return False
        ahead, passed = [later], set[int]()
        while ahead:
            num = tree.lift(ahead.pop(), floor)
            if num in passed:
                continue
            passed.add(num)
            if tree.dominator(num) == earlier:
                return True
            for other in self._previous(num):
                if other == earlier:
                    return True
                if rank[other] > floor:
                    ahead.append(other)
        return False
