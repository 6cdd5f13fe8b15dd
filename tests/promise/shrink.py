"""Leaves steps and people out of a history as long as the same check fails."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.promise.draw import History
from tests.promise.play import Outcome
from tests.promise.steps import Step

_TRIES_MAX: Final = 150
_SECONDS_MAX: Final = 120.0
"""Of the processor: a history that never settles takes a minute each time."""


def shrink(failed: Outcome, play: Callable[[History], Outcome]) -> str:
    """Return what is left of a history that fails, as text."""
    best, tries, spent = failed, 0, 0.0

    def still_fails(history: History) -> bool:
        nonlocal best, tries, spent
        tries += 1
        outcome = play(history)
        spent += outcome.seconds
        if outcome.check != failed.check:
            return False
        best = outcome
        return True

    def may_try() -> bool:
        return tries < _TRIES_MAX and spent < _SECONDS_MAX

    steps: list[Step] = list(failed.steps)
    size = max(len(steps) // 2, 1)
    while steps and may_try():
        at, shrunk = 0, False
        while at < len(steps) and may_try():
            fewer = steps[:at] + steps[at + size :]
            if still_fails(failed.history.with_steps(fewer)):
                steps, shrunk = fewer, True
            else:
                at += size
        if size == 1 and not shrunk:
            break
        size = max(size // 2, 1)
    for name in [name for name, _ in failed.history.levels][::-1]:
        history = replace(best.history, levels=tuple(one for one in best.history.levels if one[0] != name))
        if may_try() and not any(name in (step.who, *step.args) for step in steps):
            still_fails(history.with_steps(steps))
    return "\n".join(
        [
            "  shrunk:",
            "  " + best.history.describe(),
            *(f"  {line}" for line in best.log),
            "  " + best.describe(),
        ]
    )
