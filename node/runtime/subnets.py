"""Tells where the ends of a TCP connection are, and in which subnet: the unit by which strangers are limited.

Keys are free, subnets are not.
"""

import ipaddress

import trio

from protocol.limits.peers import SUBNET_IPV4_BITS, SUBNET_IPV6_BITS


def subnet_of(address: str) -> str:
    """Return the subnet of host:port, the host as sockets name it; "unknown" if it is no address."""
    host = address.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    ip = getattr(ip, "ipv4_mapped", None) or ip
    bits = SUBNET_IPV4_BITS if ip.version == 4 else SUBNET_IPV6_BITS
    return str(ipaddress.ip_network((ip, bits), strict=False))


def local_host(stream: trio.SocketStream) -> str:
    """Return this machine's address on a connection; empty if it has ended."""
    try:
        return str(stream.socket.getsockname()[0])
    except OSError:  # the peer has gone already
        return ""


def address_of(stream: trio.SocketStream) -> str:
    """host:port of the other end of a connection; "unknown" of one that has ended."""
    try:
        host, port = stream.socket.getpeername()[:2]
    except OSError:  # the peer has gone already
        return "unknown"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
