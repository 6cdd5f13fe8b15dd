"""Branches and repos are found among those that a caller is for; of thousands, by a name or an id without looking at all."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from node.api.callers import Caller
from node.api.targets import Targets
from node.runtime.errors import ServiceError
from node.runtime.resolve import preferred_repo
from protocol.formats.text import id_text
from storage.repos.repos import Branch
from tests.support.builders import World


class _NotWalked(dict[int, Branch]):
    """Looked up, and never gone through."""

    def values(self) -> NoReturn:
        raise AssertionError("all branches were looked at")

    __iter__ = items = values


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.author.founding.create_repo("other", "main")
    made.author.founding.create_branch(made.repo, "side")
    tables = made.replica.tables
    yield made
    made.replica.shown.tables = tables
    made.close()


@pytest.fixture
def targets(world: World) -> Targets:
    """Of a node whose branches must not be gone through."""
    tables = world.replica.tables
    world.replica.shown.tables = replace(tables, branches=_NotWalked(tables.branches))
    return Targets(world.replica, world.author.user)


def test_a_name_an_id_and_a_repos_branch_are_looked_up(world: World, targets: Targets) -> None:
    assert targets.branch("side").name == "side"
    assert targets.branch(id_text(world.branch.branch_id)).num == world.branch.num
    assert targets.branch("world:main").num == world.branch.num
    assert targets.branch(f"world:{id_text(world.branch.branch_id)[:8]}").num == world.branch.num
    with pytest.raises(ServiceError, match="no branch"):
        targets.branch("world:maim")


def test_a_name_is_found_whether_its_accents_are_on_the_letters_or_behind_them(world: World) -> None:
    composed, decomposed = "R\xe9sum\xe9", "Re\u0301sume\u0301"
    world.author.founding.create_repo(composed, composed)
    world.author.founding.create_repo("of macOS", decomposed + " 2")
    targets = Targets(world.replica, world.author.user)
    assert targets.branch(decomposed) == targets.branch(f"{decomposed}:{composed}")
    assert targets.branch(composed + " 2").name == decomposed + " 2"
    assert targets.repo(decomposed) == targets.repo(composed)
    with pytest.raises(ServiceError, match="there is a repo"):
        world.author.founding.create_repo(decomposed, is_unique=True)


def test_a_prefix_alone_is_compared_with_all(world: World) -> None:
    assert (
        Targets(world.replica, world.author.user).branch(id_text(world.branch.branch_id)[:8]).num
        == world.branch.num
    )


def test_a_name_of_two_repos_is_ambiguous_unless_one_is_preferred(world: World, targets: Targets) -> None:
    with pytest.raises(ServiceError, match="more than one branch") as caught:
        targets.branch("main")
    assert caught.value.code == "ambiguous"
    token = preferred_repo.set(id_text(world.repo.repo_id))
    try:
        assert targets.branch("main").num == world.branch.num
    finally:
        preferred_repo.reset(token)


def test_who_is_for_one_branch_finds_no_other(world: World, targets: Targets) -> None:
    only = frozenset({targets.name(targets.branch("side"))})
    caller = Caller("app", frozenset(), branches=only)
    assert targets.branch("side", caller).name == "side"
    for text in ("world:main", f"world:{id_text(world.branch.branch_id)}"):
        with pytest.raises(ServiceError) as caught:
            targets.branch(text, caller)
        assert caught.value.code == "not_found"


def test_the_root_branch_is_none_that_is_written_to(world: World, targets: Targets) -> None:
    with pytest.raises(ServiceError):
        targets.branch(f"world:{id_text(world.repo.repo_id)}")


def test_repos_are_found_by_id_and_name(world: World, targets: Targets) -> None:
    assert targets.repo("world").num == world.repo.num
    assert targets.repo(id_text(world.repo.repo_id)).num == world.repo.num
    assert targets.repo(id_text(world.repo.repo_id)[:6]).num == world.repo.num
