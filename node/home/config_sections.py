"""Sections of the configuration: each key with its type, default, comment in the file, and bounds.

All else follows from them: the commented file, `ravel config`, the reference page and the settings of the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from node.home.config_values import (
    SIZE_MAX_MIB,
    Key,
    Network,
    OneOf,
    PeerConfig,
    key,
    read_address,
    read_advertised,
    read_database_url,
    read_destination,
    read_loopback,
    read_networks,
    read_optional_address,
    read_options,
    read_peers,
    read_tls_names,
    whole,
)
from protocol.limits.network import ADVERTISED_ADDRESSES_MAX

WORKERS_DEFAULT: Final = 4
"""Two read faster than one thread judges and stores; the others are for relayed topics and for other repos."""
WORKERS_MAX: Final = 64
"""More than are of use: six batches are read at a time at most."""
INTERVAL_MAX: Final = 525_600
"""Minutes: a year."""
KEEP_MAX: Final = 87_600
"""Hours: ten years."""
PARTS_MIN: Final = 2
PARTS_MAX: Final = 10_000
"""Parts of a table: Spark opens each, and an object store is asked for each."""
CIRCUIT_RATE_MIN: Final = 64
"""KiB a second: with less, a session over a circuit is cut off."""
ERASE_AFTER_DAYS_MAX: Final = 36_500
"""A century."""
ANYONE: Final = "anyone"
KNOWN: Final = "known"


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Section [node]."""

    workers: int = key(
        WORKERS_DEFAULT,
        """Threads of the compiled reader of what peers send, at most, and one fewer than there are cores. 0: Python reads
        all, which takes longer.""",
        whole(0, WORKERS_MAX),
    )


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Section [network]."""

    listen: str = key(
        "*:7474",
        """host:port that other nodes connect to. The host * stands for every interface, by IPv4 and IPv6 (0.0.0.0:
        IPv4 alone); port 0 takes any free port. On 127.0.0.1 only this machine can connect.""",
        read_address,
    )
    advertise: str = key(
        "",
        f"""Addresses that invitations and introductions name, up to {ADVERTISED_ADDRESSES_MAX}, with commas between:
        host:port, or wss://name.
        Empty: the addresses that the node finds (`ravel status --verbose`). Set it where it finds none, such as
        behind a router that forwards a port.
        "nothing": the node tells no other one its address, and links name relays alone.""",
        read_advertised,
    )
    peers: tuple[PeerConfig, ...] = key(
        [],
        """Peers to keep a connection to, beside those that invitations and `ravel peer add` name:
        peers = [{ address = "host:7474", peer = "the 52 characters that `ravel id` prints there" }]
        With `relay = true` in it, a relay is asked to keep all that this node follows.""",
        read_peers,
    )
    introductions: bool = key(
        True,
        """If true, peers of a repo tell each other where further ones can be dialed. false: this node is not made known
        to others, and takes no addresses from them.""",
    )
    discover_lan: bool = key(
        False,
        """If true, this node looks for peers on the local network (mDNS), and peers that know its key find
        it there. Others on that network can tell that some Ravel node runs here.""",
    )
    circuits: bool = key(
        True,
        """If true, peers that cannot be dialed are reached through the relays that this node uses, and may reach it
        that way. Such a relay learns which nodes talk, when and how much, and not what.""",
    )
    punching: bool = key(
        True,
        """If true, this node and a peer that talk through a relay try to connect directly, by dialing each other at one
        moment. Each learns the other's address. Needs `introductions`, too.""",
    )
    map_port: bool = key(
        True,
        """If true, the router is asked to forward a port to this node (PCP, NAT-PMP, UPnP), where this machine has no
        public address of its own and `advertise` says none.""",
    )
    websocket_listen: str = key(
        "",
        """host:port for nodes that connect by WebSocket, such as "127.0.0.1:9443" behind a web server that has port
        443 and TLS. Empty: none. The path ends in /ravel. Others dial wss://NAME, which `advertise` can say.""",
        read_optional_address,
    )
    websocket_certificate: str = key(
        "",
        """PEM files with a certificate and its key, where this node itself is to have TLS. Empty: none. Read at the
        start.""",
    )
    websocket_key: str = key("")


@dataclass(frozen=True, slots=True)
class ApiConfig:
    """Section [api]."""

    listen: str = key(
        "127.0.0.1:7475",
        "host:port of the local HTTP API and the page; a loopback host only, without TLS. Port 0 takes any free port.",
        read_loopback,
    )
    tls: str = key(
        "",
        """host:port where paired browsers of other machines reach the page and the API, over TLS alone; such as
        "*:7476" for every interface. Empty: nowhere. `ravel open --remote` pairs a browser.""",
        read_optional_address,
    )
    tls_names: tuple[str, ...] = key(
        [],
        """Names or addresses by which they reach it, the first for the links of `ravel open --remote`; with a port
        where a proxy or router has another: tls_names = ["ravel.example:443"]. Without names: the addresses of this
        machine.""",
        read_tls_names,
    )
    tls_certificate: str = key(
        "",
        """PEM files of a certificate with its chain, and of its key; read again when they change. A relative path
        starts at the node's folder. Empty: the node makes a certificate for itself.""",
    )
    tls_key: str = key("")
    trusted_proxies: tuple[Network, ...] = key(
        [],
        """Addresses or networks of reverse proxies: of them the last address of X-Forwarded-For is taken for the
        browser's own, where requests are limited by address. No other header is believed, of nobody.""",
        read_networks,
    )


@dataclass(frozen=True, slots=True)
class ExportConfig:
    """Section [export]."""

    destination: str = key(
        "",
        """Where exports go: a folder ("" is `exports`; a relative path begins in the node's folder), or the URL of a
        store that fsspec has a driver for, such as "s3://bucket/prefix" (extra s3: docs/communities/start.md). Each
        node needs its own.""",
        read_destination,
    )
    options: Mapping[str, Any] = key(
        {},
        """What the driver is told beside the URL; never shown, nor logged:
        options = { key = "...", secret = "...", client_kwargs = { endpoint_url = "https://..." } }
        What is not said here, the driver looks for in the environment (AWS_ACCESS_KEY_ID and the like).""",
        read_options,
        is_secret=True,
    )
    format: str = key(
        "parquet",
        '"parquet", or "delta": then each table is also a table of Delta Lake, in `kept/TABLE`, over the same files.',
        OneOf(("parquet", "delta")),
    )
    interval: int = key(
        0,
        "Minutes between exports by the daemon; 0: only when `ravel export` asks for one.",
        whole(0, INTERVAL_MAX),
    )
    keep: int = key(
        24,
        "Hours that parts stay which a newer export has replaced, for anyone who still reads them.",
        whole(0, KEEP_MAX),
    )
    parts: int = key(
        32,
        "A table of more parts than this gets some of them merged.",
        whole(PARTS_MIN, PARTS_MAX),
    )
    bodies: bool = key(
        False,
        "Whether what commits say is exported too: then the export is as secret as the branches are.",
    )
    blocks: bool = key(
        False,
        """If true, blocks are exported too, so that `ravel audit` can compute the ids of commits again: ciphertext, and
        no key.""",
    )
    pseudonyms: bool = key(
        False,
        "Whether authors are replaced by hashes under a key of this node's (`pseudonym.key` in its folder).",
    )


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """Section [relay]."""

    enabled: bool = key(
        False,
        "Whether this node keeps topics for others, which it cannot open. Who dials it has it keep what they follow.",
    )
    accept: str = key(
        ANYONE,
        """Who may add topics: "anyone", or "known", the peers that this node dials and those of `ravel relay allow`.
        Anyone who names a topic that is kept is served, and may publish on it, either way.""",
        OneOf((ANYONE, KNOWN)),
    )
    size_max: int = key(
        10_240,
        """MiB of commits and files that are kept at most: of all topics, of one topic, of what one peer brought, of
        what strangers from one subnet (24 bits of an IPv4 address, 48 of an IPv6 one) brought together. Files take
        seven eighths of each. When all is full, topics are forgotten, those of strangers first, then the longest
        untouched; `ravel relay pin` excepts one.""",
        whole(1, SIZE_MAX_MIB, "MiB"),
    )
    topic_size_max: int = key(2_048, read=whole(1, SIZE_MAX_MIB, "MiB"))
    peer_size_max: int = key(4_096, read=whole(1, SIZE_MAX_MIB, "MiB"))
    subnet_size_max: int = key(8_192, read=whole(1, SIZE_MAX_MIB, "MiB"))
    peer_topics_max: int = key(
        10_000,
        """Topics that one peer without an account, and that strangers from one subnet together, may have here at a
        time. Those of an account are bounded by its quota, of which each takes 4 KiB.""",
        whole(1, SIZE_MAX_MIB),
    )
    subnet_topics_max: int = key(20_000, read=whole(1, SIZE_MAX_MIB))
    circuits: bool = key(
        True,
        """If true, peers that cannot dial each other may talk through this relay. It passes the bytes of their own
        encrypted session on, and cannot read them.""",
    )
    circuits_max: int = key(
        1_024,
        """Such circuits at a time: of all peers, and of one peer that asks for them. Strangers from one subnet have
        twice the latter.""",
        whole(1, 100_000),
    )
    peer_circuits_max: int = key(32, read=whole(1, 256))
    circuit_rate_max: int = key(
        4_096,
        """KiB per second, and MiB per day, that one peer may send and get on all its circuits. Strangers from one
        subnet together have twice as much.""",
        whole(CIRCUIT_RATE_MIN, 16_777_216, "KiB per second"),
    )
    circuit_day_max: int = key(20_480, read=whole(1, SIZE_MAX_MIB, "MiB"))


@dataclass(frozen=True, slots=True)
class StorageConfig:
    """Section [storage]."""

    url: str = key(
        "",
        """Where what the store says is kept: "" is a file in the node's folder (SQLite). A PostgreSQL database is
        named by postgresql://USER@HOST/DATABASE; the password is better in ~/.pgpass than here. Large files stay in
        the folder.""",
        read_database_url,
        is_secret=True,
    )
    size_max: int = key(
        0,
        """MiB that the store may take in the node's folder; 0: any. Above it, others' posts and files that are older than
        some days (the same in all repos; 7 at least, by the post's own date) leave this computer once a member's computer
        that keeps them all has shown them: files first, and with a database elsewhere files alone. What you wrote,
        documents and who wrote when stay, and what a relay keeps, which counts too.""",
        whole(0, SIZE_MAX_MIB, "MiB"),
    )
    erase_after_days: int = key(
        0,
        """Days after which `ravel gc` erases bodies that a compaction of their branch lets go, since that came here;
        0: never.""",
        whole(0, ERASE_AFTER_DAYS_MAX, "days"),
    )


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Section [search]."""

    enabled: bool = key(
        True,
        """If true, the node keeps an index by which `ravel search` and the page find posts: some 330 bytes for a post
        of twelve words. It holds no word in the clear. false: an index that is there is removed.""",
    )


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Section [log]."""

    level: str = key(
        "info",
        "debug, info, warning or error; logs go to standard error.",
        OneOf(("debug", "info", "warning", "error")),
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration."""

    node: NodeConfig = field(default_factory=NodeConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    api: ApiConfig = field(default_factory=ApiConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    relay: RelayConfig = field(default_factory=RelayConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    log: LogConfig = field(default_factory=LogConfig)


SECTIONS: Final[Mapping[str, type[Any]]] = {
    one.name: type(getattr(Config(), one.name)) for one in fields(Config)
}
CONFIG_KEYS: Final[Mapping[str, Mapping[str, Key]]] = {
    section: {one.name: one.metadata["key"] for one in fields(made)} for section, made in SECTIONS.items()
}
"""Section -> its keys, in the order of the file."""
