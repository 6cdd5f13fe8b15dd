"""Types of answers: relay accounts."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import ByteCount, Count, Id, LinkReach, UnixSeconds


class AccountLink(TypedDict):
    """A link that gives one node the account, once."""

    name: str
    quota: ByteCount
    link: Annotated[str, Meta(description="A secret: who uses it first has the account.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], Meta(description="Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class RelayAccount(TypedDict):
    """An account of this relay."""

    name: str
    quota: ByteCount
    used: ByteCount
    nodes: list[Id]
    connected: Annotated[Count, Meta(description="Its nodes that are connected.")]
    circuits: Annotated[Count, Meta(description="Circuits that its nodes asked for, and that are open.")]
    circuit_bytes: Annotated[int, Meta(ge=0, description="Bytes of its nodes' circuits in their day.")]
    links: Annotated[Count, Meta(description="Links that wait to be used.")]
    created_at: UnixSeconds


class RelayAccountList(TypedDict):
    """The accounts of this relay."""

    accounts: Annotated[list[RelayAccount], Meta(description="By name.")]
    takes_strangers: Annotated[bool, Meta(description="Nodes without an account may add topics, too.")]


class JoinedRelay(TypedDict):
    """An account that this node has at a relay."""

    relay: Id
    address: str
    quota: ByteCount
    used: ByteCount
