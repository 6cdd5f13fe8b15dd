"""Waits for a daemon that holds its folder and does not answer yet, starts one in the background, and stops one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from node.home.home import holder_name, lock_holder, room_advice
from node.runtime.errors import ERROR_KINDS, ServiceError
from node.runtime.log_file import put_aside_if_large
from ravel.home import RunFile, command_for, is_locked, not_running, out_of_reach, read_run_file
from storage.engine.folders import open_or_create

DAEMON_LOG_NAME: Final = "daemon.log"
START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 60.0
_LOG_END_SIZE: Final = 4096
_POLL_SECONDS: Final = 0.05
_SILENT_SECONDS: Final = 1.0
"""Seconds of waiting before it is said what for."""


def wait_for_daemon(
    home: Path, tell: Callable[[str], None], seconds_max: float = START_SECONDS_MAX, past_run: str = ""
) -> RunFile:
    """Return the daemon of a folder once it answers. Returns or fails at once where no process holds the folder.

    `tell` hears what is waited for, once. A daemon that starts anew ends its `past_run` first. Raises ServiceError
    `not_running`.
    """
    begun, is_told = time.monotonic(), False
    while True:
        try:
            found = read_run_file(home)
            if found.run != past_run:
                return found
        except ServiceError as error:
            if error.code != "not_running" or not is_locked(home):
                raise
        waited = time.monotonic() - begun
        if waited > seconds_max:
            raise ServiceError(
                "not_running",
                f"{holder_name(home)} holds {home}, and has not answered in {seconds_max:.0f} s",
                f"look at its log; {home / DAEMON_LOG_NAME} is the one of `ravel up`",
            )
        if waited > _SILENT_SECONDS and not is_told:
            tell(f"waiting for {holder_name(home)}, which holds {home}, to be ready")
            is_told = True
        # The state of another process can only be polled for.
        time.sleep(_POLL_SECONDS)


def start_daemon(
    home: Path, passphrase: bytes | None, tell: Callable[[str], None], seconds_max: float = START_SECONDS_MAX
) -> RunFile:
    """Start a daemon that outlives this process, and wait until it answers. Its log goes to `daemon.log` in the folder.

    `passphrase` opens sealed keys, and is given by a pipe. Raises ServiceError: what the daemon itself says where it
    cannot start, and `not_running` where it needs longer.
    """
    log = home / DAEMON_LOG_NAME
    try:
        put_aside_if_large(log)
        # Only its owner may read it: it has ids of repos and peers.
        handle = open_or_create(log, os.O_WRONLY | os.O_APPEND)
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{log} cannot be written: {error}", "check space and permissions there"
        ) from None
    given = [] if passphrase is None else ["--passphrase-file", "-"]
    # -P: never a module of the current folder.
    command = [sys.executable, "-P", "-m", "node.cli.main", "--home", str(home), *given, "run"]
    with os.fdopen(handle, "ab") as stream:
        begun_at = stream.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if passphrase is None else subprocess.PIPE,
            stdout=stream,
            stderr=stream,
            cwd=home,  # or the folder in which `ravel up` was typed could not be unmounted
            start_new_session=True,  # or Ctrl-C, and the end of the terminal, would stop it too
        )
    if process.stdin is not None:
        with process.stdin:
            process.stdin.write(passphrase or b"")
    begun, is_told = time.monotonic(), False
    while process.poll() is None:
        holder = lock_holder(home)
        if holder is not None and holder.pid == process.pid:
            try:
                return read_run_file(home)
            except ServiceError:
                pass
        waited = time.monotonic() - begun
        if waited > seconds_max:
            raise ServiceError(
                "not_running",
                f"the daemon (process {process.pid}) has not answered in {seconds_max:.0f} s, and goes on starting",
                f"look at {log}; `{command_for(home)} up` waits again",
            )
        if waited > _SILENT_SECONDS and not is_told:
            tell("waiting for the daemon to be ready")
            is_told = True
        time.sleep(_POLL_SECONDS)  # as above
    failure = _failure(process.returncode, log, begun_at)
    if failure.code == "already_running":  # another `ravel up` was a moment quicker
        return wait_for_daemon(home, tell, seconds_max)
    raise failure


def stop_daemon(home: Path, seconds_max: float = STOP_SECONDS_MAX) -> int | None:
    """Tell the daemon of a folder to stop, and wait until it has; its process, or None where none runs.

    Raises ServiceError `not_running` where what holds the folder is no daemon that answers, `already_running`
    where it is out of reach, `not_permitted`, `incomplete`.
    """
    if not is_locked(home):
        return None
    holder = read_run_file(home).holder
    if not holder.shares_processes:
        raise out_of_reach(home)
    if not holder.is_alive:  # its number is another process's by now
        raise not_running(home)
    pid = holder.pid
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        raise not_running(home) from None
    except PermissionError:
        raise ServiceError(
            "not_permitted", f"process {pid} is another user's", "stop it as that user"
        ) from None
    until = time.monotonic() + seconds_max
    while lock_holder(home) == holder:
        if time.monotonic() > until:
            raise ServiceError(
                "incomplete",
                f"process {pid} has not stopped in {seconds_max:.0f} s",
                f"its log says what it does; `kill -9 {pid}` ends it, and loses nothing that was acknowledged",
            )
        time.sleep(_POLL_SECONDS)  # as above
    return pid


def _failure(exit_code: int, log: Path, begun_at: int) -> ServiceError:
    """Return the last words of a daemon that has ended."""
    with log.open("rb") as file:
        file.seek(max(begun_at, log.stat().st_size - _LOG_END_SIZE))
        lines = file.read(_LOG_END_SIZE).decode(errors="replace").splitlines()
    code = next((code for code, kind in ERROR_KINDS.items() if kind.exit_code == exit_code), "internal")
    said = {
        name: next((line.removeprefix(name).strip() for line in reversed(lines) if line.startswith(name)), "")
        for name in ("error:", "next:")
    }
    message = said["error:"] or f"the daemon has ended: {ERROR_KINDS[code].meaning}"
    # A daemon that has no room to work may have none to say so.
    return ServiceError(code, message, said["next:"] or room_advice(log.parent) or f"look at {log}")
