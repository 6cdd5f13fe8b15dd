"""Places for exports that can be cut off after any of their changes, as by a kill of the process.

Three kinds: a folder, one of a file system without hard links, and a store of objects.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fsspec  # type: ignore[import-untyped]  # it has no types
import pytest

from ravel.exports.fetching import read_source
from ravel.exports.schema import MANIFEST_NAME
from storage.export.destinations import Destination, open_destination
from storage.export.export import ExportPlan, export_store
from tests.support.builders import World
from tests.support.read_exports import read_export

KINDS: Final = ("links", "no links", "objects")
_URL: Final = "memory://bucket/arranged"
STEPS_MAX: Final = 10_000


class Cut(BaseException):
    """The process was killed."""


@dataclass
class Place:
    """A place for exports that can be cut off after some of its changes."""

    kind: str
    folder: Path  # of this machine
    left: int = STEPS_MAX  # changes until the cut

    @property
    def destination(self) -> Destination:
        """What an export is written to."""
        where = _URL if self.kind == "objects" else str(self.folder)
        return open_destination(where, {}, self.folder.parent / "scratch")

    def step(self) -> None:
        """One change is about to be made."""
        if self.left == 0:
            raise Cut
        self.left -= 1

    def names(self) -> set[str]:
        """All files, by their paths in the export."""
        if self.kind == "objects":
            found = fsspec.filesystem("memory").find("/bucket/arranged")
            return {path.removeprefix("/bucket/arranged/") for path in found}
        start = len(str(self.folder)) + 1
        return {f"{place}/{name}"[start:] for place, _, names in os.walk(self.folder) for name in names}

    def shown(self, table: str) -> set[str]:
        """What a pattern finds of a table."""
        return {name for name in self.names() if name.startswith(f"{table}/") and name.endswith(".parquet")}

    def content(self, name: str) -> bytes:
        """The bytes of a file."""
        if self.kind == "objects":
            return bytes(fsspec.filesystem("memory").cat(f"/bucket/arranged/{name}"))
        return (self.folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, as another program would."""
        if self.kind == "objects":
            fsspec.filesystem("memory").pipe(f"/bucket/arranged/{name}", content)
        else:
            (self.folder / name).write_bytes(content)

    def manifest(self) -> dict[str, Any]:
        """What the manifest says."""
        manifest: dict[str, Any] = json.loads(self.content(MANIFEST_NAME))
        return manifest

    def rows_by_manifest(self) -> int:
        """Commits that a reader of the manifest finds, all of them sound."""
        if self.kind != "objects":
            return read_export(self.folder).rows
        return read_source(_URL).rows


def listed_in(manifest: dict[str, Any], table: str) -> set[str]:
    """Paths of a table's parts."""
    return {part["path"] for part in manifest["tables"][table]}


@contextmanager
def open_place(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A place of one of KINDS for the length of a block."""
    found = Place(kind, folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # of any function
            found.step()
            return change(*arguments, **options)

        return watch

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if found.kind == "objects":
        # The methods of the file system's class, of which fsspec keeps one object for everyone.
        files = type(fsspec.filesystem("memory"))
        for name in ("put_file", "cp_file", "rm_file", "pipe_file"):
            monkeypatch.setattr(files, name, watched(getattr(files, name)))
    else:
        monkeypatch.setattr(os, "link", watched(os.link) if found.kind == "links" else refuse)
        for name in ("rename", "replace", "unlink"):
            monkeypatch.setattr(Path, name, watched(getattr(Path, name)))
        monkeypatch.setattr(shutil, "rmtree", watched(shutil.rmtree))
    yield found
    found.left = STEPS_MAX
    fsspec.filesystem("memory").store.clear()


def export(world: World, place: Place, at: int, **plan: Any) -> None:  # noqa: ANN401  # of a plan
    """Export a store to a place at this second."""
    export_store(
        world.replica.database.read, place.destination, ExportPlan("node", at, **{"parts_max": 2, **plan})
    )
