"""A real PostgreSQL server for tests: one for the whole run, on a Unix socket in a temporary folder, a database per store.

The server keeps nothing (no fsync), refuses to run as root (so it runs as another user there), and goes with the run.
A store's database is a copy of a template that has the schema already.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
from sqlalchemy import Connection, text

from storage.engine.backends import Backend
from storage.engine.database import Database, choose_backend
from storage.engine.revisions import upgrade
from storage.engine.store_identity import read_store_id, write_store_id

_USERS: Final = ("postgres", "nobody")
_TEMPLATE: Final = "template_of_ravel"


def find_programs() -> Path | None:
    """The folder of a PostgreSQL server's programs, the newest: Debian keeps them out of the PATH."""
    debian = Path("/usr/lib/postgresql")
    for folder in sorted(debian.glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


class PostgresqlServer:
    """A server at work."""

    def __init__(self, programs: Path) -> None:
        """Make it and start it."""
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="ravel-pg-"))
        self._user: str | None = None
        if os.geteuid() == 0:
            known = {entry.pw_name for entry in pwd.getpwall()}
            self._user = next(name for name in _USERS if name in known)
            shutil.chown(self._folder, self._user)
        self._counter = count(1)
        self._databases: dict[Path, str] = {}
        self._store_id = ""
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-U", "ravel", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        # Waits for the end of its input, which comes with the end of this process however that ends.
        after = 'cat >/dev/null; "$0" -D "$1/data" -w -m immediate stop; rm -rf "$1"'
        command = ["sh", "-c", after, str(programs / "pg_ctl"), str(self._folder)]
        self._remover = subprocess.Popen(
            command, stdin=subprocess.PIPE, start_new_session=True, **self._settings()
        )
        self.start()

    @property
    def socket_folder(self) -> Path:
        """Where its socket is."""
        return self._folder

    def start(self) -> None:
        """Start it, at first or again."""
        options = (
            f"-c listen_addresses='' -c unix_socket_directories={self._folder} -c fsync=off -c full_page_writes=off"
            " -c max_wal_size=256MB -c autovacuum=off"
        )
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once: connections break."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", "fast", "stop")

    def remove(self) -> None:
        """Stop it, and leave nothing."""
        assert self._remover.stdin is not None
        self._remover.stdin.close()
        self._remover.wait()

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement beside whatever the stores do."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://ravel@/{database}?host={self._folder}"

    def make_database(self) -> str:
        """The URL of a new database without a store."""
        name = f"empty_{next(self._counter)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url_of(self, folder: Path) -> str:
        """The URL of the database that belongs to a folder: a copy of the template, made when it is first asked for."""
        place = folder.absolute()
        name = self._databases.get(place)
        if name is None:
            self._make_template()
            name = self._databases[place] = f"store_{next(self._counter)}"
            self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
            place.mkdir(parents=True, exist_ok=True)
            write_store_id(place, self._store_id)
        return self.url(name)

    def choose(self, folder: Path, url: str) -> Backend:
        """As `choose_backend`, where stores without a URL are in databases of this server."""
        return choose_backend(folder, url or self.url_of(folder))

    def forget_databases(self) -> None:
        """Drop the databases of all folders: nothing of one test is there in the next."""
        for name in self._databases.values():
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")
        self._databases.clear()

    def make_older(self, folder: Path, url: str, revision: str, fill: Callable[[Connection], object]) -> None:
        """Make the store of a folder one that an older Ravel left, and put something into it."""
        database = Database(folder, url=url)
        with database.write() as connection:
            said = connection.execute(
                text("SELECT obj_description('alembic_version'::regclass)")
            ).scalar_one()
            tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            for name in connection.execute(text(tables)).scalars().all():
                connection.execute(text(f"DROP TABLE {name} CASCADE"))
            upgrade(connection, revision)
            connection.execute(text(f"COMMENT ON TABLE alembic_version IS '{said}'"))
            fill(connection)
        database.close()

    def _make_template(self) -> None:
        if not self._store_id:
            self.execute(f"CREATE DATABASE {_TEMPLATE}")
            with tempfile.TemporaryDirectory() as folder:
                Database(Path(folder), url=self.url(_TEMPLATE)).close()
                self._store_id = read_store_id(Path(folder))

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **self._settings())

    def _settings(self) -> dict[str, Any]:
        """Of its programs' processes."""
        group = None if self._user is None else pwd.getpwnam(self._user).pw_gid
        groups: list[int] | None = None if self._user is None else []
        return {
            "user": self._user,
            "group": group,
            "extra_groups": groups,
            "cwd": self._folder,
            "stdout": subprocess.DEVNULL,
        }
