"""Growth of a store, by day."""

from pathlib import Path

import pytest
from sqlalchemy import select, update

from storage.commits.commits import load_growth
from storage.schema.schema import commits
from tests.support.nodes import open_nodes

DAY_MS = 86_400_000


def test_growth_is_told_by_day_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for number in range(4):
            alice.write(branch, f"post {number}")
        with alice.replica.database.write() as connection:
            nums = list(connection.execute(select(commits.c.num).order_by(commits.c.num)).scalars())
            for ago, num in enumerate(reversed(nums)):
                at = {"received_at": (20_000 - ago // 2) * DAY_MS + 1}  # two on each day
                connection.execute(update(commits).where(commits.c.num == num).values(at))
            days = load_growth(connection)
            assert [(one.day, one.commits) for one in days[:2]] == [(20_000, 2), (19_999, 2)]
            assert sum(one.commits for one in days) == len(nums)
            assert all(one.size > 0 for one in days)
            monkeypatch.setattr("storage.commits.commits.GROWTH_COMMIT_COUNT_MAX", 3)
            assert [one.commits for one in load_growth(connection)] == [2, 1]
            monkeypatch.setattr("storage.commits.commits.GROWTH_DAY_COUNT_MAX", 1)
            assert [one.commits for one in load_growth(connection)] == [2]
