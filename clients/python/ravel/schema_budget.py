"""Bound on what a check by a JSON Schema may cost: whoever may write in a branch can state one.

A schema can make a check run for ages: by a pattern that is tried in very many ways, by references that branch again and
again, or by long lists of alternatives. So each step is counted, and a pattern by the ways in which it can be tried.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

STEPS_MAX: Final = 1_000_000
"""Steps of one check, some 2 us each: a document of 1 MiB has 100,000 values, of a few keywords each."""
_TRIES_OF_STEP: Final = 64
"""Ways of trying a pattern that take as long as one step."""
_CHARACTERS_OF_STEP: Final = 128
"""Characters of a value that are compared, or shown in an error, in one step."""
_DEPTH_MAX: Final = 32
_REFUSED_GROUPS: Final = ("?=", "?!", "?<=", "?<!", "?>", "?(", "?P=", "?P>")
_PATTERNS_OF: Final = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})

_CHOICES_MAX: Final = 64
"""Times that a part is repeated which can itself be tried in several ways: with two, 2^64 ways."""
_BOUNDS: Final = re.compile(r"\{(\d{0,9})(?:,(\d{0,9}))?\}")

Keyword = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[Any] | None]
"""Checks one keyword, as `jsonschema` has it: by validator, the keyword's value, the instance, and the schema."""


class TooExpensive(Exception):
    """Raised where a check would take more steps than STEPS_MAX, or a pattern is not of the kind that is counted."""


class Budget:
    """Steps of one check."""

    def __init__(self, value: object) -> None:
        """Take the value that is checked. Costs as much as it is large."""
        self._left = STEPS_MAX
        self._sizes: dict[int, int] = {}  # of the value's maps and lists, by identity
        self._measure(value)

    def counted(self, name: str, check: Keyword) -> Keyword:
        """Return the keyword's check, counted. It raises TooExpensive."""

        def run(
            validator: Any,  # noqa: ANN401  # one of several classes of a library
            stated: Any,  # noqa: ANN401  # any JSON
            instance: Any,  # noqa: ANN401  # any JSON
            schema: Mapping[str, Any],
        ) -> Iterator[Any] | None:
            self._left -= 1 + self._cost_of(name, stated, instance, schema)
            if self._left < 0:
                raise TooExpensive(f"it takes more than {STEPS_MAX:,} steps")
            return check(validator, stated, instance, schema)

        return run

    def _cost_of(self, name: str, stated: object, instance: object, schema: Mapping[str, Any]) -> int:
        size = self._size_of(instance)
        cost = size // _CHARACTERS_OF_STEP
        if isinstance(stated, list | dict):
            cost += len(stated)
        if isinstance(instance, list | dict):
            cost += len(instance)
        if name in ("const", "enum"):
            cost += len(repr(stated)) // _CHARACTERS_OF_STEP
        elif name == "$ref" and not str(stated).startswith(
            "#"
        ):  # a schema that the library has, of steps not counted
            cost += size
        elif name == "pattern" and isinstance(instance, str):
            cost += _cost_of_pattern(str(stated), len(instance))
        elif name == "uniqueItems" and isinstance(instance, list) and not _is_sortable(instance):
            cost += len(instance) ** 2
        elif name in _PATTERNS_OF and isinstance(instance, dict):
            patterns = schema.get("patternProperties")
            for pattern in patterns if isinstance(patterns, dict) else ():
                cost += sum(_cost_of_pattern(pattern, len(key)) for key in instance)
        return cost

    def _size_of(self, value: object) -> int:
        return len(value) if isinstance(value, str) else self._sizes.get(id(value), 1)

    def _measure(self, value: object) -> int:
        if isinstance(value, dict):
            size = sum(len(key) + self._measure(one) for key, one in value.items())
        elif isinstance(value, list):
            size = sum(map(self._measure, value))
        else:
            return len(value) if isinstance(value, str) else 1
        self._sizes[id(value)] = size
        return size


def _is_sortable(items: list[Any]) -> bool:
    kinds = {type(one) for one in items}
    return len(kinds) <= 1 and kinds <= {str, int, float}


def check_dialects(schema: object) -> None:
    """Raise TooExpensive if a part of a schema names a dialect: the library would check it by another class, uncounted."""
    parts = [schema]
    is_whole = True
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if not is_whole and isinstance(part.get("$schema"), str):
                raise TooExpensive("a part of it has another `$schema`")
            parts += part.values()
        elif isinstance(part, list):
            parts += part
        is_whole = False


@lru_cache(1024)
def _cost_of_pattern(pattern: str, length: int) -> int:
    return len(pattern) + _Ways(pattern, length).count() // _TRIES_OF_STEP


class _Ways:
    """Count of the ways in which a backtracking matcher tries a pattern on a text, at most.

    A repetition can be tried once for each count, and each choice within it again; a sequence in all ways of its parts.
    """

    def __init__(self, pattern: str, length: int) -> None:
        self._pattern = pattern
        self._length = length
        self._place = 0
        self._depth = 0

    def count(self) -> int:
        """Return the count. Raises TooExpensive for what looks around or back, and beyond what any check may take."""
        found = self._alternatives()
        if self._place < len(self._pattern):
            raise TooExpensive("a pattern has a bracket too many")
        return found

    def _alternatives(self) -> int:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise TooExpensive("a pattern has too many groups in each other")
        found = self._sequence()
        while self._take("|"):
            found += self._sequence()
        self._depth -= 1
        return found

    def _sequence(self) -> int:
        is_anchored = self._depth > 1 or self._pattern.startswith("^", self._place)
        found = 1 if is_anchored else self._length + 1  # it is tried from each place of the text
        while self._place < len(self._pattern) and self._pattern[self._place] not in "|)":
            found = self._bounded(found * self._repeated(self._atom()))
        return found

    def _atom(self) -> int:
        if self._take("("):
            if self._pattern.startswith(_REFUSED_GROUPS, self._place):
                raise TooExpensive("a pattern looks around")
            if self._take("?"):  # the kind, name or options of a group
                while self._place < len(self._pattern) and self._pattern[self._place] not in ":>)":
                    self._place += 1
                self._place += self._place < len(self._pattern) and self._pattern[self._place] != ")"
            found = self._alternatives()
            if not self._take(")"):
                raise TooExpensive("a pattern lacks a bracket")
            return found
        if self._take("["):
            self._take("^")
            self._take("]")
            while self._place < len(self._pattern) and not self._take("]"):
                self._place += 1 + (self._pattern[self._place] == "\\")
            return 1
        if self._take("\\") and self._pattern[self._place : self._place + 1] in tuple("123456789kg"):
            raise TooExpensive("a pattern looks back at a group")
        self._place += 1
        return 1

    def _repeated(self, ways: int) -> int:
        """Return the ways of a part with the repetitions behind it: each may have another mark, as `.*?` has."""
        while (most := self._repetition()) is not None:
            if ways == 1:
                ways = most + 1
            elif most > _CHOICES_MAX:
                raise TooExpensive("a pattern repeats what can be tried in several ways")
            else:
                ways = self._bounded(sum(ways**times for times in range(most + 1)))
        return ways

    def _repetition(self) -> int | None:
        """Take one mark; how often it repeats at most."""
        if self._take("*") or self._take("+"):
            return self._length
        if self._take("?"):
            return 1
        found = _BOUNDS.match(self._pattern, self._place)
        if found is None:
            return None
        self._place = found.end()
        most = found[2] if found[2] is not None else found[1]
        return min(self._length, int(most)) if most else self._length

    def _take(self, character: str) -> bool:
        is_next = self._pattern.startswith(character, self._place)
        self._place += is_next
        return is_next

    @staticmethod
    def _bounded(ways: int) -> int:
        if ways > STEPS_MAX * _TRIES_OF_STEP:
            raise TooExpensive("a pattern can be tried in too many ways")
        return ways
