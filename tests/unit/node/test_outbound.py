"""What a node writes itself: what it costs the store beside the commits."""

from pathlib import Path

import pytest

from node.drafting import Draft
from protocol.content import Post
from storage.database import DATABASE_NAME
from tests.nodes import open_nodes

_PAGE_SIZE = 4096


def test_the_databases_log_is_used_anew_while_a_node_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads while it writes would have the log grow with all that is written: it reached 5 GB in an import."""
    pages = 50
    monkeypatch.setattr("storage.database._WAL_PAGES", pages)
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for number in range(60):
            alice.author.write(branch, Post(f"one {number}"))
            alice.author.write_many(branch, lambda _: [Draft(Post("a")), Draft(Post("b"))])
        log = tmp_path / "alice" / f"{DATABASE_NAME}-wal"
        assert log.stat().st_size < 4 * pages * _PAGE_SIZE
