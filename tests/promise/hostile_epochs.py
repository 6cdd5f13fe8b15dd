"""What adversaries forge about epochs: inits, openings, hand-overs and claims, each with one thing wrong or none."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from protocol.crypto.epoch_boxes import BOX_SIZE, Sealer
from protocol.crypto.hashing import writers_topic_seed
from protocol.crypto.keys import EpochKey, TopicSeed, WritersSecret
from protocol.crypto.signing import key_pair, public_key
from protocol.formats.block import Block
from protocol.formats.body import Permission
from protocol.formats.commit import NO_EPOCH
from protocol.formats.content import Post
from protocol.formats.epochs import (
    NONCE_SIZE,
    EpochHand,
    EpochInit,
    EpochOpen,
    EpochStatement,
    GivenEpoch,
    HandedBox,
    seal_keys,
    seal_topic,
)
from protocol.formats.object import build_object
from protocol.ids import BlockId, CommitId, EpochId, TopicKey, UserId
from storage.repos.epochs import Epoch
from tests.promise.forging import Forge, Known
from verifier.resolution import Resolution

_INITS: Final = (
    *("right", "right", "right on an old place", "junk box", "missing box", "stranger's box", "no boxes"),
    *("junk writers' boxes", "missing writers' box", "other keys", "no keys", "junk keys", "old key"),
    *("old writers' topic", "nobody's topic", "junk topic", "other parent", "boxes swapped"),
)
"""What is wrong with a forged init."""


def forge_init(forge: Forge) -> str:
    """An epoch with one thing wrong, or none; perhaps with a post in it."""
    rng, repo = forge.rng, forge.person.repo()
    kind = rng.choice(_INITS)
    acks = forge.some_roots() if kind != "right" else forge.heads_of(forge.person.replica.root_branch(repo))
    published_in = forge.person.epoch() if kind != "other parent" else rng.choice(forge.held())
    started = make_init(forge, f"init: {kind}", kind, acks, published_in)
    if rng.random() < 0.5:
        branch = rng.choice(forge.branches())
        forge.write(
            f"a post in init: {kind}",
            branch.branch_id,
            started,
            Post("forged"),
            forge.heads_of(branch),
            seen=[started.epoch_id],
        )
    return f"init: {kind}"


def make_init(forge: Forge, why: str, kind: str, acks: Sequence[Known], published_in: Epoch) -> Epoch:
    """Forge an init that is right but for what its kind says. Return its epoch."""
    rng, repo = forge.rng, forge.person.repo()
    before = resolution_at(forge, acks)
    members = before.members()
    key, secret = EpochKey(rng.randbytes(32)), WritersSecret(rng.randbytes(32))
    if kind == "old key":
        key = published_in.key
    epoch = Epoch(0, repo.num, repo.repo_id, NO_EPOCH, key, secret)
    mark, sealer, writers = (
        epoch.keys.mark,
        Sealer.of_epoch(key, repo.repo_id),
        Sealer.of_writers(secret, repo.repo_id),
    )
    users = sorted(members)
    if kind == "stranger's box":
        strangers = [one.user for one in forge.world.people.values()]
        users = sorted({*users, *strangers, UserId(key_pair(TopicSeed(rng.randbytes(32)))[0])})
    boxes = [sealer.seal(user, before.prekey_of(user)) for user in users]
    writer_boxes = [
        writers.seal(user, before.prekey_of(user))
        for user in users
        if members.get(user, 0) >= Permission.WRITE
    ]
    match kind:
        case "junk box":
            boxes[rng.choice(range(len(boxes)))] = rng.randbytes(BOX_SIZE)
        case "missing box":
            del boxes[rng.choice(range(len(boxes)))]
        case "no boxes":
            boxes = []
        case "boxes swapped":
            boxes.reverse()
        case "junk writers' boxes":
            writer_boxes = [rng.randbytes(BOX_SIZE) for _ in writer_boxes]
        case "missing writers' box":
            del writer_boxes[-1:]
    topic = public_key(writers_topic_seed(secret, repo.repo_id, mark))
    if kind == "old writers' topic":
        topic = rng.choice([one.writers_topic for one in forge.held() if one.writers_topic] or [topic])
    elif kind == "nobody's topic":
        topic = TopicKey(public_key(TopicSeed(rng.randbytes(32))))
    elif kind == "junk topic":
        topic = TopicKey(rng.randbytes(32))
    given = _keys_at(forge, acks)
    if kind == "other keys" and given:
        place = rng.randrange(len(given))
        given[place] = GivenEpoch(given[place].epoch, EpochKey(rng.randbytes(32)))
    elif kind == "no keys":
        given = []
    elif kind == "own key":
        given = [one for one in given if one.epoch != published_in.epoch_id]
    nonce = rng.randbytes(NONCE_SIZE)
    sealed = seal_keys(key, repo.repo_id, mark, tuple(given), nonce)
    if kind == "junk keys":
        sealed = rng.randbytes(len(sealed))
    stated = seal_topic(key, repo.repo_id, mark, topic, rng.randbytes(NONCE_SIZE))
    if kind == "junk statement":
        stated = rng.randbytes(len(stated))
    states = EpochStatement(mark, writers.mark, stated)
    objects = [
        build_object(one, published_in.convergence_secret)
        for one in (b"".join(boxes), b"".join(writer_boxes), sealed)
    ]
    body = EpochInit(states, *(reference for reference, _ in objects))
    blocks: dict[BlockId, Block] = {one.block_id: one for _, made in objects for one in made}
    target = forge.target(forge.root_facts.branch_id, published_in)
    on = [(target.seed, published_in), (epoch.keys.topic_seed, epoch)]
    made = forge.write(
        why, forge.root_facts.branch_id, published_in, body, acks, further=list(blocks.values()), on=on,
        gives=[one.epoch for one in given] if kind == "stranger's box" else [],
    )  # fmt: skip
    started = replace(epoch, epoch_id=EpochId(made), writers_topic=None if kind == "junk topic" else topic)
    forge.epochs.append(started)
    return started


def resolution_at(forge: Forge, acks: Sequence[Known]) -> Resolution:
    """What holds after these commits, as far as the adversary's node can say."""
    replica = forge.person.replica
    with replica.membership_lock:
        membership = replica.membership(forge.person.repo().repo_id)
        known = tuple(sorted(one.commit_id for one in acks if one.commit_id in membership.operations))
        return membership.at(known) if len(known) == len(acks) and known else membership.now()


def _keys_at(forge: Forge, acks: Sequence[Known]) -> list[GivenEpoch]:
    """The keys of the epochs in the past of these commits that the adversary holds."""
    person = forge.person
    with person.replica.membership_lock:
        membership = person.replica.membership(person.repo().repo_id)
        known = tuple(sorted(one.commit_id for one in acks if one.commit_id in membership.operations))
        before = membership.at(known) if len(known) == len(acks) and known else membership.now()
        started = [one.started_epoch for one in membership.epochs.started_within(before)]
    held = person.replica.tables.held_epochs(person.repo().num)
    return [GivenEpoch(one, held[one].key) for one in sorted(started) if one in held]


def forge_open(forge: Forge) -> str:
    """An opening: of right keys in an old epoch, of wrong ones, of what is not there, of itself."""
    rng = forge.rng
    epoch = rng.choice(forge.held()) if rng.random() < 0.6 else forge.person.epoch()
    held = forge.held()
    chosen = rng.sample(held, min(len(held), rng.choice((1, 1, 2, 5))))
    given = {one.epoch_id: one.key for one in chosen}
    kind = rng.choice(("right", "right", "junk key", "nowhere", "itself", "order"))
    match kind:
        case "junk key":
            given[rng.choice(list(given))] = EpochKey(rng.randbytes(32))
        case "nowhere":
            given[EpochId(CommitId(BlockId(rng.randbytes(32))))] = EpochKey(rng.randbytes(32))
        case "itself":
            given[epoch.epoch_id] = epoch.key
    items = sorted(given.items())
    if kind == "order":
        items.reverse()
    body = EpochOpen(tuple(GivenEpoch(one, key) for one, key in items))
    forge.write(
        f"open: {kind}", forge.root_facts.branch_id, epoch, body, forge.some_roots(),
        gives=[one.epoch_id for one in chosen],
    )  # fmt: skip
    return f"opens {len(items)}: {kind}"


def forge_hand(forge: Forge) -> str:
    """A hand-over: with junk, to strangers, with other marks, of what is not there."""
    rng, repo = forge.rng, forge.person.repo()
    handed = rng.choice(forge.held())
    epoch = rng.choice(forge.held()) if rng.random() < 0.6 else forge.person.epoch()
    users = sorted({one.user for one in forge.world.people.values()})
    chosen = sorted(rng.sample(users, rng.randint(1, min(3, len(users)))))
    kind = rng.choice(
        ("right", "right", "junk box", "junk writers' box", "mark", "writers' mark", "order", "all")
    )
    if kind == "all":
        chosen = users
    sealer = Sealer.of_epoch(handed.key, repo.repo_id)
    writers = (
        None if handed.writers_secret is None else Sealer.of_writers(handed.writers_secret, repo.repo_id)
    )
    boxes = [
        HandedBox(user, sealer.seal(user), writers.seal(user) if writers and rng.random() < 0.5 else None)
        for user in chosen
    ]
    mark, writers_mark = handed.keys.mark, sealer.mark if writers is None else writers.mark
    match kind:
        case "junk box":
            place = rng.randrange(len(boxes))
            boxes[place] = HandedBox(boxes[place].user, rng.randbytes(BOX_SIZE), boxes[place].writers_box)
        case "junk writers' box":
            place = rng.randrange(len(boxes))
            boxes[place] = HandedBox(boxes[place].user, boxes[place].box, rng.randbytes(BOX_SIZE))
        case "mark":
            mark = Sealer.of_epoch(EpochKey(rng.randbytes(32)), repo.repo_id).mark
        case "writers' mark":
            writers_mark = Sealer.of_writers(WritersSecret(rng.randbytes(32)), repo.repo_id).mark
        case "order":
            boxes.reverse()
    body = EpochHand(handed.epoch_id, mark, writers_mark, tuple(boxes))
    forge.write(
        f"hand: {kind}", forge.root_facts.branch_id, epoch, body, forge.some_roots(), gives=[handed.epoch_id],
    )  # fmt: skip
    return f"hands {handed.epoch_id.hex()[:6]} to {len(boxes)}: {kind}"


def forge_claims(forge: Forge) -> str:
    """Openings that wait for ever, with many junk keys: of the epoch in use, of others that are here, and of none."""
    rng, held = forge.rng, forge.held()
    nowhere = Known(CommitId(BlockId(rng.randbytes(32))), 7, forge.root_facts.branch_id)
    ids = {EpochId(CommitId(BlockId(rng.randbytes(32)))) for _ in range(rng.choice((1, 3, 20)))}
    ids |= {forge.person.epoch().epoch_id, rng.choice(held).epoch_id}
    body = EpochOpen(tuple(GivenEpoch(one, EpochKey(rng.randbytes(32))) for one in sorted(ids)))
    forge.write("claims", forge.root_facts.branch_id, rng.choice(held), body, [*forge.some_roots(), nowhere])
    return f"claims {len(ids)} keys"
