"""Own commits are judged as they were made; what would differ from a stranger's reading of them is found by cheap checks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as with_fields
from sqlalchemy import Connection

from node.authoring import feed_encoder as feed_encoder_module
from node.authoring import opening as opening_module
from node.authoring.drafting import Draft, WrittenCommit, make_publication
from node.authoring.opening import READ_AGAIN_EACH, OwnOpener
from node.authoring.write_queue import WriteRequest
from node.ingest.publication_parsing import OpenedBatch, open_batch
from node.runtime.errors import ServiceError
from protocol.formats.body import Quorum
from protocol.formats.content import Imported, Post
from protocol.formats.publication import Publication, encode_publication
from protocol.ids import Signature
from protocol.limits.formats import TEXT_SIZE_MAX
from storage.commits.commits import count_commits
from storage.repos.epochs import Topic
from tests.support.builders import World
from verifier.verify import SignedCommit, sign_off


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def _posts(count: int) -> list[Draft]:
    return [Draft(Post(f"post {number}")) for number in range(count)]


def _count(world: World) -> int:
    with world.replica.database.read() as connection:
        return count_commits(connection, world.branch.num)


def _flip(data: bytes) -> bytes:
    return bytes((data[0] ^ 1,)) + data[1:]


def _with_publication(written: WrittenCommit, publication: Publication) -> WrittenCommit:
    assert written.made is not None
    blocks = tuple(block.encoded for block in publication.blocks)
    encoded = encode_publication(publication.topic, publication.hidden_key, blocks, publication.signature)
    return replace(written, made=with_fields(written.made, publication=publication), encoded=encoded)


def _publication(written: WrittenCommit) -> Publication:
    assert written.made is not None
    return written.made.publication


def _with_block(written: WrittenCommit, place: int) -> WrittenCommit:
    blocks = list(_publication(written).blocks)
    block = blocks[place]
    blocks[place] = with_fields(block, encoded=block.encoded[:-1] + _flip(block.encoded[-1:]))
    return _with_publication(written, with_fields(_publication(written), blocks=tuple(blocks)))


def _with_hidden_key(written: WrittenCommit) -> WrittenCommit:
    hidden = _flip(_publication(written).hidden_key)
    return _with_publication(written, with_fields(_publication(written), hidden_key=hidden))


def _with_topic_signature(written: WrittenCommit) -> WrittenCommit:
    signature = Signature(_flip(_publication(written).signature))
    return _with_publication(written, with_fields(_publication(written), signature=signature))


def _with_other_commit(written: WrittenCommit) -> WrittenCommit:
    assert written.made is not None
    commit = written.made.signed.commit
    content = with_fields(commit.content, timestamp=commit.content.timestamp + 1)
    signed = sign_off(with_fields(commit, content=content), written.made.signed.body, holds=True)
    assert isinstance(signed, SignedCommit)
    return replace(written, made=with_fields(written.made, signed=signed))


def _damage(
    monkeypatch: pytest.MonkeyPatch, place: int, damage: Callable[[WrittenCommit], WrittenCommit]
) -> None:
    """Damage the commit at a place of those that are made from now on."""
    made = 0

    def make_damaged(*args: object) -> WrittenCommit:
        nonlocal made
        made += 1
        written = make_publication(*args)  # type: ignore[arg-type]
        return damage(written) if made == place + 1 else written

    monkeypatch.setattr(feed_encoder_module, "make_publication", make_damaged)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Publications that were read again."""
    found: list[bytes] = []

    def note(topic: Topic, items: Sequence[bytes], *, checks_topics: bool) -> OpenedBatch:
        found.extend(items)
        return open_batch(topic, items, checks_topics=checks_topics)

    monkeypatch.setattr(opening_module, "open_batch", note)
    return found


def test_a_commit_is_opened_to_just_what_a_peer_reads(world: World) -> None:
    written, _ = world.author.write_many(
        world.branch, [Draft(Post("words")), Draft(Imported("1", "ann", -5, "old words"))]
    )
    for one in written:
        read = open_batch(world.topic(), [one.encoded], checks_topics=True)
        assert one.made is not None
        assert (read.opened[0].signed, read.opened[0].publication) == (one.made.signed, one.made.publication)


def test_one_commit_of_so_many_is_read_again_however_they_are_batched(
    world: World, readings: list[bytes]
) -> None:
    opener = OwnOpener()
    written, _ = world.author.write_many(world.branch, _posts(READ_AGAIN_EACH * 2 + 1))
    for size in (1, 7, len(written)):
        readings.clear()
        opener = OwnOpener()
        for at in range(0, len(written), size):
            batch = opener.open(world.topic(), written[at : at + size])
            assert [one.signed.commit.commit_id for one in batch.opened] == [
                one.commit_id for one in written[at : at + size]
            ]
        assert readings == [one.encoded for one in written[::READ_AGAIN_EACH]]


def test_a_commit_whose_verdict_rests_on_its_body_is_always_read(world: World, readings: list[bytes]) -> None:
    root = world.replica.root_branch(world.repo)
    world.author.write_many(world.branch, _posts(2))
    readings.clear()
    written, _ = world.author.write(root, Quorum((world.author.user,), 1, removals=False))
    assert (written.made, readings) == (None, [written.encoded])


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("place", [0, 1, READ_AGAIN_EACH - 1])
def test_a_bit_that_flips_in_a_block_is_found_in_any_commit(
    world: World, monkeypatch: pytest.MonkeyPatch, block: int, place: int
) -> None:
    _damage(monkeypatch, place, lambda written: _with_block(written, block))
    with pytest.raises(ServiceError, match="damaged while it was made") as raised:
        world.author.write_many(world.branch, _posts(READ_AGAIN_EACH))
    assert raised.value.code == "internal"
    assert _count(world) == 1, "nothing of it was kept"
    world.author.write_many(world.branch, _posts(1))
    assert _count(world) == 2


@pytest.mark.parametrize("damage", [_with_hidden_key, _with_topic_signature, _with_other_commit])
def test_what_each_commit_has_wrong_is_found_by_the_first_write(
    world: World, monkeypatch: pytest.MonkeyPatch, damage: Callable[[WrittenCommit], WrittenCommit]
) -> None:
    world.author.writer.opener = OwnOpener()
    _damage(monkeypatch, 0, damage)
    with pytest.raises(ServiceError, match="damaged while it was made"):
        world.author.write(world.branch, Post("words"))
    assert _count(world) == 1


def test_what_each_commit_has_wrong_is_found_each_time_that_a_client_tries_again(
    world: World, monkeypatch: pytest.MonkeyPatch, readings: list[bytes]
) -> None:
    world.author.writer.opener = OwnOpener()
    with monkeypatch.context() as patch:
        patch.setattr(
            feed_encoder_module,
            "make_publication",
            lambda *args: _with_topic_signature(make_publication(*args)),
        )
        for _ in range(3):
            with pytest.raises(ServiceError, match="damaged while it was made"):
                world.author.write(world.branch, Post("words"))
    assert _count(world) == 1
    readings.clear()
    world.author.write_many(world.branch, _posts(3))
    assert len(readings) == 1, "a whole one ends the doubt"


def test_a_damaged_commit_fails_its_own_request_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # The group is written again one by one, and the request whose commit is damaged again fails.
    def damage(written: WrittenCommit) -> WrittenCommit:
        return _with_block(written, 0) if len(written.encoded) > 1000 else written

    monkeypatch.setattr(
        feed_encoder_module, "make_publication", lambda *args: damage(make_publication(*args))
    )
    texts = ["one", "long" * 300, "three"]
    requests = [WriteRequest(world.branch, [Draft(Post(text))]) for text in texts]
    (first, second, third), _ = world.author.queue.write_group(requests)
    assert isinstance(first, list)
    assert isinstance(second, ServiceError)
    assert isinstance(third, list)
    assert _count(world) == 3


@pytest.mark.parametrize(
    "bad", [Draft(Post("long" * TEXT_SIZE_MAX)), Draft(Post("acks nothing that is here"), acks=())]
)
def test_a_request_with_a_commit_that_cannot_be_encoded_or_is_illegal_leaves_nothing(
    world: World, bad: Draft
) -> None:
    def plan(_connection: Connection) -> list[Draft]:
        return [*_posts(3), bad]

    with pytest.raises(ServiceError):
        world.author.write_many(world.branch, plan)
    assert _count(world) == 1
    world.author.write_many(world.branch, _posts(1))
    assert _count(world) == 2
