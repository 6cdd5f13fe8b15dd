"""Publications that a relay keeps without the commit's body: which ones, and how a whole one takes a bare one's place.

A bare publication has the id of the whole one, so comparing topics never brings the other: members are asked for bodies
(`node.sync.body_fetching`). A whole one is never replaced, and no topic is forgotten for a body: what a bare publication
says is kept already, and a body that finds no room may come again.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.formats.publication import Publication
from protocol.ids import CommitId
from storage.engine.id_keys import chunks
from storage.relay.quotas import RelayQuotas, Visitor, add_share, find_body_room
from storage.schema.relay_schema import relay_bare, relay_commits, relay_topics


def note_bare(connection: Connection, topic_num: int, nums: Sequence[int]) -> None:
    """Note that publications of a topic, of these numbers, came without a body."""
    rows = [{"topic_num": topic_num, "commit_num": num} for num in nums]
    if rows:
        connection.execute(insert(relay_bare), rows)


def find_bare(connection: Connection, topic_num: int, nums: Sequence[int]) -> set[int]:
    """Return the given publications of a topic that have no body. Costs O(nums)."""
    columns = relay_bare.c
    found: set[int] = set()
    for part in chunks(nums):
        here = (columns.topic_num == topic_num) & columns.commit_num.in_(part)
        found.update(connection.execute(select(columns.commit_num).where(here)).scalars())
    return found


def complete_bare(
    connection: Connection,
    topic_num: int,
    visitor: Visitor,
    whole: Mapping[int, tuple[Publication, bytes]],
    quotas: RelayQuotas,
) -> int:
    """Replace bare publications, of these numbers, by whole ones of the same ids; return how many had room."""
    bare = find_bare(connection, topic_num, list(whole))
    if not bare:
        return 0
    room = find_body_room(connection, topic_num, visitor, quotas)
    sizes: dict[int, int] = {}
    for part in chunks(sorted(bare)):
        size = select(relay_commits.c.num, func.length(relay_commits.c.publication))
        sizes.update(
            (row[0], row[1]) for row in connection.execute(size.where(relay_commits.c.num.in_(part)))
        )
    grown, done = 0, []
    for num, was in sizes.items():
        encoded = whole[num][1]
        if grown + len(encoded) - was > room:
            continue
        grown += len(encoded) - was
        done.append(num)
        connection.execute(
            update(relay_commits).where(relay_commits.c.num == num).values(publication=encoded)
        )
    for part in chunks(done):
        here = (relay_bare.c.topic_num == topic_num) & relay_bare.c.commit_num.in_(part)
        connection.execute(delete(relay_bare).where(here))
    if done:
        of_topic = update(relay_topics).where(relay_topics.c.num == topic_num)
        connection.execute(of_topic.values(size=relay_topics.c.size + grown))
        add_share(connection, topic_num, visitor, grown)
    return len(done)


def find_lacking_topics(connection: Connection) -> dict[int, int]:
    """Find topics that lack bodies, by number, each with its newest such publication's. Costs O(those)."""
    columns, last = relay_bare.c, -1
    found: dict[int, int] = {}
    while True:
        query = select(columns.topic_num).where(columns.topic_num > last).order_by(columns.topic_num)
        row = connection.execute(query.limit(1)).first()
        if row is None:
            return found
        last = row[0]
        newest = select(func.max(columns.commit_num)).where(columns.topic_num == last)
        found[last] = connection.execute(newest).scalar_one()


def load_lacking(
    connection: Connection, topic_num: int, before: int, after: int, limit: int, *, alone: bool
) -> list[tuple[int, CommitId]]:
    """Load (number, commit's id) of publications without a body, between two numbers, the latest first.

    With `alone`, load those alone whose commits are here in no other form: a peer asked by commit ids would send the
    others again.
    """
    bare, kept, other = relay_bare.c, relay_commits.c, relay_commits.alias().c
    query = (
        select(kept.num, kept.commit_id)
        .join(relay_bare, bare.commit_num == kept.num)
        .where(bare.topic_num == topic_num, bare.commit_num < before, bare.commit_num > after)
    )
    if alone:
        is_same = (other.id_key == kept.id_key) & (other.commit_id == kept.commit_id)
        is_here = is_same & (other.topic_num == topic_num) & (other.num != kept.num)
        query = query.where(~select(other.num).where(is_here).exists())
    found = connection.execute(query.order_by(bare.commit_num.desc()).limit(limit))
    return [(row[0], row[1]) for row in found]
