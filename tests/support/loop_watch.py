"""A watch over an event loop: which turns of its tasks take how much processor time.

What counts is the time of the loop's thread alone, without that of other programs, of work in threads, and of collecting
garbage, whose turn is chance.
"""

import gc
import time
from collections.abc import Callable
from typing import Final

import trio
from trio.lowlevel import Task

STEP_SECONDS: Final = 0.005
"""Processor time of one turn on an idle machine; tested with the patience of deadlines."""


class LoopWatch(trio.abc.Instrument):
    """The longest turn of any task, in seconds of processor time of this thread, and how many turns there were."""

    def __init__(self, tell: Callable[[Task, float], None] | None = None) -> None:
        """Begin; `tell` hears the seconds of each turn at its end."""
        self._tell = tell
        self.begin()
        gc.callbacks.append(self._note_collection)

    def begin(self) -> None:
        """Forget what was."""
        self._began = self._collecting_since = time.thread_time()
        self.longest = 0.0
        self.turns = 0

    def before_task_step(self, task: Task) -> None:
        """A turn begins."""
        self._began = time.thread_time()

    def after_task_step(self, task: Task) -> None:
        """It ends."""
        seconds = time.thread_time() - self._began
        self.longest = max(self.longest, seconds)
        self.turns += 1
        if self._tell is not None:
            self._tell(task, seconds)

    def after_run(self) -> None:
        """The loop has ended."""
        gc.callbacks.remove(self._note_collection)

    def _note_collection(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._began += time.thread_time() - self._collecting_since


def innermost(task: Task) -> str:
    """File and line at which a task waits now."""
    *_, (frame, line) = [(None, 0), *task.iter_await_frames()]
    return "?" if frame is None else f"{frame.f_code.co_filename}:{line}"
