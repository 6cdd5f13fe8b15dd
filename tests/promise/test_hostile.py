"""Tests what adversaries give to whom they meet."""

from types import SimpleNamespace
from typing import Any

import trio

from protocol.crypto.keys import EpochKey, UserSeed
from protocol.ids import EpochId, RepoId, TopicKey, UserId
from storage.repos.epochs import Epoch, Topic
from tests.promise import hostile
from tests.promise.forging import Forge, Forged
from tests.support.ids import as_commit_id

_NAME = TopicKey(b"t" * 32)


class _Taker:
    """Stands for a person's node, which follows one topic at most, and notes what comes."""

    name, has_repo = "ann", True

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self.by_topic: dict[TopicKey, Topic] = {}
        self.replica = self.hub = self.intake = self

    async def ingest(self, _topic: Topic, items: list[bytes], *_: object) -> None:
        self.came += items


def _topic(num: int, *epochs: bytes) -> Topic:
    key = EpochKey(b"k" * 32)
    made = (Epoch(0, 1, RepoId(b"r" * 32), EpochId(as_commit_id(one * 32)), key) for one in epochs)
    return Topic(num, _NAME, 1, tuple(made))


def test_what_a_node_may_have_dropped_is_given_again_once_it_can_place_it() -> None:
    # As peers do, who find that it is lacking. The judge is given all of it at once.
    world: Any = SimpleNamespace(forged_epochs={}, forges={}, taken={})
    cat: Any = SimpleNamespace(name="cat", user=UserId(b"C" * 32), user_seed=UserSeed(b"c" * 32))
    forge = world.forges["cat"] = Forge(world, cat)
    ann: Any = _Taker()
    forge.given.append(Forged(_NAME, b"of y", None))
    counts = []
    for topic in (None, _topic(1, b"x"), _topic(1, b"x"), _topic(1, b"x", b"y"), None, _topic(2, b"x", b"y")):
        ann.by_topic = {} if topic is None else {_NAME: topic}
        trio.run(hostile._give, world, cat, ann)
        counts.append(len(ann.came))
    assert counts == [0, 1, 1, 2, 2, 3]
