"""Attacks with publications: by members who hold secrets, and by users who no longer have a right."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import trio

from protocol.crypto.keys import BlockKey, UserSeed
from protocol.formats.body import BranchRoot, Tag
from protocol.formats.commit import NO_BRANCH
from protocol.formats.content import Post
from protocol.ids import BlindTopic, CommitId
from protocol.limits.formats import ACK_COUNT_MAX
from protocol.session.messages import Publications, Receipt
from tests.hostile.commits import Feed, Forged, of_another_version, publish, without_kind
from tests.hostile.peer import Attacker, HostilePeer
from tests.hostile.stage import EXCLUDED, READER, WRITER
from tests.hostile.table import Role, Work, attack
from tests.support.ids import as_commit_id


async def _send_rounds(
    mallory: Attacker, peer: HostilePeer, topic: BlindTopic, make: Callable[[], Sequence[Forged]]
) -> None:
    async for _ in mallory.rounds():
        await peer.publish(topic, make())


def _merges(feed: Feed, acks: Sequence[CommitId], count: int) -> list[Forged]:
    return [feed.first(acks) for _ in range(count)]


@attack(Role.WRITER, stores={"rejections": 30}, work=Work(signatures=60, opened=30))
async def merges_with_an_implied_ack(mallory: Attacker) -> None:
    """An ack that another one acks is found among the acks of acks, and no more of the graph is looked at (H1)."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed, chain = mallory.feed(mallory.stage.main, WRITER), mallory.stage.chain
    await _send_rounds(
        mallory, peer, topic, lambda: _merges(feed, chain[-1:-3:-1], 10 * min(mallory.size, 10))
    )


@attack(Role.WRITER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=600))
async def merges_with_an_old_ack(mallory: Attacker) -> None:
    """An ack that others imply from afar is an ack like others, and costs what they cost."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed, chain = mallory.feed(mallory.stage.main, WRITER), mallory.stage.chain
    acks = (chain[-1], chain[1])
    await _send_rounds(
        mallory, peer, topic, lambda: [feed.go_on(acks) for _ in range(10 * min(mallory.size, 10))]
    )


@attack(Role.EXCLUDED, stores={"rejections": 30}, work=Work(signatures=60, opened=30))
async def merges_of_the_excluded(mallory: Attacker) -> None:
    """Who has no right is refused, whatever is merged (H1)."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.old_main)
    feed = mallory.feed(stage.old_main, UserSeed(b"somebody else".ljust(32, b"-")), stage.seen_before)
    acks = (stage.chain[9], stage.chain[1])  # of the first epoch
    await _send_rounds(mallory, peer, topic, lambda: _merges(feed, acks, 10 * min(mallory.size, 10)))


@attack(Role.READER, stores={"rejections": 30}, work=Work(signatures=60, opened=30))
async def merges_of_a_reader(mallory: Attacker) -> None:
    """A reader holds the key of the epoch's own topic, and is refused there (H1)."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.own_root)
    feed, chain = mallory.feed(stage.own_root, READER), stage.root_chain
    tag = Tag("name", stage.main.facts.branch_id, None)

    def make() -> list[Forged]:
        return [feed.first((chain[-1], chain[1]), tag) for _ in range(10 * min(mallory.size, 10))]

    await _send_rounds(mallory, peer, topic, make)


@attack(Role.READER, stores={"rejections": 30}, work=Work(signatures=60, opened=30))
async def posts_of_a_reader(mallory: Attacker) -> None:
    """All who hold an epoch publish on its own topic, in any branch; who may not write is refused there."""
    stage = mallory.stage
    peer = await mallory.meet()
    target = replace(stage.main, by_writer=False)
    topic = await peer.join_alike(target)
    feed = mallory.feed(target, READER)
    await _send_rounds(
        mallory, peer, topic, lambda: _merges(feed, stage.chain[-1:], 10 * min(mallory.size, 10))
    )


@attack(
    Role.WRITER,
    stores={"commits": 10, "pending": 20, "pending_publications": 20, "pending_causes": 260},
    work=Work(signatures=60, opened=60, statements=1000),
)
async def waiting_for_many_causes(mallory: Attacker) -> None:
    """A commit that waits is opened once, however many of its causes come one by one (H2)."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)
    feed = mallory.new_feed(stage.main, WRITER)
    causes = [feed.go_on((stage.main.facts.root_id,)) for _ in range(12 * min(mallory.size, 5))]
    ids = [one.commit_id for one in causes]
    waiting = [publish(stage.main, feed.draft(ids)) for _ in range(20 * mallory.size)]
    await peer.publish(topic, waiting)
    for cause in causes[:-2]:  # the others never come
        await peer.publish(topic, [cause])


@attack(Role.READER, stores={"rejections": 31}, work=Work(signatures=70, opened=100))
async def waiting_on_the_own_topic(mallory: Attacker) -> None:
    """What a reader has wait on an epoch's topic is opened twice more at most: for keys, and when its cause comes (H2)."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.own_root)
    feed = mallory.new_feed(stage.own_root, READER)
    tag = Tag("name", stage.main.facts.branch_id, None)
    cause = feed.first(stage.root_chain[-1:], tag)
    await peer.publish(topic, [feed.first((cause.commit_id,), tag) for _ in range(30 * mallory.size)])
    await peer.publish(topic, [cause])


@attack(
    Role.WRITER,
    stores={"pending": 15, "pending_publications": 15, "pending_causes": 15 * ACK_COUNT_MAX},
    work=Work(signatures=30, opened=20),
)
async def causes_that_do_not_exist(mallory: Attacker) -> None:
    """Commits with 128 unknown acks wait within the bounds of their topic and author (H2)."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)

    def make() -> list[Forged]:
        many = [
            [as_commit_id(secrets.token_bytes(32)) for _ in range(ACK_COUNT_MAX)]
            for _ in range(5 * mallory.size)
        ]
        return [feed.first(acks) for acks in many]

    await _send_rounds(mallory, peer, topic, make)


@attack(Role.EXCLUDED, stores={"commits": 16, "rejections": 60}, work=Work(signatures=70, opened=70))
async def backdated_commits(mallory: Attacker) -> None:
    """What the excluded says to have written before is kept as void up to a bound (L8)."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.old_main)
    feed = mallory.feed(stage.old_main, EXCLUDED, stage.seen_before)
    await _send_rounds(
        mallory, peer, topic, lambda: [feed.go_on(stage.chain[:1]) for _ in range(20 * min(mallory.size, 10))]
    )


@attack(Role.READER, ends=("bad_topic_signature", ""), work=Work(signatures=30, opened=15))
async def forged_topic_signatures(mallory: Attacker) -> None:
    """What no holder of the topic's key published is neither kept nor passed on, if it is not accepted (B)."""
    stage = mallory.stage
    target, feed = stage.main, mallory.new_feed(stage.main, READER)
    peer = await mallory.meet()
    topic = await peer.join_alike(target)
    waiting = [
        publish(target, feed.draft([as_commit_id(secrets.token_bytes(32))]), is_signed=False)
        for _ in range(5)
    ]
    unread = [of_another_version(target, is_signed=False) for _ in range(5)]
    rejected = [publish(target, feed.draft(stage.chain[:1]), is_signed=False) for _ in range(5)]
    async for _ in mallory.rounds():
        for forged in (waiting, unread, rejected):
            await peer.publish(topic, forged)


@attack(Role.WRITER, stores={"commits": 1}, work=Work(signatures=3, opened=3))
async def commits_without_a_kind(mallory: Attacker) -> None:
    """A body whose commit does not say its kind is never erased, so that newcomers get it (A)."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)
    await peer.publish(topic, [without_kind(feed, mallory.stage.chain[-1:])])


@attack(Role.WRITER, stores={"commits": 10}, work=Work(signatures=60, opened=80))
async def the_same_publications(mallory: Attacker) -> None:
    """A publication that comes again and again is stored once, and acknowledged each time."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)
    same = mallory.kept.setdefault("same", [])
    if not same:
        same += [feed.go_on(mallory.stage.chain[:1]) for _ in range(10)]
    await _send_rounds(mallory, peer, topic, lambda: same)


@attack(Role.WRITER, ends=("other_topic",))
async def publications_of_another_topic(mallory: Attacker) -> None:
    """What was published on another topic ends the connection."""
    stage = mallory.stage
    for target in (stage.own_root, stage.old_main):
        peer = await mallory.meet()
        topic = await peer.join_alike(stage.main)
        other = mallory.new_feed(target, WRITER).first(stage.chain[:1])
        await peer.say(Publications(topic, (other.encoded,)))
        await peer.wait_ended()


@attack(Role.WRITER, work=Work(signatures=45, opened=30))
async def commits_that_say_another_topic(mallory: Attacker) -> None:
    """A commit that says another epoch, or the epoch's other topic, is dropped, and nothing is held against its id."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)
    old = stage.old_main.epoch.epoch_id
    of_others = (
        replace(stage.main, epoch=replace(stage.main.epoch, epoch_id=old)),
        replace(stage.main, by_writer=False),
    )
    feeds = [mallory.new_feed(target, WRITER) for target in of_others]
    made = [publish(stage.main, feed.draft(stage.chain[:1])) for feed in feeds for _ in range(5)]
    await _send_rounds(mallory, peer, topic, lambda: made)


@attack(Role.READER, ends=("",), work=Work(signatures=30, opened=15))
async def commits_that_say_to_be_by_a_writer(mallory: Attacker) -> None:
    """What a reader publishes on an epoch's own topic, as if it stood on the writers', is dropped."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.own_root)
    feed = mallory.new_feed(stage.main, READER)
    made = [publish(stage.own_root, feed.draft(stage.chain[:1])) for _ in range(5)]
    await _send_rounds(mallory, peer, topic, lambda: made)


@attack(
    Role.WRITER,
    stores={"pending": 15, "pending_publications": 15, "pending_causes": 15},
    work=Work(signatures=30, opened=45, statements=600),
)
async def branches_that_nobody_adds(mallory: Attacker) -> None:
    """First commits of branches that were never added wait within the bounds of their topic and author."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)
    nowhere = replace(stage.main, facts=replace(stage.main.facts, branch_id=NO_BRANCH))
    feed = mallory.new_feed(nowhere, WRITER)
    await _send_rounds(
        mallory, peer, topic, lambda: [feed.first((), BranchRoot()) for _ in range(5 * mallory.size)]
    )


@attack(Role.READER, ends=("bad_publication:bad_shape",))
async def garbage_publications(mallory: Attacker) -> None:
    """What is no publication ends the connection, whatever its size."""
    for size in (1, 1000, 1_000_000):
        peer = await mallory.meet()
        topic = await peer.join_alike(mallory.stage.main)
        await peer.say(Publications(topic, (secrets.token_bytes(size),)))
        await peer.wait_ended()


@attack(Role.WRITER, ends=("too_many_batches", "bad_publication:bad_shape"))
async def too_many_batches(mallory: Attacker) -> None:
    """More than four batches without a receipt are not taken."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    await peer.say(*[Publications(topic, (b"x",))] * 20)
    await peer.wait_ended()


@attack(Role.WRITER, work=Work(opened=30))
async def publications_that_do_not_open(mallory: Attacker) -> None:
    """A hidden key that is wrong is dropped and not remembered, or the commit itself could not come any more."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)
    feed = mallory.new_feed(stage.main, WRITER)

    def make() -> list[Forged]:
        sealed = [feed.draft(stage.chain[:1]) for _ in range(5 * mallory.size)]
        return [publish(stage.main, one, key=BlockKey(secrets.token_bytes(32))) for one in sealed]

    await _send_rounds(mallory, peer, topic, make)


@attack(Role.WRITER, stores={"pending": 15, "pending_publications": 15}, work=Work(signatures=30, opened=15))
async def commits_of_another_version(mallory: Attacker) -> None:
    """What cannot be read yet is kept and passed on, within the bounds of its topic."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)
    await _send_rounds(
        mallory, peer, topic, lambda: [of_another_version(stage.main) for _ in range(5 * mallory.size)]
    )


@attack(
    Role.WRITER,
    stores={"commits": 30, "feed_forks": 30},
    work=Work(signatures=70, opened=70, statements=600),
)
async def forked_feeds(mallory: Attacker) -> None:
    """A feed that forks again and again is accepted, as the right allows, with one row of evidence a commit."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)
    await _send_rounds(
        mallory,
        peer,
        topic,
        lambda: [feed.first(mallory.stage.chain[:1]) for _ in range(10 * mallory.size)],
    )


@attack(Role.WRITER, stores={"commits": 3}, work=Work(signatures=6, opened=6))
async def huge_posts(mallory: Attacker) -> None:
    """Posts of 256 KiB are taken one batch at a time, and others get their turn between them."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)

    def make() -> list[Forged]:
        text = secrets.token_hex(128 * 1024)
        return [feed.go_on(mallory.stage.chain[-1:], Post(text))]

    await _send_rounds(mallory, peer, topic, make)


@attack(Role.WRITER, stores={"rejections": 30}, work=Work(signatures=60, opened=30))
async def wide_merges(mallory: Attacker) -> None:
    """Merges of a hundred commits that imply one another cost a look at these alone, and others get their turn (H1)."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)
    feed = mallory.feed(stage.main, WRITER)
    await _send_rounds(
        mallory,
        peer,
        topic,
        lambda: [feed.first(stage.chain[-100:]) for _ in range(10 * min(mallory.size, 5))],
    )


@attack(Role.WRITER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1200))
async def tiny_batches(mallory: Attacker) -> None:
    """Batches of one small commit each, four at a time, leave room for local writes between them."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)
    async for _ in mallory.rounds():
        made = [feed.go_on(mallory.stage.chain[:1]) for _ in range(10 * mallory.size)]
        for start in range(0, len(made), 4):
            part = made[start : start + 4]
            await peer.say(*(Publications(topic, (one.encoded,)) for one in part))
            for _ in part:
                await peer.hear(Receipt)
        await trio.lowlevel.checkpoint()


@attack(
    Role.EXCLUDED,
    stores={"commits": 230, "feed_forks": 30},
    work=Work(signatures=500, opened=500, statements=3000),
)
async def forks_of_the_excluded(mallory: Attacker) -> None:
    """A fork in the feed of an excluded member has no other commit of it judged again that it says nothing of."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.old_main)
    feed = mallory.feed(stage.old_main, EXCLUDED, stage.seen_before)
    for _ in range(10):
        await peer.publish(topic, [feed.go_on(stage.chain[:1]) for _ in range(20 * mallory.size)])
    async for _ in mallory.rounds():
        for _ in range(10):
            await peer.publish(topic, [feed.first(stage.chain[:1])])


@attack(Role.WRITER, stores={"commits": 3}, work=Work(signatures=6, opened=6))
async def posts_of_many_words(mallory: Attacker) -> None:
    """Posts of thousands of words are entered into the index of a search bit by bit, each a bounded part of it."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    feed = mallory.feed(mallory.stage.main, WRITER)

    def make() -> list[Forged]:
        words = (secrets.token_hex(2) for _ in range(4000))
        return [feed.go_on(mallory.stage.chain[-1:], Post(" ".join(words)))]

    await _send_rounds(mallory, peer, topic, make)
