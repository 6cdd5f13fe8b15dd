"""Growth of a store, by day and by cause."""

from pathlib import Path

import pytest
from sqlalchemy import Connection, func, insert, select, update

from protocol.formats.body import Grant, Permission
from storage.commits.growth import EPOCHS, FILES, MEMBERS, POSTS, add_growth, count_held, load_growth
from storage.schema.schema import commits, files
from tests.support.nodes import open_nodes

DAY_MS = 86_400_000


def _date(connection: Connection) -> list[int]:
    """Have two commits come on each day, the last two on day 20,000; gives their numbers."""
    nums = list(connection.execute(select(commits.c.num).order_by(commits.c.num)).scalars())
    for ago, num in enumerate(reversed(nums)):
        at = {"received_at": (20_000 - ago // 2) * DAY_MS + 1}
        connection.execute(update(commits).where(commits.c.num == num).values(at))
    return nums


def test_growth_is_told_by_day_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for number in range(4):
            alice.write(branch, f"post {number}")
        with alice.replica.database.write() as connection:
            nums = _date(connection)
            days = load_growth(connection)
            assert [(one.day, one.all.commits) for one in days[:2]] == [(20_000, 2), (19_999, 2)]
            assert sum(one.all.commits for one in days) == len(nums)
            assert all(one.all.size > 0 for one in days)
            monkeypatch.setattr("storage.commits.growth.GROWTH_COMMIT_COUNT_MAX", 3)
            assert [one.all.commits for one in load_growth(connection)] == [2, 1]
            monkeypatch.setattr("storage.commits.growth.GROWTH_DAY_COUNT_MAX", 1)
            assert [one.all.commits for one in load_growth(connection)] == [2]


def test_growth_is_told_by_cause(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo()
        alice.author.write(alice.replica.root_branch(repo), Grant(bob.author.user, Permission.WRITE))
        alice.author.start_epoch(repo)
        alice.write(branch, "post")
        with alice.replica.database.write() as connection:
            (day,) = load_growth(connection)
            counts = {cause: one.commits for cause, one in day.causes.items()}
            # The repo's init, what adds the branch, and the grant; the branch's first commit, and the post.
            assert counts == {POSTS: 2, FILES: 0, MEMBERS: 3, EPOCHS: 1}
            held = count_held(connection)
            assert held.epochs == 2
            assert held == (6, 4, 1, {day.day: 1})
            post = connection.execute(select(func.max(commits.c.num))).scalar_one()
            connection.execute(update(commits).where(commits.c.num == post).values(body_kind="files"))
            (before,) = load_growth(connection)
            row = {"branch_num": branch.num, "commit_num": post, "object_id": bytes(32), "object_key": b""}
            for num in (1, 2):
                connection.execute(insert(files), {**row, "num": num, "name": "a", "size": 1000})
            (after,) = load_growth(connection)
            assert before.causes[FILES].commits == after.causes[FILES].commits == 1
            assert after.causes[FILES].size == before.causes[FILES].size + 2000
            assert after.causes[POSTS] == before.causes[POSTS]
            assert after.all == add_growth(after.causes.values())
