"""A connection: one session machine over one secure stream. Moves bytes, runs the machine's outputs, decides nothing.

Tasks, all owned by the connection's nursery: the reader (frames in), the writer (frames out, coalesced), the
keep-alive, and one short task for each load or take that the machine asks for, at most a handful by the machine's own
window. A batch that was received is opened at once and accepted in its turn, so that signatures of the next batch are
checked while the last one is being stored.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio
from sqlalchemy import Connection as StoreConnection

from node.hub import Hub, NotFetched
from node.opening import CARRIER_FAULTS
from node.transport import SecureStream, TransportError
from protocol.codec import DecodeError
from protocol.limits import (
    BATCH_SIZE_TARGET,
    FETCH_TIMEOUT_SECONDS,
    FETCHED_COUNT_MAX,
    IDLE_TIMEOUT_SECONDS,
    SEND_TIMEOUT_SECONDS,
    TOPIC_COUNT_MAX,
    WANT_COUNT_MAX,
)
from protocol.messages import Announce, Goodbye, KeepAlive, Message, decode_message, encode_message
from protocol.session import Session, TopicProgress
from protocol.session_events import (
    BatchLoaded,
    BatchTaken,
    BlocksLoaded,
    BlocksWanted,
    Close,
    CommitsAccepted,
    Event,
    FindWanted,
    HandOver,
    LoadBatch,
    LoadBlocks,
    LoadPlan,
    LoadSummary,
    MessageReceived,
    Output,
    PlanLoaded,
    Send,
    SummaryLoaded,
    Take,
    TopicFollowed,
    WantedFound,
)
from storage.blocks import DamagedBlock
from storage.database import StorageError
from storage.difference import find_nums, load_publications, plan_sending, summarise
from storage.repos import Branch
from storage.waiting import missing_causes

log = structlog.get_logger()

_OUTGOING_COUNT_MAX: Final = 3 * TOPIC_COUNT_MAX
"""Messages waiting to be written: batches are bounded by the window, the rest is small (a summary of each topic is most
of it); a peer beyond it is cut off."""
_COALESCED_COUNT_MAX: Final = 64
_LAST_WORDS_SECONDS: Final = 1.0
"""Seconds that what is queued may take to be written once the connection is ending."""


@dataclass(slots=True)
class _Answer:
    """What a peer says to one question for a block."""

    block: bytes | None = None
    is_lost: bool = False
    is_there: trio.Event = field(default_factory=trio.Event)

    def settle(self, block: bytes | None) -> None:
        self.block = block
        self.is_there.set()

    def lose(self) -> None:
        self.is_lost = True
        self.is_there.set()


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a connection ended: a stable reason and, where there is one, the transport's word."""

    reason: str


class Connection:
    """One conversation with one peer. `run` returns when it has ended."""

    def __init__(self, hub: Hub, stream: SecureStream) -> None:
        self.peer = stream.peer_key
        self._hub = hub
        self._stream = stream
        self._session = Session(stream.session_id)
        self._send_outgoing, self._outgoing = trio.open_memory_channel[Message](_OUTGOING_COUNT_MAX)
        self._nursery: trio.Nursery | None = None
        self._followed: dict[bytes, int] = {}  # topics and their numbers
        self._reason = ""
        self._fetches: dict[bytes, _Answer] = {}  # by block
        self._fetching = trio.Semaphore(FETCHED_COUNT_MAX)
        self._reading = trio.CancelScope()
        self._written = trio.Event()
        self._turn = trio.Event()
        self._turn.set()

    @property
    def topics(self) -> list[TopicProgress]:
        """Progress of each topic on this connection."""
        return self._session.topics

    async def run(self) -> Ended:
        """Converse until either side ends it."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._hub.add(self)
                self._hub.sources.append(self)
                nursery.start_soon(self._write)
                nursery.start_soon(self._keep_alive)
                self.topics_changed()
                await self._read()
                await self._say_last_words()
                nursery.cancel_scope.cancel()
        finally:
            self._hub.remove(self)
            if self in self._hub.sources:  # a start that was cancelled never entered it
                self._hub.sources.remove(self)
            for answer in self._fetches.values():
                answer.lose()
            with trio.move_on_after(1) as scope:  # a last word, if the peer listens
                scope.shield = True
                await self._stream.aclose()
        return Ended(self._reason or "closed")

    def commits_accepted(self, topic: bytes, nums: tuple[int, ...]) -> None:
        """The hub's word: commits were accepted that this peer has not sent."""
        self._take(CommitsAccepted(topic, nums))

    def topics_changed(self) -> None:
        """The hub's word: announce what is followed now, root branches first and the latest topics before older ones.

        What is beyond the bound of one connection is not followed on it.
        """
        by_topic = self._hub.replica.by_topic
        for topic, num in self._followed.items():
            if topic not in by_topic or by_topic[topic].topic_num != num:
                self._end("topic_forgotten")  # what was agreed about it does not hold any more
                return
        fresh = [one for one in by_topic.values() if one.topic not in self._followed]
        fresh.sort(key=lambda one: (not one.facts.is_root_branch, not one.facts.has_members, -one.topic_num))
        outputs: list[Output] = []
        for branch in fresh[: TOPIC_COUNT_MAX - len(self._followed)]:
            self._followed[branch.topic] = branch.topic_num
            outputs += self._session.take(TopicFollowed(branch.topic, branch.facts.is_root_branch))
        for output in _announced_together(outputs):
            self._perform(output)

    def has_joined(self, topic: bytes) -> bool:
        """Whether the peer follows it too."""
        return any(progress.topic == topic and progress.is_joined for progress in self._session.topics)

    async def fetch(self, topic: bytes, wanted: bytes) -> bytes | None:
        """A block of a joined topic's files, encoded, of just that id; None where the peer has not got it.

        Asks for FETCHED_COUNT_MAX at a time. Raises NotFetched when the peer leaves, or does not answer in time.
        """
        answer = self._fetches.get(wanted)
        if answer is None:
            await self._fetching.acquire()  # given back when the peer has answered, whoever waits for it then
            answer = self._fetches.get(wanted)
        if self._is_ending() or not self.has_joined(topic):
            raise NotFetched
        if answer is None:
            answer = self._fetches[wanted] = _Answer()
            self._take(BlocksWanted(topic, (wanted,)))
        with trio.move_on_after(FETCH_TIMEOUT_SECONDS):
            await answer.is_there.wait()
        if not answer.is_there.is_set():
            self._end("peer_does_not_answer")  # what it still owes would be taken for what is asked later
        if answer.is_lost or not answer.is_there.is_set():
            raise NotFetched
        return answer.block

    async def _read(self) -> None:
        while not self._is_ending():
            self._reading = trio.CancelScope(deadline=trio.current_time() + IDLE_TIMEOUT_SECONDS)
            with self._reading:
                try:
                    frame = await self._stream.receive_frame()
                except TransportError as error:
                    self._end(error.reason)
            if self._is_ending():
                return
            if self._reading.cancelled_caught:
                self._end("idle")
                return
            if frame is None:
                self._end("closed")
                return
            try:
                message = decode_message(frame)
            except DecodeError as error:
                self._end(f"bad_message:{error.reason}")
                return
            self._take(MessageReceived(message))

    async def _write(self) -> None:
        try:
            await self._write_until_closed()
        finally:
            self._written.set()

    async def _write_until_closed(self) -> None:
        async for message in self._outgoing:
            frames = [encode_message(message)]
            size = len(frames[0])
            while len(frames) < _COALESCED_COUNT_MAX and size < BATCH_SIZE_TARGET:
                try:
                    frames.append(encode_message(self._outgoing.receive_nowait()))
                except (trio.WouldBlock, trio.EndOfChannel):
                    break
                size += len(frames[-1])
            try:
                with trio.fail_after(SEND_TIMEOUT_SECONDS):
                    await self._stream.send_frames(frames)
            except trio.TooSlowError:
                self._end("peer_does_not_read")
                return
            except TransportError as error:
                self._end(error.reason)
                return

    async def _keep_alive(self) -> None:
        while True:
            await trio.sleep(IDLE_TIMEOUT_SECONDS / 3)
            self._say(KeepAlive())

    def _take(self, event: Event) -> None:
        """Give the machine an event and start what it asks for. Never waits."""
        for output in self._session.take(event):
            self._perform(output)

    def _perform(self, output: Output) -> None:
        match output:
            case Send():
                self._say(output.message)
            case Close():
                self._say(Goodbye(output.reason))
                self._end(output.reason)
            case HandOver():
                for wanted, item in output.blocks:
                    self._fetches.pop(wanted).settle(item)
                    self._fetching.release()
            case Take():
                previous, self._turn = self._turn, trio.Event()
                self._start(self._take_batch, output, previous, self._turn)
            case _:
                self._start(self._load, output)

    async def _load(self, output: Output) -> None:
        topic = output.topic  # type: ignore[union-attr]  # _perform sends only loads here
        branch = self._hub.replica.by_topic.get(topic)
        if branch is None:
            self._end("topic_forgotten")
            return
        event = await self._hub.run_blocking(self._read_store, branch, output)
        if event is not None:
            self._take(event)

    def _read_store(self, branch: Branch, output: Output) -> Event | None:
        with self._hub.replica.database.read() as connection:
            match output:
                case LoadSummary():
                    summary = summarise(connection, branch.topic_num)
                    return SummaryLoaded(branch.topic, summary.heads, summary.count, summary.samples)
                case LoadPlan():
                    plan = plan_sending(connection, branch.topic_num, output.held)
                    return PlanLoaded(branch.topic, plan.nums, plan.upto, plan.unread)
                case LoadBatch():
                    items = load_publications(connection, branch, output.nums, BATCH_SIZE_TARGET)
                    return BatchLoaded(branch.topic, tuple(items))
                case LoadBlocks():
                    return BlocksLoaded(branch.topic, (self._find_block(connection, output.ids[0]),))
                case FindWanted():
                    return WantedFound(branch.topic, find_nums(connection, branch.topic_num, output.ids))
                case _:
                    return None

    def _find_block(self, connection: StoreConnection, block_id: bytes) -> bytes:
        try:
            found = self._hub.replica.packs.find(connection, block_id)
        except DamagedBlock as error:  # others may have it whole
            log.error("storage failed", peer=self.peer.hex(), error=str(error))
            return b""
        return found.encoded if found is not None else b""

    async def _take_batch(self, output: Take, previous: trio.Event, done: trio.Event) -> None:
        """Open now, accept in turn: causes that stand in an earlier batch are there first."""
        branch = self._hub.replica.by_topic.get(output.topic)
        if branch is None:
            self._end("topic_forgotten")
            return
        intake = await self._hub.take(branch, output.items, previous, self)
        wanted: list[bytes] = []
        if intake.waiting:
            wanted = await self._hub.run_blocking(self._missing, branch)
        done.set()
        accepted = len(intake.accepted.get(output.topic, ()))
        self._take(BatchTaken(output.topic, accepted, tuple(wanted)))
        faults = sorted(reason for reason in intake.dropped if reason.partition(":")[0] in CARRIER_FAULTS)
        if faults:
            self._perform(Close(faults[0]))

    def _missing(self, branch: Branch) -> list[bytes]:
        with self._hub.replica.database.read() as connection:
            return missing_causes(connection, branch.topic_num, WANT_COUNT_MAX)

    def _start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        assert self._nursery is not None, "run() is what starts work"
        self._nursery.start_soon(self._guarded, work, args)

    async def _guarded(self, work: Callable[..., Awaitable[None]], args: tuple[object, ...]) -> None:
        try:
            await work(*args)
        except StorageError as error:
            log.error("storage failed", peer=self.peer.hex(), error=str(error))
            self._end("storage_failed")

    def _say(self, message: Message) -> None:
        try:
            self._send_outgoing.send_nowait(message)
        except trio.WouldBlock:
            self._end("peer_does_not_read")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end("closed")

    def _is_ending(self) -> bool:
        return bool(self._reason)

    def _end(self, reason: str) -> None:
        """Stop reading; the first reason counts."""
        if not self._reason:
            self._reason = reason
            self._reading.cancel()

    async def _say_last_words(self) -> None:
        """Give what is queued, a goodbye above all, a moment to be written."""
        self._send_outgoing.close()
        with trio.move_on_after(_LAST_WORDS_SECONDS):
            await self._written.wait()


def _announced_together(outputs: list[Output]) -> list[Output]:
    """The same, with one announcement of many topics instead of many of one."""
    topics: list[bytes] = []
    others: list[Output] = []
    for output in outputs:
        if isinstance(output, Send) and isinstance(output.message, Announce):
            topics += output.message.topics
        else:
            others.append(output)
    return [Send(Announce(tuple(topics))), *others] if topics else others
