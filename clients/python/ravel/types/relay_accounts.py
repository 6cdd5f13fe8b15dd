"""Types of answers: relay_accounts. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict


class RelayAccountList(TypedDict):
    """The accounts of this relay."""

    accounts: list[RelayAccount]
    """By name."""
    takes_strangers: bool
    """Nodes without an account may add topics, too."""


class AccountLink(TypedDict):
    """A link that gives one node the account, once."""

    name: str
    quota: int
    """Bytes."""
    link: str
    """A secret: who uses it first has the account."""
    expires_at: int
    """Unix seconds."""
    addresses: list[str]
    """Addresses (`host:port`) that the link names."""
    reach: str
    """From where the link's addresses can be dialed, at the farthest."""


class RelayAccount(TypedDict):
    """An account of this relay."""

    name: str
    quota: int
    """Bytes."""
    used: int
    """Bytes."""
    nodes: list[str]
    connected: int
    """Its nodes that are connected."""
    circuits: int
    """Circuits that its nodes asked for, and that are open."""
    circuit_bytes: int
    """Bytes of its nodes' circuits in their day."""
    links: int
    """Links that wait to be used."""
    created_at: int
    """Unix seconds."""


class JoinedRelay(TypedDict):
    """An account that this node has at a relay."""

    relay: str
    address: str
    quota: int
    """Bytes."""
    used: int
    """Bytes."""
