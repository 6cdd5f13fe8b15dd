"""`ravel debug bundle`: packs diagnostic data into one archive, without secrets or user texts.

It holds ids, addresses, names of branches, the configuration and the latest lines of the log; no key, no token, no link,
no text that anybody wrote. What goes in is listed here one by one: nothing is copied from the node's folder.
"""

import io
import json
import os
import platform
import re
import sqlite3
import sys
import tarfile
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Final

from node.care.doctor import examine
from node.home.home import open_home
from node.home.people_file import PeopleFile, read_people
from node.observe.watching import store_sizes
from node.runtime.errors import ServiceError
from node.runtime.version import VERSION
from ravel import connect
from storage.check.check_integrity import count_rows, name_server
from storage.engine.database import StorageError, newest_revision, read_store
from storage.engine.folders import open_new

_ID_SHOWN: Final = 12
_LIBRARIES: Final = (
    "trio",
    "pynacl",
    "cryptography",
    "blake3",
    "msgspec",
    "sqlalchemy",
    "alembic",
    "pyarrow",
    "fsspec",
    "httptools",
    "starlette",
    "structlog",
)


def write_bundle(home: Path, out: Path, now: int) -> list[str]:
    """Write the archive (tar, gzip), for its owner alone, and give the names in it; `now` is unix seconds.

    Raises ServiceError `already_exists`, `storage_failed`, `not_initialised`.
    """
    parts = _gather(home)
    try:
        with os.fdopen(open_new(out), "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, content in parts.items():
                entry = tarfile.TarInfo(f"ravel-debug/{name}")
                entry.size, entry.mtime, entry.mode = len(content), now, 0o600
                archive.addfile(entry, io.BytesIO(content))
    except FileExistsError:
        raise ServiceError("already_exists", f"{out} is there already", "choose another name") from None
    except OSError as error:
        with suppress(OSError):
            out.unlink()
        raise ServiceError(
            "storage_failed", f"{out} could not be written: {error}", "choose another place"
        ) from None
    return list(parts)


def _gather(home: Path) -> dict[str, bytes]:
    parts = {
        "doctor.json": _json(_checks(home)),
        "versions.json": _json(_versions()),
    }
    try:
        opened = open_home(home)
        settings = [{"key": one.key, "value": one.value, "source": one.source} for one in opened.settings]
        parts["configuration.json"] = _json(settings)
    except ServiceError as error:
        parts["configuration.json"] = _json(error.as_json())
    parts["store.json"] = _json(_store(home))
    try:
        client = connect(home)
        try:
            status = client.show_status()
            for peer in status["peers"]:
                peer["name"] = ""  # what this user calls others goes nowhere
                if peer["owner"] is not None:
                    peer["owner"]["name"] = ""
            parts["status.json"] = _json(status)
            parts["metrics.txt"] = client.page("/metrics").encode()
            parts["log.txt"] = "\n".join(client.show_log()["lines"]).encode()
        finally:
            client.close()
    except ServiceError as error:
        parts["daemon.json"] = _json(error.as_json())
    return parts


def _checks(home: Path) -> list[dict[str, str]]:
    """Return the doctor's findings, with ids in place of the names that this user gave to others."""
    try:
        people = read_people(home)
    except ServiceError:  # the doctor says so, and could read no name either
        people = PeopleFile()
    ids = {name: shown[:_ID_SHOWN] for shown, name in (*people.petnames.items(), *people.peers.items())}
    names = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)" if names else r"(?!)")

    def hidden(said: str) -> str:
        return pattern.sub(lambda one: ids[one[0]], said)

    return [
        {**asdict(one), "detail": hidden(one.detail), "advice": hidden(one.advice)} for one in examine(home)
    ]


def _store(home: Path) -> dict[str, object]:
    answer: dict[str, object] = {"sizes": store_sizes(home), "schema": newest_revision()}
    try:
        with read_store(home, url=open_home(home).storage_url) as connection:
            answer["database"] = name_server(connection)
            answer["rows"] = count_rows(connection)
    except (ServiceError, StorageError) as error:
        answer["error"] = str(error)
    return answer


def _versions() -> dict[str, object]:
    return {
        "ravel": VERSION,
        "python": sys.version,
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "libraries": {name: metadata.version(name) for name in _LIBRARIES},
    }


def _json(answer: object) -> bytes:
    return json.dumps(answer, indent=1, ensure_ascii=False).encode()
