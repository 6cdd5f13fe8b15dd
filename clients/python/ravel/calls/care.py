"""Calls: care. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.care import (
        BackupStatus,
        HealthReport,
        KeyStatus,
        KeyWords,
        ReportStatus,
        SettingChange,
        SettingList,
    )
    from ravel.types.node import PageCode
    from ravel.types.values import Empty

LIST_SETTINGS: Final[Operation[SettingList]] = Operation("GET", "/settings", "care.SettingList")
CHANGE_SETTING: Final[Operation[SettingChange]] = Operation(
    "PUT", "/settings/{setting}", "care.SettingChange"
)
RESTART_NODE: Final[Operation[Empty]] = Operation("POST", "/settings/restart", "values.Empty")
CHECK_HEALTH: Final[Operation[HealthReport]] = Operation(
    "GET", "/checks", "care.HealthReport", seconds_max=70.0
)
SHOW_KEYS: Final[Operation[KeyStatus]] = Operation("GET", "/keys", "care.KeyStatus")
SHOW_KEY_WORDS: Final[Operation[KeyWords]] = Operation(
    "POST", "/keys/words", "care.KeyWords", defaults={"passphrase": ""}
)
START_BACKUP: Final[Operation[BackupStatus]] = Operation("POST", "/backups", "care.BackupStatus")
SHOW_BACKUP: Final[Operation[BackupStatus]] = Operation("GET", "/backups", "care.BackupStatus")
MAKE_REPORT: Final[Operation[ReportStatus]] = Operation("POST", "/report", "care.ReportStatus")
SHOW_REPORT: Final[Operation[ReportStatus]] = Operation("GET", "/report", "care.ReportStatus")
OPEN_REPORT: Final[Operation[PageCode]] = Operation("POST", "/report/codes", "node.PageCode")


class CareCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_settings(self) -> SettingList:
        """List all settings as they hold for the next start, and where each comes from."""
        return self._call(LIST_SETTINGS, {})

    def change_setting(self, setting: str, value: str) -> SettingChange:
        """Change a setting in the configuration file, whose comments stay.

        What `ravel config set` refuses is refused here, too. The daemon reads the file when it starts.
        """
        return self._call(CHANGE_SETTING, {"setting": setting, "value": value})

    def restart_node(self) -> Empty:
        """End the daemon, for the service of `ravel up --service` to start it again.

        It ends with exit code 75, as on the signal SIGHUP.
        """
        return self._call(RESTART_NODE, {})

    def check_health(self) -> HealthReport:
        """Find what stops the node from working now or soon, as `ravel doctor` does."""
        return self._call(CHECK_HEALTH, {})

    def show_keys(self) -> KeyStatus:
        """Show how the keys are kept."""
        return self._call(SHOW_KEYS, {})

    def show_key_words(self, *, passphrase: str = "") -> KeyWords:
        """Show the user's key as 24 words, to be written on paper."""
        return self._call(SHOW_KEY_WORDS, {"passphrase": passphrase})

    def start_backup(self, folder: str) -> BackupStatus:
        """Begin a backup in a new folder of the node's machine. It has all keys."""
        return self._call(START_BACKUP, {"folder": folder})

    def show_backup(self) -> BackupStatus:
        """Show how the backup goes, or how the last one went."""
        return self._call(SHOW_BACKUP, {})

    def make_report(self) -> ReportStatus:
        """Begin to export what is new and to analyze it on this machine."""
        return self._call(MAKE_REPORT, {})

    def show_report(self) -> ReportStatus:
        """Show how the report goes, and when the one that is there was made."""
        return self._call(SHOW_REPORT, {})

    def open_report(self) -> PageCode:
        """Make a path that shows the report in a frame, once."""
        return self._call(OPEN_REPORT, {})
