"""A node behind a real router: Debian's miniupnpd with the kernel's NAT, in network namespaces of their own.

The node is told nothing of the network. A node on the other side joins by the link alone.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cluster import until
from tests.networks.kernel_nets import KernelNet, Machine, kernel_net

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_INSIDE, _ROUTER, _PUBLIC, _OUTSIDE = "192.168.77.2", "192.168.77.1", "8.8.4.4", "8.8.4.5"
_RULES: Final = """
table inet filter {
  chain forward { type filter hook forward priority 0; policy drop;
    ct state established,related accept; iifname "inner" accept; jump miniupnpd; }
  chain miniupnpd { }
  chain prerouting { type nat hook prerouting priority -100; jump prerouting_miniupnpd; }
  chain postrouting { type nat hook postrouting priority 100; jump postrouting_miniupnpd;
    oifname "outer" masquerade; }
  chain prerouting_miniupnpd { }
  chain postrouting_miniupnpd { }
}
"""
_CONFIG: Final = """
ext_ifname=outer
listening_ip=inner
http_port=0
enable_natpmp={pcp}
enable_upnp={upnp}
secure_mode=yes
upnp_table_name=filter
upnp_nat_table_name=filter
upnp_forward_chain=miniupnpd
upnp_nat_chain=prerouting_miniupnpd
upnp_nat_postrouting_chain=postrouting_miniupnpd
uuid=8f5d9c6e-1b1e-4b3e-9d2f-000000000001
allow 1024-65535 192.168.77.0/24 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
"""


def _route(net: KernelNet, folder: Path, way: str) -> tuple[int, int]:
    """A machine and its router, which speaks one of the ways, and a machine outside: the first and the last."""
    inside, router, outside = (net.hold() for _ in range(3))
    net.link(inside, "lan", router, "inner")
    net.link(router, "outer", outside, "wan")
    for pid, device, host in (
        (inside, "lan", _INSIDE),
        (router, "inner", _ROUTER),
        (router, "outer", _PUBLIC),
        (outside, "wan", _OUTSIDE),
    ):
        net.give(pid, device, host)
    net.run(inside, "ip", "route", "add", "default", "via", _ROUTER)
    net.run(router, "ip", "route", "add", "default", "via", _OUTSIDE)
    net.run(router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    rules, config = folder / "rules", folder / "miniupnpd.conf"
    rules.write_text(_RULES)
    net.run(router, "nft", "-f", str(rules))
    spoken = {"pcp": "no" if way == "upnp" else "yes", "upnp": "yes" if way == "upnp" else "no"}
    config.write_text(_CONFIG.format(**spoken))
    net.start("miniupnpd", "-d", "-f", str(config), "-P", str(folder / "miniupnpd.pid"), pid=router)
    return inside, outside


@pytest.mark.parametrize("way", ["pcp", "upnp"])
def test_a_link_reaches_a_node_behind_a_router_that_forwards_a_port(tmp_path: Path, way: str) -> None:
    with kernel_net(tmp_path, ("nft", "miniupnpd", "sysctl")) as net:
        at_inside, at_outside = _route(net, tmp_path, way)
        inside = Machine(tmp_path / "inside", at_inside)
        outside = Machine(tmp_path / "outside", at_outside, "127.0.0.1:0")
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
