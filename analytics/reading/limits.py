"""Limits on what an export can make an analysis hold, each with unit and reason."""

from typing import Final

MIB: Final = 1 << 20

BLOCK_SIZE_MAX: Final = MIB
"""Bytes of an encoded block. This and the next four are the format's (protocol.md), restated: a test compares them."""
BLOCK_CHILD_COUNT_MAX: Final = 15_887
"""Children that a block names."""
BLOCK_ACK_COUNT_MAX: Final = 128
"""Acks that a block names."""
BLOCK_CIPHERTEXT_SIZE_MAX: Final = MIB - 32
"""Bytes of a block's ciphertext."""

BLOCK_MARK_SIZE: Final = 8
"""Bytes of the mark in a commit's block."""

STATED_NUMBER_MAX: Final = 2**53 - 1
"""Largest time, feed sequence and rank of the format, restated likewise: a commit with another was never accepted."""

PERCENTILE_ACCURACY: Final = 100_000
"""Of Spark's approximate percentiles: exact below half as many values (rows, not different ones), then within so small a
part of the rows. It bounds what a task holds for one column of a group: some 10 MB."""
SMALL_ROWS_MAX: Final = 100_000
"""Rows of all exports up to which an analysis is small: each of its tables fits the driver's memory, at most some 30 MB."""
TASK_COMMITS: Final = 1_000_000
"""Commits of many branches that are put into one task, as far as their sizes allow: 0.7 GB of Python."""
PACKED_FROM: Final = 100_000
"""Commits from which on a branch is put into a task by its size: at most 10,000 of a thousand million commits. Of smaller
ones each task gets as many, as there are many."""
LARGE_BRANCH_FROM: Final = 2_000_000
"""Commits from which on a branch is not ordered in one task, unless told otherwise: 1.4 GB of Python."""
LARGE_BRANCH_CHECKPOINT_COUNT_MAX: Final = 4096
"""Checkpoints of a giant. Each commit of a range may hold a bit for each: 0.5 GB for a million commits."""
BOUNDARY_SIZE_MAX: Final = 512 * MIB
"""Bytes of what ranges of a giant tell each other, which the driver holds and every task gets."""
WAVE_COUNT_MAX: Final = 10_000
"""Rounds in which ranges of a giant are ranked one after another: hours. Only a forged export needs more."""
LOCAL_ORDER_COMMITS: Final = 1_000_000
"""Commits of many branches that the local engine orders at once: 0.7 GB of Python."""
LOCAL_BRANCH_COMMITS_MAX: Final = 10_000_000
"""Commits of one branch that the local engine orders: 7 GB of Python. Larger ones are Spark's."""
LOCAL_MEMORY_MAX: Final = 3072 * MIB
"""Bytes that DuckDB holds in the local engine; what is more goes to a file beside the results."""
CSV_ROWS_MAX: Final = 10_000
"""Rows of a table that is written as CSV unasked: a spreadsheet takes them at once, and all such tables take a second."""
DIGESTS_LISTED_MAX: Final = 10_000
"""Branches in digests.json, the largest ones, which a person may compare: 1.3 MB. The table of digests has all."""
NAMES_SIZE_MAX: Final = 16 << 20
"""Bytes of JSON that say what keys are called: over 100,000 names of the longest kind."""
EXPORT_LIST_SIZE_MAX: Final = 16 << 20
"""Characters of a file that names exports: some 100,000 nodes."""
