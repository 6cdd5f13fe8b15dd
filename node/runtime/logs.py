"""Structured logs on standard error, one line per event, without secrets.

Events carry ids, counts and reasons. Keys, links, tokens and texts of users are never given to a logger. The latest lines
are kept in memory, for `ravel debug bundle`: where standard error goes is not Ravel's to know.
"""

import io
import logging
import sys
from collections import deque
from contextlib import suppress
from typing import Any, Final, TextIO, cast

import structlog

from protocol.limits.users import LOG_LINE_COUNT_MAX, LOG_LINE_SIZE_MAX

_recent: Final[deque[str]] = deque(maxlen=LOG_LINE_COUNT_MAX)


class _Unfailing(io.TextIOBase):
    """A file that takes what it can: a full disk behind the log must not stop a node that could go on reading."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write, or lose it."""
        with suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or lose it."""
        with suppress(OSError):
            self._file.flush()


def configure(level: str) -> None:
    """Log at `level` (debug, info, warning, error) and above."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
            _remember,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Unfailing(sys.stderr))),
    )


def recent_lines() -> list[str]:
    """The latest lines that this process has logged, oldest first, each up to its bound."""
    return list(_recent)


def _remember(_logger: object, _method: str, line: Any) -> str:  # noqa: ANN401  # what the renderer made: a text
    assert isinstance(line, str)
    _recent.append(line[:LOG_LINE_SIZE_MAX])
    return line
