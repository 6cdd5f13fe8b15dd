"""systemd unit of a person's node: its text, and the calls that install, look at and remove it.

A unit is a user's own: it needs no root, starts with the login, and stops with the last logout unless lingering is on.
"""

import getpass
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from node.home.config_layers import Setting
from node.home.identity import read_keys
from node.home.passphrases import CREDENTIAL_NAME
from node.runtime.errors import ServiceError
from ravel.home import command_for, find_home
from storage.engine.folders import make_folder

_MARK: Final = "# Made by `ravel up --service`. `ravel uninstall` removes it."
"""First line of a unit that this module may replace and remove."""
_LINGERING: Final = Path("/var/lib/systemd/linger")
"""Folder in which systemd-logind names the users whose services run without a login."""
_CALL_SECONDS_MAX: Final = 120.0
"""Seconds for a call of systemctl: a start waits until the daemon answers, which a large store may delay by a minute."""
_UNIT_SIZE_MAX: Final = 65_536
_TEXT: Final = """\
{mark}
[Unit]
Description=Ravel, a replica node for encrypted tangles ({home})

[Service]
Type=notify
NotifyAccess=main
{credential}ExecStart={command}
Restart=on-failure
RestartSec=5
# A wrong configuration, a folder without a node, one that another process holds, a store of a newer Ravel, a passphrase
# that is wrong or not given: trying again mends none of them.
RestartPreventExitStatus=10 11 12 20 28 29
TimeoutStopSec=30
UMask=0077

# What a user's own manager can take away without help from root.
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=default.target
"""


@dataclass(frozen=True, slots=True)
class Service:
    """systemd unit of the node in one folder."""

    name: str
    path: Path

    @property
    def is_installed(self) -> bool:
        """Return True if a unit of this name is there, and Ravel made it."""
        try:
            with self.path.open("rb") as file:
                return file.read(_UNIT_SIZE_MAX).startswith(_MARK.encode())
        except OSError:
            return False

    @property
    def is_active(self) -> bool:
        """Return True if the unit runs. Raises ServiceError `bad_config`."""
        return _systemctl("is-active", "--quiet", self.name).returncode == 0

    def install(self, text: str) -> None:
        """Write the unit, and have systemd start it now and with each login; waits until the daemon answers.

        Raises ServiceError `already_exists` for a unit that Ravel did not make, `bad_config`, `storage_failed`.
        """
        self._write(text)
        done = _systemctl("enable", "--now", self.name)
        if done.returncode != 0:
            raise ServiceError(
                "not_running",
                f"systemd could not start {self.name}: {_last_line(done)}",
                f"its log says why: journalctl --user -u {self.name} -n 20",
            )

    def start_with_login(self, text: str) -> None:
        """Write the unit for the next login, and start nothing now. Raises ServiceError, as `install` does."""
        self._write(text)
        try:
            _demand("enable", self.name)
        except ServiceError:
            self.path.unlink(missing_ok=True)  # where it is, it is taken to start with the login
            raise

    def _write(self, text: str) -> None:
        if self.path.exists() and not self.is_installed:
            raise ServiceError(
                "already_exists",
                f"{self.path} is there, and was not made by `ravel up --service`",
                "move it away",
            )
        try:
            make_folder(self.path.parent)
            self.path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ServiceError(
                "storage_failed",
                f"{self.path} cannot be written: {error}",
                "check space and permissions there",
            ) from None
        _demand("daemon-reload")

    def stop(self) -> None:
        """Stop the unit; systemd starts it again with the next login. Raises ServiceError `bad_config`."""
        _demand("stop", self.name)

    def remove(self, *, stop: bool = True) -> None:
        """Remove the unit, and stop what it runs, or let it run on. Raises ServiceError `bad_config`, `storage_failed`."""
        _demand("disable", *(["--now"] if stop else []), self.name)
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise ServiceError(
                "storage_failed", f"{self.path} cannot be removed: {error}", "check the permissions there"
            ) from None
        _demand("daemon-reload")


def is_started_again(home: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if systemd runs this process itself by Ravel's unit of the folder, which starts it again if it fails."""
    return (
        environment.get("SYSTEMD_EXEC_PID") == str(os.getpid()) and service_of(home, environment).is_installed
    )


def service_of(home: Path, environment: Mapping[str, str] = os.environ) -> Service:
    """Return the unit of a folder: `ravel.service` for the default one, another name for each other folder."""
    # RAVEL_HOME names the folder of a shell, and so no default.
    default = find_home(Path(environment.get("XDG_DATA_HOME") or "~/.local/share", "ravel"))
    place = home.resolve()  # by whatever links it was named
    mark = "" if place == default.resolve() else f"-{hashlib.sha256(os.fsencode(place)).hexdigest()[:8]}"
    folder = Path(environment.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "systemd" / "user"
    name = f"ravel{mark}.service"
    return Service(name, folder / name)


def unit_text(home: Path, passphrase_file: Path | None, python: str = sys.executable) -> str:
    """Return the unit of a node: its daemon, as this Python runs it, with a passphrase that systemd hands to it.

    systemd reads the file, so that the daemon alone sees what it holds. Its path is of no other user's concern.
    """
    # -P: never a module of the current folder.
    words = ("-P", "-m", "node.cli.main", "--home", str(home), "run")
    # In the program's own path systemd puts no variables.
    command = " ".join((_quoted(python), *(_quoted(word).replace("$", "$$") for word in words)))
    credential = "" if passphrase_file is None else _credential(passphrase_file)
    return _TEXT.format(mark=_MARK, home=_plain(home), credential=credential, command=command)


def check_settings(settings: Iterable[Setting]) -> None:
    """Raise ServiceError `bad_config` for settings of this shell's environment: the service would run without them."""
    names = [one.variable for one in settings if one.source == "environment"]
    if names:
        raise ServiceError(
            "bad_config",
            f"a service gets no variables of this shell: {', '.join(names)}",
            "put what they say into the configuration (`ravel config set`), and unset them",
        )


def check_unattended(home: Path) -> None:
    """Raise ServiceError `bad_config` where the keys' passphrase is typed at each start."""
    if read_keys(home).protection == "passphrase":
        raise ServiceError(
            "bad_config",
            "nobody is there to type a passphrase when the service starts",
            f"name a file that only you can read: {command_for(home)} --passphrase-file FILE up --service",
        )


def check_systemd(home: Path) -> None:
    """Raise ServiceError `bad_config` where no systemd of this user answers."""
    if shutil.which("systemctl") is None:
        raise ServiceError(
            "bad_config",
            "there is no systemd here: systemctl is not found",
            f"start the node yourself: {command_for(home)} up; or have what starts programs here run: "
            f"{command_for(home)} run",
        )
    done = _systemctl("show-environment")
    if done.returncode != 0:
        raise ServiceError(
            "bad_config",
            f"systemd keeps no services of this user here: {_last_line(done)}",
            f"log in as this user at a terminal or by SSH, and not by su or sudo; or start the node yourself: "
            f"{command_for(home)} up",
        )


def lingers(folder: Path = _LINGERING) -> bool:
    """Return True if services of this user run while the user is not logged in."""
    try:
        return (folder / getpass.getuser()).exists()
    except (OSError, KeyError):  # a user that no list of users has
        return False


def _demand(*words: str) -> None:
    done = _systemctl(*words)
    if done.returncode != 0:
        raise ServiceError(
            "bad_config", f"systemctl --user {' '.join(words)} failed: {_last_line(done)}", "try it by hand"
        )


def _systemctl(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run systemctl on this user's units. Raises ServiceError `bad_config` where it gives no answer in time."""
    command = ["systemctl", "--user", *words]
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CALL_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError("bad_config", f"systemctl gave no answer: {error}", "try it by hand") from None


def _last_line(done: "subprocess.CompletedProcess[str]") -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1][:300] if lines else f"exit code {done.returncode}"


def _credential(file: Path) -> str:
    """Return the line that hands over a file. Raises ServiceError `bad_request`."""
    # systemd passes over a path with `..`; the file itself may be a link, which is replaced with what it holds.
    said = _plain(file.parent.resolve() / file.name)
    if said.endswith(("\\", " ", "\t")):
        raise ServiceError("bad_request", "no line of a unit ends as the path does", "rename the file")
    return f"LoadCredential={CREDENTIAL_NAME}:{said}\n"


def _plain(path: Path) -> str:
    """Return a path as a line of a unit takes it. Raises ServiceError `bad_request` for one that no line can hold."""
    text = str(path)
    if any(one in text for one in "\r\n"):
        raise ServiceError("bad_request", "a line break in a path fits no unit", "rename the folder")
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """Return a word of a command as systemd reads it back: specifiers in it stay as they are."""
    if any(one in word for one in "\r\n"):
        raise ServiceError("bad_request", "a line break in a path fits no unit", "rename the folder")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
