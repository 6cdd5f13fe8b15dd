"""Work that goes on when the request that asked for it has ended: commands of this node in processes of their own.

A command is run as a person would run it, so that a page gets the same answer, and what it imports and does stays out of
the daemon. When the daemon stops, a command is interrupted, and cleans up as after Ctrl-C.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog
import trio

from node.runtime.errors import ServiceError
from protocol.limits.users import CHECKS_SECONDS_MAX
from ravel.errors import read_error
from ravel.types.care import HealthReport

log = structlog.get_logger()

_END_SECONDS: Final = 5.0
"""Seconds in which an interrupted command has to end."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has ended: its exit code, and what it has answered as JSON."""

    exit_code: int
    answer: Any


async def run_command(home: Path, *arguments: str, seconds_max: float) -> CommandResult:
    """Run `ravel` on a node with `--json`, for at most so long. Raises ServiceError, with what the command says."""
    command = [sys.executable, "-P", "-m", "node.cli.main", "--home", str(home), *arguments, "--json"]
    try:
        with trio.fail_after(seconds_max):
            ended = await trio.run_process(
                command,
                capture_stdout=True,
                stderr=subprocess.DEVNULL,  # progress is for terminals, and errors are in the answer
                check=False,
                deliver_cancel=_interrupt,
                start_new_session=True,  # a Ctrl-C meant for the daemon is not for it
            )
    except trio.TooSlowError:
        raise ServiceError(
            "incomplete",
            f"`ravel {arguments[0]}` was ended after {seconds_max:.0f} seconds",
            "look at the disk",
        ) from None
    except OSError as error:
        raise ServiceError("storage_failed", f"no process can be started: {error}") from None
    if (failure := read_error(ended.stdout)) is not None:
        raise failure
    try:
        return CommandResult(ended.returncode, msgspec.json.decode(ended.stdout))
    except msgspec.DecodeError:
        raise ServiceError(
            "internal",
            f"`ravel {arguments[0]}` has ended with exit code {ended.returncode} and no answer",
            f"run it in a terminal, where it says more: ravel {arguments[0]}",
        ) from None


async def _interrupt(process: trio.Process) -> None:
    """End a command and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with trio.move_on_after(_END_SECONDS):
            await process.wait()
        # What it has started may not heed an interrupt, and would hold the pipe of the answer open.
        os.killpg(process.pid, signal.SIGKILL)


class Health:
    """The checks of `ravel doctor`, for a page: one process at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = trio.Lock()

    async def check(self) -> HealthReport:
        """Run all checks. Raises ServiceError; `busy` while another look goes on."""
        if self._lock.locked():
            raise ServiceError("busy", "the node is being looked at already", "wait a few seconds")
        async with self._lock:
            ran = await run_command(self._home, "doctor", seconds_max=CHECKS_SECONDS_MAX)
        return msgspec.convert(ran.answer, HealthReport)


class Background:
    """Runs work until it ends or the daemon does."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Run started commands until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def start(self, work: Callable[[], Awaitable[object]]) -> None:
        """Begin work, which tells of its failures itself. Raises ServiceError `busy` while the daemon starts or stops."""
        if self._nursery is None:
            raise ServiceError("busy", "the daemon starts or stops at this moment", "try again in a second")
        self._nursery.start_soon(_finish, work)


async def _finish(work: Callable[[], Awaitable[object]]) -> None:
    try:
        await work()
    except Exception:  # the border of what a page has begun: a defect in it must not end the daemon
        log.exception("work in the background failed")
