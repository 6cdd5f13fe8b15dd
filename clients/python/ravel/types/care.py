"""Types of answers: care."""

from typing import Annotated, Literal, TypedDict

from ravel.types.values import ByteCount, Count, Id, means, one_of

_Command = Annotated[str, means("As one types it into a terminal of the node's machine.")]
_Began = Annotated[int | None, means("Unix seconds. Null: never since the daemon's start.")]
_Error = Annotated[str, means("Why the last one failed. Empty: it did not.")]


class SettingView(TypedDict):
    """A setting as it holds for the next start. Credentials in it are hidden."""

    setting: Annotated[str, means("`SECTION.KEY`.")]
    about: Annotated[str, means("What it does, as the configuration file says it.")]
    kind: Literal["text", "flag", "number", "list", "table"]
    choices: Annotated[list[str], means("All texts that it can be. Empty: any.")]
    value: Annotated[str, means("A text as it is, another kind of value as JSON.")]
    default: Annotated[str, means("The same of a file that says nothing of it.")]
    source: Annotated[
        str,
        one_of(
            "default", "file", "environment", "option",
            description="Where the value comes from. The last two hide what the file says."
        )
    ]  # fmt: skip
    variable: Annotated[str, means("The environment variable that overrides it.")]
    hidden: Annotated[bool, means("Credentials can be in it, and are not shown.")]
    restart: Annotated[bool, means("The daemon runs with another value until its next start.")]


class SettingList(TypedDict):
    """All settings."""

    config: Annotated[str, means("The configuration file.")]
    settings: list[SettingView]
    restart_command: _Command
    restarts: Annotated[bool, means("A service of the person's starts the daemon again: `restart_node`.")]


class SettingChange(TypedDict):
    """A setting that was changed in the configuration file."""

    setting: str
    before: str
    value: str
    restart: Annotated[bool, means("The daemon reads it at its next start.")]
    overridden_by: Annotated[str | None, means("The environment variable that hides it. Null: none.")]


class StartWithLogin(TypedDict):
    """Start of the node with its person's login, by systemd."""

    starts: Annotated[bool, means("A service of the person's starts it, as `ravel up --service` makes one.")]
    hindrance: Annotated[
        str,
        one_of(
            "", "no_systemd", "environment", "passphrase",
            description="Reason why that cannot be changed here. No systemd keeps services of the person; a shell gave the "
            "daemon its settings; or somebody types the passphrase. Empty: none."
        )
    ]  # fmt: skip


class HealthCheck(TypedDict):
    """One thing that was looked at."""

    name: str
    state: Literal["ok", "warning", "problem"]
    detail: Annotated[str, means("What was seen.")]
    advice: Annotated[str, means("What to do. Empty: nothing.")]


class HealthReport(TypedDict):
    """A problem that stops the node from working now or soon."""

    checks: list[HealthCheck]
    problems: Count


class KeyStatus(TypedDict):
    """Storage of the node's keys."""

    node: Id
    user: Id
    protection: Annotated[
        Literal["passphrase", "keyring", "none"], means("What they are sealed by. `none`: nothing.")
    ]
    unused: Annotated[bool, means("Nothing rests on the user's key: `recover_user` replaces it.")]
    recovered: Annotated[bool, means("The user came by words or a file, and is older than this node.")]
    seal_command: _Command


class KeyWords(TypedDict):
    """The user's key."""

    words: Annotated[list[str], means("24. Anyone who has them is this user.")]


class RecoveredUser(TypedDict):
    """The user that a node has from now on."""

    user: Id


class BackupStatus(TypedDict):
    """The backup that is made, or the last one."""

    running: bool
    folder: Annotated[str, means("Empty: none since the daemon's start.")]
    began_at: _Began
    finished_at: Annotated[int | None, means("Unix seconds, of one that went well.")]
    files: Count
    size: Annotated[ByteCount, means("Bytes that are written: what the folder had is not.")]
    size_expected: Annotated[
        ByteCount, means("About as many as the first one in a folder writes. Zero of a later one: not known.")
    ]
    error: _Error
    suggested: Annotated[str, means("A folder with backups of this node, or one that is not there yet.")]
    restore_command: _Command
    stop_command: _Command


class ReportStatus(TypedDict):
    """The report that is made, and the one that is there."""

    running: bool
    step: Annotated[
        str, one_of("", "export", "analyze", description="What is done at the moment. Empty: nothing.")
    ]
    began_at: _Began
    finished_at: Annotated[int | None, means("Unix seconds of the one that is there. Null: none.")]
    path: Annotated[str, means("Its file.")]
    error: _Error
