"""User actions on peers: list, show, add, remove, restore, ban."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import trio

from node.home.listen_addresses import address_problem, is_dialable
from node.network.network import Network
from node.network.peer_views import TopicNames, learned_view, peer_view, view_topics
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from node.sync.addresses import AddressSource
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.text import id_text, parse_id
from protocol.ids import PeerId, RepoId
from ravel.types.peers import PeerBan, PeerList, PeerSettings, PeerView, TopicView
from ravel.types.values import Empty
from storage.blobs.relayed_files import forget_relayed
from storage.peers.peers import ban_peer, forget_peer, keep_peer, link_peer, replace_links

TOPICS_AT_ONCE: Final = 256
"""Topics of peers that are looked at before other tasks have their turn: two milliseconds."""
TRUST_CHANGED: Final = "trust_changed"
"""Why a connection ends whose peer is to keep more or less than before. It begins again at once."""


class Peers:
    """The peers of a node, whose own key is `node_key`."""

    def __init__(self, hub: Hub, network: Network, node_key: PeerId) -> None:
        self._hub = hub
        self._network = network
        self._node_key = node_key
        self._names = TopicNames()

    async def views(self, key: PeerId | None = None) -> list[PeerView]:
        """Peers, or what is known of one, and how each topic stands with them.

        With 16,384 topics of some peers it is half a second of work: other tasks get their turn meanwhile.
        """
        found: list[PeerView] = []
        self._names.begin_look(self._hub.replica.tables)
        for state in [one for one in self._network.peers if key in (None, one.peer)]:
            replica, topics = self._hub.replica, list[TopicView]()
            now = self._hub.clock_ms() // 1000
            for view in view_topics(state, replica.tables, replica.waiting, now, self._names):
                topics.append(view)
                if len(topics) % TOPICS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
            called = self._hub.owners.called(state.peer)
            found.append(peer_view(state, topics, called, self._relay_name(state.through)))
        return found

    async def list_all(self) -> PeerList:
        """List kept and connected peers."""
        network, peers = self._network, await self.views()
        known = sorted(network.book.all, key=lambda one: (not one.is_reached, one.peer, one.address))
        return {
            "peers": peers,
            "known": [
                learned_view(one, network.reached_at(one.peer))
                for one in known
                if not network.is_connected(one.peer)
            ],
            "banned": sorted(map(id_text, self._network.banned)),
        }

    async def show(self, peer: str) -> PeerSettings:
        """Return the settings of a kept peer. Raises ServiceError `not_found`, also for one that is only connected."""
        key = self._find(peer, filter(self._network.is_kept, self._known()))
        # Circuits and learned addresses of the same peer come after what is kept.
        state = next(one for one in self._network.peers if one.peer == key)
        address, *others = state.named
        return {
            "peer": id_text(key),
            "address": address,
            "others": others,
            "from_link": state.source is AddressSource.LINK,
            "relay": key in self._network.relays,
            "repos": sorted(map(id_text, self._network.linked.get(key, ()))),
        }

    async def restore(
        self, peer: str, address: str, others: list[str], *, from_link: bool, relay: bool, repos: list[str]
    ) -> PeerView:
        """Keep a connection to a peer with just these settings. Raises ServiceError `bad_request`, `not_permitted`."""
        for one in (address, *others):
            check_dialable(one, "bad_request")
        key = self._parse_other(peer)
        linked = set(map(_parse_repo, repos))
        source = AddressSource.LINK if from_link else AddressSource.CONFIGURED
        await self._hub.write(self._store_settings, key, address, others, source, relay, linked)
        self._network.forget(key)  # else addresses that it had meanwhile would stay
        if relay:
            self._network.relays.add(key)
        if linked:
            self._network.linked[key] = linked
        self._network.keep(key, address, source, others)
        return await self._view(key)

    async def add(self, address: str, peer: str, *, relay: bool | None) -> PeerView:
        """Keep a connection to a peer at this address, too. Raises ServiceError `bad_request`.

        `relay` says whether the peer, if it is a relay, may keep all topics. None leaves that as it is.
        """
        check_dialable(address, "bad_request")
        key = self._parse_other(peer)
        await self.add_configured(key, [address], is_relay=relay)
        return await self._view(key)

    async def add_configured(self, key: PeerId, addresses: Sequence[str], *, is_relay: bool | None) -> None:
        """Keep a connection to a peer that this user has named, and add these addresses. Raises ServiceError.

        A connection that lasts stays, unless the peer is to keep more or less than before: that is settled when one begins.
        """
        self._check_other(key)
        await self._hub.write(self._store, key, addresses, AddressSource.CONFIGURED, is_relay)
        was_relay = key in self._network.relays
        if is_relay is not None:
            (self._network.relays.add if is_relay else self._network.relays.discard)(key)
        self._network.keep(key, addresses[0], others=addresses[1:])
        if is_relay not in (None, was_relay):
            self.begin_anew(key)

    async def try_addresses(self, key: PeerId, addresses: Sequence[str]) -> None:
        """Dial a peer also at a link's addresses. Addresses that the user named stay. Raises ServiceError."""
        self._check_other(key)
        await self._hub.write(self._store, key, addresses, AddressSource.LINK)
        self._network.keep(key, addresses[0], AddressSource.LINK, addresses[1:])

    def begin_anew(self, key: PeerId) -> None:
        """End the connections with a peer, which is then dialed again: what to keep is settled when one begins."""
        for state in self._network.peers:
            if state.peer == key and state.connection is not None:
                state.connection.part(TRUST_CHANGED)

    async def keep(self, key: PeerId, address: str, repo_id: RepoId, others: Sequence[str] = ()) -> None:
        """Keep a connection to a peer that a link to a repo names, now and after a restart; not to this node itself.

        `others` are its further addresses. If it is a relay, it may keep that repo's topics.
        """
        if key == self._node_key or key in self._network.banned:
            return
        addresses = [address, *others]
        await self._hub.write(self._store, key, addresses, AddressSource.LINK, None, repo_id)
        self._network.linked.setdefault(key, set()).add(repo_id)
        self._network.keep(key, address, AddressSource.LINK, others)

    async def remove(self, peer: str) -> Empty:
        """Disconnect from a peer and dial it no more. Raises ServiceError `not_found`, `ambiguous`."""
        # One peer may have two connections, an old one that is ending among them.
        key = self._find(peer, self._known())
        await self._hub.write(self._forget, key)
        self._network.forget(key)
        return {}

    async def ban(self, peer: str) -> PeerBan:
        """Speak with a peer no more: of a full id, or a unique prefix of a known one's."""
        try:
            key = PeerId(parse_id(peer))
        except DecodeError:
            key = self._find(peer, self._known())
        if key == self._node_key:
            raise ServiceError(
                "bad_request", "that is this node itself", "`ravel id` on the other node prints that one's id"
            )
        await self._hub.write(self._store_ban, key)
        self._network.banned.add(key)
        self._network.forget(key)
        return {"peer": id_text(key), "banned": True}

    async def unban(self, peer: str) -> PeerBan:
        """Let a peer connect again; it is not dialed."""
        key = self._find(peer, self._network.banned)
        await self._hub.write(self._forget, key)
        self._network.banned.discard(key)
        return {"peer": id_text(key), "banned": False}

    def _parse_other(self, peer: str) -> PeerId:
        """Return the id of a peer that may be dialed. Raises ServiceError."""
        key = _parse_peer(peer)
        self._check_other(key)
        return key

    def _check_other(self, key: PeerId) -> None:
        """Raise ServiceError unless this is another node, and not banned."""
        if key == self._node_key:
            raise ServiceError(
                "bad_request", "that is this node itself", "`ravel id` on the other node prints that one's id"
            )
        if key in self._network.banned:
            raise ServiceError("not_permitted", "that peer is banned", "`ravel peer unban` takes that back")

    async def _view(self, key: PeerId) -> PeerView:
        return (await self.views(key))[0]

    def _relay_name(self, relay: PeerId | None) -> str:
        """Return this user's name for a relay, or its address."""
        if relay is None:
            return ""
        petname = self._hub.replica.people.peer_name(relay)
        direct = (one.address for one in self._network.peers if one.peer == relay and one.through is None)
        return petname or next(direct, "")

    def _find(self, text: str, peers: Iterable[PeerId]) -> PeerId:
        """One of some peers by id, unique prefix, or what this user calls it."""
        people = self._hub.replica.people
        return resolve("peer", text, [(one, people.peer_name(one), one) for one in peers])

    def _known(self) -> set[PeerId]:
        return {state.peer for state in self._network.peers} | self._network.known_keys

    def _store_ban(self, key: PeerId) -> None:
        with self._hub.replica.database.write() as connection:
            ban_peer(connection, key)

    def _store(
        self,
        key: PeerId,
        addresses: Sequence[str],
        source: AddressSource,
        is_relay: bool | None = None,
        repo_id: RepoId | None = None,
    ) -> None:
        with self._hub.replica.database.write() as connection:
            address, *others = addresses
            keep_peer(connection, key, address, source=source, is_relay=is_relay, others=others)
            if repo_id is not None:
                link_peer(connection, key, repo_id)

    def _store_settings(
        self,
        key: PeerId,
        address: str,
        others: Sequence[str],
        source: AddressSource,
        is_relay: bool,
        repos: Collection[RepoId],
    ) -> None:
        with self._hub.replica.database.write() as connection:
            forget_peer(connection, key)
            keep_peer(connection, key, address, source=source, is_relay=is_relay, others=others)
            replace_links(connection, key, repos)

    def _forget(self, key: PeerId) -> None:
        with self._hub.replica.database.write() as connection:
            forget_peer(connection, key)
            forget_relayed(connection, key)
        self._hub.replica.shown.restate(self._hub.replica.repos)


def check_dialable(address: str, code: str) -> None:
    """Raise ServiceError of that code unless the address can be dialed."""
    if not is_dialable(address):
        raise ServiceError(
            code,
            f"{address!r} is not host:port or wss://name that can be dialed: {address_problem(address)}",
            "`ravel status --verbose` on the other node shows where it listens",
        )


def _parse_peer(text: str) -> PeerId:
    try:
        return PeerId(parse_id(text))
    except DecodeError:
        raise ServiceError(
            "bad_request", f"{text!r} is not a peer id", "`ravel id` on the other node prints it"
        ) from None


def _parse_repo(text: str) -> RepoId:
    try:
        return RepoId(parse_id(text))
    except DecodeError:
        raise ServiceError(
            "bad_request", f"{text!r} is not a repo id", "`ravel repo list` prints them"
        ) from None
