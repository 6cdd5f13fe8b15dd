"""A short run of the kill loop; `make crash ROUNDS=200` goes on for long."""

from pathlib import Path

import pytest

from tests.crash.rounds import ACTS, play
from tests.support.postgresql import PostgresqlServer

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def test_what_was_acknowledged_survives_sigkill_in_whatever_a_node_does(tmp_path: Path) -> None:
    commits, _ = play(tmp_path, 1, [*ACTS, "write"])
    assert commits > 10


@pytest.mark.postgresql
def test_and_where_its_rows_are_in_a_database(tmp_path: Path, postgresql_server: PostgresqlServer) -> None:
    commits, _ = play(
        tmp_path, 3, ["write", "gc", "backup", "documents", "repair", "upgrade", "upgrade"], postgresql_server
    )
    assert commits > 5
