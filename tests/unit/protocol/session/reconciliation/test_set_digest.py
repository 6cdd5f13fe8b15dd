"""The digest follows its set, whatever the order; its lanes do not run into each other."""

import pytest

from protocol.codec import DecodeError
from protocol.crypto.hashing import set_lanes
from protocol.ids import CommitId
from protocol.session.reconciliation import set_digest
from protocol.session.reconciliation.set_digest import LANES_SIZE, SetDigest
from tests.support.sets import ids


def _of(members: list[CommitId]) -> SetDigest:
    made = SetDigest()
    made.add(members)
    return made


def test_order_and_batches_do_not_matter() -> None:
    members = ids(50)
    piecewise = SetDigest()
    for start in range(0, 50, 7):
        piecewise.add(reversed(members[start : start + 7]))
    assert piecewise.digest() == _of(members).digest()
    assert len(piecewise.digest()) == 32


def test_sets_that_differ_in_one_id_have_other_digests() -> None:
    members = ids(50)
    assert len({_of(members[:count]).digest() for count in range(51)}) == 51


def test_what_is_removed_leaves_no_trace() -> None:
    members = ids(50)
    grown = _of(members)
    grown.remove(members[20:])
    assert grown.to_bytes() == _of(members[:20]).to_bytes()
    grown.remove(members[:20])
    assert grown.to_bytes() == bytes(LANES_SIZE)


def test_lanes_are_sums_of_16_bits_each(monkeypatch: pytest.MonkeyPatch) -> None:
    # More than one batch, and sums that pass 16 bits in every lane.
    monkeypatch.setattr(set_digest, "_BATCH", 8)
    members = ids(30)
    sums = [0] * 1024
    for member in members:
        lanes = set_lanes(member)
        for lane in range(1024):
            sums[lane] = (sums[lane] + int.from_bytes(lanes[2 * lane : 2 * lane + 2], "little")) % 2**16
    assert _of(members).to_bytes() == b"".join(lane.to_bytes(2, "little") for lane in sums)


def test_a_full_batch_stays_within_its_room() -> None:
    # The worst lanes there are, as often as they are added before they are reduced.
    assert set_digest._BATCH * 0xFFFF < 2**32


def test_what_was_kept_goes_on() -> None:
    members = ids(40)
    kept = SetDigest.from_bytes(_of(members[:20]).to_bytes())
    kept.add(members[20:])
    assert kept.digest() == _of(members).digest()


@pytest.mark.parametrize("size", [0, LANES_SIZE - 1, LANES_SIZE + 1])
def test_lanes_of_another_size_are_refused(size: int) -> None:
    with pytest.raises(DecodeError, match="bad_shape"):
        SetDigest.from_bytes(bytes(size))
