"""Input events of the state machine in `protocol.session.session`. Its output commands: `protocol.session.outputs`."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.crypto.keys import AccountToken
from protocol.formats.links import PeerAddress
from protocol.ids import (
    BlockId,
    BranchMark,
    CircuitAddress,
    CommitId,
    Digest,
    ItemId,
    PeerId,
    ShortId,
    TopicKey,
)
from protocol.session.messages import FileDeposit, Message


class Event:
    """Input of the state machine."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TopicEvent(Event):
    """Input about one topic."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class TopicFollowed(TopicEvent):
    """Topic that this node follows from now on. `is_own`: it is an epoch's own topic.

    `is_entrusted`: if the peer is a relay, it is asked to keep it. `order`: of those with much to send, the smallest goes
    first, and of one `group` (a repo, or who brought them to a relay) the others wait until it is sent.
    """

    is_own: bool
    is_entrusted: bool = False
    order: int = 0
    group: int | PeerId | None = None


@dataclass(frozen=True, slots=True)
class MessageReceived(Event):
    """Message from the peer."""

    message: Message


@dataclass(frozen=True, slots=True)
class SummaryLoaded(TopicEvent):
    """Answer to LoadSummary."""

    heads: tuple[ItemId, ...]
    count: int
    digest: Digest
    upto: int  # number of the last commit that it is about


@dataclass(frozen=True, slots=True)
class EarlierLoaded(TopicEvent):
    """Answer to LoadEarlier; none where no other topic of the repo is here, and the peer has not asked."""

    held: tuple[tuple[TopicKey, Digest], ...]
    """Topics that rest and what is held there, without empty ones."""


@dataclass(frozen=True, slots=True)
class PlanLoaded(TopicEvent):
    """Answer to LoadPlan: commits to send, in order; later commits have numbers above `upto`, or below 0.

    Where a head of the peer's is not here (`is_exact` is false), they are not known yet, and there are none.

    Numbers below 0 are of `unread` commits, whose format version this node does not know and which it passes on.
    """

    nums: "array[int]"
    upto: int
    unread: Sequence[int] = ()
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class WantedFound(TopicEvent):
    """Answer to FindWanted and FindBodies: numbers of those that are here, in order."""

    nums: list[int]


@dataclass(frozen=True, slots=True)
class BatchLoaded(TopicEvent):
    """Answer to LoadBatch: how many of the asked numbers these publications cover (one at least)."""

    items: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class BatchIngested(TopicEvent):
    """Answer to IngestBatch: the batch is durable; `wanted` are causes that were named and are missing."""

    accepted: int
    wanted: tuple[CommitId, ...]
    refused: str = ""  # why no more is taken: a relay's quota
    dropped: int = 0  # publications that were at fault
    known: int = 0  # commits that others had brought since the peer was told what is here
    bodiless: int = 0  # of these, bare ones that cannot be judged without their bodies
    has_left_out: bool = False  # some may be taken later: their epoch was not known, or there was no room


@dataclass(frozen=True, slots=True)
class RoundWanted(TopicEvent):
    """Request for another round of a topic, if some of the peer's commits were left out: these may be taken now."""


@dataclass(frozen=True, slots=True)
class CommitsAccepted(TopicEvent):
    """Commits that were accepted: made here, or brought by another peer."""

    nums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommitsReleased(TopicEvent):
    """Count of commits that were accepted now: the peer had sent them, and they had waited for others or for keys."""

    count: int


@dataclass(frozen=True, slots=True)
class CommitsWanted(TopicEvent):
    """Request for publications of commits, as far as the peer was not asked for them on this session."""

    ids: tuple[CommitId, ...]


@dataclass(frozen=True, slots=True)
class BodiesWanted(TopicEvent):
    """Request for whole commits, or for publications where these are compared; for a peer that knows `bodies`."""

    ids: tuple[ItemId, ...]


@dataclass(frozen=True, slots=True)
class WindowWanted(TopicEvent):
    """Request for commits of a branch in an epoch, by mark: below a stated rank, or upwards from it; for a peer that knows
    `windows`."""

    mark: BranchMark
    rank: int
    is_upwards: bool
    count: int


@dataclass(frozen=True, slots=True)
class WindowLoaded(TopicEvent):
    """Publications that the peer has asked for by a mark. `is_last`: there are no more in that direction."""

    mark: BranchMark
    items: tuple[bytes, ...]
    is_last: bool


@dataclass(frozen=True, slots=True)
class BlocksWanted(TopicEvent):
    """Request for blocks that this node needs of a joined topic."""

    ids: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class BlocksLoaded(TopicEvent):
    """Answer to LoadBlocks: the first of the asked blocks (one at least), each encoded, or empty where it is not here."""

    items: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Reconciled(TopicEvent):
    """Answer to OpenReconciliation and HandleFrame: frames to say (kind and content), and numbers of commits to send."""

    frames: tuple[tuple[int, bytes], ...]
    nums: Sequence[int]
    is_over: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class TopicsRefused(Event):
    """Answer to OpenTopics, of those that this relay does not keep, and why (a stable code)."""

    topics: tuple[TopicKey, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class PeersFound(TopicEvent):
    """Peers that the peer may be told of on a topic, the more important ones first."""

    peers: tuple[PeerAddress, ...]


@dataclass(frozen=True, slots=True)
class CircuitsTaken(Event):
    """Decision to take circuits: as a relay that passes them on, or from a relay that is trusted with them."""


@dataclass(frozen=True, slots=True)
class CircuitWanted(Event):
    """Wish of this side for a circuit to a node, under a number not used yet."""

    circuit: int
    address: CircuitAddress


@dataclass(frozen=True, slots=True)
class CircuitGranted(Event):
    """Credit of this side: bytes that it takes more on a circuit."""

    circuit: int
    count: int


@dataclass(frozen=True, slots=True)
class CircuitSent(Event):
    """Bytes to send on a circuit, for which there is credit."""

    circuit: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CircuitEnded(Event):
    """End of a circuit by this side; `reason` is a `circuits.CircuitEnd`."""

    circuit: int
    reason: str


@dataclass(frozen=True, slots=True)
class RendezvousWanted(TopicEvent):
    """Request to be named to the other nodes of a joined topic, and to be told of them."""


@dataclass(frozen=True, slots=True)
class NodesFound(TopicEvent):
    """Nodes that the peer is to be told of, which meet on a topic."""

    nodes: tuple[PeerId, ...]


@dataclass(frozen=True, slots=True)
class PresenceTold(TopicEvent):
    """Presence to tell the peer of: somebody has the text of a joined topic open."""

    box: bytes


@dataclass(frozen=True, slots=True)
class FileListWanted(TopicEvent):
    """Question for a relay: which files of a joined topic it keeps, above this id."""

    after: ShortId


@dataclass(frozen=True, slots=True)
class FilesOffered(TopicEvent):
    """Request to a relay to keep files of a joined topic."""

    files: tuple[FileDeposit, ...]


@dataclass(frozen=True, slots=True)
class FileListLoaded(TopicEvent):
    """Answer to LoadFileList."""

    files: tuple[ShortId, ...]


@dataclass(frozen=True, slots=True)
class FileSettled(TopicEvent):
    """Answer to KeepFiles, for one of them: it is kept ("") or not, and why."""

    file: ShortId
    refusal: str


@dataclass(frozen=True, slots=True)
class AccountWanted(Event):
    """Link to an account, to be shown to a relay."""

    token: AccountToken


@dataclass(frozen=True, slots=True)
class AccountSettled(Event):
    """Answer to GiveAccount."""

    refusal: str
    quota: int
    used: int


@dataclass(frozen=True, slots=True)
class CheckDue(Event):
    """Tick: time to look whether topics that differed are equal now.

    `is_quiet`: since the tick before, the peer was read from and sent nothing of use.
    """

    is_quiet: bool = True


@dataclass(frozen=True, slots=True)
class RoomWanted(Event):
    """Tick while topics wait for room: compare those that have room again, or set them aside, once nothing of them
    is on its way."""


@dataclass(frozen=True, slots=True)
class PunchWanted(Event):
    """Request for a direct connection, with this side's addresses; the relay sees the first."""

    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PunchAnswered(Event):
    """Answer to PunchHeard: this side's addresses; none where nobody sees it, or the peer may not know."""

    addresses: tuple[str, ...]
