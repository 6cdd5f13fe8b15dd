"""`PeerService`: peers that this node connects to, and this node as a relay."""

from collections.abc import Callable
from pathlib import Path

from node.api.node_events import SharedPeers
from node.api.relay_accounts import RelayAccounts
from node.api.relay_admin import Relaying
from node.api.relay_overview import RelayOverview
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.network.relay_joining import RelayJoining
from node.sync.hub import Hub
from protocol.ids import PeerId


class PeerService:
    """Parts that answer endpoints about peers and relays."""

    def __init__(
        self,
        hub: Hub,
        network: Network,
        *,
        node_key: PeerId,
        home: Path,
        addresses: OwnAddresses,
        clock: Callable[[], float],
    ) -> None:
        self.peers = Peers(hub, network, node_key)
        self.shared_list = SharedPeers(self.peers.list_all)
        self.relay_joining = RelayJoining(hub, self.peers, network)
        self.relaying = Relaying(hub)
        self.relay_overview = RelayOverview(network, self.relaying.find_relay, home, hub.run_blocking)
        self.accounts = RelayAccounts(
            hub, network, self.relaying.find_relay, addresses=addresses, node_key=node_key, clock=clock
        )
