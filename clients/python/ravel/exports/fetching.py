"""Downloads a remote export (any fsspec URL) to this machine before reading.

Any URL that fsspec has a driver for will do. Credentials are in the environment, where the driver finds them, or all its
options as JSON in FSSPEC_S3 (or whatever the protocol is). The manifest is fetched first: the parts that it lists are kept
for a while after newer ones have replaced them, so what is brought here is one moment of the export. Parts never change:
of an export that was fetched into a folder before, only what is new is brought.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import unquote

from blake3 import blake3

from ravel.exports.checking import MANIFEST_SIZE_MAX, ExportError, ExportPart, list_tables, load_manifest
from ravel.exports.schema import KEPT_NAME, MANIFEST_NAME

FOLDER_NAME: Final = "exports"
_FETCHED_AT_ONCE: Final = 8
"""Parts: an object store answers each after some tens of milliseconds, whatever else is asked."""
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
T = TypeVar("T")


class _Files(Protocol):
    """Interface of fsspec's file systems, which have no types."""

    def info(self, path: str) -> Mapping[str, Any]:
        """Facts of a file, its `size` among them."""
        ...

    def get_file(self, source: str, target: str) -> None:
        """Copy a file here."""
        ...


def fetch_exports(
    sources: Sequence[str],
    out: Path,
    progress: Callable[[str], None],
    *,
    with_blocks: bool = False,
    with_bodies: bool = False,
    refuse: Callable[[str, ExportError], None] | None = None,
) -> list[Path]:
    """Return the folders of these exports, paths or URLs; those from elsewhere in `out`/exports, by their number, from 1.

    Blocks are brought `with_blocks` alone, bodies `with_bodies` alone. An export that is named twice is refused: its rows
    would count twice. One that cannot be fetched is passed to `refuse`, and left out, where that is given. Raises
    ExportError, OSError.
    """
    folders = []
    places: set[str] = set()
    for number, source in enumerate(sources, 1):
        folder = local_folder(source)
        place = source.rstrip("/") if folder is None else str(folder.resolve())
        if place in places:
            raise ExportError(f"{source} is given twice")
        places.add(place)
        if folder is None:
            progress(f"fetch {source}")
            target = out / FOLDER_NAME / str(number)
            try:
                folder = _fetch(source, target, with_blocks=with_blocks, with_bodies=with_bodies)
            except ExportError as error:
                if refuse is None:
                    raise
                refuse(source, error)
                continue
        folders.append(folder)
    return folders


def local_folder(source: str) -> Path | None:
    """Return the folder that a path or URL names, None where it is elsewhere."""
    url = _URL.fullmatch(source)
    if url is None:
        return Path(source)
    return Path(unquote(url[2])) if url[1] == "file" else None


def fetch_manifest(url: str, folder: Path) -> None:
    """Bring the manifest of an export into a folder. Raises ExportError, OSError."""
    files, root = _driven(url, lambda: _connect(url))
    try:
        size = _driven(url, lambda: files.info(f"{root}/{MANIFEST_NAME}")["size"])
    except FileNotFoundError:
        raise ExportError(f"{url}/{MANIFEST_NAME} is not there: this is not an export") from None
    if size > MANIFEST_SIZE_MAX:
        raise ExportError(
            f"{url}/{MANIFEST_NAME} is over {MANIFEST_SIZE_MAX >> 20} MiB, too large for a manifest"
        )
    _driven(url, lambda: files.get_file(f"{root}/{MANIFEST_NAME}", str(folder / MANIFEST_NAME)))


def bring_part(url: str, part: ExportPart) -> None:
    """Bring one part of an export to its path. Raises ExportError, OSError."""
    files, root = _driven(url, lambda: _connect(url))
    _bring(files, root, part, url)


def _fetch(url: str, folder: Path, *, with_blocks: bool, with_bodies: bool) -> Path:
    """Bring an export into a folder: of parts, those that are not there as the manifest has them, some at once."""
    folder.mkdir(parents=True, exist_ok=True)
    fetch_manifest(url, folder)
    manifest_path = folder / MANIFEST_NAME
    manifest = load_manifest(manifest_path)
    try:
        tables = list_tables(
            manifest, folder, manifest_path, with_blocks=with_blocks, with_bodies=with_bodies
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{url} has no good manifest: {type(error).__name__} {error}") from None
    listed = [part for parts in tables.values() for part in parts]
    _remove_others(folder, {manifest_path, *(part.path for part in listed)})
    lacking = [part for part in listed if not _is_here(part, url)]
    with ThreadPoolExecutor(_FETCHED_AT_ONCE) as threads:
        try:
            for _ in threads.map(partial(bring_part, url), lacking):  # each thread gets a driver of its own
                pass
        except BaseException:  # an interrupt too: the parts that wait are not brought for nothing
            threads.shutdown(cancel_futures=True)
            raise
    return folder


def _remove_others(folder: Path, listed: Set[Path]) -> None:
    """Remove what an earlier fetch brought and nothing lists any more."""
    for path in sorted(folder.rglob("*"), reverse=True):  # a folder after what is in it
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):  # something is in it
                path.rmdir()
        elif path not in listed:
            path.unlink()


def _is_here(part: ExportPart, url: str) -> bool:
    """Return True if a part was brought before, whole. Makes its folder. Raises ExportError, OSError."""
    try:
        part.path.parent.mkdir(parents=True, exist_ok=True)
        is_as_large = part.path.is_file() and part.path.stat().st_size == part.size
    except (OSError, ValueError) as error:  # a name that no file can have here
        reason = type(error).__name__
        raise ExportError(f"{url} lists a part that cannot be kept here ({reason}): {part.name!r}") from None
    return is_as_large and blake3().update_mmap(part.path).hexdigest() == part.blake3


def _bring(files: _Files, root: str, part: ExportPart, url: str) -> None:
    """Bring a part from where it is listed, or where it is kept: an export may move it from either to the other."""
    listed, kept = f"{root}/{part.name}", f"{root}/{KEPT_NAME}/{part.name}"
    for source in (listed, kept, listed):
        try:
            _driven(url, partial(files.get_file, source, str(part.path)))
        except FileNotFoundError:
            continue
        return
    raise ExportError(f"{listed} is missing, but the manifest of {url} lists it")


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
