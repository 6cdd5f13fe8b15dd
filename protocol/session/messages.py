"""Wire messages between two nodes, one per frame: types, encoding, strict decoding.

Topics are named by their blinded form (see `hashing.blind_topic`), which only a peer that knows the topic can make.
Every count is bounded by its type; `decode_message` is the only parser.

Announce and Summary say which topics and what of them; Reconcile finds what one side lacks; Publications and Receipt bring
it; Want, WantBodies, Fetch and Blocks ask for single commits, their bodies, and blocks; Deposit, Relay and those of files
are for relays. Those of circuits carry the bytes of another session, which a relay passes on.
Features says what a side knows.
"""

import re
from typing import Annotated, Final, get_args

from msgspec import Meta

from protocol.codec import DecodeError, Wire, decode, encode, peek_loose_tag, peek_tag
from protocol.crypto.keys import AccountToken
from protocol.formats.links import PeerAddress
from protocol.ids import (
    AnnouncedTopic,
    AnyId,
    BlindTopic,
    BlockId,
    BranchMark,
    CircuitAddress,
    CommitId,
    Digest,
    ObjectId,
    PeerId,
    ShortId,
    Signature,
    TopicKey,
)
from protocol.limits.formats import ADDRESS_SIZE_MAX, BLOCK_SIZE_MAX, PUBLICATION_SIZE_MAX
from protocol.limits.network import (
    CIRCUIT_DATA_SIZE_MAX,
    NODES_NAMED_MAX,
    PUNCH_ADDRESSES_MAX,
    WIDE_CIRCUIT_WINDOW_SIZE,
)
from protocol.limits.peers import (
    BATCH_COUNT_MAX,
    EARLIER_FINGERPRINT_SIZE,
    EARLIER_PART_COUNT,
    EARLIER_PARTS_MAX,
    FEATURE_COUNT_MAX,
    FEATURE_NAME_SIZE_MAX,
    FETCHED_COUNT_MAX,
    FILES_DEPOSITED_COUNT_MAX,
    FILES_LISTED_COUNT_MAX,
    FRAME_SIZE_MAX,
    INTRODUCED_COUNT_MAX,
    PRESENCE_BOX_SIZE_MAX,
    RANGE_FRAME_SIZE_MAX,
    REASON_SIZE_MAX,
    SUMMARY_HEAD_COUNT_MAX,
    SUMMARY_ROUND_MAX,
    TOPIC_COUNT_MAX,
    WANT_COUNT_MAX,
    WINDOW_COUNT_MAX,
)
from protocol.limits.users import KEPT_BRANCHES_MAX, KEPT_DAYS_MAX


class MessageForm(Wire, frozen=True, forbid_unknown_fields=False):
    """Base of messages. Fields that a newer version has behind those known here are passed over."""


class UnknownMessage(DecodeError):
    """A message of a kind that is not known here: a newer version's, which is passed over."""

    def __init__(self, tag: str) -> None:
        super().__init__("unknown_message", tag)


Feature = Annotated[str, Meta(min_length=1, max_length=FEATURE_NAME_SIZE_MAX, pattern=r"^[a-z][a-z0-9-]*\Z")]


class Features(MessageForm, frozen=True, tag="features1"):
    """Features of the sender's version beyond the core (`protocol.session.features`). Said before any topic is announced."""

    features: Annotated[tuple[Feature, ...], Meta(max_length=FEATURE_COUNT_MAX)]


class Announce(MessageForm, frozen=True, tag="announce2"):
    """Topics that the sender follows (see `hashing.announced_topic`); one that both announced is joined on this connection.

    Each side has its own name for a topic here, so that an announcement shows that its sender knows the topic.
    """

    topics: Annotated[tuple[AnnouncedTopic, ...], Meta(max_length=TOPIC_COUNT_MAX)]


class Summary(MessageForm, frozen=True, tag="sum3"):
    """Summary of a joined topic at the sender: heads, count of commits, and their set digest. Rounds count from 0.

    Heads are named by their first bytes: where another commit begins alike, the next round finds what was not sent.
    """

    topic: BlindTopic
    round: Annotated[int, Meta(ge=0, le=SUMMARY_ROUND_MAX)]
    heads: Annotated[tuple[ShortId, ...], Meta(max_length=SUMMARY_HEAD_COUNT_MAX)]
    count: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    digest: Digest


class Earlier(MessageForm, frozen=True, tag="earlier2"):
    """Fingerprints, by parts, of a repo's topics at the sender that rest. `topic` is the founding epoch's own topic.

    `count` is how many topics rest.
    """

    topic: BlindTopic
    count: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    fingerprints: Annotated[
        bytes,
        Meta(
            min_length=EARLIER_FINGERPRINT_SIZE,
            max_length=EARLIER_PARTS_MAX * EARLIER_PART_COUNT * EARLIER_FINGERPRINT_SIZE,
        ),
    ]


class Reconcile(MessageForm, frozen=True, tag="reconcile1"):
    """A step of finding out what differs of a topic; `kind` is a `reconciling.FrameKind`."""

    topic: BlindTopic
    kind: Annotated[int, Meta(ge=0, le=7)]
    frame: Annotated[bytes, Meta(max_length=RANGE_FRAME_SIZE_MAX)]


class Publications(MessageForm, frozen=True, tag="publications1"):
    """A batch of publications, causes before effects. Answered by one receipt."""

    topic: BlindTopic
    items: Annotated[
        tuple[Annotated[bytes, Meta(max_length=PUBLICATION_SIZE_MAX)], ...],
        Meta(min_length=1, max_length=BATCH_COUNT_MAX),
    ]


class Receipt(MessageForm, frozen=True, tag="receipt1"):
    """One batch was taken: what was good of it is durable at the sender of the receipt."""

    topic: BlindTopic


class Want(MessageForm, frozen=True, tag="want1"):
    """Commits that the sender lacks and has seen named."""

    topic: BlindTopic
    ids: Annotated[tuple[CommitId, ...], Meta(min_length=1, max_length=WANT_COUNT_MAX)]


class WantBodies(MessageForm, frozen=True, tag="want-bodies1"):
    """Commits whose bodies the sender lacks; publications, where one side is a relay. Answered by FoundBodies."""

    topic: BlindTopic
    ids: Annotated[tuple[AnyId, ...], Meta(min_length=1, max_length=WANT_COUNT_MAX)]


class FoundBodies(MessageForm, frozen=True, tag="found-bodies1"):
    """Answer to the first WantBodies without one: the sender has so many of its ids whole, and sends these."""

    topic: BlindTopic
    count: Annotated[int, Meta(ge=0, le=WANT_COUNT_MAX)]


class Keeps(MessageForm, frozen=True, tag="keeps1"):
    """The sender keeps bodies of all branches, or of those with these marks alone. The last one of a topic counts.

    Of posts only those of the last `days`; 0: of any age.
    """

    topic: BlindTopic
    is_all: bool
    marks: Annotated[tuple[BranchMark, ...], Meta(max_length=KEPT_BRANCHES_MAX)]
    days: Annotated[int, Meta(ge=0, le=KEPT_DAYS_MAX)]


class WantWindow(MessageForm, frozen=True, tag="want-window1"):
    """Asks for commits of a branch in an epoch, by their mark: those of lower stated ranks than `rank`, the highest first.

    `is_upwards`: those from `rank` on, the lowest first.
    """

    topic: BlindTopic
    mark: BranchMark
    rank: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    is_upwards: bool
    count: Annotated[int, Meta(ge=1, le=WINDOW_COUNT_MAX)]


class Window(MessageForm, frozen=True, tag="window1"):
    """Answer to the question for this mark: publications. `is_last`: the sender has no more of them in that direction."""

    topic: BlindTopic
    mark: BranchMark
    items: Annotated[
        tuple[Annotated[bytes, Meta(max_length=PUBLICATION_SIZE_MAX)], ...],
        Meta(max_length=WINDOW_COUNT_MAX),
    ]
    is_last: bool


class Fetch(MessageForm, frozen=True, tag="fetch1"):
    """Blocks that the sender asks for: of files, whose content travels on demand."""

    topic: BlindTopic
    ids: Annotated[tuple[BlockId, ...], Meta(min_length=1, max_length=FETCHED_COUNT_MAX)]


class Blocks(MessageForm, frozen=True, tag="blocks1"):
    """The first of the blocks that were asked for and not answered yet, in that order; empty what is not held."""

    topic: BlindTopic
    items: Annotated[
        tuple[Annotated[bytes, Meta(max_length=BLOCK_SIZE_MAX)], ...],
        Meta(min_length=1, max_length=FETCHED_COUNT_MAX),
    ]


class Relay(MessageForm, frozen=True, tag="relay2"):
    """The sender keeps topics for others, so that publications are compared here and not commits. Said first, if at all."""


class Deposit(MessageForm, frozen=True, tag="deposit1"):
    """Asks a relay to keep topics, named in clear: their public keys."""

    topics: Annotated[tuple[TopicKey, ...], Meta(min_length=1, max_length=TOPIC_COUNT_MAX)]


class FileDeposit(Wire, frozen=True):
    """A file that a relay is to keep: its object, what its blocks may take at most (see `deposits.size_of`), a signature.

    The topic's key signs it (`hashing.file_deposit_digest`), so that it can be passed on to another relay.
    """

    file: ObjectId
    size: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    signature: Signature


class ListFiles(MessageForm, frozen=True, tag="list-files1"):
    """Asks a relay which files of a topic it keeps whole: those whose id is above `after`, the first ones."""

    topic: BlindTopic
    after: ShortId


class ListedFiles(MessageForm, frozen=True, tag="listed-files1"):
    """Files that the sender keeps whole, by the first bytes of their ids, in order. Fewer than the most: the last."""

    topic: BlindTopic
    files: Annotated[tuple[ShortId, ...], Meta(max_length=FILES_LISTED_COUNT_MAX)]


class DepositFiles(MessageForm, frozen=True, tag="deposit-files1"):
    """Asks a relay to keep files, whose blocks it fetches from the sender."""

    topic: BlindTopic
    files: Annotated[tuple[FileDeposit, ...], Meta(min_length=1, max_length=FILES_DEPOSITED_COUNT_MAX)]


class SettledFiles(MessageForm, frozen=True, tag="settled-files1"):
    """Deposited files that a relay keeps now, whole and durable; or does not keep, and why (a stable code)."""

    topic: BlindTopic
    files: Annotated[tuple[ShortId, ...], Meta(min_length=1, max_length=FILES_DEPOSITED_COUNT_MAX)]
    refusal: Annotated[str, Meta(max_length=REASON_SIZE_MAX)]


class JoinAccount(MessageForm, frozen=True, tag="join-account1"):
    """Asks a relay for an account, by the secret of a link that its operator gave."""

    token: AccountToken


class AccountJoined(MessageForm, frozen=True, tag="account-joined1"):
    """The answer: bytes that the account's nodes may bring, and have; or why there is no account (a stable code)."""

    refusal: Annotated[str, Meta(max_length=REASON_SIZE_MAX)]
    quota: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    used: Annotated[int, Meta(ge=0, le=2**53 - 1)]


class Introductions(MessageForm, frozen=True, tag="introductions1"):
    """The sender takes introductions, and gives them. Said before any topic is announced, if at all."""


class Introduce(MessageForm, frozen=True, tag="introduce1"):
    """Addresses of peers that have joined an epoch's own topic with the sender; the sender itself among them."""

    topic: BlindTopic
    peers: Annotated[tuple[PeerAddress, ...], Meta(min_length=1, max_length=INTRODUCED_COUNT_MAX)]


class Seen(MessageForm, frozen=True, tag="seen1"):
    """Address and port at which the sender sees the receiver, which dialed it."""

    address: Annotated[str, Meta(min_length=3, max_length=ADDRESS_SIZE_MAX)]


CircuitNumber = Annotated[int, Meta(ge=0, le=2**53 - 1)]
"""Names a circuit on one connection. The side that dialed the connection gives odd numbers, the other one even ones."""


class Circuits(MessageForm, frozen=True, tag="circuits1"):
    """The sender takes circuits: a relay passes them on, another node opens and accepts them through the receiver."""


class CircuitOpen(MessageForm, frozen=True, tag="circuit-open1"):
    """Asks a relay for a circuit to a node (see `hashing.circuit_address`); or a relay tells a node of one."""

    circuit: CircuitNumber
    address: CircuitAddress


class CircuitData(MessageForm, frozen=True, tag="circuit-data1"):
    """Bytes of a circuit, in order."""

    circuit: CircuitNumber
    data: Annotated[bytes, Meta(min_length=1, max_length=CIRCUIT_DATA_SIZE_MAX)]


class CircuitCredit(MessageForm, frozen=True, tag="circuit-credit1"):
    """Credit for bytes on a circuit. The first one of the side that was asked accepts the circuit."""

    circuit: CircuitNumber
    count: Annotated[int, Meta(ge=1, le=WIDE_CIRCUIT_WINDOW_SIZE)]


class CircuitClose(MessageForm, frozen=True, tag="circuit-close1"):
    """A circuit has ended for the sender, and why (a stable code). The other side answers with the same message."""

    circuit: CircuitNumber
    reason: Annotated[str, Meta(max_length=REASON_SIZE_MAX)]


class Meet(MessageForm, frozen=True, tag="meet1"):
    """Asks a relay to name nodes that have said the same on a joined topic, and to name the sender to them."""

    topic: BlindTopic


class Nodes(MessageForm, frozen=True, tag="nodes1"):
    """Nodes to which a circuit can be asked for here, and which have said `meet1` on the topic."""

    topic: BlindTopic
    nodes: Annotated[tuple[PeerId, ...], Meta(min_length=1, max_length=NODES_NAMED_MAX)]


class PresenceSaid(MessageForm, frozen=True, tag="presence1"):
    """Somebody at the sender has the text of a joined branch open, or no more: a box of `protocol.session.presence`."""

    topic: BlindTopic
    box: Annotated[bytes, Meta(max_length=PRESENCE_BOX_SIZE_MAX)]


class PunchAddresses(MessageForm, frozen=True, tag="punch1"):
    """Addresses of the sender, as the relay sees it and its own: asks for a direct connection, or answers."""

    addresses: Annotated[
        tuple[Annotated[str, Meta(min_length=3, max_length=ADDRESS_SIZE_MAX)], ...],
        Meta(max_length=PUNCH_ADDRESSES_MAX),
    ]


class PunchNow(MessageForm, frozen=True, tag="punch-now1"):
    """The receiver dials now. The sender does when this has arrived."""


class Refused(MessageForm, frozen=True, tag="refused1"):
    """The sender takes no more on a topic, and why (a stable code)."""

    topic: BlindTopic
    reason: Annotated[str, Meta(max_length=REASON_SIZE_MAX)]


class KeepAlive(MessageForm, frozen=True, tag="alive1"):
    """Says nothing, so that silence means a dead connection."""


class Goodbye(MessageForm, frozen=True, tag="goodbye1"):
    """The sender is about to close, and why (a stable code)."""

    reason: Annotated[str, Meta(max_length=REASON_SIZE_MAX)]


Message = (
    Features
    | Announce
    | Summary
    | Earlier
    | Reconcile
    | Publications
    | Receipt
    | Want
    | WantBodies
    | FoundBodies
    | Keeps
    | WantWindow
    | Window
    | Fetch
    | Blocks
    | Relay
    | Deposit
    | ListFiles
    | ListedFiles
    | DepositFiles
    | SettledFiles
    | JoinAccount
    | AccountJoined
    | Introductions
    | Introduce
    | Seen
    | Circuits
    | CircuitOpen
    | CircuitData
    | CircuitCredit
    | CircuitClose
    | Meet
    | Nodes
    | PresenceSaid
    | PunchAddresses
    | PunchNow
    | Refused
    | KeepAlive
    | Goodbye
)

_TAG: Final = re.compile(r"[a-z][a-z0-9-]*")
_KIND_BY_TAG: Final[dict[str, type[Message]]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Message)
}


def encode_message(message: Message) -> bytes:
    """Return the content of a frame."""
    return encode(message)


def decode_message(frame: bytes) -> Message:
    """Decode the content of a frame. Raises UnknownMessage for a kind that is not known here, else DecodeError.

    A known kind in another form than the one is `not_canonical`; what has no tag is `unknown_message` too.
    """
    tag = peek_tag(frame)
    kind = _KIND_BY_TAG.get(tag)
    if kind is None:
        if _TAG.fullmatch(tag):
            raise UnknownMessage(tag)
        raise DecodeError("not_canonical" if peek_loose_tag(frame) in _KIND_BY_TAG else "unknown_message")
    message: Message = decode(kind, frame, size_max=FRAME_SIZE_MAX, takes_more=True)
    return message
