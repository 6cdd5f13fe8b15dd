"""The membership rules: named cases with their outcomes, and every small history against the reference."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.memberships import NAMES, Step, Twins, antichains, parse, replay
from tests.support.reference_membership import ADMIN

DOCS = Path(__file__).parents[3] / "docs/reference/membership-rules.md"
SCENARIO = re.compile(
    r"\*\*(?P<title>[^*]+)\.\*\*\n\n```\n(?P<steps>[^`]+)members: (?P<members>[a-z ]+)\n```"
)
CASES = {
    found["title"]: (found["steps"], found["members"])
    for found in SCENARIO.finditer(DOCS.read_text(encoding="utf-8"))
}
"""Each: a history (`ann` founded the repo) and who is a member after it."""
REFUSED = {
    "a_stranger_grants": ("ann . < 0", "ben + cat read < 1"),
    "a_writer_grants": ("ann + ben write < 0", "ben + cat read < 1"),
    "an_admin_grants_owner": ("ann + ben admin < 0", "ben + cat owner < 1"),
    "one_raises_oneself": ("ann + ben admin < 0", "ben + ben owner < 1"),
    "what_is_held_is_granted": ("ann + ben admin < 0", "ann + ben write < 1"),
    "an_admin_removes_an_owner": (
        "ann + ben owner < 0\nann + cat admin < 1",
        "cat - ben < 2",
    ),
    "an_owner_removes_the_founder": ("ann + ben owner < 0", "ben - ann < 1"),
    "a_stranger_is_removed": ("ann . < 0", "ann - ben < 1"),
    "the_removed_goes_on": ("ann + ben admin < 0\nann - ben < 1", "ben . < 2"),
    "a_reader_writes": ("ann + ben read < 0", "ben . < 1"),
}
OPERATIONS = int(os.environ.get("RAVEL_OPERATIONS", "4"))
"""Of the exhaustive test: `make histories` takes 5, which is 68,346 histories."""


@pytest.mark.parametrize("name", CASES)
def test_named_case(name: str) -> None:
    description, members = CASES[name]
    assert sorted(replay(parse(description)).check()) == members.split()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    before, step = REFUSED[name]
    twins = replay(parse(before))
    assert not twins.take(parse(step)[0])


def test_all_scenarios_of_the_docs_are_read() -> None:
    assert len(CASES) == DOCS.read_text(encoding="utf-8").count("members: ") > 20


def test_the_order_of_arrival_does_not_matter() -> None:
    """The same operations, in another order that has causes first: numbers and ids differ, members do not."""
    for description, members in CASES.values():
        steps = parse(description)
        order = sorted(range(len(steps)), key=lambda index: (len(_past(steps, index)), -index))
        number = {0: 0} | {index + 1: place + 1 for place, index in enumerate(order)}
        moved = [
            Step(one.author, one.kind, one.user, one.level, tuple(number[ack] for ack in one.acks))
            for one in (steps[index] for index in order)
        ]
        assert sorted(replay(moved).check()) == members.split()


@pytest.mark.extended
@pytest.mark.slow
def test_every_small_history_is_judged_as_the_reference_does() -> None:
    count = sum(1 for _ in _histories([], OPERATIONS))
    assert count > 68_000 if OPERATIONS == 5 else count > 2000


@st.composite
def _steps(draw: st.DrawFn) -> list[Step]:
    names = NAMES[: draw(st.integers(3, len(NAMES)))]
    steps: list[Step] = []
    pasts = [frozenset[int]()]
    for _ in range(draw(st.integers(1, 14))):
        # Near the end mostly: else nothing has much of a past.
        ways = antichains(pasts[-5:])
        start = max(len(pasts) - 5, 0)
        acks = tuple(start + ack for ack in draw(st.sampled_from(ways)))
        acks = tuple(ack for ack in acks if not any(ack in pasts[other] for other in acks))
        kind = draw(st.sampled_from(["grant", "grant", "remove", "remove", "post"]))
        level = draw(st.integers(1, 5)) if kind == "grant" else draw(st.sampled_from([0, 0, 0, 1, 2, 4]))
        steps.append(Step(draw(st.sampled_from(names)), kind, draw(st.sampled_from(names)), level, acks))
        pasts.append(frozenset(acks).union(*(pasts[ack] for ack in acks)))
    return steps


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(steps=_steps())
def test_random_histories_are_judged_as_the_reference_does(steps: list[Step]) -> None:
    twins = Twins()
    kept = {0: 0}
    for number, step in enumerate(steps, start=1):
        acks = {kept[ack] for ack in step.acks if ack in kept} or {0}
        last = {ack for ack in acks if not any(ack in twins.pasts[other] for other in acks)}
        if twins.take(Step(step.author, step.kind, step.user, step.level, tuple(sorted(last)))):
            kept[number] = len(twins) - 1
    for user, level in twins.check().items():
        granted = [step.level for step in steps if step.kind == "grant" and step.user == user]
        assert user == "ann" or level <= max(granted, default=0), "nobody holds what nobody gave"


def _past(steps: list[Step], index: int) -> set[int]:
    past = set(steps[index].acks)
    return past.union(*(_past(steps, ack - 1) for ack in steps[index].acks if ack))


def _histories(steps: list[Step], more: int) -> Iterator[list[Step]]:
    """All histories of at most so many more operations of admins, once each up to names and the order of what is beside."""
    twins = replay(steps)
    twins.check()
    yield steps
    if not more:
        return
    known = {"ann"} | {step.user for step in steps}
    newcomer = next((name for name in NAMES[:4] if name not in known), None)
    for acks in antichains(twins.pasts):
        past = frozenset(acks).union(*(twins.pasts[ack] for ack in acks))
        for author in sorted(known):
            for user in sorted(known | ({newcomer} if newcomer else set())):
                for kind, level in (("grant", ADMIN), ("remove", 0)):
                    step = Step(author, kind, user, level, acks)
                    if steps and len(steps) not in past and _key(step) < _key(steps[-1]):
                        continue  # beside the last one, and before it in the history that has both in order
                    if replay(steps).take(step):
                        yield from _histories([*steps, step], more - 1)


def _key(step: Step) -> tuple[str, str, str, tuple[int, ...]]:
    return step.author, step.kind, step.user, step.acks
