"""Maps an address to its subnet, the unit by which strangers are limited (keys are free, subnets are not)."""

import ipaddress

from protocol.limits.peers import SUBNET_IPV4_BITS, SUBNET_IPV6_BITS


def subnet_of(address: str) -> str:
    """The subnet of host:port, the host as sockets name it; "unknown", a place of its own, where it is none."""
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    ip = getattr(ip, "ipv4_mapped", None) or ip
    bits = SUBNET_IPV4_BITS if ip.version == 4 else SUBNET_IPV6_BITS
    return str(ipaddress.ip_network((ip, bits), strict=False))
