"""Uses a link to an account at a relay: keeps a connection to the relay, and shows it the link's secret."""

from typing import Final

import trio

from node.network.network import Network
from node.network.peers import Peers, check_dialable
from node.runtime.errors import ServiceError
from node.sync.block_requests import NotFetched
from node.sync.hub import Hub
from node.sync.relay_client import RelayClient
from protocol.codec import DecodeError
from protocol.formats.links import RelayLink, parse_relay_link
from protocol.formats.text import id_text, pasted_word
from protocol.ids import PeerId
from protocol.limits.peers import ACCOUNT_JOIN_SECONDS
from protocol.session.outputs import AccountAnswered
from ravel.types.relay_accounts import JoinedRelay

_LOOK_SECONDS: Final = 0.1
_ADDRESSES_KEPT_MAX: Final = 4
"""Addresses of a link that are kept: as many as a relay states, and where it was reached. Others of the user stay."""
_REFUSALS: Final = {
    "used_link": ("not_permitted", "the link was used by another node"),
    "expired_link": ("expired", "the link is no longer valid"),
    "unknown_link": ("expired", "the relay does not know the link: the account may have been revoked"),
    "account_full": ("too_large", "the account has as many nodes as it may"),
}
_ADVICE: Final = "ask the relay's operator for a new link: `ravel relay invite` there"


class RelayJoining:
    """Accounts at others' relays."""

    def __init__(self, hub: Hub, peers: Peers, network: Network) -> None:
        self._hub = hub
        self._peers = peers
        self._network = network

    async def join(self, link: str) -> JoinedRelay:
        """Join the account of a link. Raises ServiceError."""
        found = _parse(link)
        relay, addresses = found.peers[0].peer, [one.address for one in found.peers]
        was_kept = self._network.is_kept(relay)
        # Until it has given the account it is to keep nothing more: topics that it refuses are not offered again. Nor does
        # the link change what the user has named: anyone can write one with a relay's key and false addresses.
        await self._peers.try_addresses(relay, addresses)
        with trio.move_on_after(ACCOUNT_JOIN_SECONDS):
            answer = await self._ask(found)
            if answer.refusal:
                if not was_kept:  # without the account the user did not ask for a connection
                    await self._peers.remove(id_text(relay))
                code, problem = _REFUSALS.get(answer.refusal, ("not_permitted", answer.refusal))
                raise ServiceError(code, problem, _ADVICE)
            address = self._dialed_at(relay) or addresses[0]
            reached = list(dict.fromkeys([address, *addresses]))[:_ADDRESSES_KEPT_MAX]
            await self._peers.add_configured(relay, reached, is_relay=True)
            self._peers.begin_anew(relay)
            return {
                "relay": id_text(relay),
                "address": address,
                "quota": answer.quota,
                "used": answer.used,
            }
        raise ServiceError(
            "incomplete",
            f"the relay at {', '.join(addresses)} does not answer, or has no accounts",
            "`ravel peer list` shows why; run the command again: the link was not used up",
        )

    async def _ask(self, link: RelayLink) -> AccountAnswered:
        while True:
            try:
                return await (await self._find(link.peers[0].peer)).join_account(link.token)
            except NotFetched:
                await trio.sleep(_LOOK_SECONDS)  # it has left, and is dialed again

    def _dialed_at(self, relay: PeerId) -> str:
        """Return the address at which this node has reached the relay; empty where it is connected otherwise."""
        dialed = (one for one in self._network.peers if one.peer == relay and one.direction == "out")
        return next((one.address for one in dialed if one.connection is not None), "")

    async def _find(self, relay: PeerId) -> RelayClient:
        while True:
            for port in self._hub.relay_clients:
                if port.peer == relay and port.gives_accounts:
                    return port
            await trio.sleep(_LOOK_SECONDS)  # a connection that begins does not tell


def _parse(text: str) -> RelayLink:
    try:
        link = parse_relay_link(pasted_word(text))
    except DecodeError as error:
        raise ServiceError(
            "bad_link", f"this is not a link to a relay: {error.detail or error.reason}", _ADVICE
        ) from None
    for one in link.peers:
        check_dialable(one.address, "bad_link")
    return link
