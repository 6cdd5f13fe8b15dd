"""The export that is there, as one ZIP file for a browser: made while it is sent, so that it takes no room on the disk.

An archive that is made first would take the export's size once more, and would have to be deleted later. Parts that a
script of the page fetches and joins would fill the browser's memory. `tar` opens on no phone, and not everywhere on Windows.

Its parts are those that the manifest lists at the beginning. A newer export may replace some meanwhile; those are read from
where they are kept. Nothing is compressed: Parquet is already.
"""

import io
import re
import time
import zipfile
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec

from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from protocol.limits.users import EXPORT_MANIFEST_SENT_MAX
from ravel.types.node import ExportView
from storage.engine.urls import local_path

# As `ravel.exports.schema` and `storage.export.views` have them, which bring Arrow with them.
MANIFEST_NAME: Final = "manifest.json"
KEPT_NAME: Final = "kept"
VIEWS_NAME: Final = "views.sql"

_PART_PATH: Final = re.compile(r"[a-z_]+/[0-9A-Za-z-]+\.parquet")
"""The manifest may have been altered where it lay: no other file is sent."""
_CHUNK_SIZE: Final = 1 << 20
_FIRST_MOMENT: Final = 315_619_200
_LAST_MOMENT: Final = 4_102_444_800
"""Unix seconds. A ZIP has times of 1980 to 2107."""


class _Part(msgspec.Struct):
    path: str
    bytes: int


class _Manifest(msgspec.Struct):
    created_at: Annotated[int, msgspec.Meta(ge=_FIRST_MOMENT, le=_LAST_MOMENT)]
    tables: dict[str, list[_Part]]


@dataclass(frozen=True, slots=True)
class Archive:
    """An export of this machine, to be sent."""

    folder: Path
    manifest: bytes
    created_at: int  # unix seconds
    parts: tuple[str, ...]  # paths in the export

    @property
    def name(self) -> str:
        """Return the name of the file that a browser saves, and of the folder in it."""
        return time.strftime("ravel-export-%Y-%m-%d", time.gmtime(self.created_at))


class Archives:
    """Sends the export at one destination, a path or a URL."""

    def __init__(self, destination: str, run_blocking: RunBlocking) -> None:
        self._destination = destination
        self._run_blocking = run_blocking

    async def show(self) -> ExportView:
        """Find the export that is there. Raises ServiceError `storage_failed`, `too_large`."""
        view: ExportView = {
            "destination": self._destination,
            "made_at": None,
            "size": None,
        }
        try:
            content, manifest = await self._run_blocking(self._read)
        except ServiceError as error:
            if error.code != "not_found":
                raise
            return view
        sizes = (part.bytes for parts in manifest.tables.values() for part in parts)
        view["made_at"], view["size"] = manifest.created_at, sum(sizes) + len(content)
        return view

    async def open(self) -> Archive:
        """Find it. Raises ServiceError `not_found`, `storage_failed`, `too_large`."""
        content, manifest = await self._run_blocking(self._read)
        paths = tuple(part.path for parts in manifest.tables.values() for part in parts)
        if not all(map(_PART_PATH.fullmatch, paths)):
            raise _unusable(self._folder())
        return Archive(self._folder(), content, manifest.created_at, paths)

    async def send(self, archive: Archive) -> AsyncGenerator[bytes]:
        """Yield the file's bytes. Raises ServiceError `storage_failed`, which cuts the answer off."""
        steps = _pack(archive)
        try:
            while (some := await self._run_blocking(next, steps, None)) is not None:
                yield some
        finally:
            steps.close()  # a browser that leaves early leaves no file open

    def _folder(self) -> Path:
        folder = local_path(self._destination)
        if folder is None:
            raise ServiceError(
                "not_found",
                "exports of this node go to another place than its machine",
                f"read it there: {self._destination}",
            )
        return folder

    def _read(self) -> tuple[bytes, _Manifest]:
        folder = self._folder()
        try:
            with (folder / MANIFEST_NAME).open("rb") as file:
                content = file.read(EXPORT_MANIFEST_SENT_MAX + 1)
        except FileNotFoundError:
            raise ServiceError("not_found", "there is no export yet", "make one") from None
        except OSError as error:
            raise ServiceError("storage_failed", f"the export cannot be read: {error.strerror}") from error
        if len(content) > EXPORT_MANIFEST_SENT_MAX:
            raise ServiceError("too_large", "the export has too many parts to be sent", f"copy {folder}")
        try:
            return content, msgspec.json.decode(content, type=_Manifest)
        except msgspec.DecodeError:
            raise _unusable(folder) from None


def _unusable(folder: Path) -> ServiceError:
    return ServiceError(
        "storage_failed", f"{folder / MANIFEST_NAME} is no manifest of an export", "export anew"
    )


class _Sink(io.RawIOBase):
    """Take the bytes written since the last call. The stream cannot seek: sizes then follow contents in the ZIP."""

    def __init__(self) -> None:
        self._some = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: "memoryview | bytes") -> int:  # type: ignore[override]  # what zipfile writes
        self._some += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._some)
        self._some.clear()
        return taken


def _pack(archive: Archive) -> Generator[bytes]:
    """Yield the ZIP, a chunk of a file at a time. Blocks."""
    sink = _Sink()
    moment = time.gmtime(archive.created_at)[:6]
    with zipfile.ZipFile(sink, "w") as packed:

        def entry(name: str, size: int) -> zipfile.ZipInfo:
            info = zipfile.ZipInfo(f"{archive.name}/{name}", moment)
            info.file_size = size  # over 4 GiB it needs another form, chosen before its content is known
            return info

        for path in archive.parts:
            try:
                with _open_part(archive.folder, path) as source:
                    size = source.seek(0, io.SEEK_END)
                    source.seek(0)
                    with packed.open(entry(path, size), "w") as target:
                        while chunk := source.read(_CHUNK_SIZE):
                            target.write(chunk)
                            yield sink.take()
            except OSError as error:
                raise ServiceError("storage_failed", f"{path} cannot be read: {error.strerror}") from error
            yield sink.take()
        views = archive.folder / VIEWS_NAME
        if views.is_file():
            packed.writestr(entry(VIEWS_NAME, 0), views.read_bytes())
        packed.writestr(entry(MANIFEST_NAME, 0), archive.manifest)
    yield sink.take()


def _open_part(folder: Path, path: str) -> io.BufferedReader:
    try:
        return (folder / path).open("rb")
    except FileNotFoundError:
        return (folder / KEPT_NAME / path).open("rb")
