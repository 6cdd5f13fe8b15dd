"""Accounts of a relay, for its operator: invite, list, change, revoke."""

import secrets
from collections.abc import Callable

from sqlalchemy import Connection

from node.membership.names import check_name
from node.membership.sharing import reach_text
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.relay.relay import RelayService
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.crypto.keys import AccountToken
from protocol.formats.links import PeerAddress, RelayLink, relay_link_text
from protocol.formats.text import id_text
from protocol.ids import PeerId
from protocol.limits.formats import LINK_PEER_COUNT_MAX, MIB
from protocol.limits.peers import ACCOUNT_INVITATIONS_MAX, RELAY_ACCOUNTS_MAX
from ravel.characters import composed
from ravel.types.relay_accounts import AccountLink, RelayAccount, RelayAccountList
from ravel.types.values import Empty
from storage.relay.accounts import (
    AccountRow,
    AccountsFull,
    change_quota,
    find_account,
    invite_to_account,
    revoke_account,
    sum_quotas,
)


class RelayAccounts:
    """Raises ServiceError `bad_config` on a node that is no relay."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        find_relay: Callable[[], RelayService],
        *,
        addresses: OwnAddresses,
        node_key: PeerId,
        clock: Callable[[], float],
    ) -> None:
        self._hub = hub
        self._network = network
        self._find_relay = find_relay
        self._addresses = addresses
        self._node_key = node_key
        self._clock = clock

    async def list_all(self) -> RelayAccountList:
        """List all accounts by name."""
        relay = self._find_relay()
        rows = await relay.list_accounts()
        connected = self._connected()
        return {
            "accounts": [self._view(row, connected) for row in rows],
            "takes_strangers": relay.quotas.takes_strangers,
        }

    async def invite(self, name: str, quota: int, *, expires_seconds: int) -> AccountLink:
        """Make a link that gives one node the account of that name, once.

        Raises ServiceError `bad_request`, and `too_large` where the relay has no room for the quota or the link.
        """
        relay = self._find_relay()
        name = check_name(name)
        told = [PeerAddress(one.address, self._node_key) for one in self._addresses.for_links]
        if not told:
            raise ServiceError(
                "bad_config",
                "this node knows no address at which others reach it",
                "ravel config set network.advertise HOST:PORT, then `ravel down` and `ravel up`",
            )
        now = int(self._clock())
        token = AccountToken(secrets.token_bytes(32))
        database = self._hub.replica.database

        def make_link(connection: Connection) -> None:
            _check_room(connection, name, quota, relay.quotas.total)
            invite_to_account(database, connection, name, quota, token, now + expires_seconds, now)

        try:
            await relay.change(make_link)
        except AccountsFull:
            raise ServiceError(
                "too_large",
                f"a relay has at most {RELAY_ACCOUNTS_MAX} accounts, and one of them {ACCOUNT_INVITATIONS_MAX} unused links",
                "`ravel relay accounts` lists them; `ravel relay revoke NAME` forgets one",
            ) from None
        peers = tuple(told[:LINK_PEER_COUNT_MAX])
        return {
            "name": name,
            "quota": quota,
            "link": relay_link_text(RelayLink(token, peers)),
            "expires_at": now + expires_seconds,
            "addresses": [one.address for one in peers],
            "reach": reach_text(self._addresses.reach),
        }

    async def change(self, account: str, quota: int) -> RelayAccount:
        """Change an account's quota. Raises ServiceError `not_found`, `too_large`."""
        relay, account = self._find_relay(), composed(account)

        def change(connection: Connection) -> bool:
            _check_room(connection, account, quota, relay.quotas.total)
            return change_quota(connection, account, quota)

        if not await relay.change(change):
            raise _no_account(account)
        for row in await relay.list_accounts():
            if row.account.name == account:
                return self._view(row, self._connected())
        raise _no_account(account)  # it was revoked meanwhile

    async def revoke(self, account: str) -> Empty:
        """Forget an account. Raises ServiceError `not_found`."""
        relay, account = self._find_relay(), composed(account)
        if not await relay.change(lambda connection: revoke_account(connection, account)):
            raise _no_account(account)
        return {}

    def _connected(self) -> set[PeerId]:
        return {one.peer for one in self._network.peers if one.connection is not None}

    def _view(self, row: AccountRow, connected: set[PeerId]) -> RelayAccount:
        switch = self._network.switch
        circuits, circuit_bytes = switch.usage_of(row.nodes) if switch is not None else (0, 0)
        return {
            "name": row.account.name,
            "quota": row.account.quota,
            "used": row.used,
            "nodes": list(map(id_text, row.nodes)),
            "connected": sum(one in connected for one in row.nodes),
            "circuits": circuits,
            "circuit_bytes": circuit_bytes,
            "links": row.links,
            "created_at": row.created_at,
        }


def _no_account(name: str) -> ServiceError:
    return ServiceError("not_found", f"no account is called {name!r}", "`ravel relay accounts` lists them")


def _check_room(connection: Connection, name: str, quota: int, size_max: int) -> None:
    """Refuse a quota that the relay could not give beside the others. One that shrinks is taken. Raises ServiceError."""
    there = find_account(connection, name)
    others = sum_quotas(connection, name)
    if others + quota <= size_max or (there is not None and quota <= there.quota):
        return
    left = (size_max - others) // MIB
    most = f"give at most {left}MiB, " if left > 0 else ""
    raise ServiceError(
        "too_large",
        f"the relay keeps {_gibibytes(size_max)} (relay.size_max), and other accounts have {_gibibytes(others)} of it",
        f"{most}take some from others (`ravel relay change`), or "
        f"`ravel config set relay.size_max {-(-(others + quota) // MIB)}`, then `ravel down` and `ravel up`",
    )


def _gibibytes(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GiB" if size >= 1 << 30 else f"{size / MIB:,.1f} MiB"
