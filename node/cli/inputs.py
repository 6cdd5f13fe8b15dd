"""Input of commands from standard input or a file, up to a bound, as a whole or line by line."""

import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from datetime import datetime
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import Final, cast

from node.cli.progress import show_progress
from node.cli.wording import parse_duration
from node.runtime.errors import ServiceError
from node.runtime.wording import counted
from protocol.limits.formats import KIB, TEXT_SIZE_MAX

_READ_SIZE: Final = 64 * KIB
"""Bytes read at once, which is what a pipe holds: some thousand short lines."""
_LINE_SIZE_MAX: Final = 4 * TEXT_SIZE_MAX
"""Bytes of a line: more cannot be a text."""


def read_input(path: str, size_max: int) -> bytes:
    """Return the bytes of a file, or of standard input for `-`. Raises ServiceError `bad_input`, `too_large`."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(size_max + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(size_max + 1)
    except OSError as error:
        raise ServiceError(
            "bad_input", f"{path} cannot be read: {error.strerror or error}", "give a readable file"
        ) from None
    if len(content) > size_max:
        raise ServiceError("too_large", f"at most {size_max} bytes are taken at once", "send less at once")
    return content


def read_typed(size_max: int) -> str:
    """Return a line that is typed at a terminal, or all of a pipe or a file, of at most `size_max` bytes.

    Bytes that are not UTF-8 become U+FFFD: they belong to nothing that is typed. Raises ServiceError.
    """
    if sys.stdin.isatty():
        return sys.stdin.readline(size_max).strip()
    return read_input("-", size_max).decode("utf-8-sig", "replace")


def group_lines(source: BufferedIOBase) -> Iterator[list[str]]:
    """Yield the lines that have come, in groups: a slow source line by line, a fast one in bulk. Blank lines are left out.

    Raises ServiceError: `bad_input` for what is not UTF-8, `too_large` for a line that no text can be.
    """
    rest, number = b"", 0
    while True:
        read = source.read1(_READ_SIZE)
        *whole, rest = (rest + read).split(b"\n") if read else (rest, b"")
        if max(map(len, (*whole, rest))) > _LINE_SIZE_MAX:
            raise ServiceError(
                "too_large",
                f"line {number + 1} or one soon after it has over {_LINE_SIZE_MAX} bytes",
                "`ravel file add BRANCH -` takes content of any size",
            )
        group = []
        for line in whole:
            number += 1
            if number == 1:
                line = line.removeprefix(BOM_UTF8)  # some editors write one
            try:
                text = line.removesuffix(b"\r").decode()
            except UnicodeDecodeError as error:
                raise ServiceError(
                    "bad_input", f"line {number} is not UTF-8: {error}", "give text in UTF-8"
                ) from None
            if text.strip():
                group.append(text)
        if group:
            yield group
        if not read:
            return


def write_lines(write: Callable[[list[str]], object], unit: str, count_max: int) -> dict[str, object]:
    """Write the lines of standard input, at most `count_max` by one call. Return how many were written, by their unit.

    `unit` is what a line is, in the singular. Raises ServiceError; its message then says how many are durable.
    """
    written = 0
    with show_progress("wrote", unit, None) as progress:
        try:
            for group in group_lines(cast("BufferedReader", sys.stdin.buffer)):
                for start in range(0, len(group), count_max):
                    part = group[start : start + count_max]
                    write(part)
                    written += len(part)
                    progress(written)
        except (ServiceError, KeyboardInterrupt) as caught:
            stopped = ServiceError("interrupted", "the command was stopped")
            error = caught if isinstance(caught, ServiceError) else stopped
            raise ServiceError(
                error.code, f"{error}; written before that: {counted(written, unit)}", error.advice
            ) from None
    if not written:
        raise ServiceError("bad_input", "no line came by standard input", "nothing was written")
    return {f"{unit}s": written}


def unix_moment(text: str, now: int) -> int:
    """Return a local date or a time ago in Unix seconds, at least 0. Raises ServiceError where it is neither, or to come."""
    try:
        moment = int(datetime.fromisoformat(text).timestamp())
    except (OverflowError, ValueError):
        try:
            moment = now - parse_duration(text)
        except ServiceError:
            raise ServiceError(
                "bad_request", f"{text!r} is no date", "say 2026-11-01, 2026-11-01T18:00:00, 12h or 7d"
            ) from None
    if moment > now:
        raise ServiceError(
            "bad_request",
            f"{text} is still to come",
            "give a date that has passed",
        )
    return max(0, moment)
