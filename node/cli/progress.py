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
    said_at, reached, said = time.monotonic(), 0, 0

    def say() -> None:
        nonlocal said_at, said
        said_at, said = time.monotonic(), reached
        print(f"{verb} {reached}{f' of {total}' if total else ''} {unit}", file=sys.stderr, flush=True)

    def reach(done: int) -> None:
        nonlocal reached
        reached = done
        if time.monotonic() - said_at >= _LINE_SECONDS:
            say()

    yield reach
    if said != reached:
        say()
