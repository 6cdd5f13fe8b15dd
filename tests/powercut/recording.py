"""Recording what real processes do to the files of one folder: writes, syncs and names, in their true order.

A shim in C (`shim.c`) is built into a temporary folder and loaded into each process with LD_PRELOAD. The process that drives
them puts promises between: what was acknowledged by then, which a power cut behind that place must not take back.
"""

import fcntl
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SHIM: Final = Path(__file__).with_name("shim.c")
_HEAD: Final = struct.Struct("<cxHHHIIQQ")
_PROMISE: Final = b"P"
_OUTAGE: Final = b"O"


@dataclass(frozen=True, slots=True)
class Event:
    """One operation. Paths are relative to the recorded folder; what an operation has not is empty or 0.

    C create, W write, T truncate, S sync a file, D sync a folder, R rename, L link, U unlink, M mkdir, X rmdir, P promise,
    O outage: the power went, and what was left by chance is all that there is from then on.
    """

    op: str
    path: str = ""
    other: str = ""
    inode: int = 0
    offset: int = 0
    mode: int = 0
    data: bytes = b""

    @property
    def said(self) -> dict[str, Any]:
        """What was acknowledged; of an outage the seed of its chance and the new inodes by path."""
        found: dict[str, Any] = json.loads(self.data)
        return found


def has_compiler() -> bool:
    """Whether the shim can be built here."""
    return shutil.which("gcc") is not None


class Recording:
    """A record of what processes do under `root`, of which nothing is there before."""

    def __init__(self, root: Path, scratch: Path) -> None:
        """Build the shim and begin; `scratch` is a folder outside of `root` for both."""
        self.root: Final = root.resolve()
        self._log = scratch / "record"
        self._log.touch()
        shim = scratch / "shim.so"
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(shim), str(SHIM), "-ldl", "-lpthread"]
        built = subprocess.run(command, check=False, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        self.environment: Final = {
            "LD_PRELOAD": str(shim),
            "RAVEL_CUT_ROOT": str(self.root),
            "RAVEL_CUT_LOG": str(self._log),
        }
        """What the recorded processes are to be started with."""

    def promise(self, **what: object) -> None:
        """Put a promise into the record: what was acknowledged until now."""
        self._note(_PROMISE, what)

    def outage(self, seed: int, inodes: dict[str, int]) -> None:
        """Put into the record that the power went, and that what was left now lies in these files."""
        self._note(_OUTAGE, {"seed": seed, "inodes": inodes})

    def _note(self, op: bytes, said: object) -> None:
        data = json.dumps(said).encode()
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, _HEAD.pack(op, 0, 0, 0, len(data), os.getpid(), 0, 0) + data)
        finally:
            os.close(handle)

    def events(self) -> Iterator[Event]:
        """The record so far."""
        with self._log.open("rb") as log:
            while head := log.read(_HEAD.size):
                op, path_size, other_size, mode, data_size, _pid, inode, offset = _HEAD.unpack(head)
                path, other = (self._inside(log.read(size)) for size in (path_size, other_size))
                yield Event(op.decode(), path, other, inode, offset, mode, log.read(data_size))

    def _inside(self, path: bytes) -> str:
        text = os.fsdecode(path)
        return text.removeprefix(str(self.root)).removeprefix("/")
