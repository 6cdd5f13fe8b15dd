"""Configuration sections [api], [relay] and [storage]: their keys, defaults, and text in the file."""

import ipaddress
from dataclasses import dataclass, field
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


ANYONE: Final = "anyone"
KNOWN: Final = "known"
ACCEPT_CHOICES: Final = (ANYONE, KNOWN)


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """[relay]: sizes are MiB of publications and files; `peer_` bounds one peer, `subnet_` strangers of one subnet together.

    `circuit_rate_max` is KiB a second of one peer's circuits, `circuit_day_max` MiB a day.
    """

    enabled: bool = False
    accept: str = ANYONE
    circuits: bool = True
    size_max: int = 10_240
    topic_size_max: int = 2_048
    peer_size_max: int = 4_096
    subnet_size_max: int = 8_192
    peer_topics_max: int = 10_000
    subnet_topics_max: int = 20_000
    circuits_max: int = 1_024
    peer_circuits_max: int = 32
    circuit_rate_max: int = 4_096
    circuit_day_max: int = 20_480


RELAY_NUMBERS: Final = (
    "size_max",
    "topic_size_max",
    "peer_size_max",
    "subnet_size_max",
    "peer_topics_max",
    "subnet_topics_max",
    "circuits_max",
    "peer_circuits_max",
    "circuit_rate_max",
    "circuit_day_max",
)
"""Keys of the section that are numbers."""
RELAY_BOUNDS: Final = {
    "circuits_max": (1, 100_000),
    "peer_circuits_max": (1, 256),
    "circuit_rate_max": (64, 16_777_216),
}
"""The least and the most of those that have bounds of their own. At less than 64 KiB a second a session over a
circuit is cut off."""
RELAY_KEYS: Final = ("enabled", "accept", *RELAY_NUMBERS, "circuits")

RELAY_TEXT: Final = """\
[relay]
# Whether this node keeps topics for others, which it cannot open. Who dials it has it keep what they follow.
enabled = false
# Who may add topics: "anyone", or "known", the peers that this node dials and those of `ravel relay allow`. Anyone who names
# a topic that is kept is served, and may publish on it, either way.
accept = "anyone"
# MiB of commits and files that are kept at most: of all topics, of one topic, of what one peer brought, of what strangers
# from one subnet (24 bits of an IPv4 address, 48 of an IPv6 one) brought together. Files take seven eighths of each. When
# all is full, topics are forgotten, those of strangers first, then the longest untouched; `ravel relay pin` excepts one.
size_max = 10240
topic_size_max = 2048
peer_size_max = 4096
subnet_size_max = 8192
# Topics that one peer without an account, and that strangers from one subnet together, may have here at a time. Those of an
# account are bounded by its quota, of which each takes 4 KiB.
peer_topics_max = 10000
subnet_topics_max = 20000
# Whether peers that cannot dial each other may talk through this relay. It passes the bytes of their own encrypted session
# on, and cannot read them.
circuits = true
# Such circuits at a time: of all peers, and of one peer that asks for them. Strangers from one subnet have twice the latter.
circuits_max = 1024
peer_circuits_max = 32
# KiB per second, and MiB per day, that one peer may send and get on all its circuits. Strangers from one subnet together
# have twice as much.
circuit_rate_max = 4096
circuit_day_max = 20480
"""


STORAGE_KEYS: Final = ("url", "erase_after_days")
ERASE_AFTER_DAYS_MAX: Final = 36_500
"""A century."""


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """[storage]: an empty URL stands for a file in the node's folder; a password may be in it.

    `erase_after_days`: days after which `ravel gc` erases bodies that a compaction lets go; 0 erases nothing.
    """

    url: str = field(default="", repr=False)
    erase_after_days: int = 0


def storage_text(url: str) -> str:
    """Write the section as the file has it at first; `url` is a TOML string."""
    return f"""\
[storage]
# Where what the store says is kept: "" is a file in the node's folder (SQLite). A PostgreSQL database is named by
# postgresql://USER@HOST/DATABASE; the password is better in ~/.pgpass than here. Large files stay in the folder.
url = {url}
# Days after which `ravel gc` erases bodies that a compaction of their branch lets go, since that came here; 0: never.
erase_after_days = 0
"""
