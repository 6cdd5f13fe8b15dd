# A method is its signature: the decorator makes what it does.
# mypy: disable-error-code="empty-body"
"""Calls: node. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ravel.callers import SyncCaller, calls, watches
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
        StartWithLogin,
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

WRITE_BUNDLE: Final[Operation[bytes]] = Operation(
    "GET", "/repos/{repo}/bundle", seconds_max=3600.0, defaults={"since": None, "branches": ""}
)


class NodeCalls(SyncCaller):
    """Methods that wait for the answer."""

    @calls("GET", "/status", "node.NodeStatus")
    def show_status(self) -> NodeStatus:
        """Show the node at a glance."""

    @calls("GET", "/storage", "node.StorageUse")
    def show_storage(self) -> StorageUse:
        """Show what the store takes on the disk, and how it has grown."""

    @calls("GET", "/log", "node.LogLines")
    def show_log(self) -> LogLines:
        """Show the latest lines of the daemon's log."""

    @calls("GET", "/events", "node.NodeLists")
    def follow_node(self, *, changes: bool = False) -> NodeLists:
        """Show peers and repos, or follow them as they change."""

    @watches(follow_node)
    def watch_node(self, *, changes: bool = False, reconnect: bool = True) -> EventStream:
        """Follow events as they come: `peers`, `repos`, `closing`.

        With `reconnect`, a stream that is cut goes on where it was.
        """

    @calls("POST", "/export", "node.ExportResult", seconds_max=21600)
    def export_store(self) -> ExportResult:
        """Export what is new. The answer comes when it is written."""

    @calls("GET", "/export", "node.ExportView")
    def show_export(self) -> ExportView:
        """Show when the export that is there was made, and its size."""

    @calls("POST", "/export/codes", "node.PageCode")
    def make_export_code(self) -> PageCode:
        """Make a path at which a browser saves the export as a ZIP file, once."""

    @calls("POST", "/codes", "node.PageCode")
    def make_page_code(self) -> PageCode:
        """Make a code by which a web page gets a token of its own, once."""

    @calls("POST", "/qr", "node.QrCode")
    def draw_qr(self, text: str) -> QrCode:
        """Draw a QR code of a link."""

    @calls("GET", "/openapi.json")
    def describe_api(self) -> dict[str, Any]:
        """Describe this API: an OpenAPI 3.1 document."""

    @calls("POST", "/bundles", "bundles.BundleReading", takes_bytes=True, seconds_max=3600.0)
    def read_bundle(self, content: bytes | Iterable[bytes]) -> BundleReading:
        """Read a bundle: take what it carries of this node's repos.

        Every batch is judged as one that comes from a peer, and is durable before the next but one is read. A
        bundle may be read again: what is here is passed over.
        """

    @calls("GET", "/peers", "peers.PeerList")
    def list_peers(self) -> PeerList:
        """List peers, learned addresses and banned peers."""

    @calls("POST", "/peers", "peers.PeerView")
    def add_peer(self, address: str, peer: str, *, relay: bool | None = None) -> PeerView:
        """Keep a connection to a peer, at this address too."""

    @calls("GET", "/peers/{peer}", "peers.PeerSettings")
    def show_peer(self, peer: str) -> PeerSettings:
        """Show what a user or links asked for of a peer that this node keeps a connection to."""

    @calls("PUT", "/peers/{peer}", "peers.PeerView")
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

    @calls("DELETE", "/peers/{peer}", "values.Empty")
    def remove_peer(self, peer: str) -> Empty:
        """Disconnect from a peer and stop dialing it."""

    @calls("PUT", "/peers/{peer}/ban", "peers.PeerBan")
    def ban_peer(self, peer: str) -> PeerBan:
        """Disconnect from a peer, and neither dial nor serve it."""

    @calls("DELETE", "/peers/{peer}/ban", "peers.PeerBan")
    def unban_peer(self, peer: str) -> PeerBan:
        """Let a banned peer connect again."""

    @calls("GET", "/relay", "peers.RelayStatus")
    def show_relay(self) -> RelayStatus:
        """Show the accounts that this relay keeps data for, its refusals, and when it will be full."""

    @calls("GET", "/relay/topics", "peers.RelayedTopicList")
    def list_relayed_topics(self) -> RelayedTopicList:
        """List the topics that this node keeps for others, and the room that they take."""

    @calls("PUT", "/relay/topics/{topic}/pin", "peers.RelayedTopic")
    def pin_topic(self, topic: str) -> RelayedTopic:
        """Never delete a topic to make room. A full id may name a topic that is not here yet."""

    @calls("DELETE", "/relay/topics/{topic}/pin", "peers.RelayedTopic")
    def unpin_topic(self, topic: str) -> RelayedTopic:
        """Let a topic be deleted to make room, like others."""

    @calls("PUT", "/relay/peers/{peer}", "peers.RelayAllowance")
    def allow_peer(self, peer: str) -> RelayAllowance:
        """Make a peer a known peer of this relay, by its full id."""

    @calls("DELETE", "/relay/peers/{peer}", "peers.RelayAllowance")
    def deny_peer(self, peer: str) -> RelayAllowance:
        """Make a peer unknown to this relay."""

    @calls("GET", "/relay/accounts", "relay_accounts.RelayAccountList")
    def list_relay_accounts(self) -> RelayAccountList:
        """List the accounts of this relay, with their quotas and what they use."""

    @calls("POST", "/relay/accounts", "relay_accounts.AccountLink")
    def invite_to_relay(self, name: str, quota: int, *, expires_seconds: int = 604800) -> AccountLink:
        """Make a link that gives one node an account at this relay."""

    @calls("PUT", "/relay/accounts/{account}", "relay_accounts.RelayAccount")
    def change_relay_account(self, account: str, quota: int) -> RelayAccount:
        """Change an account's quota."""

    @calls("DELETE", "/relay/accounts/{account}", "values.Empty")
    def revoke_relay_account(self, account: str) -> Empty:
        """Forget an account. Its nodes are strangers again, and what they brought stays until there is no room."""

    @calls("POST", "/relay/join", "relay_accounts.JoinedRelay")
    def join_relay(self, link: str) -> JoinedRelay:
        """Use a link to a relay's account: connect to the relay, and have it keep all that this node follows."""

    @calls("POST", "/tokens", "tokens.NewToken")
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

    @calls("GET", "/tokens", "tokens.TokenList")
    def list_tokens(self) -> TokenList:
        """List tokens with what they may do and when they were last used."""

    @calls("DELETE", "/tokens/{token}", "made.Revoked", in_query=True)
    def revoke_token(self, token: str, *, made: bool = False) -> Revoked:
        """Revoke a token, at once and for good.

        Its event streams end within 15 s, and get no event before that. The answer lists what its holder made:
        a member, and a link that opens a repo, stay until a person ends them as `advice` says. Where any of
        that stays, the token is kept as revoked, and can be revoked again, with `made` too. Of a name that was
        used again, the one that is good is meant.
        """

    @calls("GET", "/token", "tokens.OwnToken")
    def show_token(self) -> OwnToken:
        """Show the token that this request carries, and the user that it acts for."""

    @calls("POST", "/browsers/codes", "browsers.PairingCode")
    def make_pairing_code(self) -> PairingCode:
        """Make a code by which a browser of another machine gets a token of its own, once.

        The browser gives it to `POST /open`, with a name, at the listener of `[api] tls`.
        """

    @calls("POST", "/browsers", "browsers.KeptBrowser")
    def keep_browser(self, name: str) -> KeptBrowser:
        """Have the page that asks stay signed in, so that its address works as a bookmark.

        Of a page that `ravel open` opened. Its token is good for 180 days from then on, and is listed as a
        browser.
        """

    @calls("GET", "/browsers", "browsers.BrowserList")
    def list_browsers(self) -> BrowserList:
        """List browsers that stay signed in with when they last came, and where others reach this node."""

    @calls("DELETE", "/browsers/{browser}", "made.Revoked", in_query=True)
    def revoke_browser(self, browser: str, *, made: bool = False) -> Revoked:
        """Sign a browser out, at once and for good.

        Its event streams end within 15 s, and get no event before that. The answer lists what was made with it.
        Where any of that stays, it is kept as revoked, and can be revoked again, with `made` too.
        """

    @calls("GET", "/settings", "care.SettingList")
    def list_settings(self) -> SettingList:
        """List all settings as they hold for the next start, and where each comes from."""

    @calls("PUT", "/settings/{setting}", "care.SettingChange")
    def change_setting(self, setting: str, value: str) -> SettingChange:
        """Change a setting in the configuration file, whose comments stay.

        What `ravel config set` refuses is refused here, too. The daemon reads the file when it starts.
        """

    @calls("POST", "/settings/restart", "values.Empty")
    def restart_node(self) -> Empty:
        """End the daemon, for the service of `ravel up --service` to start it again.

        It ends with exit code 75, as on the signal SIGHUP.
        """

    @calls("GET", "/settings/start", "care.StartWithLogin")
    def show_start_with_login(self) -> StartWithLogin:
        """Show whether the node starts with its person's login."""

    @calls("POST", "/settings/start", "care.StartWithLogin")
    def start_with_login(self, starts: bool) -> StartWithLogin:
        """Have systemd start the node with its person's login, or no more.

        The daemon that runs goes on. `ravel up --service` also hands it over at once.
        """

    @calls("GET", "/checks", "care.HealthReport", seconds_max=70.0)
    def check_health(self) -> HealthReport:
        """Find what stops the node from working now or soon, as `ravel doctor` does."""

    @calls("GET", "/keys", "care.KeyStatus")
    def show_keys(self) -> KeyStatus:
        """Show how the keys are kept."""

    @calls("POST", "/keys/words", "care.KeyWords")
    def show_key_words(self, *, passphrase: str = "") -> KeyWords:
        """Show the user's key as 24 words, to be written on paper."""

    @calls("POST", "/keys/recovery", "care.RecoveredUser")
    def recover_user(
        self, *, words: str = "", key_file: str = "", file_passphrase: str = "", passphrase: str = ""
    ) -> RecoveredUser:
        """Be the user of 24 words or of a key file from now on, instead of one whose key is unused.

        The daemon starts anew in the same process. It writes to a repo once a peer that follows it was
        compared.
        """

    @calls("POST", "/backups", "care.BackupStatus")
    def start_backup(self, folder: str) -> BackupStatus:
        """Begin a backup in a folder of the node's machine. It has all keys.

        What earlier backups in the folder have is not written again.
        """

    @calls("GET", "/backups", "care.BackupStatus")
    def show_backup(self) -> BackupStatus:
        """Show how the backup goes, or how the last one went."""

    @calls("POST", "/report", "care.ReportStatus")
    def make_report(self) -> ReportStatus:
        """Begin to export what is new and to analyze it on this machine."""

    @calls("GET", "/report", "care.ReportStatus")
    def show_report(self) -> ReportStatus:
        """Show how the report goes, and when the one that is there was made."""

    @calls("POST", "/report/codes", "node.PageCode")
    def open_report(self) -> PageCode:
        """Make a path that shows the report in a frame, once."""
