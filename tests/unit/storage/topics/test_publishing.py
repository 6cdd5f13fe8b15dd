"""A commit that another brought is signed for the first peer that it is sent to, and for no further one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from node.ingest.replica import Replica
from protocol.crypto import signing
from protocol.crypto.keys import SigningKey
from protocol.ids import Digest, Signature
from storage.repos.epochs import Topic
from storage.topics import publishing
from storage.topics.publishing import MadeSignatures, load_publications
from tests.support.builders import World, give, writing_topic
from tests.support.ids import as_commit_id


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> list[Digest]:
    """What was signed."""
    found: list[Digest] = []
    sign = signing.sign

    def note(secret: SigningKey, digest: Digest) -> Signature:
        found.append(digest)
        return sign(secret, digest)

    monkeypatch.setattr(signing, "sign", note)
    return found


def _load(replica: Replica, topic: Topic, nums: list[int], signatures: MadeSignatures | None) -> list[bytes]:
    with replica.database.read() as connection:
        return load_publications(connection, topic, nums, 1 << 20, signatures)


@pytest.mark.parametrize("count", [3, 12])
def test_further_peers_get_what_the_first_got_without_a_signature_made(
    world: World, signed: list[Digest], count: int
) -> None:
    made = world.write(", ".join(f"post {number}" for number in range(count)))
    replica, branch = world.copy()
    topic = writing_topic(replica, branch)
    nums = give(replica, world.publications(world.branch)).accepted[topic.topic]
    assert len(nums) == len(made) == count
    signed.clear()
    first = _load(replica, topic, nums, replica.signatures)
    assert len(signed) == count
    assert first == _load(replica, topic, nums, replica.signatures) == world.publications(world.branch)[1:]
    assert len(signed) == count
    assert _load(replica, topic, nums, None) == first
    assert len(signed) == 2 * count


def test_the_latest_signatures_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "SIGNATURES_MAX", 3)
    signatures = MadeSignatures()
    ids = [as_commit_id(bytes([number]) * 32) for number in range(5)]
    hidden, made = b"h" * 32, [Signature(bytes([number]) * 64) for number in range(5)]
    signatures.keep({(ids[0], hidden): made[0], (ids[1], hidden): made[1]})
    signatures.keep({(one, hidden): signature for one, signature in zip(ids[2:], made[2:], strict=True)})
    assert [signatures.find(one, hidden) for one in ids] == [None, None, *made[2:]]
    assert signatures.find(ids[4], b"other".ljust(32)) is None
