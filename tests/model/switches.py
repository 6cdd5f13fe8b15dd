"""The switch that weakens one rule at a time, the parameters, and the memory that must be emptied when they change."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass
class Settings:
    """Parameters of a run: the weakened clause, the order of ids, and the bounds."""

    mutant: str = ""
    salt: int = 0
    heads_max: int = 4
    latest_max: int = 2
    boxes_max: int = 99
    cofounder: int = 0
    acks_void: int = 0
    presumes: int = 0


SETTINGS = Settings()
_MEMORIES: list[dict[Any, Any]] = []
_RESETS: list[Callable[[], None]] = []


def on(clause: str) -> bool:
    """Return True unless this clause is left out now."""
    return SETTINGS.mutant != clause


def memo(function: Callable[..., Result]) -> Callable[..., Result]:
    """Remember results by positional arguments until the next `use`."""
    known: dict[tuple[Hashable, ...], Result] = {}
    _MEMORIES.append(known)

    def remembered(*key: Hashable) -> Result:
        try:
            return known[key]
        except KeyError:
            result = known[key] = function(*key)
            return result

    return remembered


def at_reset(function: Callable[[], None]) -> Callable[[], None]:
    """Register a function that `use` calls after the memories were emptied."""
    _RESETS.append(function)
    return function


def forget() -> None:
    """Empty all memories, and found anew."""
    for memory in _MEMORIES:
        memory.clear()
    for reset in _RESETS:
        reset()


def use(mutant: str = "", **parameters: int) -> None:
    """Change what varies, and forget what followed from other settings."""
    fresh = Settings(mutant, **parameters)
    for name in Settings.__dataclass_fields__:
        setattr(SETTINGS, name, getattr(fresh, name))
    forget()
