"""Output commands of the state machine in `protocol.session.session`. Its input events: `protocol.session.events`."""

from dataclasses import dataclass
from typing import TypeVar

from protocol.crypto.keys import AccountToken
from protocol.formats.links import PeerAddress
from protocol.ids import (
    AnnouncedTopic,
    BlockId,
    BranchMark,
    CircuitAddress,
    CommitId,
    ItemId,
    PeerId,
    ShortId,
    TopicKey,
)
from protocol.limits.peers import TOPIC_COUNT_MAX
from protocol.session.events import WindowWanted
from protocol.session.messages import Announce, Deposit, FileDeposit, Message


@dataclass(frozen=True, slots=True)
class TopicOutput:
    """Command about one topic."""

    topic: TopicKey


@dataclass(frozen=True, slots=True)
class Send:
    """Say this to the peer."""

    message: Message


@dataclass(frozen=True, slots=True)
class LoadSummary(TopicOutput):
    """Summarise a topic."""


@dataclass(frozen=True, slots=True)
class LoadEarlier(TopicOutput):
    """Load what is held on each resting topic of a repo. `topic` is the own topic of the repo's founding epoch.

    `is_asked`: the peer has said its own.
    """

    is_asked: bool


@dataclass(frozen=True, slots=True)
class EarlierCompared(TopicOutput):
    """Verdict about all topics of a repo that rest here, once for a connection: those that may differ."""

    differing: tuple[TopicKey, ...]


@dataclass(frozen=True, slots=True)
class LoadPlan(TopicOutput):
    """Plan what to send to a peer that holds commits (named by their first bytes) and their past."""

    held: tuple[ShortId, ...]


@dataclass(frozen=True, slots=True)
class FindWanted(TopicOutput):
    """Look up numbers of these commits."""

    ids: tuple[CommitId, ...]


@dataclass(frozen=True, slots=True)
class FindBodies(TopicOutput):
    """Look up which of the given commits (with a relay: publications) are held with their bodies."""

    ids: tuple[ItemId, ...]


@dataclass(frozen=True, slots=True)
class LoadBatch(TopicOutput):
    """Read publications of these commits, as many as fit a batch."""

    nums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IngestBatch(TopicOutput):
    """Publications from the peer, to verify and store. Those of epochs' own topics go before later ones."""

    items: tuple[bytes, ...]
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class LoadBlocks(TopicOutput):
    """Read the first of these blocks, as many as fit a frame."""

    ids: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class LoadWindow(TopicOutput):
    """Read publications of a mark: below a stated rank, the highest first, or upwards from it."""

    mark: BranchMark
    rank: int
    is_upwards: bool
    count: int


@dataclass(frozen=True, slots=True)
class WindowCame(TopicOutput):
    """Publications that were asked for by a mark. `is_last`: the peer has no more of them in that direction."""

    asked: WindowWanted
    items: tuple[bytes, ...]
    is_last: bool


@dataclass(frozen=True, slots=True)
class HandOver(TopicOutput):
    """Answers to BlocksWanted: the ids, each with the block's encoding, or None where the peer has not got it."""

    blocks: tuple[tuple[BlockId, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class OpenReconciliation(TopicOutput):
    """Begin to find out what differs of a topic, as its answerer."""

    by_ranges: bool


@dataclass(frozen=True, slots=True)
class HandleFrame(TopicOutput):
    """A frame of a reconciliation; the first one begins it, as its asker."""

    kind: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class OpenTopics:
    """Topics that the peer asks this relay to keep: follow them, where that may be."""

    topics: tuple[TopicKey, ...]


@dataclass(frozen=True, slots=True)
class FindPeers(TopicOutput):
    """Find peers of which the peer may be told on this topic."""


@dataclass(frozen=True, slots=True)
class AddressSeen:
    """Address at which the peer says to see this node (host:port), which need not be true."""

    address: str


@dataclass(frozen=True, slots=True)
class PresenceSeen(TopicOutput):
    """Presence from the peer, which may be forged: somebody has the text of a joined topic open."""

    box: bytes


@dataclass(frozen=True, slots=True)
class PunchHeard:
    """Wish of the peer for a direct connection. Answered by PunchAnswered."""


@dataclass(frozen=True, slots=True)
class PunchDue:
    """Dial the peer at these. `is_later`: when it has heard what was said last."""

    addresses: tuple[str, ...]
    is_later: bool


PunchOutput = PunchHeard | PunchDue
ReachOutput = AddressSeen | PunchOutput
"""Outputs about where nodes are."""


@dataclass(frozen=True, slots=True)
class LearnPeers(TopicOutput):
    """Addresses of followers of a topic, as the peer says."""

    peers: tuple[PeerAddress, ...]


@dataclass(frozen=True, slots=True)
class CircuitsAgreed:
    """Offer of the peer to take circuits: answer with CircuitsTaken to accept."""


@dataclass(frozen=True, slots=True)
class CircuitOffered:
    """Request of the peer for a circuit to a node: accept it (CircuitGranted) or end it (CircuitEnded)."""

    circuit: int
    address: CircuitAddress


@dataclass(frozen=True, slots=True)
class CircuitCredited:
    """Credit of the peer: bytes that may be sent more on a circuit. The first one accepts the circuit."""

    circuit: int
    count: int


@dataclass(frozen=True, slots=True)
class CircuitReceived:
    """Bytes that came on a circuit."""

    circuit: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CircuitClosed:
    """End of a circuit by the peer, with the reason in its own words."""

    circuit: int
    reason: str


@dataclass(frozen=True, slots=True)
class RendezvousPossible(TopicOutput):
    """Chance of a rendezvous: the peer, which passes circuits on, has joined an epoch's own topic that it keeps."""


@dataclass(frozen=True, slots=True)
class RendezvousAsked(TopicOutput):
    """Wish of the peer for a rendezvous on a topic: name it and others to each other (NodesFound)."""


@dataclass(frozen=True, slots=True)
class NodesLearned(TopicOutput):
    """Nodes to which circuits can be asked for at the peer, which follow a topic."""

    nodes: tuple[PeerId, ...]


@dataclass(frozen=True, slots=True)
class LoadFileList(TopicOutput):
    """Question of the peer: which files of a topic this relay keeps, above this id."""

    after: ShortId


@dataclass(frozen=True, slots=True)
class KeepFiles(TopicOutput):
    """Files that the peer asks this relay to keep: fetch their blocks, and answer each (FileSettled)."""

    files: tuple[FileDeposit, ...]


@dataclass(frozen=True, slots=True)
class FilesListed(TopicOutput):
    """Answer to FileListWanted."""

    files: tuple[ShortId, ...]


@dataclass(frozen=True, slots=True)
class FilesAnswered(TopicOutput):
    """Answer to FilesOffered, for some of them: the peer keeps them (""), or says why not."""

    files: tuple[ShortId, ...]
    refusal: str


@dataclass(frozen=True, slots=True)
class GiveAccount:
    """Link to an account of this relay that the peer shows: answer it (AccountSettled)."""

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
    | LoadEarlier
    | EarlierCompared
    | LoadPlan
    | FindWanted
    | FindBodies
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
    | RendezvousPossible
    | LoadWindow
    | WindowCame
    | RendezvousAsked
    | NodesLearned
    | LoadFileList
    | KeepFiles
    | FilesListed
    | FilesAnswered
    | GiveAccount
    | AccountAnswered
    | Close
)


_Topic = TypeVar("_Topic", AnnouncedTopic, TopicKey)


def _parts(topics: list[_Topic]) -> list[tuple[_Topic, ...]]:
    """Split topics into parts of one message each."""
    return [
        tuple(topics[start : start + TOPIC_COUNT_MAX]) for start in range(0, len(topics), TOPIC_COUNT_MAX)
    ]


def say_together(outputs: list[Output]) -> list[Output]:
    """Merge announcements (and deposits) of one topic each into ones of TOPIC_COUNT_MAX topics."""
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
    said = [Send(Announce(part)) for part in _parts(announced)]
    asked = [Send(Deposit(part)) for part in _parts(deposited)]
    return [*said, *asked, *others]
