"""Fuzz target for the session machine: what a peer says, between what the node's own store answers.

See `targets` for what a target is.
"""

from array import array
from collections import deque
from typing import Final

from protocol.codec import DecodeError
from protocol.crypto.hashing import announced_topic, blind_topic, block_id
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block
from protocol.formats.links import PeerAddress
from protocol.ids import BranchMark, CommitId, Digest, PeerId, SessionId, TopicKey
from protocol.limits.network import CIRCUIT_WINDOW_SIZE
from protocol.limits.peers import (
    BATCH_COUNT_MAX,
    BATCHES_IN_FLIGHT_MAX,
    BATCHES_OF_TOPIC_MAX,
    FETCHED_COUNT_MAX,
    FILES_DEPOSITED_COUNT_MAX,
    INTRODUCED_COUNT_MAX,
    PRESENCE_BOX_SIZE_MAX,
    TOPIC_COUNT_MAX,
)
from protocol.session.deposits import short_file
from protocol.session.events import (
    AccountSettled,
    BatchIngested,
    BatchLoaded,
    BlocksLoaded,
    BlocksWanted,
    BodiesWanted,
    CircuitGranted,
    CircuitSent,
    CircuitsTaken,
    CommitsAccepted,
    EarlierLoaded,
    Event,
    FileListLoaded,
    FileSettled,
    MessageReceived,
    NodesFound,
    PeersFound,
    PlanLoaded,
    PunchAnswered,
    Reconciled,
    RendezvousWanted,
    SummaryLoaded,
    TopicFollowed,
    WantedFound,
    WindowLoaded,
    WindowWanted,
)
from protocol.session.messages import Message, Publications, Receipt, decode_message, encode_message
from protocol.session.outputs import (
    AccountAnswered,
    AddressSeen,
    CircuitClosed,
    CircuitCredited,
    CircuitOffered,
    CircuitReceived,
    CircuitsAgreed,
    Close,
    EarlierCompared,
    FilesAnswered,
    FilesListed,
    FindBodies,
    FindPeers,
    FindWanted,
    GiveAccount,
    HandleFrame,
    HandOver,
    IngestBatch,
    KeepFiles,
    LearnPeers,
    LoadBatch,
    LoadBlocks,
    LoadEarlier,
    LoadFileList,
    LoadPlan,
    LoadSummary,
    LoadWindow,
    NodesLearned,
    OpenReconciliation,
    OpenTopics,
    Output,
    PresenceSeen,
    PunchDue,
    PunchHeard,
    RendezvousAsked,
    RendezvousPossible,
    Send,
    WindowCame,
)
from protocol.session.session import Session
from tests.support.ids import as_commit_id

SESSION_ID: Final = SessionId(b"s" * 32)
ROOT, MAIN = TopicKey(b"r" * 32), TopicKey(b"m" * 32)
"""Topics that the node follows."""
NO_MESSAGE: Final = 0xFF
"""First byte of what is no message: the second says what happens at the node meanwhile."""
IN_MAIN, UNREAD, HOLD, FETCH, CIRCUIT, BODIES, WINDOW = 1, 2, 4, 8, 16, 32, 64
"""Bits of the second byte: in which topic a commit was accepted, and of which kind; that answers wait or go on; or that
BLOCK, a body or a window is asked for; or this side accepts the last circuit that the peer asked for, and sends
a byte on each that it may."""
BLOCK: Final = encrypt_block(b"a leaf", ConvergenceSecret(b"s" * 32))[0]
MARK: Final = BranchMark(b"8 bytes.")
_FOUND: Final = 1_000_000
"""Above the numbers of what is planned: what a peer asked for may be sent again."""


def take_session(data: bytes) -> str:
    """Messages, each behind its length of two bytes, to a machine whose store answers at once or later."""
    node = _Node()
    for topic in (ROOT, MAIN):
        node.handle(TopicFollowed(topic, is_own=topic == ROOT, is_entrusted=True))
    while data and not node.closed:
        head, data = data[:2], data[2:]
        if head[0] == NO_MESSAGE:
            node.happen(head[-1])
            continue
        size = int.from_bytes(head, "big")
        try:
            message = decode_message(data[:size])
        except DecodeError as error:
            return str(error)
        node.receive(message)
        data = data[size:]
    node.answer()
    if node.closed:
        assert node.session.handle(TopicFollowed(TopicKey(b"x" * 32), is_own=False)) == [], (
            "what is closed stays closed"
        )
    else:
        node.check_sent()
    return node.closed


class _Node:
    """A machine, what it asked of its store, and how much of each topic it has sent."""

    def __init__(self) -> None:
        self.session = Session(SESSION_ID, is_dialer=True, is_relay=True, introduces=True)
        self.closed = ""
        self._offered = 0  # the last circuit
        self._credit: dict[int, int] = {}  # by circuit that was accepted
        self._asked: deque[Output] = deque()
        self._is_holding = False
        self._last = {ROOT: 3, MAIN: 3}
        self._unread = {ROOT: 2, MAIN: 0}
        self._planned: set[TopicKey] = set()
        self._sent: dict[TopicKey, list[int]] = {ROOT: [], MAIN: []}
        self._window = 0
        """Batches that are being loaded or have no receipt."""
        self._fetching = 0

    def receive(self, message: Message) -> None:
        """The peer says something."""
        if isinstance(message, Receipt):
            self._window -= 1
        self.handle(MessageReceived(message))

    def happen(self, what: int) -> None:
        """Something else: a commit comes from another peer, or the store becomes slow."""
        if what & HOLD:
            self._is_holding = not self._is_holding
            if not self._is_holding:
                self.answer()
            return
        if what & CIRCUIT:
            self._use_circuits()
            return
        topic = MAIN if what & IN_MAIN else ROOT
        if what & FETCH:
            if self._fetching < FETCHED_COUNT_MAX:
                self._fetching += 1
                self.handle(BlocksWanted(topic, (BLOCK.block_id,)))
            return
        if what & WINDOW:
            self.handle(WindowWanted(topic, MARK, 9, is_upwards=False, count=2))
            return
        if what & BODIES:
            self.handle(BodiesWanted(topic, (CommitId(BLOCK.block_id),)))
            return
        if what & UNREAD:
            self._unread[topic] += 1
            self.handle(CommitsAccepted(topic, (-self._unread[topic],)))
        else:
            self._last[topic] += 1
            self.handle(CommitsAccepted(topic, (self._last[topic],)))

    def _use_circuits(self) -> None:
        if self._offered:
            self.handle(CircuitGranted(self._offered, CIRCUIT_WINDOW_SIZE))
            self._credit.setdefault(self._offered, 0)
            self._offered = 0
        for number, credit in list(self._credit.items()):
            if credit:
                self._credit[number] -= 1
                self.handle(CircuitSent(number, b"x"))

    def handle(self, event: Event) -> None:
        """Give the machine an event, and answer what it asks for unless answers wait."""
        self._give(event)
        if not self._is_holding:
            self.answer()

    def answer(self) -> None:
        """All that was asked of the store, in order."""
        while self._asked:
            event = self._look_up(self._asked.popleft())
            self._window -= isinstance(event, BatchLoaded)
            self._give(event)

    def _give(self, event: Event) -> None:
        for output in self.session.handle(event):
            match output:
                case Close():
                    self.closed = output.reason
                case Send():
                    assert decode_message(encode_message(output.message)) == output.message
                    self._window += isinstance(output.message, Publications)
                case LoadBatch():
                    assert 0 < len(output.nums) <= BATCH_COUNT_MAX
                    assert len({num < 0 for num in output.nums}) == 1, "of one kind"
                    self._window += 1
                    self._asked.append(output)
                case CircuitOffered(number):
                    self._offered = number
                    self._credit.pop(number, None)
                case CircuitCredited(number, count):
                    if number in self._credit:
                        self._credit[number] += count
                case CircuitClosed(number):
                    self._credit.pop(number, None)
                    self._offered = 0 if self._offered == number else self._offered
                case CircuitsAgreed():
                    self._give(CircuitsTaken())
                case RendezvousAsked(topic):
                    self._give(NodesFound(topic, (PeerId(b"n" * 32),) * 20))
                case RendezvousPossible(topic):
                    self._give(RendezvousWanted(topic))
                case NodesLearned():
                    assert output.nodes
                case CircuitReceived():
                    assert 0 < len(output.data) <= CIRCUIT_WINDOW_SIZE
                case PunchHeard():
                    self._give(PunchAnswered(("198.51.100.9:50123",)))
                case PunchDue(addresses):
                    assert addresses
                case AddressSeen():
                    assert output.address
                case EarlierCompared():
                    assert output.topic in self._last
                case WindowCame():
                    assert len(output.items) <= output.asked.count
                case PresenceSeen():
                    assert len(output.box) <= PRESENCE_BOX_SIZE_MAX
                case GiveAccount():
                    self._give(AccountSettled("used_link", 0, 0))
                case FilesListed() | FilesAnswered() | AccountAnswered():
                    raise AssertionError("nobody has asked a relay")
                case KeepFiles(topic, files):
                    assert 0 < len(files) <= FILES_DEPOSITED_COUNT_MAX
                    for one in files:
                        self._give(FileSettled(topic, short_file(one.file), ""))
                case HandOver():
                    for wanted, item in output.blocks:
                        assert item is None or block_id(item) == wanted
                        self._fetching -= 1
                case _:
                    self._asked.append(output)
        assert self.closed or 0 <= self._window <= BATCHES_IN_FLIGHT_MAX

    def check_sent(self) -> None:
        """Whether each commit was sent once and in order, and all of them if the peer took what was sent."""
        for topic, sent in self._sent.items():
            nums = [num for num in sent if 0 < num < _FOUND]
            assert nums == list(range(1, len(nums) + 1))
            unread = {num for num in sent if -_FOUND < num < 0}
            if topic in self._planned and self._window < BATCHES_OF_TOPIC_MAX:
                assert len(nums) == self._last[topic]
                assert len(unread) == self._unread[topic]

    def _look_up(self, output: Output) -> Event:
        match output:
            case LoadSummary(topic):
                return SummaryLoaded(topic, (as_commit_id(ROOT),), 1, Digest(ROOT), self._last[topic])
            case LoadEarlier(topic):
                return EarlierLoaded(topic, ((topic, Digest(ROOT)),))
            case LoadPlan(topic):
                self._planned.add(topic)
                nums, unread = range(1, self._last[topic] + 1), range(-1, -self._unread[topic] - 1, -1)
                return PlanLoaded(topic, array("q", nums), self._last[topic], unread)
            case FindWanted(topic, ids) | FindBodies(topic, ids):
                found = range(_FOUND, _FOUND + len(ids) // 2)
                return WantedFound(topic, [*[-num for num in found], *found])
            case LoadWindow(topic, mark):
                return WindowLoaded(topic, mark, (b"x",) * output.count, is_last=False)
            case LoadBatch(topic, nums):
                covered = nums[: -(-len(nums) // 2)]
                self._sent[topic] += covered
                return BatchLoaded(topic, (b"x",) * len(covered))
            case OpenReconciliation(topic) | HandleFrame(topic):
                is_over = isinstance(output, HandleFrame) and output.kind == 7
                return Reconciled(topic, ((1, b"frame"),), [_FOUND], is_over)
            case OpenTopics(topics):
                assert 0 < len(topics) <= TOPIC_COUNT_MAX
                return TopicFollowed(topics[0], is_own=False)
            case LoadFileList(topic, after):
                return FileListLoaded(topic, (after,))
            case LoadBlocks(topic, ids):
                assert 0 < len(ids) <= FETCHED_COUNT_MAX
                return BlocksLoaded(topic, (b"x",) * -(-len(ids) // 2))
            case FindPeers(topic):
                return PeersFound(
                    topic,
                    (PeerAddress("192.0.2.1:1", PeerId(topic)), PeerAddress("192.0.2.2:2", PeerId(topic))),
                )
            case LearnPeers(topic, peers):
                assert 0 < len(peers) <= INTRODUCED_COUNT_MAX
                return PeersFound(topic, peers)
            case IngestBatch(topic, items):
                return BatchIngested(topic, len(items), tuple(CommitId(block_id(item)) for item in items))
        raise AssertionError(f"nothing to look up: {output}")


def blinded(topic: TopicKey) -> bytes:
    """How a peer names a topic to this machine."""
    return blind_topic(topic, SESSION_ID)


def announced(topic: TopicKey) -> bytes:
    """How a peer announces a topic to this machine."""
    return announced_topic(topic, SESSION_ID, by_dialer=False)
