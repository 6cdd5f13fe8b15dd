"""A short run of the kill loop; `make crash ROUNDS=200` goes on for long."""

from pathlib import Path

import pytest

from tests.crash.rounds import play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_what_was_acknowledged_survives_sigkill_in_whatever_a_node_does(tmp_path: Path) -> None:
    commits, _ = play(tmp_path, 1, ["write", "file", "export", "sync", "gc", "backup", "upgrade", "write"])
    assert commits > 10
