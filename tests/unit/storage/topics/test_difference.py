"""Summary of a topic with more heads than it may name."""

from pathlib import Path

from node.authoring.drafting import Draft
from protocol.formats.content import Post
from protocol.limits.peers import SUMMARY_HEAD_COUNT_MAX
from storage.commits.heads import load_heads
from storage.topics.difference import plan_sending, summarise
from tests.support.builders import World


def test_the_heads_of_highest_rank_are_named_first_and_then_the_smaller_ids(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    root = world.branch.facts.root_id
    low = [Draft(Post(str(number)), (root,)) for number in range(SUMMARY_HEAD_COUNT_MAX)]
    high = [Draft(Post("above"), (0,)), Draft(Post("above too"), (0,))]
    written, _ = world.author.write_many(world.branch, lambda _: [*low, *high])
    ids = [commit.commit_id for commit in written]
    with world.replica.database.read() as connection:
        summary = summarise(connection, world.topic().num)
        held = plan_sending(connection, world.topic().num, summary.heads)
        pin = load_heads(connection, world.replica.root_branch(world.repo).num, 1)[0][
            0
        ]  # what adds the branch
    wanted = [*sorted(ids[-2:]), *sorted([pin, *ids[1:-2]])][:SUMMARY_HEAD_COUNT_MAX]
    assert list(summary.heads) == wanted
    assert not held.is_exact, "so many heads may not be all"
    world.close()
