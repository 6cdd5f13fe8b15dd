"""Writes an export to its destination: a local folder, or an object store (by fsspec).

Both keep the same promise: a part that a name stands for is whole and never changes, and the manifest is replaced in one
piece. A folder has renaming for that. An object store puts an object as a whole or not at all; a store that is neither
(fsspec knows some) may show a reader half a manifest for a moment, which the reader refuses.

What is being written lies in a scratch folder of this machine first, so that a part's checksum is known before its name.
Credentials are options of the driver or in the environment, where the driver finds them itself; no error shows them.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from storage.engine.database import StorageError
from storage.engine.folders import make_folder
from storage.export.destination_urls import local_path

T = TypeVar("T")
Options = Mapping[str, Any]
"""What a driver is told beside the URL: strings, numbers, tables."""

SCRATCH_NAME: Final = ".scratch"
"""The scratch folder in an export that is a folder of this machine."""
_OBJECT_STORES: Final = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss")
"""Have no folders to make, and some would make a bucket instead."""
_EXTRAS: Final[Mapping[str, str]] = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
}
_HIDDEN: Final = "***"
_SECRET_SIZE_MIN: Final = 4
"""Characters. A shorter option is no secret, and hiding it everywhere would garble every error."""


class Destination(Protocol):
    """A place for one export. Names are relative paths, such as `commits/x.parquet`. All methods raise StorageError."""

    @property
    def name(self) -> str:
        """What people know it by; holds no credentials."""
        ...

    def read(self, name: str, size_max: int) -> bytes | None:
        """A small file, or None where there is none."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """Put a small file, in place of the one that is there."""
        ...

    def put(self, name: str, source: Path) -> None:
        """Put a part that lies in the scratch folder; durable when it returns."""
        ...

    def fetch(self, name: str, scratch: Path) -> Path:
        """A file of this machine with a part's bytes; in the scratch folder unless it is here anyway."""
        ...

    def list_parts(self, table: str) -> list[str]:
        """Names of all files of a table."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file; one that is not there is no error."""
        ...

    def scratch(self) -> AbstractContextManager[Path]:
        """An empty folder for the length of a block."""
        ...


def open_destination(text: str, options: Options, scratch: Path) -> Destination:
    """A destination by its path or URL; `scratch` is the scratch folder of this machine for those of other machines.

    Only one may use it at a time. Raises StorageError.
    """
    folder = local_path(text)
    return LocalFolder(folder) if folder is not None else RemoteFolder(text, options, scratch)


def remove_scratch(folder: Path) -> None:
    """Remove a scratch folder that one who was killed left, with what lies in it. Raises StorageError."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise StorageError(f"cannot clear what an earlier export left: {error}") from error


class LocalFolder:
    """A folder of this machine, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def name(self) -> str:
        """Its path."""
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
            beside = self._folder / f"{name}.tmp"
            beside.write_bytes(content)
            _sync(beside)
            beside.replace(self._folder / name)
            _sync(self._folder)

    def put(self, name: str, source: Path) -> None:
        """See Destination."""
        with self._failing():
            target = self._folder / name
            make_folder(target.parent)
            _sync(source)
            source.replace(target)
            _sync(target.parent)

    def fetch(self, name: str, scratch: Path) -> Path:  # see Destination
        """See Destination."""
        return self._folder / name

    def list_parts(self, table: str) -> list[str]:
        """See Destination."""
        with self._failing():
            return [f"{table}/{path.name}" for path in sorted((self._folder / table).glob("*.parquet"))]

    def delete(self, name: str) -> None:
        """See Destination."""
        with self._failing():
            (self._folder / name).unlink(missing_ok=True)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder beside the parts: only inside of one file system is there renaming. What was left there goes."""
        with self._failing():
            make_folder(self._folder)
            with _emptied(self._folder / SCRATCH_NAME) as folder:
                yield folder

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"cannot export to {self._folder}: {error}") from error


class RemoteFolder:
    """A prefix of a store that fsspec has a driver for."""

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
        self._do(lambda: self._in_folder(name).put_file(str(source), self._path(name)))

    def fetch(self, name: str, scratch: Path) -> Path:
        """See Destination."""
        here = scratch / name.replace("/", "-")
        self._do(lambda: self._fs.get_file(self._path(name), str(here)))
        return here

    def list_parts(self, table: str) -> list[str]:
        """See Destination."""

        def find() -> Sequence[str]:
            self._fs.invalidate_cache()
            try:
                return [str(path) for path in self._fs.ls(self._path(table), detail=False)]
            except FileNotFoundError:
                return []

        names = [path.rstrip("/").rpartition("/")[2] for path in self._do(find)]
        return [f"{table}/{name}" for name in sorted(names) if name.endswith(".parquet")]

    def delete(self, name: str) -> None:
        """See Destination."""

        def delete() -> None:
            try:
                self._fs.rm_file(self._path(name))
            except FileNotFoundError:
                return

        self._do(delete)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder of this machine: it needs room for what is new. What was left there goes."""
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
    """All texts in options, however deep, but for addresses, which people need to see."""
    if isinstance(value, str):
        is_address = value.startswith(("http://", "https://")) and "@" not in value
        return {value} if len(value) >= _SECRET_SIZE_MIN and not is_address else set()
    if isinstance(value, Mapping):
        return {text for one in value.values() for text in _strings_of(one)}
    if isinstance(value, list | tuple):
        return {text for one in value for text in _strings_of(one)}
    return set()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
