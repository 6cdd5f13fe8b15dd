"""Input events of the state machine in `protocol.session`. Its output commands: `protocol.session_outputs`."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.ids import (
    BlockId,
    CircuitAddress,
    CommitId,
    Digest,
    ItemId,
    PeerId,
    ShortId,
    TopicKey,
)
from protocol.keys import AccountToken
from protocol.links import PeerAddress
from protocol.messages import FileDeposit, Message


@dataclass(frozen=True, slots=True)
class TopicFollowed:
    """This node follows a topic from now on, which is an epoch's own topic or another one (`is_own`).

    `is_entrusted`: if the peer is a relay, it is asked to keep it.
    """

    topic: TopicKey
    is_own: bool
    is_entrusted: bool = False


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """The peer said this."""

    message: Message


@dataclass(frozen=True, slots=True)
class SummaryLoaded:
    """Answer to LoadSummary."""

    topic: TopicKey
    heads: tuple[ItemId, ...]
    count: int
    digest: Digest
    upto: int  # number of the last commit that it is about


@dataclass(frozen=True, slots=True)
class PlanLoaded:
    """Answer to LoadPlan: commits to send, in order; later commits have numbers above `upto`, or below 0.

    Where a head of the peer's is not here (`is_exact` is false), they are not known yet, and there are none.

    Numbers below 0 are of `unread` commits, whose format version this node does not know and which it passes on.
    """

    topic: TopicKey
    nums: "array[int]"
    upto: int
    unread: Sequence[int] = ()
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class WantedFound:
    """Answer to FindWanted and FindBodies: numbers of those that are here, in order."""

    topic: TopicKey
    nums: list[int]


@dataclass(frozen=True, slots=True)
class BatchLoaded:
    """Answer to LoadBatch: how many of the asked numbers these publications cover (one at least)."""

    topic: TopicKey
    items: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class BatchIngested:
    """Answer to Take: it is durable; `wanted` are causes that were named and are missing."""

    topic: TopicKey
    accepted: int
    wanted: tuple[CommitId, ...]
    refused: str = ""  # why no more is taken: a relay's quota
    dropped: int = 0  # publications that were at fault
    known: int = 0  # commits that others had brought since the peer was told what is here
    bodiless: int = 0  # of these, bare ones that cannot be judged without their bodies


@dataclass(frozen=True, slots=True)
class CommitsAccepted:
    """Commits were accepted, made here or come from another peer (never from this session's own)."""

    topic: TopicKey
    nums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommitsReleased:
    """Commits of a topic were accepted that the peer had sent, and that had waited: for others, or for keys."""

    topic: TopicKey
    count: int


@dataclass(frozen=True, slots=True)
class CommitsWanted:
    """Ask the peer for publications of these commits of a topic, as far as it was not asked on this session."""

    topic: TopicKey
    ids: tuple[CommitId, ...]


@dataclass(frozen=True, slots=True)
class BodiesWanted:
    """Ask a peer that knows `bodies` for these commits whole, or publications where publications are compared."""

    topic: TopicKey
    ids: tuple[ItemId, ...]


@dataclass(frozen=True, slots=True)
class BlocksWanted:
    """Ask the peer for these blocks, which this node needs of a joined topic."""

    topic: TopicKey
    ids: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class BlocksLoaded:
    """Answer to LoadBlocks: the first of the asked blocks (one at least), each encoded, or empty where it is not here."""

    topic: TopicKey
    items: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Answer to OpenReconciliation and TakeFrame: frames to say (kind and content), and numbers of commits to send."""

    topic: TopicKey
    frames: tuple[tuple[int, bytes], ...]
    nums: Sequence[int]
    is_over: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class TopicsRefused:
    """Answer to OpenTopics, of those that this relay does not keep, and why (a stable code)."""

    topics: tuple[TopicKey, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class PeersFound:
    """Peers that the peer may be told of on a topic, the more important ones first."""

    topic: TopicKey
    peers: tuple[PeerAddress, ...]


@dataclass(frozen=True, slots=True)
class CircuitsTaken:
    """This side takes circuits from now on: as a relay that passes them on, or from a relay that it trusts with them."""


@dataclass(frozen=True, slots=True)
class CircuitAsked:
    """This side wants a circuit, of a new number, to a node."""

    circuit: int
    address: CircuitAddress


@dataclass(frozen=True, slots=True)
class CircuitGranted:
    """This side takes so many bytes more on a circuit."""

    circuit: int
    count: int


@dataclass(frozen=True, slots=True)
class CircuitSent:
    """This side sends bytes on a circuit, for which it has credit."""

    circuit: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CircuitEnded:
    """This side ends a circuit; `reason` is a `circuits.CircuitEnd`."""

    circuit: int
    reason: str


@dataclass(frozen=True, slots=True)
class MeetingWanted:
    """This side may be named to other nodes on a joined topic, and wants to be told of them."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class NodesFound:
    """Nodes that the peer is to be told of, which meet on a topic."""

    topic: TopicKey
    nodes: tuple[PeerId, ...]


@dataclass(frozen=True, slots=True)
class PresenceTold:
    """This side says that somebody has a joined topic's text open, if the peer knows what that is."""

    topic: TopicKey
    box: bytes


@dataclass(frozen=True, slots=True)
class FileListWanted:
    """Ask the peer, a relay, which files of a joined topic it keeps, above this id."""

    topic: TopicKey
    after: ShortId


@dataclass(frozen=True, slots=True)
class FilesOffered:
    """Ask the peer, a relay, to keep these files of a joined topic."""

    topic: TopicKey
    files: tuple[FileDeposit, ...]


@dataclass(frozen=True, slots=True)
class FileListLoaded:
    """Answer to LoadFileList."""

    topic: TopicKey
    files: tuple[ShortId, ...]


@dataclass(frozen=True, slots=True)
class FileSettled:
    """Answer to KeepFiles, for one of them: it is kept ("") or not, and why."""

    topic: TopicKey
    file: ShortId
    refusal: str


@dataclass(frozen=True, slots=True)
class AccountWanted:
    """Ask the peer, a relay, for the account of a link."""

    token: AccountToken


@dataclass(frozen=True, slots=True)
class AccountSettled:
    """Answer to GiveAccount."""

    refusal: str
    quota: int
    used: int


@dataclass(frozen=True, slots=True)
class CheckDue:
    """Time to look whether what differed is equal now."""


@dataclass(frozen=True, slots=True)
class PunchWanted:
    """This side wants a direct connection, and is seen at these; the first by the relay."""

    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PunchAnswered:
    """What PunchHeard asked for: where this side is seen. None: nowhere, or the peer may not know."""

    addresses: tuple[str, ...]


Event = (
    TopicFollowed
    | PunchWanted
    | PunchAnswered
    | MessageReceived
    | SummaryLoaded
    | PlanLoaded
    | WantedFound
    | BatchLoaded
    | BatchIngested
    | CommitsAccepted
    | CommitsReleased
    | CommitsWanted
    | BodiesWanted
    | BlocksWanted
    | BlocksLoaded
    | Reconciled
    | TopicsRefused
    | PeersFound
    | CircuitsTaken
    | CircuitAsked
    | CircuitGranted
    | CircuitSent
    | CircuitEnded
    | MeetingWanted
    | NodesFound
    | PresenceTold
    | FileListWanted
    | FilesOffered
    | FileListLoaded
    | FileSettled
    | AccountWanted
    | AccountSettled
    | CheckDue
)
