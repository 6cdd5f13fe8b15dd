"""The application services behind the API: branches, people, peers and the node itself.

Each groups the parts of one subject and has the operations that need several of them. `node.api.answers` lists which
method answers which endpoint. Methods take and give plain values ready for JSON, and raise ServiceError for what a user
can mend. Store access goes through `run_blocking`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from node.api.branch_service import BranchService
from node.api.node_service import NodeService
from node.api.peer_service import PeerService
from node.api.people_service import PeopleService
from node.api.targets import Targets
from node.authoring.author import Author
from node.exports.exports import Exports
from node.home.config_layers import Setting
from node.home.tokens import TokenFile
from node.http.remote import Remote
from node.membership.joining import Joiner
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.sync.hub import Hub
from protocol.ids import PeerId


@dataclass(frozen=True, slots=True)
class Services:
    """The four services of one running node, and what handlers of requests need beside them."""

    hub: Hub
    targets: Targets
    branches: BranchService
    people: PeopleService
    peers: PeerService
    node: NodeService
    joiner: Joiner


def make_services(
    *,
    hub: Hub,
    network: Network,
    author: Author,
    joiner: Joiner,
    node_key: PeerId,
    home: Path,
    addresses: OwnAddresses,
    exports: Exports,
    tokens: TokenFile,
    clock: Callable[[], float],
    web_address: str = "",
    has_search: bool = True,
    remote: Remote | None = None,
    settings: Sequence[Setting] = (),
) -> Services:
    """Make the services of a node. `settings` are those with which the daemon was started."""
    targets = Targets(hub.replica, author.user)
    peers = PeerService(hub, network, node_key=node_key, home=home, addresses=addresses, clock=clock)
    people = PeopleService(
        hub, network, author, joiner, targets, peers.peers, addresses=addresses, clock=clock
    )
    branches = BranchService(
        hub, network, author, joiner, targets, people, clock=clock, has_search=has_search
    )
    node = NodeService(
        hub,
        network,
        targets,
        peers,
        people,
        branches,
        user=author.user,
        node_key=node_key,
        home=home,
        addresses=addresses,
        web_address=web_address,
        exports=exports,
        tokens=tokens,
        clock=clock,
        remote=remote,
        settings=settings,
    )
    return Services(hub, targets, branches, people, peers, node, joiner)
