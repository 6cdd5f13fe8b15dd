"""The process that holds a node's folder, and whether this process can reach it.

A folder may be shared with a container or another machine. There a number names another process than here, and a loopback
address leads to another program: one must not be signalled, and the other not be shown the token.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD: Final = 19
"""Place in /proc/PID/stat, behind the name in brackets, of the start time in clock ticks (proc(5): field 22)."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A process, as it states itself. What a system does not tell is empty, and then alike everywhere."""

    pid: int
    started: str
    """Clock ticks from the start of the system: with `pid`, no other process has the same."""
    boot: str
    """Id of the system's start."""
    pid_space: str
    """Namespace in which `pid` counts."""
    net_space: str
    """Namespace in which loopback addresses count."""

    @classmethod
    def this(cls) -> "Holder":
        """Return this process as a holder."""
        pid = os.getpid()
        return cls(pid, _start_of(pid), _read(_BOOT), _space("pid"), _space("net"))

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> "Holder":
        """Read it back. Raises KeyError, TypeError, ValueError."""
        texts = (str(content[name]) for name in ("started", "boot", "pid_space", "net_space"))
        return cls(int(content["pid"]), *texts)

    def as_json(self) -> dict[str, int | str]:
        """Fields as they stand in the files of the folder."""
        return asdict(self)

    @property
    def shares_processes(self) -> bool:
        """Return True if `pid` names the same process here."""
        this = Holder.this()
        return (self.boot, self.pid_space) == (this.boot, this.pid_space)

    @property
    def shares_network(self) -> bool:
        """Return True if a loopback address leads to the same program here."""
        this = Holder.this()
        return (self.boot, self.net_space) == (this.boot, this.net_space)

    @property
    def is_alive(self) -> bool:
        """Return True if `pid` is still this process. Ask where processes are shared."""
        return _start_of(self.pid) == self.started

    @property
    def name(self) -> str:
        """The process for people."""
        return f"process {self.pid}" if self.shares_processes else "a process of another container or machine"


def _start_of(pid: int) -> str:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[_START_FIELD] if len(fields) > _START_FIELD else ""


def _space(kind: str) -> str:
    try:
        return os.readlink(f"/proc/thread-self/ns/{kind}")  # a thread may have entered another
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
