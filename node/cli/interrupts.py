"""Ends the program without a traceback where Ctrl-C comes while commands are imported, from when this is imported."""

import sys
from types import TracebackType

_hook_before = sys.excepthook


def say_defect(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print what ended the program, but for Ctrl-C."""
    if not issubclass(kind, KeyboardInterrupt):
        _hook_before(kind, error, traceback)


sys.excepthook = say_defect
