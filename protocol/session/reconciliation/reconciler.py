"""Finds which commits of a topic only one of two nodes has: coded symbols first, then ranges, else all. Pure.

Who holds more answers, the other asks (`is_answerer`; both know the counts). Coded symbols come first (`symbols`); where
these cannot tell, or have told something wrong before, ranges (`ranges`); and where these do not come to an end either, each
sends all that it has. Which frame comes when stands in a table, `protocol.session.machines.reconciling`. What is held is
looked up through `HeldSet`, so that this module knows no store.

    answerer                                   asker
    SYMBOLS, SYMBOLS, ...       ->             peels
                                <-             ASK_SYMBOLS: more
                                <-             LACKS: short ids of what it does not hold; it sends what it alone holds
                                <-             OVER
    BY_RANGES                   ->             or ranges from the start
                                <-             ASK_RANGES
    RANGES                      ->             at the end LACKS and OVER
                                <-             ALL and OVER: nothing helps
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from protocol.codec import DecodeError
from protocol.crypto.hashing import range_key, symbol_key
from protocol.ids import SHORT_ID_SIZE, SessionId, ShortId, TopicKey
from protocol.limits.peers import RECONCILIATION_FRAME_COUNT_MAX
from protocol.session.machines.reconciling import RECONCILING, FrameAction, FrameCame, Reconciling
from protocol.session.machines.table import PeerFault
from protocol.session.reconciliation.range_items import RangeLookup
from protocol.session.reconciliation.ranges import RangesAsker, answer_ranges
from protocol.session.reconciliation.riblt import Unreconciled
from protocol.session.reconciliation.symbols import (
    OPENING_COUNT,
    SymbolsAsker,
    answer,
    decode_ask,
    decode_lacks,
    encode_lacks,
    opening,
)


class FrameKind(IntEnum):
    """Kind of a frame of a reconciliation."""

    SYMBOLS = 0
    ASK_SYMBOLS = 1
    LACKS = 2
    BY_RANGES = 3
    ASK_RANGES = 4
    RANGES = 5
    ALL = 6
    OVER = 7


class HeldSet(Protocol):
    """The commits of a topic that are held here, at one moment."""

    def symbols(self) -> Sequence[int]:
        """Return the kept prefix (`riblt.Prefix.symbols`)."""

    def find(self, short_ids: Sequence[ShortId]) -> Mapping[ShortId, int]:
        """Return the numbers of the given commits that are here."""

    def lookup(self) -> RangeLookup:
        """Return the whole set, to be looked up by ranges."""

    def everything(self) -> Sequence[int]:
        """Numbers of all commits, causes before effects."""


@dataclass(frozen=True, slots=True)
class Step:
    """Output of one step: frames, and numbers of commits to send. When it is over, no frame is taken any more."""

    frames: tuple[tuple[FrameKind, bytes], ...] = ()
    nums: Sequence[int] = ()
    is_over: bool = False


class Reconciler:
    """One side of the reconciliation of one topic in one session."""

    def __init__(self, topic: TopicKey, session_id: SessionId, *, is_answerer: bool) -> None:
        self._topic = topic
        self._range_key = range_key(topic, session_id)
        self._state = Reconciling.ANSWERING if is_answerer else Reconciling.WAITING
        self._frame_count = 0
        self._symbols: Sequence[int] = ()
        self._told_count = OPENING_COUNT  # symbols up to which the asker has been told
        # Numbers of what the asker lacks: in one go, for the frames that name them are in no order of causes.
        self._lacking: set[int] = set()
        self._given: set[int] = set()  # of what it was given, each once
        self._asker: SymbolsAsker | None = None
        self._ranges: RangesAsker | None = None

    def open(self, held: HeldSet, *, by_ranges: bool) -> Step:
        """Return the answerer's first step."""
        if by_ranges:
            return Step(((FrameKind.BY_RANGES, b""),))
        self._symbols = held.symbols()
        return Step(((FrameKind.SYMBOLS, opening(self._symbols)),))

    def handle(self, held: HeldSet, kind: FrameKind, frame: bytes) -> Step:
        """Return the step after a frame. Raises DecodeError and Unreconciled if no honest peer sends such a frame."""
        self._frame_count += 1
        if self._frame_count > RECONCILIATION_FRAME_COUNT_MAX:
            raise Unreconciled("too_many_frames")
        return self._run(FrameCame(int(kind)), held, frame)

    def _run(self, event: FrameCame, held: HeldSet, frame: bytes) -> Step:
        try:
            cell = RECONCILING.find(self._state, event)
        except PeerFault as fault:
            raise Unreconciled(fault.reason) from None
        self._state = cell.to
        for what in cell.outputs:  # one at most
            return self._do(what, held, frame)
        return Step()

    def _do(self, what: FrameAction, held: HeldSet, frame: bytes) -> Step:
        match what:
            case FrameAction.PEEL:
                return self._peel(held, frame)
            case FrameAction.TELL:
                return self._answer(frame)
            case FrameAction.NOTE:
                self._lacking.update(held.find(decode_lacks(frame)).values())
                return Step()
            case FrameAction.ASK_RANGES:
                self._ranges = RangesAsker(held.lookup(), self._range_key)
                return Step(((FrameKind.ASK_RANGES, self._ranges.start()),))
            case FrameAction.ANSWER_RANGES:
                return Step(((FrameKind.RANGES, answer_ranges(held.lookup(), self._range_key, frame)),))
            case FrameAction.GO_ON:
                return self._go_on_with_ranges(held, frame)
            case FrameAction.GIVE_ALL:
                return Step(nums=self._give(held.everything()))
            case FrameAction.GIVE:
                return Step(nums=self._give(self._lacking), is_over=True)

    def _answer(self, frame: bytes) -> Step:
        """Symbols that were asked for, each once: 60 bytes ask for up to 1.5 MB."""
        asked = decode_ask(frame)
        if asked.start < self._told_count:
            raise Unreconciled("out_of_turn")
        frames = tuple((FrameKind.SYMBOLS, part) for part in answer(self._symbols, frame))
        self._told_count = asked.start + asked.count
        return Step(frames)

    def _give(self, nums: Iterable[int]) -> list[int]:
        """Return the given numbers that were not given before."""
        fresh = sorted(set(nums) - self._given)
        self._given.update(fresh)
        return fresh

    def _peel(self, held: HeldSet, frame: bytes) -> Step:
        if self._asker is None:
            self._asker = SymbolsAsker(symbol_key(self._topic), held.symbols())
        try:
            question = self._asker.handle_frame(frame)
        except Unreconciled:
            return self._run(FrameCame.STUCK, held, frame)
        if question is not None:
            return Step(((FrameKind.ASK_SYMBOLS, question),))
        # Not before the last symbol is here: what came after the last word would be taken for another reconciliation's
        # first frame, and end the connection.
        is_over = self._asker.is_done and self._asker.has_all
        return self._settle(held, self._asker.differences) if is_over else Step()

    def _go_on_with_ranges(self, held: HeldSet, frame: bytes) -> Step:
        assert self._ranges is not None, "the table says no otherwise"
        try:
            question = self._ranges.handle_frame(frame)
        except (Unreconciled, DecodeError):
            return Step(((FrameKind.ALL, b""), (FrameKind.OVER, b"")), held.everything(), is_over=True)
        if question is not None:
            return Step(((FrameKind.ASK_RANGES, question),))
        differences = [ShortId(raw[:SHORT_ID_SIZE]) for raw in self._ranges.here | self._ranges.there]
        return self._settle(held, differences)

    def _settle(self, held: HeldSet, differences: Sequence[ShortId]) -> Step:
        """Send what is held here, and ask for the rest."""
        ours = held.find(differences)
        lacking = [short_id for short_id in differences if short_id not in ours]
        frames = tuple((FrameKind.LACKS, frame) for frame in encode_lacks(sorted(set(lacking))))
        return Step((*frames, (FrameKind.OVER, b"")), sorted(ours.values()), is_over=True)
