"""Says which process listens on a TCP port of this machine, as far as Linux lets this user see."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING: Final = "0A"
"""As the kernel writes the state (`TCP_LISTEN`)."""


def find_holder(port: int) -> tuple[int, str] | None:
    """Return the process that listens on a port, and its name. None if there is none, or another user's."""
    sockets = {f"socket:[{inode}]" for table in _TABLES for inode in _listening_on(port, table)}
    if not sockets:
        return None
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):  # another user's, or ended meanwhile
            for handle in (process / "fd").iterdir():
                if os.readlink(handle) in sockets:
                    name = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                    return int(process.name), name
    return None


def _listening_on(port: int, table: str) -> list[str]:
    """Inodes of sockets that listen on a port, from a table whose columns proc(5) states."""
    try:
        lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]
