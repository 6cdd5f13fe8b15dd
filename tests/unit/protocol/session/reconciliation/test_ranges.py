"""Reconciliation by ranges: exact, in few rounds, in bounded frames, and over when a peer wants it not to be."""

from bisect import bisect_left
from collections.abc import Callable

import pytest

from protocol.codec import DecodeError, encode
from protocol.crypto.hashing import range_fingerprint, range_key
from protocol.ids import SessionId, TopicKey
from protocol.limits.peers import RANGE_FRAME_SIZE_MAX
from protocol.session.reconciliation import ranges
from protocol.session.reconciliation.range_items import (
    DEPTH_MAX,
    END,
    START,
    Bound,
    Item,
    SortedItems,
    bound_between,
)
from protocol.session.reconciliation.ranges import (
    DIFFERS,
    LATER,
    LIST,
    LISTED_MAX,
    NOTHING,
    PRINT,
    Range,
    Ranges,
    RangesAsker,
    answer_ranges,
    decode_ranges,
)
from protocol.session.reconciliation.riblt import Unreconciled
from tests.support.ids import as_commit_id
from tests.support.sets import KEY, Talk, at_depths, ids, talk_ranges


def _reconcile(ours: list[Item], theirs: list[Item]) -> tuple[RangesAsker, Talk]:
    asker = RangesAsker(SortedItems(ours), KEY)
    talk = talk_ranges(asker, SortedItems(theirs))
    here, there = {name for _, name in ours}, {name for _, name in theirs}
    assert asker.is_done
    assert (asker.here, asker.there) == (here - there, there - here)
    return asker, talk


def test_equal_sets_take_one_round_and_few_bytes() -> None:
    items = at_depths(ids(5000))
    _, talk = _reconcile(items, items)
    assert talk.asks == 1
    assert talk.asked + talk.answered < 500


@pytest.mark.parametrize("count", [0, 1, LISTED_MAX, LISTED_MAX + 1, 500])
def test_nothing_against_something(count: int) -> None:
    items = at_depths(ids(count))
    _reconcile(items, [])
    _reconcile([], items)


def test_what_differs_at_the_end_costs_less_than_what_is_spread() -> None:
    items = at_depths(ids(20_000), 64)
    _, tail = _reconcile(items[:-20], items)
    spread = [item for number, item in enumerate(items) if number % 1000]
    _, wide = _reconcile(spread, items)
    assert tail.asks <= 3
    assert wide.asks <= 4
    assert tail.asked + tail.answered < (wide.asked + wide.answered) / 3


@pytest.mark.slow
def test_frames_are_bounded_and_what_does_not_fit_is_said_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "RANGE_FRAME_SIZE_MAX", 8192)
    sizes: list[int] = []

    def measure(frame: bytes) -> bytes:
        sizes.append(len(frame))
        return frame

    # Long common beginnings, so that bounds are as long as bounds can be.
    ours: list[Item] = [(0, as_commit_id(b"\x22" * 29 + number.to_bytes(3))) for number in range(6000)]
    theirs = [item for number, item in enumerate(ours) if number % 7]
    for here, there in ((ours, theirs), (theirs, ours), (ours, []), ([], ours)):
        asker = RangesAsker(SortedItems(here), KEY)
        talk_ranges(asker, SortedItems(there), change=measure)
        assert asker.here == {name for _, name in set(here) - set(there)}
        assert asker.there == {name for _, name in set(there) - set(here)}
    assert len(sizes) > 50
    assert max(sizes) <= 8192


def test_ids_equal_in_their_first_16_bytes_are_told_apart() -> None:
    ours, theirs = as_commit_id(b"\x11" * 16 + b"a" * 16), as_commit_id(b"\x11" * 16 + b"b" * 16)
    common = at_depths(ids(100))
    _reconcile([*common, (3, ours)], [*common, (3, theirs)])


def test_an_id_at_two_depths_is_told_on_both_sides_or_neither_and_hides_no_other() -> None:
    common, moved, more = at_depths(ids(200)), ids(1, "moved")[0], ids(1, "more")[0]
    asker = RangesAsker(SortedItems([*common, (1, moved)]), KEY)
    talk_ranges(asker, SortedItems([*common, (20, moved), (5, more)]))
    assert asker.here - {moved} == set()
    assert asker.there - {moved} == {more}


def test_fingerprints_are_of_one_topic_and_session() -> None:
    topic, session = ids(2)
    members = ids(3, "member")
    key = range_key(TopicKey(topic), SessionId(session))
    assert key not in (
        range_key(TopicKey(session), SessionId(topic)),
        range_key(TopicKey(topic), SessionId(topic)),
    )
    assert range_fingerprint(key, members) != range_fingerprint(KEY, members)
    assert range_fingerprint(key, members) != range_fingerprint(key, members[::-1])


def test_bounds_are_short_and_part_what_they_should() -> None:
    cases: tuple[tuple[Item, Item, Bound], ...] = (
        ((1, as_commit_id(b"a" * 32)), (2, as_commit_id(b"a" * 32)), (2, b"")),
        ((1, as_commit_id(b"a" * 32)), (1, as_commit_id(b"b" * 32)), (1, b"b")),
        ((1, as_commit_id(b"a" * 32)), (1, as_commit_id(b"a" * 31 + b"b")), (1, b"a" * 31 + b"b")),
    )
    for before, after, bound in cases:
        assert bound_between(before, after) == bound
        assert before < bound <= after


class _Index:
    """Another implementation of the lookups: a plain list, walked."""

    def __init__(self, items: list[Item]) -> None:
        self.found = sorted(items)

    def inside(self, low: Bound, high: Bound) -> list[Item]:
        return self.found[bisect_left(self.found, low) : bisect_left(self.found, high)]


def test_items_in_memory_look_up_what_a_walk_finds() -> None:
    items = at_depths(ids(100), 3)
    memory, walked = SortedItems(reversed(items)), _Index(items)
    for low, high in ((START, END), ((3, b""), (20, b"\x80")), ((5, b"\x40"), (5, b"\x41")), (END, END)):
        inside = walked.inside(low, high)
        assert memory.count(low, high) == len(inside)
        assert list(memory.items(low, high, 10)) == inside[:10]
        assert memory.fingerprint(low, high, KEY) == range_fingerprint(KEY, [name for _, name in inside])
        offsets = list(range(1, len(inside), 4))
        assert list(memory.neighbours(low, high, offsets)) == [(inside[at - 1], inside[at]) for at in offsets]


# --- what a peer may say ---


def _frame(*said: Range) -> bytes:
    return encode(Ranges(said))


def _to_end(kind: int, content: bytes = b"") -> Range:
    return Range(*END, kind, content)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        _frame(Range(0, b"", NOTHING, b"")),
        _frame(Range(1, b"", NOTHING, b""), Range(1, b"", NOTHING, b"")),
        _frame(Range(2, b"", NOTHING, b""), Range(1, b"a", NOTHING, b"")),
        _frame(Range(DEPTH_MAX, b"a", NOTHING, b"")),
        _frame(Range(DEPTH_MAX + 1, b"", NOTHING, b"")),
        _frame(Range(1, b"a" * 33, NOTHING, b"")),
        _frame(_to_end(DIFFERS)),
        _frame(_to_end(NOTHING, b"a" * 16)),
        _frame(_to_end(PRINT, b"a" * 15)),
        _frame(_to_end(LIST, b"a" * 33)),
        _frame(_to_end(LATER, b"a" * 16)),
        _frame(_to_end(LIST, bytes(RANGE_FRAME_SIZE_MAX))),
    ],
    ids=range(13),
)
def test_frames_of_no_shape_are_refused(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_ranges(frame)


@pytest.mark.parametrize("said", [_to_end(LATER), _to_end(LIST, bytes(32))])
def test_askers_do_not_say_what_answerers_say(said: Range) -> None:
    with pytest.raises(DecodeError, match="bad_shape"):
        answer_ranges(SortedItems([]), KEY, _frame(said))


def _asker(count: int = 100) -> RangesAsker:
    asker = RangesAsker(SortedItems(at_depths(ids(count))), KEY)
    asker.start()
    return asker


def test_an_answer_without_a_question_is_out_of_turn() -> None:
    asker = _asker()
    assert asker.handle_frame(_frame()) is None
    with pytest.raises(Unreconciled, match="out_of_turn"):
        asker.handle_frame(_frame())


@pytest.mark.parametrize("kind, content", [(PRINT, bytes(16)), (LIST, b"")])
def test_answers_are_of_ranges_that_were_asked(kind: int, content: bytes) -> None:
    # Sixteen parts were asked, none of them up to the end.
    with pytest.raises(Unreconciled, match="out_of_turn"):
        _asker().handle_frame(_frame(_to_end(kind, content)))


def test_an_id_listed_twice_is_refused() -> None:
    with pytest.raises(Unreconciled, match="bad_ids"):
        _asker(3).handle_frame(_frame(_to_end(LIST, bytes(64))))


def _always_later(_frame_of_peer: bytes) -> bytes:
    return _frame(_to_end(LATER))


def _always_different(frame: bytes) -> bytes:
    asked = decode_ranges(frame)
    return _frame(
        *[
            Range(*said.end, NOTHING, b"") if said.kind == NOTHING else Range(*said.end, PRINT, bytes(16))
            for _, said in asked
        ]
    )


@pytest.mark.parametrize("lie", [_always_later, _always_different])
def test_a_peer_that_never_ends_is_ended(
    lie: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame_count_max = 40
    monkeypatch.setattr(ranges, "RANGE_FRAME_COUNT_MAX", frame_count_max)
    asker = RangesAsker(SortedItems(at_depths(ids(2000))), KEY)
    question = asker.start()
    with pytest.raises(Unreconciled, match="too_many_frames"):
        for _ in range(frame_count_max):
            answered = asker.handle_frame(lie(question))
            assert answered is not None
            question = answered


def test_one_frame_less_than_too_many_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    items = at_depths(ids(2000))
    _, talk = _reconcile(items[::2], items)
    monkeypatch.setattr(ranges, "RANGE_FRAME_COUNT_MAX", talk.asks)
    _reconcile(items[::2], items)
    monkeypatch.setattr(ranges, "RANGE_FRAME_COUNT_MAX", talk.asks - 1)
    with pytest.raises(Unreconciled, match="too_many_frames"):
        _reconcile(items[::2], items)


def test_more_open_ranges_than_allowed_are_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    items = at_depths(ids(2000))
    monkeypatch.setattr(ranges, "RANGE_PENDING_COUNT_MAX", 16)
    asker = RangesAsker(SortedItems(items), KEY)
    question = asker.start()
    asker.handle_frame(_always_different(question))
    monkeypatch.setattr(ranges, "RANGE_PENDING_COUNT_MAX", 15)
    with pytest.raises(Unreconciled, match="too_many_ranges"):
        asker = RangesAsker(SortedItems(items), KEY)
        asker.handle_frame(_always_different(asker.start()))


def test_more_differences_than_allowed_are_the_end_and_those_found_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = at_depths(ids(20)), at_depths(ids(30, "theirs"))
    monkeypatch.setattr(ranges, "RANGE_DIFFERENCE_COUNT_MAX", 50)
    _reconcile(ours, theirs)
    monkeypatch.setattr(ranges, "RANGE_DIFFERENCE_COUNT_MAX", 49)
    asker = RangesAsker(SortedItems(ours), KEY)
    with pytest.raises(Unreconciled, match="too_many_differences"):
        talk_ranges(asker, SortedItems(theirs))
    assert asker.there
