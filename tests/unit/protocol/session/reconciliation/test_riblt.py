"""Prefixes that are kept, peeling, and what writers who grind ids or peers who make up symbols achieve."""

import pytest

from protocol.codec import DecodeError
from protocol.crypto.hashing import symbol_bits
from protocol.crypto.keys import HashKey
from protocol.ids import SHORT_ID_SIZE, CommitId, ShortId
from protocol.limits.peers import SYMBOL_PREFIX_LENGTH_MAX, SYMBOL_PREFIX_LENGTH_MIN
from protocol.session.reconciliation.riblt import (
    SYMBOL_SIZE,
    Peeler,
    Prefix,
    Unreconciled,
    _places,
    is_prefix_length,
    pack_symbols,
    prefix_length,
    unpack_symbols,
)
from tests.support.ids import as_commit_id
from tests.support.sets import KEY, ids, prefix_of


def _short(members: list[CommitId]) -> set[bytes]:
    return {member[:SHORT_ID_SIZE] for member in members}


def _value(short_id: ShortId) -> int:
    return int.from_bytes(short_id + symbol_bits(KEY, short_id)[:8])


def test_lengths_grow_with_the_set_within_bounds() -> None:
    lengths = [prefix_length(count) for count in (0, 512, 513, 2049, 100_000, 131_073, 10**9)]
    assert lengths == [64, 64, 256, 1024, 16_384, SYMBOL_PREFIX_LENGTH_MAX, SYMBOL_PREFIX_LENGTH_MAX]
    assert all(map(is_prefix_length, lengths))
    assert not any(map(is_prefix_length, (0, 63, 128, 4 * SYMBOL_PREFIX_LENGTH_MAX)))


def test_every_id_is_in_symbol_0_and_in_others_as_often_as_it_should_be() -> None:
    counts = [0] * 1024
    for member in ids(4000):
        places = list(_places(symbol_bits(KEY, member[:16]), 1024))
        assert places == sorted(set(places))
        for place in places:
            counts[place] += 1
    assert counts[0] == 4000
    # 2 / (i + 2) of 4000, over spans wide enough to be sure of it to a tenth.
    for start, end in ((1, 4), (4, 16), (16, 64), (64, 256), (256, 1024)):
        expected = sum(4000 * 2 / (place + 2) for place in range(start, end))
        assert sum(counts[start:end]) == pytest.approx(expected, rel=0.1)


def test_a_longer_prefix_begins_like_a_shorter_one() -> None:
    members = ids(300)
    short, long = prefix_of(members, 64), prefix_of(members, 1024)
    assert long.symbols()[:64] == short.symbols()


def test_symbols_in_use_do_not_change_as_the_set_grows() -> None:
    prefix = prefix_of(ids(10))
    before = prefix.symbols()
    prefix.add(ids(10, "more"))
    assert before == prefix_of(ids(10)).symbols() != prefix.symbols()


def test_what_was_kept_goes_on() -> None:
    members = ids(300)
    prefix = prefix_of(members[:200], 256)
    kept = Prefix.from_bytes(KEY, prefix.to_bytes())
    kept.add(members[200:])
    assert kept.to_bytes() == prefix_of(members, 256).to_bytes()
    assert kept.id_count == 300


@pytest.mark.parametrize("size", [0, 7, 8, 8 + SYMBOL_SIZE, 8 + 64 * SYMBOL_SIZE - 1, 8 + 128 * SYMBOL_SIZE])
def test_what_is_no_prefix_is_refused(size: int) -> None:
    with pytest.raises(DecodeError, match="bad_shape"):
        Prefix.from_bytes(KEY, bytes(size))


def test_symbols_come_back_from_bytes() -> None:
    symbols = list(prefix_of(ids(5), 64).symbols())
    assert unpack_symbols(pack_symbols(symbols)) == symbols


@pytest.mark.parametrize("difference", [0, 1, 2, 20, 200])
def test_a_difference_is_told_whatever_is_common(difference: int) -> None:
    common, here, there = ids(500, "common"), ids(difference // 2, "here"), ids(difference, "there")
    peeler = Peeler(KEY, prefix_of(common + here).symbols())
    theirs = prefix_of(common + there).symbols()
    while not peeler.is_done:
        peeler.add_symbols(theirs[peeler.received : peeler.received + 8])
    assert set(peeler.differences) == _short(here + there)
    # 1.35 to 1.8 symbols each, eight at a time; more for the smallest.
    assert peeler.received <= 2 * len(here + there) + 24


def test_nothing_is_done_before_anything_came() -> None:
    peeler = Peeler(KEY, prefix_of([]).symbols())
    assert not peeler.is_done
    peeler.add_symbols([0])
    assert peeler.is_done


def test_more_symbols_than_there_are_is_the_end() -> None:
    peeler = Peeler(KEY, prefix_of([], 64).symbols())
    peeler.add_symbols(prefix_of(ids(200), 64).symbols())
    assert not peeler.is_done
    with pytest.raises(Unreconciled, match="too_many_differences"):
        peeler.add_symbols([1])


def test_another_key_gives_other_symbols() -> None:
    assert prefix_of(ids(9)).symbols() != prefix_of(ids(9), key=HashKey(bytes(32))).symbols()
    # Not even the difference of none: an outsider who does not know the topic cannot steer anything.
    peeler = Peeler(KEY, prefix_of(ids(9), 64).symbols())
    peeler.add_symbols(prefix_of(ids(9), 64, key=HashKey(bytes(32))).symbols())
    assert not peeler.is_done


# --- a writer who grinds ids ---


def _ground_alike(length: int) -> list[CommitId]:
    """Two ids that are in the same symbols of so many: what a birthday of some thousand tries gives."""
    seen: dict[tuple[int, ...], CommitId] = {}
    for number in range(1_000_000):
        commit_id = as_commit_id(number.to_bytes(32, "big")[::-1])
        places = tuple(_places(symbol_bits(KEY, commit_id[:16]), length))
        if places in seen:
            return [seen[places], commit_id]
        seen[places] = commit_id
    raise AssertionError("not found")


def test_ids_ground_to_share_their_symbols_are_not_told_and_nothing_wrong_is() -> None:
    alike = _ground_alike(64)
    peeler = Peeler(KEY, prefix_of([*ids(100), *alike], 64).symbols())
    peeler.add_symbols(prefix_of(ids(100), 64).symbols())
    assert not peeler.is_done
    assert peeler.differences == ()
    with pytest.raises(Unreconciled, match="too_many_differences"):
        peeler.add_symbols([0])


def test_ids_ground_to_share_their_symbols_are_told_by_a_longer_prefix_and_harmless_once_both_have_them() -> (
    None
):
    alike = _ground_alike(64)
    peeler = Peeler(KEY, prefix_of([*ids(100), *alike]).symbols())
    peeler.add_symbols(prefix_of(ids(100)).symbols())
    assert peeler.is_done
    assert set(peeler.differences) == _short(alike)
    later = Peeler(KEY, prefix_of([*ids(101), *alike], 64).symbols())
    later.add_symbols(prefix_of([*ids(100), *alike], 64).symbols())
    assert set(later.differences) == _short(ids(101)[100:])


def test_ids_equal_in_their_first_16_bytes_hide_each_other_from_symbols() -> None:
    # 2^64 steps for one such pair; the set digest differs, and ranges compare whole ids (test_ranges).
    ours, theirs = as_commit_id(b"\x11" * 16 + b"a" * 16), as_commit_id(b"\x11" * 16 + b"b" * 16)
    peeler = Peeler(KEY, prefix_of([*ids(5), ours]).symbols())
    peeler.add_symbols(prefix_of([*ids(5), theirs]).symbols()[:64])
    assert peeler.is_done
    assert peeler.differences == ()


# --- a peer who makes up symbols ---


def test_an_id_in_a_symbol_that_is_not_its_own_is_a_lie() -> None:
    # In all of its own, and in the last of the others: taken out of its own, it would stay there unseen.
    own = list(_places(symbol_bits(KEY, bytes(16)), 64))
    other = max(set(range(64)) - set(own))
    peeler = Peeler(KEY, [0] * 64)
    with pytest.raises(Unreconciled, match="bad_symbols"):
        peeler.add_symbols([_value(ShortId(bytes(16))) * (place in (*own, other)) for place in range(64)])


def test_an_id_that_comes_up_again_is_a_lie() -> None:
    # In symbol 0 alone: peeled there, it appears wherever else it belongs, and again.
    peeler = Peeler(KEY, [0] * 64)
    with pytest.raises(Unreconciled, match="bad_symbols"):
        peeler.add_symbols([_value(ShortId(bytes(16)))] + [0] * 63)


def test_more_ids_than_symbols_are_a_lie() -> None:
    # No way to make such symbols is known; that peeling ends does not depend on it.
    peeler = Peeler(KEY, [0] * SYMBOL_PREFIX_LENGTH_MIN)
    peeler._peeled = dict.fromkeys([ShortId(bytes([number]) * 16) for number in range(1, 3)])
    with pytest.raises(Unreconciled, match="bad_symbols"):
        peeler.add_symbols([_value(ShortId(bytes(16)))])


def test_noise_ends_without_a_result() -> None:
    peeler = Peeler(KEY, prefix_of(ids(20), 64).symbols())
    peeler.add_symbols([int.from_bytes(noise[:24]) for noise in ids(64, "noise")])
    assert not peeler.is_done
    assert peeler.differences == ()
