"""Texts of addresses, host:port or of WebSocket, as a configuration and a person state them."""

import ipaddress
import re
from typing import Final

from protocol.formats.web_address import is_web_address, parse_web_address

_SHOWN_SIZE_MAX: Final = 100
"""Characters of a value in a message."""
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")


def shorten(value: object) -> str:
    """Cut a value for a message: a mistake may be of any length."""
    text = repr(value)
    return text if len(text) <= _SHOWN_SIZE_MAX else f"{text[:_SHOWN_SIZE_MAX]}…"


def is_address(text: str) -> bool:
    """Return True for host:port, the port in decimal from 0 to 65535; an IPv6 host stands in brackets."""
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536
    return bool(colon) and is_port and is_host(host)


def address_problem(text: str) -> str:
    """Say what is wrong with an address, as the end of a sentence; empty for one that can be dialed."""
    if is_web_address(text):
        return (
            ""
            if is_dialable(text)
            else "WebSocket addresses are wss://NAME, wss://NAME:PORT/PATH/ravel, or ws://"
        )
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        return "a port is missing: say HOST:PORT, as in a.example:7474"
    if not (port.isascii() and port.isdigit()):
        return f"{shorten(port)} is no port number"
    if not is_address(f"{host}:1"):
        return f"{shorten(host)} is no host name or address"
    if len(port) > 5 or int(port) >= 65536:
        return "ports go to 65535"
    if int(port) == 0:
        return "port 0 stands for any free port, and cannot be dialed"
    return f"{host} stands for every interface, and cannot be dialed" if is_unspecified(text) else ""


def is_dialable(text: str) -> bool:
    """Return True for an address that can be dialed: with a port, and not the one that stands for every interface; or one
    of WebSocket."""
    if is_web_address(text):
        web = parse_web_address(text)
        return web is not None and not is_unspecified(web.place)
    return is_address(text) and not text.endswith(":0") and not is_unspecified(text)


def is_loopback(address: str) -> bool:
    """Return True for an address that only this machine can dial."""
    return address.rpartition(":")[0] in _LOOPBACK_HOSTS


def host_of_name(name: str) -> str:
    """Return the host of an item of `[api] tls_names`, without its port, in the form that certificates and browsers have.

    An address is as short as it can be, without brackets and zone. A name is in lower case, and in ASCII.
    """
    host = (name.rpartition(":")[0] if is_address(name) else name).strip("[]")
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return host.encode("idna").decode("ascii").lower()


def is_unspecified(address: str) -> bool:
    """Return True for an address that stands for every interface: good for listening only."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "*" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_host(text: str) -> bool:
    """Return True for a host name, an IPv4 address, or an IPv6 address in brackets."""
    if text.startswith("[") and text.endswith("]"):
        try:
            ipaddress.IPv6Address(text[1:-1])
        except ValueError:
            return False
        return True
    try:
        text.encode("idna")
    except UnicodeError:  # a label that is empty or too long, or that no name may have
        return False
    return re.fullmatch(r"[^\s:/\x00-\x20\x7f]{1,253}", text) is not None
