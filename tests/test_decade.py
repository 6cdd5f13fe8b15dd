"""The community of ten years that is measured: it has the sizes that were asked for, and the same ones after any kill."""

from pathlib import Path

import pytest
from sqlalchemy import func, select

from benchmarks.decade.build import build
from benchmarks.decade.life import Life
from benchmarks.decade.plan import Event, Happening, Sizes
from node.home.identity import open_keys
from node.ingest.replica import Replica
from storage.schema.schema import commits, epochs
from tests.support.keys import no_passphrase

_SMALL = Sizes(members=30, left=24, epochs=6, branches=3, repos=2, commits=600)


class _Killed(Exception):
    """The process is killed here."""


def _ids(home: Path) -> list[bytes]:
    """Ids of all commits of a node's folder, in the order of acceptance."""
    replica = _opened(home)
    try:
        with replica.database.read() as connection:
            return list(connection.execute(select(commits.c.commit_id).order_by(commits.c.num)).scalars())
    finally:
        replica.close()


def _opened(home: Path) -> Replica:
    return Replica(home, open_keys(home, no_passphrase).store_key)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small community, built without a kill."""
    folder = tmp_path_factory.mktemp("decade")
    build(folder, _SMALL, seed=1)
    return folder


def test_a_small_community_has_what_was_asked_for_and_its_year_is_its_beginning(small: Path) -> None:
    year, decade = (_ids(small / name / "node") for name in ("year", "decade"))
    replica = _opened(small / "decade" / "node")
    try:
        with replica.database.read() as connection:
            posts = select(func.count()).where(commits.c.body_kind == "post", commits.c.is_void.is_(False))
            forks = select(func.count()).where(
                func.length(commits.c.acks) > 32, commits.c.body_kind == "post"
            )
            answers = select(func.count()).where(commits.c.relation == "reply")
            assert connection.execute(posts).scalar_one() == _SMALL.commits
            assert connection.execute(forks).scalar_one() > 0
            assert connection.execute(answers).scalar_one() > 0
            assert connection.execute(select(func.count()).select_from(epochs)).scalar_one() == _SMALL.epochs
        assert len(replica.repos) == _SMALL.repos
        assert len(replica.branches) == _SMALL.branches + _SMALL.repos
        (commons,) = replica.tables.repos_with_name("commons")
        assert len(replica.members(commons)) == _SMALL.members - _SMALL.left
        assert not replica.waiting
    finally:
        replica.close()
    assert 0 < len(year) < len(decade) / 5
    assert decade[: len(year)] == year


@pytest.mark.extended
@pytest.mark.slow
def test_a_build_that_is_killed_again_and_again_makes_the_same_community(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Life._play
    killed: set[type[Happening]] = set()

    def die_once_after_each(life: Life, event: Event) -> None:
        played(life, event)
        if type(event.what) not in killed:
            killed.add(type(event.what))
            raise _Killed

    monkeypatch.setattr(Life, "_play", die_once_after_each)
    while True:
        try:
            build(tmp_path, _SMALL, seed=1)
        except _Killed:
            continue
        break
    assert len(killed) >= 8
    assert _ids(tmp_path / "decade" / "node") == _ids(small / "decade" / "node")


def test_a_folder_of_another_community_is_refused(small: Path) -> None:
    with pytest.raises(ValueError, match="is of another community"):
        build(small, _SMALL, seed=2)
