"""Kinds of values in a configuration: each reader returns the checked value, or raises ValueError with what is wrong.

The error ends a sentence that begins with the key. It holds no value that could be a credential.
"""

import inspect
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from node.home.listen_addresses import (
    address_problem,
    is_address,
    is_dialable,
    is_host,
    is_loopback,
    is_unspecified,
    shorten,
)
from protocol.codec import DecodeError
from protocol.formats.text import parse_id
from protocol.formats.web_address import is_web_address
from protocol.ids import PeerId
from protocol.limits.network import ADVERTISED_ADDRESSES_MAX
from protocol.limits.users import TLS_NAMES_MAX
from storage.engine.urls import check_destination, check_url

SIZE_MAX_MIB: Final = 2**30
"""MiB of the largest size that can be configured: more than any disk has, and still a number of bytes that fits a row."""
NOTHING: Final = "nothing"
"""The value of `[network] advertise` with which the node tells no other one its address."""
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Read = Callable[[object], Any]


@dataclass(frozen=True, slots=True)
class Key:
    """Entry of a configuration: default as in TOML, comment of the file, reader."""

    default: object
    about: str
    """Empty where the comment of the key before it is about both."""
    read: Read
    is_secret: bool

    @property
    def choices(self) -> tuple[str, ...]:
        """All allowed values, if they are few."""
        return self.read.choices if isinstance(self.read, OneOf) else ()


def key(default: object, about: str = "", read: Read | None = None, *, is_secret: bool = False) -> Any:  # noqa: ANN401  # a field of the annotated type
    """Declare a key of a section, as a field. Without a reader it takes a flag or any text, as the default is."""
    reader = read or (read_flag if isinstance(default, bool) else read_text)
    made = Key(default, inspect.cleandoc(about), reader, is_secret)
    return field(default_factory=lambda: reader(default), repr=not is_secret, metadata={"key": made})


@dataclass(frozen=True, slots=True)
class PeerConfig:
    """A peer to keep a connection to."""

    address: str
    peer: PeerId
    relay: bool = False  # whether it may keep all that is followed here


@dataclass(frozen=True, slots=True)
class OneOf:
    """Reader of one of a few texts."""

    choices: tuple[str, ...]

    def __call__(self, value: object) -> str:
        """Read one of the allowed values."""
        if read_text(value) not in self.choices:
            raise ValueError(f"is one of {', '.join(self.choices)}, not {shorten(value)}")
        return read_text(value)


def whole(low: int, high: int, unit: str = "") -> Read:
    """Return the reader of a number within bounds, both included. The unit is for who types another one."""
    most = f"{high} {unit}" if unit else f"{high}"

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"is a number from {low} to {most}, not {shorten(value)}")
        return value

    return read


def read_flag(value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"is true or false, not {shorten(value)}")
    return value


def read_text(value: object) -> str:
    """Read any text."""
    if not isinstance(value, str):
        raise ValueError(f"is a text, not {shorten(value)}")
    return value


def read_address(value: object) -> str:
    """Read host:port to listen on."""
    text = read_text(value)
    if not is_address(text):
        raise ValueError(f"is host:port, not {shorten(text)}: {address_problem(text)}")
    return text


def read_optional_address(value: object) -> str:
    """Read host:port to listen on, or an empty text."""
    return read_address(value) if value != "" else ""


def read_loopback(value: object) -> str:
    """Read host:port that only this machine can dial."""
    text = read_address(value)
    if not is_loopback(text):
        raise ValueError(f"must be a loopback address, not {shorten(text)}")
    return text


def list_advertised(advertise: str) -> tuple[str, ...]:
    """Return the addresses that `[network] advertise` names: none where it is empty, or "nothing"."""
    if advertise in ("", NOTHING):
        return ()
    return tuple(address.strip() for address in advertise.split(","))


def read_advertised(value: object) -> str:
    """Read addresses with commas between, each of which others can dial."""
    addresses = list_advertised(text := read_text(value))
    if len(addresses) > ADVERTISED_ADDRESSES_MAX:
        raise ValueError(f"has at most {ADVERTISED_ADDRESSES_MAX} addresses")
    for address in addresses:
        if not is_dialable(address):
            raise ValueError(
                "is host:port or wss://name that others can dial, several with commas between, or "
                f'"{NOTHING}", not {shorten(address)}: {address_problem(address)}'
            )
    return text


def read_peers(value: object) -> tuple[PeerConfig, ...]:
    """Read a list of peers to dial."""
    if not isinstance(value, list):
        raise ValueError("is a list of { address, peer }")
    return tuple(map(_read_peer, value))


def _read_peer(entry: object) -> PeerConfig:
    if not isinstance(entry, dict) or set(entry) - {"relay"} != {"address", "peer"}:
        raise ValueError(f"holds {{ address, peer }}, not {shorten(entry)}")
    address, peer, relay = entry["address"], entry["peer"], entry.get("relay", False)
    if not isinstance(address, str) or not is_dialable(address):
        problem = f": {address_problem(address)}" if isinstance(address, str) else ""
        raise ValueError(f"holds addresses host:port or wss://name, not {shorten(address)}{problem}")
    if not isinstance(relay, bool):
        raise ValueError(f"holds `relay` as true or false, not {shorten(relay)}")
    try:
        return PeerConfig(address, PeerId(parse_id(peer if isinstance(peer, str) else "")), relay)
    except DecodeError:
        raise ValueError(f"holds peers' ids of 52 characters a-z and 2-7, not {shorten(peer)}") from None


def _read_texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError('is a list of texts, as in ["a", "b"]')
    if len(value) > TLS_NAMES_MAX:
        raise ValueError(f"has at most {TLS_NAMES_MAX} items")
    return value


def read_tls_names(value: object) -> tuple[str, ...]:
    """Read hosts, each without or with a port."""
    names = _read_texts(value)
    for name in names:
        is_address_there = is_dialable(name) and not is_web_address(name)
        if is_unspecified(f"{name}:1") or not (is_address_there or is_host(name)):
            raise ValueError(f"has hosts, each without or with a port, not {shorten(name)}")
    return tuple(map(str.lower, names))


def read_networks(value: object) -> tuple[Network, ...]:
    """Read addresses and networks of IP."""
    found = list[Network]()
    for name in _read_texts(value):
        try:
            found.append(ipaddress.ip_network(name, strict=False))
        except ValueError:
            raise ValueError(f"has addresses and networks, not {shorten(name)}") from None
    return tuple(found)


def read_database_url(value: object) -> str:
    """Read the URL of a database, or an empty text."""
    if not isinstance(value, str):
        raise ValueError("is a text")  # a password may be in it
    check_url(value)
    return value


def read_destination(value: object) -> str:
    """Read the folder or URL of exports."""
    if not isinstance(value, str):
        raise ValueError("is a text")
    check_destination(value)
    return value


def read_options(value: object) -> Mapping[str, Any]:
    """Read what a driver is told."""
    if not isinstance(value, dict):
        raise ValueError('is a table, such as { key = "..." }')
    return value
