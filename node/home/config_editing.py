"""Changes single keys of `config.toml`, keeping its comments and order. What would lock its user out is refused.

Says nothing of a running daemon, which reads the file when it starts.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Final

from node.home.config import (
    Document,
    SettingOrigin,
    bad_config,
    check_known,
    load_document,
    parse_document,
    read_config,
)
from node.home.config_layers import Setting, shown_value, variable_of
from node.home.config_sections import CONFIG_KEYS, Config
from node.home.listen_addresses import is_unspecified
from node.home.private_files import replace_file
from node.runtime.errors import ServiceError
from node.runtime.resolve import did_you_mean
from protocol.limits.users import SETTING_SIZE_MAX

if TYPE_CHECKING:  # imported where a file is changed: a daemon that changes none holds a megabyte less
    from tomlkit.items import Item

_STORE_NAME: Final = "ravel.sqlite"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A key that was set. Holds no credentials."""

    before: Setting
    after: Setting

    @property
    def is_change(self) -> bool:
        """Return True if the file says something else now."""
        return self.before.value != self.after.value


def set_key(path: Path, name: str, text: str) -> ConfigChange:
    """Set a value in a configuration file: a text as it is, another kind of value as in the file.

    The file is whole or as before, and one that a daemon can start with. Raises ServiceError `bad_config`,
    `storage_failed`.
    """
    section, key = find_key(name)
    origin = SettingOrigin(f"the value of {name}", f"`ravel config get {name}` shows what it is now")
    if len(text) > SETTING_SIZE_MAX:
        raise bad_config(origin, f"it has more than {SETTING_SIZE_MAX} characters")
    old = load_document(path)
    content = path.read_bytes().decode("utf-8-sig")
    changed = _changed(content, section, key, _item(section, key, text))
    new = parse_document(path, changed)
    config = read_config(path, new, {(section, key): origin})
    _check_not_locked_out(path.parent, (section, key), old, config, origin)
    change = ConfigChange(_setting(section, key, old), _setting(section, key, new))
    try:
        replace_file(path, changed.encode())
    except OSError as error:
        raise ServiceError(
            "storage_failed", f"{path} cannot be written: {error}", "check space and permissions there"
        ) from None
    return change


def find_key(name: str) -> tuple[str, str]:
    """Split SECTION.KEY. Raises ServiceError `bad_config`, with the nearest key."""
    section, dot, key = name.partition(".")
    origin = SettingOrigin("the key", "`ravel config show` lists the keys")
    names = [f"{section}.{key}" for section, keys in CONFIG_KEYS.items() for key in keys]
    if not dot:
        same = [one for one in names if one.endswith(f".{name}")]
        hint = f"; did you mean {' or '.join(same)}?" if same else did_you_mean(name, names)
        raise bad_config(origin, f"{name[:100]!r} has not the form SECTION.KEY{hint}")
    check_known(origin, "section", section, CONFIG_KEYS)
    check_known(origin, f"key in [{section}]", key, CONFIG_KEYS[section])
    return section, key


def default_text(name: str) -> str:
    """Return the default of a key as `set_key` takes it. Raises ServiceError `bad_config`."""
    section, key = find_key(name)
    return _setting(section, key, {}).text


def _item(section: str, key: str, text: str) -> "Item":
    """Read a value for the file. Text that is no TOML stays a text: the check of values says what is wanted instead."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if not isinstance(CONFIG_KEYS[section][key].default, str):
        try:
            return tomlkit.value(text)
        except (TOMLKitError, ValueError, RecursionError):
            pass
    return tomlkit.string(text)


def _changed(content: str, section: str, key: str, item: "Item") -> str:
    """Return the file's text with another value."""
    import tomlkit

    document = tomlkit.parse(content)
    if section not in document:
        document[section] = tomlkit.table()
    table = document[section]
    assert isinstance(table, MutableMapping), "it was parsed as a configuration"
    table[key] = item
    return tomlkit.dumps(document)


def _setting(section: str, key: str, said: Document) -> Setting:
    is_said = key in said.get(section, {})
    value = said[section][key] if is_said else CONFIG_KEYS[section][key].default
    return Setting(f"{section}.{key}", shown_value(section, key, value), "file" if is_said else "default")


def _check_not_locked_out(
    home: Path, place: tuple[str, str], old: Document, config: Config, origin: SettingOrigin
) -> None:
    """Refuse what the daemon starts with, or cannot, in a way that its user could not have meant."""
    listeners = {
        "network.listen": config.network.listen,
        "network.websocket_listen": config.network.websocket_listen,
        "api.listen": config.api.listen,
        "api.tls": config.api.tls,
    }
    for first, second in combinations(listeners, 2):
        if ".".join(place) in (first, second) and _share_port(listeners[first], listeners[second]):
            raise bad_config(
                origin, f"{first} ({listeners[first]}) and {second} ({listeners[second]}) cannot share a port"
            )
    if place != ("storage", "url"):
        return
    was, url = old.get("storage", {}).get("url", ""), config.storage.url
    has_file = (home / _STORE_NAME).exists()
    if (not was and url and has_file) or (was and not url and not has_file):
        away = f"{home / _STORE_NAME}" if has_file else "the database that it names now"
        raise ServiceError(
            "bad_config",
            f"the node's store is in {away}: with another storage.url it would start without its repos",
            "move the store first: `ravel backup` and `ravel restore --storage-url` (docs/communities/backups.md)",
        )


def _share_port(first: str, second: str) -> bool:
    """Return True if two listeners want one port of the same address. An empty one listens nowhere."""
    (first_host, _, first_port), (second_host, _, second_port) = first.rpartition(":"), second.rpartition(":")
    is_same_host = first_host == second_host or is_unspecified(first) or is_unspecified(second)
    return first_port == second_port not in ("", "0") and is_same_host


def overriding_variable(name: str, environment: Mapping[str, str]) -> str:
    """Return the environment variable that hides what the file says of a key; empty where none does."""
    variable = variable_of(*name.split("."))
    return variable if variable in environment else ""
