"""Acks of drafts in one batch: no parent that another one acks (V10), and every other one."""

from node.authoring.feed_encoder import DraftGraph
from protocol.ids import CommitId
from tests.support.builders import World


def test_a_parent_that_another_acks_is_left_out_and_no_earlier_one(world: World) -> None:
    world.write("a, a <- b, b <- c, a <- d")
    ids = {name: commit.commit_id for name, commit in world.commits.items()}
    with world.replica.database.read() as connection:
        for parents, acks in (
            ("a", "a"),
            ("a b", "b"),
            ("b a d", "b d"),
            ("a c", "a c"),  # what is acked is looked at alone, and not its past
            ("a b c", "c"),
            ("c c d", "c d"),
        ):
            found = DraftGraph(connection).add([ids[name] for name in parents.split()])
            assert found == tuple(ids[name] for name in acks.split()), parents


def test_drafts_are_parents_by_their_places(world: World) -> None:
    world.write("a, a <- b")
    a, b = (world.commits[name].commit_id for name in "ab")
    with world.replica.database.read() as connection:
        graph = DraftGraph(connection)
        expected: list[tuple[list[CommitId | int], tuple[CommitId | int, ...]]] = [
            ([b], (b,)),
            ([0, b], (0,)),
            ([0, 1, a], (1, a)),
            ([2, 1, b], (2, b)),
        ]
        assert [graph.add(parents) for parents, _ in expected] == [acks for _, acks in expected]
