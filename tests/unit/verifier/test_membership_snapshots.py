"""Parts of a membership's snapshot: their bounds, and what is no part."""

import pytest

from protocol.codec import encode
from protocol.crypto.keys import BlockKey
from protocol.formats.block import Reference
from protocol.formats.body import Adopt, Answer, Body, BranchAdd, Hide, Offer, Permission
from protocol.formats.content import Post
from protocol.formats.profiles import Profile
from protocol.ids import BranchId, branch_begun_by
from tests.support.ids import as_commit_id, as_object_id
from tests.support.memberships import KEY, REPO, USERS, Step, Twins, commit_id, make_commit
from tests.support.restored import restored, state_of
from verifier import membership_snapshots
from verifier.membership import Membership
from verifier.membership_snapshots import OtherSnapshot, encode_parts, restore
from verifier.operations import Operations


@pytest.fixture
def grown() -> Membership:
    """A membership of twelve operations in a row."""
    twins = Twins()
    for number in range(11):
        assert twins.take(Step("ann", "grant", f"user {number}", Permission.WRITE, (number,)))
    return twins.real


def test_a_part_takes_no_more_than_so_many_operations(
    grown: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership_snapshots, "PART_COUNT_MAX", 5)
    parts = list(encode_parts(grown, REPO, 0))
    assert [first for first, _ in parts] == [0, 5, 10]
    assert [first for first, _ in encode_parts(grown, REPO, 5)] == [5, 10]
    assert state_of(restored(REPO, [part for _, part in parts])) == state_of(grown)


def test_a_part_is_restored_without_going_through_those_before(
    grown: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership_snapshots, "PART_COUNT_MAX", 5)
    parts = [part for _, part in encode_parts(grown, REPO, 0)]
    with monkeypatch.context() as patch:
        patch.delattr(Operations, "since")
        again = restored(REPO, parts)
    assert state_of(again) == state_of(grown)


def test_each_operation_is_encoded_once(grown: Membership, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[object] = []

    def note(value: object) -> bytes:
        encoded.append(value)
        return encode(value)

    monkeypatch.setattr(membership_snapshots, "encode", note)
    [(_, part)] = encode_parts(grown, REPO, 0)
    *operations, whole = encoded
    assert len(operations) == len(grown.operations)
    assert isinstance(whole, membership_snapshots._Part)
    assert {type(one).__name__ for one in whole.operations} == {"Raw"}
    assert state_of(restored(REPO, [part])) == state_of(grown)


def test_a_part_ends_with_the_operation_that_goes_beyond_its_bytes(
    grown: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12, 15):
        body = Adopt(BranchId(b"b" * 32), tuple(as_commit_id(one.to_bytes(32)) for one in range(100)))
        commit = make_commit(number, "ann", (number - 1,))
        grown.add(grown.authorise_root_commit(commit, body, KEY), commit.acks)
    monkeypatch.setattr(membership_snapshots, "PART_SIZE_MAX", 5000)
    parts = list(encode_parts(grown, REPO, 0))
    assert [first for first, _ in parts] == [0, 14]
    assert state_of(restored(REPO, [part for _, part in parts])) == state_of(grown)


def test_what_is_longer_than_a_part_can_be_is_not_read(
    grown: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(_, part)] = encode_parts(grown, REPO, 0)
    monkeypatch.setattr(membership_snapshots, "_PART_ENCODED_MAX", len(part))
    restore(Membership(REPO), REPO, part)
    monkeypatch.setattr(membership_snapshots, "_PART_ENCODED_MAX", len(part) - 1)
    with pytest.raises(OtherSnapshot):
        restore(Membership(REPO), REPO, part)


def test_a_part_that_follows_others_is_none_without_them(grown: Membership) -> None:
    [(_, part)] = encode_parts(grown, REPO, 4)
    with pytest.raises(OtherSnapshot):
        restore(Membership(REPO), REPO, part)


def test_bytes_that_are_no_part_are_refused(grown: Membership) -> None:
    [(_, part)] = encode_parts(grown, REPO, 0)
    for end in range(0, len(part), 7):
        with pytest.raises(OtherSnapshot):
            restore(Membership(REPO), REPO, part[:end])
    # Names that no list has: nothing else than OtherSnapshot is raised, whatever stands there.
    for place in range(0, len(part), 5):
        changed = part[:place] + bytes([part[place] ^ 0x41]) + part[place + 1 :]
        try:
            restore(Membership(REPO), REPO, changed)
        except OtherSnapshot:
            continue


def test_two_parts_of_one_time_are_restored_as_one(
    grown: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first does not say how removals are settled among what came with the second.
    commit = make_commit(12, "ann", (11,))
    removal = Step("ann", "remove", "user 3", 0, (11,)).body()
    grown.add(grown.authorise_root_commit(commit, removal, KEY), commit.acks)
    monkeypatch.setattr(membership_snapshots, "PART_COUNT_MAX", 7)
    first, second = (part for _, part in encode_parts(grown, REPO, 0))
    alone = restored(REPO, [first])
    assert alone.now().members().keys() >= {USERS["user 3"]}
    assert commit_id(12) not in alone.operations
    assert state_of(restored(REPO, [first, second])) == state_of(grown)


def test_what_no_rule_looks_at_is_restored_too() -> None:
    twins = Twins()
    assert twins.take(Step("ann", "grant", "ben", Permission.WRITE, (0,)))
    grown = twins.real
    reference = Reference(as_object_id(b"b" * 32), BlockKey(b"k" * 32))
    offered = branch_begun_by(as_commit_id(b"b" * 32))
    hide = Hide(offered, (as_commit_id(b"c" * 32),), hides=True)
    bodies: list[tuple[str, Body]] = [
        ("ann", BranchAdd(offered, "main", reference)),
        ("ben", Offer(offered, pulls=True, note="what it brings", link=b"link")),
        ("ann", Answer(commit_id(3), accepts=True)),
        ("ann", hide),
        ("ben", hide),
        ("ben", Profile("Ben", None)),
        ("ann", Post("in the root branch")),
    ]
    for number, (author, body) in enumerate(bodies, start=2):
        commit = make_commit(number, author, (number - 1,))
        grown.add(grown.authorise_root_commit(commit, body, KEY), commit.acks)
    assert len(grown.hides) == 1
    found = restored(REPO, [part for _, part in encode_parts(grown, REPO, 0)])
    assert state_of(found) == state_of(grown)
    [offer] = found.offers.find(found.operations, found.now())
    assert (offer.body.note, offer.is_accepted) == ("what it brings", True)


def test_what_many_merges_say_of_overruled_removals_is_kept_once() -> None:
    # Ann takes the rights of ben beside ben's removals of others, and forks go on from there and meet again and again.
    twins = Twins()
    names = [f"user {number}" for number in range(20)]
    assert twins.take(Step("ann", "grant", "ben", Permission.ADMIN, (0,)))
    for number, name in enumerate(names, start=1):
        assert twins.take(Step("ann", "grant", name, Permission.WRITE, (number,)))
    base = removed = len(twins) - 1
    for name in names:
        assert twins.take(Step("ben", "remove", name, 0, (removed,)))
        removed = len(twins) - 1
    assert twins.take(Step("ann", "remove", "ben", 0, (base,)))
    ends = (removed, len(twins) - 1)
    sizes = []
    for _ in range(2):
        for _ in range(10):
            assert twins.take(Step("ann", "act", "ann", Permission.WRITE, ends))
            assert twins.take(Step("ann", "act", "ann", Permission.WRITE, ends[1:]))
            ends = (len(twins) - 2, len(twins) - 1)
        sizes.append(sum(len(part) for _, part in encode_parts(twins.real, REPO, 0)))
    assert len(twins.real.now().settled.overruled) == len(names)
    assert sizes[1] - sizes[0] < 20 * 200, "each of twenty more costs what another operation does"
    found = restored(REPO, [part for _, part in encode_parts(twins.real, REPO, 0)])
    assert state_of(found) == state_of(twins.real)
