"""Configuration section [api]: where the page and the API answer, on this machine and to browsers of others."""

import ipaddress
from dataclasses import dataclass
from typing import Final

API_LISTEN_DEFAULT: Final = "127.0.0.1:7475"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class ApiConfig:
    """[api]: `tls` is host:port of a second listener, for other machines; empty: there is none.

    `tls_names` are hosts, some with a port, under which browsers reach that; `tls_certificate` and `tls_key` name files of
    the user's own, or are both empty; `trusted_proxies` may say for whom they ask.
    """

    listen: str = API_LISTEN_DEFAULT
    tls: str = ""
    tls_names: tuple[str, ...] = ()
    tls_certificate: str = ""
    tls_key: str = ""
    trusted_proxies: tuple[Network, ...] = ()


API_KEYS: Final = ("listen", "tls", "tls_names", "tls_certificate", "tls_key", "trusted_proxies")


def api_text(listen: str) -> str:
    """Write the section with its comments. `listen` is quoted."""
    return f"""\
[api]
# host:port of the local HTTP API and the page; a loopback host only, without TLS. Port 0 takes any free port.
listen = {listen}
# host:port where paired browsers of other machines reach the page and the API, over TLS alone; such as "*:7476" for every
# interface. Empty: nowhere. `ravel open --remote` pairs a browser.
tls = ""
# Names or addresses by which they reach it, the first for the links of `ravel open --remote`; with a port where a proxy or
# router has another: tls_names = ["ravel.example:443"]. Without names: the addresses of this machine.
tls_names = []
# PEM files of a certificate with its chain, and of its key; read again when they change. A relative path starts at the
# node's folder. Empty: the node makes a certificate for itself.
tls_certificate = ""
tls_key = ""
# Addresses or networks of reverse proxies: of them the last address of X-Forwarded-For is taken for the browser's own, where
# requests are limited by address. No other header is believed, of nobody.
trusted_proxies = []
"""
