"""The rules keep their promise in the model, and a sample of weakened rules is found. `python -m tests.model` runs more."""

import random
import subprocess
import sys

import pytest

from tests.model.cases import HISTORIES, WORLDS, draw_world
from tests.model.mutants import SMALL
from tests.model.promise import find_fault
from tests.model.search import draw, run_history, search
from tests.model.switches import use

pytestmark = pytest.mark.slow  # thousands of small sets

_FOUND_AT_ONCE = {
    "E3": "boxes",
    "E4": "evil-acks",
    "E7 keys of what waits": "honest",
    "clean: removals": "unaware-short",
    "may hold: by opening": "opened",
    "surely holds the writers' secret: joins do not tell": "other-link",
    "merges open nothing while an epoch is due": "two-merged",
    "merges have the author's membership in their past": "merged",
    "merges in the epoch in use": "hand-merged",
}
"""Weakened rules and the worlds in which a few sets show them."""


@pytest.mark.parametrize("name", HISTORIES)
def test_histories_that_went_wrong_under_earlier_rules(name: str) -> None:
    world_name, steps = HISTORIES[name]
    world = WORLDS[world_name]
    use("", **world.settings)
    assert find_fault(run_history(world, steps), world.evil, "all") is None


@pytest.mark.parametrize("name", ["again", "void", "granted", "evil-heads"])
def test_all_short_histories_of_a_world(name: str) -> None:
    result = search(WORLDS[name], length=1, checked_max=25)
    assert not result.faults


@pytest.mark.parametrize("name", _FOUND_AT_ONCE)
def test_without_a_rule_the_promise_is_broken(name: str) -> None:
    world = SMALL[_FOUND_AT_ONCE[name]]
    assert search(world, name, checked_max=2000).faults


def test_random_histories() -> None:
    for number in range(15):
        chance = random.Random(f"1 {number}")
        world = draw_world(chance)
        use("", **world.settings)
        history = draw(world, chance, chance.randint(3, 6))
        assert find_fault(run_history(world, history), world.evil, "some") is None


@pytest.mark.extended
def test_all_parts() -> None:
    """Half a minute: every world, every weakened rule, random histories."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.model"], capture_output=True, text=True, check=False
    )  # with a memory of its own
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
