"""A few runs of the simulation, always the same, and every seed that once failed; `make sim-long` tries new ones."""

import pytest

from tests.simulation.run import run

ONCE_FAILED: tuple[int, ...] = ()
"""Seeds that found a defect. They stay, though a change of the simulation makes other runs of them."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(6), *ONCE_FAILED])
def test_whatever_the_network_does_all_hold_the_same_when_it_heals(seed: int) -> None:
    run(seed)


@pytest.mark.slow
def test_a_seed_is_one_run() -> None:
    assert run(5) == run(5)
