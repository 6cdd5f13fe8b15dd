"""Two reconcilers of one topic: symbols, the fallback to ranges, the fallback to everything, and what neither takes."""

from collections.abc import Mapping, Sequence

import pytest

from protocol.codec import DecodeError, encode
from protocol.crypto.hashing import symbol_key
from protocol.ids import SHORT_ID_SIZE, CommitId, SessionId, ShortId, TopicKey
from protocol.limits.peers import RECONCILIATION_FRAME_COUNT_MAX
from protocol.session.reconciliation import symbols as symbols_module
from protocol.session.reconciliation.range_items import SortedItems
from protocol.session.reconciliation.reconciler import FrameKind, Reconciler
from protocol.session.reconciliation.riblt import Unreconciled
from protocol.session.reconciliation.symbols import OPENING_COUNT, AskSymbols, encode_lacks
from tests.support.sets import ids, prefix_of

TOPIC, SESSION = TopicKey(b"t" * 32), SessionId(b"s" * 32)


class Held:
    """A set in memory (`reconciler.HeldSet`), with what it sent and was asked for."""

    def __init__(self, members: Sequence[CommitId], length: int = 4096) -> None:
        self.ids = sorted(members)
        self._symbols = prefix_of(members, length, symbol_key(TOPIC)).symbols()
        self.sent: list[CommitId] = []

    def symbols(self) -> Sequence[int]:
        return self._symbols

    def find(self, short_ids: Sequence[ShortId]) -> Mapping[ShortId, int]:
        nums = {ShortId(member[:SHORT_ID_SIZE]): num for num, member in enumerate(self.ids)}
        return {short_id: nums[short_id] for short_id in short_ids if short_id in nums}

    def lookup(self) -> SortedItems:
        return SortedItems((0, member) for member in self.ids)

    def everything(self) -> Sequence[int]:
        return range(len(self.ids))

    def send(self, nums: Sequence[int]) -> None:
        self.sent += [self.ids[num] for num in nums]


class Pair:
    """Both sides. Frames wait in a line for each direction."""

    def __init__(self, ours: Held, theirs: Held) -> None:
        self.held = {False: ours, True: theirs}  # by whether it is the answerer
        self.sides = {side: _reconciler(is_answerer=side) for side in self.held}
        self.waiting: dict[bool, list[tuple[FrameKind, bytes]]] = {False: [], True: []}  # by the recipient
        self.kinds: list[FrameKind] = []
        self.over: set[bool] = set()

    def open(self, *, by_ranges: bool = False) -> None:
        """The answerer's first frame is on its way."""
        self.waiting[False] += self.sides[True].open(self.held[True], by_ranges=by_ranges).frames

    def run(self) -> None:
        """Until both sides are over. Nothing may be left on the way then."""
        while len(self.over) < 2:
            self.step(side=bool(self.waiting[True]))
        assert self.waiting == {False: [], True: []}

    def step(self, *, side: bool) -> None:
        """One frame arrives."""
        kind, frame = self.waiting[side].pop(0)
        self.kinds.append(kind)
        step = self.sides[side].handle(self.held[side], kind, frame)
        self.waiting[not side] += step.frames
        self.held[side].send(step.nums)
        if step.is_over:
            self.over.add(side)


def _reconciler(*, is_answerer: bool) -> Reconciler:
    return Reconciler(TOPIC, SESSION, is_answerer=is_answerer)


def _assert_settled(pair: Pair) -> None:
    """Each side sent exactly what the other one lacked, each commit once."""
    ours, theirs = pair.held[False], pair.held[True]
    assert sorted(ours.sent) == sorted(set(ours.ids) - set(theirs.ids))
    assert sorted(theirs.sent) == sorted(set(theirs.ids) - set(ours.ids))


@pytest.mark.parametrize("here, there", [(0, 0), (3, 4), (0, 10), (200, 300)])
def test_each_side_sends_what_the_other_one_lacks(here: int, there: int) -> None:
    shared = ids(100, "common")
    pair = Pair(Held(shared + ids(here, "here")), Held(shared + ids(there, "there")))
    pair.open()
    pair.run()
    _assert_settled(pair)
    assert FrameKind.BY_RANGES not in pair.kinds


def test_the_asker_ends_when_all_that_it_asked_for_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many frames that takes: one that came after the end would begin another reconciliation."""
    monkeypatch.setattr(symbols_module, "SYMBOL_FRAME_COUNT_MAX", OPENING_COUNT)
    shared = ids(50, "common")
    pair = Pair(Held(shared), Held(shared + ids(600, "there")))
    pair.open()
    pair.run()
    _assert_settled(pair)
    assert pair.kinds.count(FrameKind.SYMBOLS) > 10
    assert pair.kinds[-2:] == [FrameKind.LACKS, FrameKind.OVER]


def test_too_large_a_difference_is_compared_by_ranges() -> None:
    """A prefix of 64 symbols tells some 40 differences; the asker then takes ranges, and symbols on the way go unused."""
    shared = ids(300, "common")
    pair = Pair(Held(shared + ids(400, "here"), 64), Held(shared + ids(500, "there"), 64))
    pair.open()
    pair.waiting[False].append(pair.waiting[False][0])
    pair.run()
    _assert_settled(pair)
    assert FrameKind.RANGES in pair.kinds


def test_an_answerer_that_was_told_wrong_before_begins_with_ranges() -> None:
    shared = ids(300, "common")
    pair = Pair(Held(shared + ids(30, "here")), Held(shared + ids(40, "there")))
    pair.open(by_ranges=True)
    pair.run()
    _assert_settled(pair)
    assert pair.kinds[0] is FrameKind.BY_RANGES
    assert FrameKind.SYMBOLS not in pair.kinds


def test_everything_is_sent_where_ranges_tell_nothing() -> None:
    """An answer to ranges that is no answer ends the comparison; both sides then send all that they have."""
    shared = ids(30, "common")
    pair = Pair(Held(shared + ids(3, "here")), Held(shared + ids(4, "there")))
    pair.open(by_ranges=True)
    pair.step(side=False)
    pair.step(side=True)
    pair.waiting[False] = [(FrameKind.RANGES, b"no frame")]
    pair.run()
    assert pair.kinds[-2:] == [FrameKind.ALL, FrameKind.OVER]
    assert pair.held[False].sent == pair.held[False].ids
    assert pair.held[True].sent == pair.held[True].ids


def test_what_lacks_named_is_not_sent_again_with_everything() -> None:
    """A peer that asks for some and then for all gets each commit once."""
    theirs = Held(ids(5))
    answerer = _reconciler(is_answerer=True)
    answerer.open(theirs, by_ranges=False)
    [lacks] = encode_lacks([ShortId(member[:SHORT_ID_SIZE]) for member in theirs.ids[:2]])
    assert answerer.handle(theirs, FrameKind.LACKS, lacks).nums == ()
    assert answerer.handle(theirs, FrameKind.ALL, b"").nums == [0, 1, 2, 3, 4]
    step = answerer.handle(theirs, FrameKind.OVER, b"")
    assert step.is_over
    assert list(step.nums) == []


@pytest.mark.parametrize("is_answerer", [False, True])
def test_each_kind_of_frame_goes_one_way(is_answerer: bool) -> None:
    """ALL, LACKS and OVER come from the asker, who peels and compares; an answerer sends symbols and ranges."""
    to_asker = {FrameKind.SYMBOLS, FrameKind.BY_RANGES, FrameKind.RANGES}
    for kind in FrameKind:
        if (kind in to_asker) == is_answerer:
            with pytest.raises(Unreconciled, match="out_of_turn"):
                _reconciler(is_answerer=is_answerer).handle(Held(ids(3)), kind, b"")


def test_symbols_are_told_once() -> None:
    """A question for symbols that were told would have 60 bytes cost 1.5 MB, again and again."""
    theirs = Held(ids(300))
    answerer = _reconciler(is_answerer=True)
    answerer.open(theirs, by_ranges=False)
    answerer.handle(theirs, FrameKind.ASK_SYMBOLS, encode(AskSymbols(OPENING_COUNT, 100)))
    with pytest.raises(Unreconciled, match="out_of_turn"):
        answerer.handle(theirs, FrameKind.ASK_SYMBOLS, encode(AskSymbols(OPENING_COUNT + 99, 100)))


def test_ranges_begin_once_and_are_not_answered_unasked() -> None:
    ours = Held(ids(3))
    asker = _reconciler(is_answerer=False)
    with pytest.raises(Unreconciled, match="out_of_turn"):
        asker.handle(ours, FrameKind.RANGES, b"")
    asker.handle(ours, FrameKind.BY_RANGES, b"")
    with pytest.raises(Unreconciled, match="out_of_turn"):
        asker.handle(ours, FrameKind.BY_RANGES, b"")


def test_a_frame_too_many_ends_it() -> None:
    """One over: nothing that a peer repeats keeps a reconciliation alive."""
    theirs = Held(ids(3))
    answerer = _reconciler(is_answerer=True)
    for _ in range(RECONCILIATION_FRAME_COUNT_MAX):
        answerer.handle(theirs, FrameKind.ALL, b"")
    with pytest.raises(Unreconciled, match="too_many_frames"):
        answerer.handle(theirs, FrameKind.ALL, b"")


def test_a_frame_of_no_known_shape_is_a_decode_error() -> None:
    for is_answerer, kind in [
        (False, FrameKind.SYMBOLS),
        (True, FrameKind.ASK_SYMBOLS),
        (True, FrameKind.ASK_RANGES),
        (True, FrameKind.LACKS),
    ]:
        with pytest.raises(DecodeError):
            _reconciler(is_answerer=is_answerer).handle(Held(ids(3)), kind, b"no frame")
