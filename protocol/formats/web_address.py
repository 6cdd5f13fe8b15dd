"""Addresses of nodes that listen by WebSocket: `wss://host[:port][/path]`, how they are written and bounded.

The host is a name or an IPv4 address. Without a port it is 443 (80 for `ws`), without a path `/ravel`. Each path ends in
`/ravel`: a link shall make nobody ask a web server for a page of its author's choice.
"""

import re
from dataclasses import dataclass
from typing import Final

from protocol.limits.formats import ADDRESS_SIZE_MAX

WEB_PATH: Final = "/ravel"
"""The path of an address that names none."""
_HOST: Final = r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
_SEGMENT: Final = r"[A-Za-z0-9_-]{1,40}"
_PATH: Final = re.compile(rf"(?:/{_SEGMENT}){{0,3}}/ravel")
_WRITTEN: Final = re.compile(rf"(wss?)://({_HOST})(?::([1-9][0-9]{{0,4}}))?({_PATH.pattern})?/?")
_PORTS: Final = {True: 443, False: 80}


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Address of a node by WebSocket. `is_secure`: in TLS."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        """host:port."""
        return f"{self.host}:{self.port}"

    @property
    def full(self) -> str:
        """Return the address as web clients write it."""
        return f"{self._scheme}://{self.host}:{self.port}{self.path}"

    def __str__(self) -> str:
        """Return the shortest form of the address."""
        port = "" if self.port == _PORTS[self.is_secure] else f":{self.port}"
        return f"{self._scheme}://{self.host}{port}{'' if self.path == WEB_PATH else self.path}"

    @property
    def _scheme(self) -> str:
        return "wss" if self.is_secure else "ws"


def parse_web_address(text: str) -> WebAddress | None:
    """Parse a WebSocket address; return None if the text is no such address or too long."""
    scheme, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    found = _WRITTEN.fullmatch(f"{scheme.lower()}{separator}{host.lower()}{slash}{path}")
    return None if found is None else _address_if_it_fits(found[1], found[2], found[3], found[4])


def is_web_path(path: str) -> bool:
    """Return True if a node that listens by WebSocket answers at this path."""
    return _PATH.fullmatch(path) is not None


def is_web_address(address: str) -> bool:
    """Return True if an address that can be dialed is one of WebSocket."""
    return "://" in address


def _address_if_it_fits(scheme: str, host: str, port: str | None, path: str | None) -> WebAddress | None:
    """Return the address; None if it is over ADDRESS_SIZE_MAX with all that may be left out."""
    is_secure = scheme == "wss"
    number = int(port) if port else _PORTS[is_secure]
    web = WebAddress(is_secure, host, number, path or WEB_PATH)
    fits = len(web.full) <= ADDRESS_SIZE_MAX and number < 65536
    return web if fits else None
