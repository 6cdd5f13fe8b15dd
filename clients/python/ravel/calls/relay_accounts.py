"""Calls: relay_accounts. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import AsyncCaller, SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from ravel.types.relay_accounts import AccountLink, JoinedRelay, RelayAccount, RelayAccountList
    from ravel.types.values import Empty

LIST_RELAY_ACCOUNTS: Final[Operation[RelayAccountList]] = Operation(
    name="list_relay_accounts", method="GET", path="/relay/accounts", answer="relay_accounts.RelayAccountList"
)
INVITE_TO_RELAY: Final[Operation[AccountLink]] = Operation(
    name="invite_to_relay",
    method="POST",
    path="/relay/accounts",
    answer="relay_accounts.AccountLink",
    body=("name", "quota", "expires_seconds"),
    defaults={"expires_seconds": 604800},
)
CHANGE_RELAY_ACCOUNT: Final[Operation[RelayAccount]] = Operation(
    name="change_relay_account",
    method="PUT",
    path="/relay/accounts/{account}",
    answer="relay_accounts.RelayAccount",
    body=("quota",),
)
REVOKE_RELAY_ACCOUNT: Final[Operation[Empty]] = Operation(
    name="revoke_relay_account", method="DELETE", path="/relay/accounts/{account}", answer="values.Empty"
)
JOIN_RELAY: Final[Operation[JoinedRelay]] = Operation(
    name="join_relay", method="POST", path="/relay/join", answer="relay_accounts.JoinedRelay", body=("link",)
)


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


class AsyncRelayAccountsCalls(AsyncCaller):
    """Methods to await."""

    async def list_relay_accounts(self) -> RelayAccountList:
        """List the accounts of this relay, with their quotas and what they use."""
        return await self._call(LIST_RELAY_ACCOUNTS, {})

    async def invite_to_relay(self, name: str, quota: int, *, expires_seconds: int = 604800) -> AccountLink:
        """Make a link that gives one node an account at this relay."""
        return await self._call(
            INVITE_TO_RELAY, {"name": name, "quota": quota, "expires_seconds": expires_seconds}
        )

    async def change_relay_account(self, account: str, quota: int) -> RelayAccount:
        """Change an account's quota."""
        return await self._call(CHANGE_RELAY_ACCOUNT, {"account": account, "quota": quota})

    async def revoke_relay_account(self, account: str) -> Empty:
        """Forget an account. Its nodes are strangers again, and what they brought stays until there is no room."""
        return await self._call(REVOKE_RELAY_ACCOUNT, {"account": account})

    async def join_relay(self, link: str) -> JoinedRelay:
        """Use a link to a relay's account: connect to the relay, and have it keep all that this node follows."""
        return await self._call(JOIN_RELAY, {"link": link})
