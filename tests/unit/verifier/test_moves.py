"""Places that pass from one key to another (M18): judged as the reference does, and named cases of each rule."""

from random import Random
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.limits.formats import DEVICE_COUNT_MAX, MOVE_COUNT_MAX
from tests.support.memberships import NAMES, USERS, Step, Twins, commit_id, make_commit, parse, replay
from tests.support.reference_membership import ADMIN, MANAGE, OWNER, READ, WRITE
from verifier import member_checkpoints
from verifier.refusal import CommitRefused

DEVICES: Final = ("ben2", "ben3", "ben4", "cat2", "cat3")
_DEEDS: Final = (
    *("lend",) * 3,
    *("move",) * 4,
    *("remove",) * 8,
    *("grant", "grant", "friends", "recover", "recover", "act", "invite", "join"),
)


MOVED: Final = """
ann + ben admin < 0
ann + cat admin < 1
ben * tab read < 2
m: ben > tab 1 < 3
"""
"""ben's place, senior to cat's, is tab's."""
REFUSED: Final = {
    "a_stranger_moves": ("ann + ben read < 0\nben * tab read < 1", "cat > tab 1 < 2", "unknown_author"),
    "to_who_holds_nothing": ("ann + ben read < 0", "ben > tab 1 < 1", "bad_move"),
    "to_oneself": ("ann + ben read < 0", "ben > ben 1 < 1", "bad_move"),
    "to_another_member": ("ann + ben read < 0\nann + cat read < 1", "ben > cat 1 < 2", "bad_move"),
    "to_anothers_device": (
        "ann + ben read < 0\nann + cat read < 1\ncat * tab read < 2",
        "ben > tab 1 < 3",
        "bad_move",
    ),
    "to_a_device_that_holds_by_another_too": (
        "ann + ben write < 0\nann + cat admin < 1\nben * tab read < 2\nann + tab write < 3",
        "ben > tab 1 < 4",
        "bad_move",
    ),
    "of_what_another_holds": (
        "ann + ben read < 0\nann + cat read < 1\nben * tab read < 2",
        "ben > tab 2 < 3",
        "bad_move",
    ),
    "of_no_credential": (
        "ann + ben write < 0\nben * tab read < 1\nben . < 2",
        "ben > tab 3 < 3",
        "bad_move",
    ),
    "of_what_is_beside": (
        "ann + ben read < 0\nann + ben write < 0\nben * tab read < 1",
        "ben > tab 2 < 3",
        "bad_move",
    ),
    "of_what_was_taken": (
        "ann + ben admin < 0\nann - ben < 1\nann + ben read < 2\nben * tab read < 3",
        "ben > tab 1 < 4",
        "bad_move",
    ),
    "of_a_device_grant": (
        "ann + ben write < 0\nben * tab write < 1\nann + tab write < 2\ntab * pad read < 3",
        "tab > pad 2 < 4",
        "bad_move",
    ),
    "who_moved_goes_on": (MOVED, "ben . < m", "unknown_author"),
    "who_moved_moves_again": (MOVED, "ben > tab 1 < m", "unknown_author"),
    "a_junior_removes_the_successor": (MOVED, "cat - tab < m", "not_permitted"),
    "a_successor_removes_a_senior": (MOVED, "tab - ann < m", "not_permitted"),
    "who_moved_is_no_device": (MOVED, "tab - ben < m", "not_permitted"),
    "who_moved_holds_no_more": (
        f"{MOVED}ann - ben < m",
        "ann - ben < 5",
        "nothing_to_remove",
    ),
    "the_mover_comes_back_by_an_old_link": (
        "i: ann invite write < 0\nben join i < i\nben * tab read < 2\nben > tab 2 < 3",
        "ben join i < 4",
        "not_permitted",
    ),
}
KEPT: Final = {
    "it_writes_and_grants_as_before": (f"{MOVED}tab + dan write < m", "ann cat dan tab"),
    "it_is_senior_as_before": (f"{MOVED}tab - cat < m", "ann tab"),
    "a_founder_moves": ("ann * tab read < 0\nann > tab 0 < 1\ntab + cat owner < 2", "cat tab"),
    "who_joined_moves": (
        "i: ann invite write < 0\nben join i < i\nben * tab read < 2\nben > tab 2 < 3",
        "ann tab",
    ),
    "it_moves_on": (f"{MOVED}tab * pad read < m\ntab > pad m < 5\npad - cat < 6", "ann pad"),
    "it_moves_on_to_a_device_of_the_first_key": (
        "ann + ben write < 0\nben * tab read < 1\nben * pad read < 2\nm: ben > tab 1 < 3\ntab > pad m < m\npad . < 5",
        "ann pad",
    ),
    "it_comes_back": (
        "ann + ben write < 0\nben * tab read < 1\nm: ben > tab 1 < 2\ntab * ben read < m\nn: tab > ben m < 4\n"
        "ben . < n",
        "ann ben",
    ),
    "an_exclusion_beside_a_move_takes_it": (f"{MOVED}ann - ben < 2", "ann cat"),
    "an_exclusion_that_knows_the_move_leaves_it": (f"{MOVED}ann - ben < m", "ann cat tab"),
    "what_the_old_key_does_beside_that_does_not_count": (
        f"{MOVED}ann - ben < m\nben + dan write < 3\nben > tab 1 < 3",
        "ann cat tab",
    ),
    "what_the_old_key_does_beside_its_move_counts": (f"{MOVED}ben + dan write < 3", "ann cat dan tab"),
    "a_successor_takes_back_what_the_old_key_gave": (
        "ann + ben write < 0\nben * tab read < 1\nben * pad write < 2\nben > tab 1 < 3\ntab - pad < 4",
        "ann tab",
    ),
    "also_what_the_old_key_gave_beside_that": (
        "ann + ben write < 0\nben * tab read < 1\nben * pad read < 2\nm: ben > tab 1 < 3\nben * pad write < 3\n"
        "tab - pad < m",
        "ann tab",
    ),
    "the_old_key_becomes_a_device_and_is_removed": (
        f"{MOVED}tab * ben write < m\ntab - ben < 5",
        "ann cat tab",
    ),
    "a_founder_who_came_back_to_read_is_removed": (
        "ann + ben owner < 0\nben + cat admin < 1\nann - ann < 2\ncat + ann read < 3\ncat - ann < 4",
        "ben cat",
    ),
    "a_mover_comes_back_by_a_later_link": (
        "ann + ben write < 0\nben * tab read < 1\nben > tab 1 < 2\ni: ann invite read < 3\nben join i < i",
        "ann ben tab",
    ),
    "two_moves_of_one_place_are_equals": (
        "ann + ben admin < 0\nben * tab read < 1\nben * pad read < 2\nm: ben > tab 1 < 3\nn: ben > pad 1 < 3\n"
        "tab + cat write < m n\npad + dan write < m n",
        "ann cat dan pad tab",
    ),
}


def refusal(history: str, last: str) -> str:
    """Return the code with which the last step is refused, by the reference too; a history may be named by its lines."""
    steps = parse(f"{history.strip()}\n{last}")
    twins = replay(steps[:-1])
    assert not twins.take(steps[-1])
    commit = make_commit(len(twins), steps[-1].author, steps[-1].acks)
    with pytest.raises(CommitRefused) as raised:
        twins.real.authorise_root_commit(commit, steps[-1].body())
    return raised.value.code


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    history, last, code = REFUSED[name]
    assert refusal(history, last) == code


@pytest.mark.parametrize("name", KEPT)
def test_members_after(name: str) -> None:
    steps, members = KEPT[name]
    twins = replay(parse(steps))
    assert sorted(twins.check()) == members.split()
    for seed in range(3):
        twins.check_order(any_order(Random(seed), twins))


def test_a_demotion_beside_a_move_lowers_what_is_passed_on() -> None:
    twins = replay(parse(f"{MOVED}ann - ben write < 3"))
    assert twins.check()["tab"] == WRITE
    assert refusal(f"{MOVED}ann - ben write < 3", "tab + dan write < m 5") == "not_permitted"


def test_a_move_may_count_and_pass_on_less_than_its_credential_gives() -> None:
    twins = replay(parse(f"{MOVED}tab . < m"))
    operations = twins.real.operations
    move, lent = operations[commit_id(4)], operations[commit_id(3)]
    assert twins.real.now().is_undiminished(move)
    assert twins.take(Step("ann", "remove", "ben", READ, (3,)))
    now = twins.real.now()
    assert now.counts(move)
    assert not now.is_undiminished(move), "else what tab writes would stay (N1)"
    assert now.is_undiminished(lent)
    assert twins.check()["tab"] == READ


def test_a_removal_by_a_successor_falls_with_what_was_passed_on() -> None:
    twins = replay(parse(f"{MOVED}tab - cat < m"))
    assert "cat" not in twins.check()
    assert twins.take(Step("ann", "remove", "ben", 0, (2,)))  # beside the move: what it passes on was ben's
    assert sorted(twins.check()) == ["ann", "cat"]


def test_a_statement_of_members_bars_who_moved_from_earlier_invitations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member_checkpoints, "members_digest", lambda _repo, encoded: encoded)
    twins = replay(parse("i: ann invite write < 0\nann + ben write < i\nben * tab read < 2\nben > tab 2 < 3"))
    statement = msgspec.msgpack.decode(twins.real.digest_members(twins.real.operations.heads()))
    ((*_, barred),) = statement[3]
    assert barred == [USERS["ben"]]


def test_a_chain_has_sixteen_moves_at_most() -> None:
    lines, key, credential = ["ann + ben write < 0"], "ben", "1"
    for number in range(MOVE_COUNT_MAX):
        lines.append(f"{key} * key{number} read < {len(lines)}")
        lines.append(f"{key} > key{number} {credential} < {len(lines)}")
        key, credential = f"key{number}", str(len(lines))
    twins = replay(parse("\n".join(lines)))
    assert twins.check() == {"ann": OWNER, key: WRITE}
    lines.append(f"{key} * last read < {len(lines)}")
    assert refusal("\n".join(lines), f"{key} > last {credential} < {len(lines)}") == "bad_move"


def test_devices_of_forerunners_are_counted_and_their_device_grants_are_not() -> None:
    lines = ["ann + ben write < 0", "ben * tab read < 1"]
    for number in range(DEVICE_COUNT_MAX - 2):
        lines.append(f"ben * key{number} read < {len(lines)}")
    lines.append(f"ben > tab 1 < {len(lines)}")
    lines.append(f"tab * more read < {len(lines)}")
    history, end = "\n".join(lines), len(lines)
    assert refusal(history, f"tab * again read < {end}") == "too_many_devices"
    twins = replay(parse(f"{history}\ntab - key0 < {end}"))
    assert twins.take(Step("tab", "lend", "again", READ, (end + 1,)))


@pytest.mark.slow
@pytest.mark.same_examples
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(6, 20))
def test_random_successions_are_judged_as_the_reference_does(seed: int, size: int) -> None:
    rng = Random(seed)
    twins = tell_successions(rng, size)
    members = twins.check()
    assert twins.check_order(any_order(rng, twins)) == members
    twins.check_restored(rng)
    for _ in range(4):
        twins.check_at(heads(twins, rng.sample(range(len(twins)), rng.randint(1, min(3, len(twins))))))


def tell_successions(rng: Random, size: int) -> Twins:
    """Return twins after random operations of members who pass their places on, each by what it holds in its past."""
    twins = Twins(NAMES[: rng.randint(1, 2)])
    for name in ("ben", "cat", "dan"):
        acks = heads(twins, range(len(twins))) if rng.random() < 0.6 else (0,)
        twins.take(Step("ann", "grant", name, rng.choice((WRITE, ADMIN, ADMIN, OWNER)), acks))
    if rng.random() < 0.3:
        acks = heads(twins, range(len(twins)))
        twins.take(Step("ann", "quorum", "ann", 1, acks, names=tuple(rng.sample(("ann", "ben", "cat"), 2))))
    for _ in range(4 * size):
        if len(twins) >= size:
            break
        chosen = rng.sample(range(len(twins)), rng.randint(1, min(3, len(twins))))
        step = _draw(rng, twins, heads(twins, range(len(twins)) if rng.random() < 0.5 else chosen))
        if step is not None:
            twins.take(step)
    return twins


def _draw(rng: Random, twins: Twins, acks: tuple[int, ...]) -> Step | None:
    past = frozenset(acks).union(*(twins.pasts[ack] for ack in acks))
    world, ops = twins.reference.world(past), twins.reference.ops
    held = world.members()
    movers = sorted({ops[one].user for one in past if ops[one].kind == "move"} & held.keys())
    author = rng.choice(movers if movers and rng.random() < 0.4 else sorted(held) or ["ann"])
    user = rng.choice(sorted(held) + list(DEVICES[:2]))
    match rng.choice(_DEEDS):
        case "lend":
            return Step(
                author, "lend", rng.choice(DEVICES), rng.randint(READ, max(READ, held.get(author, 0))), acks
            )
        case "move":
            lent = [one for one in sorted(past) if ops[one].is_device_grant]
            if not lent:
                return None
            grant = ops[rng.choice(lent)]
            mover = rng.choice(
                sorted({grant.author} | {ops[one].user for one in past if ops[one].kind == "move"})
            )
            credentials = [one for one in sorted(past) if twins.reference.carried(one, mover)]
            return Step(mover, "move", grant.user, 0, acks, rng.choice(credentials or [0]))
        case "remove":
            proposed = [one for one in sorted(past) if ops[one].kind == "approve"]
            if proposed and rng.random() < 0.5:
                asked = ops[ops[rng.choice(proposed)].target]
                return Step(author, "remove", asked.user, asked.level, acks)
            someone = rng.choice(sorted({one.author for one in map(ops.get, past) if one} | {user}))
            return Step(author, "remove", someone, rng.choice((0, 0, READ, WRITE)), acks)
        case "grant":
            return Step(author, "grant", user, rng.choice((WRITE, ADMIN, OWNER)), acks)
        case "friends":
            names = tuple(rng.sample(sorted({*held, "ann", "ben", "cat"} - {author}), rng.randint(0, 1) + 1))
            return Step(author, "friends", author, (len(names) + 2) // 2, acks, names=names)
        case "recover":
            namings = [one for one in sorted(past) if ops[one].kind == "friends"]
            if not namings:
                return None
            naming = rng.choice(namings)
            level = rng.randint(READ, OWNER)
            return Step(author, "recover", rng.choice(DEVICES), level, acks, naming, ops[naming].names)
        case "invite":
            return Step(author, "invite", author, rng.choice((READ, WRITE)), acks, uses=2)
        case "join":
            invitations = [one for one in sorted(past) if ops[one].kind in ("invite", "propose")]
            if not invitations:
                return Step(author, "propose", user, 0, acks)
            target = rng.choice(invitations)
            if ops[target].kind == "propose":
                return Step(author, "approve", author, 0, acks, target)
            return Step(
                rng.choice(("eve", "ben", "cat")), rng.choice(("join", "join", "revoke")), "", 0, acks, target
            )
    return Step(author, "act", author, rng.choice((WRITE, MANAGE, ADMIN)), acks)


def heads(twins: Twins, chosen: "range | list[int]") -> tuple[int, ...]:
    """Return those of some operations that none of the others follows."""
    return tuple(one for one in chosen if not any(one in twins.pasts[other] for other in chosen))


def any_order(rng: Random, twins: Twins) -> list[int]:
    """Return a random order with causes first."""
    order: list[int] = []
    left = set(range(len(twins)))
    while left:
        order.append(rng.choice(sorted(one for one in left if not twins.pasts[one] & left)))
        left.remove(order[-1])
    return order
