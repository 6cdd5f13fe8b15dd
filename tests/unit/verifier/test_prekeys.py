"""The prekey of a member in a set of commits, beside its definition over plain sets."""

from collections.abc import Sequence
from itertools import count, product
from random import Random

import pytest

from protocol.formats.body import BranchRoot
from protocol.formats.epochs import Prekey
from protocol.ids import AgreementKey, BlockId, CommitId, UserId
from verifier import operations as operations_module
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution, Settled
from verifier.tangle import Tangle

USERS = [UserId(bytes([number]) * 32) for number in (1, 2)]


def _id(number: int) -> CommitId:
    return CommitId(BlockId(number.to_bytes(32)))


@pytest.mark.parametrize("remembered", [8, 1])
def test_it_is_the_one_that_follows_all_others_in_any_set(
    monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    monkeypatch.setattr(operations_module, "_PREKEYS_BESIDE_MAX", remembered)
    chosen = contested = 0
    for seed in range(20):
        rng, operations = Random(seed), Operations()
        operations.add(Operation(_id(0), USERS[0], BranchRoot()), ())
        pasts, stated = {0: {0}}, dict[int, tuple[UserId, AgreementKey]]()
        for number in range(1, 12):
            acks = rng.sample(range(number), min(number, rng.choice((1, 1, 2))))
            author, key = rng.choice(USERS), AgreementKey(rng.randbytes(32))
            operations.add(Operation(_id(number), author, Prekey(key)), tuple(map(_id, acks)))
            pasts[number] = {number}.union(*(pasts[ack] for ack in acks))
            stated[number] = author, key
        for head in [*range(12), *((one, other) for one in range(12) for other in range(one))]:
            heads = {head} if isinstance(head, int) else set(head)
            within = set().union(*(pasts[one] for one in heads))
            before = Resolution(operations, operations.reduce(map(_id, heads)), Settled())
            for user in USERS:
                mine = {one for one in within if one in stated and stated[one][0] == user}
                found = [stated[one][1] for one in mine if mine <= pasts[one]]
                assert before.prekey_of(user) == (found[0] if found else None)
                assert len(before.prekeys_of(user)) == len(mine)
                chosen, contested = chosen + bool(found), contested + bool(mine and not found)
    assert min(chosen, contested) > 250


@pytest.mark.parametrize("compared", [64, 0])
def test_what_precedes_any_of_some_is_found_pair_by_pair_or_in_one_walk(
    monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    monkeypatch.setattr(operations_module, "_PAIRS_COMPARED_MAX", compared)
    rng, operations = Random(1), Operations()
    operations.add(Operation(_id(0), USERS[0], BranchRoot()), ())
    pasts = {0: set[int]()}
    for number in range(1, 30):
        acks = rng.sample(range(number), min(number, rng.choice((1, 2, 3))))
        operations.add(Operation(_id(number), USERS[0], BranchRoot()), tuple(map(_id, acks)))
        pasts[number] = {*acks}.union(*(pasts[ack] for ack in acks))
    for few, many in product((1, 3), (2, 20)):
        some, later = rng.sample(range(1, 30), many), rng.sample(range(1, 30), few)
        found = operations.find_preceding(
            [operations[_id(one)] for one in some], [operations[_id(one)] for one in later]
        )
        past = set[int]().union(*(pasts[one] for one in later))
        assert [one.commit_id for one in found] == [_id(one) for one in some if one in past]


def test_what_precedes_some_is_found_without_a_walk_through_all_that_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A walk through all that was merged before would cost more with each write in a flood of commits."""
    asked, previous = list[int](), Tangle._previous

    def count_asked(tangle: Tangle, num: int) -> Sequence[int]:
        asked.append(num)
        return previous(tangle, num)

    monkeypatch.setattr(Tangle, "_previous", count_asked)
    counts: list[int] = []
    for merges in (4, 40):
        operations, numbers, last = Operations(), count(1), list[CommitId]()
        operations.add(Operation(_id(0), USERS[0], BranchRoot()), ())
        floods: list[list[Operation]] = []
        for _ in range(merges):
            flood = [Operation(_id(next(numbers)), USERS[0], BranchRoot()) for _ in range(20)]
            for one in flood:
                operations.add(one, (_id(0),))
            merge = _id(next(numbers))
            operations.add(
                Operation(merge, USERS[0], BranchRoot()), (*last, *(one.commit_id for one in flood))
            )
            last, floods = [merge], [*floods, [operations[one.commit_id] for one in flood]]
        asked.clear()
        assert operations.find_preceding(floods[-3], [operations[last[0]]] * 5) == floods[-3]
        counts.append(len(asked))
    assert counts[0] == counts[1]
