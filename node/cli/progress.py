"""Progress of long work, on standard error: a bar on a terminal, else a line every two seconds while it moves."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from node.runtime.wording import counted, duration_text

if TYPE_CHECKING:  # types of answers: `ravel --help` must be quick
    from ravel.types.values import SyncProgress

_LINE_SECONDS: Final = 2.0


class Progress(Protocol):
    """Told how much is done."""

    def __call__(self, done: int) -> None:
        """`done` of the whole are behind us."""
        ...


class ToldProgress(Progress, Protocol):
    """Told how much is done, and what the daemon knows of the rest."""

    def __call__(self, done: int, total: int | None = None, seconds: int | None = None) -> None:
        """`done` of the whole are behind us; of how many, and how many seconds are left, where that is known now."""
        ...


def time_left(seconds: float, done: int, total: int) -> str:
    """How long the rest will take if it goes on as in these seconds; empty where nothing tells that."""
    if not 0 < done < total:
        return ""
    return f", {duration_text(round(seconds / done * (total - done)))} left"


def progress_line(progress: "SyncProgress") -> str:
    """A transfer between nodes: "receiving, 25030 of 30001 commits, 5600 a second, 1 s left"."""
    total, rate, seconds = progress["total"], progress["rate"], progress["seconds_left"]
    parts = [
        progress["direction"],
        f"{progress['done']} of {'an unknown number of commits' if total is None else counted(total, 'commit')}",
        "" if rate is None else "standing still" if not rate else f"{rate:.0f} a second",
        "" if seconds is None else f"{duration_text(seconds)} left",
    ]
    return ", ".join(filter(None, parts))


@contextmanager
def show_progress(verb: str, unit: str, total: int | None) -> Iterator[ToldProgress]:
    """Show how far something is: `verb` says what was done ("imported"), `unit` to what ("commit" or "byte")."""
    if sys.stderr.isatty():
        from rich import progress as rich
        from rich.console import Console
        from rich.text import Text

        count = rich.DownloadColumn(binary_units=True) if unit == "byte" else rich.MofNCompleteColumn()

        class Left(rich.TimeRemainingColumn):
            """What the daemon says is left: of what was done before, the bar knows no rate."""

            def render(self, task: rich.Task) -> Text:
                seconds = task.fields.get("seconds")
                if seconds is not None:
                    return Text(f"{duration_text(seconds)} left")
                return Text("") if task.fields.get("is_told") else super().render(task)

        columns = (rich.TextColumn(verb), rich.BarColumn(), count, Left())
        with rich.Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(verb, total=total)

            def move(done: int, total: int | None = None, seconds: int | None = None) -> None:
                bar.update(task, completed=done, total=total, seconds=seconds, is_told=total is not None)

            yield move
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
