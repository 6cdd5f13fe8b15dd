"""One step of a history: who does what."""

from typing import NamedTuple


class Step(NamedTuple):
    """One thing that somebody does."""

    who: str
    act: str
    args: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, (self.who, self.act, *self.args)))
