"""Writes an export to its destination: a local folder, or an object store (by fsspec).

Both keep the same promise: a part that a name stands for is whole and never changes, and the manifest is replaced in one
piece. A folder has renaming for that. An object store puts an object as a whole or not at all; a store that is neither
(fsspec knows some) may show a reader half a manifest for a moment, which the reader refuses.

A new part is put aside first, under KEPT_NAME. `arrange` then gives each table's folder the parts that the manifest lists
and no others, so that a pattern (`commits/*.parquet`) reads one export. What it finds may be cut off at any step: the next
one finishes it.

What is being written lies in a scratch folder of this machine first, so that a part's checksum is known before its name.
Credentials are options of the driver or in the environment, where the driver finds them itself; no error shows them.
"""

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from ravel.exports.schema import KEPT_NAME, TABLES
from storage.engine.database import StorageError
from storage.engine.folders import make_folder, move_file, sync_file, sync_folder
from storage.engine.urls import local_path

T = TypeVar("T")
Options = Mapping[str, Any]
"""Options of a driver beside the URL: strings, numbers, tables."""

SCRATCH_NAME: Final = ".scratch"
"""The scratch folder in an export that is a folder of this machine."""
_OBJECT_STORES: Final = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss")
"""Protocols of object stores: they need no folders, and some drivers would make a bucket instead."""
_EXTRAS: Final[Mapping[str, str]] = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
}
_HIDDEN: Final = "***"
_NO_LINKS: Final = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
"""Errors of file systems without hard links (FAT, many network and user-space ones): parts are moved there."""
_SECRET_SIZE_MIN: Final = 4
"""Characters. A shorter option is no secret, and hiding it everywhere would garble every error."""


class Destination(Protocol):
    """Place for one export. Names are relative paths, such as `commits/x.parquet`. All methods raise StorageError."""

    @property
    def name(self) -> str:
        """Return a name for people, without credentials."""
        ...

    def read(self, name: str, size_max: int) -> bytes | None:
        """Read a small file of at most `size_max` bytes, or None if there is none."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """Write a small file in place of the one that is there; durable when it returns."""
        ...

    def find(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, which may be missing. Costs O(files)."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        ...

    def put(self, name: str, source: Path) -> None:
        """Put a part from the scratch folder aside, where no table's pattern finds it; durable when it returns."""
        ...

    def fetch(self, name: str, scratch: Path) -> Path:
        """Return a local file with a part's bytes; in the scratch folder unless it is here anyway."""
        ...

    def read_footer(self, name: str) -> pq.FileMetaData:
        """Read the footer of a part by its place: some tens of KiB of it, whatever its size."""
        ...

    def arrange(self, listed: Collection[str], replaced: Collection[str], *, all_aside: bool = False) -> None:
        """Make tables' folders hold the listed parts and no others; keep replaced ones aside; delete the rest.

        A part is always in one of both places. With `all_aside` every part is aside in the end: where none can be in both
        places, tables' folders hold nothing. Cut off at any step, it can be done again.
        """
        ...

    def scratch(self) -> AbstractContextManager[Path]:
        """Provide an empty folder for the length of a block."""
        ...


def open_destination(text: str, options: Options, scratch: Path) -> Destination:
    """Open a destination by path or URL; `scratch` is the local scratch folder for those elsewhere.

    Only one may use it at a time. Raises StorageError.
    """
    folder = local_path(text)
    return LocalFolder(folder) if folder is not None else RemoteFolder(text, options, scratch)


def remove_scratch(folder: Path) -> None:
    """Remove a scratch folder that a killed process left, with its content. Raises StorageError."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise StorageError(f"cannot clear what an earlier export left: {error}") from error


class LocalFolder:
    """Folder of this machine, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """Return the folder's path."""
        return str(self._folder)

    def read(self, name: str, size_max: int) -> bytes | None:
        """See Destination."""
        with self._failing():
            path = self._folder / name
            if not path.exists():
                return None
            if path.stat().st_size > size_max:
                raise StorageError(f"{path} has more than {size_max} bytes")
            return path.read_bytes()

    def publish(self, name: str, content: bytes) -> None:
        """See Destination."""
        with self._failing():
            target = self._folder / name
            make_folder(target.parent)
            beside = self._folder / f"{name}.tmp"
            beside.write_bytes(content)
            sync_file(beside)
            beside.replace(target)
            sync_folder(target.parent)

    def find(self, folder: str) -> list[str]:
        """See Destination."""
        with self._failing():
            return [*_files_below(self._folder, folder)] if (self._folder / folder).is_dir() else []

    def delete(self, name: str) -> None:
        """See Destination."""
        with self._failing():
            (self._folder / name).unlink(missing_ok=True)

    def put(self, name: str, source: Path) -> None:
        """See Destination."""
        with self._failing():
            target = self._folder / KEPT_NAME / name
            make_folder(target.parent)
            sync_file(source)
            source.replace(target)
            sync_folder(target.parent)

    def fetch(self, name: str, scratch: Path) -> Path:
        """See Destination."""
        aside = self._folder / KEPT_NAME / name
        return aside if aside.exists() else self._folder / name

    def read_footer(self, name: str) -> pq.FileMetaData:
        """See Destination."""
        with self._failing():
            return pq.read_metadata(self._folder / name)

    def arrange(self, listed: Collection[str], replaced: Collection[str], *, all_aside: bool = False) -> None:
        """See Destination. Every part stays aside too, under a second name, so that no reader's path goes stale early."""
        with self._failing():
            for table in TABLES:
                wanted, kept = _names_of(table, listed), _names_of(table, replaced)
                try:
                    self._link_parts(table, wanted, kept)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    self._move_parts(table, *_places(wanted, kept, all_aside=all_aside))

    def _link_parts(self, table: str, listed: set[str], replaced: set[str]) -> None:
        shown, aside = self._folder / table, self._folder / KEPT_NAME / table
        beside, former = self._folder / f".{table}.new", self._folder / f".{table}.old"
        for left in (beside, former):  # by one who was killed
            if left.exists():
                shutil.rmtree(left)
        there = _parts_in(shown)
        unlinked = (listed | replaced) & there - _parts_in(aside)  # put by an older Ravel, or moved
        _link_all(sorted(unlinked), shown, aside)
        held = _parts_in(aside)
        wanted = listed & held
        if there - wanted:
            # Replaced as a whole: else a pattern would match parts of two exports for a moment. Between both renames it
            # matches nothing, which no reader takes for an answer.
            make_folder(beside)
            _link_all(sorted(wanted), aside, beside)
            for other in shown.iterdir():
                if other.name not in there:
                    other.rename(beside / other.name)
            shown.rename(former)
            beside.rename(shown)
            sync_folder(self._folder)
            shutil.rmtree(former)
        elif wanted - there:
            _link_all(sorted(wanted - there), aside, shown)
        for name in sorted(held - listed - replaced):
            (aside / name).unlink()

    def _move_parts(self, table: str, listed: set[str], replaced: set[str]) -> None:
        shown, aside = self._folder / table, self._folder / KEPT_NAME / table
        for source, target in _plan_moves(table, _parts_in(shown), _parts_in(aside), listed, replaced):
            if target is None:
                (self._folder / source).unlink()
            else:
                make_folder((self._folder / target).parent)
                move_file(self._folder / source, self._folder / target)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Provide a folder beside the parts: only inside one file system is there renaming."""
        with self._failing():
            make_folder(self._folder)
            with _emptied(self._folder / SCRATCH_NAME) as folder:
                yield folder

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"cannot export to {self._folder}: {error}") from error


class RemoteFolder:
    """Prefix of a store that fsspec has a driver for."""

    def __init__(self, url: str, options: Options, scratch: Path) -> None:
        self.name = url
        self._secrets = sorted(_strings_of(options), key=len, reverse=True)
        self._scratch = scratch
        self._protocol = url.partition("://")[0]
        self._fs, self._root = self._do(lambda: _connect(url, options))

    def read(self, name: str, size_max: int) -> bytes | None:
        """See Destination."""

        def read() -> bytes | None:
            try:
                if self._fs.info(self._path(name))["size"] > size_max:
                    raise StorageError(f"{self.name}/{name} has more than {size_max} bytes")
                return bytes(self._fs.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

        return self._do(read)

    def publish(self, name: str, content: bytes) -> None:
        """See Destination."""
        self._do(lambda: self._in_folder(name).pipe_file(self._path(name), content))

    def put(self, name: str, source: Path) -> None:
        """See Destination."""
        aside = f"{KEPT_NAME}/{name}"
        self._do(lambda: self._in_folder(aside).put_file(str(source), self._path(aside)))

    def fetch(self, name: str, scratch: Path) -> Path:
        """See Destination."""
        here = scratch / name.replace("/", "-")

        def fetch() -> None:
            try:
                self._fs.get_file(self._path(name), str(here))
            except FileNotFoundError:  # an export was cut off before it was moved to its table
                self._fs.get_file(self._path(f"{KEPT_NAME}/{name}"), str(here))

        self._do(fetch)
        return here

    def read_footer(self, name: str) -> pq.FileMetaData:
        """See Destination."""

        def read() -> pq.FileMetaData:
            # Without a cache, which would read some MB ahead.
            with self._fs.open(self._path(name), "rb", cache_type="none") as file:
                return pq.read_metadata(file)

        return self._do(read)

    def find(self, folder: str) -> list[str]:
        """See Destination."""
        return [name for name in self._do(self._find) if name.startswith(f"{folder}/")]

    def delete(self, name: str) -> None:
        """See Destination."""
        self._do(lambda: self._move(name, None))

    def arrange(self, listed: Collection[str], replaced: Collection[str], *, all_aside: bool = False) -> None:
        """See Destination. What is moved is copied by the store itself, then deleted: no store of objects can rename."""
        found = self._do(self._find)
        for table in TABLES:
            there, aside = (_names_of(folder, found) for folder in (table, f"{KEPT_NAME}/{table}"))
            wanted, kept = _places(_names_of(table, listed), _names_of(table, replaced), all_aside=all_aside)
            for source, target in _plan_moves(table, there, aside, wanted, kept):
                self._do(partial(self._move, source, target))

    def _find(self) -> list[str]:
        """Return the names of all files of the export."""
        self._fs.invalidate_cache()
        try:
            paths = self._fs.find(self._root)
        except FileNotFoundError:
            return []
        start = f"{self._root.strip('/')}/"
        return [str(path).lstrip("/").removeprefix(start) for path in paths]

    def _move(self, source: str, target: str | None) -> None:
        if target is not None:
            try:
                self._in_folder(target).cp_file(self._path(source), self._path(target))
            except (
                NotImplementedError
            ):  # raised by fsspec for a store that renames and does not copy, such as SFTP
                self._fs.mv(self._path(source), self._path(target))
                return
        try:
            self._fs.rm_file(self._path(source))
        except FileNotFoundError:
            return

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Provide a folder of this machine, which needs room for what is new."""
        with _emptied(self._scratch) as folder:
            yield folder

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _in_folder(self, name: str) -> Any:  # noqa: ANN401  # fsspec has no types
        if self._protocol not in _OBJECT_STORES:
            self._fs.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
        return self._fs

    def _do(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except StorageError:
            raise
        except Exception as error:  # of a driver's own library: to name them all would be to import them all
            raise StorageError(self._explain(error)) from None

    def _explain(self, error: Exception) -> str:
        if isinstance(error, ImportError):
            package = _EXTRAS.get(self._protocol, "the driver of fsspec for it")
            return f"{self.name} needs {package}, which is not installed here"
        said = f"{type(error).__name__}: {error}"
        for secret in self._secrets:
            said = said.replace(secret, _HIDDEN)
        return f"cannot export to {self.name}: {said}"


def _names_of(folder: str, paths: Collection[str]) -> set[str]:
    """Return the names of the parts in a folder, given paths from the export's root."""
    split = (path.rpartition("/") for path in paths)
    return {name for parent, _, name in split if parent == folder and name.endswith(".parquet")}


def _files_below(folder: Path, name: str) -> Iterator[str]:
    """Yield the paths in `folder` of all files below `name`. An export lists its parts five times: none becomes a Path."""
    with os.scandir(folder / name) as entries:
        for entry in entries:
            path = f"{name}/{entry.name}" if name else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(folder, path)
            elif entry.is_file():
                yield path


def _parts_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.parquet")}


def _link_all(names: Collection[str], source: Path, target: Path) -> None:
    """Link parts of a folder into another; durable when it returns."""
    if names:
        make_folder(target)
        for name in names:
            os.link(source / name, target / name)
        sync_folder(target)


def _places(listed: set[str], replaced: set[str], *, all_aside: bool) -> tuple[set[str], set[str]]:
    """Return the parts to be in a table's folder, and those to be aside, where none can be in both."""
    return (set(), listed | replaced) if all_aside else (listed, replaced)


def _plan_moves(
    table: str, there: set[str], aside: set[str], listed: set[str], replaced: set[str]
) -> list[tuple[str, str | None]]:
    """Plan moves (from, to; None: delete) after which a table's folder has the listed parts and no others.

    Parts go before others come. In between a pattern matches too little, and no row of it twice.
    """
    kept = f"{KEPT_NAME}/{table}"
    leave = [
        (f"{table}/{name}", f"{kept}/{name}" if name in replaced - aside else None)
        for name in sorted(there - listed)
    ]
    come = [
        (f"{kept}/{name}", f"{table}/{name}" if name in listed - there else None)
        for name in sorted(aside - (replaced - listed))
    ]
    return [*leave, *come]


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    remove_scratch(folder)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise StorageError(f"cannot prepare an export: {error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _connect(url: str, options: Options) -> tuple[Any, str]:
    import fsspec  # type: ignore[import-untyped]  # it has no types

    fs, root = fsspec.core.url_to_fs(url, **options)
    return fs, str(root).rstrip("/")


def _strings_of(value: object) -> set[str]:
    """Return all texts in options, however deep, but for addresses, which people need to see."""
    if isinstance(value, str):
        is_address = value.startswith(("http://", "https://")) and "@" not in value
        return {value} if len(value) >= _SECRET_SIZE_MIN and not is_address else set()
    if isinstance(value, Mapping):
        return {text for one in value.values() for text in _strings_of(one)}
    if isinstance(value, list | tuple):
        return {text for one in value for text in _strings_of(one)}
    return set()
