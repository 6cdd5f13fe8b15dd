"""Puts results at a URL of fsspec's: they are made in a folder of this machine, and copied there in the end.

Tables that tasks write go there at once (`analytics.engines.spark_tables`). A store of objects cannot rename, so files have
names of their own, and what a run does not name is removed once it is complete.
"""

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

JOURNAL_NAME: Final = "runs.jsonl"
"""The runs of a study that are done."""
_KEPT_BETWEEN_RUNS: Final = ("summary.json", JOURNAL_NAME)


class ResultsRefused(Exception):
    """Results cannot be put where they were to go. The message names the URL and the error, without credentials."""


def fetch_kept(url: str, folder: Path) -> None:
    """Bring what an analysis or a study reads of the one before. Raises ResultsRefused."""
    with _opened(url) as (files, root):
        for name in _KEPT_BETWEEN_RUNS:
            with suppress(FileNotFoundError):
                files.get_file(f"{root}/{name}", str(folder / name))


def write_table(out: Path, name: str, rows: "pa.Table") -> Path:
    """Write a small table below the results in place of what is there, by this process; return its file. Raises OSError."""
    import pyarrow.parquet as pq  # takes longer than the rest of this module

    folder = out / "tables" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = folder / "part-00000.parquet"
    pq.write_table(rows, file)
    return file


def publish(folder: Path, url: str, names: Collection[str] | None = None) -> None:
    """Copy a folder's files to a URL, or those of `names`. Of all, others in the same subfolders there go.

    Raises ResultsRefused.
    """
    # Not a log to which nothing was written: that of spark-submit's JVM is elsewhere.
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    with _opened(url) as (files, root):
        for path in found:
            name = path.relative_to(folder).as_posix()
            if names is None or name in names:
                files.put_file(str(path), f"{root}/{name}")
    for below in {path.parent for path in found} - {folder} if names is None else ():
        remove_others(
            f"{url}/{below.relative_to(folder).as_posix()}", {path.name for path in below.iterdir()}
        )


def remove_others(url: str, kept: Collection[str]) -> None:
    """Remove the files of a folder at a URL that do not have one of these names. Raises ResultsRefused."""
    with _opened(url) as (files, root):
        for path in files.find(root):
            if path.rpartition("/")[2] not in kept:
                files.rm_file(path)


@contextmanager
def _opened(url: str) -> Iterator[tuple[Any, str]]:
    """Open the file system of a URL, and name the URL in errors of its driver."""
    try:
        import fsspec  # type: ignore[import-untyped]  # it has no types

        files, root = fsspec.core.url_to_fs(url)
        yield files, str(root).rstrip("/")
    except Exception as error:  # of a driver's own library: to name them all would be to import them all
        # What they say may hold credentials; which error it is does not.
        missing = " (its driver is not installed)" if isinstance(error, ImportError) else ""
        raise ResultsRefused(f"cannot write to {url}: {type(error).__name__}{missing}") from None
