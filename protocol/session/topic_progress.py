"""Progress of one topic on a session: states of its machines, and the counters and queues beside them.

Queues of few parts are lists: an empty deque takes 600 bytes, and a connection may have many thousands of topics.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from protocol.ids import BlindTopic, BlockId, BranchMark, PeerId, TopicKey
from protocol.limits.peers import BATCHES_OF_TOPIC_MAX, STATED_COUNT_MAX
from protocol.session.events import SummaryLoaded
from protocol.session.machines.comparing import RESTING, Comparing
from protocol.session.machines.conversation import TopicStanding
from protocol.session.machines.transfer import SERVING, Sending, Served, Serving, ServingAction
from protocol.session.messages import Keeps, Summary, Want, WantBodies
from protocol.session.outputs import HandleFrame, Output

QuestionT = TypeVar("QuestionT")


IN_SYNC: Final = "in sync"
"""State of a topic on which nothing is on its way. What the peer lacks or has not confirmed is told apart from it."""


_PAGE_SIZE: Final = 256
"""Numbers whose bits are in one integer of `NumberSet`."""


class NumberSet:
    """Set of commit numbers: under a byte for each where numbers are dense, 160 bytes for a lone one.

    What a peer asks for and does not take may be all of a store.
    """

    __slots__ = ("_pages",)

    def __init__(self) -> None:
        self._pages: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._pages)

    def __contains__(self, num: int) -> bool:
        page, bit = divmod(num, _PAGE_SIZE)
        return bool(self._pages.get(page, 0) >> bit & 1)

    def add(self, num: int) -> bool:
        """Add a number. Return True if it was not in the set."""
        page, bit = divmod(num, _PAGE_SIZE)
        before = self._pages.get(page, 0)
        self._pages[page] = before | 1 << bit
        return self._pages[page] != before

    def discard(self, nums: Iterable[int]) -> None:
        """Take these out. Costs O(1) where the set is empty, as it is in most syncs."""
        if not self:
            return
        for num in nums:
            page, bit = divmod(num, _PAGE_SIZE)
            bits = self._pages.pop(page, 0) & ~(1 << bit)
            if bits:
                self._pages[page] = bits


@dataclass(slots=True)
class Rounds:
    """Summaries of a topic's present round, and frames that wait: what the state `Comparing` leaves open."""

    number: int = 0
    own: SummaryLoaded | None = None
    came: int = 0  # how much of the peer's had come when it was made
    peer: Summary | None = None  # the last one, of this round or the one before
    kept: Summary | None = None  # of the next round, which the peer began meanwhile
    frames: list[HandleFrame] = field(default_factory=list)  # the first is being worked on
    open_checks: int = 0  # without a frame from the peer, while it is its turn
    quiet_checks: int = 0  # of these, the last in a row at which nothing else of use had come either
    checks: int = 0  # of what is looked at by the time, since the round began


@dataclass(slots=True)
class Outbox:
    """Numbers of commits still to send, and of those sent without a receipt so far. Stands beside `Sending`."""

    upto: int | None = (
        None  # set once the first plan is loaded: later commits have numbers above it, or below 0
    )
    early: "array[int]" = field(default_factory=lambda: array("q"))  # accepted before the plan was
    queue: "list[array[int]]" = field(default_factory=list)  # a few parts, each of one kind (`enqueue`)
    sizes: list[int] = field(default_factory=list)  # commits of each batch without a receipt
    refusal: str = ""  # why the peer takes no more
    sent: int = 0
    confirmed: int = 0  # of those, whose receipt has come: what the peer takes of them is durable there
    wanted: NumberSet = field(
        default_factory=NumberSet
    )  # of those queued, which the peer has asked for (`want`)
    whole: NumberSet = field(
        default_factory=NumberSet
    )  # of these, such whose bodies it wants though it keeps none of the branch (`keeps`)

    def enqueue(self, nums: Sequence[int]) -> None:
        """Queue numbers to be sent: a batch is either of commits that this node has read, or (negative) of others."""
        for part in ([num for num in nums if num < 0], [num for num in nums if num >= 0]):
            if not part:
                continue
            if self.queue and (self.queue[-1][-1] < 0) == (part[-1] < 0):
                self.queue[-1].extend(part)  # eight bytes each, however long a peer takes none
            else:
                self.queue.append(array("q", part))

    def want(self, nums: Sequence[int]) -> list[int]:
        """Note numbers that the peer has asked for. Return those that do not wait already because it had."""
        return [num for num in nums if self.wanted.add(num)]

    def pass_over(self, count: int) -> None:
        """Skip this many numbers of the first part."""
        passed, rest = self.queue[0][:count], self.queue[0][count:]
        self.wanted.discard(passed)
        self.whole.discard(passed)
        if rest:
            self.queue[0] = rest
        else:
            del self.queue[0]

    def clear(self) -> None:
        """Forget what is queued: the peer takes no more."""
        self.queue.clear()
        self.wanted, self.whole = NumberSet(), NumberSet()

    @property
    def to_send(self) -> int:
        """Count the numbers that wait to be sent."""
        return sum(map(len, self.queue))


@dataclass(slots=True)
class Questions(Generic[QuestionT]):
    """Beside `Serving`: what the peer asked for and was not answered; the first ones are being looked up."""

    serving: Serving = Serving.IDLE
    waiting: list[QuestionT] = field(default_factory=list)

    def ask(self, questions: Sequence[QuestionT]) -> bool:
        """Note questions of the peer. Return True if they are to be looked up now."""
        return self._run(Served.ASKED, questions, 0)

    def answer(self, count: int) -> bool:
        """Drop this many answered questions. Return True if more are to be looked up now."""
        return self._run(Served.FOUND if len(self.waiting) > count else Served.FOUND_LAST, (), count)

    def _run(self, event: Served, questions: Sequence[QuestionT], answered: int) -> bool:
        step = SERVING.find(self.serving, event)
        self.serving = step.to
        for what in step.outputs:
            match what:
                case ServingAction.NOTE:
                    self.waiting.extend(questions)
                case ServingAction.ANSWER:
                    del self.waiting[:answered]
        return ServingAction.LOOK_UP in step.outputs


@dataclass(frozen=True, slots=True)
class KeptPart:
    """Part of the bodies that a peer keeps: of branches with these marks (None: all), of posts of the last `days`
    (0: all)."""

    marks: frozenset[BranchMark] | None = None
    days: int = 0

    @property
    def is_all(self) -> bool:
        """True if all are kept."""
        return self.marks is None and not self.days

    def meet(self, other: "KeptPart") -> "KeptPart":
        """Return what is part of both."""
        marks = self.marks if other.marks is None else other.marks
        if self.marks is not None and other.marks is not None:
            marks = self.marks & other.marks
        return KeptPart(marks, min(self.days or other.days, other.days or self.days))


KEEPS_ALL: Final = KeptPart()


@dataclass(slots=True)
class TopicProgress:
    """Progress of one topic on one session; read by status."""

    topic: TopicKey
    blind: BlindTopic  # its name in messages of this session
    is_own: bool  # an epoch's own topic: all who hold the epoch publish there
    is_entrusted: bool  # to the peer, if it is a relay
    order: int = 0  # of topics with much to send
    group: int | PeerId | None = None  # of those that are sent one after the other
    said_at: int = 0  # which of this side's announcements it was
    has_settled: bool = False  # it takes no room of the connection any more (`Session.may_announce`)
    comparing: Comparing = Comparing.UNJOINED
    rounds: Rounds = field(default_factory=Rounds)
    sending: Sending = Sending.OPEN
    outbox: Outbox = field(default_factory=Outbox)
    wants: Questions[Want | WantBodies] = field(default_factory=Questions)
    served: Questions[BlockId] = field(default_factory=Questions)
    bodies_unanswered: int = 0  # questions for bodies that the peer has not answered
    bodies_found: int | None = None  # how many it has of those of the last one; None: it has not said yet
    fetched: list[BlockId] = field(default_factory=list)  # blocks that the peer was asked for
    unreceipted: int = 0  # batches of the peer's that are not stored yet
    received: int = 0
    dropped: int = 0  # publications of the peer's that were at fault
    known: int = 0  # commits of the peer's that others had brought since the topic was compared
    bodiless: int = (
        0  # of these, commits that came without the bodies they are judged by, for the peer has erased them
    )

    has_left_out: bool = False  # since the last round: commits of the peer's that may be taken later
    keeps: KeptPart = KEEPS_ALL  # bodies that the peer keeps
    # Those of which it also has what came before: kept ever since it joined, or when it said the same again.
    has_kept: KeptPart = KEEPS_ALL

    def note_keeps(self, message: Keeps) -> list[Output]:
        """Note whose bodies the peer keeps."""
        before = self.keeps
        self.keeps = KeptPart(None if message.is_all else frozenset(message.marks), message.days)
        self.has_kept = self.keeps if self.keeps == before else self.has_kept.meet(self.keeps)
        return []

    @property
    def is_joined(self) -> bool:
        """Return True if both sides have announced it."""
        return self.comparing is not Comparing.UNJOINED

    @property
    def standing(self) -> TopicStanding:
        """Return the state by which messages about the topic are allowed."""
        if self.is_joined:
            return TopicStanding.JOINED
        return TopicStanding.ENTRUSTED if self.is_entrusted else TopicStanding.FOLLOWED

    @property
    def sent(self) -> int:
        """Count the publications that were sent."""
        return self.outbox.sent

    @property
    def confirmed(self) -> int:
        """Count the publications that were sent and receipted."""
        return self.outbox.confirmed

    @property
    def in_flight(self) -> int:
        """Count the batches without a receipt."""
        return len(self.outbox.sizes)

    @property
    def is_loading(self) -> bool:
        """Return True if a batch is being read, which counts as one in flight: it will be."""
        return self.sending in (Sending.LOADING, Sending.REFUSED_LOADING)

    @property
    def is_ready(self) -> bool:
        """Return True if the next batch may be loaded, as far as the topic itself goes."""
        return (
            self.sending is Sending.OPEN
            and bool(self.outbox.queue)
            and len(self.outbox.sizes) < BATCHES_OF_TOPIC_MAX
        )

    @property
    def to_send(self) -> int:
        """Count the commits that wait to be sent."""
        return self.outbox.to_send

    @property
    def unconfirmed(self) -> int:
        """Count the commits that are to be sent, or were and have no receipt."""
        return self.to_send + self.outbox.sent - self.outbox.confirmed

    @property
    def came(self) -> int:
        """Count the peer's publications that were processed, of those that the comparison let it send."""
        return self.received + self.dropped + self.known

    @property
    def here(self) -> int | None:
        """Count the commits that are here, without what only others brought. None: not counted yet."""
        own = self.rounds.own
        return None if own is None else own.count + self.came - self.rounds.came

    @property
    def behind(self) -> int:
        """Return a lower bound of the commits that the peer holds and this side lacks, without those found useless.

        STATED_COUNT_MAX stands for any number above.
        """
        here, peer = self.here, self.rounds.peer
        if here is None or peer is None:
            return 0
        return max(0, min(peer.count - here, STATED_COUNT_MAX))

    @property
    def is_quiet(self) -> bool:
        """Return True if nothing is on its way: no batch unsent, unreceipted or unstored; and all may be sent."""
        is_sending = self.outbox.queue or self.outbox.sizes or self.sending is not Sending.OPEN
        return not is_sending and self.unreceipted == 0

    @property
    def state(self) -> str:
        """Return the state that status shows."""
        if self.sending in (Sending.REFUSED, Sending.REFUSED_LOADING):
            return f"refused: {self.outbox.refusal}"
        if not self.is_joined:
            return "not joined"
        if self.outbox.queue or self.outbox.sizes or self.is_loading:
            return "sending"
        if self.unreceipted:
            return "receiving"
        return IN_SYNC if self.comparing in RESTING else "comparing"
