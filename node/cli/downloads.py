"""Files of a branch on their way to the disk: received beside their place, and put there whole.

Each run receives the whole file. A run that was cut costs nothing of the network, since the node keeps what it fetched from
peers; what an earlier run left on the disk is not believed, since a power cut may have made zeros of it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from node.cli.progress import show_progress
from node.runtime.errors import ServiceError
from storage.engine.folders import sync_folder

_OPEN_TRIES: Final = 5
"""Times that a draft is opened which another command finishes at that moment."""
_ADVICE: Final = {
    errno.ENOENT: "make the folder first, or name another place",
    errno.ENAMETOOLONG: "give it a shorter name there: --out NAME",
}
"""Advice on errors of the system, by their numbers."""
_DRAFT_MODE: Final = 0o666
"""Mode of a new file, less the umask: as of any that a program of this user makes."""


def check_target(target: Path, name: str, *, replaces: bool) -> Path:
    """Return the path that is to be written, with links followed. `name`: that of the file, for a target that is a folder.

    Raises ServiceError `already_exists`, `storage_failed`.
    """
    with _writable(target):
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            return Path(os.path.realpath(target))
        if stat.S_ISDIR(mode):  # also with --force: a file does not replace a folder
            raise ServiceError(
                "already_exists", f"{target} is a folder", f"name the file in it: {target / name}"
            )
        if not stat.S_ISREG(mode):
            return target
        if not replaces:
            raise ServiceError("already_exists", f"{target} is there", "give another name, or --force")
        return Path(os.path.realpath(target))


def receive(pieces: Iterator[bytes], target: Path, size: int | None, *, replaces: bool) -> None:
    """Write a content of `size` bytes, or of all that come, to a checked target; durable when it returns.

    A device or a pipe is written into.

    Raises ServiceError: `already_running` where another command receives a file for the same place, `already_exists` where
    it did so meanwhile, `interrupted`, `storage_failed`.
    """
    with _writable(target):
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                _copy(pieces, file.write, size)
            return
        # The name of the target may be as long as names may be.
        draft = target.with_name(
            f".ravel-{blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}.part"
        )
        with os.fdopen(_open_draft(draft, target), "wb") as file:
            try:
                check_target(target, target.name, replaces=replaces)  # it is this command's turn only now
                _copy(pieces, file.write, size)
                file.flush()
                os.fsync(file.fileno())
                draft.replace(target)
            except BaseException:  # an interrupt too
                draft.unlink(missing_ok=True)  # while it is locked: afterwards it may be another command's
                raise
        sync_folder(target.parent)


def _copy(pieces: Iterator[bytes], write: Callable[[bytes], object], size: int | None) -> None:
    done = 0
    with show_progress("received", "byte", size) as progress:
        for piece in pieces:
            write(piece)
            done += len(piece)
            progress(done)
    if size is not None and done != size:
        raise ServiceError(
            "interrupted",
            f"{done} of {size} bytes came",
            "run the command again: what the node fetched stays",
        )


def _open_draft(draft: Path, target: Path) -> int:
    """Create and lock the draft of a target. Raises ServiceError `already_running`; OSError."""
    for _ in range(_OPEN_TRIES):
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _DRAFT_MODE)
        except FileExistsError:
            if not _remove_left(draft):
                break
            continue
        if _lock(handle) and _is_named(handle, draft):
            return handle
        os.close(handle)
    raise ServiceError(
        "already_running",
        f"another command receives a file for {target}",
        "wait until it has ended, or give another name",
    )


def _remove_left(draft: Path) -> bool:
    """Remove what a killed command left, or somebody put there; return False if a command is at work on it."""
    with suppress(FileNotFoundError):
        handle = os.open(draft, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not _lock(handle):
                return False
            if _is_named(handle, draft):  # held, so nobody else puts another in its place
                draft.unlink()
        finally:
            os.close(handle)
    return True


def _is_named(handle: int, path: Path) -> bool:
    """Return True if an open file still has this name."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _lock(handle: int) -> bool:
    """Lock a file, and return False if another process holds it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system that has no locks
        return True
    return True


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Raise what goes wrong with a path of the disk as an error for people."""
    try:
        yield
    except OSError as error:
        raise ServiceError(
            "storage_failed",
            f"{path} cannot be written: {error.strerror or error}",
            _ADVICE.get(error.errno or 0, "make room there, or name another place"),
        ) from None
