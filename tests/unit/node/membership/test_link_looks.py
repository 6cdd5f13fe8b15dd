"""Content of a pasted link, shown before anything is done with it."""

from pathlib import Path

import pytest

from node.membership.link_looks import LinkLooks
from node.membership.sharing import Sharing
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from tests.support.nodes import Node, open_nodes


def _sharing(node: Node) -> Sharing:
    network = Network(node.hub, node.seed, lambda: 0.0)
    peers = Peers(node.hub, network, node.key)
    return Sharing(
        node.hub, network, peers, node.author, node.joiner, addresses=OwnAddresses("h:1"), clock=lambda: 0.0
    )


async def test_each_link_says_where_it_leads_and_nothing_is_kept(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, branch = alice.create_repo("garden")
        sharing = _sharing(alice)
        made = await sharing.invite(repo, "write", 60, 1)
        capability = (await sharing.capability(repo))["capability"]
        of_branch = (await sharing.branch_capability(branch))["capability"]
        looks = LinkLooks(bob.hub, lambda: 61.0)
        invited = await looks.look(made["invitation"][:40] + "\n " + made["invitation"][40:])
        assert invited == {
            "kind": "invite",
            "repo": id_text(repo.repo_id),
            "name": "garden",
            "by": None,
            "permission": "write",
            "expires_at": 60,
            "expired": True,
            "here": None,
            "peers": [{"peer": id_text(alice.key), "address": "h:1", "name": "", "owner": None}],
        }
        reading = {**invited, "permission": "read", "expires_at": None, "expired": False}
        assert await looks.look(capability) == {**reading, "kind": "read"}
        assert await looks.look(of_branch) == {**reading, "kind": "branch", "name": "main"}
        assert bob.replica.repos == {}
        assert (await LinkLooks(alice.hub, lambda: 0.0).look(capability))["here"] == "garden"
        for bad in ("no link", made["invitation"][:-1], capability[:-1], of_branch[:-1], "ravel:ask:a"):
            with pytest.raises(ServiceError) as refused:
                await looks.look(bad)
            assert refused.value.code == "bad_link"
