"""Backups that a page begins: `ravel backup` in a process of its own, and how it goes."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypedDict

import msgspec
import structlog

from node.care.background import Background, run_command
from node.care.backup_folder import check_folder, may_hold_backups
from node.observe.watching import store_sizes
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from protocol.limits.users import BACKUP_SECONDS_MAX
from ravel.characters import find_forbidden
from ravel.home import command_for
from ravel.types.care import BackupStatus

log = structlog.get_logger()

_SUGGESTIONS_MAX: Final = 100
"""Names that are tried for a folder: more nodes than anybody has."""


class _Made(TypedDict):
    """Answer of `ravel backup`."""

    files: int
    written: int


class Backups:
    """Makes backups of one node, one at a time. `clock` gives unix seconds."""

    def __init__(
        self,
        home: Path,
        node: str,
        background: Background,
        run_blocking: RunBlocking,
        clock: Callable[[], float],
    ) -> None:
        self._home = home
        self._node = node
        self._background = background
        self._run_blocking = run_blocking
        self._clock = clock
        self._running = False
        self._folder = ""
        self._began_at: int | None = None
        self._finished_at: int | None = None
        self._files = self._size = self._size_before = 0
        self._error = ""

    async def start(self, folder: str) -> BackupStatus:
        """Begin one in the folder of this node's backups.

        Raises ServiceError `bad_request`, `already_exists`, `already_running`.
        """
        path = await self._run_blocking(self._check, folder)
        size_before = await self._run_blocking(lambda: _size_below(path))
        if self._running:
            raise ServiceError("already_running", "a backup is being made", "wait until it is done")
        self._size_before = size_before
        self._background.start(lambda: self._make(path))
        self._running, self._folder, self._error = True, str(path), ""
        self._began_at, self._finished_at, self._files, self._size = int(self._clock()), None, 0, 0
        return await self.show()

    async def show(self) -> BackupStatus:
        """Return the state of the backup that runs or ran last."""
        return await self._run_blocking(self._show)

    async def _make(self, folder: Path) -> None:
        try:
            ran = await run_command(self._home, "backup", str(folder), seconds_max=BACKUP_SECONDS_MAX)
            made = msgspec.convert(ran.answer, _Made)
        except msgspec.ValidationError as error:
            self._error = f"`ravel backup` has answered in another form: {error}"
            log.error("backup failed", error=str(error))
        except ServiceError as error:
            self._error = f"{error.message} ({error.advice})" if error.advice else error.message
            log.error("backup failed", code=error.code)
        else:
            self._files, self._size = made["files"], made["written"]
            self._finished_at = int(self._clock())
            log.info("backup made", files=self._files, written=self._size)
        finally:
            self._running = False

    def _check(self, text: str) -> Path:
        try:
            return self._checked(text)
        except (OSError, RuntimeError) as error:  # a folder that may not be looked into, an unknown ~user
            raise ServiceError(
                "bad_request",
                f"{text[:100]!r} cannot be used: {error}",
                "choose a folder that the node may write to",
            ) from None

    def _checked(self, text: str) -> Path:
        path = Path() if find_forbidden(text) else Path(os.path.normpath(Path(text).expanduser()))
        if not path.is_absolute():
            raise ServiceError(
                "bad_request", f"{text[:100]!r} is no absolute path", "begin it with / or with ~/"
            )
        if path.is_relative_to(self._home.absolute()):
            raise ServiceError(
                "bad_request",
                "that is in the node's own folder, which a backup is to outlive",
                "choose another",
            )
        check_folder(path, self._node)
        if not path.parent.is_dir():
            raise ServiceError(
                "bad_request", f"there is no folder {path.parent}", "make it, or choose another"
            )
        return path

    def _show(self) -> BackupStatus:
        size = self._size
        if self._running:
            size = max(0, _size_below(Path(self._folder)) - self._size_before)
        return {
            "running": self._running,
            "folder": self._folder,
            "began_at": self._began_at,
            "finished_at": self._finished_at,
            "files": self._files,
            "size": size,
            "size_expected": 0 if self._size_before else sum(store_sizes(self._home).values()),
            "error": self._error,
            "suggested": str(self._suggest()),
            "restore_command": f"ravel --home NEW restore {shlex.quote(self._folder)}"
            if self._folder
            else "",
            "stop_command": f"{command_for(self._home)} down",
        }

    def _suggest(self) -> Path:
        """Return a folder beside what the user has: the node's is hidden from people by default."""
        try:
            place = Path.home()
        except RuntimeError:  # a service without a home
            place = self._home.absolute().parent
        tried = (place / f"ravel-backup{f'-{one}' * (one > 1)}" for one in range(1, _SUGGESTIONS_MAX))
        return next((path for path in tried if self._may_use(path)), place / "ravel-backup-new")

    def _may_use(self, path: Path) -> bool:
        try:
            return may_hold_backups(path, self._node)
        except OSError:
            return False


def _size_below(folder: Path) -> int:
    """Sum the bytes of the files in a folder that another process fills, and may remove meanwhile."""
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.stat(f"{root}/{name}").st_size
            except FileNotFoundError:
                continue
    return size
