"""Brings exports that lie elsewhere (any URL of fsspec's) to this machine.

Credentials are in the environment, where the driver finds them, or all its options as JSON in FSSPEC_S3 (or whatever the
protocol is). The manifest is fetched first: the parts that it lists are kept for a while after newer ones have replaced
them, so what is brought here is one moment of the export.

Parts never change, so they are kept by their checksum, in `ravel/parts` of the user's cache. A part that
nothing has read for a month is deleted. Each notebook, analysis or task of Spark brings the parts that it reads.
"""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir
from typing import Any, Final, Protocol, TypeVar

from blake3 import blake3

from ravel.exports.checking import (
    MANIFEST_SIZE_MAX,
    Export,
    ExportError,
    ExportPart,
    check_export,
    list_export,
    local_folder,
    read_manifest,
)
from ravel.exports.schema import KEPT_NAME, MANIFEST_NAME

_UNUSED_SECONDS: Final = 30 * 86_400
_CHECKSUM: Final = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class _Files(Protocol):
    """Interface of fsspec's file systems, which have no types."""

    def info(self, path: str) -> Mapping[str, Any]:
        """Facts of a file, its `size` among them."""
        ...

    def cat_file(self, path: str) -> bytes:
        """Return the bytes of a file."""
        ...

    def get_file(self, source: str, target: str) -> None:
        """Copy a file here."""
        ...


def list_source(source: str, *, with_blocks: bool = False, with_bodies: bool = False) -> Export:
    """Return the export at a path or URL by its manifest; no part is looked at. Raises ExportError."""
    folder = local_folder(source)
    content = _fetch_manifest(source.rstrip("/")) if folder is None else read_manifest(folder)
    return list_export(source, content, with_blocks=with_blocks, with_bodies=with_bodies)


def read_source(
    source: str,
    *,
    with_blocks: bool = False,
    with_bodies: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Export:
    """Return the export at a path or URL with every part on this machine, and checked. Raises ExportError."""
    listed = list_source(source, with_blocks=with_blocks, with_bodies=with_bodies)
    return check_export(listed, bring=bring_part, progress=progress)


def refuse_repeated(sources: Sequence[str]) -> None:
    """Refuse an export that is named twice, whose rows would count twice. Raises ExportError."""
    places: set[str] = set()
    for source in sources:
        folder = local_folder(source)
        place = source.rstrip("/") if folder is None else str(folder.resolve())
        if place in places:
            raise ExportError(f"{source} is given twice")
        places.add(place)


def bring_part(part: ExportPart) -> ExportPart:
    """Return a part that lies elsewhere as a file of the cache, fetched unless it is there. Raises ExportError, OSError."""
    if _CHECKSUM.fullmatch(part.blake3) is None:
        raise ExportError(f"{part.place} has no checksum in the manifest")
    kept = cache_folder() / f"{part.blake3}.parquet"
    with suppress(FileNotFoundError):
        if kept.stat().st_size == part.size and blake3().update_mmap(kept).hexdigest() == part.blake3:
            os.utime(kept)
            return replace(part, path=kept)
    _remove_unused(kept.parent)
    files, root = _driven(part.url, lambda: _connect(part.url))
    with NamedTemporaryFile(dir=kept.parent, prefix="new-", delete=False) as made:
        arriving = Path(made.name)
    try:
        _fetch(files, root, part, arriving)
        # What is not as the manifest says is kept too, and refused by who checks it; the next fetch is anew.
        arriving.replace(kept)
    finally:
        arriving.unlink(missing_ok=True)
    return replace(part, path=kept)


def cache_folder() -> Path:
    """Return the folder of parts that were brought, which is made: the user's own, or one in the temporary folder.

    Raises OSError.
    """
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ravel" / "parts"
        cache.mkdir(parents=True, exist_ok=True)
        if os.access(cache, os.W_OK):
            return cache
    except (OSError, RuntimeError):
        pass  # a task on a cluster may have no home
    cache = Path(gettempdir()) / f"ravel-parts-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    if cache.is_symlink() or cache.stat().st_uid != os.getuid():
        raise PermissionError(f"{cache} is another user's")
    return cache


def _remove_unused(cache: Path) -> None:
    """Remove what nothing has read for a month, also what a fetch left that was killed."""
    for file in cache.iterdir():
        with suppress(FileNotFoundError):  # another process removed it
            if file.stat().st_mtime < time.time() - _UNUSED_SECONDS:
                file.unlink()


def _fetch_manifest(url: str) -> bytes:
    files, root = _driven(url, lambda: _connect(url))
    path = f"{root}/{MANIFEST_NAME}"
    try:
        size = _driven(url, lambda: files.info(path)["size"])
        if size > MANIFEST_SIZE_MAX:
            raise ExportError(
                f"{url}/{MANIFEST_NAME} is over {MANIFEST_SIZE_MAX >> 20} MiB, too large for a manifest"
            )
        return _driven(url, lambda: files.cat_file(path))
    except FileNotFoundError:
        raise ExportError(f"{url}/{MANIFEST_NAME} is not there: this is not an export") from None


def _fetch(files: _Files, root: str, part: ExportPart, target: Path) -> None:
    """Copy a part from where it is listed, or where it is kept: an export may move it from either to the other."""
    listed, kept = f"{root}/{part.name}", f"{root}/{KEPT_NAME}/{part.name}"
    for source in (listed, kept, listed):
        try:
            size = _driven(part.url, lambda: files.info(source)["size"])  # noqa: B023  # called at once
            if size != part.size:  # before a stranger's file fills this disk
                raise ExportError(f"{part.place} has {size} bytes, the manifest says {part.size}")
            _driven(part.url, partial(files.get_file, source, str(target)))
        except FileNotFoundError:
            continue
        return
    raise ExportError(f"{part.place} is missing, but the manifest of {part.url} lists it")


def _connect(url: str) -> tuple[_Files, str]:
    import fsspec  # type: ignore[import-untyped]  # it has no types

    files, root = fsspec.core.url_to_fs(url)
    return files, str(root).rstrip("/")


def _driven(url: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except FileNotFoundError:
        raise
    except Exception as error:  # of a driver's own library: to name them all would be to import them all
        # What they say may hold credentials; which error it is does not.
        missing = " (its driver is not installed)" if isinstance(error, ImportError) else ""
        raise ExportError(f"{url} cannot be read: {type(error).__name__}{missing}") from None
