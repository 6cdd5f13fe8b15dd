"""Calls: node. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Iterable, Sequence

    from ravel.event_streams import EventStream
    from ravel.types.browsers import BrowserList, KeptBrowser, PairingCode
    from ravel.types.bundles import BundleReading
    from ravel.types.care import (
        BackupStatus,
        HealthReport,
        KeyStatus,
        KeyWords,
        RecoveredUser,
        ReportStatus,
        SettingChange,
        SettingList,
    )
    from ravel.types.made import Revoked
    from ravel.types.node import (
        ExportResult,
        ExportView,
        LogLines,
        NodeLists,
        NodeStatus,
        PageCode,
        QrCode,
        StorageUse,
    )
    from ravel.types.peers import (
        PeerBan,
        PeerList,
        PeerSettings,
        PeerView,
        RelayAllowance,
        RelayedTopic,
        RelayedTopicList,
        RelayStatus,
    )
    from ravel.types.relay_accounts import AccountLink, JoinedRelay, RelayAccount, RelayAccountList
    from ravel.types.tokens import NewToken, OwnToken, TokenList
    from ravel.types.values import Empty

SHOW_STATUS: Final[Operation[NodeStatus]] = Operation("GET", "/status", "node.NodeStatus")
SHOW_STORAGE: Final[Operation[StorageUse]] = Operation("GET", "/storage", "node.StorageUse")
SHOW_LOG: Final[Operation[LogLines]] = Operation("GET", "/log", "node.LogLines")
FOLLOW_NODE: Final[Operation[NodeLists]] = Operation(
    "GET", "/events", "node.NodeLists", defaults={"changes": False}
)
EXPORT_STORE: Final[Operation[ExportResult]] = Operation(
    "POST", "/export", "node.ExportResult", seconds_max=21600
)
SHOW_EXPORT: Final[Operation[ExportView]] = Operation("GET", "/export", "node.ExportView")
MAKE_EXPORT_CODE: Final[Operation[PageCode]] = Operation("POST", "/export/codes", "node.PageCode")
MAKE_PAGE_CODE: Final[Operation[PageCode]] = Operation("POST", "/codes", "node.PageCode")
DRAW_QR: Final[Operation[QrCode]] = Operation("POST", "/qr", "node.QrCode")
DESCRIBE_API: Final[Operation[dict[str, Any]]] = Operation("GET", "/openapi.json")
WRITE_BUNDLE: Final[Operation[bytes]] = Operation(
    "GET", "/repos/{repo}/bundle", defaults={"since": None, "branches": ""}, seconds_max=3600.0
)
READ_BUNDLE: Final[Operation[BundleReading]] = Operation(
    "POST", "/bundles", "bundles.BundleReading", takes_bytes=True, seconds_max=3600.0
)
LIST_PEERS: Final[Operation[PeerList]] = Operation("GET", "/peers", "peers.PeerList")
ADD_PEER: Final[Operation[PeerView]] = Operation("POST", "/peers", "peers.PeerView", defaults={"relay": None})
SHOW_PEER: Final[Operation[PeerSettings]] = Operation("GET", "/peers/{peer}", "peers.PeerSettings")
RESTORE_PEER: Final[Operation[PeerView]] = Operation("PUT", "/peers/{peer}", "peers.PeerView")
REMOVE_PEER: Final[Operation[Empty]] = Operation("DELETE", "/peers/{peer}", "values.Empty")
BAN_PEER: Final[Operation[PeerBan]] = Operation("PUT", "/peers/{peer}/ban", "peers.PeerBan")
UNBAN_PEER: Final[Operation[PeerBan]] = Operation("DELETE", "/peers/{peer}/ban", "peers.PeerBan")
SHOW_RELAY: Final[Operation[RelayStatus]] = Operation("GET", "/relay", "peers.RelayStatus")
LIST_RELAYED_TOPICS: Final[Operation[RelayedTopicList]] = Operation(
    "GET", "/relay/topics", "peers.RelayedTopicList"
)
PIN_TOPIC: Final[Operation[RelayedTopic]] = Operation(
    "PUT", "/relay/topics/{topic}/pin", "peers.RelayedTopic"
)
UNPIN_TOPIC: Final[Operation[RelayedTopic]] = Operation(
    "DELETE", "/relay/topics/{topic}/pin", "peers.RelayedTopic"
)
ALLOW_PEER: Final[Operation[RelayAllowance]] = Operation("PUT", "/relay/peers/{peer}", "peers.RelayAllowance")
DENY_PEER: Final[Operation[RelayAllowance]] = Operation(
    "DELETE", "/relay/peers/{peer}", "peers.RelayAllowance"
)
LIST_RELAY_ACCOUNTS: Final[Operation[RelayAccountList]] = Operation(
    "GET", "/relay/accounts", "relay_accounts.RelayAccountList"
)
INVITE_TO_RELAY: Final[Operation[AccountLink]] = Operation(
    "POST", "/relay/accounts", "relay_accounts.AccountLink", defaults={"expires_seconds": 604800}
)
CHANGE_RELAY_ACCOUNT: Final[Operation[RelayAccount]] = Operation(
    "PUT", "/relay/accounts/{account}", "relay_accounts.RelayAccount"
)
REVOKE_RELAY_ACCOUNT: Final[Operation[Empty]] = Operation(
    "DELETE", "/relay/accounts/{account}", "values.Empty"
)
JOIN_RELAY: Final[Operation[JoinedRelay]] = Operation("POST", "/relay/join", "relay_accounts.JoinedRelay")
CREATE_TOKEN: Final[Operation[NewToken]] = Operation(
    "POST",
    "/tokens",
    "tokens.NewToken",
    defaults={"repos": (), "branches": (), "origins": (), "expires_seconds": 7776000},
)
LIST_TOKENS: Final[Operation[TokenList]] = Operation("GET", "/tokens", "tokens.TokenList")
REVOKE_TOKEN: Final[Operation[Revoked]] = Operation(
    "DELETE", "/tokens/{token}", "made.Revoked", defaults={"made": False}, in_query=True
)
SHOW_TOKEN: Final[Operation[OwnToken]] = Operation("GET", "/token", "tokens.OwnToken")
MAKE_PAIRING_CODE: Final[Operation[PairingCode]] = Operation(
    "POST", "/browsers/codes", "browsers.PairingCode"
)
KEEP_BROWSER: Final[Operation[KeptBrowser]] = Operation("POST", "/browsers", "browsers.KeptBrowser")
LIST_BROWSERS: Final[Operation[BrowserList]] = Operation("GET", "/browsers", "browsers.BrowserList")
REVOKE_BROWSER: Final[Operation[Revoked]] = Operation(
    "DELETE", "/browsers/{browser}", "made.Revoked", defaults={"made": False}, in_query=True
)
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
RECOVER_USER: Final[Operation[RecoveredUser]] = Operation(
    "POST",
    "/keys/recovery",
    "care.RecoveredUser",
    defaults={"words": "", "key_file": "", "file_passphrase": "", "passphrase": ""},
)
START_BACKUP: Final[Operation[BackupStatus]] = Operation("POST", "/backups", "care.BackupStatus")
SHOW_BACKUP: Final[Operation[BackupStatus]] = Operation("GET", "/backups", "care.BackupStatus")
MAKE_REPORT: Final[Operation[ReportStatus]] = Operation("POST", "/report", "care.ReportStatus")
SHOW_REPORT: Final[Operation[ReportStatus]] = Operation("GET", "/report", "care.ReportStatus")
OPEN_REPORT: Final[Operation[PageCode]] = Operation("POST", "/report/codes", "node.PageCode")


class NodeCalls(SyncCaller):
    """Methods that wait for the answer."""

    def show_status(self) -> NodeStatus:
        """Show the node at a glance."""
        return self._call(SHOW_STATUS, {})

    def show_storage(self) -> StorageUse:
        """Show what the store takes on the disk, and how it has grown."""
        return self._call(SHOW_STORAGE, {})

    def show_log(self) -> LogLines:
        """Show the latest lines of the daemon's log."""
        return self._call(SHOW_LOG, {})

    def follow_node(self, *, changes: bool = False) -> NodeLists:
        """Show peers and repos, or follow them as they change."""
        return self._call(FOLLOW_NODE, {"changes": changes})

    def watch_node(self, *, changes: bool = False, reconnect: bool = True) -> EventStream:
        """Follow events as they come: `peers`, `repos`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """
        return self._watch(FOLLOW_NODE, {"changes": changes}, reconnect=reconnect)

    def export_store(self) -> ExportResult:
        """Export what is new. The answer comes when it is written."""
        return self._call(EXPORT_STORE, {})

    def show_export(self) -> ExportView:
        """Show when the export that is there was made, and its size."""
        return self._call(SHOW_EXPORT, {})

    def make_export_code(self) -> PageCode:
        """Make a path at which a browser saves the export as a ZIP file, once."""
        return self._call(MAKE_EXPORT_CODE, {})

    def make_page_code(self) -> PageCode:
        """Make a code by which a web page gets a token of its own, once."""
        return self._call(MAKE_PAGE_CODE, {})

    def draw_qr(self, text: str) -> QrCode:
        """Draw a QR code of a link."""
        return self._call(DRAW_QR, {"text": text})

    def describe_api(self) -> dict[str, Any]:
        """Describe this API: an OpenAPI 3.1 document."""
        return self._call(DESCRIBE_API, {})

    def read_bundle(self, content: bytes | Iterable[bytes]) -> BundleReading:
        """Read a bundle: take what it carries of this node's repos.

        Every batch is judged as one that comes from a peer, and is durable before the next but one is read. A
        bundle may be read again: what is here is passed over.
        """
        return self._call(READ_BUNDLE, {}, content)

    def list_peers(self) -> PeerList:
        """List peers, learned addresses and banned peers."""
        return self._call(LIST_PEERS, {})

    def add_peer(self, address: str, peer: str, *, relay: bool | None = None) -> PeerView:
        """Keep a connection to a peer, at this address too."""
        return self._call(ADD_PEER, {"address": address, "peer": peer, "relay": relay})

    def show_peer(self, peer: str) -> PeerSettings:
        """Show what a user or links asked for of a peer that this node keeps a connection to."""
        return self._call(SHOW_PEER, {"peer": peer})

    def restore_peer(
        self,
        peer: str,
        address: str,
        others: Sequence[str],
        from_link: bool,
        relay: bool,
        repos: Sequence[str],
    ) -> PeerView:
        """Keep a connection to a peer, of the full id, with just these settings: to take back its removal."""
        return self._call(
            RESTORE_PEER,
            {
                "peer": peer,
                "address": address,
                "others": others,
                "from_link": from_link,
                "relay": relay,
                "repos": repos,
            },
        )

    def remove_peer(self, peer: str) -> Empty:
        """Disconnect from a peer and stop dialing it."""
        return self._call(REMOVE_PEER, {"peer": peer})

    def ban_peer(self, peer: str) -> PeerBan:
        """Disconnect from a peer, and neither dial nor serve it."""
        return self._call(BAN_PEER, {"peer": peer})

    def unban_peer(self, peer: str) -> PeerBan:
        """Let a banned peer connect again."""
        return self._call(UNBAN_PEER, {"peer": peer})

    def show_relay(self) -> RelayStatus:
        """Show the accounts that this relay keeps data for, its refusals, and when it will be full."""
        return self._call(SHOW_RELAY, {})

    def list_relayed_topics(self) -> RelayedTopicList:
        """List the topics that this node keeps for others, and the room that they take."""
        return self._call(LIST_RELAYED_TOPICS, {})

    def pin_topic(self, topic: str) -> RelayedTopic:
        """Never delete a topic to make room. A full id may name a topic that is not here yet."""
        return self._call(PIN_TOPIC, {"topic": topic})

    def unpin_topic(self, topic: str) -> RelayedTopic:
        """Let a topic be deleted to make room, like others."""
        return self._call(UNPIN_TOPIC, {"topic": topic})

    def allow_peer(self, peer: str) -> RelayAllowance:
        """Make a peer a known peer of this relay, by its full id."""
        return self._call(ALLOW_PEER, {"peer": peer})

    def deny_peer(self, peer: str) -> RelayAllowance:
        """Make a peer unknown to this relay."""
        return self._call(DENY_PEER, {"peer": peer})

    def list_relay_accounts(self) -> RelayAccountList:
        """List the accounts of this relay, with their quotas and what they use."""
        return self._call(LIST_RELAY_ACCOUNTS, {})

    def invite_to_relay(self, name: str, quota: int, *, expires_seconds: int = 604800) -> AccountLink:
        """Make a link that gives one node an account at this relay."""
        return self._call(INVITE_TO_RELAY, {"name": name, "quota": quota, "expires_seconds": expires_seconds})

    def change_relay_account(self, account: str, quota: int) -> RelayAccount:
        """Change an account's quota."""
        return self._call(CHANGE_RELAY_ACCOUNT, {"account": account, "quota": quota})

    def revoke_relay_account(self, account: str) -> Empty:
        """Forget an account. Its nodes are strangers again, and what they brought stays until there is no room."""
        return self._call(REVOKE_RELAY_ACCOUNT, {"account": account})

    def join_relay(self, link: str) -> JoinedRelay:
        """Use a link to a relay's account: connect to the relay, and have it keep all that this node follows."""
        return self._call(JOIN_RELAY, {"link": link})

    def create_token(
        self,
        name: str,
        actions: Sequence[str],
        *,
        repos: Sequence[str] = (),
        branches: Sequence[str] = (),
        origins: Sequence[str] = (),
        expires_seconds: int = 7776000,
    ) -> NewToken:
        """Make a token for an app.

        A name that an expired or revoked token has is free.
        """
        return self._call(
            CREATE_TOKEN,
            {
                "name": name,
                "actions": actions,
                "repos": repos,
                "branches": branches,
                "origins": origins,
                "expires_seconds": expires_seconds,
            },
        )

    def list_tokens(self) -> TokenList:
        """List tokens with what they may do and when they were last used."""
        return self._call(LIST_TOKENS, {})

    def revoke_token(self, token: str, *, made: bool = False) -> Revoked:
        """Revoke a token, at once and for good.

        Its event streams end within 15 s, and get no event before that. The answer lists what its holder made:
        a member, and a link that opens a repo, stay until a person ends them as `advice` says. Where any of
        that stays, the token is kept as revoked, and can be revoked again, with `made` too. Of a name that was
        used again, the one that is good is meant.
        """
        return self._call(REVOKE_TOKEN, {"token": token, "made": made})

    def show_token(self) -> OwnToken:
        """Show the token that this request carries, and the user that it acts for."""
        return self._call(SHOW_TOKEN, {})

    def make_pairing_code(self) -> PairingCode:
        """Make a code by which a browser of another machine gets a token of its own, once.

        The browser gives it to `POST /open`, with a name, at the listener of `[api] tls`.
        """
        return self._call(MAKE_PAIRING_CODE, {})

    def keep_browser(self, name: str) -> KeptBrowser:
        """Have the page that asks stay signed in, so that its address works as a bookmark.

        Of a page that `ravel open` opened. Its token is good for 180 days from then on, and is listed as a
        browser.
        """
        return self._call(KEEP_BROWSER, {"name": name})

    def list_browsers(self) -> BrowserList:
        """List browsers that stay signed in with when they last came, and where others reach this node."""
        return self._call(LIST_BROWSERS, {})

    def revoke_browser(self, browser: str, *, made: bool = False) -> Revoked:
        """Sign a browser out, at once and for good.

        Its event streams end within 15 s, and get no event before that. The answer lists what was made with it.
        Where any of that stays, it is kept as revoked, and can be revoked again, with `made` too.
        """
        return self._call(REVOKE_BROWSER, {"browser": browser, "made": made})

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

    def recover_user(
        self, *, words: str = "", key_file: str = "", file_passphrase: str = "", passphrase: str = ""
    ) -> RecoveredUser:
        """Be the user of 24 words or of a key file from now on, instead of one whose key is unused.

        The daemon starts anew in the same process. It writes to a repo once a peer that follows it was
        compared.
        """
        return self._call(
            RECOVER_USER,
            {
                "words": words,
                "key_file": key_file,
                "file_passphrase": file_passphrase,
                "passphrase": passphrase,
            },
        )

    def start_backup(self, folder: str) -> BackupStatus:
        """Begin a backup in a folder of the node's machine. It has all keys.

        What earlier backups in the folder have is not written again.
        """
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
