"""Structured logs on standard error, one line per event, without secrets.

Events carry ids, counts and reasons. Keys, links, tokens and texts of users are never given to a logger. The latest lines
are kept in memory, for `ravel debug bundle`: where standard error goes is not Ravel's to know. Peers cause lines, so those
of one kind are limited in number. Where standard error is a file of the node's folder, it is put aside when it is large.
"""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, Final, TextIO, cast

import structlog

from node.runtime.log_file import UnfailingFile
from protocol.limits.users import (
    LOG_LINE_COUNT_MAX,
    LOG_LINE_SIZE_MAX,
    LOG_LINES_AT_ONCE_MAX,
    LOG_LINES_PER_SECOND_MAX,
)

_recent: Final[deque[str]] = deque(maxlen=LOG_LINE_COUNT_MAX)


class LineLimit:
    """Lets so many lines of each kind pass, and says with the next one how many it has left out. Thread-safe.

    A kind is the event's text, which is a literal of this program. Else who connects and leaves, again and again, has a disk
    filled with ten times what it sends.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[object, _Kind] = {}

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Pass a line on as structlog's processors do. Raises DropEvent for one too many."""
        now = self._clock()
        with self._lock:
            kind = self._kinds.setdefault(event.get("event"), _Kind(now))
            kind.left = min(
                LOG_LINES_AT_ONCE_MAX, kind.left + (now - kind.looked_at) * LOG_LINES_PER_SECOND_MAX
            )
            kind.looked_at = now
            if kind.left < 1:
                kind.left_out += 1
                raise structlog.DropEvent
            kind.left -= 1
            left_out, kind.left_out = kind.left_out, 0
        if left_out:
            event["left_out_before"] = left_out
        return event


class _Kind:
    """Count lines of one kind that may be logged now, and those left out since the last."""

    def __init__(self, now: float) -> None:
        self.left = float(LOG_LINES_AT_ONCE_MAX)
        self.looked_at = now
        self.left_out = 0


def configure(level: str, path: Path | None = None) -> None:
    """Log at `level` (debug, info, warning, error) and above.

    `path` is a file that is put aside when it is large, if it is there that standard error goes.
    """
    structlog.configure(
        processors=[
            LineLimit(),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
            _remember,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, UnfailingFile(sys.stderr, path))),
    )
    accepting = logging.getLogger("trio.serve_listeners")
    accepting.handlers, accepting.propagate = [_Accepting()], False


class _Accepting(logging.Handler):
    """Takes what trio says by the standard library where no connection can be accepted, ten times a second and listener.

    With its traceback, as Python prints it by default, that fills the disk of a machine that is in need already.
    """

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().error("no connection can be accepted", reason=record.getMessage())


def recent_lines() -> list[str]:
    """Return the latest lines that this process has logged, oldest first, each up to its bound."""
    return list(_recent)


def _remember(_logger: object, _method: str, line: Any) -> str:  # noqa: ANN401  # what the renderer made: a text
    assert isinstance(line, str)
    _recent.append(line[:LOG_LINE_SIZE_MAX])
    return line
