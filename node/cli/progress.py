"""Progress of long work, on standard error: a bar on a terminal, else a line every two seconds while it moves."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from node.runtime.wording import counted, duration_text

_LINE_SECONDS: Final = 2.0
_QUIET_SECONDS: Final = 0.5
"""Seconds of work of which nothing is shown: what ends sooner needs no bar."""


class Progress(Protocol):
    """A function that notes how much is done."""

    def __call__(self, done: int) -> None:
        """Note that `done` of the whole are behind us."""
        ...


class ToldProgress(Progress, Protocol):
    """A function that notes how much is done, and what the daemon knows of the rest."""

    def __call__(self, done: int, total: int | None = None, seconds: int | None = None) -> None:
        """Note that `done` of `total` are behind us, with the seconds that are left, where these are known."""
        ...


def time_left(seconds: float, done: int, total: int) -> str:
    """Estimate how long the rest takes, from the seconds so far; empty where nothing tells that."""
    if not 0 < done < total:
        return ""
    return f", {duration_text(round(seconds / done * (total - done)))} left"


@contextmanager
def show_progress(verb: str, unit: str, total: int | None) -> Iterator[ToldProgress]:
    """Show the progress of a task. `verb` names what is done ("imported"), `unit` what is counted ("commit" or "byte")."""
    if sys.stderr.isatty():
        from rich import progress as rich
        from rich.console import Console
        from rich.text import Text

        count = rich.DownloadColumn(binary_units=True) if unit == "byte" else rich.MofNCompleteColumn()

        class Left(rich.TimeRemainingColumn):
            """Column of the time left, as the daemon states it: the bar does not know the rate before it began."""

            def render(self, task: rich.Task) -> Text:
                seconds = task.fields.get("seconds")
                if seconds is not None:
                    return Text(f"{duration_text(seconds)} left")
                return Text("") if task.fields.get("is_told") else super().render(task)

        columns = (rich.TextColumn(verb), rich.BarColumn(), count, Left())
        bar = rich.Progress(*columns, console=Console(stderr=True))
        task, shown_from, is_shown = bar.add_task(verb, total=total), time.monotonic() + _QUIET_SECONDS, False

        def move(done: int, total: int | None = None, seconds: int | None = None) -> None:
            nonlocal is_shown
            bar.update(task, completed=done, total=total, seconds=seconds, is_told=total is not None)
            if not is_shown and time.monotonic() > shown_from:
                bar.start()
                is_shown = True

        try:
            yield move
        finally:
            if is_shown:
                bar.stop()
        return
    began = said_at = time.monotonic()
    reached, whole, told_left = 0, total, ""
    said: tuple[int, int | None] = (0, total)

    def say() -> None:
        nonlocal said_at, said
        said_at, said = time.monotonic(), (reached, whole)
        left = time_left(said_at - began, reached, total or 0) or told_left
        how_much = f"{reached} of {counted(whole, unit)}" if whole else counted(reached, unit)
        print(f"{verb} {how_much}{left}", file=sys.stderr, flush=True)

    def reach(done: int, total: int | None = None, seconds: int | None = None) -> None:
        nonlocal reached, whole, told_left
        reached, whole = done, total or whole
        told_left = "" if seconds is None else f", {duration_text(seconds)} left"
        if time.monotonic() - said_at >= _LINE_SECONDS and said != (reached, whole):
            say()

    yield reach
    if said[0] != reached:
        say()
