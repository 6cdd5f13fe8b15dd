"""Attacks on a relay, by strangers who have it keep what they like."""

import secrets

import trio

from protocol.crypto.keys import AccountToken, ConvergenceSecret, TopicSeed
from protocol.crypto.signing import public_key
from protocol.formats.block import encrypt_block
from protocol.ids import SHORT_ID_SIZE, BlindTopic, BlockId, Digest, ObjectId, ShortId, TopicKey
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.peers import (
    ACCOUNT_LINKS_MAX,
    FETCHED_COUNT_MAX,
    FILES_DEPOSITED_COUNT_MAX,
    TOPIC_COUNT_MAX,
)
from protocol.session.deposits import sign_deposit, size_of
from protocol.session.messages import (
    AccountJoined,
    Announce,
    Blocks,
    Deposit,
    DepositFiles,
    Fetch,
    JoinAccount,
    KeepAlive,
    ListedFiles,
    ListFiles,
    Publications,
    Refused,
    SettledFiles,
    Summary,
)
from tests.hostile.commits import bare_on_own_topic, on_own_topic
from tests.hostile.peer import Attacker, HostilePeer
from tests.hostile.table import Role, Work, attack


async def _deposited(mallory: Attacker, seed: TopicSeed) -> tuple[HostilePeer, BlindTopic]:
    """A connection on which the relay keeps a topic of the attacker's own; the topic as it is called here."""
    peer = await mallory.meet()
    own = public_key(seed)
    topic = peer.blind(own)
    await peer.say(Deposit((own,)), peer.announcement(own))
    while (await peer.hear(Summary)).topic != topic:  # not before: a relay opens it in a thread
        pass
    await peer.say(Summary(topic, 0, (), 0, Digest(bytes(32))))
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


@attack(Role.RELAY_CLIENT, ends=("closed",), stores={"relay_topics": 100, "relay_sums": 11})
async def deposits_by_many_strangers(mallory: Attacker) -> None:
    """Many who entrust some topics and leave are no dearer to the node's user than one who entrusts as many (L7)."""
    async for _ in mallory.rounds():
        peer = await mallory.meet()
        await peer.say(Deposit(tuple(TopicKey(secrets.token_bytes(32)) for _ in range(10 * mallory.size))))
        while not isinstance(await peer.hear_any(), Announce | Refused):
            pass
        await mallory.leave()


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
        for _ in range(mallory.size):
            await peer.publish(topic, [on_own_topic(seed, size) for _ in range(10)])


@attack(
    Role.RELAY_CLIENT,
    stores={"relay_topics": 1, "relay_commits": 30, "relay_bare": 30, "relay_heads": 30, "relay_shares": 1},
    work=Work(signatures=30, statements=500),
)
async def commits_without_bodies(mallory: Attacker) -> None:
    """Commits whose bodies never were are kept up to a quota, and asked for a page a second."""
    seed = TopicSeed(secrets.token_bytes(32))
    peer, topic = await _deposited(mallory, seed)
    async for _ in mallory.rounds():
        await peer.publish(topic, [bare_on_own_topic(seed) for _ in range(10 * mallory.size)])


@attack(Role.RELAY_CLIENT, stores={"relay_topics": 1, "relay_files": 0}, work=Work(signatures=64))
async def files_that_another_key_signed(mallory: Attacker) -> None:
    """A relay keeps no file that the topic's key did not sign, and asks for none of its blocks."""
    peer, topic = await _deposited(mallory, TopicSeed(secrets.token_bytes(32)))
    other = TopicSeed(secrets.token_bytes(32))
    files = [
        sign_deposit(other, ObjectId(BlockId(secrets.token_bytes(32))), 300)
        for _ in range(FILES_DEPOSITED_COUNT_MAX)
    ]
    await peer.say(DepositFiles(topic, tuple(files)))
    assert (await peer.hear(SettledFiles)).refusal == "bad_topic_signature"


@attack(
    Role.RELAY_CLIENT,
    ends=("wrong_block",),
    stores={"relay_topics": 1, "relay_files": 0, "relay_blocks": 0},
    work=Work(signatures=1),
)
async def other_blocks_than_were_deposited(mallory: Attacker) -> None:
    """A block is what its id says, or the connection ends and nothing is kept of it."""
    seed = TopicSeed(secrets.token_bytes(32))
    peer, topic = await _deposited(mallory, seed)
    await peer.say(
        DepositFiles(topic, (sign_deposit(seed, ObjectId(BlockId(secrets.token_bytes(32))), 10_000),))
    )
    await peer.hear(Fetch)
    await peer.say(Blocks(topic, (b"no such block",)))
    await peer.wait_ended()


@attack(
    Role.RELAY_CLIENT,
    stores={
        "relay_topics": 1,
        "relay_files": 1000,
        "relay_blocks": 1000,
        "relay_file_blocks": 1000,
        "relay_shares": 1,
    },
    work=Work(signatures=64, statements=1500),
)
async def a_flood_of_blocks(mallory: Attacker) -> None:
    """Files come as fast as they are stored, four blocks at a time, up to a quota (memory: L7)."""
    seed = TopicSeed(secrets.token_bytes(32))
    peer, topic = await _deposited(mallory, seed)
    async for _ in mallory.rounds():
        count = min(FETCHED_COUNT_MAX * mallory.size, FILES_DEPOSITED_COUNT_MAX)
        made = [
            encrypt_block(secrets.token_bytes(LEAF_SIZE), ConvergenceSecret(bytes(32)))[0]
            for _ in range(count)
        ]
        blocks = {block.block_id: block for block in made}
        await peer.say(
            *(
                DepositFiles(topic, (sign_deposit(seed, ObjectId(one.block_id), size_of(len(one.encoded))),))
                for one in made
            )
        )
        for _ in range(count):
            wanted = (await peer.hear(Fetch)).ids
            await peer.say(Blocks(topic, tuple(blocks[one].encoded for one in wanted)))


@attack(Role.RELAY_CLIENT, ends=("too_many_lists", ""), stores={"relay_topics": 1}, work=Work(statements=500))
async def lists_without_end(mallory: Attacker) -> None:
    """What a relay keeps of a topic is listed as often as it is asked for, at the price of a look into the store."""
    peer, topic = await _deposited(mallory, TopicSeed(secrets.token_bytes(32)))
    async for _ in mallory.rounds():
        for _ in range(20 * mallory.size):
            await peer.say(ListFiles(topic, ShortId(secrets.token_bytes(SHORT_ID_SIZE))))
            await peer.hear(ListedFiles)
    await peer.say(*[ListFiles(topic, ShortId(bytes(SHORT_ID_SIZE)))] * 20)


@attack(
    Role.RELAY_CLIENT,
    ends=("peer_does_not_answer",),
    stores={"relay_topics": 1, "relay_files": 0},
    work=Work(signatures=FILES_DEPOSITED_COUNT_MAX),
)
async def files_that_never_come(mallory: Attacker) -> None:
    """Who deposits files and sends no block of them is left after a minute, and nothing was kept or forgotten for it."""
    seed = TopicSeed(secrets.token_bytes(32))
    peer, topic = await _deposited(mallory, seed)
    files = [
        sign_deposit(seed, ObjectId(BlockId(secrets.token_bytes(32))), 10_000)
        for _ in range(FILES_DEPOSITED_COUNT_MAX)
    ]
    await peer.say(DepositFiles(topic, tuple(files)))
    for _ in range(20):
        await trio.sleep(5)
        await peer.say(KeepAlive())
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("too_many_account_links",))
async def links_that_nobody_gave(mallory: Attacker) -> None:
    """A link to an account is not guessed: some are looked at, and none opens one."""
    peer = await mallory.meet()
    for _ in range(ACCOUNT_LINKS_MAX):
        await peer.say(JoinAccount(AccountToken(secrets.token_bytes(32))))
        assert (await peer.hear(AccountJoined)).refusal == "unknown_link"
    await peer.say(JoinAccount(AccountToken(secrets.token_bytes(32))))
    await peer.wait_ended()
