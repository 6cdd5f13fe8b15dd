"""Types of answers: peers. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TypedDict

from ravel.types.values import SyncProgress


class PeerList(TypedDict):
    """Peers, learned addresses and banned peers."""

    peers: list[PeerView]
    known: list[LearnedAddress]
    banned: list[str]


class PeerView(TypedDict):
    """A peer that this node keeps a connection to, or that is connected."""

    name: str
    """Name that this user gave the peer (`ravel name`). Empty: none."""
    owner: PeerOwner | None
    """Person whose node this is. Null: no member has said so."""
    peer: str
    address: str
    """`host:port`, `wss://host:port/path`, or `relay:` and the id of the relay between."""
    path: str
    """What the connection goes through, or would: `relayed`, a relay; `punched`, routers that both sides have
    opened by dialing at one moment.
    """
    through: str | None
    """That relay. Null: none."""
    through_name: str
    """What this user calls it, or its address. Empty: nothing."""
    websocket: bool
    """It goes by WebSocket, as the web does."""
    direction: str
    """Who opened the connection: `out`, this node."""
    state: str
    """The connection's state."""
    since: int
    """Unix seconds when it came into this state."""
    last_error: str | None
    relay: bool
    newer_features: list[str]
    """Features of the peer's version that this node's has not. Empty: none is known."""
    older_features: list[str]
    """Features of this node's version that the peer's has not. Empty: none is known."""
    waiting_topics: int
    """Topics that wait until others were compared, for one connection has room for 4,096."""
    unknown_messages: int
    """Messages of the peer of kinds that this version does not know."""
    source: str
    """Where the address is from."""
    reached_at: int | None
    """Unix seconds when it last proved its key where it was dialed."""
    topics: list[TopicView]


class PeerSettings(TypedDict):
    """Settings of a peer that this node keeps a connection to, from the user or from links."""

    peer: str
    address: str
    """`host:port`, or `wss://host:port/path`."""
    others: list[str]
    """Its further addresses."""
    from_link: bool
    """A link named the addresses. They are dialed with more restraint."""
    relay: bool
    """The peer may keep all topics of this node."""
    repos: list[str]
    """Repos whose links named the peer: if it is a relay, it may keep their topics."""


class PeerBan(TypedDict):
    """Ban of a peer."""

    peer: str
    banned: bool


class RelayStatus(TypedDict):
    """Kept data and refusals of a relay, and when it will be full."""

    topics: int
    topics_max: int
    commits: int
    size: int
    """Bytes."""
    file_size: int
    """Of these, what files take."""
    size_max: int
    """Bytes."""
    takes_strangers: bool
    """Unknown peers may add topics."""
    accounts: int
    promised: int
    """Bytes of the quotas of all accounts together."""
    free: int
    """Bytes that are free on the disk of the node's folder."""
    growth: int
    """Bytes a day that came in the last week."""
    full_in_days: int | None
    """Days until `full_first` is full at that rate. Null: not within ten years."""
    full_first: str
    """What will be full first."""
    visitors: list[RelayVisitors]
    """By kind; each kind once."""
    circuits: RelayCircuits | None
    """Null: this relay opens none."""
    files_kept: int
    """Files that became whole here since the start."""
    blocks_damaged: int
    """Blocks of files that were found damaged since the start."""
    refusals: list[RelayRefusal]
    """The latest first."""


class RelayedTopicList(TypedDict):
    """The topics that this node keeps for others."""

    topics: list[RelayedTopic]
    """The latest touched first."""
    size: int
    """Bytes."""
    size_max: int
    """Bytes."""
    takes_strangers: bool
    """Unknown peers may add topics."""
    allowed: list[str]
    """Known peers."""


class RelayedTopic(TypedDict):
    """A topic that this node keeps for others."""

    topic: str
    commits: int
    size: int
    """Bytes of publications and files."""
    file_size: int
    """Of these, what files take."""
    pinned: bool
    """It is not deleted to make room."""
    touched_at: int
    """Unix seconds."""
    brought_by: str | None
    """The peer that brought it. Null: the operator."""
    known: bool
    """A known peer has entrusted it."""
    shared: bool
    """Two peers have asked for it."""


class RelayAllowance(TypedDict):
    """Permission of a peer at this relay."""

    peer: str
    allowed: bool


class LearnedAddress(TypedDict):
    """An address that was learned of a peer that is not connected."""

    peer: str
    address: str
    source: str
    """Where the address is from."""
    reached_at: int | None
    """Unix seconds when the peer was last reached anywhere."""
    failures: int
    """Failed dials since then."""


class PeerOwner(TypedDict):
    """The user whose node a peer is, as that user signed on a connection: a member of a repo that both follow."""

    user: str
    name: str
    """Name of the person as it is shown. Empty: only the id is known."""
    device: str
    """Name of this one of the person's devices. Empty: the first, or one without a name."""
    mine: bool
    """True for another node of this node's own person."""


class TopicView(TypedDict):
    """State of a topic with a peer."""

    repo: str
    name: str
    """The repo's; of a link topic the branch's."""
    kind: str
    """An epoch's own topic, its writers' topic, or the topic by which one branch is followed."""
    epoch: str
    """One of those that the topic is of."""
    state: str
    """`comparing`, `sending`, `receiving`, `in sync`, `waiting` (both hold the same, and commits wait here for
    earlier ones or for a key), `not joined`, or `refused: ` and a relay's quota.
    """
    behind: int
    """Commits that the peer states to have and this node has not, at least."""
    progress: SyncProgress | None
    """Of what comes from the peer, else of what is sent to it. Null: nothing is."""
    bodiless: bool
    """The peer has erased bodies that commits are judged by."""
    to_send: int
    sent: int
    confirmed: int
    """Sent, and durable on the peer or not taken by it."""
    received: int
    stalled_since: int | None
    """Unix seconds."""
    stalled_because: str | None
    """`nothing_heard`: no sign of the peer. `takes_nothing`: it acknowledges nothing."""


class RelayVisitors(TypedDict):
    """Peers of one kind, for a relay's operator."""

    kind: str
    """The first that fits: nodes of accounts, relays that keep the same topics, peers that the operator knows
    otherwise, all others.
    """
    peers: int
    """Those that brought something that is kept."""
    size: int
    """Bytes that they brought and that are kept."""
    connected: int
    circuits: int
    """Circuits that they asked for, and that are open."""
    circuit_bytes: int
    """Bytes that these passed since the start."""


class RelayCircuits(TypedDict):
    """Circuits through a relay."""

    open: int
    open_max: int
    peers: int
    """Connected peers that take circuits."""
    opened: int
    """Since the start."""
    bytes: int
    """Bytes that passed since the start."""
    bytes_per_second: int
    """In the last minute."""


class RelayRefusal(TypedDict):
    """Refusals of a relay since its start."""

    what: str
    """To keep a topic, commits of a message, or a file; to open a circuit; a link to an account."""
    kind: str
    """The first that fits: nodes of accounts, relays that keep the same topics, peers that the operator knows
    otherwise, all others.
    """
    reason: str
    """A code, such as `account_full`."""
    count: int
    last_at: int
    """Unix seconds."""
