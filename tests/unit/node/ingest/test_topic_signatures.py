"""A holder of the topic's key signs what it sends, but for what it has signed or checked before."""

import pytest
from sqlalchemy import select, update

from node.care.fsck import check_store
from node.care.repair import repair_store
from node.ingest.replica import Replica
from protocol.formats.body import encode_body
from protocol.formats.content import Post
from protocol.formats.publication import decode_publication, encode_publication, sign_publication
from protocol.ids import Signature
from storage.repos.repos import Branch
from storage.schema.schema import commits
from storage.topics import publishing
from tests.support.builders import STORE_KEY, World, count_accepted, give, publications_of
from tests.support.forging import Forger

_WRONG = Signature(bytes(63) + b"\x01")


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what is signed in order to be sent."""
    found: list[object] = []

    def count(*arguments: object) -> Signature:
        found.append(arguments)
        return sign_publication(*arguments)  # type: ignore[arg-type]  # as they were given

    monkeypatch.setattr(publishing, "sign_publication", count)
    return found


def _wrongly_signed(item: bytes) -> bytes:
    one = decode_publication(item)
    return encode_publication(one.topic, one.hidden_key, tuple(block.encoded for block in one.blocks), _WRONG)


def _proven(replica: Replica, branch: Branch) -> list[bool]:
    query = select(commits.c.is_proven).where(commits.c.branch_num == branch.num)
    with replica.database.read() as connection:
        return list(connection.execute(query.order_by(commits.c.num)).scalars())


def test_own_commits_are_sent_with_the_signature_that_they_were_written_with(
    world: World, signed: list[object]
) -> None:
    world.write("a, a <- b")
    items = world.publications(world.branch)
    assert signed == []
    reader = world.copy(is_writer=False)
    assert count_accepted(give(reader[0], items[1:])) == 2
    assert publications_of(*reader) == items
    assert signed == []


def test_what_is_accepted_by_its_authors_signature_alone_is_signed_when_it_is_sent(
    world: World, signed: list[object]
) -> None:
    (item,) = world.write("a")
    writer = world.copy()
    assert give(writer[0], [_wrongly_signed(item)]).accepted
    assert _proven(*writer) == [False, False]
    assert publications_of(*writer) == world.publications(world.branch)
    assert len(signed) == 2


def test_what_waited_was_proven_before_it_was_kept(world: World, signed: list[object]) -> None:
    items = world.write("a, a <- b")
    writer = world.copy()
    assert give(writer[0], items[1:]).waiting == 1
    assert give(writer[0], items[:1]).accepted
    assert _proven(*writer) == [False, False, True]
    assert publications_of(*writer) == world.publications(world.branch)
    assert len(signed) == 2


def test_a_signature_that_is_no_longer_right_is_found_and_made_anew(world: World) -> None:
    world.write("a")
    item = Forger(world).write(encode_body(Post("words")))
    assert give(world.replica, [_wrongly_signed(item)]).accepted
    items = world.publications(world.branch)
    with world.replica.database.write() as connection:
        of_branch = commits.c.is_proven & (commits.c.branch_num == world.branch.num)
        assert connection.execute(update(commits).where(of_branch).values(signature=_WRONG)).rowcount == 2
    folder = world.replica.database.folder
    world.close()
    problems = [problem.detail for problem in check_store(folder, STORE_KEY).problems]
    assert problems == ["its row says otherwise than it does: is_proven"] * 2
    repair = repair_store(folder, STORE_KEY)
    assert repair.left.kinds == {}
    replica = Replica(folder, STORE_KEY)
    branch = replica.branches[world.branch.num]
    assert _proven(replica, branch) == [False, False, False]
    assert publications_of(replica, branch) == items
    replica.close()
