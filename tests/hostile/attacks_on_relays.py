"""Attacks on a relay, by strangers who have it keep what they like."""

import secrets

from protocol.ids import BlindTopic, Digest, TopicKey
from protocol.keys import TopicSeed
from protocol.limits.peers import TOPIC_COUNT_MAX
from protocol.messages import Deposit, Publications, Refused, Summary
from protocol.signing import public_key
from tests.hostile.commits import on_own_topic
from tests.hostile.peer import Attacker, HostilePeer
from tests.hostile.table import Role, Work, attack


async def _deposited(mallory: Attacker, seed: TopicSeed) -> tuple[HostilePeer, BlindTopic]:
    """A connection on which the relay keeps a topic of the attacker's own; the topic as it is called here."""
    peer = await mallory.meet()
    own = public_key(seed)
    topic = peer.blind(own)
    await peer.say(Deposit((own,)))
    await peer.say(peer.announcement(own), Summary(topic, 0, (), 0, Digest(bytes(32))))
    while (await peer.hear(Summary)).topic != topic:
        pass
    return peer, topic


@attack(Role.RELAY_CLIENT, stores={"relay_topics": 100})
async def deposits_of_many_topics(mallory: Attacker) -> None:
    """Topics of strangers are kept up to their quota, the others are refused (L7)."""
    peer = await mallory.meet()
    async for number in mallory.rounds():
        if (number + 1) * 50 * mallory.size > TOPIC_COUNT_MAX:
            break
        await peer.say(Deposit(tuple(TopicKey(secrets.token_bytes(32)) for _ in range(50 * mallory.size))))
        if mallory.effort.size == 1 and number == 2:
            await peer.hear(Refused)


@attack(Role.RELAY_CLIENT, ends=("too_many_topics",), stores={"relay_topics": 100})
async def deposits_too_many(mallory: Attacker) -> None:
    """More topics than one connection may join are not kept."""
    peer = await mallory.meet()
    for _ in range(2):
        await peer.say(Deposit(tuple(TopicKey(secrets.token_bytes(32)) for _ in range(TOPIC_COUNT_MAX))))
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("idle",), stores={"relay_topics": 50})
async def deposits_then_silence(mallory: Attacker) -> None:
    """Who entrusts topics and says nothing more is left, and its topics count against its quota."""
    peer = await mallory.meet()
    await peer.say(Deposit(tuple(TopicKey(secrets.token_bytes(32)) for _ in range(50))))
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT)
async def the_same_deposit(mallory: Attacker) -> None:
    """A topic that is entrusted again and again is kept once."""
    peer = await mallory.meet()
    own = mallory.stage.main.topic
    async for _ in mallory.rounds():
        await peer.say(*[Deposit((own,))] * 5 * mallory.size)


@attack(
    Role.RELAY_CLIENT,
    ends=("bad_topic_signature",),
    stores={"relay_topics": 1},
    work=Work(signatures=10),
)
async def forgeries_on_a_relay(mallory: Attacker) -> None:
    """A relay keeps nothing that the topic's key did not sign."""
    seed = TopicSeed(secrets.token_bytes(32))
    peer, topic = await _deposited(mallory, seed)
    forged = tuple(on_own_topic(seed, is_signed=False).encoded for _ in range(10))
    await peer.say(Publications(topic, forged))
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("bad_publication:bad_shape",), stores={"relay_topics": 1})
async def garbage_on_a_relay(mallory: Attacker) -> None:
    """A relay keeps nothing that is no publication."""
    peer, topic = await _deposited(mallory, TopicSeed(secrets.token_bytes(32)))
    await peer.say(Publications(topic, (secrets.token_bytes(1000),)))
    await peer.wait_ended()


@attack(
    Role.RELAY_CLIENT,
    stores={"relay_topics": 1, "relay_commits": 30, "relay_heads": 30, "relay_shares": 1},
    work=Work(signatures=30, statements=500),
)
async def a_relay_that_is_filled(mallory: Attacker) -> None:
    """What strangers publish is kept up to their quota, and the node's own commits go on."""
    seed = TopicSeed(secrets.token_bytes(32))
    peer, topic = await _deposited(mallory, seed)
    size = 200 if mallory.size == 1 else 20_000
    async for _ in mallory.rounds():
        await peer.publish(topic, [on_own_topic(seed, size) for _ in range(10 * mallory.size)])
