"""Options of a new node on a node that is there: what says the same is taken, what says something else is refused.

An address may be changed while the daemon is stopped: who runs a second node on a machine learns of a taken port when the
first start has failed, and the node is there by then.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from node.runtime.errors import ServiceError

if TYPE_CHECKING:
    from node.home.home import Home
    from node.home.key_file import Protection

_ADDRESSES: Final = ("network.listen", "api.listen")
"""Settings that `ravel up` changes of a stopped node."""
_SEALING: Final[dict["Protection", str]] = {
    "passphrase": "key seal",
    "keyring": "key seal --keyring",
    "none": "key unseal",
}
"""Way of keeping keys -> the command that changes it."""
_KEPT: Final[dict["Protection", str]] = {
    "passphrase": "sealed with a passphrase",
    "keyring": "sealed with a key in the system's keyring",
    "none": "kept in the clear",
}


@dataclass(frozen=True, slots=True)
class Founding:
    """Options of a new node; None or empty where they say nothing."""

    name: str = ""
    settings: tuple[tuple[str, str | None], ...] = ()
    """Keys of the configuration, and the value that was given."""
    protection: "Protection | None" = None

    def differing(self, home: "Home") -> dict[str, tuple[str, str]]:
        """Return the settings that are other ones in the file: key -> what is there, what was given."""
        from node.home.config_layers import load_settings

        config, settings = load_settings(home.config_path, {}, ())
        held = {
            "network.listen": config.network.listen,
            "api.listen": config.api.listen,
            "storage.url": config.storage.url,
        }
        shown = {one.key: one.text for one in settings}  # without credentials
        return {
            key: (shown[key], given)
            for key, given in self.settings
            if given is not None and given != held[key]
        }


def wanted_protection(*, passphrase: bool, keyring: bool, clear: bool) -> "Protection | None":
    """Return the way in which options say that keys are kept; None where they do not."""
    return "passphrase" if passphrase else "keyring" if keyring else "none" if clear else None


def check_founded(home: "Home", founding: Founding) -> None:
    """Refuse options of a new node that a node which is there contradicts. Raises ServiceError `already_exists`."""
    _check_person(home.path, founding)
    for key, (there, given) in founding.differing(home).items():
        raise _refusal(home.path, f"{key} = {there}", f"config set {key} {shlex.quote(given)}")


def settle_addresses(home: "Home", founding: Founding, *, is_running: bool) -> list[tuple[str, str, str]]:
    """Check as `check_founded` does, and give a stopped node the addresses that were given.

    Returns key, earlier value and new value of each that was changed. Raises ServiceError `already_exists`, `bad_config`.
    """
    from node.home.config_editing import set_key

    _check_person(home.path, founding)
    differing = founding.differing(home)
    if is_running and differing:
        told = [f"config set {key} {shlex.quote(given)}" for key, (_, given) in differing.items()]
        key, (there, _) = next(iter(differing.items()))
        raise _refusal(home.path, f"{key} = {there}, and its daemon runs", *told, "down", "up")
    changes = []
    for key, (there, given) in differing.items():
        if key not in _ADDRESSES:
            raise _refusal(home.path, f"{key} = {there}", f"config set {key} {shlex.quote(given)}")
        set_key(home.config_path, key, given)
        changes.append((key, there, given))
    return changes


def _check_person(folder: Path, founding: Founding) -> None:
    from node.home.identity import read_keys
    from node.home.people_file import check_person_name, read_people

    if founding.name:
        there = read_people(folder).me.name
        if check_person_name(founding.name) != there:
            called = f"where you are called {there}" if there else "where you have no name yet"
            raise _refusal(folder, called, f"me --name {shlex.quote(founding.name)}", needs_daemon=True)
    kept = read_keys(folder).protection
    if founding.protection not in (None, kept):
        raise _refusal(folder, f"whose keys are {_KEPT[kept]}", _SEALING[founding.protection])


def _refusal(folder: Path, what: str, *commands: str, needs_daemon: bool = False) -> ServiceError:
    from ravel.home import command_for

    ravel = command_for(folder)
    joined = " && ".join(f"{ravel} {one}" for one in commands)
    return ServiceError(
        "already_exists",
        f"there is a node in {folder} already, {'with ' if ' = ' in what else ''}{what}",
        f"to change that, once it runs: {joined}" if needs_daemon else f"to change that: {joined}",
    )
