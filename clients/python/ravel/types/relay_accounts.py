"""Types of answers: relay accounts."""

from typing import Annotated, TypedDict

from ravel.types.values import ByteCount, Count, Id, LinkReach, UnixSeconds, means


class AccountLink(TypedDict):
    """A link that gives one node the account, once."""

    name: str
    quota: ByteCount
    link: Annotated[str, means("A secret: who uses it first has the account.")]
    expires_at: UnixSeconds
    addresses: Annotated[list[str], means("Addresses (`host:port`) that the link names.")]
    reach: LinkReach


class RelayAccount(TypedDict):
    """An account of this relay."""

    name: str
    quota: ByteCount
    used: ByteCount
    nodes: list[Id]
    connected: Annotated[Count, means("Its nodes that are connected.")]
    circuits: Annotated[Count, means("Circuits that its nodes asked for, and that are open.")]
    circuit_bytes: Annotated[int, means("Bytes of its nodes' circuits in their day.", ge=0)]
    links: Annotated[Count, means("Links that wait to be used.")]
    created_at: UnixSeconds


class RelayAccountList(TypedDict):
    """The accounts of this relay."""

    accounts: Annotated[list[RelayAccount], means("By name.")]
    takes_strangers: Annotated[bool, means("Nodes without an account may add topics, too.")]


class JoinedRelay(TypedDict):
    """An account that this node has at a relay."""

    relay: Id
    address: str
    quota: ByteCount
    used: ByteCount
