"""Public-key operations of an epoch by members, as docs/understanding/epochs-and-keys.md states them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from nacl import bindings
from trio.testing import MockClock

from benchmarks.common import batches
from node.authoring.drafting import Draft
from node.ingest.acceptance import release_more
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch
from node.membership.epoch_keys import KeyTaker
from protocol.crypto import epoch_boxes
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Permission, Remove
from tests.support.batches import accept_whole
from tests.support.nodes import open_nodes, share

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]  # keys are not about rows
_OTHERS: Final = 18


@pytest.mark.parametrize("held", [Permission.WRITE, Permission.READ])
async def test_an_epoch_costs_its_author_three_values_a_writer_and_others_one_a_member(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, held: Permission
) -> None:
    count = 0

    def scalarmult(secret: bytes, point: bytes) -> bytes:
        nonlocal count
        count += 1
        return bindings.crypto_scalarmult(secret, point)

    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        repo, root = alice.repo(), alice.replica.root_branch(alice.repo())
        users = [key_pair(UserSeed(bytes([number]) * 32))[0] for number in range(1, _OTHERS + 2)]
        alice.author.write_many(root, [Draft(Grant(user, held)) for user in users], stored=IngestResult())
        alice.author.write(root, Remove(users[0], None, ()))
        patched = SimpleNamespace(**{**vars(bindings), "crypto_scalarmult": scalarmult})
        monkeypatch.setattr(epoch_boxes, "bindings", patched)
        alice.author.preparation.prepare(repo, IngestResult())
        members, readers = _OTHERS + 2, _OTHERS if held is Permission.READ else 0
        assert count == 3 * members - readers
        count = 0
        keys = KeyTaker(bob.replica, bob.author)
        done: set[bytes] = set()
        while fresh := [one for one in bob.replica.topics.values() if one.topic not in done]:
            for topic in fresh:
                done.add(topic.topic)
                for items in batches(alice.replica, alice.replica.by_topic[topic.topic]):
                    accept_whole(bob.replica, topic, open_batch(topic, items), bob.now())
            while keys.take(bob.repo()):
                release_more(bob.replica, bob.now())
        assert count == members + 2
        assert bob.replica.writing_epoch(bob.repo()) == alice.replica.writing_epoch(repo)
