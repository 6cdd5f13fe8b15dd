"""Announced topics: floods of void epochs, relays with bounds, and announcing only what is in use (a later design).

Here a topic is a set of ids, and a node knows some topics. In a session two nodes compare the topics that one of them
announces and both know. A post in the epoch in use (topic 0) may ack what lies on other topics; then it is accepted only
with these.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

Announce = Callable[["Peer", "Peer"], list[int]]


@dataclass
class Peer:
    """A node with what it holds by topic; `acks` are of all posts in the world."""

    name: str
    bound: int
    acks: dict[int, frozenset[int]]
    sets: dict[int, set[int]] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)
    in_use: int = 0
    counting: set[int] = field(default_factory=set)
    turn: int = 0
    equal: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict)
    room: int = 10**9  # a relay: topics that it stores at most
    is_relay: bool = False

    def accepted(self) -> set[int]:
        """Return what has all that it acks."""
        here = set().union(*self.sets.values()) if self.sets else set()
        found: set[int] = set()
        while more := {one for one in here - found if self.acks.get(one, frozenset()) <= found}:
            found |= more
        return found

    def is_lacking(self) -> bool:
        """Return True if something waits for what is not here."""
        return set().union(*self.sets.values(), set()) != self.accepted()

    def others(self) -> list[int]:
        """Return the topics that are not in use, those that count first, then void ones."""
        rest = self.known - {self.in_use}
        return sorted(rest, key=lambda topic: (topic not in self.counting, topic))

    def turns(self) -> list[int]:
        """Return other topics for this session: those that count always, void ones in turns."""
        first = [t for t in self.others() if t in self.counting]
        void = [t for t in self.others() if t not in self.counting]
        room = max(1, self.bound - 1 - len(first))
        start = self.turn * room % len(void) if void else 0
        return first + (void[start:] + void[:start])[:room]


def meet(one: Peer, other: Peer, announce: Announce) -> None:
    """Compare the topics that one side announces and the other knows, within both bounds."""
    joined = set()
    for mine, theirs in ((one, other), (other, one)):
        joined |= set(announce(mine, theirs)[: mine.bound]) & theirs.known
    for topic in joined:
        if one.is_relay or other.is_relay:
            relay = one if one.is_relay else other
            if topic not in relay.sets and len(relay.sets) >= relay.room:
                continue
        whole = one.sets.get(topic, set()) | other.sets.get(topic, set())
        one.sets[topic], other.sets[topic] = set(whole), set(whole)
        one.equal[other.name, topic] = other.equal[one.name, topic] = frozenset(whole)
    one.turn += 1
    other.turn += 1


def everything_in_order(mine: Peer, _: Peer) -> list[int]:
    """Announce the epoch in use, then those that count, then void ones: always the same first ones."""
    return [mine.in_use, *mine.others()]


def in_turns(mine: Peer, _: Peer) -> list[int]:
    """Announce the epoch in use and those that count, and in the rest of the room void ones in turns."""
    return [mine.in_use, *mine.turns()]


def in_use_alone(mine: Peer, _: Peer) -> list[int]:
    """Announce the epochs in use; others, in turns, while something is lacking there."""
    return [mine.in_use, *(mine.turns() if mine.is_lacking() else ())]


def in_use_and_changed(mine: Peer, theirs: Peer) -> list[int]:
    """Announce besides what changed here since it was equal at this peer."""
    lacking = mine.turns() if mine.is_lacking() else []
    changed = [
        t
        for t in mine.others()
        if mine.equal.get((theirs.name, t), frozenset()) != frozenset(mine.sets.get(t, ()))
    ]
    return [mine.in_use, *dict.fromkeys([*lacking, *changed])]


def run_void_inits(_: int) -> tuple[list[str], list[str]]:
    """An excluded admin starts n void epochs with a void post in each; V accepted all, and acks them in the epoch in use."""
    lines, faults = [], []
    for n, bound, relay_room, is_acked in (
        (50, 10, 0, True), (50, 10, 0, False), (200, 10, 0, True),
        (50, 10, 1000, True), (50, 10, 20, True), (50, 10, 20, False),
    ):  # fmt: skip
        row = {}
        for policy in (everything_in_order, in_turns, in_use_alone):
            posts = {topic: 1000 + topic for topic in range(1, n + 1)}
            acks = {1: frozenset(posts.values()) if is_acked else frozenset()}
            v = Peer("V", bound, acks, {0: {1}, **{t: {p} for t, p in posts.items()}}, {0, *posts})
            f = Peer("F", bound, acks, {}, {0, *posts})
            relay = Peer("*", 10**9, {}, {}, {0, *posts}, room=relay_room or 10**9, is_relay=True)
            pairs = [(v, relay), (f, relay)] if relay_room else [(v, f)]
            all_, post = _sessions(pairs, f, policy, v.accepted(), 1)
            row[policy.__name__] = f"post {post}, all {all_}"
            if policy is in_turns and (not relay_room or relay_room > n) and "never" in row[policy.__name__]:
                faults.append(f"void epochs: {row[policy.__name__]} of {n}, {bound} at a time")
        by = f"by a relay that stores {relay_room} topics" if relay_room else "directly"
        what = f"{n} void epochs, {bound} topics a session, {by}, {'acked' if is_acked else 'not acked'}"
        lines.append(f"{what}: " + "; ".join(f"{name}: {said}" for name, said in row.items()))
    return lines, faults


def _sessions(
    pairs: list[tuple[Peer, Peer]], last: Peer, policy: Announce, whole: set[int], post: int
) -> tuple[str, str]:
    first_post = "never"
    for count in range(1, 300):
        for one, other in pairs:
            meet(one, other, policy)
        if post in last.accepted() and first_post == "never":
            first_post = str(count)
        if last.accepted() >= whole:
            return str(count), first_post
    return "never", first_post


def run_announced(seed: int, rounds: int = 400) -> tuple[list[str], list[str]]:
    """Compare ways to announce in random worlds: nodes write in the epoch that they know to be in use, also late."""
    lines, faults = [], []
    for policy in (in_turns, in_use_alone, in_use_and_changed):
        stuck, example = 0, ""
        for number in range(rounds):
            history = _draw(random.Random(f"{seed} {number}"), policy)
            if history is not None:
                stuck += 1
                example = example if example and len(example) < len(history) else history
        shown = f", e.g. {example}" if example else ""
        lines.append(f"{policy.__name__}: {stuck} of {rounds} random worlds never become equal{shown}")
        if stuck and policy is not in_use_alone:
            faults.append(f"announced: {policy.__name__} does not converge: {example}")
    return lines, faults


def _draw(chance: random.Random, policy: Announce) -> str | None:
    """Return a history after which meeting for ever does not make nodes equal; None if it does."""
    acks: dict[int, frozenset[int]] = {}
    peers = [Peer(name, 4, acks, {}, {0, 1, 2, 3}, counting={0, 1, 2, 3}) for name in "FVW"]
    relay = Peer("*", 10**9, {}, {}, {0, 1, 2, 3}, is_relay=True)
    story, one = [], 10
    for _ in range(chance.randint(2, 6)):
        peer = chance.choice(peers)
        what = chance.random()
        if what < 0.4:
            acks[one] = frozenset(
                x for x in peer.accepted() if not any(x in acks[y] for y in peer.accepted())
            )
            peer.sets.setdefault(peer.in_use, set()).add(one)
            story.append(f"{peer.name} writes in {peer.in_use}")
            one += 1
        elif what < 0.7:
            peer.in_use = min(3, peer.in_use + 1)
            story.append(f"{peer.name} goes on to {peer.in_use}")
        else:
            other = chance.choice([p for p in [*peers, relay] if p is not peer])
            meet(peer, other, policy)
            story.append(f"{peer.name} meets {other.name}")
    last = max(peer.in_use for peer in peers)
    for peer in peers:
        peer.in_use = last  # all have heard of the epoch in use: it is opened and handed over
    for _ in range(40):
        for peer in peers:
            meet(peer, relay, policy)
        for i, peer in enumerate(peers):
            for other in peers[i + 1 :]:
                meet(peer, other, policy)
    wholes = [peer.accepted() for peer in peers]
    return None if all(whole == wholes[0] for whole in wholes) else "; ".join(story)


def run_relay_quotas(_: int) -> tuple[list[str], list[str]]:
    """A relay stores q commits of a topic. A reader fills T of an epoch; writers' commits are on W, the init's echo on T."""
    lines, faults = [], []
    quota = 20
    for echo_first in (True, False):
        stored: dict[str, list[str]] = {"T": [], "W": []}
        echo, leaves = [("T", "init (echo)")], [("T", f"leave {n}") for n in range(2 * quota)]
        deposits = [*echo, *leaves] if echo_first else [*leaves, *echo]
        deposits += [("W", f"post {n}") for n in range(6)] + [("T", "join of a reader")]
        for topic, what in deposits:
            if len(stored[topic]) < quota:
                stored[topic].append(what)
        has_init, posts = "init (echo)" in stored["T"], sum("post" in what for what in stored["W"])
        when = "before the flood" if echo_first else "after it"
        join = "join of a reader" in stored["T"]
        lines.append(
            f"init's echo deposited {when}: stored: init {has_init}, {posts} of 6 posts, a reader's join {join}"
        )
        if posts != 6 or (echo_first and not has_init):
            faults.append("relay: a reader keeps writers' commits out")
    return lines, faults
