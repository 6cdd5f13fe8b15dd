"""Any two sets reconcile exactly, however the stream is cut; whatever the network changes ends with a reason, or right."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.codec import DecodeError
from protocol.ids import SHORT_ID_SIZE, CommitId
from protocol.session.reconciliation.range_items import SortedItems
from protocol.session.reconciliation.ranges import RangesAsker
from protocol.session.reconciliation.riblt import Peeler, Prefix, Unreconciled
from protocol.session.reconciliation.set_digest import SetDigest
from protocol.session.reconciliation.symbols import SymbolsAsker
from tests.support.sets import KEY, at_depths, ids, prefix_of, talk_ranges, talk_symbols
from tests.support.strategies import ids as any_ids

# Few bytes to choose from, so that ids with long common beginnings are usual; the whole short id never is common.
_alike = st.builds(
    lambda head, number: head * 8 + number.to_bytes(8) + head * 16,
    st.sampled_from([b"a", b"b"]),
    st.integers(0, 50),
)
_sets = st.sets(any_ids | _alike, max_size=40)


def _short(members: set[CommitId]) -> set[bytes]:
    return {member[:SHORT_ID_SIZE] for member in members}


@given(_sets, _sets, _sets, st.lists(st.integers(1, 40), min_size=1))
def test_symbols_tell_any_two_sets_apart_however_they_are_cut(
    common: set[CommitId], ours: set[CommitId], theirs: set[CommitId], cuts: list[int]
) -> None:
    here, there = common | ours, common | theirs
    peeler = Peeler(KEY, prefix_of(sorted(here), 1024).symbols())
    symbols = prefix_of(sorted(there), 1024).symbols()
    while not peeler.is_done:
        size = cuts[peeler.received % len(cuts)]
        peeler.add_symbols(symbols[peeler.received : peeler.received + size])
    # Equal short ids hide each other, on one side or across.
    assert set(peeler.differences) == _short(here) ^ _short(there)


@given(_sets, st.lists(st.integers(0, 40)), st.booleans())
def test_a_prefix_does_not_depend_on_order_batches_or_being_kept(
    members: set[CommitId], cuts: list[int], is_kept: bool
) -> None:
    left = sorted(members, key=lambda member: member[::-1])
    grown = Prefix(KEY, 64)
    for size in [*cuts, len(left)]:
        batch, left = left[:size], left[size:]
        grown.add(batch)
        if is_kept:
            grown = Prefix.from_bytes(KEY, grown.to_bytes())
    assert grown.to_bytes() == prefix_of(sorted(members), 64).to_bytes()
    assert grown.symbols() == prefix_of(sorted(members), 256).symbols()[:64]


@given(_sets, _sets, _sets, st.integers(1, 50))
def test_ranges_tell_any_two_sets_apart(
    common: set[CommitId], ours: set[CommitId], theirs: set[CommitId], bucket: int
) -> None:
    every = at_depths(sorted(common | ours | theirs, key=lambda member: member[::-1]), bucket)
    here = [item for item in every if item[1] in common | ours]
    there = [item for item in every if item[1] in common | theirs]
    asker = RangesAsker(SortedItems(here), KEY)
    talk_ranges(asker, SortedItems(there))
    assert asker.here == ours - theirs - common
    assert asker.there == theirs - ours - common


@given(_sets, _sets)
def test_digests_are_equal_where_sets_are(ours: set[CommitId], theirs: set[CommitId]) -> None:
    first, second = SetDigest(), SetDigest()
    first.add(sorted(ours))
    second.add(sorted(theirs, reverse=True))
    assert (first.digest() == second.digest()) == (ours == theirs)
    second.add(ours - theirs)
    second.remove(theirs - ours)
    assert first.to_bytes() == second.to_bytes()


# One bit of one frame: which frame, which bit, as shares.
_flips = st.tuples(st.integers(0, 3), st.integers(0, 2**30))


class _Flip:
    """A network that changes one bit of one frame."""

    def __init__(self, frame_number: int, bit: int) -> None:
        self._left, self._bit = frame_number, bit
        self.is_done = False

    def __call__(self, frame: bytes) -> bytes:
        self._left -= 1
        if self._left != -1:
            return frame
        self.is_done = True
        place = self._bit % (8 * len(frame))
        changed = bytearray(frame)
        changed[place // 8] ^= 1 << place % 8
        return bytes(changed)


@given(_flips, st.integers(0, 120))
def test_a_flipped_bit_among_symbols_ends_with_a_reason_or_the_right_result(
    flip: tuple[int, int], difference: int
) -> None:
    more = ids(difference, "more")
    asker = SymbolsAsker(KEY, prefix_of(ids(30), 1024).symbols())
    try:
        talk_symbols(asker, prefix_of(ids(30) + more, 1024).symbols(), _Flip(*flip))
    except (DecodeError, Unreconciled):
        return
    assert asker.is_done
    assert set(asker.differences) == _short(set(more))


@given(_flips, st.integers(0, 300))
def test_a_flipped_bit_among_ranges_ends_with_a_reason_or_is_seen_by_the_digest(
    flip: tuple[int, int], difference: int
) -> None:
    members, more = ids(400), ids(difference, "more")
    theirs, expected = members[difference // 2 :] + more, SetDigest()
    expected.add(theirs)
    every = at_depths(members + more)
    asker = RangesAsker(SortedItems(every[:400]), KEY)
    network = _Flip(*flip)
    try:
        talk_ranges(asker, SortedItems(every[difference // 2 :]), change=network)
    except (DecodeError, Unreconciled):
        return
    found = SetDigest()
    found.add(members)
    found.remove(asker.here)
    found.add(asker.there)
    is_right = (asker.here, asker.there) == (set(members[: difference // 2]), set(more))
    assert is_right == (found.digest() == expected.digest())
    assert is_right or network.is_done


@pytest.mark.same_examples
@settings(max_examples=20)
@given(st.binary(max_size=400), st.integers(0, 60))
def test_no_bytes_raise_anything_else(frame: bytes, count: int) -> None:
    symbols = SymbolsAsker(KEY, prefix_of(ids(count), 64).symbols())
    ranges = RangesAsker(SortedItems(at_depths(ids(count))), KEY)
    ranges.start()
    for take in (symbols.handle_frame, ranges.handle_frame):
        with suppress(DecodeError, Unreconciled):
            take(frame)
