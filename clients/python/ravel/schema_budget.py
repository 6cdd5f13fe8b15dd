"""Bound on the cost of a check by a JSON Schema. Everybody who may write in a branch can state a schema.

A schema can make a check run for ages: by a pattern that is tried in very many ways, by references that branch again and
again, or by long lists of alternatives. So each step is counted, and a pattern by the ways in which it can be tried.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

STEPS_MAX: Final = 1_000_000
"""Steps of one check, some 2 us each: a document of 1 MiB has 100,000 values, of a few keywords each."""
_TRIES_OF_STEP: Final = 64
"""Ways of trying a pattern that take as long as one step."""
_CHARACTERS_OF_STEP: Final = 128
"""Characters of a value that are compared, or shown in an error, in one step."""
_COMPARED_AT_ONCE: Final = 32
"""Characters that are compared with a pattern as fast as another way is tried."""
_DEPTH_MAX: Final = 32
_GROUP_KIND: Final = re.compile(r"\?(?:[is]*:|[is]+(?=\))|P<\w+>)|(?!\?)")
"""Text allowed behind an opening bracket. Comments and the flag x would hide parts of a pattern from the count."""
_SEPARATORS: Final = frozenset(" !#$%&'()*+,-./:;<=>?@[]^_`{|}~\\\"")
_PATTERNS_OF: Final = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})

_CHOICES_MAX: Final = 64
"""Times that a part is repeated which can itself be tried in several ways: with two, 2^64 ways."""
_BOUNDS: Final = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")

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


def in_order(schema: object) -> object:
    """Return a schema in which what asks for all that other keywords have looked at comes behind them.

    The library looks by these again then, and does not count: what they cost must have been paid before.
    """
    if isinstance(schema, list):
        return [in_order(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    ordered = sorted(schema.items(), key=lambda item: item[0].startswith("unevaluated"))
    return {key: in_order(one) for key, one in ordered}


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
    compared = 1 + len(pattern) // _COMPARED_AT_ONCE // 8  # which most ways are not, to its end
    return len(pattern) + _Ways(pattern, length).count() * compared // _TRIES_OF_STEP


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a pattern: an atom with its repetition, or a sequence of such."""

    ways: int
    text: str = ""
    """Pattern of the one character that an atom takes; empty for a group."""
    is_once: bool = True
    is_endless: bool = False
    parts: "tuple[_Part, ...]" = ()
    """Parts of a group that has no alternatives."""

    @property
    def is_separated(self) -> bool:
        """Return True if a text has one cut into such groups: each begins or ends with a character that is only there."""
        if not self.parts or not all(one.text for one in self.parts):
            return False
        first, last = self.parts[0], self.parts[-1]
        return _separates(first, self.parts[1:]) or _separates(last, self.parts[:-1])


def _separates(part: _Part, others: "tuple[_Part, ...]") -> bool:
    if not part.is_once or (part.text.startswith("[") and re.search(r"[^\x20-\x7e]|^\[\^|\\\w", part.text)):
        return False
    taken = {one for one in map(chr, range(128)) if re.fullmatch(part.text, one)}
    return (
        bool(taken)
        and taken <= _SEPARATORS
        and not any(re.fullmatch(other.text, one) for other in others for one in taken)
    )


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
        if self._place != len(self._pattern):
            raise TooExpensive("a pattern has a bracket too many, or is cut off")
        return found.ways

    def _alternatives(self) -> _Part:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise TooExpensive("a pattern has too many groups in each other")
        found = self._sequence()
        while self._take("|"):
            found = _Part(found.ways + self._sequence().ways)
        self._depth -= 1
        return found

    def _sequence(self) -> _Part:
        is_anchored = self._depth > 1 or self._pattern.startswith("^", self._place)
        ways = 1 if is_anchored else self._length + 1  # it is tried from each place of the text
        parts = list[_Part]()
        while self._place < len(self._pattern) and self._pattern[self._place] not in "|)":
            parts.append(self._repeated(self._atom()))
            ways = self._bounded(ways * parts[-1].ways)
        return _Part(ways, parts=tuple(parts))

    def _atom(self) -> _Part:
        began = self._place
        if self._take("("):
            kind = _GROUP_KIND.match(self._pattern, self._place)
            if kind is None:
                raise TooExpensive("a pattern looks around, or has options")
            self._place = kind.end()
            found = self._alternatives()
            if not self._take(")"):
                raise TooExpensive("a pattern lacks a bracket")
            return found
        if self._take("["):
            self._take("^")
            self._take("]")
            while not self._take("]"):
                if self._place >= len(self._pattern):
                    raise TooExpensive("a pattern lacks a bracket")
                self._place += 1 + (self._pattern[self._place] == "\\")
        else:
            if self._take("\\") and self._pattern[self._place : self._place + 1] in tuple("123456789kg"):
                raise TooExpensive("a pattern looks back at a group")
            self._place += 1
        return _Part(1, self._pattern[began : self._place])

    def _repeated(self, part: _Part) -> _Part:
        """Return a part with the repetitions behind it: each may have another mark, as `.*?` has."""
        while (found := self._repetition()) is not None:
            least, most, is_endless = found
            if part.text and least == most:
                ways = 1 + min(most, self._length) // _COMPARED_AT_ONCE  # so many characters, or none
            elif part.ways == 1:
                ways = most + 1
            elif part.is_separated:
                is_long = any(one.is_endless for one in part.parts)  # all of them share the text's length
                ways = part.ways * (1 if is_long else most) + most + 1
            elif most > _CHOICES_MAX:
                raise TooExpensive("a pattern repeats what can be tried in several ways")
            else:
                ways = sum(part.ways**times for times in range(most + 1))
            part = _Part(self._bounded(ways), part.text, is_once=False, is_endless=is_endless)
        return part

    def _repetition(self) -> tuple[int, int, bool] | None:
        """Take one mark; how often it repeats at least and at most, and whether only the text's end bounds it.

        Of what may be empty as many are tried as the mark asks for, however short the text is.
        """
        if self._take("*") or self._take("+"):
            return 0, self._length, True
        if self._take("?"):
            return 0, 1, False
        found = _BOUNDS.match(self._pattern, self._place)
        if found is None:
            return None
        self._place = found.end()
        least = int(found[1] or 0)
        if found[2] is None:
            return least, max(least, 1), not found[1]
        return least, max(least, min(self._length, int(found[3] or self._length))), not found[3]

    def _take(self, character: str) -> bool:
        is_next = self._pattern.startswith(character, self._place)
        self._place += is_next
        return is_next

    @staticmethod
    def _bounded(ways: int) -> int:
        if ways > STEPS_MAX * _TRIES_OF_STEP:
            raise TooExpensive("a pattern can be tried in too many ways")
        return ways
