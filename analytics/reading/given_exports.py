"""Exports that a command is given: those that are sound are read, and others are set aside with the reason.

`@FILE` stands for the exports that a file names, one in each line. A bad export is set aside and named, and the others are
read. With `strict`, or if no other is left, it is an error. One bad part sets its export aside: a node whose rows are read
in part would seem to lack the others.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.reading.limits import EXPORT_LIST_SIZE_MAX
from ravel.characters import display_safe
from ravel.exports.checking import Export, ExportError, check_export
from ravel.exports.fetching import bring_part, list_source, refuse_repeated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THREADS: Final = 32
"""Manifests that are asked for at once: a store answers each after some milliseconds."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """Export that was not read."""

    source: str
    reason: str


class GivenExports:
    """Given exports, in order, and those of them that were set aside."""

    def __init__(self, progress: Callable[[str], None], *, strict: bool) -> None:
        self._progress = progress
        self._strict = strict
        self._count = 0  # of those that were given
        self.set_aside: list[SetAside] = []

    def read(
        self, sources: Sequence[str | Path], *, with_blocks: bool = False, is_here: bool = True
    ) -> list[Export]:
        """Return the exports that are sound, by their manifests alone unless `is_here`: then tasks check what is elsewhere.

        Raises ExportError where none is, and OSError.
        """
        named = [one for source in sources for one in _named_by(str(source))]
        refuse_repeated(named)
        self._count = len(named)

        def list_one(source: str) -> Export | ExportError:
            try:
                return list_source(source, with_blocks=with_blocks)
            except ExportError as error:
                return error

        with ThreadPoolExecutor(min(_THREADS, len(named))) as threads:
            listed = [*threads.map(list_one, named)]
        found: list[Export] = []
        for source, one in zip(named, listed, strict=True):
            try:
                if isinstance(one, ExportError):
                    raise one
                found.append(check_export(one, bring=bring_part, progress=self._progress) if is_here else one)
            except ExportError as error:
                self._keep(source, error)
        return self._sound(found)

    def check(self, spark: "SparkSession", exports: Sequence[Export]) -> list[Export]:
        """Return the exports whose parts tasks find to be sound, each where it lies. Raises ExportError."""
        from analytics.reading.part_tasks import check_by_tasks

        found: list[Export] = []
        for export, error in zip(exports, check_by_tasks(spark, exports), strict=True):
            if error is None:
                found.append(export)
            else:
                self._keep(export.source, error)
        return self._sound(found)

    def _sound(self, found: list[Export]) -> list[Export]:
        if not found:
            raise ExportError(self.set_aside[0].reason)
        return found

    def _keep(self, source: str, error: ExportError) -> None:
        if self._strict or self._count == 1:
            raise error
        reason = display_safe(str(error))  # which may quote a stranger's words
        self.set_aside.append(SetAside(source, reason))
        self._progress(f"    set aside: {reason}")


def _named_by(source: str) -> Iterator[str]:
    """Give the exports that `@FILE` names, or else the source itself. Raises ExportError."""
    if not source.startswith("@"):
        yield source
        return
    try:
        with open(source[1:], encoding="utf-8") as file:
            content = file.read(EXPORT_LIST_SIZE_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"{source[1:]} is no list of exports: {error}") from None
    if len(content) > EXPORT_LIST_SIZE_MAX:
        raise ExportError(
            f"{source[1:]} is over {EXPORT_LIST_SIZE_MAX >> 20} MiB, too large for a list of exports"
        )
    named = [line.strip() for line in content.splitlines() if line.strip()]
    if not named:
        raise ExportError(f"{source[1:]} names no export")
    yield from named
