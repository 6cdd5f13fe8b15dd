"""Attacks by who knows a topic, on what two nodes compare and ask of each other, and on introductions."""

import secrets

import trio

from protocol.codec import encode
from protocol.formats.links import PeerAddress
from protocol.formats.publication import decode_publication
from protocol.ids import SHORT_ID_SIZE, AnyId, BlindTopic, BlockId, Digest, PeerId, ShortId
from protocol.limits.peers import LATER_ROUNDS_AT_ONCE_MAX, SUMMARY_HEAD_COUNT_MAX, WANT_COUNT_MAX
from protocol.session.messages import (
    Blocks,
    Fetch,
    FoundBodies,
    Introduce,
    Introductions,
    KeepAlive,
    ListedFiles,
    ListFiles,
    PresenceSaid,
    Publications,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    SettledFiles,
    Summary,
    Want,
    WantBodies,
)
from protocol.session.reconciliation.range_items import END
from protocol.session.reconciliation.ranges import FINGERPRINT_SIZE, LATER, PRINT, Range, Ranges
from protocol.session.reconciliation.reconciler import FrameKind
from protocol.session.reconciliation.riblt import SYMBOL_SIZE
from protocol.session.reconciliation.symbols import AskSymbols, Lacks, Symbols, decode_symbols
from tests.hostile.peer import Attacker, HostilePeer
from tests.hostile.table import Role, Work, attack
from tests.support.ids import as_commit_id


async def _opened(mallory: Attacker) -> tuple[HostilePeer, BlindTopic, int]:
    """A connection on which the victim has opened a reconciliation, as the one who answers; and its symbols' number."""
    peer = await mallory.meet()
    topic = await peer.join(mallory.stage.main, 1, (ShortId(secrets.token_bytes(16)),))
    said = await peer.hear(Reconcile)
    return peer, topic, decode_symbols(said.frame).length


async def _asked(mallory: Attacker) -> tuple[HostilePeer, BlindTopic]:
    """A connection on which the victim will ask, for the attacker claims to hold much more."""
    peer = await mallory.meet()
    heads = tuple(ShortId(secrets.token_bytes(16)) for _ in range(SUMMARY_HEAD_COUNT_MAX))
    return peer, await peer.join(mallory.stage.main, 10**9, heads, Digest(secrets.token_bytes(32)))


@attack(Role.READER, ends=("unasked_summary",))
async def summaries_out_of_turn(mallory: Attacker) -> None:
    """Rounds of summaries are neither repeated nor skipped."""
    for number in (0, 2, 4):
        peer = await mallory.meet()
        topic = await peer.join_alike(mallory.stage.main)
        await peer.say(Summary(topic, number, (), 0, Digest(bytes(32))))
        await peer.wait_ended()


@attack(Role.READER)
async def a_billion_commits(mallory: Attacker) -> None:
    """Commits that are only said to be there cost nothing."""
    peer, _ = await _asked(mallory)
    async for _ in mallory.rounds():
        await peer.say(KeepAlive())


@attack(Role.READER, ends=("too_many_rounds",))
async def summaries_that_never_agree(mallory: Attacker) -> None:
    """Digests that differ in every round are compared in a few more rounds without a pause, and then no more."""
    peer, topic = await _asked(mallory)
    for number in range(1, 3 + LATER_ROUNDS_AT_ONCE_MAX):
        await peer.say(Summary(topic, number, (), 10**9, Digest(secrets.token_bytes(32))))
        await peer.hear(Summary)
    await peer.say(Summary(topic, 3 + LATER_ROUNDS_AT_ONCE_MAX, (), 10**9, Digest(secrets.token_bytes(32))))
    await peer.wait_ended()


@attack(Role.READER, ends=("bad_reconciliation:too_many_frames", "too_many_frames", ""))
async def symbols_for_nothing(mallory: Attacker) -> None:
    """Symbols of a set that does not exist end in ranges, and are counted."""
    peer, topic = await _asked(mallory)
    async for _ in mallory.rounds():
        for _ in range(5 * mallory.size):
            frame = encode(Symbols(64, 0, secrets.token_bytes(48 * SYMBOL_SIZE), b""))
            await peer.say(Reconcile(topic, FrameKind.SYMBOLS, frame))


@attack(Role.READER, ends=("bad_reconciliation:out_of_turn",))
async def questions_for_symbols(mallory: Attacker) -> None:
    """Who asks for the same symbols again does not get them twice."""
    peer, topic, length = await _opened(mallory)
    for _ in range(2):
        await peer.say(Reconcile(topic, FrameKind.ASK_SYMBOLS, encode(AskSymbols(48, length - 48))))
    await peer.wait_ended()


@attack(
    Role.READER,
    ends=("bad_reconciliation:too_many_frames", "too_many_frames", "bad_reconciliation:bad_shape", ""),
)
async def questions_for_single_symbols(mallory: Attacker) -> None:
    """Who asks for one symbol a frame gets as many frames as a reconciliation may have."""
    peer, topic, length = await _opened(mallory)
    async for number in mallory.rounds():
        for place in range(5 * mallory.size):
            start = 48 + number * 5 * mallory.size + place
            if start >= length:
                return
            await peer.say(Reconcile(topic, FrameKind.ASK_SYMBOLS, encode(AskSymbols(start, 1))))
            await peer.hear(Reconcile)


@attack(
    Role.READER,
    ends=("bad_reconciliation:too_many_frames", "too_many_frames", ""),
    work=Work(listed=2000),  # the set, once for each change of the topic
)
async def questions_for_ranges(mallory: Attacker) -> None:
    """A question of 85 bytes does not have the victim read its whole set once more (M4)."""
    peer, topic, _ = await _opened(mallory)
    frame = encode(Ranges((Range(*END, PRINT, bytes(FINGERPRINT_SIZE)),)))
    async for _ in mallory.rounds():
        for _ in range(5 * mallory.size):
            await peer.say(Reconcile(topic, FrameKind.ASK_RANGES, frame))
            await peer.hear(Reconcile)


@attack(
    Role.READER, ends=("bad_reconciliation:too_many_frames", "too_many_frames", ""), work=Work(listed=400)
)
async def ranges_that_never_end(mallory: Attacker) -> None:
    """An answerer that always says "later" is asked a bounded number of times."""
    peer, topic = await _asked(mallory)
    await peer.say(Reconcile(topic, FrameKind.BY_RANGES, b""))
    later = encode(Ranges((Range(*END, LATER, b""),)))
    async for _ in mallory.rounds():
        for _ in range(3 * mallory.size):
            await peer.hear(Reconcile)
            await peer.say(Reconcile(topic, FrameKind.RANGES, later))


@attack(Role.READER, ends=("bad_reconciliation:too_many_frames", "too_many_frames", ""))
async def lacks_of_nothing(mallory: Attacker) -> None:
    """Ids that nobody holds are looked up by an index, in frames that are counted."""
    peer, topic, _ = await _opened(mallory)
    async for _ in mallory.rounds():
        short_ids = secrets.token_bytes(SHORT_ID_SIZE * 500 * min(mallory.size, 8))
        await peer.say(Reconcile(topic, FrameKind.LACKS, encode(Lacks(short_ids))))


@attack(Role.READER, ends=("bad_reconciliation:out_of_turn", "bad_reconciliation:bad_shape"))
async def reconciliations_out_of_turn(mallory: Attacker) -> None:
    """What only the other side may say, and what has no shape, ends a reconciliation and the connection."""
    for kind in (FrameKind.SYMBOLS, FrameKind.BY_RANGES, FrameKind.RANGES, FrameKind.ASK_RANGES):
        peer, topic, _ = await _opened(mallory)
        await peer.say(Reconcile(topic, kind, b"\xc1"))
        await peer.wait_ended()


@attack(Role.READER, ends=("unasked_reconciliation",))
async def a_reconciliation_before_summaries(mallory: Attacker) -> None:
    """Nothing is reconciled before both summaries are said."""
    peer = await mallory.meet()
    followed = mallory.stage.main.topic
    topic = peer.blind(followed)
    await peer.say(peer.announcement(followed), Reconcile(topic, FrameKind.BY_RANGES, b""))
    await peer.wait_ended()


@attack(Role.READER, ends=("over_budget", ""))
async def wants_of_nothing(mallory: Attacker) -> None:
    """Commits that do not exist are looked up by an index, 100,000 on one connection."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    async for _ in mallory.rounds():
        ids = [
            tuple(as_commit_id(secrets.token_bytes(32)) for _ in range(WANT_COUNT_MAX))
            for _ in range(4 * mallory.size)
        ]
        await peer.say(*(Want(topic, part) for part in ids))


@attack(Role.READER, ends=("over_budget", ""))
async def the_same_want(mallory: Attacker) -> None:
    """What is asked for again and again goes out at the pace of receipts."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    wanted = mallory.stage.chain[-WANT_COUNT_MAX:]
    async for _ in mallory.rounds():
        await peer.say(*[Want(topic, wanted)] * 5 * mallory.size)
        await peer.hear(Publications)
        await peer.say(Receipt(topic))


@attack(Role.READER, ends=("over_budget", ""))
async def wants_of_bodies_that_never_were(mallory: Attacker) -> None:
    """Bodies that do not exist are looked up by an index, within the bound of commits, and answered by a number."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    async for _ in mallory.rounds():
        for _ in range(4 * mallory.size):
            ids = tuple(AnyId(secrets.token_bytes(32)) for _ in range(WANT_COUNT_MAX))
            await peer.say(WantBodies(topic, ids))
            assert (await peer.hear(FoundBodies)).count == 0


@attack(Role.READER, ends=("unasked_bodies",))
async def bodies_nobody_asked_for(mallory: Attacker) -> None:
    """Who says how many bodies it has was asked."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    await peer.say(FoundBodies(topic, WANT_COUNT_MAX))
    await peer.wait_ended()


@attack(Role.READER)
async def receipts_never_sent(mallory: Attacker) -> None:
    """Who acknowledges nothing is sent four batches, and no more."""
    peer = await mallory.meet()
    await peer.join(mallory.stage.main)
    async for _ in mallory.rounds():
        await peer.say(KeepAlive())
        await trio.sleep(1)
    assert mallory.heard["Publications"] <= 4


@attack(Role.READER, ends=("unasked_receipt",))
async def receipts_for_nothing(mallory: Attacker) -> None:
    """A receipt for what was not sent ends the connection."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    await peer.say(Receipt(topic))
    await peer.wait_ended()


@attack(Role.READER, ends=("peer_does_not_read", "too_many_fetches", "truncated", "closed"))
async def a_peer_that_never_reads(mallory: Attacker) -> None:
    """Who asks on and reads nothing is left after 30 seconds, or when 32 MiB wait for it."""
    peer = await mallory.meet(reads=False)
    followed = mallory.stage.main.topic
    topic = peer.blind(followed)
    await peer.say(peer.announcement(followed), Summary(topic, 0, (), 0, Digest(bytes(32))))
    async for _ in mallory.rounds():
        await peer.say(*[Fetch(topic, (BlockId(secrets.token_bytes(32)),))] * 4)
        await trio.sleep(11)
    await peer.say(KeepAlive())


@attack(Role.READER, work=Work(statements=320))
async def fetches_of_nothing(mallory: Attacker) -> None:
    """Blocks that nobody has are looked up by an index, four at a time."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    async for _ in mallory.rounds():
        for _ in range(5 * mallory.size):
            await peer.say(Fetch(topic, tuple(BlockId(secrets.token_bytes(32)) for _ in range(4))))
            for _ in range(4):
                await peer.hear(Blocks)


@attack(Role.READER, ends=("too_many_fetches",))
async def fetches_too_many(mallory: Attacker) -> None:
    """More than four blocks at a time are not asked for."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    await peer.say(*[Fetch(topic, (BlockId(secrets.token_bytes(32)),) * 4)] * 3)
    await peer.wait_ended()


@attack(Role.READER, ends=("unasked_blocks",))
async def blocks_nobody_asked_for(mallory: Attacker) -> None:
    """A block that was not asked for ends the connection, whatever its size."""
    for size in (0, 100, 1_000_000):
        peer = await mallory.meet()
        topic = await peer.join_alike(mallory.stage.main)
        await peer.say(Blocks(topic, (bytes(size),)))
        await peer.wait_ended()


@attack(Role.READER)
async def refusals(mallory: Attacker) -> None:
    """That one takes no more may be said again and again, and is remembered once."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    async for _ in mallory.rounds():
        await peer.say(*[Refused(topic, "x" * 200)] * 50 * mallory.size)


@attack(Role.READER, ends=("late_relay",))
async def a_late_relay(mallory: Attacker) -> None:
    """That one is a relay is said before any topic is announced."""
    peer = await mallory.meet()
    await peer.say(peer.announcement(mallory.stage.main.topic), Relay())
    await peer.wait_ended()


@attack(Role.READER)
async def introductions_of_private_addresses(mallory: Attacker) -> None:
    """Who is outside does not have the node dial addresses of its own network."""
    peer = await mallory.meet()
    await peer.say(Introductions())
    topic = await peer.join_alike(mallory.stage.own_root)
    async for number in mallory.rounds():
        if number >= 8:
            break
        hosts = (f"{net}.{number}.{host}:22" for net in ("192.168", "10.0") for host in range(8))
        await peer.say(
            Introduce(topic, tuple(PeerAddress(one, PeerId(secrets.token_bytes(32))) for one in hosts))
        )


@attack(Role.READER)
async def introduction_floods(mallory: Attacker) -> None:
    """Introductions are taken as often as honest peers make them, and the others passed over."""
    peer = await mallory.meet()
    await peer.say(Introductions())
    topic = await peer.join_alike(mallory.stage.own_root)
    told = tuple(PeerAddress(f"10.0.0.{host}:22", PeerId(secrets.token_bytes(32))) for host in range(16))
    async for _ in mallory.rounds():
        await peer.say(*[Introduce(topic, told)] * 20)


@attack(Role.READER, ends=("unasked_introduction",))
async def introductions_on_a_writers_topic(mallory: Attacker) -> None:
    """Peers are introduced on epochs' own topics alone."""
    peer = await mallory.meet()
    await peer.say(Introductions())
    topic = await peer.join_alike(mallory.stage.main)
    await peer.say(Introduce(topic, (PeerAddress("10.0.0.1:22", PeerId(secrets.token_bytes(32))),)))
    await peer.wait_ended()


@attack(Role.READER, ends=("over_budget", ""))
async def forged_presences(mallory: Attacker) -> None:
    """Who has a text open is said in sealed and signed boxes: what is forged is charged, and soon ends the connection."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.own_root)
    async for _ in mallory.rounds():
        boxes = [secrets.token_bytes(200) for _ in range(20 * mallory.size)]
        await peer.say(*(PresenceSaid(topic, box) for box in boxes))
        await trio.sleep(1)


@attack(Role.READER, ends=("unasked_files",))
async def files_that_nobody_asked_about(mallory: Attacker) -> None:
    """Files are listed and settled by a relay that was asked, and by nobody else."""
    some = (ShortId(secrets.token_bytes(SHORT_ID_SIZE)),)
    for make in (lambda topic: ListedFiles(topic, some), lambda topic: SettledFiles(topic, some, "")):
        peer = await mallory.meet()
        await peer.say(make(await peer.join_alike(mallory.stage.main)))
        await peer.wait_ended()


@attack(Role.READER, ends=("no_relay",))
async def lists_of_no_relay(mallory: Attacker) -> None:
    """A node that is no relay lists no files for others."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.main)
    await peer.say(ListFiles(topic, ShortId(bytes(SHORT_ID_SIZE))))
    await peer.wait_ended()


@attack(Role.EXCLUDED, work=Work(signatures=0))
async def questions_of_the_excluded(mallory: Attacker) -> None:
    """Who was excluded gets nothing of the next epoch by the topics that it knows."""
    stage, wanted = mallory.stage, mallory.stage.chain[-1]
    peer = await mallory.meet()
    for target in (stage.old_main, stage.old_own):
        topic = await peer.join(target)
        await peer.say(Want(topic, (wanted,)))
        said = await peer.hear(Publications)
        await peer.say(Receipt(said.topic))
        assert wanted not in {decode_publication(one).commit_id for one in said.items}
