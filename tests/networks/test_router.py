"""A node behind a real router: Debian's miniupnpd with the kernel's NAT, in network namespaces of their own.

The node is told nothing of the network. A node on the other side joins by the link alone.
"""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.cluster import until
from tests.networks.internet import Internet
from tests.networks.kernel_nets import Machine, kernel_net

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_INSIDE, _PUBLIC, _OUTSIDE = "192.168.1.2", "8.8.4.4", "8.8.4.5"


@pytest.mark.parametrize("way", ["pcp", "upnp"])
def test_a_link_reaches_a_node_behind_a_router_that_forwards_a_port(tmp_path: Path, way: str) -> None:
    with kernel_net(tmp_path, ("nft", "miniupnpd", "sysctl")) as net, ExitStack() as ending:
        internet = Internet(net, tmp_path, ending)
        home = internet.add_upnp_home(_PUBLIC, way)
        inside = Machine(tmp_path / "inside", internet.add_inside(home))
        outside = Machine(tmp_path / "outside", internet.add_machine(_OUTSIDE), "127.0.0.1:0")
        internet.open(round_trip=0)
        try:
            inside.start()
            outside.start()
            until(
                lambda: inside.client.show_status()["router"]["state"] != "asking", "the router has answered"
            )
            status = inside.client.show_status()
            assert status["router"] == {"state": "mapped", "detail": way}
            assert status["addresses"][0] == {
                "address": f"{_PUBLIC}:7474",
                "reach": "anywhere",
                "found_by": "router",
            }
            repo = str(inside.client.create_repo("shared")["repo"])
            link = inside.client.create_invitation(
                repo, permission="write", expires_seconds=3600, reach="anywhere"
            )
            assert link["addresses"] == [f"{_PUBLIC}:7474", f"{_INSIDE}:7474"]
            outside.client.join_repo(link["invitation"])
            (peer,) = outside.client.list_peers()["peers"]
            assert (peer["address"], peer["state"]) == (f"{_PUBLIC}:7474", "connected")
        finally:
            for one in (inside, outside):
                one.close()
