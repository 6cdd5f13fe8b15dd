"""Types of answers: care. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class SettingList(TypedDict):
    """All settings."""

    config: str
    """The configuration file."""
    settings: list[SettingView]
    restart_command: str
    """As one types it into a terminal of the node's machine."""
    restarts: bool
    """A service of the person's starts the daemon again: `restart_node`."""


class SettingChange(TypedDict):
    """A setting that was changed in the configuration file."""

    setting: str
    before: str
    value: str
    restart: bool
    """The daemon reads it at its next start."""
    overridden_by: str | None
    """The environment variable that hides it. Null: none."""


class HealthReport(TypedDict):
    """A problem that stops the node from working now or soon."""

    checks: list[HealthCheck]
    problems: int


class KeyStatus(TypedDict):
    """Storage of the node's keys."""

    node: str
    user: str
    protection: str
    """What they are sealed by. `none`: nothing."""
    seal_command: str
    """As one types it into a terminal of the node's machine."""


class KeyWords(TypedDict):
    """The user's key."""

    words: list[str]
    """24. Anyone who has them is this user."""


class BackupStatus(TypedDict):
    """The backup that is made, or the last one."""

    running: bool
    folder: str
    """Empty: none since the daemon's start."""
    began_at: int | None
    """Unix seconds. Null: never since the daemon's start."""
    finished_at: int | None
    """Unix seconds, of one that went well."""
    files: int
    size: int
    """Bytes that are written."""
    size_expected: int
    """Bytes of the store, about as many as it will have."""
    error: str
    """Why the last one failed. Empty: it did not."""
    suggested: str
    """A folder that is not there yet."""
    restore_command: str
    """As one types it into a terminal of the node's machine."""
    stop_command: str
    """As one types it into a terminal of the node's machine."""


class ReportStatus(TypedDict):
    """The report that is made, and the one that is there."""

    running: bool
    step: str
    """What is done at the moment. Empty: nothing."""
    began_at: int | None
    """Unix seconds. Null: never since the daemon's start."""
    finished_at: int | None
    """Unix seconds of the one that is there. Null: none."""
    path: str
    """Its file."""
    error: str
    """Why the last one failed. Empty: it did not."""


class SettingView(TypedDict):
    """A setting as it holds for the next start. Credentials in it are hidden."""

    setting: str
    """`SECTION.KEY`."""
    about: str
    """What it does, as the configuration file says it."""
    kind: str
    choices: list[str]
    """All texts that it can be. Empty: any."""
    value: str
    """A text as it is, another kind of value as JSON."""
    default: str
    """The same of a file that says nothing of it."""
    source: str
    """Where the value comes from. The last two hide what the file says."""
    variable: str
    """The environment variable that overrides it."""
    hidden: bool
    """Credentials can be in it, and are not shown."""
    restart: bool
    """The daemon runs with another value until its next start."""


class HealthCheck(TypedDict):
    """One thing that was looked at."""

    name: str
    state: str
    detail: str
    """What was seen."""
    advice: str
    """What to do. Empty: nothing."""
