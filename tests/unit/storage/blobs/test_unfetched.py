"""Own files on this node alone: counted up to a bound, for one user, and given up once others have them."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select

from node.content.files import FileService
from protocol.ids import BlockId, PeerId, ShortId
from protocol.limits.formats import LEAF_SIZE
from protocol.session.deposits import short_file
from storage.blobs import relayed_files as relayed
from storage.blobs.files import load_files
from storage.blobs.relayed_files import (
    find_relayed_on,
    forget_relayed,
    load_own_files,
    measure_file,
    note_relayed,
)
from storage.blobs.unfetched import (
    count_unfetched,
    find_unfetched,
    note_files_asked,
    note_files_fetched,
)
from storage.commits.commits import has_newer
from storage.peers.peers import Holder, load_holders, put_holders
from storage.repos.deletion import forget_repo
from storage.schema.peer_schema import relayed_files
from storage.schema.schema import commits
from tests.support.builders import writing_topic
from tests.support.nodes import Node, open_nodes


async def _content(text: bytes) -> AsyncGenerator[bytes]:
    yield text


def _count(node: Node, count_max: int = 1000, of: Node | None = None) -> int:
    with node.replica.database.read() as connection:
        num = node.repo().num
        found = count_unfetched(connection, [num, num + 1], (of or node).author.user, count_max)
    assert found[num + 1] == 0
    return found[num]


@pytest.mark.slow
async def test_own_files_are_counted_until_others_have_them(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        alice.create_repo()
        files = FileService(alice.hub, alice.author, lambda _: alice.branch())
        for number in range(3):
            await files.add(
                "main", f"{number}", _content(b"content %d" % number)
            )  # ciphertexts of a byte are often equal
        database, branch = alice.replica.database, alice.branch()
        assert (_count(alice), _count(alice, 3), _count(alice, 2)) == (3, 3, 2), "one over is not counted"
        assert _count(alice, of=bob) == 0
        with database.write() as connection:
            ids = [row.object_id for row in load_files(connection, branch.num, 0, 10)]
            repo_num = branch.repo_num
            found = find_unfetched(connection, repo_num, [BlockId(one) for one in ids])
            assert sorted((one.object_id, one.size) for one in found) == sorted((one, 9) for one in ids)
            oldest = found[0].display_time
            assert find_unfetched(connection, repo_num + 1, [BlockId(one) for one in ids]) == []
            note_files_fetched(connection, repo_num + 1, ids[0])
            note_files_fetched(connection, repo_num, ids[1])
        assert _count(alice) == 2
        with database.write() as connection:
            note_files_fetched(connection, repo_num, ids[2])
        assert _count(alice) == 1
        one, user = BlockId(ids[2]), alice.author.user
        for kept_from, count in ((oldest, 1), (oldest + 1_000_000, 2), (oldest + 1_000_000, 2)):
            with database.write() as connection:
                note_files_asked(connection, repo_num + 1, {one: kept_from}, user)
                note_files_asked(connection, repo_num, {one: kept_from}, user)
            assert _count(alice) == count, "who asks for an old one gives it up"
        with database.write() as connection:
            note_files_fetched(connection, repo_num, ids[2])
        relay = PeerId(b"r" * 32)
        with database.write() as connection:
            note_relayed(
                connection, relay, writing_topic(alice.replica, branch).num, [short_file(one) for one in ids]
            )
        assert _count(alice) == 0, "a relay says to keep it"
        with database.read() as connection:
            own = load_own_files(connection, 0, 10)
            assert find_relayed_on(connection, relay, own) == {one.num for one in own}
            elsewhere = [replace(one, topic_num=one.topic_num + 1) for one in own]
            assert find_relayed_on(connection, relay, elsewhere) == set(), "it goes with the other topic"
        with database.write() as connection:
            forget_relayed(connection, relay)
        assert _count(alice) == 1, "and does no more"


def test_who_held_a_repo_goes_with_it(tmp_path: Path) -> None:
    holder = Holder(PeerId(b"p" * 32), 1_700_000_000_000, 7)
    with open_nodes(tmp_path, "alice") as (alice,):
        repo, branch = alice.create_repo()
        alice.write(branch, "last")
        with alice.replica.change() as change:
            connection = change.connection
            put_holders(connection, {repo.num: [replace(holder, upto=1)]})
            put_holders(connection, {repo.num: [holder]})
            assert load_holders(connection) == {repo.num: [holder]}
            last = connection.execute(select(func.max(commits.c.num))).scalar_one()
            topics = list(alice.replica.topics)
            assert (has_newer(connection, topics, last), has_newer(connection, topics, last - 1)) == (
                False,
                True,
            )
            assert not has_newer(connection, [], 0)
            note_relayed(connection, holder.peer, topics[0], [ShortId(bytes(16))])
            forget_repo(connection, repo.num)
            assert connection.execute(select(relayed_files)).all() == [], (
                "a new topic may never have its number"
            )
            assert load_holders(connection) == {}


@pytest.mark.slow
async def test_a_tree_with_more_inner_blocks_than_a_relay_takes_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        files = FileService(alice.hub, alice.author, lambda _: alice.branch())
        await files.add("main", "two leaves", _content(bytes(LEAF_SIZE + 1)))
        database = alice.replica.database
        with database.read() as connection:
            (own,) = load_own_files(connection, 0, 10)
            where = (connection, database.folder, alice.replica.packs, own.object_id)
            assert (measure_file(*where) or 0) > LEAF_SIZE
            monkeypatch.setattr(relayed, "RELAYED_INNER_COUNT_MAX", 0)
            assert measure_file(*where) is None
