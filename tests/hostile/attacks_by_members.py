"""Attacks with statements that members may make in the root branch: each is accepted, and every node keeps it in memory."""

import secrets
from collections.abc import Callable

from protocol.crypto.keys import EpochKey, UserSeed
from protocol.formats.body import Answer, Body, FeedEnd, Offer, Remove
from protocol.formats.content import Post
from protocol.formats.epochs import EpochOpen, GivenEpoch
from protocol.formats.profiles import Profile
from protocol.ids import CommitId, EpochId
from protocol.limits.formats import LINK_SIZE_MAX, OFFER_NOTE_SIZE_MAX
from protocol.limits.peers import BATCH_SIZE_TARGET, EPOCHS_CLAIMED_BY_MEMBER_MAX
from tests.hostile.commits import Feed, Forged
from tests.hostile.peer import Attacker
from tests.hostile.stage import READER, WRITER
from tests.hostile.table import Role, Work, attack
from tests.support.ids import as_commit_id

_TEXT_SIZE = 240 * 1024


async def _say(mallory: Attacker, seed: UserSeed, make: Callable[[Feed], Forged]) -> None:
    """State things in the root branch, round by round."""
    stage = mallory.stage
    peer = await mallory.meet()
    target = stage.own_root if seed == READER else stage.root
    topic = await peer.join_alike(target)
    feed = mallory.feed(target, seed, ())
    async for _ in mallory.rounds():
        made = [make(feed) for _ in range(10 * mallory.size)]
        at_once = max(1, BATCH_SIZE_TARGET // len(made[-1].encoded))
        for start in range(0, len(made), at_once):
            await peer.publish(topic, made[start : start + at_once])


def _beside_others(mallory: Attacker, body: Callable[[], Body]) -> Callable[[Feed], Forged]:
    """What follows nothing that the attacker has said, so that each is a head of the root branch."""
    return lambda feed: feed.go_on(mallory.stage.root_chain[-1:], body())


@attack(Role.READER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1200))
async def offers_side_by_side(mallory: Attacker) -> None:
    """Offers of a reader make any number of heads, and a write costs no more for them."""
    body = Offer(mallory.stage.main.facts.branch_id, pulls=False, note="", link=b"no link")
    await _say(mallory, READER, _beside_others(mallory, lambda: body))


@attack(Role.READER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1200))
async def offers_in_a_row(mallory: Attacker) -> None:
    """Offers each of which follows the one before cost what other commits do."""
    body = Offer(mallory.stage.main.facts.branch_id, pulls=True, note="", link=b"no link")

    def make(feed: Feed) -> Forged:
        return feed.go_on(mallory.stage.root_chain[-1:] if feed.last is None else (feed.last,), body)

    await _say(mallory, READER, make)


@attack(Role.READER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1200))
async def long_offers(mallory: Attacker) -> None:
    """Of one author's offers the latest stay in memory with their links, so many of them."""

    def body() -> Body:
        return Offer(
            mallory.stage.main.facts.branch_id,
            pulls=False,
            note="x" * OFFER_NOTE_SIZE_MAX,
            link=secrets.token_bytes(LINK_SIZE_MAX),
        )

    await _say(mallory, READER, _beside_others(mallory, body))


@attack(Role.READER, stores={"commits": 31}, work=Work(signatures=70, opened=70, statements=1300))
async def an_offer_that_is_withdrawn_again_and_again(mallory: Attacker) -> None:
    """Of the answers of an offer's author the latest count, and the others are not looked at."""
    offer: list[CommitId] = []

    def make(feed: Feed) -> Forged:
        if not offer:
            body = Offer(mallory.stage.main.facts.branch_id, pulls=False, note="", link=b"no link")
            made = feed.go_on(mallory.stage.root_chain[-1:], body)
            offer.append(made.commit_id)
            return made
        return feed.go_on(tuple(offer), Answer(offer[0], accepts=False))

    await _say(mallory, READER, make)


@attack(Role.READER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1500))
async def leaving_again_and_again(mallory: Attacker) -> None:
    """Who leaves a repo many times at once leaves it once, and removals of others are decided as before."""
    body = Remove(Feed(mallory.stage.root, READER, ()).keys.user, None, ())
    await _say(mallory, READER, _beside_others(mallory, lambda: body))


@attack(Role.WRITER, stores={"commits": 130}, work=Work(signatures=300, opened=300, statements=2500))
async def commits_after_a_hundred_leaves(mallory: Attacker) -> None:
    """Who leaves a hundred times, with an end of its feed each time, makes its commits no dearer: leaves void nothing."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.main)  # it is that of the root branch, too
    author = Feed(stage.root, WRITER, ()).keys.user
    ends = [
        FeedEnd(stage.main.facts.branch_id, 99, as_commit_id(number.to_bytes(32))) for number in range(100)
    ]
    leaves = mallory.feed(stage.root, WRITER, ())
    await peer.publish(
        topic, [leaves.go_on(stage.root_chain[-1:], Remove(author, None, (end,))) for end in ends]
    )
    feed = mallory.feed(stage.main, WRITER)
    async for _ in mallory.rounds():
        for _ in range(10 * mallory.size):
            await peer.publish(topic, [feed.go_on(stage.chain[:1])])


@attack(Role.WRITER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1200))
async def names_side_by_side(mallory: Attacker) -> None:
    """Of what a member says to be called a few statements are looked at."""
    await _say(mallory, WRITER, _beside_others(mallory, lambda: Profile("Mallory", None)))


@attack(Role.WRITER, stores={"commits": 30}, work=Work(signatures=60, opened=60, statements=1200))
async def huge_posts_on_the_root_topic(mallory: Attacker) -> None:
    """Of posts in the root branch, which nothing shows, only the kind stays in memory."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.root)
    feed = mallory.feed(stage.root, WRITER, ())
    async for _ in mallory.rounds():
        text = secrets.token_hex(_TEXT_SIZE // 2)
        await peer.publish(topic, [feed.go_on(stage.root_chain[-1:], Post(text))])


@attack(
    Role.READER,
    stores={"pending": 30, "pending_publications": 30, "pending_causes": 30},
    work=Work(signatures=60, opened=60, statements=1100),
)
async def keys_that_wait(mallory: Attacker) -> None:
    """What a member who is no admin says of secrets, and what waits, is opened once and not at every change."""
    stage = mallory.stage
    wrong = GivenEpoch(stage.root.epoch.epoch_id, EpochKey(bytes(32)))
    await _wait(mallory, lambda: EpochOpen((wrong,)))


@attack(
    Role.READER,
    stores={
        "pending": 30,
        "pending_publications": 30,
        "pending_causes": 30,
        "epochs": EPOCHS_CLAIMED_BY_MEMBER_MAX,
        "topics": EPOCHS_CLAIMED_BY_MEMBER_MAX,
    },
    work=Work(signatures=60, opened=120, statements=1500),
)
async def keys_of_epochs_that_never_were(mallory: Attacker) -> None:
    """Keys that a member gives are tried, and their topics followed, up to a bound for each member (E7)."""

    def body() -> Body:
        ids = sorted(EpochId(as_commit_id(secrets.token_bytes(32))) for _ in range(10))
        return EpochOpen(tuple(GivenEpoch(one, EpochKey(secrets.token_bytes(32))) for one in ids))

    await _wait(mallory, body)


async def _wait(mallory: Attacker, body: Callable[[], Body]) -> None:
    """Have commits of a reader wait for causes that never come."""
    stage = mallory.stage
    peer = await mallory.meet()
    topic = await peer.join_alike(stage.own_root)
    feed = mallory.feed(stage.own_root, READER, ())
    async for _ in mallory.rounds():
        for _ in range(10):
            made = [feed.first((as_commit_id(secrets.token_bytes(32)),), body()) for _ in range(mallory.size)]
            await peer.publish(topic, made)
