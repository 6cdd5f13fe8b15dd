"""Ends of feeds that a removal states, and the commits that they name (N2), in any order of arrival."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from node.ingest.replica import Replica
from storage.commits.void_marks import load_void_ids
from tests.histories.real_commits import Founded, RealCommits, found, make_commits
from tests.histories.tales import FOUNDING, Tale
from tests.support.builders import give
from tests.support.reference_histories import End, History, Step
from tests.support.reference_membership import WRITE

GRANTED, REMOVED, OTHER = 5, 30, 31
NOBODY = -1


@dataclass(frozen=True)
class Case:
    """Posts of cat as {number: (sequence, the number before)}, the stated ends, and which posts are void."""

    posts: Mapping[int, tuple[int, int | None]]
    ends: tuple[End, ...]
    void: frozenset[int]


def _case(posts: Mapping[int, tuple[int, int | None]], void: set[int], *ends: tuple[int, int]) -> Case:
    return Case(posts, tuple(End("main", sequence, number) for sequence, number in ends), frozenset(void))


_CHAIN = {11: (1, None), 12: (2, 11), 13: (3, 12)}
_FORKED_AT_2 = {11: (1, None), 12: (2, 11), 22: (2, 11), 13: (3, 12)}
_FORKED_AT_3 = {11: (1, None), 12: (2, 11), 13: (3, 12), 23: (3, 12)}
CASES = {
    "the_end_is_here": _case(_CHAIN, {13}, (2, 12)),
    "nothing_is_stated": _case(_CHAIN, {11, 12, 13}),
    "the_end_is_not_here": _case(_CHAIN, {13}, (2, NOBODY)),
    "the_end_is_not_here_and_the_feed_is_forked": _case(_FORKED_AT_2, {11, 12, 22, 13}, (2, NOBODY)),
    "it_is_forked_above_the_end_that_is_not_here": _case(_FORKED_AT_3, {13, 23}, (2, NOBODY)),
    "it_is_forked_above_the_end": _case(_FORKED_AT_3, {13, 23}, (2, 12)),
    "it_is_forked_at_the_end": _case(_FORKED_AT_3, {23}, (3, 13)),
    "it_is_forked_before_the_end": _case(_FORKED_AT_2, {22}, (3, 13)),
    "the_end_is_the_other_fork": _case(_FORKED_AT_2, {12, 13}, (2, 22)),
    "the_end_stands_before_what_is_stated": _case(_CHAIN, {13}, (2, 11)),
    "the_end_stands_after_what_is_stated": _case(_CHAIN, {12, 13}, (1, 13)),
    "the_end_stands_elsewhere_in_a_forked_feed": _case(_FORKED_AT_2, {11, 12, 22, 13}, (3, 11)),
    "the_end_stands_elsewhere_below_the_fork": _case(_FORKED_AT_3, {12, 13, 23}, (1, 12)),
    "the_end_is_of_another_author": _case(_CHAIN, {13}, (2, 2)),
    "the_end_is_after_all": _case(_CHAIN, set(), (9, NOBODY)),
}


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Founded:
    return found(tmp_path_factory.mktemp("founded") / "founded")


def _tale(case: Case) -> Tale:
    posts = [
        Step(number, "cat", "post", "main", (2,), (GRANTED,), sequence, previous)
        for number, (sequence, previous) in case.posts.items()
    ]
    return Tale(
        frozenset({"cat"}),
        (
            *FOUNDING,
            Step(GRANTED, "ann", "grant", acks=(3,), sequence=4, previous=3, skip=0, user="cat", level=WRITE),
            *posts,
            Step(
                REMOVED,
                "ann",
                "remove",
                acks=(GRANTED,),
                sequence=5,
                previous=GRANTED,
                user="cat",
                ends=case.ends,
            ),
            # Written without having heard of it, so that the posts are on another node when the removal comes.
            Step(OTHER, "ann", "post", "main", (2,), (GRANTED,)),
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_is_named_does_not_depend_on_the_order(founded: Founded, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    tale = _tale(case)
    history, real = History(tale.steps), make_commits(founded, tale)
    assert not history.rejected
    assert history.void().keys() == case.void
    for count, order in enumerate(_orders(case, Random(1))):
        assert _void_on_a_node(founded, real, tmp_path / str(count), order) == case.void, order


def _orders(case: Case, rng: Random) -> Iterator[list[int]]:
    """Yield some orders in which the removal and the posts may come, causes first."""
    orders = [
        list(order)
        for order in permutations([*case.posts, REMOVED])
        if all(
            before is None or order.index(before) < order.index(one)
            for one, (_, before) in case.posts.items()
        )
    ]
    yield from rng.sample(orders, min(len(orders), 12))


def _void_on_a_node(founded: Founded, real: RealCommits, folder: Path, order: list[int]) -> set[int]:
    shutil.copytree(founded.folder, folder)
    replica = Replica(folder)
    numbers = {raw: number for number, raw in real.ids.items()}
    try:
        for number in (GRANTED, OTHER, *order):
            give(replica, [real.items[number]])
        with replica.database.read() as connection:
            return {numbers[raw] for raw in load_void_ids(connection, founded.branches["main"].num)}
    finally:
        replica.close()
        shutil.rmtree(folder)
