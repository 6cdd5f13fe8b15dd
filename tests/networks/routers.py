"""Home routers: what the kernel's NAT (nftables) is told, so that it does as each kind of router does.

Words are those of RFC 4787, which holds for TCP by RFC 5382: a *mapping* is the outer port that an inner one has, a *filter*
says from where packets are let in. The kernel's own NAT chooses the outer port by connection and lets in answers alone.
Where a router keeps one mapping for all destinations, static maps say which outer port each inner one has. They are never
the same number, or a node could dial the inner port and be right by chance.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

INNER_PORTS: Final = range(40_000, 40_256)
"""Ports from which a machine behind a router connects."""
OUTER_PORTS: Final = range(20_000, 20_256)
"""Those that the first machine behind a router has outside."""


class RouterKind(Enum):
    """What a router does. The value is what the table of networks calls it."""

    OPEN = "none"
    """No router: a public address."""
    FULL_CONE = "full cone"
    """One port for all destinations; once it was used, all may send to it (endpoint-independent filtering)."""
    HOST_RESTRICTED = "address-restricted"
    """One port for all destinations; lets in hosts that were sent to (address-dependent filtering)."""
    PORT_RESTRICTED = "port-restricted"
    """One port for all destinations; lets in hosts and ports that were sent to."""
    SYMMETRIC = "symmetric"
    """A random port for each destination; lets in that destination alone (address- and port-dependent mapping)."""


def router_rules(
    kind: RouterKind,
    outer: str,
    inner: Sequence[str],
    *,
    ports: range = INNER_PORTS,
    hairpin: bool = False,
    dropped: str = "",
) -> str:
    """nftables rules of an IPv4 router with devices `outer` and `inner`.

    `outer` is its address outside, `inner` are those of machines behind it, which connect from `ports`. With `hairpin`
    these reach one another by the outer address. `dropped` is a match of packets that are not let out.
    """
    mappings = {
        (host, port): ports.start // 2 + at * len(ports) + number
        for at, host in enumerate(inner)
        for number, port in enumerate(ports)
    }
    if kind is RouterKind.SYMMETRIC:
        mappings = {}
    outward = ", ".join(f"{host} . {port} : {outer} . {mapped}" for (host, port), mapped in mappings.items())
    inward = ", ".join(f"{mapped} : {host} . {port}" for (host, port), mapped in mappings.items())
    entering = {
        RouterKind.FULL_CONE: "ip daddr . tcp dport @used accept",
        RouterKind.HOST_RESTRICTED: "ip saddr . ip daddr . tcp dport @sent accept",
    }.get(kind, "")
    lets_in = "ip daddr" if hairpin else 'iifname "outer" ip daddr'
    dnat = f"{lets_in} {outer} dnat ip to tcp dport map @inward" if entering else ""
    return f"""
table ip home {{
  map outward {{ type ipv4_addr . inet_service : ipv4_addr . inet_service; {_elements(outward)} }}
  map inward {{ type inet_service : ipv4_addr . inet_service; {_elements(inward)} }}
  set used {{ type ipv4_addr . inet_service; flags dynamic; size 65535; }}
  set sent {{ type ipv4_addr . ipv4_addr . inet_service; flags dynamic; size 65535; }}
  chain input {{ type filter hook input priority 0; iifname "outer" drop; }}
  chain forward {{ type filter hook forward priority 0; policy drop;
    {f"{dropped} drop" if dropped else ""}
    iifname "outer" ct direction original goto entering
    ct state established,related accept
    iifname "inner" meta l4proto tcp add @used {{ ip saddr . tcp sport }}
    iifname "inner" meta l4proto tcp add @sent {{ ip daddr . ip saddr . tcp sport }}
    iifname "inner" accept
  }}
  chain entering {{
    {entering}
  }}
  chain prerouting {{ type nat hook prerouting priority -100;
    {dnat}
  }}
  chain postrouting {{ type nat hook postrouting priority 100;
    snat ip to ip saddr . tcp sport map @outward
    oifname "outer" masquerade fully-random
  }}
}}
"""


FIREWALL: Final = """
table ip6 home {
  chain input { type filter hook input priority 0; iifname "outer" meta l4proto tcp drop; }
  chain forward { type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname "inner" accept
  }
}
"""
"""An IPv6 router, which translates nothing and lets in answers alone."""


UPNP_RULES: Final = """
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
"""A router whose chains miniupnpd fills."""
_UPNP_CONFIG: Final = """
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
allow 1024-65535 {network} 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
"""


def upnp_config(network: str, way: str) -> str:
    """What miniupnpd is told: to forward ports to this network, by UPnP (`upnp`), or by PCP and NAT-PMP (`pcp`)."""
    is_upnp = way == "upnp"
    return _UPNP_CONFIG.format(
        network=network, pcp="no" if is_upnp else "yes", upnp="yes" if is_upnp else "no"
    )


def _elements(listed: str) -> str:
    return f"elements = {{ {listed} }};" if listed else ""
