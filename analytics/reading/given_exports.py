"""Exports that a command is given: those that are sound are read, and others are set aside with the reason.

A bad export is set aside and named, and the others are read. With `strict`, or if no other is left, it is an error.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ravel.characters import display_safe
from ravel.exports.checking import Export, ExportError, read_export
from ravel.exports.fetching import FOLDER_NAME, fetch_exports


@dataclass(frozen=True, slots=True)
class SetAside:
    """Export that was not read."""

    source: str
    reason: str


class GivenExports:
    """Exports that were given, in order, and those among them that are set aside."""

    def __init__(self, progress: Callable[[str], None], *, strict: bool) -> None:
        self._progress = progress
        self._strict = strict
        self._sources: dict[Path, str] = {}  # of what was fetched
        self.set_aside: list[SetAside] = []

    def fetch(self, sources: Sequence[str], out: Path, *, with_blocks: bool = False) -> list[Path]:
        """Return the folders of the exports that can be fetched. Raises ExportError, OSError."""
        self._sources = {out / FOLDER_NAME / str(number): source for number, source in enumerate(sources, 1)}
        keep = None if self._strict or len(sources) == 1 else self._keep
        folders = fetch_exports(sources, out, self._progress, with_blocks=with_blocks, refuse=keep)
        if not folders:
            raise ExportError(self.set_aside[0].reason)
        return folders

    def read(self, folders: Sequence[Path], *, with_blocks: bool = False) -> list[Export]:
        """Return the exports that are sound. Raises ExportError where none is, and OSError."""
        found: list[Export] = []
        for folder in folders:
            try:
                found.append(read_export(folder, with_blocks=with_blocks, progress=self._progress))
            except ExportError as error:
                if self._strict or len(folders) == 1:
                    raise
                self._keep(self._sources.get(folder, str(folder)), error)
        if not found:
            raise ExportError(self.set_aside[0].reason)
        return found

    def _keep(self, source: str, error: ExportError) -> None:
        reason = display_safe(str(error))  # which may quote a stranger's words
        self.set_aside.append(SetAside(source, reason))
        self._progress(f"    set aside: {reason}")
