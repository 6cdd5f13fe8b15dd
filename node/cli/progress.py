"""Progress of long work, on standard error: a bar on a terminal, else a line every two seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

_LINE_SECONDS: Final = 2.0


class Progress(Protocol):
    """Told how much is done."""

    def __call__(self, done: int) -> None:
        """`done` of the whole are behind us."""
        ...


def time_left(seconds: float, done: int, total: int) -> str:
    """How long the rest will take if it goes on as in these seconds; empty where nothing tells that."""
    if not 0 < done < total:
        return ""
    left = round(seconds / done * (total - done))
    if left < 60:
        return f", {left} s left"
    minutes = round(left / 60)
    return f", {minutes} min left" if minutes < 60 else f", {minutes // 60} h {minutes % 60} min left"


@contextmanager
def show_progress(verb: str, unit: str, total: int | None) -> Iterator[Progress]:
    """Show how far something is: `verb` says what was done ("imported"), `unit` to what ("commits" or "bytes")."""
    if sys.stderr.isatty():
        from rich import progress as rich
        from rich.console import Console

        count = rich.DownloadColumn(binary_units=True) if unit == "bytes" else rich.MofNCompleteColumn()
        columns = (rich.TextColumn(verb), rich.BarColumn(), count, rich.TimeRemainingColumn())
        with rich.Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(verb, total=total)
            yield lambda done: bar.update(task, completed=done)
        return
    began = said_at = time.monotonic()
    reached = said = 0

    def say() -> None:
        nonlocal said_at, said
        said_at, said = time.monotonic(), reached
        left = time_left(said_at - began, reached, total or 0)
        print(f"{verb} {reached}{f' of {total}' if total else ''} {unit}{left}", file=sys.stderr, flush=True)

    def reach(done: int) -> None:
        nonlocal reached
        reached = done
        if time.monotonic() - said_at >= _LINE_SECONDS:
            say()

    yield reach
    if said != reached:
        say()
