"""Membership histories by short names, judged twice: by the real rules and by the reference. No signatures, no store."""

from dataclasses import dataclass
from typing import Final

from protocol.block import Reference as BlockReference
from protocol.body import Body, Grant, Permission, Remove, RepoInit
from protocol.commit import NO_EPOCH, Commit, Content, HeaderKeys, Links
from protocol.content import Post
from protocol.ids import CommitId, EpochId, Signature, root_branch
from protocol.keys import BlockKey, RepoSeed, UserSeed
from protocol.proofs import certify_repo
from protocol.signing import key_pair
from tests.support.ids import as_commit_id, as_object_id
from tests.support.reference_membership import Op, Reference
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.refusal import CommitRefused

REPO_SEED: Final = RepoSeed(b"r" * 32)
REPO: Final = key_pair(REPO_SEED)[0]
NAMES: Final = ("ann", "ben", "cat", "dan", "eve", "fay", "gus", "hal")
USERS: Final = {name: key_pair(UserSeed(name.encode().ljust(32)))[0] for name in NAMES}
_NAMED: Final = {user: name for name, user in USERS.items()}
_SOMETHING: Final = BlockReference(as_object_id(b"s" * 32), BlockKey(b"k" * 32))


@dataclass(frozen=True)
class Step:
    """One operation of a history: `acks` are numbers of earlier ones, 0 is the init that `ann` made."""

    author: str
    kind: str  # grant, remove, post
    user: str
    level: int
    acks: tuple[int, ...]

    def body(self) -> Body:
        """The operation as it travels."""
        if self.kind == "grant":
            return Grant(USERS[self.user], Permission(self.level), None)
        if self.kind == "remove":
            return Remove(USERS[self.user], Permission(self.level) if self.level else None, ())
        return Post("content of the root branch")


def commit_id(number: int) -> CommitId:
    """Ids that are not in the order of numbers."""
    return as_commit_id(bytes([number * 37 % 251]) * 16 + number.to_bytes(16, "big"))


def make_commit(number: int, author: str, acks: tuple[int, ...], epoch: EpochId = NO_EPOCH) -> Commit:
    """What the rules look at of a commit; nothing of it is sealed or signed."""
    content = Content(
        author=USERS[author],
        branch=root_branch(REPO),
        epoch=epoch,
        feed_sequence=1,
        feed_previous=None,
        tangles=(),
        timestamp=0,
        metadata=b"",
        body=_SOMETHING,
        keys=HeaderKeys(),
    )
    return Commit(
        commit_id(number), BlockKey(b""), tuple(map(commit_id, acks)), Links(), content, Signature(b"")
    )


class Twins:
    """The real membership and the reference, given the same history."""

    def __init__(self) -> None:
        self.real = Membership(REPO)
        self.reference = Reference()
        self.pasts: list[frozenset[int]] = []
        self._operations: list[Operation] = []
        body = RepoInit("repo", (USERS["ann"],), certify_repo(REPO_SEED, "repo", (USERS["ann"],)))
        init = make_commit(0, "ann", ())
        self._keep(self.real.authorise_root_commit(init, body), ())
        self.reference.admit(0, Op("ann", frozenset(), "found"))

    def __len__(self) -> int:
        return len(self._operations)

    def take(self, step: Step) -> bool:
        """Judge a step twice; whether it was accepted. Both must say the same."""
        number = len(self._operations)
        past = frozenset(step.acks).union(*(self.pasts[ack] for ack in step.acks))
        op = Op(step.author, past, step.kind, step.user if step.kind != "post" else "", step.level)
        commit = make_commit(number, step.author, step.acks)
        operation, refusal = None, ""
        try:
            operation = self.real.authorise_root_commit(commit, step.body())
        except CommitRefused as error:
            refusal = str(error)
        assert self.reference.admit(number, op) == (operation is not None), f"{step}: {refusal or 'taken'}"
        if operation is None:
            return False
        assert (operation.needs or 0) == self.reference.needs[number]
        self._keep(operation, step.acks)
        return True

    def check(self) -> dict[str, int]:
        """Compare all that can be asked about the whole history, and give the members with their levels."""
        now, whole = self.real.now(), frozenset(range(len(self._operations)))
        counting = self.reference.counting(whole)
        assert now.counting == set(map(commit_id, counting))
        for number in whole:
            operation = self.real.operations[commit_id(number)]
            assert now.counts(operation) == self.reference.counts(number, whole, counting), number
        members = {_NAMED[user]: int(held) for user, held in now.members().items()}
        assert members == self.reference.members(whole)
        return members

    def _keep(self, operation: Operation, acks: tuple[int, ...]) -> None:
        self.real.add(operation, tuple(map(commit_id, acks)))
        self.real.now()  # which goes on from what it was: what it comes to is compared at the end
        self._operations.append(operation)
        self.pasts.append(frozenset(acks).union(*(self.pasts[ack] for ack in acks)))


def replay(steps: list[Step]) -> Twins:
    """Twins after these steps, of which those that are refused are left out of nothing: all must be accepted."""
    twins = Twins()
    for step in steps:
        assert twins.take(step), step
    return twins


LEVELS: Final = {"read": 1, "write": 2, "manage": 3, "admin": 4, "owner": 5, "": 0}


def parse(description: str) -> list[Step]:
    """Steps from lines such as `ann + ben admin < 0`, `ann - ben < 1`, `ann - ben write < 1` and `ann . < 1 2`.

    They have the numbers 1, 2, ...; after `<` stand the numbers that they ack.
    """
    steps: list[Step] = []
    for line in description.strip().splitlines():
        said, _, acks = line.partition("<")
        author, sign, user, level = [*said.split(), "", ""][:4]
        kind = {"+": "grant", "-": "remove", ".": "post"}[sign]
        steps.append(Step(author, kind, user or author, LEVELS[level], tuple(map(int, acks.split()))))
    return steps


def antichains(pasts: list[frozenset[int]]) -> list[tuple[int, ...]]:
    """All ways to ack: sets of operations of which none is in another's past."""
    found: list[tuple[int, ...]] = [()]
    for number, past in enumerate(pasts):
        found += [(*chosen, number) for chosen in found if not past.intersection(chosen)]
    return [chosen for chosen in found if chosen]
