"""What adversaries forge, by kinds: every field of a commit, wrong or out of place, and right ones at a wrong moment.

Some of it is accepted by everybody (what a member may do, however odd), some waits for ever, most is rejected. All nodes
must come to the same, and go on.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Final

from node.runtime.errors import ServiceError
from protocol.codec import DecodeError
from protocol.crypto.keys import BlockKey, InvitationSeed, TopicSeed
from protocol.crypto.signing import BadSignature, key_pair, topic_key_pair
from protocol.formats.block import Reference
from protocol.formats.body import (
    Body,
    BranchAdd,
    BranchLink,
    BranchRoot,
    DeviceGrant,
    FeedEnd,
    Grant,
    Invite,
    Join,
    MembersCheckpoint,
    Offer,
    Permission,
    ProposeRemoval,
    Quorum,
    Remove,
    Revoke,
    encode_body,
)
from protocol.formats.commit import NO_BRANCH, NO_EPOCH, TanglePlace
from protocol.formats.content import Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.proofs import prove_invitation
from protocol.formats.publication import decode_publication, encode_publication, sign_publication
from protocol.ids import (
    BlockId,
    BranchId,
    BranchMark,
    CommitId,
    Digest,
    EpochId,
    ObjectId,
    Signature,
    TopicKey,
    UserId,
)
from storage.repos.epochs import Epoch
from tests.promise import hostile_epochs, hostile_places
from tests.promise.actions import Skipped
from tests.promise.forging import Forge, Known
from tests.promise.hostile_rules import forge_against
from tests.promise.meetings import Nothing
from tests.promise.orders import find_items
from tests.promise.people import Person
from tests.promise.world import World
from tests.support.forging import BAD_BODIES
from verifier.tangle_kinds import GROUP

Forging = Callable[[Forge], str]
_WORDS: Final = Post("forged")
_NOWHERE: Final = CommitId(BlockId(b"n" * 32))
_BAD_BODIES: Final[dict[str, bytes]] = {
    **{
        name: body for name, body in BAD_BODIES.items() if name != "a byte over the bound"
    },  # none of one block
    "another kind": b"\x92\xa5vote1\xa1x",
    "grant": encode_body(Grant(UserId(b"g" * 32), Permission.WRITE)),
}


_AT_ONCE: Final = 3
"""How many of a kind are forged in a step."""


async def forge(world: World, person: Person, kind: str, number: int, names: Sequence[str]) -> None:
    """Have an adversary forge something of a kind, or against the rules of some names; `number` draws the rest."""
    if not person.has_repo:
        raise Skipped
    forging, said = find_forge(world, person), list[str]()
    for turn in range(len(names) or _AT_ONCE):
        forging.rng = Random(f"{number} {turn}")
        # Where there is nothing that it could be made of, or nobody could encode it: another turn.
        with suppress(IndexError, DecodeError, BadSignature, ServiceError):
            said.append(forge_against(forging, names[turn]) if names else KINDS[kind](forging))
    if not said:
        raise Skipped
    world.log.append(f"    {', '.join(said)}")
    await _give(world, person, person)


def find_forge(world: World, person: Person) -> Forge:
    """The forge of an adversary."""
    found = world.forges.get(person.name)
    if not isinstance(found, Forge):
        found = world.forges[person.name] = Forge(world, person)
    return found


async def give_forged(world: World, one: Person, other: Person) -> None:
    """Have adversaries give what they have forged to whom they meet."""
    for giver, taker in ((one, other), (other, one)):
        if giver.name in world.forges:
            await _give(world, giver, taker)


async def _give(world: World, giver: Person, taker: Person) -> None:
    if not taker.has_repo:
        return
    forging = find_forge(world, giver)
    done = world.taken.setdefault((giver.name, taker.name), {})
    batches: dict[TopicKey, list[bytes]] = {}
    for number, item in enumerate(forging.given):
        topic = taker.replica.by_topic.get(item.topic)
        if topic is None or item.audience not in (None, taker.name, giver.name):
            continue
        # A node drops what it cannot place, and forgets what waits on the topic of a claim whose turn is over. Who sent it
        # finds that it is lacking; it can be placed once the topic is of more epochs, or is followed again.
        opens = topic.num, tuple(one.epoch_id for one in (*topic.epochs, *topic.writers_of))
        if done.get(number) != opens:
            done[number] = opens
            batches.setdefault(item.topic, []).append(item.encoded)
    for key, items in batches.items():
        topic = taker.replica.by_topic.get(key)
        if topic is not None:
            await taker.hub.intake.ingest(topic, items, Nothing(), None)


# --- kinds ---


def _write(forge: Forge) -> str:
    """A post, right or in an old place."""
    branch, epoch, rng = forge.rng.choice(forge.branches()), forge.some_epoch(), forge.rng
    acks = forge.heads_of(branch)
    if rng.random() < 0.5:
        known = forge.commits_of(branch.branch_id)
        acks = rng.sample(known, min(len(known), rng.randint(1, 3)))
    seen = None if rng.random() < 0.5 else [one.commit_id for one in forge.some_roots()]
    forge.write("a post", branch.branch_id, epoch, _WORDS, acks, seen=seen)
    return "a post"


def _some_body(forge: Forge) -> Body:
    rng, world = forge.rng, forge.world
    users = [one.user for one in world.people.values()]
    roots = [one.commit_id for one in forge.roots()]
    branches = [one.branch_id for one in forge.branches()]
    match rng.randrange(12):
        case 10:
            return DeviceGrant(rng.choice(users), rng.choice(list(Permission)))
        case 0:
            return Grant(rng.choice(users), rng.choice(list(Permission)))
        case 1:
            return Remove(rng.choice(users), rng.choice((None, Permission.READ, Permission.WRITE)), ())
        case 2:
            seed = InvitationSeed(rng.randbytes(32))
            return Invite(
                key_pair(seed)[0], rng.choice((Permission.READ, Permission.WRITE, Permission.ADMIN)), 1, 2**52
            )
        case 3:
            return Revoke(rng.choice(roots))
        case 4:
            return BranchLink(rng.choice(branches))
        case 5:
            return Offer(rng.choice(branches), False, "", b"")
        case 6:
            signers = tuple(sorted(set(rng.sample(users, min(2, len(users))))))
            return Quorum(signers, 1, rng.random() < 0.7)
        case 7:
            return ProposeRemoval(rng.choice(users), None)
        case 8:
            return BranchRoot()
        case 9:
            return MembersCheckpoint(Digest(rng.randbytes(32)))
        case _:
            return _WORDS


def _act(forge: Forge) -> str:
    """Something in the root branch, on the heads or in an old place."""
    body = _some_body(forge)
    why = type(body).__name__
    forge.write(why, forge.root_facts.branch_id, forge.some_epoch(), body, forge.some_roots())
    return why


def _graph(forge: Forge) -> str:
    """A commit whose acks or rank are wrong."""
    rng = forge.rng
    is_root = rng.random() < 0.5
    branch_id = forge.root_facts.branch_id if is_root else rng.choice(forge.branches()).branch_id
    known = forge.commits_of(branch_id)
    kind = rng.choice(("implied", "rank", "far rank", "other branch", "nowhere", "none", "many"))
    acks, rank = [rng.choice(known)], None
    match kind:
        case "implied":
            acks = sorted(rng.sample(known, min(len(known), 4)), key=lambda one: one.rank)
        case "rank":
            rank = max(one.rank for one in acks) + rng.choice((0, 2))
        case "far rank":
            rank = 2**50
        case "other branch":
            acks.append(rng.choice(forge.commits_of(rng.choice(forge.branches()).branch_id) + forge.roots()))
        case "nowhere":
            acks.append(Known(CommitId(BlockId(rng.randbytes(32))), 3, branch_id))
        case "none":
            acks = []
        case "many":
            acks = known[-100:]
    body: Body = BranchRoot() if is_root else _WORDS
    forge.write(f"graph: {kind}", branch_id, forge.some_epoch(), body, acks, rank=rank)
    return kind


def _place(forge: Forge) -> str:
    """A post with a wrong place in the group tangle."""
    rng, branch = forge.rng, forge.rng.choice(forge.branches())
    init = forge.root_facts.init_id
    kind = rng.choice(
        ("old", "content", "nowhere", "none", "two", "other root", "missing", "in the root branch")
    )
    seen: list[CommitId] = [init]
    tangles: tuple[TanglePlace, ...] | None = None
    branch_id, acks = branch.branch_id, forge.heads_of(branch)
    match kind:
        case "content":
            seen = [rng.choice(forge.commits_of(branch_id)).commit_id]
        case "nowhere":
            seen = [init, CommitId(BlockId(rng.randbytes(32)))]
        case "none":
            seen = []
        case "two":
            tangles = (TanglePlace(GROUP, init, (init,)), TanglePlace("z", init, (init,)))
        case "other root":
            tangles = (TanglePlace(GROUP, acks[0].commit_id, (init,)),)
        case "missing":
            tangles = ()
        case "in the root branch":
            branch_id, acks = forge.root_facts.branch_id, forge.some_roots()
            tangles = (TanglePlace(GROUP, init, (init,)),)
    forge.write(f"place: {kind}", branch_id, forge.some_epoch(), _WORDS, acks, seen=seen, tangles=tangles)
    return kind


def _epoch(forge: Forge) -> str:
    """A commit that says another epoch than its topic's, or is on the wrong one of its two."""
    rng = forge.rng
    is_root = rng.random() < 0.4
    branch = rng.choice(forge.branches())
    branch_id = forge.root_facts.branch_id if is_root else branch.branch_id
    acks = forge.some_roots() if is_root else forge.heads_of(branch)
    epoch, other = forge.some_epoch(), rng.choice(forge.held())
    kind = rng.choice(("other", "nowhere", "no epoch", "flipped", "old place", "mark", "forged"))
    seen = None
    says: dict[str, object] = {}
    mark: BranchMark | None = None
    match kind:
        case "other":
            says["epoch"] = other.epoch_id
        case "nowhere":
            says["epoch"] = EpochId(CommitId(BlockId(rng.randbytes(32))))
        case "no epoch":
            says["epoch"] = NO_EPOCH
        case "flipped":
            says["by_writer"] = epoch.writers_seed is None
        case "old place":
            seen = [forge.root_facts.init_id]
            if is_root:
                acks = [forge.roots()[0]]
        case "mark":
            mark = BranchMark(rng.randbytes(8))
        case "forged":
            epoch = rng.choice(forge.epochs)
    body: Body = BranchRoot() if is_root else _WORDS
    forge.write(f"epoch: {kind}", branch_id, epoch, body, acks, seen=seen, mark=mark, says=says)
    return kind


def _feed(forge: Forge) -> str:
    """A commit that forks its author's feed, or leaps."""
    rng, branch = forge.rng, forge.rng.choice(forge.branches())
    kind = rng.choice(("fork", "leap", "other's"))
    known = forge.commits_of(branch.branch_id)
    previous = rng.choice(known).commit_id
    sequence = {"fork": 2, "leap": 4, "other's": 3}[kind]
    forge.write(
        f"feed: {kind}", branch.branch_id, forge.some_epoch(), _WORDS, forge.heads_of(branch),
        says={"feed_sequence": sequence, "feed_previous": previous},
    )  # fmt: skip
    return kind


def _body(forge: Forge) -> str:
    """A commit with a bad body, said to be a post or not."""
    rng, branch = forge.rng, forge.rng.choice(forge.branches())
    kind = rng.choice(list(_BAD_BODIES))
    is_root, says_post = rng.random() < 0.3, rng.random() < 0.5
    branch_id = forge.root_facts.branch_id if is_root else branch.branch_id
    acks = forge.some_roots() if is_root else forge.heads_of(branch)
    metadata = declare_kind(_WORDS) if says_post else b""
    epoch, says = forge.some_epoch(), dict[str, object]()
    if rng.random() < 0.2:
        says["body"] = Reference(ObjectId(BlockId(rng.randbytes(32))), BlockKey(rng.randbytes(32)))
    forge.write(f"body: {kind}", branch_id, epoch, _BAD_BODIES[kind], acks, metadata=metadata, says=says)
    return kind


def _removal(forge: Forge) -> str:
    """A removal with odd ends, or in an old place; also of oneself."""
    rng = forge.rng
    users = [one.user for one in forge.world.people.values()]
    ends: tuple[FeedEnd, ...] = ()
    for branch in forge.branches()[:2]:
        known = forge.commits_of(branch.branch_id)
        kind = rng.randrange(4)
        commit_id = rng.choice(known).commit_id if kind else CommitId(BlockId(rng.randbytes(32)))
        ends += (FeedEnd(branch.branch_id, rng.choice((1, 2, 3, 2**40)), commit_id),)
    user = forge.user if rng.random() < 0.3 else rng.choice(users)
    keeps = rng.choice((None, None, Permission.READ, Permission.WRITE, Permission.ADMIN))
    body = Remove(user, keeps, ends if rng.random() < 0.7 else ())
    forge.write("a removal", forge.root_facts.branch_id, forge.some_epoch(), body, forge.some_roots())
    return f"removes {forge.world.name_of(user)}"


def _grant(forge: Forge) -> str:
    """A grant to a stranger, to a friend who was excluded, or to a key that is none."""
    rng = forge.rng
    bad = rng.choice(
        (bytes(32), b"\x01" + bytes(31), b"\xff" * 32, key_pair(TopicSeed(rng.randbytes(32)))[0])
    )
    friends = [forge.world.people[name].user for name in sorted(forge.world.history.hostile)]
    user = rng.choice((*friends, UserId(bad)))
    kind = rng.choice((Grant, DeviceGrant))
    body = kind(user, rng.choice((Permission.READ, Permission.WRITE, Permission.ADMIN)))
    forge.write("a grant", forge.root_facts.branch_id, forge.some_epoch(), body, forge.some_roots())
    return f"grants to {forge.world.name_of(user)}"


def _join(forge: Forge) -> str:
    """A join by any link that was ever made, often again and again; or with another's proof."""
    rng = forge.rng
    _, link = rng.choice(forge.world.links)
    repo_id = forge.root_facts.repo_id
    kind = rng.choice(("again", "again", "other's proof", "junk", "late"))
    user = (
        forge.user
        if kind != "other's proof"
        else rng.choice([one.user for one in forge.world.people.values()])
    )
    proof = prove_invitation(link.invitation_seed, repo_id, user)
    if kind == "junk":
        proof = Signature(rng.randbytes(64))
    roots = forge.some_roots()
    if rng.random() < 0.4:
        roots = [one for one in forge.roots() if one.commit_id == link.invitation] or roots
    epoch = forge.some_epoch()
    says: dict[str, object] = {"timestamp": 2**52} if kind == "late" else {}
    forge.write(
        f"join: {kind}", forge.root_facts.branch_id, epoch, Join(link.invitation, proof), roots, says=says
    )
    return kind


def _topic(forge: Forge) -> str:
    """A right commit on a wrong topic, or with its parts changed by whoever carries it."""
    rng, branch = forge.rng, forge.rng.choice(forge.branches())
    epoch, other = forge.some_epoch(), rng.choice(forge.held())
    kind = rng.choice(
        ("other epoch", "own topic", "both", "writers", "other key", "more blocks", "other signature")
    )
    target = forge.target(branch.branch_id, epoch)
    seeds: list[tuple[TopicSeed, Epoch]] = []
    match kind:
        case "other epoch":
            seeds = [(other.keys.topic_seed, other)]
        case "own topic":
            seeds = [(epoch.keys.topic_seed, epoch)]
        case "both":
            seeds = [(epoch.keys.topic_seed, epoch), (target.seed, epoch), (other.keys.topic_seed, epoch)]
        case "writers":
            seeds = [(epoch.writers_seed or epoch.keys.topic_seed, epoch)]
        case "other key":
            seeds = [(target.seed, other)]
        case _:
            seeds = [(target.seed, epoch)]
    before = len(forge.given)
    forge.write(
        f"topic: {kind}",
        branch.branch_id,
        epoch,
        _WORDS,
        forge.heads_of(branch),
        on=seeds,
    )
    for item in forge.given[before:]:
        made = decode_publication(item.encoded)
        blocks = tuple(one.encoded for one in made.blocks)
        if kind == "more blocks":
            blocks = (*blocks, blocks[-1])
        secret = topic_key_pair(target.seed if kind != "other signature" else other.keys.topic_seed)[1]
        if kind in ("more blocks", "other signature"):
            signature = sign_publication(secret, made.topic, made.hidden_key, blocks)
            item.encoded = encode_publication(made.topic, made.hidden_key, blocks, signature)
    return kind


def _bytes(forge: Forge) -> str:
    """Bytes of a publication, some of them flipped, cut off or repeated: of its own, or of what its node has."""
    rng = forge.rng
    found = [(one.topic, one.encoded) for one in forge.given if one.encoded]
    found += find_items(forge.person)[-20:]
    topic, encoded = rng.choice(found)
    changed = bytearray(encoded)
    kind = rng.choice(("flipped", "flipped", "cut", "longer", "empty"))
    match kind:
        case "flipped":
            for _ in range(rng.choice((1, 1, 3))):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        case "cut":
            del changed[rng.randrange(len(changed)) :]
        case "longer":
            changed += changed[: rng.randrange(1, 40)]
        case _:
            changed.clear()
    forge.keep(topic, bytes(changed))
    return f"bytes: {kind}"


def _branch(forge: Forge) -> str:
    """A branch whose beginning is odd: never published, twice pinned, in another epoch, or not its first commit's."""
    rng = forge.rng
    epoch = forge.some_epoch()
    kind = rng.choice(
        ("right", "other epoch", "unpublished", "again", "second root", "root branch", "other id")
    )
    root_id = forge.root_facts.branch_id
    if kind == "again":
        branch = rng.choice(forge.branches())
        reference = Reference(ObjectId(branch.facts.root_id), BlockKey(rng.randbytes(32)))
        body: Body = BranchAdd(branch.branch_id, "again", reference)
        forge.write("branch: again", root_id, epoch, body, forge.some_roots())
        return kind
    if kind == "second root":
        branch = rng.choice(forge.branches())
        forge.write("branch: second root", branch.branch_id, epoch, BranchRoot(), [])
        return kind
    if kind == "root branch":
        body = BranchAdd(root_id, "root", Reference(ObjectId(forge.root_facts.init_id), BlockKey(bytes(32))))
        forge.write("branch: root", root_id, epoch, body, forge.some_roots())
        return kind
    first_epoch = rng.choice(forge.held()) if kind == "other epoch" else epoch
    before = len(forge.given)
    first = forge.write("branch: first", NO_BRANCH, first_epoch, BranchRoot(), [])
    key = rng.randbytes(
        32
    )  # who pins a branch may say any key of its first commit: nobody looks at it before it is there
    if kind == "unpublished":
        del forge.given[before:]
    branch_id = BranchId(first) if kind != "other id" else BranchId(rng.randbytes(32))
    pin = BranchAdd(branch_id, "forged", Reference(ObjectId(first), BlockKey(key)))
    forge.write(f"branch: {kind}", root_id, epoch, pin, forge.some_roots())
    if rng.random() < 0.5 and kind in ("right", "other epoch"):
        forge.world.branches.append(branch_id)
        forge.write("branch: a post", branch_id, epoch, _WORDS, [Known(first, 0, branch_id)])
    return f"branch: {kind}"


KINDS: Final[dict[str, Forging]] = {
    "write": _write,
    "act": _act,
    "init": hostile_epochs.forge_init,
    "open": hostile_epochs.forge_open,
    "hand": hostile_epochs.forge_hand,
    "claims": hostile_epochs.forge_claims,
    "graph": _graph,
    "place": _place,
    "epoch": _epoch,
    "feed": _feed,
    "body": _body,
    "removal": _removal,
    "grant": _grant,
    "join": _join,
    "topic": _topic,
    "bytes": _bytes,
    "branch": _branch,
    "device": hostile_places.forge_device,
    "move": hostile_places.forge_move,
    "friends": hostile_places.forge_friends,
    "recovery": hostile_places.forge_recovery,
    "puppet": hostile_places.forge_puppet,
}
