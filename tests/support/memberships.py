"""Membership histories by short names, judged twice: by the real rules and by the reference. No signatures, no store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Final

from protocol.crypto.epoch_boxes import epoch_mark, writers_mark
from protocol.crypto.hashing import writers_topic_seed
from protocol.crypto.keys import BlockKey, EpochKey, InvitationSeed, RepoSeed, UserSeed, WritersSecret
from protocol.crypto.signing import key_pair, public_key, sign
from protocol.formats.block import Reference as BlockReference
from protocol.formats.body import (
    Adopt,
    Approve,
    Body,
    BranchEdit,
    DeviceGrant,
    FriendSignature,
    Grant,
    Invite,
    Join,
    Move,
    Permission,
    ProposeRemoval,
    Quorum,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
    RepoInit,
    Revoke,
    UnknownBody,
)
from protocol.formats.commit import NO_EPOCH, NO_MARK, Commit, Content, Links
from protocol.formats.content import Post
from protocol.formats.epochs import NONCE_SIZE, EpochStatement, seal_topic
from protocol.formats.proofs import certify_repo, prove_invitation, recovery_digest
from protocol.ids import BranchId, CommitId, EpochId, InvitationKey, Signature, UserId, root_branch
from tests.support.ids import as_commit_id, as_object_id
from tests.support.reference_membership import ADMIN, MANAGE, OWNER, READ, WRITE, Op, Reference
from tests.support.restored import Saver, state_of
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution

REPO_SEED: Final = RepoSeed(b"r" * 32)
REPO: Final = key_pair(REPO_SEED)[0]
NAMES: Final = ("ann", "ben", "cat", "dan", "eve", "fay", "gus", "hal")
NAME_OF: Final[dict[UserId, str]] = {}
KEY: Final = EpochKey(b"e" * 32)
"""Of the founding epoch, in which all is published that names no other."""


class _Users(dict[str, UserId]):
    """Keys by name, made when they are asked for."""

    def __missing__(self, name: str) -> UserId:
        self[name] = key_pair(UserSeed(name.encode().ljust(32)))[0]
        NAME_OF[self[name]] = name
        return self[name]


USERS: Final = _Users()
for _name in NAMES:
    assert USERS[_name]
_SOMETHING: Final = BlockReference(as_object_id(b"s" * 32), BlockKey(b"k" * 32))
_BRANCH: Final = BranchId(b"b" * 32)


@dataclass(frozen=True)
class Step:
    """One operation of a history; `acks` are numbers of earlier ones, 0 is the init."""

    author: str
    kind: str
    """grant, lend (to a device), remove, invite, join, revoke, quorum, propose, approve, move, friends, recover, act. A
    post is an act that needs write."""
    user: str
    level: int
    acks: tuple[int, ...]
    target: int = -1
    names: tuple[str, ...] = ()
    covers: bool = True
    uses: int = 8
    is_late: bool = False

    def body(self) -> Body:
        """Return the operation as it travels."""
        keeps = Permission(self.level) if self.level else None
        match self.kind:
            case "grant":
                return Grant(USERS[self.user], Permission(self.level))
            case "lend":
                return DeviceGrant(USERS[self.user], Permission(self.level))
            case "move":
                return Move(USERS[self.user], commit_id(self.target))
            case "friends":
                return RecoveryFriends(tuple(sorted(USERS[name] for name in self.names)), self.level)
            case "recover":
                gives = commit_id(self.target), USERS[self.user], Permission(self.level)
                signatures = sorted(_sign_recovery(name, *gives) for name in self.names)
                return RecoveryGrant(*gives, tuple(FriendSignature(*one) for one in signatures))
            case "remove":
                return Remove(USERS[self.user], keeps, ())
            case "invite":
                expires_at = 0 if self.is_late else 1  # all is dated 0
                return Invite(_invitation_key(), Permission(self.level), self.uses, expires_at)
            case "join":
                return Join(commit_id(self.target), _proof(USERS[self.author]))
            case "revoke":
                return Revoke(commit_id(self.target))
            case "quorum":
                signers = tuple(sorted(USERS[name] for name in self.names))
                return Quorum(signers, self.level, self.covers)
            case "propose":
                return ProposeRemoval(USERS[self.user], keeps)
            case "approve":
                return Approve(commit_id(self.target))
            case _ if self.level == ADMIN:
                return Adopt(_BRANCH, (commit_id(0),))
            case _ if self.level == MANAGE:
                return BranchEdit(_BRANCH, None, archived=True)
        return Post("content of the root branch")

    def op(self, past: frozenset[int]) -> Op:
        """Return the same for the reference."""
        kind, level = (self.kind, self.level) if self.kind != "post" else ("act", WRITE)
        user = self.user if kind in ("grant", "lend", "remove", "propose", "move", "recover") else ""
        return Op(
            self.author,
            past,
            kind,
            user,
            level,
            self.names,
            self.target,
            self.uses,
            self.is_late,
            self.covers,
        )


@cache
def _invitation_key() -> InvitationKey:
    return key_pair(InvitationSeed(b"i" * 32))[0]


@cache
def _proof(user: UserId) -> Signature:
    return prove_invitation(InvitationSeed(b"i" * 32), REPO, user)


@cache
def _sign_recovery(
    name: str, naming: CommitId, user: UserId, permission: Permission
) -> tuple[UserId, Signature]:
    secret = key_pair(UserSeed(name.encode().ljust(32)))[1]
    return USERS[name], sign(secret, recovery_digest(REPO, naming, user, permission))


def commit_id(number: int) -> CommitId:
    """Ids that are not in the order of numbers."""
    return as_commit_id(bytes([number * 37 % 251]) * 16 + number.to_bytes(16, "big"))


@cache
def _statement() -> EpochStatement:
    """What an init states of the founding epoch."""
    mark, secret = epoch_mark(KEY, REPO), WritersSecret(b"w" * 32)
    topic = public_key(writers_topic_seed(secret, REPO, mark))
    return EpochStatement(
        mark, writers_mark(secret, REPO), seal_topic(KEY, REPO, mark, topic, bytes(NONCE_SIZE))
    )


def make_init(founders: tuple[str, ...] = ("ann",)) -> RepoInit:
    """The init of a repo."""
    owners = tuple(USERS[name] for name in founders)
    return RepoInit("repo", owners, certify_repo(REPO_SEED, "repo", owners), _statement())


def make_commit(number: int, author: str, acks: tuple[int, ...], epoch: EpochId | None = None) -> Commit:
    """What the rules look at of a commit; nothing of it is sealed or signed. The founding epoch is that of commit 0."""
    if epoch is None:
        epoch = EpochId(commit_id(0)) if acks else NO_EPOCH
    content = Content(
        author=USERS[author],
        branch=root_branch(REPO),
        epoch=epoch,
        by_writer=False,
        whole=True,
        feed_sequence=1,
        feed_previous=None,
        tangles=(),
        timestamp=0,
        metadata=b"",
        body=_SOMETHING,
    )
    ids = tuple(map(commit_id, acks))
    return Commit(commit_id(number), BlockKey(b""), ids, 0, NO_MARK, Links(), content, Signature(b""))


class Twins:
    """The real membership and the reference, given the same history."""

    def __init__(self, founders: tuple[str, ...] = ("ann",)) -> None:
        self.real = Membership(REPO)
        self.reference = Reference(commit_id)
        self.pasts: list[frozenset[int]] = []
        self.steps: list[Step] = []
        self._operations: list[Operation] = []
        init = make_commit(0, founders[0], ())
        self._init = make_init(founders)
        self._keep(self.real.authorise_root_commit(init, self._init, KEY), ())
        self.reference.admit(0, Op(founders[0], frozenset(), "found", names=founders))
        self.steps.append(Step(founders[0], "found", "", 0, (), names=founders))

    def __len__(self) -> int:
        return len(self._operations)

    def take(self, step: Step) -> bool:
        """Judge a step twice; return True if it was accepted. Both must say the same."""
        number = len(self._operations)
        past = frozenset(step.acks).union(*(self.pasts[ack] for ack in step.acks))
        op = step.op(past)
        commit = make_commit(number, step.author, step.acks)
        operation, refusal = None, ""
        try:
            operation = self.real.authorise_root_commit(commit, step.body())
        except CommitRefused as error:
            refusal = str(error)
        assert self.reference.admit(number, op) == (operation is not None), f"{step}: {refusal or 'taken'}"
        if operation is None:
            return False
        assert (operation.needs or 0) == self.reference.ops[number].needed
        self._keep(operation, step.acks)
        self.steps.append(step)
        return True

    def check(self) -> dict[str, int]:
        """Compare all that can be asked about the whole history, and give the members with their levels."""
        return self._compare(self.real.now(), frozenset(range(len(self._operations))))

    def check_order(self, order: Sequence[int]) -> dict[str, int]:
        """Compare the same after the operations have come in another order, causes first, to a membership of their own."""
        kept, self.real = self.real, Membership(REPO)
        for number in order:
            step = self.steps[number]
            commit = make_commit(number, step.author, step.acks)
            operation = self.real.authorise_root_commit(
                commit, self._init if number == 0 else step.body(), KEY
            )
            self.real.add(operation, commit.acks)
            if number % 3:  # else it is asked later, about several at once
                self.real.now()
        found = self.check()
        self.real = kept
        return found

    def check_restored(self, rng: Random) -> None:
        """Compare a membership that is saved now and then, and restored, with one that never was, to the end."""
        grown = Membership(REPO)
        saver = Saver(grown, REPO)
        for number, step in enumerate(self.steps):
            restored = saver.check() if rng.random() < 0.3 else None
            commit = make_commit(number, step.author, step.acks)
            body = self._init if number == 0 else step.body()
            for one in (grown, restored):
                if one is not None:
                    one.add(one.authorise_root_commit(commit, body, KEY), commit.acks)
            if restored is not None:
                assert state_of(restored) == state_of(grown), "it goes on as the other does"
        saver.check()

    def check_at(self, acks: tuple[int, ...]) -> dict[str, int]:
        """Compare the same about what some operations have in their pasts."""
        past = frozenset(acks).union(*(self.pasts[ack] for ack in acks))
        return self._compare(self.real.at(tuple(map(commit_id, acks))), past)

    def _compare(self, found: Resolution, whole: frozenset[int]) -> dict[str, int]:
        world, operations = self.reference.world(whole), self.real.operations
        having_effect = {one.commit_id for one in operations.removals if found.has_effect(one)}
        assert having_effect == set(map(commit_id, world.counting()))
        by_others = {one for one in world.counting() if not self.reference.ops[one].is_leave}
        assert found.counting == set(map(commit_id, by_others))
        for number in whole:
            operation = operations[commit_id(number)]
            assert found.counts(operation) == world.counts(number), number
            if operation.is_contestable:
                held = (one for one in world.rights(number) if world.holds(world.deed(number), one))
                assert found.acts_of(operation) == {(commit_id(one), level) for one, level in held}, number
            else:
                self._compare_past(found, whole, number)
        for user in operations.users():
            rights = {(commit_id(right.credential), right.level) for right in world.held(NAME_OF[user])}
            assert set(found.rights_held(user)) == rights, NAME_OF[user]
        members = {NAME_OF[user]: int(held) for user, held in found.members().items()}
        assert members == world.members()
        return members

    def _compare_past(self, found: Resolution, whole: frozenset[int], number: int) -> None:
        """Compare the permission of an author where it did something, by what counts in a set."""
        past, author = self.pasts[number], self.steps[number].author
        heads = tuple(one for one in past if not any(one in self.pasts[other] for other in past))
        held = found.permission(USERS[author], tuple(map(commit_id, heads)))
        assert (held or 0) == self.reference.world(whole).level(author, past), number

    def _keep(self, operation: Operation, acks: tuple[int, ...]) -> None:
        self.real.add(operation, tuple(map(commit_id, acks)))
        self.real.now()  # which goes on from what it was: what it comes to is compared at the end
        self._operations.append(operation)
        self.pasts.append(frozenset(acks).union(*(self.pasts[ack] for ack in acks)))


def replay(steps: Sequence[Step], refused: Collection[int] = ()) -> Twins:
    """Return twins after these steps, of which just those are refused that have these numbers, from 1 on.

    Steps name others by these numbers. What follows a refused one is refused.
    """
    twins = Twins()
    kept = {0: 0}
    for number, step in enumerate(steps, start=1):
        is_taken = kept.keys() >= {*step.acks}
        if is_taken:
            acks = tuple(kept[ack] for ack in step.acks)
            is_taken = twins.take(replace(step, acks=acks, target=kept.get(step.target, -1)))
        assert is_taken == (number not in refused), (number, step)
        if is_taken:
            kept[number] = len(twins) - 1
    return twins


LEVELS: Final = {"read": READ, "write": WRITE, "manage": MANAGE, "admin": ADMIN, "owner": OWNER, "": 0}
_SIGNS: Final = {"+": "grant", "*": "lend", ">": "move", "-": "remove", ".": "act"}


def parse(description: str) -> list[Step]:
    """Return steps from lines such as `ann + ben admin < 0`, `ann - ben < 1`, `ann - ben write < 1` and `ann . < 1 2`.

    Also `ben * tab write < 1`, a device grant, `i: ann invite write < 0`, `ben join i < i`, `ann revoke i < i`,
    `q: ann quorum 2 ben cat < 3`, which covers
    removals, `p: ben propose dan < q`, `cat approve p < p`, and `ann act admin < 1`. `ben > tab i < 3` passes on what the
    line `i` gives; `f: ben friends 2 cat dan < 3` names friends, and `cat recover f pad write cat dan < f` has their
    signatures. Lines have the numbers 1, 2, ... or
    the name before the colon; after `<` stand those of what they follow.
    """
    steps: list[Step] = []
    numbers: dict[str, int] = {"0": 0}
    for number, line in enumerate(description.strip().splitlines(), start=1):
        said, _, acks = line.partition("<")
        label, _, said = said.rpartition(":")
        numbers[label.strip() or str(number)] = number
        author, verb, *words = said.split()
        steps.append(_parse_step(author, verb, words, numbers, tuple(numbers[one] for one in acks.split())))
    return steps


def _parse_step(
    author: str, verb: str, words: Sequence[str], numbers: Mapping[str, int], acks: tuple[int, ...]
) -> Step:
    kind = _SIGNS.get(verb, verb)
    level = next((LEVELS[word] for word in words if word in LEVELS), WRITE if kind == "act" else 0)
    match kind:
        case "quorum":
            return Step(author, kind, author, int(words[0]), acks, names=tuple(words[1:]))
        case "join" | "revoke" | "approve":
            return Step(author, kind, author, 0, acks, numbers[words[0]])
        case "move":
            return Step(author, kind, words[0], 0, acks, numbers[words[1]])
        case "friends":
            return Step(author, kind, author, int(words[0]), acks, names=tuple(words[1:]))
        case "recover":
            return Step(author, kind, words[1], level, acks, numbers[words[0]], tuple(words[3:]))
    user = next((word for word in words if word not in LEVELS), author)
    return Step(author, kind, user, level, acks)


def antichains(pasts: list[frozenset[int]]) -> list[tuple[int, ...]]:
    """All ways to ack: sets of operations of which none is in another's past."""
    found: list[tuple[int, ...]] = [()]
    for number, past in enumerate(pasts):
        found += [(*chosen, number) for chosen in found if not past.intersection(chosen)]
    return [chosen for chosen in found if chosen]


def replay_shuffled(history: Sequence[tuple[Commit, Body | UnknownBody]], rng: Random) -> Membership:
    """Judge a history in some order, causes first. Leave out refused commits and those that follow one."""
    membership = Membership(REPO)
    left, refused = list(history), set[CommitId]()
    while left:
        ready = [
            one for one in left if all(ack in membership.operations or ack in refused for ack in one[0].acks)
        ]
        commit, body = rng.choice(ready)
        left.remove((commit, body))
        try:
            if refused.intersection(commit.acks):
                raise CommitRefused("not_permitted", "it follows what was refused")
            membership.add(membership.authorise_root_commit(commit, body, KEY), commit.acks)
        except CommitRefused:
            refused.add(commit.commit_id)
    return membership
