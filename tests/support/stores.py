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

from storage.engine import database, folders, sqlite

_CHOOSE: Final = database.choose_backend
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # files in it cost no disk syncs
_ROOM: Final = 2 << 30
"""Bytes that must be free there; the tests take up to 1 GiB at once."""


class KeptFolder:
    """The files of a closed store with its rows in one of them, to begin others with."""

    @staticmethod
    def are_rows_kept() -> bool:
        """Whether stores that are opened now have their rows in their folders, and not in PostgreSQL."""
        return database.choose_backend is _CHOOSE

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }

    def write_to(self, folder: Path) -> None:
        """Write them into a folder, over what it has."""
        for path, content in self._files.items():
            (folder / path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(folder / path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(content)


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
                database.Database(Path(folder)).close()
                made.append((Path(folder) / sqlite.DATABASE_NAME).read_bytes())
            vars(sqlite)["open_or_create"] = make_file
        handle = folders.open_or_create(path, flags)
        os.write(handle, made[0])
        return handle

    vars(sqlite)["open_or_create"] = make_file
