"""Care for the node: its settings, what is wrong with it, its keys, backups, and a report on what it holds.

What needs a person is open to the node's own token and to pages alone: with it an app could give itself all rights, or
copy all keys.
"""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE, PERSON
from node.contract.endpoint import Endpoint
from node.contract.values import Request
from protocol.limits.files import KEY_FILE_SIZE_MAX
from protocol.limits.users import (
    BACKUP_PATH_SIZE_MAX,
    CHECKS_SECONDS_MAX,
    PASSPHRASE_SIZE_MAX,
    SETTING_SIZE_MAX,
    WORDS_SIZE_MAX,
)
from ravel.types.care import (
    BackupStatus,
    HealthReport,
    KeyStatus,
    KeyWords,
    RecoveredUser,
    ReportStatus,
    SettingChange,
    SettingList,
    StartWithLogin,
)
from ravel.types.node import PageCode
from ravel.types.values import Empty


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
            description="The folder of backups on the node's machine: an absolute path, or one that begins with `~/`.",
        ),
    ]


class WordsRequest(Request, frozen=True):
    """Shows the words of the user's key."""

    passphrase: Annotated[
        str, Meta(max_length=PASSPHRASE_SIZE_MAX, description="Of keys that are sealed with one.")
    ] = ""


class RecoveryRequest(Request, frozen=True):
    """Makes a node its user's again, by words or by a key file."""

    words: Annotated[
        str, Meta(max_length=WORDS_SIZE_MAX, description="The 24 words, in any case and spacing.")
    ] = ""
    key_file: Annotated[
        str,
        Meta(
            max_length=KEY_FILE_SIZE_MAX,
            description="Content of a file of `ravel key export`, or of `keys.json` of a node or a backup.",
        ),
    ] = ""
    file_passphrase: Annotated[
        str, Meta(max_length=PASSPHRASE_SIZE_MAX, description="Of that file, where it is sealed with one.")
    ] = ""
    passphrase: Annotated[
        str, Meta(max_length=PASSPHRASE_SIZE_MAX, description="Of this node's keys, as for their words.")
    ] = ""


class StartWithLoginRequest(Request, frozen=True):
    """Start with the login, or none."""

    starts: bool


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
SHOW_START_WITH_LOGIN: Final = Endpoint(
    name="show_start_with_login",
    method="GET",
    path="/settings/start",
    scopes=NODE,
    summary="Show whether the node starts with its person's login.",
    answer=StartWithLogin,
    errors=("bad_config",),
)
START_WITH_LOGIN: Final = Endpoint(
    name="start_with_login",
    method="POST",
    path="/settings/start",
    scopes=PERSON,
    summary="Have systemd start the node with its person's login, or no more.",
    details="The daemon that runs goes on. `ravel up --service` also hands it over at once.",
    request=StartWithLoginRequest,
    answer=StartWithLogin,
    errors=("bad_config", "already_exists", "storage_failed"),
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
RECOVER_USER: Final = Endpoint(
    name="recover_user",
    method="POST",
    path="/keys/recovery",
    scopes=PERSON,
    summary="Be the user of 24 words or of a key file from now on, instead of one whose key is unused.",
    details="The daemon starts anew in the same process. It writes to a repo once a peer that follows it was compared.",
    request=RecoveryRequest,
    answer=RecoveredUser,
    errors=("bad_input", "wrong_passphrase", "locked", "missing_extra", "bad_config", "already_exists"),
)
START_BACKUP: Final = Endpoint(
    name="start_backup",
    method="POST",
    path="/backups",
    scopes=PERSON,
    summary="Begin a backup in a folder of the node's machine. It has all keys.",
    details="What earlier backups in the folder have is not written again.",
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
