"""A few whole-node histories, always the same; `make promise` tries new ones. Hash seeds follow from theirs."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.promise import draw, frequencies, healing, hostile_rules
from tests.promise.draw import History
from tests.promise.mutants import load_mutants
from tests.promise.play import Hung, play
from tests.promise.steps import Step
from tests.promise.world import World
from tests.support.tiers import in_tiers

_EACH_QUARREL_THRICE: Final = 23
"""Histories: each draws the next three of so many quarrels."""


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.promise", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not ran.returncode, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.extended
def test_whatever_members_do_all_hold_the_same_when_they_have_met() -> None:
    assert "the promise holds" in _run("--start", "1000", "--count", str(_EACH_QUARREL_THRICE))


@pytest.mark.extended
def test_a_seed_is_one_history() -> None:
    first, again = (_run("--seed", "4").partition("\n")[2].rpartition(",")[0] for _ in range(2))
    assert first == again
    assert "healing" in first
    assert first.endswith("hash seed 4")


def _history(
    seed: int,
    levels: dict[str, str],
    *steps: Step,
    has_sessions: bool = False,
    strangers: tuple[str, ...] = (),
) -> History:
    return History(
        seed=seed,
        levels=tuple(levels.items()),
        strangers=strangers,
        hostile=frozenset(),
        has_relay=False,
        has_sessions=has_sessions,
        length=0,
        steps=steps,
    )


_ONCE_WRONG: Final = {
    "granted after leaving": _history(
        5686,
        {"ben": "admin", "cat": "admin", "dan": "read", "eve": "admin"},
        Step("ben", "exclude", ("eve",)),
        Step("dan", "leave", ()),
        Step("eve", "exclude", ("dan",)),
        Step("ann", "gather", ("ben", "cat", "dan", "eve", 7)),
        Step("cat", "grant", ("dan", "admin")),
        Step("ann", "invite", ("write", 5)),
        Step("dan", "join", (-1,)),
    ),
    "admitted by who is demoted": _history(
        5650,
        {"ben": "write", "cat": "owner"},
        Step("cat", "grant", ("ben", "owner")),
        Step("ann", "exclude", ("ben",)),
        Step("cat", "meet", ("ann", 2)),
        Step("ann", "demote", ("cat", "write")),
        Step("ann", "write", (982435,)),
        Step("cat", "grant", ("ben", "write")),
    ),
    "made owner in an epoch beside the own one": _history(
        31204,
        {"ben": "admin", "cat": "admin", "dan": "admin"},
        Step("ann", "exclude", ("cat",)),
        Step("ben", "exclude", ("dan",)),
        Step("ann", "grant", ("ben", "owner")),
        Step("ann", "leave", ()),
        has_sessions=True,
    ),
    "a link revoked beside a join and a fresh prekey": _history(
        7,
        {"ben": "admin", "dan": "admin", "eve": "write"},
        Step("ann", "invite", ("write", 1)),
        Step("ann", "gather", ("ben", "dan", "eve", 2)),
        Step("hal", "join", (-1,)),
        Step("hal", "gather", ("dan", 2)),
        Step("dan", "meet", ("eve", 2)),
        Step("ben", "revoke", (-1,)),
        Step("hal", "refresh", ()),
        Step("eve", "meet", ("ben", 2)),
        Step("ben", "renew", ()),
        Step("hal", "meet", ("dan", 2)),
        Step("dan", "renew", ()),
        Step("ann", "meet", ("ben", 2)),
        Step("ann", "grant", ("hal", "write")),
        Step("ann", "wait", (130,)),
        Step("dan", "meet", ("ben", 2)),
        Step("ben", "write", (0,)),
        strangers=("hal",),
    ),
}
"""Histories in which the product, or a check, was wrong."""


@pytest.mark.slow
@pytest.mark.parametrize("name", in_tiers(_ONCE_WRONG, quick=1))
def test_what_was_once_wrong_holds(name: str) -> None:
    outcome = play(_ONCE_WRONG[name])
    assert not outcome.check, outcome.detail


@pytest.mark.slow
def test_places_that_adversaries_and_honest_people_pass_on_and_recover_are_the_same_everywhere() -> None:
    forged = [
        Step("dan", f"forge {kind}", (3,)) for kind in ("friends", "move", "recovery", "device", "puppet")
    ]
    honest = [
        Step("cat", "friends", ("ann", "ben")),
        Step("cat", "gather", ("ann", "ben", "dan", 2)),
        Step("ann", "vouch", ("cat", "phone")),
        Step("ben", "vouch", ("cat", "phone")),
        Step("ben", "let in", ("phone", 1)),
        Step("ben", "meet", ("phone", 7)),
        Step("ann", "pair", ("tablet", "")),
        Step("ann", "meet", ("tablet", 7)),
        Step("ann", "move", ("tablet",)),
        Step("ann", "gather", ("tablet", "dan", 7)),
        Step("phone", "write", (1,)),
        Step("tablet", "exclude", ("dan",)),
    ]
    levels = {"ben": "admin", "cat": "write", "dan": "admin"}
    history = _history(1, levels, *honest[:2], *forged, *honest[2:], *forged, strangers=("phone", "tablet"))
    outcome = play(replace(history, hostile=frozenset({"dan"})))
    assert not outcome.check, outcome.detail
    acts = {step.act for step in (*honest, *forged)}
    assert acts <= outcome.done.keys(), acts - outcome.done.keys()


@pytest.mark.slow
def test_that_a_history_hangs_is_told_whatever_nodes_take(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_: World) -> int:
        with suppress(Exception):  # as a node's borders do
            raise Hung
        return 0

    monkeypatch.setattr(healing, "heal_and_check", hang)
    outcome = play(_history(1, {}))
    assert outcome.check == "crashes"
    assert "Hung" in outcome.detail


def test_councils_are_drawn_of_more_than_half_of_the_founders_and_more_than_the_adversaries_among_them() -> (
    None
):
    drawn = [one for one in map(draw.draw_history, range(200)) if one.council is not None]
    assert len(drawn) > 20
    for one in drawn:
        founders = {draw.NAMES[0], *one.founders}
        assert one.council is not None
        assert len(founders) / 2 < one.council <= len(founders)
        assert len(founders & one.hostile) < one.council


def test_each_rule_that_is_drawn_can_be_broken() -> None:
    assert frequencies.RULES.keys() == hostile_rules.RULES.keys()


@pytest.mark.parametrize("name", load_mutants())
def test_what_a_mutant_replaces_stands_in_the_source_once(name: str) -> None:
    mutant = load_mutants()[name]
    spec = find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    assert source.count(mutant.old) == 1
    compile(source.replace(mutant.old, mutant.new), spec.origin, "exec")
