"""Damaged rows: a changed one gives a StorageError, whatever the change, and what comes back is where it was."""

from pathlib import Path

import pytest
from sqlalchemy import text

from node.ingest.replica import Replica
from node.sync.session_queries import topic_set
from protocol.formats.body import BranchLink
from protocol.formats.publication import decode_publication
from protocol.ids import Digest
from storage.commits.commits import load_rows
from storage.commits.damaged import mark_commits_damaged
from storage.engine.errors import StorageError
from storage.topics.sketches import Sketches
from tests.support.builders import STORE_KEY, World, give

DAMAGE = {
    "no block is named": "UPDATE commits SET block_nums = x'' WHERE num = 1",
    "the body's block is not named": "UPDATE commits SET block_nums = CAST(substr(block_nums, 1, 8) AS BLOB) WHERE num = 1",
    "numbers are a text": "UPDATE commits SET block_nums = 'aaaaaaaabbbbbbbb' WHERE num = 1",
    "another block is named": (
        "UPDATE commits SET block_nums = CAST(substr(block_nums, 1, 8) || x'0900000000000000' AS BLOB) WHERE num = 1"
    ),
    "the body's block has changed": "UPDATE blocks SET encoded = CAST(encoded || x'00' AS BLOB) WHERE num = 2",
    "the body's block is empty": "UPDATE blocks SET encoded = x'' WHERE num = 2",
    "the commit's block has changed": "UPDATE blocks SET encoded = CAST(x'00' || encoded AS BLOB) WHERE num = 1",
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_changed_row_of_a_root_branch_keeps_the_node_from_starting_with_a_reason(
    tmp_path: Path, change: str
) -> None:
    world = World(tmp_path)
    with world.replica.database.write() as connection:
        assert connection.execute(text(change)).rowcount == 1
    world.close()
    with pytest.raises(StorageError):
        Replica(tmp_path, STORE_KEY)


def test_what_is_back_is_in_the_sets_of_all_topics_on_which_it_stands(world: World) -> None:
    # An init stands on two topics, and what is written in a branch with a link on that link's topic, too.
    root = world.replica.root_branch(world.repo)
    world.author.write(root, BranchLink(world.branch.branch_id))
    world.author.start_epoch(world.repo)
    world.write("a")
    replica = world.replica
    items = [world.publications(root)[-1], world.publications(world.branch)[-1]]
    with replica.database.write() as connection:
        rows = load_rows(connection, [decode_publication(item).commit_id for item in items]).values()
        mark_commits_damaged(connection, [row.num for row in rows])
    replica.has_damaged = True

    def digests(kept: Sketches) -> list[Digest]:
        with replica.database.read() as connection:
            sets = [topic_set(topic, of_publications=True) for topic in replica.topics.values()]
            return [kept.digest(connection, one) for one in sets]

    before = digests(replica.sketches)
    assert give(replica, items).restored == 2
    after = digests(Sketches(replica.database))
    assert digests(replica.sketches) == after
    changed = [one for one, other in zip(before, after, strict=True) if one != other]
    assert len(changed) == 4, "where the two were published, the new epoch's own topic, and the link's"
