"""Layout of the node's folder (configuration, keys, token, store) and the lock of the running daemon.

    config.toml   the configuration                    api-token   what the local API wants to see
    people.json   what this user calls itself and others (`node.home.people_file`)
    keys.json     the keys (`node.home.identity`)           lock        held by the daemon, says who it is
    run.json      where the running daemon answers          tokens.json tokens of apps (`node.home.tokens`)
    api-tls.pem   certificate and key of the listener for other machines (`node.home.certificate`)
    pseudonym.key what hides authors in exports, hex, and a checksum; made when it is first asked for
    folder-mark   what no copy of the folder has (`node.home.folder_mark`)
    content.lock  held while content is collected, and, together with others, while a backup or check reads it

The folder is for its user alone (0700, files 0600), and secrets that others may read are refused.
"""

import difflib
import errno
import fcntl
import json
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hmac import compare_digest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from node.home.config import CONFIG_NAME, default_config_text, parse_config
from node.home.config_layers import Setting, load_settings
from node.home.config_sections import Config
from node.home.private_files import SECRET_SIZE, create_file, has_keys, replace_file, sweep_drafts
from node.runtime.clock import now_ms
from node.runtime.errors import ServiceError
from protocol.crypto.keys import HashKey
from protocol.limits.users import DISK_FREE_MIN
from ravel.holder import Holder
from ravel.home import (
    LOCK_NAME,
    RUN_NAME,
    TOKEN_NAME,
    access_advice,
    command_for,
    is_locked,
    read_private,
    read_token,
)
from storage.engine.folders import make_folder, open_or_create

if (
    TYPE_CHECKING
):  # what opens keys is imported where some are made or adopted: most commands read the token alone
    from node.home.key_file import Keys, Protection

OWN_CERTIFICATE_NAME: Final = "api-tls.pem"
PSEUDONYM_KEY_NAME: Final = "pseudonym.key"
_KEY_CHECKSUM_LENGTH: Final = 8
_PSEUDONYM_KEY: Final = re.compile(
    rb"([0-9a-f]{%d}) ([0-9a-f]{%d})" % (2 * SECRET_SIZE, _KEY_CHECKSUM_LENGTH)
)
_PSEUDONYM_KEY_FILE_SIZE_MAX: Final = 1000
NEIGHBOURS_MAX: Final = 200
"""Entries around a mistyped folder among which a node is looked for: a look at each takes some 10 us."""
_NO_USE: Final = frozenset({"lost+found", "daemon.log", "content.lock", "people.json"})
"""Names in a folder that may become a home: of a new disk, and of a node that was begun, as drafts (`.new`) are."""
_NAMED_MAX: Final = 3
UNWRITABLE_ADVICE: Final = "look at its owner, or at how it is mounted"
CONTENT_LOCK_NAME: Final = "content.lock"
_LOCK_TRIES: Final = 5
_LOCK_TRY_SECONDS: Final = 0.02  # a command that asks who holds the folder has let it go long before


@dataclass(frozen=True, slots=True)
class Home:
    """An initialised folder. Secrets are never kept here."""

    path: Path
    config: Config
    settings: tuple[Setting, ...] = ()
    """Each key of the configuration, and where its value comes from."""

    @property
    def config_path(self) -> Path:
        """The configuration file."""
        return self.path / CONFIG_NAME

    @property
    def storage_url(self) -> str:
        """The PostgreSQL database of the store; empty for a file in the folder. There may be a password in it."""
        return self.config.storage.url

    @property
    def export_destination(self) -> str:
        """Destination of exports: a path or a URL. A relative path begins in the folder, wherever the daemon was started."""
        destination = self.config.export.destination or "exports"
        return destination if "://" in destination else str(self.path / destination)

    @property
    def api_token(self) -> str:
        """The API's token, 64 hexadecimal digits."""
        return read_token(self.path)


def create_home(
    path: Path,
    *,
    name: str = "",
    listen: str | None = None,
    api: str | None = None,
    storage: str | None = None,
    keys: "Keys | None" = None,
    protection: "Protection" = "none",
    passphrase: bytes = b"",
    is_recovered: bool = False,
) -> Home:
    """Create the missing files of a home. Existing configuration and keys stay. Keys are fresh by default.

    If the user `is_recovered`, there are commits of this user elsewhere: it writes to a repo here only after a
    comparison with a peer. A new user states the `name`, if given. Raises ServiceError `storage_failed` if the folder
    cannot be made, `already_exists` where `keys` are given and the folder has some, `bad_config` for a bad value,
    `bad_request` for a name that breaks the rules, and the errors of `create_keys`.
    """
    from node.home.folder_mark import write_mark
    from node.home.identity import create_keys
    from node.home.key_file import fresh_keys
    from node.home.people_file import OwnProfile, PeopleFile, check_person_name, write_people
    from storage.engine.losses import note_cause

    people = PeopleFile(OwnProfile(check_person_name(name), None, now_ms())) if name else None
    chosen: dict[str, str] = {}
    given = (("listen", listen), ("api", api), ("storage", storage))
    chosen |= {key: value for key, value in given if value is not None}
    try:
        _check_owner(path)
        _check_use(path)
        make_folder(path)
        path.chmod(0o700)
        # Each file may come from another command at this moment, and is taken then.
        if not (path / CONFIG_NAME).exists():
            # Checked before it is put in place: a bad address must not leave a folder that cannot start.
            text = default_config_text(**chosen)
            parse_config(path / CONFIG_NAME, text)
            with suppress(FileExistsError):
                create_file(path / CONFIG_NAME, text.encode())
        with suppress(FileExistsError):
            create_file(path / TOKEN_NAME, secrets.token_hex(SECRET_SIZE).encode() + b"\n")
        if people is not None and not has_keys(path):
            write_people(path, people)
        if not has_keys(path):
            if is_recovered:
                note_cause(path, "recovered")
            write_mark(path)  # and then the keys: with them the home is there
            create_keys(path, keys or fresh_keys(), protection, passphrase)
        elif keys is not None:
            raise FileExistsError(path)
    except FileExistsError as error:
        if not has_keys(path):
            raise _failed(path, error) from None
        raise ServiceError(
            "already_exists",
            f"another command has just made a node in {path}",
            "use it, or choose another --home",
        ) from None
    except OSError as error:
        raise _failed(path, error) from None
    return open_home(path)


def _check_owner(path: Path) -> None:
    """Raise ServiceError if root would put keys into the folder of a user, who could take them and put others there."""
    if os.geteuid() != 0 or not path.exists() or has_keys(path):
        return
    owner = path.stat().st_uid
    if owner != 0:
        raise ServiceError(
            "not_permitted",
            f"{path} belongs to another user (number {owner}), and root would make a node in it",
            f"make it as that user, or choose another --home; for root's own: chown root {shlex.quote(str(path))}",
        )


def _check_use(path: Path) -> None:
    """Raise ServiceError where a folder holds files and no node's: others could not read it any more."""
    if not path.is_dir() or (path / CONFIG_NAME).exists() or (path / TOKEN_NAME).exists() or has_keys(path):
        return
    foreign = sorted(one.name for one in path.iterdir() if one.name not in _NO_USE and one.suffix != ".new")
    if foreign:
        raise ServiceError(
            "already_exists",
            f"{path} holds other files ({', '.join(foreign[:_NAMED_MAX])}), and no node",
            "name a new or empty folder: `--home FOLDER`",
        )


def open_home(path: Path, options: Sequence[str] = ()) -> Home:
    """Open the home in a folder, its configuration overridden by the environment, and that by `options` (KEY=VALUE).

    Raises ServiceError `not_initialised`, `bad_config`, `storage_failed`.
    """
    try:
        is_there = (path / CONFIG_NAME).exists() and has_keys(path)
    except OSError as error:
        raise _failed(path, error) from None
    if not is_there:
        raise no_node(path)
    return Home(path, *load_settings(path / CONFIG_NAME, os.environ, options))


def no_node(path: Path) -> ServiceError:
    """Return the error for a folder without a node. A folder beside it whose name is nearly the same is named first.

    Costs one look at each of the first NEIGHBOURS_MAX entries of the folder around it.
    """
    neighbours: list[str] = []
    with suppress(OSError), os.scandir(path.parent) as entries:
        neighbours = [one.name for one in islice(entries, NEIGHBOURS_MAX) if has_keys(Path(one.path))]
    near = difflib.get_close_matches(path.name, neighbours, n=1)
    if near:
        advice = f"did you mean {command_for(path.parent / near[0])}? A new node here: {command_for(path)} up"
    else:
        advice = f"give the right folder by --home or RAVEL_HOME; a new node here: {command_for(path)} up"
    return ServiceError("not_initialised", f"there is no node in {path}", advice)


def load_pseudonym_key(path: Path) -> HashKey:
    """Return the key under which a node's exports hide authors, made where there is none. Raises ServiceError.

    Nodes with copies of one such file give an author the same pseudonym. A checksum follows the key, since with a damaged
    key the next export would begin anew.
    """
    file = path / PSEUDONYM_KEY_NAME
    try:
        with suppress(FileExistsError):
            key = HashKey(secrets.token_bytes(SECRET_SIZE))
            create_file(file, f"{key.hex()} {_key_checksum(key)}\n".encode())
    except OSError as error:
        raise _failed(path, error) from None
    found = _PSEUDONYM_KEY.fullmatch(read_private(file, _PSEUDONYM_KEY_FILE_SIZE_MAX).strip())
    key = HashKey(bytes.fromhex(found[1].decode()) if found else b"")
    if not found or not compare_digest(found[2].decode(), _key_checksum(key)):
        raise ServiceError(
            "bad_config",
            f"{file} is damaged: it is not a key of 32 bytes, in hex, and its checksum",
            "restore it from a backup",
        )
    return key


def _key_checksum(key: HashKey) -> str:
    return blake3(key).hexdigest()[:_KEY_CHECKSUM_LENGTH]


@contextmanager
def lock_home(path: Path) -> Iterator[None]:
    """Hold the folder for this process. Raises ServiceError `already_running` with the holder's pid.

    The file of that name can be removed while it is held, and another made: so the folder itself is held too.
    """
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _failed(path, error) from None
    try:
        handle = open_or_create(path / LOCK_NAME, os.O_RDWR)
    except OSError as error:
        os.close(folder)
        raise _failed(path, error) from None
    try:
        if not (_try_lock(handle) and _try_lock(folder)):
            raise ServiceError(
                "already_running",
                f"{holder_name(path)} uses {path}",
                f"if that is a daemon, stop it with: {command_for(path)} down; else wait until it has ended",
            )
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(Holder.this().as_json()).encode())
        remove_run_file(path)  # of a daemon that was killed
        sweep_drafts(path)
        yield
    finally:
        os.close(handle)  # gives up the locks, as the end of the process would
        os.close(folder)


@contextmanager
def hold_content(path: Path, *, alone: bool) -> Iterator[None]:
    """Keep all content in the folder's store while the block runs; where `alone`, all but the block itself do.

    A daemon takes content out for moments, and not while others keep it. Raises ServiceError `already_running`,
    `storage_failed`.
    """
    try:
        handle = open_or_create(path / CONTENT_LOCK_NAME, os.O_RDONLY)
    except OSError as error:
        raise _failed(path, error) from None
    try:
        for _ in range(_LOCK_TRIES):  # a daemon takes content out in milliseconds
            try:
                fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_TRY_SECONDS)
            else:
                break
        else:
            at_work = "a backup, a check or an export reads" if alone else "`ravel gc` takes content out of"
            raise ServiceError("already_running", f"{at_work} {path}", "try again when it has ended")
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_TRY_SECONDS)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            return True  # a network file system that locks no folders: the file's lock is all there is
        else:
            return True
    return False


def lock_holder(path: Path) -> Holder | None:
    """Return the holder that a locked folder's files name; None if nobody holds it or no file names one."""
    if not is_locked(path):
        return None
    for name in (LOCK_NAME, RUN_NAME):  # the lock's file can be removed while it is held
        with suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads((path / name).read_text(encoding="utf-8"))
            return Holder.of_json(content if name == LOCK_NAME else content["holder"])
    return None


def holder_name(path: Path) -> str:
    """Name the process that holds a folder, for people."""
    holder = lock_holder(path)
    return "a process" if holder is None else holder.name


@contextmanager
def run_file(path: Path, *, api: str, listen: str, peer: str, run: str) -> Iterator[None]:
    """Say that this process is the daemon, and where it answers while the block runs; `run` is another at each start.

    Raises ServiceError `storage_failed`.
    """
    content = {"holder": Holder.this().as_json(), "api": api, "listen": listen, "peer": peer, "run": run}
    try:
        replace_file(path / RUN_NAME, f"{json.dumps(content)}\n".encode())
    except OSError as error:
        raise _failed(path, error) from None
    try:
        yield
    finally:
        remove_run_file(path)


def remove_run_file(path: Path) -> None:
    """Note that the daemon answers no more."""
    (path / RUN_NAME).unlink(missing_ok=True)


def room_advice(path: Path) -> str:
    """Return advice for a folder that cannot be written or whose disk is full; empty if there is room."""
    try:
        free = shutil.disk_usage(path).free
        if not os.access(path, os.W_OK):
            return UNWRITABLE_ADVICE
    except OSError:
        return ""
    return (
        "" if free >= DISK_FREE_MIN else f"make room on the disk of {path}, which has {free >> 20} MiB free"
    )


_NO_FOLDER: Final = (FileExistsError, NotADirectoryError)


def _failed(path: Path, error: OSError) -> ServiceError:
    if error.errno == errno.ENOSPC:
        return ServiceError("storage_failed", f"{path} cannot be used: {error}", "make room on that disk")
    if isinstance(error, PermissionError):
        return ServiceError("storage_failed", f"{path} cannot be used: {error}", access_advice(path))
    problem = "it, or what it lies in, is a file" if isinstance(error, _NO_FOLDER) else str(error)
    return ServiceError(
        "storage_failed",
        f"{path} cannot be used: {problem}",
        "choose another --home",
    )
