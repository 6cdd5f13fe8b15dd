"""A membership checkpoint's statement: what it is of random histories, and that it suffices to judge what follows.

Who has the statement and what follows comes to the verdicts of who has everything. What rests on more than is stated waits.
Each part is needed: without it a verdict differs.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, Final

import pytest

from protocol.codec import encode
from tests.support.memberships import NAMES, REPO, USERS, Step, Twins, commit_id
from tests.support.reference_membership import ADMIN, OWNER, READ, WRITE, Op, Reference
from tests.support.reference_statements import Follower, Statement, Waits, state
from verifier import member_checkpoints

PEOPLE: Final = NAMES[:5]
WEAKENED: Final = {"order": 3, "rights": 2978, "users": 11, "barred": 276, "uses": 11, "quorums": 6}
"""Parts of a statement, each with the first seed that shows it left out."""


def _draw(rng: Random, past: frozenset[int], ops: dict[int, Op]) -> Op:
    """Return an operation that may not be allowed."""
    kind = rng.choice(("grant", "grant", "remove", "remove", "invite", "join", "join", "revoke", "quorum", "propose",
                       "approve", "act", "withdraw"))  # fmt: skip
    author, user = rng.choice(PEOPLE), rng.choice(PEOPLE)
    target = rng.choice(
        [
            one
            for one in past
            if ops[one].kind == {"approve": "propose", "withdraw": "act"}.get(kind, "invite")
        ]
        or [-1]
    )
    match kind:
        case "grant":
            return Op(author, past, kind, user, rng.choice((WRITE, ADMIN, ADMIN, OWNER)))
        case "remove":
            return Op(author, past, kind, user, rng.choice((0, 0, READ, WRITE, ADMIN)))
        case "invite":
            return Op(author, past, kind, level=WRITE, uses=rng.randint(1, 2))
        case "quorum":
            names = tuple(sorted(rng.sample(PEOPLE, rng.randint(1, 2))))
            return Op(author, past, kind, level=1, names=names, covers=rng.random() < 0.5)
        case "propose":
            return Op(author, past, kind, user, 0)
    return Op(author, past, kind, target=target)


def _grow(
    rng: Random, reference: Reference, size: int, first: frozenset[int]
) -> Iterable[tuple[int, Op, bool]]:
    """Yield operations that follow `first`, with whether they may be made."""
    number = max(reference.ops)
    for _ in range(size):
        number += 1
        chosen = sorted(reference.ops) if rng.random() < 0.3 else rng.sample(sorted(reference.ops), 2)
        past = frozenset(first.union(*(reference.ops[one].past | {one} for one in chosen)))
        op = _draw(rng, past, reference.ops)
        yield number, op, reference.admit(number, op)


def _weaken(statement: Statement, part: str) -> Statement:
    invitations = statement.invitations
    match part:
        case "order":
            return replace(statement, order=frozenset())
        case "rights":  # the highest alone, as if it had all below it
            highest: dict[tuple[str, int], int] = {}
            for user, right in statement.rights:
                key = user, right.credential
                highest[key] = max(right.level, highest.get(key, 0))
            every = {
                (user, type(right)(right.credential, level))
                for user, right in statement.rights
                for level in range(READ, highest[user, right.credential] + 1)
            }
            return replace(statement, rights=frozenset(every))
        case "quorums":
            return replace(statement, quorums={})
        case "users":
            made = {one: replace(stated, users=frozenset()) for one, stated in invitations.items()}
        case "barred":
            made = {one: replace(stated, barred=frozenset()) for one, stated in invitations.items()}
        case _:
            made = {one: replace(stated, uses=9) for one, stated in invitations.items()}
    return replace(statement, invitations=made)


def _play(seed: int, tally: Counter[str], weakened: str = "") -> str:
    """Return how one who has the statement differs from one who has everything; empty where it does not."""
    rng, reference = Random(seed), Reference()
    reference.admit(0, Op("ann", frozenset(), "found", names=("ann",)))
    for number, user in enumerate(rng.sample(PEOPLE[1:], rng.randint(1, 3)), 1):
        past = frozenset(range(number)) if rng.random() < 0.6 else frozenset({0})
        reference.admit(number, Op("ann", past, "grant", user, rng.choice((WRITE, ADMIN, ADMIN, OWNER))))
    for _ in _grow(rng, reference, rng.randint(0, 14), frozenset()):
        pass
    before = frozenset(reference.ops)
    statement = state(reference, before)
    follower = Follower(_weaken(statement, weakened) if weakened else statement)
    waiting: set[int] = set()
    for number, op, may in _grow(rng, reference, rng.randint(3, 12), before):
        if waiting & op.past:
            waiting.add(number)
            tally["follows what waits"] += 1
            continue
        try:
            said = follower.judge(number, replace(op, past=op.past - before))
        except Waits:
            waiting.add(number)
            tally["waits"] += 1
            continue
        tally["judged"] += 1
        if said != may:
            return f"{seed}: {op} is {'accepted' if may else 'rejected'}"
    known = frozenset(reference.ops) - before - waiting
    if follower.members(known) != reference.members(before | known):
        return f"{seed}: members differ"
    return ""


def test_who_has_the_statement_judges_as_who_has_everything() -> None:
    tally: Counter[str] = Counter()
    for seed in range(30):
        assert not _play(seed, tally)
    assert tally["judged"] > 2 * (tally["waits"] + tally["follows what waits"]), tally


@pytest.mark.parametrize("part", WEAKENED)
def test_each_part_of_the_statement_is_needed(part: str) -> None:
    assert _play(WEAKENED[part], Counter(), part)


def _tell(rng: Random) -> Twins:
    """Return a random history of the real rules and the reference."""
    twins = Twins(PEOPLE[:1])
    for user in PEOPLE[1 : rng.randint(2, 4)]:
        acks: tuple[int, ...] = (len(twins) - 1,) if rng.random() < 0.6 else (0,)
        twins.take(Step("ann", "grant", user, rng.choice((WRITE, ADMIN, ADMIN, OWNER)), acks))
    for _ in range(rng.randint(4, 24)):
        chosen = range(len(twins)) if rng.random() < 0.3 else rng.sample(range(len(twins)), 2)
        acks = tuple(one for one in chosen if not any(one in twins.pasts[other] for other in chosen))
        past = frozenset(acks).union(*(twins.pasts[one] for one in acks))
        op = _draw(rng, past, twins.reference.ops)
        if op.kind != "withdraw":
            user = op.user or op.author
            twins.take(
                Step(
                    op.author, op.kind, user, op.level, acks, max(op.target, 0), op.names, op.covers, op.uses
                )
            )
    return twins


def _expect(twins: Twins) -> list[Any]:
    """Return the lists of the statement that the reference tells: all but epochs and branches."""
    whole, ops = frozenset(range(len(twins))), twins.reference.ops
    stated, world = state(twins.reference, whole), twins.reference.world(whole)
    bits: dict[tuple[bytes, bytes], int] = {}
    for user, right in stated.rights:
        key = USERS[user], commit_id(right.credential)
        bits[key] = bits.get(key, 0) + 2 ** (right.level - 1)
    earlier: dict[bytes, list[bytes]] = {}
    for one, other in stated.order:
        earlier.setdefault(commit_id(other), []).append(commit_id(one))
    gone = [one for one in world.counting() if ops[one].kind == "remove" and not ops[one].is_leave]
    return [
        [[*key, bits[key]] for key in sorted(bits)],
        [[one, sorted(earlier[one])] for one in sorted(earlier)],
        sorted([commit_id(one), USERS[ops[one].user], ops[one].level or None, []] for one in gone),
        sorted(
            [
                commit_id(one),
                _field(twins, one, "invitation_key"),
                it.level,
                it.uses,
                int(not it.is_late),
                sorted(USERS[user] for user in it.users),
                sorted(USERS[user] for user in it.barred),
            ]
            for one, it in stated.invitations.items()
        ),
        sorted(
            [commit_id(one), sorted(USERS[name] for name in op.names), op.level, op.covers]
            for one, op in stated.quorums.items()
        ),
    ]


def _field(twins: Twins, number: int, name: str) -> Any:  # noqa: ANN401  # a field of any kind of body
    return getattr(twins.real.operations[commit_id(number)].body, name)


def _check_statement(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_checkpoints, "members_digest", lambda repo, encoded: (repo, encoded))
    twins = _tell(Random(seed))
    signed: Any = twins.real.digest_members(twins.real.operations.heads())
    repo, found = signed
    assert repo == REPO
    assert found.startswith(b"\x97" + b"".join(map(encode, _expect(twins)))), seed


def test_a_statement_is_what_the_rules_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(16):
        _check_statement(seed, monkeypatch)


@pytest.mark.slow
@pytest.mark.extended
def test_who_has_the_statement_judges_so_in_many_histories() -> None:
    for seed in range(30, 1500):
        assert not _play(seed, Counter())


@pytest.mark.slow
@pytest.mark.extended
def test_statements_are_what_the_rules_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(16, 1000):
        _check_statement(seed, monkeypatch)
