"""Types of answers: peers."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import ByteCount, Count, Id, SyncProgress, UnixSeconds, one_of

AddressSourceText = Annotated[
    str,
    one_of("configured", "link", "introduction", "lan", "incoming", description="Where the address is from."),
]


class PeerSettings(TypedDict):
    """Settings of a peer that this node keeps a connection to, from the user or from links."""

    peer: Id
    address: Annotated[str, Meta(description="`host:port`, or `wss://host:port/path`.")]
    others: Annotated[list[str], Meta(description="Its further addresses.")]
    from_link: Annotated[
        bool, Meta(description="A link named the addresses. They are dialed with more restraint.")
    ]
    relay: Annotated[bool, Meta(description="The peer may keep all topics of this node.")]
    repos: Annotated[
        list[Id],
        Meta(description="Repos whose links named the peer: if it is a relay, it may keep their topics."),
    ]


class TopicName(TypedDict):
    """Part of a repo that a topic carries."""

    repo: Id
    name: Annotated[str, Meta(description="The repo's; of a link topic the branch's.")]
    kind: Annotated[
        str,
        one_of(
            "epoch", "writers", "branch",
            description="An epoch's own topic, its writers' topic, or the topic by which one branch is followed.",
        ),
    ]  # fmt: skip
    epoch: Annotated[Id, Meta(description="One of those that the topic is of.")]


class TopicView(TopicName):
    """State of a topic with a peer."""

    state: Annotated[
        str,
        Meta(
            description=(
                "`comparing`, `sending`, `receiving`, `in sync`, `waiting` (both hold the same, and commits wait here for "
                "earlier ones or for a key), `not joined`, or `refused: ` and a relay's quota."
            )
        ),
    ]
    behind: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000_000,
            description="Commits that the peer states to have and this node has not, at least.",
        ),
    ]
    progress: Annotated[
        SyncProgress | None,
        Meta(description="Of what comes from the peer, else of what is sent to it. Null: nothing is."),
    ]
    bodiless: Annotated[bool, Meta(description="The peer has erased bodies that commits are judged by.")]
    to_send: Count
    sent: Count
    confirmed: Annotated[Count, Meta(description="Sent, and durable on the peer or not taken by it.")]
    received: Count
    stalled_since: Annotated[int | None, Meta(description="Unix seconds.")]
    stalled_because: Annotated[
        str | None,
        Meta(description="`nothing_heard`: no sign of the peer. `takes_nothing`: it acknowledges nothing."),
    ]


class PeerOwner(TypedDict):
    """The user whose node a peer is, as that user signed on a connection: a member of a repo that both follow."""

    user: Id
    name: Annotated[str, Meta(description="Name of the person as it is shown. Empty: only the id is known.")]
    device: Annotated[
        str,
        Meta(
            description="Name of this one of the person's devices. Empty: the first, or one without a name."
        ),
    ]
    mine: Annotated[bool, Meta(description="True for another node of this node's own person.")]


class CalledPeer(TypedDict):
    """Names of a peer."""

    name: Annotated[str, Meta(description="Name that this user gave the peer (`ravel name`). Empty: none.")]
    owner: Annotated[
        PeerOwner | None, Meta(description="Person whose node this is. Null: no member has said so.")
    ]


class PeerView(CalledPeer):
    """A peer that this node keeps a connection to, or that is connected."""

    peer: Id
    address: Annotated[
        str,
        Meta(description="`host:port`, `wss://host:port/path`, or `relay:` and the id of the relay between."),
    ]
    path: Annotated[
        str,
        one_of(
            "direct",
            "punched",
            "relayed",
            description=(
                "What the connection goes through, or would: `relayed`, a relay; `punched`, routers that both sides "
                "have opened by dialing at one moment."
            ),
        ),
    ]
    through: Annotated[Id | None, Meta(description="That relay. Null: none.")]
    through_name: Annotated[str, Meta(description="What this user calls it, or its address. Empty: nothing.")]
    websocket: Annotated[bool, Meta(description="It goes by WebSocket, as the web does.")]
    direction: Annotated[str, one_of("in", "out", description="Who opened the connection: `out`, this node.")]
    state: Annotated[str, one_of("connected", "dialing", "waiting", description="The connection's state.")]
    since: Annotated[UnixSeconds, Meta(description="Unix seconds when it came into this state.")]
    last_error: str | None
    relay: bool
    newer_features: Annotated[
        list[str],
        Meta(description="Features of the peer's version that this node's has not. Empty: none is known."),
    ]
    older_features: Annotated[
        list[str],
        Meta(description="Features of this node's version that the peer's has not. Empty: none is known."),
    ]
    waiting_topics: Annotated[
        Count,
        Meta(
            description="Topics that wait until others were compared, for one connection has room for 4,096."
        ),
    ]
    unknown_messages: Annotated[
        Count, Meta(description="Messages of the peer of kinds that this version does not know.")
    ]
    source: AddressSourceText
    reached_at: Annotated[
        int | None, Meta(description="Unix seconds when it last proved its key where it was dialed.")
    ]
    topics: list[TopicView]


class LearnedAddress(TypedDict):
    """An address that was learned of a peer that is not connected."""

    peer: Id
    address: str
    source: AddressSourceText
    reached_at: Annotated[
        int | None, Meta(description="Unix seconds when the peer was last reached anywhere.")
    ]
    failures: Annotated[int, Meta(ge=0, description="Failed dials since then.")]


class PeerList(TypedDict):
    """Peers, learned addresses and banned peers."""

    peers: list[PeerView]
    known: list[LearnedAddress]
    banned: list[Id]


class PeerBan(TypedDict):
    """Ban of a peer."""

    peer: Id
    banned: bool


class RelayedTopic(TypedDict):
    """A topic that this node keeps for others."""

    topic: Id
    commits: Count
    size: Annotated[int, Meta(ge=0, description="Bytes of publications and files.")]
    file_size: Annotated[int, Meta(ge=0, description="Of these, what files take.")]
    pinned: Annotated[bool, Meta(description="It is not deleted to make room.")]
    touched_at: UnixSeconds
    brought_by: Annotated[Id | None, Meta(description="The peer that brought it. Null: the operator.")]
    known: Annotated[bool, Meta(description="A known peer has entrusted it.")]
    shared: Annotated[bool, Meta(description="Two peers have asked for it.")]


class RelayedTopicList(TypedDict):
    """The topics that this node keeps for others."""

    topics: Annotated[list[RelayedTopic], Meta(description="The latest touched first.")]
    size: ByteCount
    size_max: ByteCount
    takes_strangers: Annotated[bool, Meta(description="Unknown peers may add topics.")]
    allowed: Annotated[list[Id], Meta(description="Known peers.")]


VisitorKind = Annotated[
    str,
    one_of(
        "account",
        "partner",
        "known",
        "stranger",
        description=(
            "The first that fits: nodes of accounts, relays that keep the same topics, peers that the operator knows "
            "otherwise, all others."
        ),
    ),
]


class RelayVisitors(TypedDict):
    """Peers of one kind, for a relay's operator."""

    kind: VisitorKind
    peers: Annotated[Count, Meta(description="Those that brought something that is kept.")]
    size: Annotated[int, Meta(ge=0, description="Bytes that they brought and that are kept.")]
    connected: Count
    circuits: Annotated[Count, Meta(description="Circuits that they asked for, and that are open.")]
    circuit_bytes: Annotated[int, Meta(ge=0, description="Bytes that these passed since the start.")]


class RelayCircuits(TypedDict):
    """Circuits through a relay."""

    open: Count
    open_max: Count
    peers: Annotated[Count, Meta(description="Connected peers that take circuits.")]
    opened: Annotated[Count, Meta(description="Since the start.")]
    bytes: Annotated[int, Meta(ge=0, description="Bytes that passed since the start.")]
    bytes_per_second: Annotated[int, Meta(ge=0, description="In the last minute.")]


class RelayRefusal(TypedDict):
    """Refusals of a relay since its start."""

    what: Annotated[
        str,
        one_of(
            "topic",
            "commits",
            "file",
            "circuit",
            "link",
            description="To keep a topic, commits of a message, or a file; to open a circuit; a link to an account.",
        ),
    ]
    kind: VisitorKind
    reason: Annotated[str, Meta(description="A code, such as `account_full`.")]
    count: Count
    last_at: UnixSeconds


class RelayStatus(TypedDict):
    """Kept data and refusals of a relay, and when it will be full."""

    topics: Count
    topics_max: Count
    commits: Count
    size: ByteCount
    file_size: Annotated[int, Meta(ge=0, description="Of these, what files take.")]
    size_max: ByteCount
    takes_strangers: Annotated[bool, Meta(description="Unknown peers may add topics.")]
    accounts: Count
    promised: Annotated[int, Meta(ge=0, description="Bytes of the quotas of all accounts together.")]
    free: Annotated[int, Meta(ge=0, description="Bytes that are free on the disk of the node's folder.")]
    growth: Annotated[int, Meta(ge=0, description="Bytes a day that came in the last week.")]
    full_in_days: Annotated[
        int | None,
        Meta(description="Days until `full_first` is full at that rate. Null: not within ten years."),
    ]
    full_first: Annotated[str, one_of("quota", "disk", description="What will be full first.")]
    visitors: Annotated[list[RelayVisitors], Meta(description="By kind; each kind once.")]
    circuits: Annotated[RelayCircuits | None, Meta(description="Null: this relay opens none.")]
    files_kept: Annotated[Count, Meta(description="Files that became whole here since the start.")]
    blocks_damaged: Annotated[
        Count, Meta(description="Blocks of files that were found damaged since the start.")
    ]
    refusals: Annotated[list[RelayRefusal], Meta(description="The latest first.")]


class RelayAllowance(TypedDict):
    """Permission of a peer at this relay."""

    peer: Id
    allowed: bool
