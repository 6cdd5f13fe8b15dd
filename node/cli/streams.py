"""Standard streams of a command, whatever is behind them: nothing, a full disk, or a reader that has enough.

Python gives None for a stream that was closed before the start, and click ends with 1 where a reader has enough. Here a
closed stream is the null device, a failure of standard output is an error of its own, and text for a standard error that
fails is lost.
"""

import errno
import io
import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from node.runtime.errors import EXIT_OK, ServiceError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STANDARD: Final = (0, 1, 2)


class OutputFailed(Exception):
    """Standard output did not take what was printed. No OSError, which click would take for its own."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error

    @property
    def problem(self) -> ServiceError | None:
        """The error for people; None where the reader has read what it wanted."""
        if self.error.errno == errno.EPIPE:
            return None
        is_full = self.error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "make room on that disk" if is_full else "look at where the output goes"
        return ServiceError(
            "storage_failed", f"standard output cannot be written: {self.error.strerror}", advice
        )


class _Output(io.FileIO):
    """Descriptor of standard output. Raises OutputFailed."""

    def write(self, content: "ReadableBuffer") -> int:
        try:
            while (written := super().write(content)) is None:  # another program made it non-blocking
                select.select([], [self], [])
        except OSError as error:
            raise OutputFailed(error) from None
        return written


class _Messages(io.FileIO):
    """Descriptor of standard error, which loses what cannot be written: no command fails for want of its messages."""

    def write(self, content: "ReadableBuffer") -> int:
        with suppress(OSError):
            super().write(content)
        return len(memoryview(content))


def open_streams() -> None:
    """Replace the standard streams by those of this module. A stream without a descriptor, as tests have, stays."""
    for number in _STANDARD:
        try:
            os.fstat(number)
        except OSError:  # closed: else the next file that is opened would take its number, and be written to
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  # it stays open as long as the process runs
    sys.stdout = _opened(sys.stdout, 1, _Output)
    sys.stderr = _opened(sys.stderr, 2, _Messages)


def lose_output() -> None:
    """Let standard output drop what cannot be written, as standard error does: a daemon goes on without it."""
    sys.stdout = _opened(sys.stdout, 1, _Messages)


def end_output(failed: OutputFailed) -> int:
    """Print nothing more on standard output. The exit code that the failure alone gives, which is 0 for a reader's end."""
    # What is still in memory is for nobody: the interpreter would try to write it at its end, and complain.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    from node.cli.shared import fail

    return EXIT_OK if failed.problem is None else fail(failed.problem, as_json=False)


def _opened(stream: TextIO | None, number: int, kind: type[io.FileIO]) -> TextIO:
    encoding, is_terminal = "utf-8", False
    if stream is not None:
        try:
            number, encoding, is_terminal = stream.fileno(), stream.encoding, stream.isatty()
        except OSError:  # it is in memory
            return stream
    raw = kind(number, "wb", closefd=False)
    # Texts come from everywhere; a terminal that cannot show one must not fail the command.
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=is_terminal or kind is _Messages,
    )
