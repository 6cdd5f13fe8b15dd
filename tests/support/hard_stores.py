"""What can be in a store and not be whole, all of it legal: nothing that looks for faults may find one."""

from protocol.formats.publication import decode_publication
from protocol.ids import ObjectId
from storage.commits.absent_bodies import Erasure, erase_bodies
from storage.commits.commits import load_rows
from storage.commits.damaged import mark_commits_damaged
from storage.engine.id_keys import unpack_nums
from storage.schema.schema import blocks
from tests.support.builders import NOW_MS, World, give
from tests.support.forging import BAD_BODIES, Forger, bare_of


def harden(world: World) -> None:
    """Add four posts on the branch's root.

    `erased` lost its body by a compaction, and `damaged` was damaged and is asked of peers. The last two are by another
    member: one came without its body, and the other's body names blocks that nobody ever sends, for its one block is all
    that travels of it.
    """
    forger = Forger(world)
    world.write("erased, damaged")
    items = [forger.write(b"a bare one's body"), forger.write(BAD_BODIES["a tree"])]
    ingested = give(world.replica, [bare_of(items[0]), items[1]])
    assert [len(nums) for nums in ingested.accepted.values()] == [2]
    rows = {name: world.commits[name].commit_id for name in ("erased", "damaged")}
    with world.replica.database.write() as connection:
        found = load_rows(connection, rows.values())
        erased, damaged = (found[rows[name]] for name in ("erased", "damaged"))
        body_id = decode_publication(world.commits["erased"].encoded).blocks[1].block_id
        erasure = Erasure(erased.num, erased.topic_num, erased.block_nums, ObjectId(body_id))
        erase_bodies(connection, world.branch.num, [erasure], NOW_MS)
        own = unpack_nums(damaged.block_nums)[0]
        connection.execute(blocks.delete().where(blocks.c.num == own))
        mark_commits_damaged(connection, [damaged.num])
