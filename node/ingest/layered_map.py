"""`LayeredMap`: a mapping that is never changed, of which another with few other entries is made at a small cost.

A copy of a dict of 10,000 entries takes 0.1 ms, and its end as much again: the tables of a node were copied at each new
branch. Here the copies share one dict, and each has the entries that differ in a small one. HAMTs, as of the package
`immutables`, keep no order, and repos and branches are listed in the order of their numbers.
"""

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_GONE: Final[Any] = object()
"""Stands for an entry of the shared dict that is not in this mapping."""
_UNSET: Final[Any] = object()
_OTHERS_MIN: Final = 64
_OTHERS_SHARE: Final = 32
"""Entries that differ are copied with each change, the shared ones when these are a 32nd of them: 3 us and 3 us each."""


class LayeredMap(Mapping[K, V]):
    """Map with the order of a dict: a replaced entry keeps its place, and a new one comes last."""

    __slots__ = ("_length", "_others", "_shared")

    def __init__(self, entries: Mapping[K, V]) -> None:
        self._shared: dict[K, V] = dict(entries)
        self._others: dict[K, V] = {}
        self._length = len(self._shared)

    def replaced(self, gone: Iterable[K], new: Mapping[K, V]) -> "LayeredMap[K, V]":
        """Another without some entries, and with new ones. What is both gone and new is replaced."""
        made: LayeredMap[K, V] = LayeredMap.__new__(LayeredMap)
        others, shared, length = dict(self._others), self._shared, self._length
        for key in gone:
            if key in new or others.get(key, shared.get(key, _GONE)) is _GONE:
                continue
            length -= 1
            if key in shared:
                others[key] = _GONE
            else:
                del others[key]
        for key, value in new.items():
            length += others.get(key, shared.get(key, _GONE)) is _GONE
            others[key] = value
        made._shared, made._others, made._length = shared, others, length
        if len(others) > _OTHERS_MIN + len(shared) // _OTHERS_SHARE:
            made._shared, made._others = dict(made.items()), {}
        return made

    def __getitem__(self, key: K) -> V:
        found = self._find(key)
        if found is _GONE:
            raise KeyError(key)
        value: V = found
        return value

    def get(self, key: K, default: Any = None) -> Any:  # noqa: ANN401  # any default may be given
        """Return the value or the default without raising KeyError inside, which is slow here."""
        found = self._find(key)
        return default if found is _GONE else found

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not _GONE

    def _find(self, key: object) -> Any:  # noqa: ANN401  # a value, or _GONE
        others: Mapping[Any, V] = self._others
        found = others.get(key, _UNSET)
        if found is not _UNSET:
            return found
        shared: Mapping[Any, V] = self._shared
        return shared.get(key, _GONE)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self._entries())

    def values(self) -> ValuesView[V]:
        """Yield the items without a look-up for each key."""
        return _Values(self)

    def items(self) -> ItemsView[K, V]:
        """Likewise."""
        return _Items(self)

    def _entries(self) -> Iterator[tuple[K, V]]:
        others, shared = self._others, self._shared
        for key, value in shared.items():
            found = others.get(key, value)
            if found is not _GONE:
                yield key, found
        for key, value in others.items():
            if key not in shared:
                yield key, value


class _Values(ValuesView[V]):
    def __iter__(self) -> Iterator[V]:
        return (value for _, value in self._mapping._entries())  # type: ignore[attr-defined]  # it is a LayeredMap


class _Items(ItemsView[K, V]):
    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._mapping._entries()  # type: ignore[attr-defined, no-any-return]  # likewise
