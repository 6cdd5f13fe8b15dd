"""Sentences, tables and fields as a terminal and a pipe get them.

A terminal gets columns that fit it, local times as people say them, and colours for states. A pipe gets the same rows with
whole ids and times in UTC, separated by tabs.
"""

import os
import shlex
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any, Final

from node.cli import hints
from node.runtime.language import in_language
from node.runtime.wording import counted, date_text, duration_text, size_text
from ravel.characters import display_safe

ID_WIDTH: Final = 12
"""Characters of an id in a table; `node.ingest.people` marks names that could pass for one."""
_GAP: Final = "  "
_CELL_MIN: Final = 8
"""Columns of the terminal that a cell keeps however narrow the terminal is."""
_NARROW_MIN: Final = 40
_WIDE: Final = 80
"""Columns of a terminal that does not tell how many it has."""
_SENTENCE_MAX: Final = 100
"""Columns of a sentence: longer lines are hard to read on a wide terminal."""
_DAY: Final = 86_400
_COLOURS: Final = {"well": "32", "look": "33", "act": "31"}
"""State -> its colour, as terminals have numbers for them."""
_SIZE_FIELDS: Final = frozenset({"size", "quota", "used", "file_size", "circuit_bytes", "bytes", "memory"})
_TIME_FIELDS: Final = frozenset({"time", "since", "last_used"})
Item = Any
_verbose: Final = ContextVar("verbose", default=False)
"""True while an answer is printed of which all parts were asked for."""


def is_verbose() -> bool:
    """Return True if all parts of the answer were asked for."""
    return _verbose.get()


@contextmanager
def verbosely(wanted: bool) -> Iterator[None]:
    """Print all parts of answers while the block runs, where that is wanted."""
    token = _verbose.set(wanted)
    try:
        yield
    finally:
        _verbose.reset(token)


def is_terminal() -> bool:
    """Return True if a person reads standard output as it comes."""
    return sys.stdout is not None and sys.stdout.isatty()


def terminal_width() -> int:
    """Return the columns of the terminal, or 80."""
    return max(shutil.get_terminal_size((_WIDE, 24)).columns, _NARROW_MIN)


def paint(text: str, state: str) -> str:
    """Return a text in the colour of a state (`well`, `look`, `act`), where colours are shown and wanted."""
    plain = not is_terminal() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return text if plain or state not in _COLOURS else f"\x1b[{_COLOURS[state]}m{text}\x1b[0m"


def moment(seconds: float, now: float | None = None) -> str:
    """Return Unix seconds as people say them: "just now", "5 minutes ago", "yesterday 10:02"; in UTC in a pipe."""
    if not is_terminal():
        return date_text(seconds)
    now = time.time() if now is None else now
    ago = now - seconds
    if -60 < ago < 60:
        return in_language("just now")
    if 0 <= ago < 3600:
        return in_language(f"{counted(int(ago // 60), 'minute')} ago")
    return calendar_text(seconds, now)


def calendar_text(seconds: float, now: float | None = None) -> str:
    """Return Unix seconds as a local day and time: "10:02" of today, "yesterday 10:02", "28 Nov 10:02", "28 Nov 2024"."""
    now = time.time() if now is None else now
    try:
        then, today = time.localtime(seconds), time.localtime(now)
    except (OverflowError, OSError, ValueError):  # authors may state times that no calendar here has
        return date_text(seconds)
    clock = time.strftime("%H:%M", then)
    if then[:3] == today[:3]:
        return clock
    if then[:3] == time.localtime(now - _DAY)[:3]:
        return in_language(f"yesterday {clock}")
    month = time.strftime("%b", then)
    return in_language(
        f"{then.tm_mday} {month} {clock}"
        if then.tm_year == today.tm_year
        else f"{then.tm_mday} {month} {then.tm_year}"
    )


def state_word(state: str) -> str:
    """Return the word for a state in the reader's language; as the API has it in a pipe."""
    return in_language(state) if is_terminal() else state


def id_text_shown(text: str) -> str:
    """Return as much of an id as commands need; all of it in a pipe."""
    return text[:ID_WIDTH] if is_terminal() else text


def print_fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one a line. A field that has fields is printed as these, each called by both names."""
    rows = [(name, _as_text(name, value)) for pair in pairs for name, value in _flat(*pair)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        first, *more = value.split("\n")  # a post may have several lines
        print(f"{name:<{width}}  {display_safe(first)}".rstrip())
        for line in more:
            print(f"{'':<{width}}  {display_safe(line)}".rstrip())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table: with capital headings in columns that fit on a terminal, separated by tabs in a pipe.

    On a terminal, columns in which nothing stands are left out, and a row that does not fit has its longest cells cut. A
    piped list of one column has no name: another command reads its lines (`ravel set add BRANCH -`).
    """
    texts = [[display_safe(_as_text("", value)) for value in row] for row in rows]
    if not is_terminal():
        for row in (columns, *texts) if len(columns) > 1 else texts:
            print("\t".join(row))
        return
    kept = [number for number in range(len(columns)) if any(row[number] for row in texts)]
    if not kept:
        return
    shown = [
        [in_language(columns[number]).upper() for number in kept],
        *([row[number] for number in kept] for row in texts),
    ]
    widths = fit(
        [max(map(cell_width, column)) for column in zip_longest(*shown, fillvalue="")], terminal_width()
    )
    for row in shown:
        cells = [pad(cut(cell, width), width) for cell, width in zip(row, widths, strict=True)]
        print(_GAP.join(cells).rstrip())


def fit(widths: Sequence[int], room: int) -> list[int]:
    """Return widths of columns that fit a terminal with a gap between: the widest are made narrower first."""
    found = [*widths]
    over = sum(found) + len(_GAP) * (len(found) - 1) - room
    while over > 0 and max(found) > _CELL_MIN:
        # The last of the widest, which is where texts stand.
        place = max(range(len(found)), key=lambda number: (found[number], number))
        others = [one for number, one in enumerate(found) if number != place]
        step = min(over, max(found[place] - max([_CELL_MIN, *others]), 1))
        found[place] -= step
        over -= step
    return found


def cell_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def cut(text: str, width: int) -> str:
    """Return a text that takes at most so many columns, with `…` where something is left out."""
    if cell_width(text) <= width:
        return text
    kept = ""
    for one in text:
        if cell_width(kept + one) >= width:
            break
        kept += one
    return f"{kept.rstrip()}…"


def pad(text: str, width: int) -> str:
    """Return a text with spaces behind it up to a width."""
    return text + " " * max(width - cell_width(text), 0)


def say_wrapped(text: str, state: str = "", *, indent: str = "") -> None:
    """Print a sentence, in the colour of a state; on a terminal it is broken between words.

    Commands in it are called as `ravel` was.
    """
    safe = display_safe(hints.as_called(in_language(text)))
    for line in wrap(safe, min(terminal_width(), _SENTENCE_MAX), indent) if is_terminal() else [safe]:
        print(paint(line, state))


def wrap(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Yield lines of at most so many columns, broken between words. `indent` is before all but the first."""
    line = ""
    for word in text.split(" "):
        if line.strip() and cell_width(line) + 1 + cell_width(word) > width:
            yield line
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    yield line


def print_next(commands: Sequence[str | tuple[str, str]]) -> None:
    """Print the next commands, each with its purpose if given. A pipe gets none."""
    if not commands or not is_terminal():
        return
    pairs = [(one[0], in_language(one[1])) if isinstance(one, tuple) else (one, "") for one in commands]
    width = max(cell_width(command) for command, _ in pairs)
    if any(why for _, why in pairs):
        lines = [f"  {pad(command, width)}  {why}".rstrip() for command, why in pairs]
    else:
        line = "  " + (" " * 8).join(command for command, _ in pairs)
        lines = [line] if cell_width(line) <= terminal_width() else [f"  {command}" for command, _ in pairs]
    for line in lines:
        print(display_safe(line))


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, part in value.items():
        yield from _flat(f"{name}.{key}", part)


def _as_text(name: str, value: object) -> str:
    """Return a value of a field in people's units."""
    field = name.rpartition(".")[2]
    if isinstance(value, list):
        is_nested = any(isinstance(item, Mapping) for item in value)
        return ("; " if is_nested else ", ").join(_as_text("", item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_as_text(key, part)}" for key, part in value.items())
    if isinstance(value, bool):
        said = "yes" if value else "no"
        return in_language(said) if is_terminal() else said
    if isinstance(value, int) and (field.endswith("_at") or field in _TIME_FIELDS):
        return moment(value)
    if isinstance(value, int) and (field in _SIZE_FIELDS or field.endswith("_size")):
        return size_text(value)
    if isinstance(value, int) and field.endswith("_seconds"):
        return duration_text(value)
    return "" if value is None else str(value)


class Says:
    """Printer of an answer as a sentence, and of the commands that people need next.

    `sentence` and `commands` are texts in which {names} stand for fields of the answer and arguments of the command, or
    functions that get both as one mapping. In commands, values are quoted for a shell. `{id:id}` is an id, shortened on a
    terminal; `{size:size}`, `{at:time}` and `{count:post}` are in people's units.
    """

    def __init__(
        self, sentence: "str | Callable[[Mapping[str, Item]], str]", *commands: "str | tuple[str, str]"
    ) -> None:
        self.sentence = sentence
        self.commands = commands

    def __call__(self, values: Mapping[str, Item]) -> None:
        """Print the sentence and the commands."""
        said = self.sentence if isinstance(self.sentence, str) else self.sentence(values)
        for line in (fill(said, values) if said is self.sentence else said).split("\n"):
            say_wrapped(line)
        print_next([fill_command(one, values) for one in self.commands])


def fill(template: str, values: Mapping[str, Item]) -> str:
    """Return a sentence with the values that it names."""
    return template.format_map({name: _Shown(name, value) for name, value in values.items()})


def fill_command(command: str | tuple[str, str], values: Mapping[str, Item]) -> str | tuple[str, str]:
    """Return a command with its values quoted for a shell, called as `ravel` was called."""
    words, why = command if isinstance(command, tuple) else (command, "")
    quoted = {name: shlex.quote(display_safe(str(value))) for name, value in values.items()}
    found = hints.command(words.format_map(quoted))
    return (found, why) if why else found


class _Shown:
    """A value in a sentence, in the unit that the place names."""

    def __init__(self, name: str, value: object) -> None:
        self._name = name
        self._value = value

    def __format__(self, unit: str) -> str:
        value: Any = self._value
        if unit == "id":
            return id_text_shown(str(value))
        if unit == "time":
            return moment(value)
        if unit == "size":
            return "" if value is None else size_text(value)
        if unit:
            return counted(value, unit)
        return _as_text(self._name, value)
