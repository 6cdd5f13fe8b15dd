"""Calls: relay_accounts. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.relay_accounts import AccountLink, JoinedRelay, RelayAccount, RelayAccountList
    from ravel.types.values import Empty

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


class RelayAccountsCalls(SyncCaller):
    """Methods that wait for the answer."""

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
