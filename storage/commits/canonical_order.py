"""CANONICAL_ORDER: the order of a timeline, in which every replica shows a branch's commits.

The verifier computes rank and checkpoints passed (V12, V15); `position_index` counts along the order.
"""

from typing import Final

from protocol.ids import NO_COMMIT, CommitId
from storage.schema.schema import commits

OrderKey = tuple[int, int, CommitId]
"""Checkpoints passed, rank and id of a commit: by this the commits of a branch are ordered."""

CANONICAL_ORDER: Final = (commits.c.passed, commits.c.rank, commits.c.commit_id)
"""Of the commits of one branch."""
FIRST: Final[OrderKey] = (0, 0, NO_COMMIT)
