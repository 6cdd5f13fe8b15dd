"""A reader of a table's folder by a pattern reads what the newest manifest lists, wherever an export was cut off."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ravel.exports.schema import KEPT_NAME, MANIFEST_NAME
from storage.export import destinations
from tests.support.builders import World
from tests.support.export_places import STEPS_MAX, Cut, Place, export, listed_in
from tests.support.read_exports import read_export

pytestmark = pytest.mark.sqlite  # files of an export: its rows come by the same queries as in test_export


def steady(place: Place) -> None:
    manifest = place.manifest()
    for table in manifest["tables"]:
        assert place.shown(table) == listed_in(manifest, table)


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
    place.write(MANIFEST_NAME, json.dumps(older).encode())
    assert place.rows_by_manifest() == 6


@pytest.mark.extended
@pytest.mark.slow
def test_an_export_that_was_cut_anywhere_is_finished_by_the_next(world: World, place: Place) -> None:
    # After each cut the manifest's reader has one export or the next, and a pattern nothing of two at once.
    for at, name in enumerate("abc", 1):
        world.write(name)
        export(world, place, at)
    cuts = at = 0
    is_cut = True
    for number in range(STEPS_MAX):
        if not is_cut:
            break
        # Each starts from a whole export, and replaces and adds parts of several tables.
        place.left = STEPS_MAX
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
        place.left = STEPS_MAX
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
        place.left = STEPS_MAX
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

        def kill(*_: object, **__: object) -> None:
            raise Cut

        for kind in (destinations.LocalFolder, destinations.RemoteFolder):
            arrange = kind.arrange
            begun = iter((arrange, kill))  # the first is at the beginning
            killed.setattr(
                kind, "arrange", lambda *given, begun=begun, **options: next(begun)(*given, **options)
            )
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
