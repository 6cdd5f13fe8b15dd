"""Many ids are looked up by their keys, not by reading all of the branch or topic in which they are looked for."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection, insert

from protocol.ids import BlockId, CommitId, PublicationId, ShortId, TopicKey
from storage.blobs.unfetched import note_files_added
from storage.commits.blocks import find_shared_blocks
from storage.commits.pending import load_unread
from storage.commits.void_marks import load_judged
from storage.engine.database import Database
from storage.engine.id_keys import id_key
from storage.relay.relay import RELAY, _find_known, _load_ranks
from storage.repos.epochs import Topic
from storage.schema.relay_schema import relay_commits
from storage.schema.schema import blocks, topics
from storage.topics.difference import LINKED, REPLICA, find_nums
from storage.topics.topic_sets import TopicSet, find_by_short_ids, find_whole, load_ids
from tests.support.rows import counted_steps, put_branch, put_commits, some_id

_ROWS: Final = 3000
_KEYS: Final = 100
_STEPS_MAX: Final = 20 * _KEYS
"""Of SQLite's machine: two thirds of a step for each row that is not looked for."""


_TOPIC: Final = TopicKey(b"t" * 32)
_ASKED_BY_PEERS: Final = (
    "short ids",
    "short ids of publications",
    "short ids of a link topic",
    "short ids at a relay",
    "publications at a relay",
    "commits that a peer wants",
    "commits that a peer wants of a relay",
    "bodies that a peer wants",
)


def _short(ids: Sequence[CommitId]) -> list[ShortId]:
    return [ShortId(one[:16]) for one in ids]


def _publications(ids: Sequence[CommitId]) -> list[PublicationId]:
    return [PublicationId(one) for one in ids]


LOOKUPS: Final[dict[str, Callable[[Connection, int, Sequence[CommitId]], object]]] = {
    "short ids": lambda connection, num, ids: find_by_short_ids(
        connection, TopicSet(REPLICA, num, _TOPIC), _short(ids)
    ),
    "short ids of publications": lambda connection, num, ids: find_by_short_ids(
        connection,
        TopicSet(REPLICA, num, _TOPIC, of_publications=True, opened=Topic(num, _TOPIC, num)),
        _short(ids),
    ),
    "short ids of a link topic": lambda connection, num, ids: find_by_short_ids(
        connection, TopicSet(LINKED, num + 1, _TOPIC), _short(ids)
    ),
    "short ids at a relay": lambda connection, num, ids: find_by_short_ids(
        connection, TopicSet(RELAY, num, _TOPIC, of_publications=True), _short(ids)
    ),
    "publications at a relay": lambda connection, num, ids: _find_known(connection, num, _publications(ids)),
    "commits that a peer wants": find_nums,
    "commits that a peer wants of a relay": lambda connection, num, ids: find_nums(
        connection, num, ids, RELAY
    ),
    "bodies that a peer wants": lambda connection, num, ids: find_whole(
        connection, TopicSet(REPLICA, num, _TOPIC), ids
    ),
    "ranks at a relay": _load_ranks,
    "what may be void": load_judged,
    "files that were added": note_files_added,
    "blocks of files": lambda connection, _, ids: find_shared_blocks(connection, [*map(BlockId, ids)]),
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path)) as database:
        yield database


def _put_relayed(connection: Connection, topic_num: int, ids: Sequence[CommitId]) -> None:
    row = {"topic_num": topic_num, "rank": 1, "acks": b"", "publication": b""}
    rows = [
        {
            **row,
            "id_key": id_key(one),
            "commit_id": one,
            "publication_id": one,
            "publication_key": id_key(one[8:]),
        }
        for one in ids
    ]
    connection.execute(insert(relay_commits), rows)


@pytest.mark.sqlite  # it counts the steps of SQLite's machine
def test_ids_are_looked_up_by_their_keys(database: Database) -> None:
    with database.write() as connection:
        num = put_branch(connection)
        ids = [some_id(number) for number in range(_ROWS)]
        put_commits(database, connection, num, [(0, 1, one) for one in ids])
        link = {"num": num + 1, "topic": _TOPIC, "commit_count": 0, "branch_num": num, "epoch_num": 0}
        connection.execute(insert(topics).values(link))
        _put_relayed(connection, num, ids)
        rows = [{"num": at, "id_key": id_key(one), "encoded": b""} for at, one in enumerate(ids)]
        connection.execute(insert(blocks).values(is_shared=True), rows)
        absent = [some_id(number) for number in range(_ROWS, _ROWS + _KEYS)]
        steps: dict[str, int] = {}
        for name, look in LOOKUPS.items():
            with counted_steps(connection) as counted:
                look(connection, num, absent)
            steps[name] = counted[0]
    assert {name: count for name, count in steps.items() if count > _STEPS_MAX} == {}


@pytest.mark.sqlite  # the other way of the two to run a query
@pytest.mark.slow
def test_ids_that_peers_name_do_not_wait_for_the_collector(database: Database) -> None:
    """The collector counts objects, not bytes: a peer that named ids which nobody holds made a node grow by 82 MiB."""
    absent, nums = [some_id(number) for number in range(_KEYS)], range(1, _KEYS)
    left: dict[str, int] = {}
    with database.write() as connection:
        num = put_branch(connection)
        looks: dict[str, Callable[[], object]] = {
            name: partial(LOOKUPS[name], connection, num, absent) for name in _ASKED_BY_PEERS
        }
        looks["ids of numbers"] = partial(load_ids, connection, TopicSet(REPLICA, num, _TOPIC), nums)
        looks["unread commits"] = partial(load_unread, connection, [-one for one in nums], 1)
        for name, look in looks.items():
            look()  # what is compiled stays
            gc.collect()
            gc.disable()
            try:
                look()
                left[name] = gc.collect()
            finally:
                gc.enable()
    assert {name: count for name, count in left.items() if count} == {}
