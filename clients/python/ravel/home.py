"""The folder of a node on this machine: where it is, and where its daemon answers.

The node writes what is read here. A daemon holds a lock on its folder as long as it runs.
"""

import fcntl
import json
import os
import pwd
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ravel.errors import RavelError
from ravel.holder import Holder

TOKEN_NAME: Final = "api-token"  # noqa: S105  # a file's name
LOCK_NAME: Final = "lock"
RUN_NAME: Final = "run.json"
_TOKEN_SIZE: Final = 32
_TOKEN_FILE_SIZE_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class RunFile:
    """State of a running daemon, as it writes it down. `run` is another at each start."""

    holder: Holder
    api: str
    listen: str
    peer: str
    run: str


def find_home(home: str | Path | None = None) -> Path:
    """Return the folder that is meant: the one given, else the one that RAVEL_HOME names, else the default one.

    Raises RavelError `bad_request` where that is no path, or none that can be said in JSON and in advice.
    """
    state = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    given = Path(home or os.environ.get("RAVEL_HOME") or Path(state, "ravel"))
    try:
        found = given.expanduser().absolute()
        str(found).encode()
    except RuntimeError:
        raise RavelError(
            "bad_request",
            f"{given} cannot be found: that user has no home folder",
            "name the node's folder: --home FOLDER, or RAVEL_HOME",
        ) from None
    except FileNotFoundError:
        raise RavelError(
            "bad_request", "the current folder has been deleted", "cd to another one, or give a whole path"
        ) from None
    except UnicodeEncodeError:
        raise RavelError(
            "bad_request",
            f"the path of the node's folder is not UTF-8 text: {given}",
            "choose another --home",
        ) from None
    return found


def read_run_file(path: Path) -> RunFile:
    """Return where the daemon of a folder answers. Raises RavelError `not_running`; `already_running` if it is out of reach.

    A daemon that was killed leaves its file behind, and its port may be another program's by now; so may the port of one in
    another container be here. Such a program must not be asked, for it would be shown the token.
    """
    if not is_locked(path):
        raise not_running(path)
    try:
        content: dict[str, Any] = json.loads((path / RUN_NAME).read_text(encoding="utf-8"))
        texts = (str(content[name]) for name in ("api", "listen", "peer", "run"))
        found = RunFile(Holder.of_json(content["holder"]), *texts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise not_running(path) from None
    if not found.holder.shares_network:
        raise out_of_reach(path)
    return found


def out_of_reach(path: Path) -> RavelError:
    """Return the error for a daemon that runs where this process cannot reach it."""
    return RavelError(
        "already_running",
        f"the daemon of {path} runs in another container or on another machine",
        "run the command there, or stop the daemon there first",
    )


def not_running(path: Path) -> RavelError:
    """Return the error for a daemon that does not answer."""
    return RavelError("not_running", f"no daemon runs in {path}", f"start it with: {command_for(path)} up")


def command_for(path: Path) -> str:
    """Return how to call `ravel` for a folder, for advice that can be pasted."""
    return f"ravel --home {shlex.quote(str(path))}"


def read_token(path: Path) -> str:
    """Return the node's own token of its API. Raises RavelError `bad_config`, `not_initialised`."""
    try:
        token = bytes.fromhex(read_private(path / TOKEN_NAME, _TOKEN_FILE_SIZE_MAX).decode("ascii").strip())
    except ValueError:
        token = b""
    if len(token) != _TOKEN_SIZE:
        raise RavelError(
            "bad_config", f"{path / TOKEN_NAME} is no token", f"remove it, and: {command_for(path)} init"
        )
    return token.hex()


def is_locked(path: Path) -> bool:
    """Return True if a daemon holds the folder. Asking takes its locks for a moment: a daemon that starts tries more than
    once.
    """
    return _is_held(path / LOCK_NAME) or _is_held(path)


def _is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a network file system that locks no folders: the file's lock is all there is
        return False
    else:
        return False
    finally:
        os.close(handle)


def read_private(path: Path, size_max: int) -> bytes:
    """Return a file that only its owner may read. Raises RavelError `bad_config`, `not_initialised`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise RavelError("bad_config", f"{path} is not a file", "restore it from a backup")
            if stat.S_IMODE(found.st_mode) & 0o077:
                raise RavelError(
                    "bad_config", f"{path} can be read by others", f"mend it with: chmod 600 {path}"
                )
            content = file.read(size_max + 1)
    except FileNotFoundError:
        raise RavelError(
            "not_initialised", f"{path} is not there", f"make it with: ravel --home {path.parent} init"
        ) from None
    except OSError as error:
        raise RavelError(
            "bad_config", f"{path} cannot be read: {error.strerror}", access_advice(path)
        ) from None
    if len(content) > size_max:
        raise RavelError("bad_config", f"{path} has more than {size_max} bytes", "restore it from a backup")
    return content


def access_advice(path: Path) -> str:
    """Return the advice where the system refuses a file, a folder or what lies in it."""
    return owner_advice(path) or "check its owner and permissions"


def owner_advice(path: Path) -> str:
    """Return the advice where `path`, or what lies in it, belongs to another user; empty where all is this user's."""
    own = os.geteuid()
    for one in (path, *_entries(path)):
        try:
            owner, above = one.lstat().st_uid, one.parent.stat().st_uid
        except OSError:
            continue
        if owner != own and above == own:  # made there by `sudo ravel`, say
            return f"it belongs to {_user_name(owner)}: sudo chown {_user_name(own)} {shlex.quote(str(one))}"
        if owner != own:
            return _others(one, owner)
    for one in reversed(path.parents):
        if not os.access(one, os.X_OK):  # the first that cannot be entered: all those above it can
            return _others(one, one.stat().st_uid)
    return ""


def _others(path: Path, owner: int) -> str:
    return f"{path} belongs to {_user_name(owner)}: run the command as that user, or choose another --home"


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
