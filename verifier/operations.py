"""Index of membership operations from root branch commits, with the happened-before relation between them.

An index and nothing more: `rights` decides which operations count, `membership` which may be made at all.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from protocol.codec import Value
from protocol.formats.body import (
    Adopt,
    Approve,
    Body,
    BranchAdd,
    BranchEdit,
    BranchLink,
    DeviceGrant,
    ErasedBody,
    FriendSignature,
    Grant,
    Invite,
    Join,
    Move,
    Offer,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
    RepoInit,
    Revoke,
    Tag,
    UnknownBody,
)
from protocol.formats.commit import NO_EPOCH
from protocol.formats.epochs import EpochHand, EpochInit, Prekey
from protocol.ids import BranchId, CommitId, EpochId, Signature, UserId
from verifier.tangle import Tangle
from verifier.user_sets import UserNumbers, UserSet

Name = TypeVar("Name", UserId, EpochId)
_PAIRS_COMPARED_MAX: Final = 64
"""Pairs of an operation and a later one that are compared one by one; of more, all that the later ones follow is looked at
once."""
_DECIDING: Final = (Grant, DeviceGrant, RecoveryGrant, Move, Invite, Quorum, Approve)
"""Bodies on whose operations verdicts on others may rest, beside removals and revocations."""
_PREKEYS_BESIDE_MAX: Final = 8
"""Statements beside a prekey that are remembered with it: a member may make any number of them beside one another."""
_CHECKED: Final = Signature(bytes(64))
"""Signature that stands for those of recovery friends, which nobody looks at once they were found to hold."""


COUNCIL: Final = Permission.OWNER + 1
"""The right of the founders who sign together (Q4). It is above owner, and no member's permission."""


class Right(NamedTuple):
    """Permission of one credential: the unit that removals take."""

    credential: CommitId
    """A founding, a grant, a join, a move, or a quorum that covers removals."""
    permission: int
    """A `Permission`, or COUNCIL."""


NO_RIGHTS: Final[frozenset[Right]] = frozenset()


@dataclass(frozen=True, slots=True)
class Demand:
    """Approvals that one quorum asks of a removal or a checkpoint: so many of these must count, of one signer each."""

    quorum: CommitId
    threshold: int
    approvals: tuple[CommitId, ...]


class Demands(NamedTuple):
    """Demands of the quorums that cover a removal, where one right is to hold it."""

    right: Right
    of_each: tuple[Demand, ...]


@dataclass(frozen=True, slots=True)
class EpochStart:
    """Statement of an epoch's init: who has a box and who a writers' box, and the epochs it opens."""

    members: UserSet
    writers: UserSet
    gives: tuple[EpochId, ...]


class Operation(Value, frozen=True):
    """Root branch commit, as the rules read it."""

    commit_id: CommitId
    author: UserId  # of a recovery grant: the member in whose place friends make it
    body: Body | UnknownBody
    needs: Permission | None = None  # that its author must hold; None: none at all
    epoch: EpochId = NO_EPOCH  # in which it was published
    demands: tuple[
        Demands, ...
    ] = ()  # of a removal where quorums cover it: of each right by which its own past holds it
    acts: frozenset[Right] = (
        NO_RIGHTS  # of a removal or revocation: the rights that hold it by its own past alone
    )
    timestamp: int = 0  # unix milliseconds, as the author states them
    num: int = 0  # given by `Operations.add`; larger than those of all in its past
    asks_as: str | None = None  # of a join of a lobby: the name under which its author asks
    renews: bool = False  # of an invitation: its author renews the repo's secrets once the link is over
    by_writer: bool = False  # as its author says: it travels on the writers' topic of its epoch
    start: EpochStart | None = None  # of an epoch's init, but of the founding one
    publisher: UserId | None = None  # of a recovery grant: who signed the commit

    @property
    def is_leave(self) -> bool:
        """Return True if it takes permissions from its own author. A move does, and leaves nothing."""
        return isinstance(self.body, Move) or (
            isinstance(self.body, Remove) and self.body.user == self.author
        )

    @property
    def is_device_grant(self) -> bool:
        """Return True if it gives a permission to a device of its author, by the author's word or by its friends'."""
        return isinstance(self.body, DeviceGrant | RecoveryGrant)

    @property
    def is_contestable(self) -> bool:
        """Return True if it takes something from others: a removal that is no leave, or a revocation."""
        return isinstance(self.body, Remove | Revoke) and not self.is_leave

    @property
    def is_device_removal(self) -> bool:
        """Return True if it takes what its author's device grants give, and nothing else (M7)."""
        return isinstance(self.body, Remove) and self.needs == Permission.READ

    @property
    def started_epoch(self) -> EpochId:
        """Return the id of the epoch that this starts, if it is the init of one: the commit's own."""
        return EpochId(self.commit_id)


class Operations:
    """Operations of one repo, grown commit by commit, causes first."""

    def __init__(self) -> None:
        self._graph: Tangle | None = None
        self._heads: tuple[CommitId, ...] | None = ()
        self._every: list[Operation] = []
        self._nums: Mapping[CommitId, int] = {}
        self._bodies: dict[Body | UnknownBody, Body | UnknownBody] = {}
        self._names: dict[bytes, Any] = {}
        self.numbers: Final = UserNumbers()
        self._grants: dict[UserId, list[Operation]] = {}
        self._origins: dict[CommitId, CommitId] = {}
        self._moves_to: dict[UserId, list[Operation]] = {}
        self._behind: dict[CommitId, int] = {}
        self._authored: dict[UserId, list[Operation]] = {}
        self._deciding: dict[UserId, list[Operation]] = {}
        self._under: dict[CommitId, list[Operation]] = {}
        self._admins: dict[UserId, None] = {}
        self._removals_of: dict[UserId, list[Operation]] = {}
        self._removals_by_others: dict[UserId, list[Operation]] = {}
        self._revocations_of: dict[CommitId, list[Operation]] = {}
        self._joins_by: dict[CommitId, list[Operation]] = {}
        self._branch_adds: dict[BranchId, list[Operation]] = {}
        self._linked: dict[BranchId, None] = {}
        self._adoptions_of: dict[CommitId, list[Operation]] = {}
        self._published_in: dict[EpochId, list[Operation]] = {}
        self._hands_of: dict[EpochId, list[Operation]] = {}
        self._prekeys_of: dict[UserId, list[Operation]] = {}
        self._prekeys_beside: dict[CommitId, tuple[Operation, ...] | None] = {}
        self._approvals_of: dict[CommitId, list[Operation]] = {}
        self._proposed_removals: dict[UserId, list[Operation]] = {}
        self.quorums: list[Operation] = []
        self.proposals: list[Operation] = []
        """Proposals of checkpoints and of removals."""
        self.edits: dict[BranchId, list[Operation]] = {}
        """Edits of branches, by branch."""
        self.tags: dict[str, list[Operation]] = {}
        """Operations that give a name to a commit, move it or take it away, by name."""
        self.adoptions: list[Operation] = []
        self.invitations: list[Operation] = []
        self.epochs: list[Operation] = []
        """Operations that start an epoch: the repo's init, and epoch inits."""
        self.epoch_pasts: list[int] = []
        """By epoch: those that were started in its past, a bit each. Filled by `Epochs`."""
        self.prekeys: list[Operation] = []
        """Statements of prekeys."""
        self.removals: list[Operation] = []
        """Operations that take rights away: removals, moves, and revocations of invitations."""
        self.contestable: list[Operation] = []
        """Removals and revocations that may not count: all but leaves, which need no right and void nothing (R2, R5)."""

        self.namings: dict[UserId, list[Operation]] = {}
        """Namings of recovery friends, by member."""
        self.recovery_grants: dict[UserId, list[Operation]] = {}
        """Recovery grants, by the member in whose place they are made."""

    def add(self, operation: Operation, acks: Iterable[CommitId]) -> None:
        """Add an operation whose acks were all added; the first is the root."""
        if self._graph is None:
            self._graph = Tangle(operation.commit_id)
            self._nums = self._graph.nums
        else:
            entered = self._graph.add(operation.commit_id, acks)
            assert entered, "causes come first"
        self._heads = None
        made = replace(
            operation,
            num=self._nums[operation.commit_id],
            author=self.shared(operation.author),
            publisher=None if operation.publisher is None else self.shared(operation.publisher),
            epoch=self.shared(operation.epoch),
            body=self._shared_body(operation),
        )
        self._every.append(made)
        self.numbers.add((made.author, made.publisher or made.author))
        self._authored.setdefault(made.author, []).append(made)
        self._published_in.setdefault(made.epoch, []).append(made)
        if made.is_contestable:
            self.contestable.append(made)
        if made.is_contestable or isinstance(made.body, _DECIDING):
            self._deciding.setdefault(made.author, []).append(made)
        demands = [demand for one in made.demands for demand in one.of_each]
        for named in {named for demand in demands for named in (demand.quorum, *demand.approvals)}:
            self._under.setdefault(named, []).append(made)
        match made.body:
            case RepoInit():
                self.epochs.append(made)
                self.numbers.add(made.body.owners)
                for owner in made.body.owners:
                    self._grants.setdefault(owner, []).append(made)
                    self._admins[owner] = None
            case Grant() | DeviceGrant() | RecoveryGrant() | Move():
                self._add_credential(made, made.body)
            case Join():
                self._grants.setdefault(made.author, []).append(made)
                self._joins_by.setdefault(made.body.invitation, []).append(made)
            case Invite():
                self.invitations.append(made)
            case BranchAdd():
                self._branch_adds.setdefault(made.body.branch, []).append(made)
            case BranchLink():
                self._linked[made.body.branch] = None
            case Remove():
                self._removals_of.setdefault(made.body.user, []).append(made)
                if not made.is_leave:
                    self._removals_by_others.setdefault(made.body.user, []).append(made)
                if made.is_device_removal and made.author in self._moves_to:
                    keys = self.with_forerunners(made.author, lambda move: self.precedes(move, made))
                    self._behind[made.commit_id] = self.numbers.bits(keys)
                self.removals.append(made)
            case Revoke():
                self._revocations_of.setdefault(made.body.invitation, []).append(made)
                self.removals.append(made)
            case BranchEdit():
                self.edits.setdefault(made.body.branch, []).append(made)
            case Tag():
                self.tags.setdefault(made.body.name, []).append(made)
            case Quorum():
                self.quorums.append(made)
            case ProposeCheckpoint():
                self.proposals.append(made)
            case ProposeRemoval():
                self.proposals.append(made)
                self._proposed_removals.setdefault(made.body.user, []).append(made)
            case Approve():
                self._approvals_of.setdefault(made.body.proposal, []).append(made)
            case RecoveryFriends():
                self.namings.setdefault(made.author, []).append(made)
            case EpochInit():
                self.epochs.append(made)
            case EpochHand():
                self._hands_of.setdefault(made.body.epoch, []).append(made)
            case Prekey():
                self._add_prekey(made)
            case Adopt():
                self.adoptions.append(made)
                for commit_id in made.body.commits:
                    self._adoptions_of.setdefault(commit_id, []).append(made)
            case _:
                pass

    def _add_credential(self, made: Operation, body: Grant | DeviceGrant | RecoveryGrant | Move) -> None:
        self.numbers.add((body.user,))
        self._grants.setdefault(body.user, []).append(made)
        if isinstance(body, Move):
            self._origins[made.commit_id] = self._origins.get(body.credential, body.credential)
            self._moves_to.setdefault(body.user, []).append(made)
            self._removals_of.setdefault(made.author, []).append(made)
            self.removals.append(made)
        elif isinstance(body, RecoveryGrant):
            self.recovery_grants.setdefault(made.author, []).append(made)
        if self.granted(made) >= Permission.ADMIN:
            self._admins[body.user] = None

    def _add_prekey(self, made: Operation) -> None:
        stated = self._prekeys_of.setdefault(made.author, [])
        self._prekeys_beside[made.commit_id] = self._find_beside(stated, made)
        self.prekeys.append(made)
        stated.append(made)

    def _find_beside(self, stated: Sequence[Operation], made: Operation) -> tuple[Operation, ...] | None:
        """Return earlier statements of the author that a new one does not follow; None for more than are remembered."""
        others: Sequence[Operation] | None = stated
        if stated and self.precedes(stated[-1], made):
            others = self._prekeys_beside[stated[-1].commit_id]  # what the last follows, this follows too
        beside = (
            one for one in reversed(stated if others is None else others) if not self.precedes(one, made)
        )
        found = tuple(islice(beside, _PREKEYS_BESIDE_MAX + 1))
        return found if len(found) <= _PREKEYS_BESIDE_MAX else None

    def shared(self, name: Name) -> Name:
        """Return the one copy of the id of a user or an epoch: each commit brings its own."""
        found: Name = self._names.setdefault(name, name)
        return found

    def _shared_body(self, operation: Operation) -> Body | UnknownBody:
        """Return the one copy of a body of which anyone may state any number: most are alike."""
        body = operation.body
        if isinstance(body, ErasedBody | Offer) or operation.is_leave:
            return self._bodies.setdefault(body, body)
        return self._without_signatures(body) if isinstance(body, RecoveryGrant) else body

    def _without_signatures(self, body: RecoveryGrant) -> RecoveryGrant:
        """Return what stays in memory of a recovery grant: who signed it, by the naming's copies of their ids."""
        naming = self[body.friends].body
        assert isinstance(naming, RecoveryFriends), "M20"
        signers = {one.friend for one in body.signatures}
        held = tuple(FriendSignature(one, _CHECKED) for one in naming.friends if one in signers)
        return replace(body, signatures=held)

    def since(self, num: int) -> list[Operation]:
        """Return the operations of this number and later ones."""
        return self._every[num:]

    def numbered(self, num: int) -> Operation:
        """Return the operation of this number. Raises IndexError."""
        return self._every[num]

    def __contains__(self, commit_id: object) -> bool:
        return commit_id in self._nums

    def __getitem__(self, commit_id: CommitId) -> Operation:
        """Return the operation of that commit. Raises KeyError."""
        return self._every[self._nums[commit_id]]

    def find(self, commit_id: CommitId) -> Operation | None:
        """Return the operation of that commit, or None."""
        num = self._nums.get(commit_id)
        return None if num is None else self._every[num]

    def heads(self) -> tuple[CommitId, ...]:
        """Return the commits that nothing follows, sorted; none before the root has come."""
        if self._heads is None:  # they are asked for far more often than there are new ones
            assert self._graph is not None, "something was added"
            self._heads = tuple(self._graph.tips())
        return self._heads

    def are_heads(self, commit_ids: Sequence[CommitId]) -> bool:
        """Return True if these, sorted, are what nothing follows. Costs O(these), where listing `heads` costs O(heads)."""
        return not commit_ids if self._graph is None else self._graph.are_tips(commit_ids)

    def users(self) -> list[UserId]:
        """Return everyone who was ever granted something, sorted."""
        return sorted(self._grants)

    def authored_by(self, user: UserId) -> Sequence[Operation]:
        """Return everything that this user did."""
        return self._authored.get(user, ())

    def grants_of(self, user: UserId) -> Sequence[Operation]:
        """Return what gives this user permissions: foundings, grants, joins and moves."""
        return self._grants.get(user, ())

    def origin(self, credential: CommitId) -> Operation:
        """Return the credential that moves passed on to this one; itself where it is no move (R1). Costs O(1)."""
        return self[self._origins.get(credential, credential)]

    def moves_of(self, credential: Operation) -> Iterator[Operation]:
        """Yield the chain of moves that ends with a credential, the last first; none where it is no move.

        They are at most MOVE_COUNT_MAX (M18).
        """
        while isinstance(credential.body, Move):
            yield credential
            credential = self[credential.body.credential]

    def with_forerunners(self, user: UserId, is_here: Callable[[Operation], bool]) -> set[UserId]:
        """Return a user and its forerunners: the authors of moves to it that are here, and theirs.

        Whether the moves count does not matter. Costs O(moves to these).
        """
        found, ahead = {user}, [user]
        while ahead:
            for one in self._moves_to.get(ahead.pop(), ()):
                if one.author not in found and is_here(one):
                    found.add(one.author)
                    ahead.append(one.author)
        return found

    def is_behind(self, removal: Operation, user: UserId) -> bool:
        """Return True if a user is the author of a device removal, or a forerunner of it in its past. Costs O(1)."""
        return user == removal.author or bool(self._behind.get(removal.commit_id, 0) & self.numbers.bit(user))

    def removals_of(self, user: UserId) -> Sequence[Operation]:
        """Return the removals that take permissions from this user, the user's own leaves and moves too."""
        return self._removals_of.get(user, ())

    def removals_by_others(self, user: UserId) -> Sequence[Operation]:
        """Return what others did to take permissions from this user. Leaves may be any number at once."""
        return self._removals_by_others.get(user, ())

    def admins(self) -> Iterable[UserId]:
        """Return everybody who was ever given admin or owner."""
        return self._admins

    def deciding_by(self, user: UserId) -> Sequence[Operation]:
        """Return what this user did that verdicts on other operations may rest on.

        These are grants, moves, invitations, quorums, approvals, revocations, and removals of others.
        """
        return self._deciding.get(user, ())

    def resting_on(self, commit_id: CommitId) -> Sequence[Operation]:
        """Return the removals that rest on this quorum or approval (R6)."""
        return self._under.get(commit_id, ())

    def contestable_after(self, common: Operation, heads: tuple[CommitId, ...]) -> list[Operation]:
        """Return what is `contestable` within `heads` and later than `common`.

        `common` is on every path from the heads to the root. So what is within them and came later has it in its past.
        """
        assert self._graph is not None
        later = self.contestable[bisect_right(self.contestable, common.num, key=lambda one: one.num) :]
        if not later or self.are_heads(heads):
            return later
        if len(later) * len(heads) <= _PAIRS_COMPARED_MAX:
            return [one for one in later if self.is_within(one, heads)]
        within = self._graph.past_above(heads, common.commit_id)
        return [one for one in later if one.commit_id in within]

    def revocations_of(self, invitation: CommitId) -> Sequence[Operation]:
        """Return what revokes this invitation."""
        return self._revocations_of.get(invitation, ())

    def joins_by(self, invitation: CommitId) -> Sequence[Operation]:
        """Return the joins that name this invitation."""
        return self._joins_by.get(invitation, ())

    def branches(self) -> Iterable[BranchId]:
        """Return the ids of all branches that were ever added."""
        return self._branch_adds

    def published_in(self, epoch: EpochId) -> Sequence[Operation]:
        """Return everything that was published in this epoch, its init aside."""
        return self._published_in.get(epoch, ())

    def adoptions_of(self, commit_id: CommitId) -> Sequence[Operation]:
        """Return what adopts this content commit."""
        return self._adoptions_of.get(commit_id, ())

    def branch_adds(self, branch: BranchId) -> Sequence[Operation]:
        """Return what adds this branch."""
        return self._branch_adds.get(branch, ())

    def hands_of(self, epoch: EpochId) -> Sequence[Operation]:
        """Return what hands this epoch to members."""
        return self._hands_of.get(epoch, ())

    def prekeys_of(self, user: UserId) -> Sequence[Operation]:
        """Return what states prekeys of this user."""
        return self._prekeys_of.get(user, ())

    def newest_prekey(self, user: UserId, is_here: Callable[[Operation], bool]) -> Operation | None:
        """Return the statement of a user's prekey: the one that follows all the user's other statements here.

        Return None if several stand beside one another. Costs O(the user's prekeys that are not here, and those beside
        the newest).
        """
        stated = self.prekeys_of(user)
        newest = next((one for one in reversed(stated) if is_here(one)), None)
        if newest is None:
            return None
        beside: Iterable[Operation] | None = self._prekeys_beside[newest.commit_id]
        if beside is None:
            earlier = (one for one in reversed(stated) if one.num < newest.num)
            beside = (one for one in earlier if not self.precedes(one, newest))
        return None if any(map(is_here, beside)) else newest

    def linked_branches(self) -> Iterable[BranchId]:
        """Return the branches that are followed by themselves by somebody: those that a branch link was stated for."""
        return self._linked

    def approvals_of(self, proposal: CommitId) -> Sequence[Operation]:
        """Return what approves of this proposal."""
        return self._approvals_of.get(proposal, ())

    def proposed_removals_of(self, user: UserId) -> Sequence[Operation]:
        """Return what asks to take permissions from this user."""
        return self._proposed_removals.get(user, ())

    def granted(self, operation: Operation) -> Permission:
        """Return the permission that an operation of `grants_of` gives: a move as much as what it passes on."""
        operation = self.origin(operation.commit_id)
        match operation.body:
            case RepoInit():
                return Permission.OWNER
            case Grant() | DeviceGrant() | RecoveryGrant():
                return operation.body.permission
            case Join():
                invitation = self[operation.body.invitation].body
                assert isinstance(invitation, Invite), "a join names an invitation"
                return invitation.permission
        raise AssertionError(f"grants nothing: {operation.body}")

    def previous(self, commit_id: CommitId) -> Iterable[CommitId]:
        """Return what a commit acks."""
        assert self._graph is not None
        return self._graph.previous(commit_id)

    def precedes(self, earlier: Operation, later: Operation) -> bool:
        """Return True if `earlier` is in the past of `later`; nothing is in its own. Costs as `Tangle.precedes`."""
        assert self._graph is not None
        return earlier.num < later.num and self._graph.precedes(earlier.commit_id, later.commit_id)

    def find_preceding(self, some: Collection[Operation], later: Collection[Operation]) -> list[Operation]:
        """Return those of some operations, without the root, that one of the later ones follows.

        Costs O(pairs) of few, else O(what the later ones follow), generation by generation until all are found.
        """
        assert self._graph is not None
        graph, ahead = self._graph, {ack for one in later for ack in self.previous(one.commit_id)}
        rest = [one for one in some if one.commit_id not in ahead]
        if len(rest) * len(later) <= _PAIRS_COMPARED_MAX:
            beside = {one.commit_id for one in rest if not any(self.precedes(one, other) for other in later)}
        else:
            beside, lowest, passed = (
                {one.commit_id for one in rest},
                min(map(self.place, rest))[0],
                set(ahead),
            )
            while beside and ahead:
                ahead = {
                    ack for one in ahead if graph.rank(one) > lowest for ack in graph.previous(one)
                } - passed
                passed |= ahead
                beside -= ahead
        return [one for one in some if one.commit_id not in beside]

    def __len__(self) -> int:
        return len(self._every)

    def reduce(self, commit_ids: Iterable[CommitId]) -> tuple[CommitId, ...]:
        """Return these commits without those that others of them follow, sorted."""
        assert self._graph is not None
        graph, chosen = self._graph, sorted(set(commit_ids))
        return tuple(
            one
            for one in chosen
            if graph.is_tip(one) or not any(graph.precedes(one, other) for other in chosen if other != one)
        )

    def acks_of(self, operation: Operation) -> tuple[CommitId, ...]:
        """Return what an operation follows directly, sorted."""
        assert self._graph is not None
        return tuple(sorted(self._graph.previous(operation.commit_id)))

    def last_common(self, heads: Iterable[CommitId]) -> Operation:
        """Return the latest operation that every path from these commits to the root passes."""
        assert self._graph is not None
        return self[self._graph.last_common(heads)]

    def place(self, operation: Operation) -> tuple[int, CommitId]:
        """Return an operation's key in canonical order: (rank, commit id)."""
        assert self._graph is not None
        return self._graph.rank(operation.commit_id), operation.commit_id

    def in_order(self, operations: Iterable[Operation]) -> list[Operation]:
        """Sort operations in canonical order: by (rank, commit id)."""
        return sorted(operations, key=self.place)

    def is_within(self, operation: Operation, heads: Iterable[CommitId]) -> bool:
        """Return True if an operation is one of these commits or in the past of one."""
        assert self._graph is not None
        commit_id = operation.commit_id
        return any(head == commit_id or self._graph.precedes(commit_id, head) for head in heads)
