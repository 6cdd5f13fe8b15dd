"""Parses `config.toml` strictly; `config_layers` adds overrides, `config_sections` has the keys.

An unknown section or key is an error that names the nearest one that is known, because a setting that is silently
ignored is worse than none. Values are checked where they are read; the rest of the node gets frozen dataclasses.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from node.home.config_sections import CONFIG_KEYS, SECTIONS, Config
from node.runtime.errors import ServiceError
from ravel.home import access_advice

CONFIG_NAME: Final = "config.toml"
CONFIG_SIZE_MAX: Final = 1 << 20

Document = dict[str, dict[str, object]]
"""Parsed configuration: section -> key -> value, all of them known, no value checked yet."""


def default_config_text(
    *, listen: str | None = None, api: str | None = None, storage: str | None = None
) -> str:
    """Write a commented configuration file with these values."""
    stated = {("network", "listen"): listen, ("api", "listen"): api, ("storage", "url"): storage}
    lines = [
        "# Configuration of a Ravel node. Every key is here, with its default unless `ravel init` was told otherwise."
    ]
    for section, keys in CONFIG_KEYS.items():
        lines += ["", f"[{section}]"]
        for name, key in keys.items():
            value = stated.get((section, name))
            lines += [f"# {line}" for line in key.about.splitlines()]
            lines.append(f"{name} = {toml_text(key.default if value is None else value)}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Source of a value, for errors: its name, and the advice to give there."""

    name: str
    next_step: str


def load_document(path: Path) -> Document:
    """Read a configuration file. Raises ServiceError `bad_config`, naming the file."""
    try:
        raw = path.read_bytes()
        if len(raw) > CONFIG_SIZE_MAX:
            raise bad_config(of_file(path), f"it has more than {CONFIG_SIZE_MAX} bytes")
        text = raw.decode("utf-8-sig")  # some editors write a byte order mark
    except PermissionError as error:
        raise bad_config(SettingOrigin(str(path), access_advice(path)), str(error.strerror)) from None
    except OSError as error:
        raise bad_config(of_file(path), str(error)) from None
    except UnicodeDecodeError as error:
        raise bad_config(of_file(path), f"not TOML: {error}") from None
    return parse_document(path, text)


def parse_config(path: Path, text: str) -> Config:
    """Parse the configuration that a text states; `path` is what errors name. Raises ServiceError `bad_config`."""
    return read_config(path, parse_document(path, text))


def parse_document(path: Path, text: str) -> Document:
    """Parse a text into a document whose sections and keys are known. Raises ServiceError `bad_config`."""
    origin = of_file(path)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise bad_config(origin, f"not TOML: {error}") from None
    for section, values in document.items():
        check_known(origin, "section", section, CONFIG_KEYS)
        if not isinstance(values, dict):
            raise bad_config(origin, f"[{section}] is a section, not a value")
        for key in values:
            check_known(origin, f"key in [{section}]", key, CONFIG_KEYS[section])
    return document


def read_config(
    path: Path, document: Document, origins: Mapping[tuple[str, str], SettingOrigin] = MappingProxyType({})
) -> Config:
    """Build the configuration of a document, whose values are from `path` where `origins` names no other place.

    Raises ServiceError `bad_config`.
    """
    made: dict[str, Any] = {}
    for section, keys in CONFIG_KEYS.items():
        said, values = document.get(section, {}), dict[str, Any]()
        for name, key in keys.items():
            try:
                values[name] = key.read(said.get(name, key.default))
            except ValueError as error:
                origin = origins.get((section, name), of_file(path))
                raise bad_config(origin, f"[{section}] {name} {error}") from None
        made[section] = SECTIONS[section](**values)
    config = Config(**made)
    if config.export.bodies and config.export.pseudonyms:
        origin = origins.get(("export", "bodies"), of_file(path))
        raise bad_config(origin, "[export] bodies name authors: there are none where pseudonyms = true")
    return config


def check_known(origin: SettingOrigin, what: str, name: str, known: Collection[str]) -> None:
    """Raise ServiceError `bad_config`, with the nearest name, unless the name is known."""
    if name in known:
        return
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
    raise bad_config(origin, f"unknown {what}: {name!r}{hint}")


def of_file(path: Path) -> SettingOrigin:
    """Make a configuration file the source of a value."""
    return SettingOrigin(str(path), f"edit {path}")


def bad_config(origin: SettingOrigin, problem: str) -> ServiceError:
    """Make the error about a fault in a configuration source."""
    return ServiceError("bad_config", f"{origin.name}: {problem}", origin.next_step)


def toml_text(value: object) -> str:
    """Write a default of a key in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)  # a number, or an empty list or table


def _quoted(text: str) -> str:
    """Write a TOML basic string: quotes, backslashes and control characters are escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", plain) + '"'
