"""Dominator tree of a growing commit graph: the latest commit on every path from a commit to the root.

A commit's *dominator* is the latest commit that all its paths to the root pass through: the last point where everything
that it knows was one. What a question is about often lies below such a point, and the walk may begin there instead.

A new commit comes after all that it follows, so its dominator is the meeting point, in the tree, of those of what it
follows, and nothing else changes. Every node also keeps a jump to a far ancestor (skew-binary, Myers 1983: An
applicative random-access stack), so that any ancestor and the meeting of two nodes are found in O(log n) steps.
"""

from array import array
from collections.abc import Sequence


class DominatorTree:
    """Dominator tree, whose nodes are numbered in the order of addition; 0 is the root, its own dominator.

    The rank is the length of the longest path to the root, so it rises along every path, the tree's too. Memory: four
    integers of four bytes for a node.
    """

    def __init__(self) -> None:
        self.rank = array("i", [0])
        self._dominator = array("i", [0])
        self._jump = array("i", [0])
        self._depth = array("i", [0])

    def add(self, previous: Sequence[int]) -> int:
        """Add a node that follows these (at least one); return its number. Costs O(log n) for each."""
        rank = self.rank
        above = previous[0]
        highest = rank[above]
        for num in previous[1:]:
            above = self.meet(above, num)
            highest = max(highest, rank[num])
        depth, jump = self._depth, self._jump
        near = jump[above]
        far = jump[near]
        rank.append(highest + 1)
        depth.append(depth[above] + 1)
        self._dominator.append(above)
        # Two jumps of equal length become one of twice the length.
        jump.append(far if depth[above] - depth[near] == depth[near] - depth[far] else above)
        return len(rank) - 1

    def dominator(self, num: int) -> int:
        """Return the latest node on every path from the root to this one; the root's is the root."""
        return self._dominator[num]

    def meet(self, one: int, other: int) -> int:
        """Return the latest node on every path from the root to either. Costs O(log n)."""
        dominator, jump, depth = self._dominator, self._jump, self._depth
        if depth[one] < depth[other]:
            one, other = other, one
        level = depth[other]
        while depth[one] > level:
            one = jump[one] if depth[jump[one]] >= level else dominator[one]
        while one != other:
            # Nodes of equal depth have jumps of equal length.
            if jump[one] != jump[other]:
                one, other = jump[one], jump[other]
            else:
                one, other = dominator[one], dominator[other]
        return one

    def lift(self, num: int, floor: int) -> int:
        """Return the earliest node of rank above `floor` among this one (above it too) and its dominators."""
        rank, dominator, jump = self.rank, self._dominator, self._jump
        while rank[above := dominator[num]] > floor:
            num = far if rank[far := jump[num]] > floor else above
        return num
