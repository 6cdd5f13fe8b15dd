"""The prekey of a member in a set of commits, beside its definition over plain sets."""

from random import Random

from protocol.formats.body import BranchRoot
from protocol.formats.epochs import Prekey
from protocol.ids import AgreementKey, BlockId, CommitId, UserId
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution, Settled

USERS = [UserId(bytes([number]) * 32) for number in (1, 2)]


def _id(number: int) -> CommitId:
    return CommitId(BlockId(number.to_bytes(32)))


def test_it_is_the_one_that_follows_all_others_in_any_set() -> None:
    chosen = contested = 0
    for seed in range(40):
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
    assert min(chosen, contested) > 500
