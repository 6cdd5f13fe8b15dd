"""`RowCache`: values made of rows, made again only where a row has changed.

To read a row is cheap; to open its secrets and derive keys of them is not, and a node of a thousand repos would do so for
each of them whenever one has changed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Row

V = TypeVar("V")


class RowCache(Generic[V]):
    """Values by the number that a row begins with. Replaced whole, so that any thread may use it.

    It compares whole rows, so it may be used in a transaction that is undone, and by readers of another moment.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[tuple[object, ...], V]] = {}

    def make_all(
        self,
        rows: Sequence[Row[Any]],
        make: Callable[[Row[Any]], V],
        also: Callable[[Row[Any]], tuple[object, ...]] = lambda _row: (),
    ) -> list[V]:
        """The values of these rows, in order: all there are. `also` gives what else a value is made of."""
        known, made = self._made, {}
        found: list[V] = []
        for row in rows:
            parts = (*row, *also(row))
            one = known.get(row[0])
            if one is None or one[0] != parts:
                one = (parts, make(row))
            made[row[0]] = one
            found.append(one[1])
        self._made = made
        return found
