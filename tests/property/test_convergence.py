"""Any history in any order of arrival: one timeline; and a difference is sent whole, whatever the other side holds."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.ids import CommitId
from storage.topics.difference import plan_sending, summarise
from storage.topics.publishing import load_publications
from tests.support.builders import World, give, timeline, writing_topic
from tests.support.strategies import histories

# Each example fills stores: 200 of them would take minutes.
_SLOW_STORE = settings(
    max_examples=min(25, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
)


def _write(world: World, dag: list[list[int]]) -> tuple[list[bytes], list[CommitId]]:
    items = [world.write_one(str(number), [str(ack) for ack in acks]) for number, acks in enumerate(dag)]
    return items, [world.commits[str(number)].commit_id for number in range(len(dag))]


def _order_with_checkpoints(
    dag: list[list[int]], ids: list[CommitId], checkpoints: set[int]
) -> list[CommitId]:
    """By (checkpoints passed, longest path, id), written for clarity; the branch's root has passed them only if it must."""
    pasts: list[set[int]] = []
    ranks: list[int] = []
    for number, acks in enumerate(dag):
        pasts.append({number}.union(*(pasts[ack] for ack in acks)))
        ranks.append(1 + max((ranks[ack] for ack in acks), default=0))
    heads = {frozenset(dag[one]) for one in checkpoints}  # those that merge the same count once
    passed = [
        sum(
            not any(number in pasts[one] for one in merged)
            and not (number in checkpoints and frozenset(dag[number]) == merged)
            for merged in heads
        )
        for number in range(len(dag))
    ]
    return [commit_id for _, _, commit_id in sorted(zip(passed, ranks, ids, strict=True))]


@pytest.mark.slow
@_SLOW_STORE
@given(dag=histories(), data=st.data())
def test_any_order_and_batching_gives_the_canonical_timeline(
    dag: list[list[int]], data: st.DataObject
) -> None:
    checkpoints = data.draw(st.sets(st.integers(min_value=0, max_value=len(dag) - 1), max_size=4))
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "world")
        try:
            world.name_quorum()
            items = []
            for number, acks in enumerate(dag):
                write = world.checkpoint_one if number in checkpoints else world.write_one
                items.append(write(str(number), [str(ack) for ack in acks]))
            ids = [world.commits[str(number)].commit_id for number in range(len(dag))]
            replica, branch = world.copy()
            arriving = data.draw(st.permutations(items))
            while arriving:
                size = data.draw(st.integers(min_value=1, max_value=len(arriving)))
                give(replica, arriving[:size])
                arriving = arriving[size:]
            expected = [world.branch.facts.root_id, *_order_with_checkpoints(dag, ids, checkpoints)]
            assert timeline(replica, branch) == expected == timeline(world.replica, world.branch)
        finally:
            world.close()


@pytest.mark.slow
@_SLOW_STORE
@given(dag=histories(), data=st.data())
def test_what_is_planned_is_what_the_other_lacks_and_nothing_else(
    dag: list[list[int]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "world")
        try:
            items, _ = _write(world, dag)
            replica, branch = world.copy()
            held = data.draw(st.sets(st.integers(min_value=0, max_value=len(items) - 1)))
            give(replica, [items[number] for number in sorted(held)])
            with replica.database.read() as connection:
                summary = summarise(connection, writing_topic(replica, branch).num)
            topic = world.topic()
            with world.replica.database.read() as connection:
                plan = plan_sending(connection, topic.num, summary.heads)
                sent = load_publications(connection, topic, list(plan.nums), 1 << 20)
                whole = summarise(connection, topic.num)
            assert plan.is_exact
            assert len(sent) == whole.count - summary.count
            here: set[int] = set()  # the others of those held wait for their causes
            for number in sorted(held):
                here |= {number} if here.issuperset(dag[number]) else set()
            lacking = [one for number, one in enumerate(items) if number not in here]
            assert sorted(sent) == sorted(lacking)
            give(replica, sent)
            assert timeline(replica, branch) == timeline(world.replica, world.branch)
        finally:
            world.close()
