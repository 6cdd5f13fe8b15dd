"""Lets Java load Spark's classes from an archive (class-data sharing) that an earlier run left in the user's cache.

A run of few rows spends a third of its time on finding, checking and linking some 15,000 classes. Java archives them as it
exits, which takes ten seconds once and 200 MB. So a first run only leaves a mark, the second makes the archive, and later
ones start from it. A cache that does not last costs no time. Java passes over an archive of other classes, or one that was
cut off. What was not used for a month goes when another is made.
"""

import os
import time
from pathlib import Path
from typing import Final

import pyspark
from blake3 import blake3

_ENDINGS: Final = (".seen", ".tried")
"""What is left beside the archive: a run has been here; one has tried to make it, and none tries again."""
_UNUSED_SECONDS: Final = 30 * 86_400
_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""Java says on standard output, which has our results, what it leaves out of an archive."""


def archive_options(java_home: Path) -> str:
    """Options for a Java that starts now; "" on a first run, and where the cache cannot be written."""
    try:
        archive = _path(java_home)
        seen, tried = (archive.with_suffix(ending) for ending in _ENDINGS)
        if archive.is_file():
            os.utime(archive)
            return f'{_QUIET} "-XX:SharedArchiveFile={archive}"'
        archive.parent.mkdir(parents=True, exist_ok=True)
        if not seen.exists():
            seen.touch()
        elif not tried.exists():
            tried.touch()
            _remove_old(archive.parent)
            return f'{_QUIET} -XX:+IgnoreUnrecognizedVMOptions "-XX:ArchiveClassesAtExit={archive}"'
    except (OSError, RuntimeError):
        pass  # a home that is not ours to write, or a user without one: as without an archive
    return ""


def _remove_old(folder: Path) -> None:
    """Remove archives that no run has used for a month. Raises OSError."""
    for archive in folder.glob("spark-*.jsa"):
        if archive.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            for file in (archive, *map(archive.with_suffix, _ENDINGS)):
                file.unlink(missing_ok=True)


def _path(java_home: Path) -> Path:
    """Another Java, Spark or place of Spark has an archive of its own: Java would refuse it."""
    told = f"{java_home.resolve()}\n{_version(java_home)}\n{pyspark.__version__}\n{Path(pyspark.__file__).parent}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "ravel" / f"spark-{blake3(told.encode()).hexdigest()[:16]}.jsa"


def _version(java_home: Path) -> str:
    try:
        return (java_home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
