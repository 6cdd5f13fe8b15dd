"""A few joins, always the same, and every seed that once failed; `make sim-joins` tries new ones."""

from collections.abc import Iterator

import pytest

from tests.histories.real_commits import Founded
from tests.simulation.joins import founded_once, run

ONCE_FAILED: tuple[int, ...] = ()
"""Seeds that found a defect."""


@pytest.fixture(scope="module")
def founded() -> Iterator[Founded]:
    with founded_once() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *ONCE_FAILED])
def test_whatever_comes_first_and_from_whom_a_newcomer_ends_as_a_full_replica(
    seed: int, founded: Founded
) -> None:
    run(seed, founded)
