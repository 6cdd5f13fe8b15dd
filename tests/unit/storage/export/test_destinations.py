"""Destinations of exports: folders and stores without renaming. A reader sees what the manifest lists, whole."""

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]  # it has no types
import pytest

from ravel.exports.checking import ExportError
from ravel.exports.fetching import cache_folder, read_source
from ravel.exports.schema import KEPT_NAME, MANIFEST_NAME
from storage.engine.database import StorageError
from storage.engine.urls import check_destination, local_path
from storage.export.destinations import RemoteFolder, open_destination
from storage.export.export import ExportPlan, export_store
from tests.support.builders import World
from tests.support.exports import Row, change_manifest, write_export

pytestmark = pytest.mark.sqlite  # files of an export: its rows come by the same queries as in test_export

URL = "memory://bucket/exports"


@pytest.fixture(autouse=True)
def _empty_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    fsspec.filesystem("memory").rm("/", recursive=True)


def _fetch() -> int:
    rows = read_source(URL).rows
    with_blocks = read_source(URL, with_blocks=True)
    assert sum(part.rows for part in with_blocks.tables["blocks"]) in (0, 2 * rows)
    return rows


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object, int]]:
    """Names of parts that are brought, and by which driver in which thread."""
    found: list[tuple[str, object, int]] = []
    files = type(fsspec.filesystem("memory"))
    get = files.get_file

    def get_file(self: object, source: str, target: str) -> None:
        found.append((source.rpartition("/")[2], self, threading.get_ident()))
        get(self, source, target)

    monkeypatch.setattr(files, "get_file", get_file)
    return found


@pytest.mark.parametrize("name", ["a\0b/c.parquet", f"{'x' * 300}/part.parquet"])
def test_a_part_elsewhere_whose_name_no_file_here_could_have_is_said_to_be_missing(
    tmp_path: Path, name: str
) -> None:
    folder = write_export(tmp_path / "export", [Row("a")])
    tables = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"]
    tables["commits"][0]["path"] = name
    change_manifest(folder, tables=tables)
    fsspec.filesystem("memory").pipe_file(
        "/bucket/exports/manifest.json", (folder / MANIFEST_NAME).read_bytes()
    )
    with pytest.raises(ExportError, match="is missing, but the manifest"):
        read_source(URL)


def test_parts_are_kept_by_their_checksum_and_brought_once(
    tmp_path: Path, brought: list[tuple[str, object, int]]
) -> None:
    files = fsspec.filesystem("memory")

    def fetch(name: str, *parts: list[Row]) -> list[str]:
        files.rm("/bucket", recursive=True) if files.exists("/bucket") else None
        files.put(str(write_export(tmp_path / name, *parts)), "/bucket/exports", recursive=True)
        brought.clear()
        assert read_source(URL).rows == sum(map(len, parts))
        return sorted(part for part, _, _ in brought)

    first, second = "part-00000001.parquet", "part-00000002.parquet"
    assert fetch("one", [Row("a")], [Row("b")]) == [first, second]
    assert fetch("same", [Row("a")], [Row("b")]) == []
    (kept,) = (part.path for part in read_source(URL).parts[:1])
    assert kept.stat().st_mode & 0o077 == 0, "others may not read what people wrote"
    kept.write_bytes(b"x" * kept.stat().st_size)
    os.utime(kept, (0, 0))
    left = kept.with_name("new-left")
    left.touch()
    os.utime(left, (0, 0))
    assert fetch("other", [Row("a")]) == [first], "what is damaged comes again"
    assert not left.exists(), "and what nothing has read for a month goes"


def test_a_part_that_is_larger_than_stated_is_not_brought(
    tmp_path: Path, brought: list[tuple[str, object, int]]
) -> None:
    files = fsspec.filesystem("memory")
    files.put(str(write_export(tmp_path / "made", [Row("a")])), "/bucket/exports", recursive=True)
    (part,) = files.find("/bucket/exports/commits")
    files.pipe_file(part, files.cat_file(part) + b"x")
    with pytest.raises(ExportError, match=r"has \d+ bytes, the manifest says"):
        read_source(URL)
    assert not brought


def test_a_checksum_that_is_none_names_no_file(tmp_path: Path) -> None:
    folder = write_export(tmp_path / "export", [Row("a")])
    tables = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"]
    tables["commits"][0]["blake3"] = "../../escaped"
    change_manifest(folder, tables=tables)
    fsspec.filesystem("memory").put(str(folder), "/bucket/exports", recursive=True)
    with pytest.raises(ExportError, match="has no checksum in the manifest"):
        read_source(URL)


def test_without_a_cache_of_the_user_parts_are_kept_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = cache_folder()
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="another user's"):
        cache_folder()


def test_each_thread_that_brings_parts_has_a_driver_of_its_own(
    tmp_path: Path, brought: list[tuple[str, object, int]]
) -> None:
    # As fsspec has it: that of FTP has one connection, on which one thing is asked at a time.
    files = fsspec.filesystem("memory")
    files.put(str(write_export(tmp_path / "made", [Row("a")], [Row("b")])), "/bucket/exports", recursive=True)
    read_source(URL)
    threads = {
        id(driver): {thread for _, one, thread in brought if one is driver} for _, driver, _ in brought
    }
    assert len(brought) == 2
    assert all(len(some) == 1 for some in threads.values())


@pytest.mark.slow
def test_an_object_store_holds_what_a_folder_would(world: World, tmp_path: Path) -> None:
    for at, name in enumerate("abcd", 1):
        world.write(name)
        plan = ExportPlan("node", at, keep_seconds=0, parts_max=2, blocks=True)
        for where in (URL, str(tmp_path / "folder")):
            export_store(world.replica.database.read, open_destination(where, {}, tmp_path / "scratch"), plan)
        assert _fetch() == 3 + at
    files = fsspec.filesystem("memory")
    there = {path.removeprefix("/bucket/exports/") for path in files.find("/bucket")}
    folder = tmp_path / "folder"
    here = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == {name for name in here if not name.startswith(f"{KEPT_NAME}/")}, (
        "nothing was replaced that is kept, and objects have one name"
    )
    assert [files.cat(f"/bucket/exports/{name}") for name in sorted(there)] == [
        (folder / name).read_bytes() for name in sorted(there)
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "folder", "world"], (
        "no scratch is left"
    )


def test_what_a_killed_export_left_goes_with_the_next(world: World, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "bodies-of-a-killed-one").write_bytes(b"in the clear")
    with open_destination(URL, {}, scratch).scratch() as folder:
        assert (folder, list(folder.iterdir())) == (scratch, [])
        (folder / "unnamed.parquet").write_bytes(b"half")
    assert not scratch.exists()
    scratch.touch()  # not what it should be
    with pytest.raises(StorageError, match="scratch"), open_destination(URL, {}, scratch).scratch() as folder:
        raise AssertionError(folder)


def test_readers_of_an_object_store_see_one_export_or_the_next(world: World, tmp_path: Path) -> None:
    # Before each change of the store, and after the last, a reader gets a whole export.
    seen: list[int] = []

    class Watched(RemoteFolder):
        def publish(self, name: str, content: bytes) -> None:
            seen.append(_fetch())
            super().publish(name, content)

        def put(self, name: str, source: Path) -> None:
            seen.append(_fetch())
            super().put(name, source)

        def _move(self, source: str, target: str | None) -> None:
            seen.append(_fetch())
            super()._move(source, target)

    export_store(
        world.replica.database.read, RemoteFolder(URL, {}, tmp_path / "scratch"), ExportPlan("node", 1)
    )
    for at, name in enumerate("abc", 2):
        world.write(name)
        plan = ExportPlan("node", at, keep_seconds=0, parts_max=2)
        export_store(world.replica.database.read, Watched(URL, {}, tmp_path / "scratch"), plan)
    assert sorted(seen) == seen
    assert {3, 4, 5, 6} == set(seen)


def test_a_store_that_fails_before_the_manifest_keeps_the_old_export(world: World, tmp_path: Path) -> None:
    export_store(
        world.replica.database.read, RemoteFolder(URL, {}, tmp_path / "scratch"), ExportPlan("node", 1)
    )
    world.write("a")

    class Failing(RemoteFolder):
        def publish(self, name: str, content: bytes) -> None:
            raise StorageError("no")

    with pytest.raises(StorageError):
        export_store(
            world.replica.database.read, Failing(URL, {}, tmp_path / "scratch"), ExportPlan("node", 2)
        )
    assert _fetch() == 3
    world.write("b")
    export_store(
        world.replica.database.read, RemoteFolder(URL, {}, tmp_path / "scratch"), ExportPlan("node", 3)
    )
    assert _fetch() == 5
    assert len(fsspec.filesystem("memory").find("/bucket")) == 6, "what nothing listed is swept"


def test_errors_of_a_driver_show_no_credentials(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "secret": "hunter2-hunter2",
        "deep": {"token": ["s3cr3t-t0k3n"], "url": "http://host"},
    }
    remote = RemoteFolder(URL, options, tmp_path / "scratch")

    def fail() -> None:
        raise ValueError("http://host refused hunter2-hunter2 and s3cr3t-t0k3n")

    with pytest.raises(StorageError) as caught:
        remote._do(fail)
    assert "hunter2" not in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert "http://host refused *** and ***" in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_driver_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"gs://bucket/x needs gcsfs, which is not installed"):
        open_destination("gs://bucket/x", {}, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "exports", "/srv/exports", "file:///srv/exports", "s3://bucket/x", "memory://x"]
)
def test_what_names_a_destination(text: str) -> None:
    check_destination(text)


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:secret@bucket/x",
        "s3://bucket/x?key=secret",
        "s3://",
        "file://srv/exports",
        "https://example.org/x",
        "simplecache::s3://bucket",
        "a\0b",
    ],
)
def test_what_names_none_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the message is what is looked at
        check_destination(text)
    assert "secret" not in str(caught.value)


def test_file_urls_are_folders(tmp_path: Path) -> None:
    assert local_path("file:///a%20b/c") == Path("/a b/c")
    assert local_path("s3://b/c") is None
    assert open_destination(f"file://{tmp_path}", {}, tmp_path).name == str(tmp_path)


def test_what_is_fetched_stays_below_its_folder(world: World, tmp_path: Path) -> None:
    export_store(
        world.replica.database.read, RemoteFolder(URL, {}, tmp_path / "scratch"), ExportPlan("node", 1)
    )
    files = fsspec.filesystem("memory")
    path = f"/bucket/exports/{MANIFEST_NAME}"
    manifest = json.loads(files.cat(path))
    manifest["tables"]["commits"][0]["path"] = "../../escaped.parquet"
    del manifest["checksum"]
    files.pipe(path, json.dumps(manifest).encode())
    with pytest.raises(Exception, match="outside of its folder"):
        _fetch()
    assert not list(tmp_path.rglob("escaped*"))


def test_a_part_that_is_not_in_the_store_is_named(world: World, tmp_path: Path) -> None:
    export_store(
        world.replica.database.read, RemoteFolder(URL, {}, tmp_path / "scratch"), ExportPlan("node", 1)
    )
    files = fsspec.filesystem("memory")
    (part,) = files.find("/bucket/exports/commits")
    files.rm_file(part)
    with pytest.raises(Exception, match=r"parquet is missing, but the manifest"):
        _fetch()
    files.rm_file(f"/bucket/exports/{MANIFEST_NAME}")
    with pytest.raises(Exception, match="not there"):
        _fetch()
