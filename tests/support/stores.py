"""Stores of tests, opened faster: in memory where there is room, with tables and compiled statements made once.

Each store has an engine of its own, which compiles every statement anew, makes its tables, and syncs the disk at each
commit. Thousands of tests open a store for some milliseconds of work: all of that together took most of the suite's time.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, create_engine

from storage.engine import folders, sqlite
from storage.engine.database import Database

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # files in it cost no disk syncs
_ROOM: Final = 2 << 30
"""Bytes that must be free there; the tests take up to 1 GiB at once."""


def use_memory_for_files() -> None:
    """Have temporary folders of this process and its children in memory, unless TMPDIR names a place."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    if shutil.disk_usage(_MEMORY).free >= _ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def share_compiled_statements() -> None:
    """Let all SQLite stores of this process share what SQLAlchemy compiles, from now on."""
    statements: dict[Any, Any] = {}
    engines: list[Engine] = []

    def create(*args: Any, **options: Any) -> Engine:  # noqa: ANN401  # handed on
        engine = create_engine(*args, **options, execution_options={"compiled_cache": statements})
        engines[:] = engines or [engine]
        engine.dialect = engines[0].dialect  # what is compiled is kept by dialect
        return engine

    vars(sqlite)["create_engine"] = create


def share_new_tables() -> None:
    """Begin each new SQLite store of this process with the tables of the first one, which took 10 ms to make, from now on.

    The folder `tests/unit/storage/engine` is about what this leaves out, and does without.
    """
    made: list[bytes] = []

    def make_file(path: Path, flags: int) -> int:
        if not made:
            vars(sqlite)["open_or_create"] = folders.open_or_create
            with tempfile.TemporaryDirectory() as folder:
                Database(Path(folder)).close()
                made.append((Path(folder) / sqlite.DATABASE_NAME).read_bytes())
            vars(sqlite)["open_or_create"] = make_file
        handle = folders.open_or_create(path, flags)
        os.write(handle, made[0])
        return handle

    vars(sqlite)["open_or_create"] = make_file
