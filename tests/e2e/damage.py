"""Damage to a store as failing disks do it, for tests of what comes after."""

import sqlite3
from contextlib import closing
from pathlib import Path


def harm(store: Path) -> None:
    """A post's block, a block of the root branch, ranks and heads."""
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("DELETE FROM heads")
        connection.execute("UPDATE commits SET rank = rank + 1")
        for branch_num in (1, 2):
            (nums,) = connection.execute(
                "SELECT block_nums FROM commits WHERE branch_num = ? ORDER BY num DESC LIMIT 1", (branch_num,)
            ).fetchone()
            num = int.from_bytes(nums[:8], "little")
            connection.execute("UPDATE blocks SET encoded = zeroblob(40) WHERE num = ?", (num,))
