"""Vectors of whole syncs of one topic: all that both sides say, from the announcements to equal summaries.

Made by the session machines in the simulated network, where a commit is its own publication: one byte with the number of
its acks, the acks, and 8 further bytes; its id is the hash. So the messages can be compared without keys.
"""

from typing import Any, Final

from protocol.crypto.hashing import blind_topic, block_id
from protocol.ids import CommitId, TopicKey
from protocol.session.messages import encode_message
from protocol.session.outputs import Output, Send
from tests.simulation.network import End, Link, Network, Node
from tests.simulation.store import Topic, acks_of
from tests.support.ids import as_commit_id

JsonObject = dict[str, Any]
TOPIC: Final = TopicKey(block_id(b"topic"))
ENOUGH_SECONDS: Final = 60.0
"""Of simulated time: several looks whether all is equal."""


class _Ordered(Topic):
    """A topic that names heads as a real store does: those of highest rank first, then the smaller ids."""

    def heads(self) -> list[CommitId]:
        ranks: dict[CommitId, int] = {}
        for commit in self.commits:
            acks = acks_of(commit) or ()
            ranks[CommitId(block_id(commit))] = 1 + max((ranks[ack] for ack in acks), default=-1)
        return sorted(super().heads(), key=lambda head: (-ranks[as_commit_id(head)], head))


class _Recorded(Network):
    """A network that notes what each node says."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.said: dict[str, list[bytes]] = {}

    def _perform(self, link: Link, end: End, output: Output) -> None:
        if isinstance(output, Send):
            self.said.setdefault(end.node.name, []).append(encode_message(output.message))
        super()._perform(link, end, output)


def _chain(start: int, count: int, first_acks: tuple[bytes, ...] = ()) -> list[bytes]:
    """So many commits, each of which acks the one before."""
    made: list[bytes] = []
    acks = first_acks
    for number in range(start, start + count):
        made.append(bytes([len(acks)]) + b"".join(acks) + number.to_bytes(8, "little"))
        acks = (block_id(made[-1]),)
    return made


def syncs() -> list[JsonObject]:
    """One side is behind; both wrote apart, on one head and on more; both hold the same."""
    common = _chain(0, 8)
    head = (block_id(common[-1]),)
    return [
        _sync("the acceptor is two commits behind", [*common, *_chain(8, 2, head)], common),
        _sync("the dialer is two commits behind", common, [*common, *_chain(8, 2, head)]),
        _sync("the acceptor has nothing", common[:3], []),
        _sync("both wrote", [*common, *_chain(8, 3, head)], [*common, *_chain(20, 2, head)]),
        _sync(
            "both wrote, and one has two heads",
            [*common, *_chain(8, 2, head)],
            [*common, *_chain(20, 2, head), *_chain(30, 1, head)],
        ),
        _sync("both hold the same", common, common),
    ]


def _sync(name: str, dialer: list[bytes], acceptor: list[bytes]) -> JsonObject:
    network = _Recorded()
    held: dict[str, list[bytes]] = {}
    for side, commits in (("dialer", dialer), ("acceptor", acceptor)):
        node = network.nodes[side] = Node(side)
        topic = node.store.topics[TOPIC] = _Ordered()
        topic.accept(commits)
        held[side] = list(topic.commits)  # in the order of the store, which is that of sending
    network.connect(*network.nodes.values())
    network.ends_at = ENOUGH_SECONDS
    (link,) = network.nodes["dialer"].links.values()
    network.run(lambda: None)
    first, second = (node.store.topics[TOPIC].nums.keys() for node in network.nodes.values())
    assert (first, network.closed) == (second, []), "equal in the end"
    session_id = link.ends[0].session_id
    return {
        "name": name,
        "session_id": session_id.hex(),
        "topic": TOPIC.hex(),
        "blinded_topic": blind_topic(TOPIC, session_id).hex(),
        **{f"{side}_holds": [commit.hex() for commit in commits] for side, commits in held.items()},
        **{f"{side}_says": [frame.hex() for frame in network.said[side]] for side in held},
    }
