"""Uses a link to an account at a relay: keeps a connection to the relay, and shows it the link's secret."""

from typing import Final

import trio

from node.contract.relay_accounts import JoinedRelay
from node.membership.peers import Peers, check_dialable
from node.runtime.errors import ServiceError
from node.sync.hub import FileTaker, Hub, NotFetched
from protocol.codec import DecodeError
from protocol.ids import PeerId
from protocol.limits.peers import ACCOUNT_JOIN_SECONDS
from protocol.links import RelayLink, parse_relay_link
from protocol.session_outputs import AccountAnswered
from protocol.text import id_text

_LOOK_SECONDS: Final = 0.1
_REFUSALS: Final = {
    "used_link": ("not_permitted", "the link was used by another node"),
    "expired_link": ("expired", "the link is no longer valid"),
    "unknown_link": ("expired", "the relay does not know the link: the account may have been revoked"),
    "account_full": ("too_large", "the account has as many nodes as it may"),
}
_ADVICE: Final = "ask the relay's operator for a new link: `ravel relay invite` there"


class RelayJoining:
    """Accounts at others' relays."""

    def __init__(self, hub: Hub, peers: Peers) -> None:
        self._hub = hub
        self._peers = peers

    async def join(self, link: str) -> JoinedRelay:
        """Have the account of a link from now on. Raises ServiceError."""
        found = _parse(link)
        first = found.peers[0]
        is_new = id_text(first.peer) not in {view["peer"] for view in self._peers.views()}
        await self._peers.add(first.address, id_text(first.peer), relay=True)
        with trio.move_on_after(ACCOUNT_JOIN_SECONDS):
            answer = await self._ask(found)
            if answer.refusal:
                if is_new:  # nobody asked for a connection without the account
                    await self._peers.remove(id_text(first.peer))
                code, problem = _REFUSALS.get(answer.refusal, ("not_permitted", answer.refusal))
                raise ServiceError(code, problem, _ADVICE)
            return {
                "relay": id_text(first.peer),
                "address": first.address,
                "quota": answer.quota,
                "used": answer.used,
            }
        raise ServiceError(
            "incomplete",
            f"the relay at {first.address} does not answer, or has no accounts",
            "`ravel peer list` shows why; run the command again: the link was not used up",
        )

    async def _ask(self, link: RelayLink) -> AccountAnswered:
        while True:
            try:
                return await (await self._find(link.peers[0].peer)).join_account(link.token)
            except NotFetched:
                await trio.sleep(_LOOK_SECONDS)  # it has left, and is dialed again

    async def _find(self, relay: PeerId) -> FileTaker:
        while True:
            for port in self._hub.relay_ports:
                if port.peer == relay and port.gives_accounts:
                    return port
            await trio.sleep(_LOOK_SECONDS)  # a connection that begins does not tell


def _parse(text: str) -> RelayLink:
    try:
        link = parse_relay_link(text)
    except DecodeError as error:
        raise ServiceError(
            "bad_link", f"this is not a link to a relay: {error.detail or error.reason}", _ADVICE
        ) from None
    check_dialable(link.peers[0].address, "bad_link")
    return link
