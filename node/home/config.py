"""Parses `config.toml` strictly; `config_layers` adds overrides.

An unknown section or key is an error that names the nearest one that is known, because a setting that is silently
ignored is worse than none. Values are checked where they are read; the rest of the node gets frozen dataclasses.
"""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from node.home.config_sections import (
    ACCEPT_CHOICES,
    ANYONE,
    API_KEYS,
    API_LISTEN_DEFAULT,
    ERASE_AFTER_DAYS_MAX,
    RELAY_BOUNDS,
    RELAY_KEYS,
    RELAY_NUMBERS,
    RELAY_TEXT,
    STORAGE_KEYS,
    ApiConfig,
    Network,
    RelayConfig,
    StorageConfig,
    api_text,
    storage_text,
)
from node.home.export_config import EXPORT_KEYS, EXPORT_TEXT, ExportConfig, read_export
from node.runtime.errors import ServiceError
from protocol.codec import DecodeError
from protocol.formats.text import parse_id
from protocol.formats.web_address import is_web_address, parse_web_address
from protocol.ids import PeerId
from protocol.limits.peers import ADVERTISED_ADDRESSES_MAX
from protocol.limits.users import TLS_NAMES_MAX
from ravel.home import access_advice
from storage.engine.urls import check_url

CONFIG_NAME: Final = "config.toml"
_SHOWN_SIZE_MAX: Final = 100
"""Characters of a value in a message."""
CONFIG_SIZE_MAX: Final = 1 << 20
LISTEN_DEFAULT: Final = "*:7474"
"""Every interface, by IPv4 and IPv6. Peers prove their keys, and strangers learn nothing."""
WORKERS_DEFAULT: Final = 4
"""Three read as fast as one process judges and stores; the fourth is for relayed topics and for other repos."""
WORKERS_MAX: Final = 64
"""Some 40 MB each, and one process judges what they read."""
SIZE_MAX_MIB: Final = 2**30
"""MiB of the largest size that can be configured: more than any disk has, and still a number of bytes that fits a row."""
NOTHING: Final = "nothing"
"""The value of `[network] advertise` with which the node tells no other one its address."""
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class PeerConfig:
    """A peer to keep a connection to."""

    address: str
    peer: PeerId
    relay: bool = False  # whether it may keep all that is followed here


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """[node]: `workers` is how many processes read what peers send, at most; fewer where there are fewer cores."""

    workers: int = WORKERS_DEFAULT


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """[network]: an empty `advertise` stands for the addresses that the node finds of itself.

    `introductions`: whether peers of a repo are told of one another. `discover_lan`: whether kept peers are looked for on
    the local network, and this node found there by those who know its key. `circuits`: whether relays are used for talking
    to peers that cannot be dialed. `punching`: and whether direct ways are sought then. `map_port`: whether the router is
    asked for a port. An empty `websocket_listen` listens nowhere; without a certificate it is without TLS.
    """

    listen: str = LISTEN_DEFAULT
    advertise: str = ""
    peers: tuple[PeerConfig, ...] = ()
    introductions: bool = True
    discover_lan: bool = False
    circuits: bool = True
    punching: bool = True
    map_port: bool = True
    websocket_listen: str = ""
    websocket_certificate: str = ""
    websocket_key: str = ""


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """[search]: `enabled`: whether the node keeps an index by which posts are searched."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class LogConfig:
    """[log]"""

    level: str = "info"


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


CONFIG_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("workers",),
    "network": (
        "listen",
        "advertise",
        "peers",
        "introductions",
        "discover_lan",
        "circuits",
        "punching",
        "map_port",
        "websocket_listen",
        "websocket_certificate",
        "websocket_key",
    ),
    "api": API_KEYS,
    "export": EXPORT_KEYS,
    "relay": RELAY_KEYS,
    "storage": STORAGE_KEYS,
    "search": ("enabled",),
    "log": ("level",),
}
"""Section -> its keys."""

Document = dict[str, dict[str, object]]
"""Parsed configuration: section -> key -> value, all of them known, no value checked yet."""


def default_config_text(
    *, listen: str = LISTEN_DEFAULT, api: str = API_LISTEN_DEFAULT, storage: str = ""
) -> str:
    """Write a commented configuration file with these values."""
    return f"""\
# Configuration of a Ravel node. Every key is here, with its default unless `ravel init` was told otherwise.

[node]
# Processes that read what peers send, at most. The node starts them when there is work, and one fewer than there are cores.
# 0: the daemon reads all by itself.
workers = {WORKERS_DEFAULT}

[network]
# host:port that other nodes connect to. The host * stands for every interface, by IPv4 and IPv6 (0.0.0.0: IPv4 alone);
# port 0 takes any free port. On 127.0.0.1 only this machine can connect.
listen = {_quoted(listen)}
# Addresses that invitations and introductions name, up to {ADVERTISED_ADDRESSES_MAX}, with commas between: host:port, or wss://name.
# Empty: the addresses that the node finds (`ravel status --verbose`). Set it where it finds none, such as behind a router
# that forwards a port.
# "nothing": the node tells no other one its address, and links name relays alone.
advertise = ""
# Peers to keep a connection to, beside those that invitations and `ravel peer add` name:
# peers = [{{ address = "host:7474", peer = "the 52 characters that `ravel id` prints there" }}]
# With `relay = true` in it, a relay is asked to keep all that this node follows.
peers = []
# Whether peers of a repo tell each other where further ones can be dialed. false: this node is not made known to
# others, and takes no addresses from them.
introductions = true
# Whether peers are looked for on the local network (mDNS), and this node is found there by those who know its key.
# Others on that network can tell that some Ravel node runs here.
discover_lan = false
# Whether peers that cannot be dialed are reached through the relays that this node uses, and may reach it that way. Such a
# relay learns which nodes talk, when and how much, and not what.
circuits = true
# Whether this node and a peer that talk through a relay try to connect directly, by dialing each other at one moment. Each
# learns the other's address. Needs `introductions`, too.
punching = true
# Whether the router is asked to forward a port to this node (PCP, NAT-PMP, UPnP), where this machine has no public address
# of its own and `advertise` says none.
map_port = true
# host:port for nodes that connect by WebSocket, such as "127.0.0.1:9443" behind a web server that has port 443 and TLS.
# Empty: none. The path ends in /ravel. Others dial wss://NAME, which `advertise` can say.
websocket_listen = ""
# PEM files with a certificate and its key, where this node itself is to have TLS. Empty: none. Read at the start.
websocket_certificate = ""
websocket_key = ""

{api_text(_quoted(api))}
{EXPORT_TEXT}
{RELAY_TEXT}
{storage_text(_quoted(storage))}
[search]
# Whether the node keeps an index by which `ravel search` and the page find posts: some 330 bytes for a post of twelve
# words. It holds no word in the clear. false: an index that is there is removed.
enabled = true

[log]
# debug, info, warning or error; logs go to standard error.
level = "info"
"""


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Source of a value, for errors: its name, and the advice to give there."""

    name: str
    next_step: str


def load_document(path: Path) -> Document:
    """Read a configuration file. Raises ServiceError `bad_config`, naming the file."""
    try:
        raw = path.read_bytes()
        if len(raw) > CONFIG_SIZE_MAX:
            raise bad_config(of_file(path), f"it has more than {CONFIG_SIZE_MAX} bytes")
        text = raw.decode("utf-8-sig")  # some editors write a byte order mark
    except PermissionError as error:
        raise bad_config(SettingOrigin(str(path), access_advice(path)), str(error.strerror)) from None
    except OSError as error:
        raise bad_config(of_file(path), str(error)) from None
    except UnicodeDecodeError as error:
        raise bad_config(of_file(path), f"not TOML: {error}") from None
    return parse_document(path, text)


def parse_config(path: Path, text: str) -> Config:
    """Parse the configuration that a text states; `path` is what errors name. Raises ServiceError `bad_config`."""
    return read_config(path, parse_document(path, text))


def parse_document(path: Path, text: str) -> Document:
    """Parse a text into a document whose sections and keys are known. Raises ServiceError `bad_config`."""
    origin = of_file(path)
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise bad_config(origin, f"not TOML: {error}") from None
    for section, values in document.items():
        check_known(origin, "section", section, tuple(CONFIG_KEYS))
        if not isinstance(values, dict):
            raise bad_config(origin, f"[{section}] is a section, not a value")
        for key in values:
            check_known(origin, f"key in [{section}]", key, CONFIG_KEYS[section])
    return document


def read_config(
    path: Path, document: Document, origins: Mapping[tuple[str, str], SettingOrigin] = MappingProxyType({})
) -> Config:
    """Build the configuration of a document, whose values are from `path` where `origins` names no other place.

    Raises ServiceError `bad_config`.
    """
    reader = _Reader(path, document, origins)
    return Config(
        NodeConfig(
            reader.integer("node", "workers", WORKERS_DEFAULT, low=0, high=WORKERS_MAX),
        ),
        NetworkConfig(
            reader.address("network", "listen", LISTEN_DEFAULT),
            reader.advertised(),
            reader.peers(),
            reader.flag("network", "introductions", default=True),
            reader.flag("network", "discover_lan", default=False),
            reader.flag("network", "circuits", default=True),
            reader.flag("network", "punching", default=True),
            reader.flag("network", "map_port", default=True),
            reader.optional_address("network", "websocket_listen"),
            reader.text("network", "websocket_certificate", ""),
            reader.text("network", "websocket_key", ""),
        ),
        reader.api(),
        reader.export(),
        RelayConfig(
            reader.flag("relay", "enabled", default=False),
            reader.choice("relay", "accept", ANYONE, ACCEPT_CHOICES),
            reader.flag("relay", "circuits", default=True),
            *(reader.relay_number(key) for key in RELAY_NUMBERS),
        ),
        StorageConfig(
            reader.database("storage", "url"),
            reader.integer("storage", "erase_after_days", 0, low=0, high=ERASE_AFTER_DAYS_MAX),
        ),
        SearchConfig(reader.flag("search", "enabled", default=True)),
        LogConfig(reader.choice("log", "level", "info", LOG_LEVELS)),
    )


def list_advertised(advertise: str) -> tuple[str, ...]:
    """Return the addresses that `[network] advertise` names: none where it is empty, or "nothing"."""
    if advertise in ("", NOTHING):
        return ()
    return tuple(address.strip() for address in advertise.split(","))


def _shown(value: object) -> str:
    """Cut a value for a message: a mistake may be of any length."""
    text = repr(value)
    return text if len(text) <= _SHOWN_SIZE_MAX else f"{text[:_SHOWN_SIZE_MAX]}…"


class _Reader:
    """Typed values of a document whose keys are known to be known."""

    def __init__(
        self, path: Path, document: Document, origins: Mapping[tuple[str, str], SettingOrigin]
    ) -> None:
        self._path = path
        self._document = document
        self._origins = origins

    def _bad(self, section: str, key: str, problem: str) -> ServiceError:
        return bad_config(self._origins.get((section, key), of_file(self._path)), problem)

    def text(self, section: str, key: str, default: str) -> str:
        value = self._document.get(section, {}).get(key, default)
        if not isinstance(value, str):
            raise self._bad(section, key, f"[{section}] {key} is a text, not {_shown(value)}")
        return value

    def flag(self, section: str, key: str, *, default: bool) -> bool:
        value = self._document.get(section, {}).get(key, default)
        if not isinstance(value, bool):
            raise self._bad(section, key, f"[{section}] {key} is true or false, not {value!r}")
        return value

    def integer(self, section: str, key: str, default: int, *, low: int = 1, high: int = SIZE_MAX_MIB) -> int:
        value = self._document.get(section, {}).get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._bad(
                section, key, f"[{section}] {key} is a number from {low} to {high}, not {value!r}"
            )
        return value

    def relay_number(self, key: str) -> int:
        low, high = RELAY_BOUNDS.get(key, (1, SIZE_MAX_MIB))
        return self.integer("relay", key, getattr(RelayConfig(), key), low=low, high=high)

    def choice(self, section: str, key: str, default: str, choices: tuple[str, ...]) -> str:
        value = self.text(section, key, default)
        if value not in choices:
            raise self._bad(
                section, key, f"[{section}] {key} is one of {', '.join(choices)}, not {_shown(value)}"
            )
        return value

    def address(self, section: str, key: str, default: str) -> str:
        value = self.text(section, key, default)
        if not is_address(value):
            raise self._bad(
                section, key, f"[{section}] {key} is host:port, not {_shown(value)}: {address_problem(value)}"
            )
        return value

    def database(self, section: str, key: str) -> str:
        value = self._document.get(section, {}).get(key, "")
        try:
            if not isinstance(value, str):
                raise ValueError("is a text")
            check_url(value)
        except ValueError as error:  # which does not say the value: a password may be in it
            raise self._bad(section, key, f"[{section}] {key} {error}") from None
        return value

    def optional_address(self, section: str, key: str) -> str:
        return self.address(section, key, "") if self.text(section, key, "") else ""

    def advertised(self) -> str:
        value = self.text("network", "advertise", "")
        addresses = list_advertised(value)
        if len(addresses) > ADVERTISED_ADDRESSES_MAX:
            problem = f"[network] advertise has at most {ADVERTISED_ADDRESSES_MAX} addresses"
            raise self._bad("network", "advertise", problem)
        for address in addresses:
            if not is_dialable(address):
                raise self._bad(
                    "network",
                    "advertise",
                    "[network] advertise is host:port or wss://name that others can dial, several with commas "
                    f'between, or "nothing", not {_shown(address)}: {address_problem(address)}',
                )
        return value

    def loopback(self, section: str, key: str, default: str) -> str:
        value = self.address(section, key, default)
        if not is_loopback(value):
            raise self._bad(
                section, key, f"[{section}] {key} must be a loopback address, not {_shown(value)}"
            )
        return value

    def api(self) -> ApiConfig:
        return ApiConfig(
            self.loopback("api", "listen", API_LISTEN_DEFAULT),
            self.optional_address("api", "tls"),
            tuple(self._tls_name(name) for name in self.texts("api", "tls_names")),
            self.text("api", "tls_certificate", ""),
            self.text("api", "tls_key", ""),
            tuple(self._network(name) for name in self.texts("api", "trusted_proxies")),
        )

    def texts(self, section: str, key: str) -> list[str]:
        value = self._document.get(section, {}).get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._bad(section, key, f'[{section}] {key} is a list of texts, as in ["a", "b"]')
        if len(value) > TLS_NAMES_MAX:
            raise self._bad(section, key, f"[{section}] {key} has at most {TLS_NAMES_MAX} items")
        return value

    def _tls_name(self, name: str) -> str:
        is_address_there = is_dialable(name) and not is_web_address(name)
        if is_unspecified(f"{name}:1") or not (is_address_there or _is_host(name)):
            raise self._bad(
                "api", "tls_names", f"[api] tls_names has hosts, each without or with a port, not {name!r}"
            )
        return name.lower()

    def _network(self, name: str) -> Network:
        try:
            return ipaddress.ip_network(name, strict=False)
        except ValueError:
            raise self._bad(
                "api", "trusted_proxies", f"[api] trusted_proxies has addresses and networks, not {name!r}"
            ) from None

    def export(self) -> ExportConfig:
        return read_export(
            self._document.get("export", {}), lambda key, problem: self._bad("export", key, problem)
        )

    def peers(self) -> tuple[PeerConfig, ...]:
        entries = self._document.get("network", {}).get("peers", [])
        if not isinstance(entries, list):
            raise self._bad("network", "peers", "[network] peers is a list of { address, peer }")
        return tuple(self._peer(entry) for entry in entries)

    def _peer(self, entry: object) -> PeerConfig:
        if not isinstance(entry, dict) or set(entry) - {"relay"} != {"address", "peer"}:
            raise self._bad("network", "peers", f"[network] peers holds {{ address, peer }}, not {entry!r}")
        address, peer = entry["address"], entry["peer"]
        if not isinstance(address, str) or not is_dialable(address):
            problem = f": {address_problem(address)}" if isinstance(address, str) else ""
            raise self._bad(
                "network", "peers", f"a peer's address is host:port or wss://name, not {address!r}{problem}"
            )
        relay = entry.get("relay", False)
        if not isinstance(relay, bool):
            raise self._bad("network", "peers", f"a peer's relay is true or false, not {relay!r}")
        try:
            return PeerConfig(address, PeerId(parse_id(peer if isinstance(peer, str) else "")), relay)
        except DecodeError:
            raise self._bad(
                "network", "peers", f"a peer's id has 52 characters a-z and 2-7, not {peer!r}"
            ) from None


def is_address(text: str) -> bool:
    """Return True for host:port, the port in decimal from 0 to 65535; an IPv6 host stands in brackets."""
    host, colon, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536
    return bool(colon) and is_port and _is_host(host)


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
        return f"{_shown(port)} is no port number"
    if not is_address(f"{host}:1"):
        return f"{_shown(host)} is no host name or address"
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


def _is_host(text: str) -> bool:
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


def check_known(origin: SettingOrigin, what: str, name: str, known: tuple[str, ...]) -> None:
    """Raise ServiceError `bad_config`, with the nearest name, unless the name is known."""
    if name in known:
        return
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
    raise bad_config(origin, f"unknown {what}: {name!r}{hint}")


def of_file(path: Path) -> SettingOrigin:
    """Make a configuration file the source of a value."""
    return SettingOrigin(str(path), f"edit {path}")


def bad_config(origin: SettingOrigin, problem: str) -> ServiceError:
    """Make the error for what is wrong at a source."""
    return ServiceError("bad_config", f"{origin.name}: {problem}", origin.next_step)


def _quoted(text: str) -> str:
    """Write a TOML basic string: quotes, backslashes and control characters are escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", plain) + '"'
