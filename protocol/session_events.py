"""Input events and output commands of the state machine in `protocol.session`."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.ids import (
    AnnouncedTopic,
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
from protocol.messages import Announce, Deposit, FileDeposit, Message

# --- events ---


@dataclass(frozen=True, slots=True)
class TopicFollowed:
    """This node follows a topic from now on. `is_entrusted`: if the peer is a relay, it is asked to keep it."""

    topic: TopicKey
    is_root: bool
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
    """Answer to FindWanted: numbers of those that are here, in order."""

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
    bodiless: int = 0  # of these, bare ones that cannot be judged without their bodies


@dataclass(frozen=True, slots=True)
class CommitsAccepted:
    """Commits were accepted, made here or come from another peer (never from this session's own)."""

    topic: TopicKey
    nums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommitsWanted:
    """Ask the peer for publications of these commits of a topic, as far as it was not asked on this session."""

    topic: TopicKey
    ids: tuple[CommitId, ...]


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
    | CommitsWanted
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


# --- outputs ---


@dataclass(frozen=True, slots=True)
class Send:
    """Say this to the peer."""

    message: Message


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """Summarise a topic's branch."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Plan what to send to a peer that holds these commits (named by their first bytes) and their past."""

    topic: TopicKey
    held: tuple[ShortId, ...]


@dataclass(frozen=True, slots=True)
class FindWanted:
    """Look up numbers of these commits."""

    topic: TopicKey
    ids: tuple[CommitId, ...]


@dataclass(frozen=True, slots=True)
class LoadBatch:
    """Read publications of these commits, as many as fit a batch."""

    topic: TopicKey
    nums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IngestBatch:
    """The peer sent these publications: verify and store them, those of root branches before what comes later."""

    topic: TopicKey
    items: tuple[bytes, ...]
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class LoadBlocks:
    """Read the first of these blocks, as many as fit a frame."""

    topic: TopicKey
    ids: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class HandOver:
    """Answers to BlocksWanted: the ids, each with the block's encoding, or None where the peer has not got it."""

    topic: TopicKey
    blocks: tuple[tuple[BlockId, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class OpenReconciliation:
    """Begin to find out what differs of a topic, as its answerer."""

    topic: TopicKey
    by_ranges: bool


@dataclass(frozen=True, slots=True)
class HandleFrame:
    """A frame of a reconciliation; the first one begins it, as its asker."""

    topic: TopicKey
    kind: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class OpenTopics:
    """The peer asks this relay to keep these topics: follow them, where that may be."""

    topics: tuple[TopicKey, ...]


@dataclass(frozen=True, slots=True)
class FindPeers:
    """The peer may be told of others on this topic: find them."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class AddressSeen:
    """The peer says where it sees this node (host:port), which need not be true."""

    address: str


@dataclass(frozen=True, slots=True)
class PresenceSeen:
    """The peer says that somebody has a joined topic's text open, which may be forged."""

    topic: TopicKey
    box: bytes


@dataclass(frozen=True, slots=True)
class PunchHeard:
    """The peer wants a direct connection. Answered by PunchAnswered."""


@dataclass(frozen=True, slots=True)
class PunchDue:
    """Dial the peer at these. `is_later`: when it has heard what was said last."""

    addresses: tuple[str, ...]
    is_later: bool


PunchOutput = PunchHeard | PunchDue
ReachOutput = AddressSeen | PunchOutput
"""What is about where nodes are."""


@dataclass(frozen=True, slots=True)
class LearnPeers:
    """The peer says where these can be dialed, who follow this topic."""

    topic: TopicKey
    peers: tuple[PeerAddress, ...]


@dataclass(frozen=True, slots=True)
class CircuitsAgreed:
    """The peer takes circuits: say so too (CircuitsTaken), where this side takes them from this peer."""


@dataclass(frozen=True, slots=True)
class CircuitOffered:
    """The peer asks for a circuit to a node: accept it (CircuitGranted) or end it (CircuitEnded)."""

    circuit: int
    address: CircuitAddress


@dataclass(frozen=True, slots=True)
class CircuitCredited:
    """So many bytes more may be sent on a circuit. The first time, the peer has accepted it."""

    circuit: int
    count: int


@dataclass(frozen=True, slots=True)
class CircuitReceived:
    """The peer sent bytes on a circuit."""

    circuit: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CircuitClosed:
    """The peer has ended a circuit, and why, in its own words."""

    circuit: int
    reason: str


@dataclass(frozen=True, slots=True)
class MeetingPossible:
    """A root branch's topic that the peer was asked to keep is joined, and the peer passes circuits on."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class NodeMeets:
    """The peer meets others on a topic: name them to each other (NodesFound)."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class NodesLearned:
    """Nodes to which circuits can be asked for at the peer, which follow a topic."""

    topic: TopicKey
    nodes: tuple[PeerId, ...]


@dataclass(frozen=True, slots=True)
class LoadFileList:
    """The peer asks which files of a topic this relay keeps, above this id."""

    topic: TopicKey
    after: ShortId


@dataclass(frozen=True, slots=True)
class KeepFiles:
    """The peer asks this relay to keep files: fetch their blocks, and say of each what came of it (FileSettled)."""

    topic: TopicKey
    files: tuple[FileDeposit, ...]


@dataclass(frozen=True, slots=True)
class FilesListed:
    """Answer to FileListWanted."""

    topic: TopicKey
    files: tuple[ShortId, ...]


@dataclass(frozen=True, slots=True)
class FilesAnswered:
    """Answer to FilesOffered, for some of them: the peer keeps them (""), or says why not."""

    topic: TopicKey
    files: tuple[ShortId, ...]
    refusal: str


@dataclass(frozen=True, slots=True)
class GiveAccount:
    """The peer has a link to an account of this relay: say what came of it (AccountSettled)."""

    token: AccountToken


@dataclass(frozen=True, slots=True)
class AccountAnswered:
    """Answer to AccountWanted: what the account may keep at the peer and does; or why there is none."""

    refusal: str
    quota: int
    used: int


@dataclass(frozen=True, slots=True)
class Close:
    """End the session; `reason` is a stable code."""

    reason: str


Output = (
    Send
    | LoadSummary
    | LoadPlan
    | FindWanted
    | LoadBatch
    | IngestBatch
    | LoadBlocks
    | HandOver
    | OpenTopics
    | FindPeers
    | LearnPeers
    | AddressSeen
    | PresenceSeen
    | PunchHeard
    | PunchDue
    | OpenReconciliation
    | HandleFrame
    | CircuitsAgreed
    | CircuitOffered
    | CircuitCredited
    | CircuitReceived
    | CircuitClosed
    | MeetingPossible
    | NodeMeets
    | NodesLearned
    | LoadFileList
    | KeepFiles
    | FilesListed
    | FilesAnswered
    | GiveAccount
    | AccountAnswered
    | Close
)


def say_together(outputs: list[Output]) -> list[Output]:
    """The same, with one announcement (and one deposit) of many topics instead of many of one."""
    announced: list[AnnouncedTopic] = []
    deposited: list[TopicKey] = []
    others: list[Output] = []
    for output in outputs:
        match output:
            case Send(Announce(topics)):
                announced += topics
            case Send(Deposit(topics)):
                deposited += topics
            case _:
                others.append(output)
    said: list[Output] = [Send(Announce(tuple(announced)))] if announced else []
    if deposited:
        said.append(Send(Deposit(tuple(deposited))))
    return [*said, *others]
