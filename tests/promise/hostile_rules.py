"""Forges commits that are right but for one rule: who has that rule taken out accepts them.

Each kind stands on what the adversary's node would write on, after it has done what is due. `frequencies.RULES` says who can
forge it: of somebody else, another rule would reject it too.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from node.ingest.ingest_result import IngestResult
from protocol.crypto.epoch_boxes import BOX_SIZE, Sealer
from protocol.crypto.keys import BlockKey, EpochKey, InvitationSeed, WritersSecret
from protocol.crypto.signing import key_pair
from protocol.formats.block import Reference
from protocol.formats.body import (
    Answer,
    Approve,
    Body,
    BranchAdd,
    BranchLink,
    BranchRoot,
    Checkpoint,
    DeviceGrant,
    Grant,
    Invite,
    Join,
    Offer,
    Permission,
    ProposeRemoval,
    Quorum,
    Remove,
    Revoke,
)
from protocol.formats.commit import NO_BRANCH, TanglePlace
from protocol.formats.epochs import EpochHand, EpochOpen, GivenEpoch, HandedBox
from protocol.formats.proofs import prove_invitation
from protocol.ids import BlockId, BranchId, CommitId, EpochId, ObjectId, Signature
from tests.promise.actions import FOREVER
from tests.promise.forging import NOW_MS, Forge, Known
from tests.promise.ground import WORDS, Ground
from tests.promise.hostile_epochs import make_init
from tests.promise.hostile_place_rules import PLACE_RULES
from verifier.tangle_kinds import GROUP

_EPOCHS_NEEDED: Final = 2
"""What is wrong about an epoch often takes another one: of an admin, its node starts that first."""


def forge_against(forge: Forge, name: str) -> str:
    """Forge a commit that breaks the rule of a name alone."""
    person, rng = forge.person, forge.rng
    repo = person.repo()
    stored = IngestResult()
    person.author.preparation.prepare(repo, stored)
    person.hub.announce(stored)
    is_admin = (person.replica.permission(repo, person.user) or 0) >= Permission.ADMIN
    if is_admin and len(person.replica.tables.held_epochs(repo.num)) < _EPOCHS_NEEDED:
        person.hub.announce(person.author.start_epoch(repo))
    branch = rng.choice([one for one in forge.branches() if person.heads(one)])
    roots = forge.heads_of(person.replica.root_branch(repo))
    RULES[name](Ground(forge, name, person.epoch(), roots, branch, forge.heads_of(branch)))
    return f"against {name}"


# --- V ---


def _epoch_said(on: Ground) -> None:
    on.post(epoch=on.closed(), says={"epoch": on.epoch.epoch_id})


def _by_writer(on: Ground) -> None:
    on.post(says={"by_writer": on.epoch.writers_seed is None})


def _second_root(on: Ground) -> None:
    on.post([], body=BranchRoot())


def _before_added(on: Ground) -> None:
    forge, place = on.forge, [one.commit_id for one in on.roots]
    forge.write("branch: first", NO_BRANCH, on.epoch, BranchRoot(), [], seen=place)
    first = forge.made[-1]
    branch_id = BranchId(first.commit_id)
    key = BlockKey(forge.rng.randbytes(32))
    on.act(BranchAdd(branch_id, "forged", Reference(ObjectId(first.commit_id), key)), why="branch: right")
    forge.write(
        f"rule: {on.name}", branch_id, on.epoch, WORDS, [Known(first.commit_id, 0, branch_id)], seen=place
    )


def _no_place(on: Ground) -> None:
    on.post(tangles=())
    on.post(tangles=(TanglePlace(GROUP, on.heads[0].commit_id, tuple(one.commit_id for one in on.roots)),))


def _root_place(on: Ground) -> None:
    init = on.forge.root_facts.init_id
    on.act(BranchLink(on.branch.branch_id), tangles=(TanglePlace(GROUP, init, (init,)),))


def _content_place(on: Ground) -> None:
    on.post(seen=[*on.roots, on.heads[0]])


def _rejected_cause(on: Ground) -> None:
    wrong = on.post(rank=on.heads[0].rank + 7, why="graph: rank")
    on.post([wrong])


def _rank(on: Ground) -> None:
    rank = max(one.rank for one in on.heads) + on.forge.rng.choice((0, 2))
    on.post(rank=rank)


def _other_branch(on: Ground) -> None:
    if on.forge.rng.random() < 0.5:
        on.act(BranchLink(on.branch.branch_id), [*on.roots, on.heads[0]])
    else:
        others = [one for one in on.forge.branches() if one.branch_id != on.branch.branch_id]
        other = on.forge.heads_of(on.forge.rng.choice(others))[0] if others else on.roots[0]
        on.post([*on.heads, other])


def _older_place(on: Ground) -> None:
    later = on.right_act()
    ack = on.post(seen=[later], why="a post")
    on.post([ack])


def _implied(on: Ground) -> None:
    if on.forge.rng.random() < 0.5:
        one = on.post(why="a post")
        on.post([on.heads[0], one])
    else:
        on.act(BranchLink(on.branch.branch_id), [on.roots[0], on.right_act()])


def _later_epoch(on: Ground) -> None:
    forge, roots = on.forge, on.forge.roots()
    started = [one.acks for one in roots if one.commit_id == on.epoch.epoch_id]
    before = [one for one in roots if one.commit_id in started[0]]
    if forge.rng.random() < 0.6:
        on.act(BranchLink(on.branch.branch_id), [forge.rng.choice(before)])
        return
    # The place of the oldest branch's first commit has next to nothing, so that a place of then has all of it.
    oldest = [one for one in forge.branches() if one.branch_id == forge.world.branches[0]]
    replace(on, branch=oldest[0]).post([forge.commits_of(oldest[0].branch_id)[0]], seen=before)


def _closed_content(on: Ground) -> None:
    on.post(epoch=on.closed())


def _closed_root(on: Ground) -> None:
    on.act(BranchLink(on.branch.branch_id), epoch=on.closed())


# --- E, M9 to M11 ---


def _hand(wrong: str) -> Callable[[Ground], None]:
    """A hand-over of the epoch in use, in it, with one thing wrong."""

    def forge(on: Ground) -> None:
        rng, epoch, repo_id = on.forge.rng, on.epoch, on.forge.root_facts.repo_id
        if wrong == "closed":
            epoch = on.closed()
        states = on.states_of(epoch)
        sealer, users = Sealer.of_epoch(epoch.key, repo_id), sorted(on.members())
        if wrong == "stranger":
            users = sorted((*users, on.stranger()))
        before = on.resolution()
        boxes = [HandedBox(user, sealer.seal(user, before.prekey_of(user)), None) for user in users]
        mark, writers_mark = states.mark, states.writers_mark
        match wrong:
            case "box":
                place = rng.randrange(len(boxes))
                boxes[place] = HandedBox(users[place], rng.randbytes(BOX_SIZE), None)
            case "mark":
                mark = Sealer.of_epoch(EpochKey(rng.randbytes(32)), repo_id).mark
            case "writers' mark":
                writers_mark = Sealer.of_writers(WritersSecret(rng.randbytes(32)), repo_id).mark
            case "writers' box":
                reader = rng.choice([user for user in users if on.members()[user] < Permission.WRITE])
                boxes = [
                    HandedBox(reader, sealer.seal(reader, before.prekey_of(reader)), rng.randbytes(BOX_SIZE))
                ]
            case "twice":
                boxes.append(boxes[-1])
        on.act(EpochHand(epoch.epoch_id, mark, writers_mark, tuple(boxes)), gives=[epoch.epoch_id])

    return forge


def _open(wrong: str) -> Callable[[Ground], None]:
    """An opening, in the epoch in use, with one thing wrong."""

    def forge(on: Ground) -> None:
        rng = on.forge.rng
        given = [GivenEpoch(on.epoch.epoch_id, on.epoch.key)]
        match wrong:
            case "key":
                given = [GivenEpoch(on.epoch.epoch_id, EpochKey(rng.randbytes(32)))]
            case "nowhere":
                given.append(GivenEpoch(EpochId(CommitId(BlockId(rng.randbytes(32)))), EpochKey(bytes(32))))
                given.sort(key=lambda one: one.epoch)
            case "twice":
                given *= 2
        on.act(EpochOpen(tuple(given)))

    return forge


def _init(kind: str) -> Callable[[Ground], None]:
    """An init on the heads of the root branch, with one thing wrong."""

    def forge(on: Ground) -> None:
        published_in = on.closed() if kind == "own key" else on.epoch
        make_init(on.forge, f"rule: {on.name}", kind, on.roots, published_in)

    return forge


# --- M ---


def _body(make: Callable[[Ground], Body]) -> Callable[[Ground], None]:
    def forge(on: Ground) -> None:
        on.act(make(on))

    return forge


def _reader_writes(on: Ground) -> None:
    if on.forge.rng.random() < 0.5:
        on.post()
    else:
        on.right_act()


def _senior(on: Ground) -> Body:
    founder = next(iter(on.forge.world.people.values())).user
    return Remove(founder, on.forge.rng.choice((None, Permission.READ, Permission.ADMIN)), ())


def _join(wrong: str) -> Callable[[Ground], None]:
    """A join by an invitation made for it."""

    def forge(on: Ground) -> None:
        forge, repo_id = on.forge, on.forge.root_facts.repo_id
        seed = InvitationSeed(forge.rng.randbytes(32))
        expiry = NOW_MS if wrong == "late" else FOREVER
        invitation = on.act(Invite(key_pair(seed)[0], Permission.READ, 1, expiry), why="an invitation")
        before = [invitation]
        if wrong == "revoked":
            before = [on.act(Revoke(invitation.commit_id), before, why="a revocation")]
        elif wrong == "uses":
            before = [_puppet_joins(on, seed, invitation, before, why="join: right")]
        proof = prove_invitation(seed, repo_id, forge.user)
        if wrong == "proof":
            proof = Signature(forge.rng.randbytes(64))
        on.act(Join(invitation.commit_id, proof), before)

    return forge


def _puppet_joins(
    on: Ground, seed: InvitationSeed, invitation: Known, acks: Sequence[Known], why: str
) -> Known:
    """Have a user join whom the adversary made up."""
    forge = on.forge
    puppet = forge.make_puppet()
    body = Join(invitation.commit_id, prove_invitation(seed, forge.root_facts.repo_id, puppet.user))
    forge.write(why, on.root_id, on.epoch, body, acks, by=puppet)
    return forge.made[-1]


def _approve(on: Ground) -> None:
    """An approval by who is no signer."""
    others = [user for user in on.members() if user != on.forge.user]
    named = on.act(Quorum((on.forge.rng.choice(others),), 1, False), why="a quorum")
    proposal = on.act(ProposeRemoval(others[0], None), [named], why="a proposal")
    on.act(Approve(proposal.commit_id), [proposal])


def _checkpoint(on: Ground) -> None:
    on.post(body=Checkpoint(on.roots[0].commit_id))


def _adopt_own(on: Ground) -> None:
    """Accept an offer of one's own."""
    offer = on.act(Offer(on.branch.branch_id, False, "", b""), why="an offer")
    on.act(Answer(offer.commit_id, True), [offer])


def _revoke(on: Ground) -> Body:
    return Revoke(on.forge.world.links[0][1].invitation)


def _add_again(on: Ground) -> Body:
    reference = Reference(ObjectId(on.branch.facts.root_id), BlockKey(on.forge.rng.randbytes(32)))
    return BranchAdd(on.branch.branch_id, "again", reference)


def _invite_to(permission: Permission) -> Callable[[Ground], Body]:
    def make(on: Ground) -> Body:
        return Invite(key_pair(InvitationSeed(on.forge.rng.randbytes(32)))[0], permission, 1, FOREVER)

    return make


RULES: Final[dict[str, Callable[[Ground], None]]] = {
    "V1 epoch": _epoch_said,
    "V1 by a writer": _by_writer,
    "V2 root": _second_root,
    "V2 added": _before_added,
    "V3 place": _no_place,
    "V3 root branch": _root_place,
    "V4": _rejected_cause,
    "V6 rank": _rank,
    "V6 branch": _other_branch,
    "V6 place": _content_place,
    "V6 monotony": _older_place,
    "V10": _implied,
    "V11": _later_epoch,
    "V12 root": _closed_root,
    "V12 content": _closed_content,
    "V12 hand": _hand("closed"),
    "M2": _body(_add_again),
    "M3": _body(_invite_to(Permission.ADMIN)),
    "M3 admin": _body(_invite_to(Permission.READ)),
    "M4 proof": _join("proof"),
    "M4 late": _join("late"),
    "M4 revoked": _join("revoked"),
    "M4 uses": _join("uses"),
    "M5": _reader_writes,
    "M6": _body(lambda on: Grant(on.stranger(), Permission.OWNER)),
    "M6 adds": _body(lambda on: Grant(on.forge.user, Permission.READ)),
    "M17": _body(lambda on: DeviceGrant(on.stranger(), Permission.OWNER)),
    "M17 adds": _body(lambda on: DeviceGrant(on.forge.user, Permission.READ)),
    "M7": _body(_senior),
    "M7 takes": _body(lambda on: Remove(on.stranger(), None, ())),
    "M8": _body(_revoke),
    "M9 admin": _init("right"),
    "M10 box": _hand("box"),
    "M10 mark": _hand("mark"),
    "M10 writers' mark": _hand("writers' mark"),
    "M10 stranger": _hand("stranger"),
    "M10 reader": _hand("writers' box"),
    "M10 twice": _hand("twice"),
    "M11 key": _open("key"),
    "M11 nowhere": _open("nowhere"),
    "M11 twice": _open("twice"),
    "M12": _adopt_own,
    "M13 owner": _body(lambda on: Quorum((on.forge.user,), 1, False)),
    "M13 stranger": _body(lambda on: Quorum((on.stranger(),), 1, False)),
    "M13 threshold": _body(lambda on: Quorum((on.forge.user,), 2, False)),
    "M13 checkpoint": _checkpoint,
    "M14": _approve,
    "E2 box": _init("junk box"),
    "E2 fewer": _init("missing box"),
    "E2 stranger": _init("stranger's box"),
    "E2 order": _init("boxes swapped"),
    "E2 writers' boxes": _init("missing writers' box"),
    "E2 keys": _init("other keys"),
    "E2 junk keys": _init("junk keys"),
    "E2 own key": _init("own key"),
    "E2 topic": _init("junk statement"),
    "E2 mark": _init("old key"),
    **PLACE_RULES,
}
"""By what they are against."""
