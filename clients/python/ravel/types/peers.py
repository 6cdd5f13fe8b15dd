"""Types of answers: peers."""

from typing import Annotated, TypedDict

from msgspec import Meta

from ravel.types.values import ByteCount, Count, Id, SyncProgress, UnixSeconds, means, one_of

AddressSourceText = Annotated[
    str,
    one_of("configured", "link", "introduction", "lan", "incoming", description="Where the address is from."),
]


class PeerSettings(TypedDict):
    """Settings of a peer that this node keeps a connection to, from the user or from links."""

    peer: Id
    address: Annotated[str, means("`host:port`, or `wss://host:port/path`.")]
    others: Annotated[list[str], means("Its further addresses.")]
    from_link: Annotated[bool, means("A link named the addresses. They are dialed with more restraint.")]
    relay: Annotated[bool, means("The peer may keep all topics of this node.")]
    repos: Annotated[
        list[Id], means("Repos whose links named the peer: if it is a relay, it may keep their topics.")
    ]


class TopicName(TypedDict):
    """Part of a repo that a topic carries."""

    repo: Id
    name: Annotated[str, means("The repo's; of a link topic the branch's.")]
    kind: Annotated[
        str,
        one_of(
            "epoch", "writers", "branch",
            description="An epoch's own topic, its writers' topic, or the topic by which one branch is followed."
        )
    ]  # fmt: skip
    epoch: Annotated[Id, means("One of those that the topic is of.")]


class TopicView(TopicName):
    """State of a topic with a peer."""

    state: Annotated[
        str,
        means(
            "`comparing`, `sending`, `receiving`, `in sync`, `waiting` (both hold the same, and commits wait here for "
            "earlier ones or for a key), `not joined`, or `refused: ` and a relay's quota."
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
        means("Of what comes from the peer, else of what is sent to it. Null: nothing is."),
    ]
    bodiless: Annotated[bool, means("The peer has erased bodies that commits are judged by.")]
    to_send: Count
    sent: Count
    confirmed: Annotated[Count, means("Sent, and durable on the peer or not taken by it.")]
    received: Count
    stalled_since: Annotated[int | None, means("Unix seconds.")]
    stalled_because: Annotated[
        str | None, means("`nothing_heard`: no sign of the peer. `takes_nothing`: it acknowledges nothing.")
    ]


class PeerOwner(TypedDict):
    """The user whose node a peer is, as that user signed on a connection: a member of a repo that both follow."""

    user: Id
    name: Annotated[str, means("Name of the person as it is shown. Empty: only the id is known.")]
    device: Annotated[
        str, means("Name of this one of the person's devices. Empty: the first, or one without a name.")
    ]
    mine: Annotated[bool, means("True for another node of this node's own person.")]
    earlier: Annotated[bool, means("True for a computer whose place passed to another of the person's.")]


class CalledPeer(TypedDict):
    """Names of a peer."""

    name: Annotated[str, means("Name that this user gave the peer (`ravel name`). Empty: none.")]
    owner: Annotated[PeerOwner | None, means("Person whose node this is. Null: no member has said so.")]


class PeerView(CalledPeer):
    """A peer that this node keeps a connection to, or that is connected."""

    peer: Id
    address: Annotated[
        str, means("`host:port`, `wss://host:port/path`, or `relay:` and the id of the relay between.")
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
    through: Annotated[Id | None, means("That relay. Null: none.")]
    through_name: Annotated[str, means("What this user calls it, or its address. Empty: nothing.")]
    websocket: Annotated[bool, means("It goes by WebSocket, as the web does.")]
    direction: Annotated[str, one_of("in", "out", description="Who opened the connection: `out`, this node.")]
    state: Annotated[str, one_of("connected", "dialing", "waiting", description="The connection's state.")]
    since: Annotated[UnixSeconds, means("Unix seconds when it came into this state.")]
    last_error: str | None
    relay: bool
    newer_features: Annotated[
        list[str], means("Features of the peer's version that this node's has not. Empty: none is known.")
    ]
    older_features: Annotated[
        list[str], means("Features of this node's version that the peer's has not. Empty: none is known.")
    ]
    waiting_topics: Annotated[
        Count, means("Topics that wait until others were compared, for one connection has room for 4,096.")
    ]
    unknown_messages: Annotated[
        Count, means("Messages of the peer of kinds that this version does not know.")
    ]
    source: AddressSourceText
    reached_at: Annotated[int | None, means("Unix seconds when it last proved its key where it was dialed.")]
    topics: list[TopicView]


class LearnedAddress(TypedDict):
    """An address that was learned of a peer that is not connected."""

    peer: Id
    address: str
    source: AddressSourceText
    reached_at: Annotated[int | None, means("Unix seconds when the peer was last reached anywhere.")]
    failures: Annotated[int, means("Failed dials since then.", ge=0)]


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
    size: Annotated[int, means("Bytes of publications and files.", ge=0)]
    file_size: Annotated[int, means("Of these, what files take.", ge=0)]
    pinned: Annotated[bool, means("It is not deleted to make room.")]
    touched_at: UnixSeconds
    brought_by: Annotated[Id | None, means("The peer that brought it. Null: the operator.")]
    known: Annotated[bool, means("A known peer has entrusted it.")]
    shared: Annotated[bool, means("Two peers have asked for it.")]


class RelayedTopicList(TypedDict):
    """The topics that this node keeps for others."""

    topics: Annotated[list[RelayedTopic], means("The latest touched first.")]
    size: ByteCount
    size_max: ByteCount
    takes_strangers: Annotated[bool, means("Unknown peers may add topics.")]
    allowed: Annotated[list[Id], means("Known peers.")]


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
    peers: Annotated[Count, means("Those that brought something that is kept.")]
    size: Annotated[int, means("Bytes that they brought and that are kept.", ge=0)]
    connected: Count
    circuits: Annotated[Count, means("Circuits that they asked for, and that are open.")]
    circuit_bytes: Annotated[int, means("Bytes that these passed since the start.", ge=0)]


class RelayCircuits(TypedDict):
    """Circuits through a relay."""

    open: Count
    open_max: Count
    peers: Annotated[Count, means("Connected peers that take circuits.")]
    opened: Annotated[Count, means("Since the start.")]
    bytes: Annotated[int, means("Bytes that passed since the start.", ge=0)]
    bytes_per_second: Annotated[int, means("In the last minute.", ge=0)]


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
    reason: Annotated[str, means("A code, such as `account_full`.")]
    count: Count
    last_at: UnixSeconds


class RelayStatus(TypedDict):
    """Kept data and refusals of a relay, and when it will be full."""

    topics: Count
    topics_max: Count
    commits: Count
    size: ByteCount
    file_size: Annotated[int, means("Of these, what files take.", ge=0)]
    size_max: ByteCount
    takes_strangers: Annotated[bool, means("Unknown peers may add topics.")]
    accounts: Count
    promised: Annotated[int, means("Bytes of the quotas of all accounts together.", ge=0)]
    free: Annotated[int, means("Bytes that are free on the disk of the node's folder.", ge=0)]
    growth: Annotated[int, means("Bytes a day that came in the last week.", ge=0)]
    full_in_days: Annotated[
        int | None, means("Days until `full_first` is full at that rate. Null: not within ten years.")
    ]
    full_first: Annotated[str, one_of("quota", "disk", description="What will be full first.")]
    visitors: Annotated[list[RelayVisitors], means("By kind; each kind once.")]
    circuits: Annotated[RelayCircuits | None, means("Null: this relay opens none.")]
    files_kept: Annotated[Count, means("Files that became whole here since the start.")]
    blocks_damaged: Annotated[Count, means("Blocks of files that were found damaged since the start.")]
    refusals: Annotated[list[RelayRefusal], means("The latest first.")]


class RelayAllowance(TypedDict):
    """Permission of a peer at this relay."""

    peer: Id
    allowed: bool
