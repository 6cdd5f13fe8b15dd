"""One run: some nodes write and forward while links are cut, go silent and come back, nodes crash, and one peer lies.

Then everything heals, and all who follow a topic must hold the same of it. `python -m tests.simulation.run` replays
a seed, or many from it on; see the Makefile's `sim` and `sim-long`. A run is a function of its seed, so runs of a
part that was stopped go on from the seed that it named last.
"""

import argparse
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import Digest, SessionId, ShortId, TopicKey
from protocol.session.messages import (
    Announce,
    Blocks,
    Deposit,
    Fetch,
    Message,
    Publications,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    Summary,
    Want,
    encode_message,
)
from tests.simulation.network import End, Link, Network, Node, check, check_met, check_stores

_FAULTS_UNTIL = 60.0
_HEALED_AFTER = 600.0
_LEARNT_UNTIL = 20.0
_FEW = (
    ("room", "TOPIC_COUNT_MAX", 4),
    ("session", "TOPIC_COUNT_MAX", 4),
    ("session", "TOPICS_SETTLING_MAX", 2),
)
"""Bounds of a link that takes few topics at once."""
_TOLD_SECONDS = 60.0
"""Seconds between two lines that say how far it is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: how many things happened, and when the last did.

    `has_epochs`: some topics were of ended epochs. `has_turns`: few topics had room at once.
    """

    events: int
    ended_at: float
    has_epochs: bool
    has_turns: bool


def run(seed: int) -> Outcome:
    """Run one seed. Raises AssertionError, which names what does not hold.

    In some runs few topics of a link have room at once, in some all are of one repo's epochs.
    """
    with ExitStack() as bounds:
        network = Network(seed)
        has_turns = network.chance.random() < 0.5
        for place, name, bound in _FEW if has_turns else ():
            bounds.enter_context(patch(f"protocol.session.{place}.{name}", bound))
        return _run(network, has_turns=has_turns)


def _run(network: Network, *, has_turns: bool) -> Outcome:
    chance = network.chance
    topics = [TopicKey(chance.randbytes(32)) for _ in range(chance.choice([1, 2, 4, 30]))]
    if chance.random() < 0.5:
        network.epochs = topics
    for number in range(chance.randint(2, 8)):
        node = network.nodes[f"n{number}"] = Node(f"n{number}")
        followed = set(chance.sample(topics, chance.randint(1, len(topics))))
        if network.epochs:
            followed.add(topics[0])
        order = sorted(followed, key=topics.index)
        if network.epochs:
            known = chance.randint(1, len(order))
            order, node.coming = order[:known], order[known:]
            if chance.random() < 0.5:  # keys of earlier epochs come late
                chance.shuffle(node.coming)
        elif has_turns:  # what two have in common may be the last of many on both
            order += [TopicKey(chance.randbytes(32)) for _ in range(chance.randint(0, 20))]
            chance.shuffle(order)
        for topic in order:
            node.follow(topic)
    liar = chance.choice([None, *network.nodes.values()]) if len(network.nodes) > 2 else None
    _plan(network, topics, liar)
    network.run(lambda: check(network), _FAULTS_UNTIL)
    honest = [node for node in network.nodes.values() if node is not liar]
    check_stores(network)

    for node in network.nodes.values():
        network.crash(node)
    for first in honest:  # all of them, so that anyone who follows a topic meets all others who do
        for second in honest:
            if first.name < second.name:
                network.connect(first, second)
    network.closed.clear()
    for node in network.nodes.values():
        for _ in node.coming:
            network.after(chance.uniform(0, _LEARNT_UNTIL), partial(network.learn, node))
    for _ in range(network.chance.randint(0, 30)):  # while they compare, and after
        node = network.chance.choice(honest)
        topic = TopicKey(network.chance.choice(list(node.store.topics)))
        network.after(network.chance.uniform(0, 1), partial(network.write, node, topic))
    network.ends_at = network.now + _HEALED_AFTER / 2
    network.run(lambda: check(network), network.now + _HEALED_AFTER)
    check_stores(network)
    check_met(network)
    assert not network.closed, f"honest peers left: {network.closed}"
    for topic in topics:
        held = [set(node.store.topics[topic].nums) for node in honest if topic in node.store.topics]
        assert all(one == held[0] for one in held), "not all hold the same"
    return Outcome(network.event_count, network.now, bool(network.epochs), has_turns)


def _plan(network: Network, topics: list[TopicKey], liar: Node | None) -> None:
    chance = network.chance
    nodes = list(network.nodes.values())
    for _ in range(chance.randint(5, 120)):
        node, topic = chance.choice(nodes), chance.choice(topics)
        if topic in node.store.topics or topic in node.coming:
            network.after(chance.uniform(0, _FAULTS_UNTIL), partial(network.write, node, topic))
    for node in nodes:
        for _ in range(chance.randint(0, len(node.coming))):  # others come when all has healed
            network.after(chance.uniform(0, _FAULTS_UNTIL), partial(network.learn, node))
    for _ in range(chance.randint(3, 40)):
        first, second = chance.sample(nodes, 2)
        network.after(
            chance.uniform(0, _FAULTS_UNTIL),
            partial(network.connect, first, second),
        )
    faults = [_cut, _silence, _crash]
    for _ in range(chance.randint(0, 30)):
        fault = chance.choice(faults)
        network.after(chance.uniform(0, _FAULTS_UNTIL), partial(fault, network))
    if liar is not None:
        for _ in range(chance.randint(1, 60)):
            network.after(chance.uniform(0, _FAULTS_UNTIL), lambda: _lie(network, liar, topics))


def _some_link(network: Network) -> Link | None:
    links = {link.number: link for node in network.nodes.values() for link in node.links.values()}
    return links[network.chance.choice(sorted(links))] if links else None


def _cut(network: Network) -> None:
    link = _some_link(network)
    if link is not None:
        network.cut(link)


def _silence(network: Network) -> None:
    """Nothing arrives any more in one direction, until somebody notices."""
    link = _some_link(network)
    if link is not None:
        link.silent.add(network.chance.randint(0, 1))
        network.after(network.chance.uniform(1, 20), lambda: network.cut(link))


def _crash(network: Network) -> None:
    network.crash(network.chance.choice(list(network.nodes.values())))


def _lie(network: Network, liar: Node, topics: list[TopicKey]) -> None:
    """Say something that no honest node would, or not now."""
    chance = network.chance
    if not liar.links:
        return
    link = liar.links[chance.choice(sorted(liar.links))]
    end: End = next(one for one in link.ends if one.node is liar)
    topic = blind_topic(chance.choice(topics), SessionId(chance.choice([end.session_id, bytes(32)])))
    some: Any = tuple(chance.randbytes(32) for _ in range(chance.randint(1, 4)))
    again = announced_topic(chance.choice(topics), end.session_id, by_dialer=end.session.is_dialer)
    lies: list[Message] = [
        Announce(some),
        Announce((again,)),
        Summary(
            topic,
            chance.randint(0, 1),
            tuple(ShortId(raw[:16]) for raw in some),
            chance.randint(0, 2**40),
            Digest(some[0]),
        ),
        Reconcile(topic, chance.randint(0, 7), chance.randbytes(20)),
        Publications(topic, some),
        Receipt(topic),
        Want(topic, some),
        Fetch(topic, some),
        Blocks(topic, (b"",)),
        Deposit(some),
        Relay(),
        Refused(topic, "topic_full"),
    ]
    frame = encode_message(chance.choice(lies))
    network.say(link, end, frame if chance.random() < 0.9 else chance.randbytes(40))


class _Tally:
    """Sum of the runs so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._count = Counter[str]()
        self._hours = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count a run that holds."""
        self._count["runs"] += 1
        self._count["events"] += outcome.events
        self._count["epochs"] += outcome.has_epochs
        self._count["turns"] += outcome.has_turns
        self._count["both"] += outcome.has_epochs and outcome.has_turns
        self._hours += outcome.ended_at / 3600

    def tell(self, seed: int) -> None:
        """Say what the runs up to this seed came to."""
        count, seconds = self._count, time.monotonic() - self._began
        print(
            f"{count['runs']} runs hold, the last of seed {seed} ({count['runs'] / max(seconds, 0.001):.2f} a second): "
            f"{count['epochs']} with ended epochs, {count['turns']} with turns of topics, {count['both']} with both; "
            f"{count['events']} events in {self._hours:.1f} simulated hours",
            flush=True,
        )


def main() -> int:
    """Run seeds; 1 when one fails, which is named with how to replay it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=1, help="how many")
    options = parser.parse_args()
    tally, told_at = _Tally(), time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        try:
            tally.add(run(seed))
        except AssertionError as error:
            print(f"seed {seed} fails: {error}\nreplay it: make sim SEED={seed}", file=sys.stderr)
            return 1
        if time.monotonic() - told_at >= _TOLD_SECONDS:
            told_at = time.monotonic()
            tally.tell(seed)
    tally.tell(options.seed + options.count - 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
