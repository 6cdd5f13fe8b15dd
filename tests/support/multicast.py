"""Whether this machine's loopback can be used to try mDNS."""

import socket
import struct

import pytest


def need_multicast() -> None:
    """Skip the test, and say so, where what is sent to mDNS's group on loopback does not arrive there."""
    if not _arrives():
        pytest.skip("this machine's loopback carries no multicast: mDNS was not tried here")


def _arrives() -> bool:
    kind = (socket.AF_INET, socket.SOCK_DGRAM)
    loopback, group = socket.inet_aton("127.0.0.1"), "224.0.0.251"
    with socket.socket(*kind) as receiver, socket.socket(*kind) as sender:
        try:
            receiver.bind(("", 0))
            member = struct.pack("4s4s", socket.inet_aton(group), loopback)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            receiver.settimeout(1)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            sender.sendto(b"heard", (group, receiver.getsockname()[1]))
            return receiver.recv(16) == b"heard"
        except OSError:
            return False
