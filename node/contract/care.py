"""Care for the node: its settings, what is wrong with it, its keys, backups, and a report on what it holds.

What needs a person is open to the node's own token and to pages alone: with it an app could give itself all rights, or
copy all keys.
"""

from typing import Annotated, Final, Literal, TypedDict

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import Endpoint
from node.contract.node import PageCode
from node.contract.values import ByteCount, Count, Empty, Id, Request, one_of
from protocol.limits.users import (
    BACKUP_PATH_SIZE_MAX,
    CHECKS_SECONDS_MAX,
    PASSPHRASE_SIZE_MAX,
    SETTING_SIZE_MAX,
)

_Command = Annotated[str, Meta(description="As one types it into a terminal of the node's machine.")]
_Began = Annotated[int | None, Meta(description="Unix seconds. Null: never since the daemon's start.")]
_Error = Annotated[str, Meta(description="Why the last one failed. Empty: it did not.")]


class SettingChangeRequest(Request, frozen=True):
    """Changes a setting."""

    value: Annotated[
        str,
        Meta(
            max_length=SETTING_SIZE_MAX,
            description="A text as it is; else `true`, `false`, a number, a list or a table as in TOML.",
        ),
    ]


class BackupRequest(Request, frozen=True):
    """Begins a backup."""

    folder: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=BACKUP_PATH_SIZE_MAX,
            description="The folder to create on the node's machine: an absolute path, or one that begins with `~/`.",
        ),
    ]


class WordsRequest(Request, frozen=True):
    """Shows the words of the user's key."""

    passphrase: Annotated[
        str, Meta(max_length=PASSPHRASE_SIZE_MAX, description="Of keys that are sealed with one.")
    ] = ""


class SettingView(TypedDict):
    """A setting as it holds for the next start. Credentials in it are hidden."""

    setting: Annotated[str, Meta(description="`SECTION.KEY`.")]
    about: Annotated[str, Meta(description="What it does, as the configuration file says it.")]
    kind: Literal["text", "flag", "number", "list", "table"]
    choices: Annotated[list[str], Meta(description="All texts that it can be. Empty: any.")]
    value: Annotated[str, Meta(description="A text as it is, another kind of value as JSON.")]
    default: Annotated[str, Meta(description="The same of a file that says nothing of it.")]
    source: Annotated[
        str,
        one_of(
            "default", "file", "environment", "option",
            description="Where the value comes from. The last two hide what the file says.",
        ),
    ]  # fmt: skip
    variable: Annotated[str, Meta(description="The environment variable that overrides it.")]
    hidden: Annotated[bool, Meta(description="Credentials can be in it, and are not shown.")]
    restart: Annotated[bool, Meta(description="The daemon runs with another value until its next start.")]


class SettingList(TypedDict):
    """All settings."""

    config: Annotated[str, Meta(description="The configuration file.")]
    settings: list[SettingView]
    restart_command: _Command
    restarts: Annotated[
        bool, Meta(description="A service of the person's starts the daemon again: `restart_node`.")
    ]


class SettingChange(TypedDict):
    """A setting that was changed in the configuration file."""

    setting: str
    before: str
    value: str
    restart: Annotated[bool, Meta(description="The daemon reads it at its next start.")]
    overridden_by: Annotated[
        str | None, Meta(description="The environment variable that hides it. Null: none.")
    ]


class HealthCheck(TypedDict):
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "warning", "problem"]
    detail: Annotated[str, Meta(description="What was seen.")]
    advice: Annotated[str, Meta(description="What to do. Empty: nothing.")]


class HealthReport(TypedDict):
    """A problem that stops the node from working now or soon."""

    checks: list[HealthCheck]
    problems: Count


class KeyStatus(TypedDict):
    """Storage of the node's keys."""

    node: Id
    user: Id
    protection: Annotated[
        Literal["passphrase", "keyring", "none"],
        Meta(description="What they are sealed by. `none`: nothing."),
    ]
    seal_command: _Command


class KeyWords(TypedDict):
    """The user's key."""

    words: Annotated[list[str], Meta(description="24. Anyone who has them is this user.")]


class BackupStatus(TypedDict):
    """The backup that is made, or the last one."""

    running: bool
    folder: Annotated[str, Meta(description="Empty: none since the daemon's start.")]
    began_at: _Began
    finished_at: Annotated[int | None, Meta(description="Unix seconds, of one that went well.")]
    files: Count
    size: Annotated[ByteCount, Meta(description="Bytes that are written.")]
    size_expected: Annotated[
        ByteCount, Meta(description="Bytes of the store, about as many as it will have.")
    ]
    error: _Error
    suggested: Annotated[str, Meta(description="A folder that is not there yet.")]
    restore_command: _Command
    stop_command: _Command


class ReportStatus(TypedDict):
    """The report that is made, and the one that is there."""

    running: bool
    step: Annotated[
        str, one_of("", "export", "analyze", description="What is done at the moment. Empty: nothing.")
    ]
    began_at: _Began
    finished_at: Annotated[int | None, Meta(description="Unix seconds of the one that is there. Null: none.")]
    path: Annotated[str, Meta(description="Its file.")]
    error: _Error


LIST_SETTINGS: Final = Endpoint(
    name="list_settings",
    method="GET",
    path="/settings",
    scopes=NODE,
    summary="List all settings as they hold for the next start, and where each comes from.",
    answer=SettingList,
    errors=("bad_config",),
)
CHANGE_SETTING: Final = Endpoint(
    name="change_setting",
    method="PUT",
    path="/settings/{setting}",
    scopes=PERSON,
    summary="Change a setting in the configuration file, whose comments stay.",
    details="What `ravel config set` refuses is refused here, too. The daemon reads the file when it starts.",
    request=SettingChangeRequest,
    answer=SettingChange,
)
RESTART_NODE: Final = Endpoint(
    name="restart_node",
    method="POST",
    path="/settings/restart",
    scopes=PERSON,
    summary="End the daemon, for the service of `ravel up --service` to start it again.",
    details="It ends with exit code 75, as on the signal SIGHUP.",
    answer=Empty,
    errors=("bad_config",),
)
CHECK_HEALTH: Final = Endpoint(
    name="check_health",
    method="GET",
    path="/checks",
    scopes=NODE,
    summary="Find what stops the node from working now or soon, as `ravel doctor` does.",
    answer=HealthReport,
    errors=("busy", "bad_config"),
    seconds_max=CHECKS_SECONDS_MAX + 10.0,
)
SHOW_KEYS: Final = Endpoint(
    name="show_keys",
    method="GET",
    path="/keys",
    scopes=NODE,
    summary="Show how the keys are kept.",
    answer=KeyStatus,
    errors=("bad_config",),
)
SHOW_KEY_WORDS: Final = Endpoint(
    name="show_key_words",
    method="POST",
    path="/keys/words",
    scopes=PERSON,
    summary="Show the user's key as 24 words, to be written on paper.",
    request=WordsRequest,
    answer=KeyWords,
    errors=("wrong_passphrase", "locked", "missing_extra", "bad_config"),
)
START_BACKUP: Final = Endpoint(
    name="start_backup",
    method="POST",
    path="/backups",
    scopes=PERSON,
    summary="Begin a backup in a new folder of the node's machine. It has all keys.",
    request=BackupRequest,
    answer=BackupStatus,
    errors=("already_running", "already_exists", "storage_failed", "busy"),
)
SHOW_BACKUP: Final = Endpoint(
    name="show_backup",
    method="GET",
    path="/backups",
    scopes=NODE,
    summary="Show how the backup goes, or how the last one went.",
    answer=BackupStatus,
)
MAKE_REPORT: Final = Endpoint(
    name="make_report",
    method="POST",
    path="/report",
    scopes=PERSON,
    summary="Begin to export what is new and to analyze it on this machine.",
    answer=ReportStatus,
    errors=("already_running", "missing_extra", "busy"),
)
SHOW_REPORT: Final = Endpoint(
    name="show_report",
    method="GET",
    path="/report",
    scopes=NODE,
    summary="Show how the report goes, and when the one that is there was made.",
    answer=ReportStatus,
)
OPEN_REPORT: Final = Endpoint(
    name="open_report",
    method="POST",
    path="/report/codes",
    scopes=PERSON,
    summary="Make a path that shows the report in a frame, once.",
    answer=PageCode,
    is_keyless=True,
)
