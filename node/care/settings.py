"""Settings for a page: all with their descriptions and sources, and changes of the configuration file.

`node.home.config_editing` changes the file and refuses what would lock its user out; the daemon reads it when it starts.
"""

import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import trio

from node.home.config import CONFIG_NAME
from node.home.config_editing import find_key, overriding_variable, set_key
from node.home.config_layers import Setting, describe_keys, load_settings
from node.home.config_sections import CONFIG_KEYS
from node.home.service import (
    check_settings,
    check_systemd,
    check_unattended,
    is_started_again,
    service_of,
    unit_text,
)
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from ravel.home import command_for
from ravel.types.care import SettingChange, SettingList, SettingView, StartWithLogin
from ravel.types.values import Empty

_Kind = Literal["text", "flag", "number", "list", "table"]
_Hindrance = Literal["no_systemd", "environment", "passphrase"]
_KINDS: Final[Mapping[type, _Kind]] = {
    str: "text",
    bool: "flag",
    int: "number",
    list: "list",
    dict: "table",
}


class SettingsService:
    """The settings of a node's folder. `running`: what the daemon was started with; none where that is not known."""

    def __init__(self, home: Path, running: Sequence[Setting], run_blocking: RunBlocking) -> None:
        self._home = home
        self._running = {one.key: one for one in running}
        self._run_blocking = run_blocking
        self._lock = trio.Lock()  # the file is read, changed and written

    async def list_all(self) -> SettingList:
        """List all settings as they hold for the next start. Raises ServiceError `bad_config`."""
        return await self._run_blocking(self._list)

    async def change(self, setting: str, value: str) -> SettingChange:
        """Change one in the configuration file. Raises ServiceError `bad_request`, `storage_failed`."""
        async with self._lock:
            try:
                change = await self._run_blocking(set_key, self._home / CONFIG_NAME, setting, value)
            except ServiceError as error:
                if error.code != "bad_config":
                    raise
                # To a command the configuration is bad; here the request is, and the node is well.
                raise ServiceError("bad_request", error.message, error.advice) from None
        return {
            "setting": change.after.key,
            "before": change.before.text,
            "value": change.after.text,
            "restart": change.is_change,
            "overridden_by": overriding_variable(change.after.key, os.environ) or None,
        }

    async def restart(self) -> Empty:
        """End the daemon once this is answered, where systemd starts it again. Raises ServiceError `bad_config`."""
        if not await self._run_blocking(is_started_again, self._home):
            raise ServiceError(
                "bad_config", "nothing starts this daemon again by itself", self._restart_command()
            )
        os.kill(os.getpid(), signal.SIGHUP)
        return {}

    async def show_start(self) -> StartWithLogin:
        """Show whether the node starts with the login, and why that cannot be changed here."""
        return await self._run_blocking(self._show_start)

    async def start_with_login(self, starts: bool) -> StartWithLogin:
        """Have systemd start the node with the login, or no more. Raises ServiceError."""
        async with self._lock:
            await self._run_blocking(self._change_start, starts)
        return await self.show_start()

    def _show_start(self) -> StartWithLogin:
        starts = service_of(self._home).is_installed
        for hindrance, check in self._start_checks(is_made=starts).items():
            try:
                check()
            except ServiceError:
                return {"starts": starts, "hindrance": hindrance}
        return {"starts": starts, "hindrance": ""}

    def _change_start(self, starts: bool) -> None:
        service = service_of(self._home)
        if service.is_installed == starts:
            return
        for check in self._start_checks(is_made=service.is_installed).values():
            check()
        if starts:
            service.start_with_login(unit_text(self._home, None))
        else:
            service.remove(stop=False)

    def _start_checks(self, *, is_made: bool) -> "Mapping[_Hindrance, Callable[[], None]]":
        """Return what is looked at before the start with the login is changed; each raises ServiceError."""
        checks: dict[_Hindrance, Callable[[], None]] = {"no_systemd": partial(check_systemd, self._home)}
        if not is_made:
            checks["environment"] = partial(check_settings, self._running.values())
            checks["passphrase"] = partial(check_unattended, self._home)
        return checks

    def _restart_command(self) -> str:
        command = command_for(self._home)
        return f"{command} down && {command} up"

    def _list(self) -> SettingList:
        path = self._home / CONFIG_NAME
        _, settings = load_settings(path, os.environ, ())
        views: list[SettingView] = []
        about = ""
        for key, (default, comment) in describe_keys().items():
            about = comment or about  # one comment may be about several keys
            section, name = find_key(key)
            known = CONFIG_KEYS[section][name]
            kind = _KINDS[type(known.default)]
            said = next(one for one in settings if one.key == key)
            running = self._running.get(key, said)
            is_given = (
                running.source == "option"
            )  # it was typed when the daemon was started, and holds until it ends
            shown = running if is_given else said
            views.append(
                {
                    "setting": key,
                    "about": about,
                    "kind": kind,
                    "choices": [*known.choices],
                    "value": _text_of(shown),
                    "default": default.strip('"') if kind == "text" else default,
                    "source": shown.source,
                    "variable": said.variable,
                    "hidden": known.is_secret,
                    "restart": not is_given and running.value != said.value,
                }
            )
        return {
            "config": str(path),
            "settings": views,
            "restart_command": self._restart_command(),
            "restarts": is_started_again(self._home),
        }


def _text_of(setting: Setting) -> str:
    """Return the value in the form that `change` takes: lists of tables are in TOML's form, which is not that of JSON."""
    if not isinstance(setting.value, list):
        return setting.text
    tables = [one for one in setting.value if isinstance(one, dict)]
    if len(tables) < len(setting.value):
        return setting.text
    fields = (", ".join(f"{name} = {json.dumps(value)}" for name, value in one.items()) for one in tables)
    return f"[{', '.join(f'{{ {one} }}' for one in fields)}]"
