"""A reader of a table's folder by a pattern reads what the newest manifest lists, wherever an export was cut off.

Three kinds of places: a folder, one of a file system without hard links, and a store of objects.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]  # it has no types
import pytest

from ravel.exports.checking import read_export
from ravel.exports.fetching import fetch_exports
from ravel.exports.schema import KEPT_NAME, MANIFEST_NAME
from storage.export import destinations
from storage.export.destinations import Destination, open_destination
from storage.export.export import ExportPlan, export_store
from tests.support.builders import World

_URL = "memory://bucket/arranged"
_STEPS_MAX = 400


class Cut(BaseException):
    """The process was killed."""


@dataclass
class Place:
    """A place for exports that can be cut off after some of its changes."""

    kind: str
    folder: Path  # of this machine; for a store of objects, where it is fetched to
    left: int = _STEPS_MAX  # changes until the cut

    @property
    def destination(self) -> Destination:
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
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}

    def shown(self, table: str) -> set[str]:
        """What a pattern finds of a table."""
        return {name for name in self.names() if name.startswith(f"{table}/") and name.endswith(".parquet")}

    def manifest(self) -> dict[str, Any]:
        path = f"/bucket/arranged/{MANIFEST_NAME}"
        content = (
            fsspec.filesystem("memory").cat(path)
            if self.kind == "objects"
            else (self.folder / MANIFEST_NAME).read_bytes()
        )
        manifest: dict[str, Any] = json.loads(content)
        return manifest

    def rows_by_manifest(self) -> int:
        """Commits that a reader finds who follows the manifest, and finds all of them to be sound."""
        if self.kind != "objects":
            return read_export(self.folder).rows
        (fetched,) = fetch_exports([_URL], self.folder, lambda _: None)
        return read_export(fetched).rows


def listed_in(manifest: dict[str, Any], table: str) -> set[str]:
    return {part["path"] for part in manifest["tables"][table]}


def steady(place: Place) -> None:
    manifest = place.manifest()
    for table in manifest["tables"]:
        assert place.shown(table) == listed_in(manifest, table)


@pytest.fixture(params=["links", "no links", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    found = Place(request.param, tmp_path / "export")

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
    found.left = _STEPS_MAX
    fsspec.filesystem("memory").store.clear()


def export(world: World, place: Place, at: int, **plan: Any) -> None:  # noqa: ANN401
    export_store(
        world.replica.database.read, place.destination, ExportPlan("node", at, **{"parts_max": 2, **plan})
    )


def test_a_pattern_finds_what_the_manifest_lists_after_every_export(world: World, place: Place) -> None:
    former = []
    for at, name in enumerate("abcd", 1):
        world.write(name)
        export(world, place, at)
        steady(place)
        former.append(place.manifest())
    merged = listed_in(former[-2], "commits") - listed_in(former[-1], "commits")
    assert merged, "some were replaced"
    assert {f"{KEPT_NAME}/{name}" for name in merged} <= place.names(), (
        "who follows an older manifest finds them"
    )
    export(world, place, 10**6)
    assert not {f"{KEPT_NAME}/{name}" for name in merged} & place.names(), "until they were kept long enough"


def test_an_older_manifest_can_be_read_while_its_parts_are_kept(world: World, place: Place) -> None:
    for at, name in enumerate("abc", 1):
        world.write(name)
        export(world, place, at, parts_max=10)
    older = place.manifest()
    world.write("d")
    export(world, place, 4)
    assert place.rows_by_manifest() == 7
    assert not listed_in(older, "commits") <= place.shown("commits"), "they have left the table's folder"
    del older["checksum"]
    content = json.dumps(older).encode()
    if place.kind == "objects":
        fsspec.filesystem("memory").pipe(f"/bucket/arranged/{MANIFEST_NAME}", content)
    else:
        (place.folder / MANIFEST_NAME).write_bytes(content)
    assert place.rows_by_manifest() == 6


@pytest.mark.slow
def test_an_export_that_was_cut_anywhere_is_finished_by_the_next(world: World, place: Place) -> None:
    """After each cut the manifest's reader has one export or the next, and a pattern nothing of two at once."""
    for at, name in enumerate("abc", 1):
        world.write(name)
        export(world, place, at)
    cuts = at = 0
    is_cut = True
    for number in range(_STEPS_MAX):
        if not is_cut:
            break
        # Each starts from a whole export, and replaces and adds parts of several tables.
        place.left = _STEPS_MAX
        at = 10 * (number + 1)
        world.write(f"before{number}")
        export(world, place, at, parts_max=3)
        before, rows = place.manifest(), place.rows_by_manifest()
        world.write(f"after{number}")
        place.left = number
        try:
            export(world, place, at + 1)
            is_cut = False
        except Cut:
            cuts += 1
        place.left = _STEPS_MAX
        after = place.manifest()
        assert place.rows_by_manifest() in (rows, rows + 1)
        for table in after["tables"]:
            old, new, shown = listed_in(before, table), listed_in(after, table), place.shown(table)
            if place.kind == "links":
                assert shown in (old, new, set())
            else:
                assert shown <= old | new
        # Cut off a second time, in what it repairs first, or once it has done so.
        place.left = number % 7
        try:
            export(world, place, at + 2)
        except Cut:
            assert place.rows_by_manifest() in (rows, rows + 1)
        place.left = _STEPS_MAX
        export(world, place, at + 3)
        assert place.rows_by_manifest() == rows + 1
        steady(place)
    assert cuts > 5


def test_a_failing_export_still_arranges_what_a_killed_one_left(
    world: World, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a")
    export(world, place, 1)
    with monkeypatch.context() as killed:

        def kill(*_: object) -> None:
            raise Cut

        for kind in (destinations.LocalFolder, destinations.RemoteFolder):
            arrange = kind.arrange
            begun = iter((arrange, kill))  # the first is at the beginning
            killed.setattr(kind, "arrange", lambda *given, begun=begun: next(begun)(*given))
        world.write("b")
        with pytest.raises(Cut):
            export(world, place, 2)
    assert place.shown("commits") != listed_in(place.manifest(), "commits")

    def fail(*_: object) -> Iterator[Any]:
        raise OSError("no")

    monkeypatch.setattr("storage.export.export.void_batches", fail)
    with pytest.raises(Exception, match="no"):
        export(world, place, 3)
    steady(place)


def test_other_files_of_a_tables_folder_stay(world: World, place: Place) -> None:
    if place.kind == "objects":
        pytest.skip("a store of objects has no folders")
    for at, name in enumerate("abcd", 1):
        world.write(name)
        export(world, place, at)
        (place.folder / "commits" / "note.txt").write_text("mine")
    assert (place.folder / "commits" / "note.txt").read_text() == "mine"


def test_a_copied_export_is_read_and_checked_by_the_paths_of_its_manifest(
    world: World, tmp_path: Path
) -> None:
    place = Place("links", tmp_path / "export")
    export(world, place, 1)
    copied = tmp_path / "copied"
    shutil.copytree(place.folder, copied)
    part = next(iter((copied / "commits").iterdir()))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(Exception, match="was altered"):
        read_export(copied)
    shutil.rmtree(copied / "commits")
    assert read_export(copied).rows == 3
