"""Random histories with malicious members: every node comes to the same outcome, which is the one that the rules give.

The histories are `tests.histories`'s; each is delivered to several nodes in orders and batches of their own, some of which
are closed and opened again on the way. Seeds 0 to 499, or as many as RAVEL_HISTORIES says (`make histories`). A failing
history is made as short as it can be, and printed with its seed: put the seed into KEPT_SEEDS.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import pytest
from sqlalchemy import select

from node.ingest.replica import Replica
from node.timelines.why import list_voids
from protocol.crypto.hashing import timeline_digest
from protocol.formats.text import id_text
from protocol.ids import AnyId
from storage.commits.commits import count_commits, digest_timeline, load_timeline
from storage.commits.heads import load_heads
from storage.commits.pending import count_pending
from storage.commits.void_marks import load_void_ids
from storage.engine import database
from storage.schema.schema import commits, rejections
from tests.histories.plots import tell
from tests.histories.real_commits import Founded, RealCommits, found, make_commits, user_of
from tests.histories.tales import BRANCHES, FOUNDING, Tale
from tests.support.builders import give
from tests.support.memberships import NAMES
from tests.support.reference_histories import ROOT, End, History, Step
from tests.support.reference_membership import ADMIN, WRITE, Right, World
from tests.support.tiers import in_tiers

KEPT_SEEDS: Final = (624, 1418, 1737, 2138)
"""Seeds that have failed; they are always tried, whatever the number of histories."""
KEPT_TALES: Final = {
    "two_removals_name_one_commit_as_ends_of_other_places": Tale(
        frozenset({"cat"}),
        (
            *FOUNDING,
            Step(5, "ann", "grant", acks=(3,), sequence=4, previous=3, skip=0, user="ben", level=ADMIN),
            Step(6, "ann", "grant", acks=(5,), sequence=5, previous=5, user="cat", level=WRITE),
            Step(7, "cat", "post", "main", acks=(2,), seen=(6,)),
            Step(8, "cat", "post", "main", acks=(7,), seen=(6,), sequence=2, previous=7),
            Step(9, "cat", "post", "main", acks=(7,), seen=(6,), sequence=2, previous=7),
            Step(
                10, "ann", "remove", acks=(6,), sequence=6, previous=6, user="cat", ends=(End("main", 1, 7),)
            ),
            Step(11, "ben", "remove", acks=(6,), user="cat", ends=(End("main", 2, 7),)),
        ),
    ),
}
"""Histories that have failed, or would have, and that no seed is known to tell."""
COUNT: Final = int(os.environ.get("RAVEL_HISTORIES", "250"))
PART: Final = 50
"""Histories in one test, so that each stays far below the timeout."""
WAYS: Final = ("causes first", "any order", "as made", "causes first")
"""How the publications come to the first nodes, the second, ...: to two, in every eighth history to three."""
NAME_OF: Final = {user_of(name): name for name in NAMES}
CODES: Final = ("", "bad_signature", "rejected_cause")
"""Verdicts that the reference names as Ravel does; whatever the membership rules refuse, and implied acks, are `refused`
there."""


@dataclass(frozen=True)
class Outcome:
    """What a history comes to. Commits are numbers, branches and members names."""

    verdicts: dict[int, str]  # empty: accepted
    members: dict[str, int]
    counting: frozenset[int]
    void: frozenset[int]
    timelines: dict[str, list[int]]
    heads: dict[str, list[int]]


@pytest.fixture(scope="module")
def founded() -> Iterator[Founded]:
    """The repo of all histories; stores are opened faster from here on."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        made = found(Path(folder) / "founded")
        # Every store is a copy of this one, which is migrated.
        patch.setattr(database.Database, "_migrate", lambda _self, _writer: None)
        gc.freeze()  # what pytest holds need not be looked through again and again
        yield made
        gc.unfreeze()


@pytest.mark.slow
@pytest.mark.parametrize("start", in_tiers(range(0, COUNT, PART), quick=0))
def test_every_node_comes_to_what_the_rules_give(founded: Founded, start: int) -> None:
    for seed in range(start, min(start + PART, COUNT)):
        _check_seed(founded, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_a_seed_that_failed_once_does_not_again(founded: Founded, seed: int) -> None:
    _check_seed(founded, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT_TALES)
def test_a_history_that_failed_once_does_not_again(founded: Founded, name: str) -> None:
    assert _find_problem(founded, KEPT_TALES[name], 0, 3 * len(WAYS)) == ""


def _check_seed(founded: Founded, seed: int) -> None:
    tale = tell(seed)
    problem = _find_problem(founded, tale, seed, 2 if seed % 8 else 3)
    if problem:
        tale = _shorten(founded, tale, seed)
        shortened = _find_problem(founded, tale, seed, 3 * len(WAYS))
        pytest.fail(f"seed {seed}: {problem}\nshortened: {shortened}\n{tale.describe()}", pytrace=False)


def _find_problem(founded: Founded, tale: Tale, seed: int, nodes: int) -> str:
    """What is wrong with the outcome of a history, in words; nothing if nothing is."""
    history = History(tale.steps)
    real = make_commits(founded, tale)
    rng = Random(seed)
    expected = _by_the_rules(history, real)
    verdicts: dict[int, str] = {}
    for node in range(nodes):
        delivery = Delivery(rng, history, WAYS[node % len(WAYS)])
        try:
            outcome = _by_a_node(founded, delivery, history, real)
            verdicts = verdicts or outcome.verdicts
            assert outcome.verdicts == verdicts, "not the verdicts of the first node"
            common = {one: code if code in CODES else "refused" for one, code in verdicts.items()}
            assert replace(outcome, verdicts=common) == expected
            _check_rights(history, outcome)
            _check_exclusions(history, outcome)
        except Exception as error:  # whatever it is, it is shortened and shown
            return f"node {node}, {delivery}: {type(error).__name__}: {error}"
    return ""


def _shorten(founded: Founded, tale: Tale, seed: int) -> Tale:
    """The history without the steps that the problem does not need."""
    for step in reversed(tale.steps[len(FOUNDING) :]):
        shorter = tale.without(step.number)
        if len(shorter.steps) < len(tale.steps) and _find_problem(founded, shorter, seed, 3 * len(WAYS)):
            return _shorten(founded, shorter, seed)
    return tale


# --- one node ---


class Delivery:
    """In which order and batches the publications come to a node, and after which batch it is opened again."""

    def __init__(self, rng: Random, history: History, way: str) -> None:
        numbers = list(history.steps)[len(FOUNDING) :]
        again = rng.sample(numbers, len(numbers) // 8)
        if way == "causes first":
            numbers = _causes_first(rng, history, numbers)
        elif way == "any order":
            rng.shuffle(numbers)
        for number in again:
            numbers.insert(rng.randint(0, len(numbers)), number)
        size_max = rng.choice((1, 2, 4)) if way == "causes first" else rng.choice((2, 6, len(numbers) + 1))
        self.batches: list[list[int]] = []
        while numbers:
            size = rng.randint(1, size_max)
            self.batches.append(numbers[:size])
            numbers = numbers[size:]
        self.reopened_after = rng.randrange(3 * len(self.batches) + 1)

    def __repr__(self) -> str:
        return f"batches {self.batches}, opened again after batch {self.reopened_after}"


def _causes_first(rng: Random, history: History, numbers: list[int]) -> list[int]:
    left, order = list(numbers), list[int]()
    while left:
        ready = [one for one in left if history.causes[one].isdisjoint(left)]
        order.append(rng.choice(ready))
        left.remove(order[-1])
    return order


def _by_a_node(founded: Founded, delivery: Delivery, history: History, real: RealCommits) -> Outcome:
    """Deliver everything to a node of its own, and ask it."""
    folder = founded.folder.parent / "node"
    shutil.copytree(founded.folder, folder)
    replica = Replica(folder)
    try:
        for at, batch in enumerate(delivery.batches):
            give(replica, [real.items[one] for one in batch])
            if at == delivery.reopened_after:
                replica.close()
                replica = Replica(folder)
        return _ask(replica, founded, real)
    finally:
        replica.close()
        shutil.rmtree(folder)


def _ask(replica: Replica, founded: Founded, real: RealCommits) -> Outcome:
    numbers = {raw: number for number, raw in real.ids.items()}
    (repo,) = replica.repos.values()
    branches = {name: replica.branches[founded.branches[name].num] for name in (ROOT, *BRANCHES)}
    void: set[int] = set()
    timelines: dict[str, list[int]] = {}
    heads: dict[str, list[int]] = {}
    with replica.database.read() as connection:
        accepted = connection.execute(select(commits.c.commit_id)).scalars()
        verdicts = {numbers[raw]: "" for raw in accepted}
        for raw, code in connection.execute(select(rejections.c.commit_id, rejections.c.code)):
            verdicts[numbers[raw]] = code
        assert count_pending(connection) == 0, "all causes are here"
        for name, branch in branches.items():
            void.update(numbers[raw] for raw in load_void_ids(connection, branch.num))
            shown = [row.commit_id for row in load_timeline(connection, branch.num, 0, 1000)]
            digest = timeline_digest()
            digest.update(b"".join(shown))
            assert digest_timeline(connection, branch.num) == (digest.hexdigest(), len(shown))
            assert count_commits(connection, branch.num) == len(shown)
            timelines[name] = [numbers[raw] for raw in shown]
            heads[name] = sorted(numbers[raw] for raw, _ in load_heads(connection, branch.num, 1000))
    explained = {one["commit"] for name in BRANCHES for one in list_voids(replica, branches[name])}
    assert explained == {id_text(AnyId(real.ids[one])) for one in void}, "judged anew, what is marked is void"
    members = {NAME_OF[user]: int(held) for user, held in replica.members(repo).items()}
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        now = membership.now()
        counting = [one.commit_id for one in membership.operations.removals if now.has_effect(one)]
    return Outcome(
        verdicts, members, frozenset(numbers[raw] for raw in counting), frozenset(void), timelines, heads
    )


# --- what must be ---


def _by_the_rules(history: History, real: RealCommits) -> Outcome:
    whole = frozenset(history.rules.ops)
    void = history.void()
    return Outcome(
        {one: history.rejected.get(one, "") for one in history.steps},
        history.rules.members(whole),
        history.rules.world(whole).counting(),
        frozenset(void),
        {
            name: [one for one in history.ordered(name, real.ids) if one not in void]
            for name in (ROOT, *BRANCHES)
        },
        {name: history.heads(name) for name in (ROOT, *BRANCHES)},
    )


def _check_rights(history: History, outcome: Outcome) -> None:
    given = history.given()
    for name, level in outcome.members.items():
        assert level <= given.get(name, 0), f"{name} holds {level}, which no chain of grants gave"


def _check_exclusions(history: History, outcome: Outcome) -> None:
    """Expect that nothing is shown of a member excluded by a senior that the exclusion had not seen, unless adopted."""
    world = history.rules.world(frozenset(history.rules.ops))
    for removal in (history.steps[one] for one in outcome.counting):
        is_leave = removal.user == removal.author
        if removal.kind != "remove" or is_leave or removal.level >= WRITE or removal.known is None:
            continue
        if not _is_by_a_senior(history, world, removal):
            continue
        for one in (number for name in BRANCHES for number in outcome.timelines[name]):
            if history.steps[one].author != removal.user or removal.number in history.seen[one]:
                continue
            assert one in removal.known or history.adoptions(one, world), (
                f"{one} was not seen by {removal.number}"
            )


def _is_by_a_senior(history: History, world: World, removal: Step) -> bool:
    """Return True if all that the removed member got beside or before it is junior to a right that holds the removal."""
    rules, number = history.rules, removal.number
    acting = [one for one in world.rights(number) if world.holds(world.deed(number), one)]
    got = [
        Right(one, level)
        for one in sorted(world.whole)
        if (level := rules.carried(one, removal.user)) and number not in rules.ops[one].past
    ]
    return all(any(rules.is_senior(one, right) for one in acting) for right in got)
