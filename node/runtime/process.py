"""The daemon's process beside the system: its service manager, its limit of open files, and who holds a port."""

import os
import resource
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from protocol.limits.users import OPEN_FILES_WANTED

log = structlog.get_logger()

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
"""Assignments that `notify` sends."""
_NOTIFY_VARIABLE: Final = "NOTIFY_SOCKET"
_TCP_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_CONTAINER_MEMORY: Final = Path("/sys/fs/cgroup/memory.max")
_LISTENING: Final = "0A"
"""State `TCP_LISTEN` as the kernel writes it."""


def notify(*assignments: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send assignments to systemd in one datagram (sd_notify), if it asked for them. A failure is logged."""
    name = environment.get(_NOTIFY_VARIABLE, "")
    if not name:
        return
    # A name that begins with @ is of the abstract namespace, where it begins with a zero byte.
    address = "\0" + name[1:] if name.startswith("@") else name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            sender.sendto("\n".join(assignments).encode(), address)
    except OSError as error:
        log.warning("service manager not told", error=str(error))


def allow_open_files() -> int:
    """Raise the limit of open files and sockets to OPEN_FILES_WANTED, and return the limit. Shells set 1,024."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if most == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, most)
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        allowed = wanted
    if allowed != resource.RLIM_INFINITY and allowed < OPEN_FILES_WANTED:
        log.warning(
            "few files may be open: many connections at once will fail",
            allowed=allowed,
            wanted=OPEN_FILES_WANTED,
        )
    return allowed


def process_age_seconds() -> float:
    """Return the seconds since this process began, its interpreter's start included."""
    # Behind the name, which may hold any character: proc(5) calls the 22nd field `starttime`.
    began = int(
        Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    )
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


def machine_memory() -> int:
    """Return the bytes of memory that this machine, or the container, may use."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no container, or one without a bound: `max`
        size = min(size, int(_CONTAINER_MEMORY.read_text(encoding="ascii")))
    return size


def find_holder(port: int) -> tuple[int, str] | None:
    """Return the process that listens on a TCP port, and its name. None if there is none, or another user's."""
    sockets = {f"socket:[{inode}]" for table in _TCP_TABLES for inode in _listening_on(port, table)}
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
    """Return inodes of sockets that listen on a port, from a table whose columns proc(5) states."""
    try:
        lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]
