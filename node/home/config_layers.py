"""Overrides of the configuration: environment variables, then command options.

Every key has a variable: [network] listen is RAVEL_NETWORK_LISTEN. A text is taken as it is; a value of another kind is
written as in the file (RAVEL_NETWORK_PEERS='[{ address = "...", peer = "..." }]'). A variable of a known section with an
unknown key is an error, as it is in the file.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from node.home.config import (
    CONFIG_SIZE_MAX,
    SettingOrigin,
    bad_config,
    check_known,
    load_document,
    read_config,
    toml_text,
)
from node.home.config_sections import CONFIG_KEYS, Config
from storage.engine.urls import hide_secrets

_PREFIX: Final = "RAVEL_"
_NOT_KEYS: Final = frozenset({"RAVEL_HOME", "RAVEL_PASSPHRASE_FILE"})
"""Variables of Ravel's that are no keys."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the configuration as it stands, and where the value comes from. Holds no credentials."""

    key: str  # section.key
    value: object  # as it may be shown
    source: str  # default, file, environment or option

    @property
    def variable(self) -> str:
        """Environment variable that overrides the key."""
        return variable_of(*self.key.split("."))

    @property
    def text(self) -> str:
        """The value for people."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value)


def load_settings(
    path: Path, environment: Mapping[str, str], options: Sequence[str]
) -> tuple[Config, tuple[Setting, ...]]:
    """Load the configuration that a file, the environment and options (KEY=VALUE) make, and each key's source.

    Raises ServiceError `bad_config`, naming the file, the variable or the option.
    """
    said = load_document(path)
    read_config(path, said)  # a bad value in the file is one even where something overrides it
    sources = {(section, key): "file" for section, keys in said.items() for key in keys}
    origins: dict[tuple[str, str], SettingOrigin] = {}
    for source, layer in (("environment", _of_environment(environment)), ("option", _of_options(options))):
        for place, text, origin in layer:
            said.setdefault(place[0], {})[place[1]] = _value(place, text, origin)
            sources[place], origins[place] = source, origin
    config = read_config(path, said, origins)
    settings = tuple(
        Setting(
            f"{section}.{name}",
            shown_value(section, name, said.get(section, {}).get(name, key.default)),
            sources.get((section, name), "default"),
        )
        for section, keys in CONFIG_KEYS.items()
        for name, key in keys.items()
    )
    return config, settings


def describe_keys() -> Mapping[str, tuple[str, str]]:
    """Map each key to its default as the file has it, and to the comment before it; empty where one comment is
    about several keys, and stands before the first."""
    return {
        f"{section}.{name}": (toml_text(key.default), " ".join(key.about.splitlines()))
        for section, keys in CONFIG_KEYS.items()
        for name, key in keys.items()
    }


def shown_value(section: str, key: str, value: object) -> object:
    """Return the value without credentials."""
    if (section, key) == ("export", "options"):
        return dict.fromkeys(value, "***") if isinstance(value, dict) else "***"
    if (section, key) == ("storage", "url") and isinstance(value, str):
        return hide_secrets(value)
    return value


def variable_of(section: str, key: str) -> str:
    """Return the environment variable of a key."""
    return f"{_PREFIX}{section}_{key}".upper()


def find_unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """List variables that look like Ravel's and have no effect, for their section is none."""
    known = {variable_of(section, key) for section, keys in CONFIG_KEYS.items() for key in keys}
    return sorted(name for name in environment if name.startswith(_PREFIX) and name not in known | _NOT_KEYS)


_Said = tuple[tuple[str, str], str, SettingOrigin]


def _of_environment(environment: Mapping[str, str]) -> Iterator[_Said]:
    for name, text in sorted(environment.items()):
        section, _, key = name.removeprefix(_PREFIX).lower().partition("_")
        if not name.startswith(_PREFIX) or section not in CONFIG_KEYS or not key:
            continue
        origin = SettingOrigin(f"the environment variable {name}", f"change it, or unset {name}")
        check_known(origin, f"key in [{section}]", key, CONFIG_KEYS[section])
        yield (section, key), text, origin


def _of_options(options: Sequence[str]) -> Iterator[_Said]:
    for option in options:
        name, equals, text = option.partition("=")
        section, _, key = name.partition(".")
        origin = SettingOrigin(f"the option {name[:100]!r}", "`ravel config show` lists the keys")
        if not equals:
            raise bad_config(origin, "it has the form SECTION.KEY=VALUE")
        check_known(origin, "section", section, CONFIG_KEYS)
        check_known(origin, f"key in [{section}]", key, CONFIG_KEYS[section])
        yield (section, key), text, origin


def _value(place: tuple[str, str], text: str, origin: SettingOrigin) -> object:
    if len(text) > CONFIG_SIZE_MAX:
        raise bad_config(origin, f"it has more than {CONFIG_SIZE_MAX} characters")
    if isinstance(CONFIG_KEYS[place[0]][place[1]].default, str):
        return text
    try:
        document = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise bad_config(origin, f"not a TOML value: {error}") from None
    if set(document) != {"value"}:
        raise bad_config(origin, "more than one value")
    return document["value"]
