"""Permission rules (M1 to M20): who may make a commit, judged by the commit's own past.

A root branch commit is judged by its own past, once and for good; what counts of what was judged so is `resolution`'s to
say, for any set of commits. Rules (docs/specification/membership-rules.md has them in words, and why):

  M1  The init commit has no acks, is authored by a founding owner, and is certified by the repo's key. A council that it
      states is more than half of its owners, and at most all of them.
  M2  Adding, naming and archiving a branch, and naming a commit, need the permission to manage; a branch is added once.
      Stating that a link to a branch was made needs the permission to write.
  M3  Inviting needs the permission of an admin; nobody invites to more than writing.
  M4  A join names an invitation in its own past that counts there and is not revoked there, carries that invitation's
      proof for its author, and is dated before the expiry. Fewer users than the invitation's uses have joined by it
      there, or its author is one of them. Who was removed needs a later invitation.
  M5  Everything else needs the permission to write, held in the commit's own past.
  M6  Granting needs the permission of an admin and the one granted, and adds to what the user holds.
  M7  A removal takes something away. By its own past, the rights that hold it are senior to all that it is to take, and
      its author may write (`removal_check`). Anyone may remove oneself, and take back what one's device grants give.
  M8  Revoking an invitation, and adopting void commits, need the permission of an admin.
  M9  Starting an epoch needs the permission of an admin, or that to write if the init's own past demands a new epoch (E8).
      The init is as E2 demands (`epoch_commits.check_init`).
  M10 Handing over an epoch needs the permission to write. The epoch was started in the commit's own past, its marks are
      the init's, the users are members after that past, and their boxes are right.
  M11 Opening epochs needs the permission to write. They were started in the commit's own past, and their keys give their
      marks.
  M12 Offering a branch to the inbox needs the permission to read. Answering an offer of the commit's own past needs the
      permission of an admin; who made it may withdraw it, and needs nothing for that.
  M13 Naming a quorum needs the permission of an owner. Its signers are members, each once and in order, and the threshold
      is not more than they are. Where quorums are in force that cover removals, a removal of another member needs what
      `quorums` says (Q1 to Q3), and so does a checkpoint.
  M14 Proposing needs the permission to write. Approving needs the permission to read, a proposal in the commit's own
      past, and that a quorum in force there names the author, or the author signs for the council (Q4).
  M16 Stating a prekey needs the permission to read. It is of no small order, and few of the author's are unused.
  M17 A device grant needs the permission that it gives, by a right that is not itself by a device grant, and adds to what
      the device holds. Few devices of its author hold by device grants, and few were made (`devices`).
  M18 A move needs the permission to read, by the credential that it passes on: the founding, a grant, a join, or a move of
      a short chain. Its user holds rights, all of them as a device of its author (`devices`).
  M19 Naming recovery friends needs the permission to read. The threshold is more than half of them (`recovery`).
  M20 A recovery grant is as M17 says of the member who named the friends, by its last word. Enough of them signed. Its
      publisher may read.

This module judges; it does not look at signatures (see `verify`), nor does it keep anything beyond memory.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, get_args

from msgspec.structs import replace

from protocol.crypto.keys import EpochKey
from protocol.crypto.signing import BadSignature, verify_public_key
from protocol.formats.body import (
    Adopt,
    Answer,
    Approve,
    Body,
    BranchAdd,
    BranchEdit,
    BranchLink,
    CouncilInit,
    DeviceGrant,
    ErasedBody,
    Grant,
    Hide,
    Invite,
    Join,
    MembersCheckpoint,
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
    body_kind,
)
from protocol.formats.commit import Commit
from protocol.formats.devices import DeviceBody
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen, Prekey, StartParts
from protocol.formats.links import RENEWAL_NOTE
from protocol.formats.lobbies import Lobby, LobbyAdd, LobbyAnswer, LobbyBody, requester_name
from protocol.formats.profiles import Profile
from protocol.formats.proofs import verify_certificate
from protocol.ids import BranchId, CommitId, Digest, EpochId, RepoId, UserId, branch_begun_by, root_branch
from verifier.devices import check_device_grant, check_granted, check_move, is_signed
from verifier.epoch_commits import check_hand, check_init, check_open, check_prekey, check_statement
from verifier.epochs import Epochs
from verifier.invitations import check_join, find_invitation
from verifier.lobbies import LobbyStatements
from verifier.member_checkpoints import CheckpointStatements, StatementTooLarge, digest_members
from verifier.offers import OfferStatements
from verifier.operations import NO_RIGHTS, Demands, EpochStart, Operation, Operations, Right
from verifier.profiles import ProfileStatements
from verifier.quorums import authorise_checkpoint, check_approval, check_quorum
from verifier.recovery import authorise_recovery, check_friends
from verifier.refusal import CommitRefused, require_permission
from verifier.removal_check import authorise_removal
from verifier.removals import decide, find_resting, settle
from verifier.resolution import Resolution, Settled

_LOOKED_AT: Final = (
    RepoInit,
    BranchAdd,
    Invite,
    Join,
    Grant,
    DeviceGrant,
    Move,
    RecoveryFriends,
    RecoveryGrant,
    Remove,
    Revoke,
    Adopt,
    BranchLink,
    BranchEdit,
    Tag,
    EpochInit,
    EpochHand,
    EpochOpen,
    Prekey,
    Answer,
    Quorum,
    ProposeCheckpoint,
    ProposeRemoval,
    Approve,
    MembersCheckpoint,
    *get_args(DeviceBody),
    Profile,
    *get_args(LobbyBody),
)
"""Kinds of bodies that something is computed of, so that they stay in memory. Of others, which any writer may put into the
root branch, half a megabyte each, the kind stays."""
_UNKNOWN: Final = ErasedBody("unknown")
"""Body that stands for all of unknown kinds: nobody looks at their tags, and any may be made up."""
_RESOLUTIONS_KEPT: Final = 64
"""Sets of heads whose resolution is remembered: content names the same few again and again."""


@dataclass(frozen=True, slots=True)
class Added:
    """An accepted operation as it is kept."""

    operation: Operation
    settled: Settled
    """After it, of its past and itself."""
    said: Body | UnknownBody
    """The body as it came, where more than the operation looks at it."""
    is_noted: bool
    """Of a device statement that its inner signatures hold, of a hide that its author was an admin."""


class Membership:
    """Membership of one repo, grown commit by commit."""

    def __init__(self, repo_id: RepoId) -> None:
        self._repo_id = repo_id
        self.operations = Operations()
        self.epochs = Epochs(self.operations)
        self.device_statements: list[Operation] = []
        """Device statements whose inner signatures hold. No rule looks at them; see `devices`."""
        self.profiles = ProfileStatements()
        """Statements that members make of themselves. No rule looks at them; see `profiles`."""
        self.hides: list[Operation] = []
        """Operations that hide commits, by those who were admins then. No rule looks at them; see `posts`."""
        self.lobbies = LobbyStatements()
        """Statements about lobbies. No rule looks at them; see `lobbies`."""
        self.checkpoints = CheckpointStatements()
        """Membership checkpoints by those who were admins then. No rule looks at them; see `member_checkpoints`."""
        self.offers = OfferStatements()
        """Offers to the inbox, and answers. No rule looks at more of them than who offered; see `offers`."""
        self.passed_place: tuple[BranchId, EpochId, UserId, Permission, tuple[CommitId, ...]] | None = None
        """Branch, epoch, author, right and group place of the last content commit that passed V2, V7, V11 and V12.

        These look at nothing else, and at the past alone, so the next commit of the same place passes them too.
        """
        self.questions_asked = 0
        """Questions by which rights removals are held, to keep up with what came. For tests and benchmarks."""
        self.saved_count = 0
        """Operations that this node's store has in a snapshot (`membership_snapshots`)."""
        nothing = Resolution(self.operations, (), Settled())
        self._now = nothing
        self._touched: set[UserId] = set()  # users whose permissions may be others by what has come since
        self._epoch_count = 0  # of those in `_now`
        self._settled_after: list[Settled] = []  # by operation's number
        self._latest: tuple[tuple[CommitId, ...], Resolution] = ((), nothing)
        self._resolutions: OrderedDict[tuple[CommitId, ...], Resolution] = OrderedDict()

    # --- what holds ---

    def at(self, heads: tuple[CommitId, ...]) -> Resolution:
        """Return what counts among these commits of the root branch and their past. All of them must have been added.

        Costs O(removals since the last operation that all heads follow), and O(1) if these are all heads.
        """
        if heads == self._latest[0]:  # most content names the same heads as the one before
            return self._latest[1]
        key = self.operations.reduce(heads) if len(heads) > 1 else heads
        known = self._resolutions.get(key)
        if known is None:
            known = self.now() if self.operations.are_heads(key) else self._resolve(key)
            self._resolutions[key] = known
            if len(self._resolutions) > _RESOLUTIONS_KEPT:
                self._resolutions.popitem(last=False)
        self._resolutions.move_to_end(key)
        self._latest = (heads, known)
        return known

    def now(self) -> Resolution:
        """Return what counts among all operations here.

        The effect of an operation does not depend on the number of heads: any member may make any number of them. Only
        removals change whether other operations count, and each only those that depend on it.
        """
        operations = self.operations
        heads, before = operations.heads(), self._now
        if before.heads is heads or not heads:
            return before
        settled, resting = before.settled, set[UserId]()
        if arrived := operations.contestable[settled.count :]:
            settled, changed, asked = settle(operations, settled, arrived)
            self.questions_asked += asked
            resting = find_resting(operations, changed).users
        has_epochs = len(operations.epochs) != self._epoch_count
        self._now = before.grown(heads, settled, self._touched, resting, has_epochs=has_epochs)
        self._touched, self._epoch_count = set(), len(operations.epochs)
        return self._now

    def changed_since(self, before: Settled) -> list[Operation]:
        """Return the removals and revocations that other rights hold now than before, or that have come since.

        `before` is what `now` had `settled` at some time.
        """
        now, operations = self.now().settled, self.operations
        arrived = operations.contestable[before.count : now.count]
        if now.overruled is before.overruled:
            return list(arrived)
        known = {one.commit_id for one in arrived}
        others = (
            raw
            for raw in before.overruled.keys() | now.overruled.keys()
            if raw not in known and before.overruled.get(raw) != now.overruled.get(raw)
        )
        return [*arrived, *(operations[raw] for raw in others)]

    def _resolve(self, key: tuple[CommitId, ...]) -> Resolution:
        operations = self.operations
        if not key:
            return Resolution(operations, key, Settled())
        # A commit has its own past whole, so it takes nothing from it and is taken nothing by it.
        common = operations.last_common(key)
        settled = self._settled_after[common.num]
        if len(key) > 1:
            return Resolution(operations, key, decide(operations, key, common, settled))
        before = self._resolutions.get(operations.acks_of(common))
        if before is None or before is self._now:
            return Resolution(operations, key, settled)
        return before.grown(key, settled, _find_touched(common))

    # --- what may be done ---

    def authorise_content(
        self, author: UserId, seen: tuple[CommitId, ...], needs: Permission = Permission.WRITE
    ) -> None:
        """Raise CommitRefused unless `author` may write, or (`needs`: manage) compact, after root branch commits `seen`."""
        rule = (
            "M5: the author may not write here"
            if needs == Permission.WRITE
            else "M15: compacting needs manage"
        )
        require_permission(self.at(seen).permission(author), needs, rule)

    def is_checkpoint_true(self, checkpoint: Operation) -> bool | None:
        """Return True if a membership checkpoint is true of its past, None if its statement is too large.

        Costs as `digest_members`, and once O(1).
        """
        if self.checkpoints.is_known(checkpoint.commit_id):
            return self.checkpoints.find(checkpoint.commit_id)
        try:
            digest = self.digest_members(self.operations.acks_of(checkpoint))
        except StatementTooLarge:
            digest = None
        return self.checkpoints.compare(checkpoint, digest)

    def digest_members(self, heads: tuple[CommitId, ...]) -> Digest:
        """Compute what a membership checkpoint that acks these commits signs (`member_checkpoints.digest_members`)."""
        return digest_members(self._repo_id, self.operations, self.epochs, self.at(heads))

    def authorise_checkpoint(
        self, proposal: CommitId, branch: BranchId, acks: tuple[CommitId, ...], seen: tuple[CommitId, ...]
    ) -> None:
        """Raise CommitRefused unless the signers approved a checkpoint of exactly these heads, in its past (M13)."""
        authorise_checkpoint(self.operations, proposal, branch, acks, self.at(seen))

    def authorise_root_commit(
        self,
        commit: Commit,
        body: Body | UnknownBody,
        key: EpochKey | None = None,
        parts: StartParts | None = None,
        *,
        checks_boxes: bool = True,
    ) -> Operation:
        """Return the operation of a root branch commit whose acks were all added. Raises CommitRefused.

        Args:
            commit: The commit.
            body: Its body.
            key: The key that gives the mark which an init or a hand-over names, where one is held.
            parts: Of an epoch's init: what its body names.
            checks_boxes: False for an init or a hand-over that was accepted before.
        """
        author = commit.content.author
        if isinstance(body, RepoInit):
            self._check_init(commit, body, key)
            return Operation(commit.commit_id, author, body)
        before = self.at(commit.acks)
        held = before.permission(author)
        needs: Permission | None = Permission.WRITE
        demands: tuple[Demands, ...] = ()
        acts = NO_RIGHTS
        start: EpochStart | None = None
        publisher: UserId | None = None
        match body:
            case BranchAdd():
                needs = Permission.MANAGE
                require_permission(held, needs, "M2: adding a branch needs the permission to manage")
                self._check_branch(before, body)
            case Invite():
                needs = Permission.ADMIN
                require_permission(held, needs, "M3: inviting needs the permission of an admin")
                if body.permission > Permission.WRITE:
                    raise CommitRefused("not_permitted", "M3: an invitation grants writing at most")
            case Join():
                needs = None
                check_join(self._repo_id, self.operations, commit, body, before)
            case Grant():
                needs = max(Permission.ADMIN, body.permission)
                require_permission(held, needs, f"M6: granting {_name(body.permission)} needs {_name(needs)}")
                check_granted(self.operations, body, before)
            case DeviceGrant():
                needs = body.permission
                check_device_grant(self.operations, author, body, before)
            case Move():
                needs = Permission.READ
                require_permission(held, needs, "M18: a move needs the permission to read")
                check_move(self.operations, author, body, before)
            case RecoveryFriends():
                needs = Permission.READ
                require_permission(held, needs, "M19: naming friends needs the permission to read")
                check_friends(author, body)
            case RecoveryGrant():
                needs, publisher = body.permission, author
                require_permission(held, Permission.READ, "M20: publishing needs the permission to read")
                author = authorise_recovery(self._repo_id, self.operations, body, before)
            case Remove():
                needs, demands, acts = authorise_removal(self.operations, author, body, before)
            case BranchLink():
                require_permission(
                    held, Permission.WRITE, "M2: linking a branch needs the permission to write"
                )
                if not any(before.is_within(one) for one in self.operations.branch_adds(body.branch)):
                    raise CommitRefused("bad_branch", "M2: no such branch in the commit's past")
            case BranchEdit() | Tag():
                needs = Permission.MANAGE
                require_permission(held, needs, "M2: naming and archiving need the permission to manage")
            case EpochInit():
                needs = self._check_starter(held, before)
                assert key is not None, "it waits for it"
                assert parts is not None, "it is read with them"
                start = check_init(
                    self.epochs,
                    before,
                    body,
                    parts,
                    self._repo_id,
                    key,
                    commit.content.epoch,
                    checks_boxes=checks_boxes,
                )
            case EpochHand():
                require_permission(
                    held, Permission.WRITE, "M10: handing over an epoch needs the permission to write"
                )
                check_hand(self.epochs, before, body, self._repo_id, key, checks_boxes=checks_boxes)
            case EpochOpen():
                require_permission(
                    held, Permission.WRITE, "M11: opening epochs needs the permission to write"
                )
                check_open(self.epochs, before, body, self._repo_id)
            case Prekey():
                needs = Permission.READ
                require_permission(held, needs, "M16: stating a prekey needs the permission to read")
                check_prekey(self.operations, author, body, before, self.epochs.started_within(before))
            case Offer():
                needs = Permission.READ
                require_permission(held, needs, "M12: offering needs the permission to read")
                if not any(before.is_within(one) for one in self.operations.branch_adds(body.branch)):
                    raise CommitRefused("bad_branch", "M12: no such branch in the commit's past")
            case Answer():
                needs = self._check_answer(author, held, body, before)
            case Quorum():
                needs = Permission.OWNER
                require_permission(held, needs, "M13: naming a quorum needs the permission of an owner")
                check_quorum(body, before)
            case Approve():
                needs = Permission.READ
                require_permission(held, needs, "M14: approving needs the permission to read")
                check_approval(self.operations, author, body, before)
            case Revoke() | Adopt():
                needs = Permission.ADMIN
                require_permission(held, needs, "M8: revoking and adopting need the permission of an admin")
                if isinstance(body, Revoke) and not find_invitation(self.operations, body.invitation, before):
                    raise CommitRefused("unknown_invitation", "M8: no such invitation in the commit's past")
                if isinstance(body, Revoke):
                    acts = frozenset(before.rights_held(author, Permission.ADMIN))
            case _:
                require_permission(held, Permission.WRITE, "M5: the author may not write here")
        content = commit.content
        renews = isinstance(body, Invite) and content.metadata == RENEWAL_NOTE
        note = requester_name(content.metadata) if isinstance(body, Join) and content.metadata else None
        return Operation(
            commit.commit_id,
            author,
            body,
            needs,
            content.epoch,
            demands,
            acts,
            content.timestamp,
            asks_as=note,
            renews=renews,
            by_writer=content.by_writer,
            start=start,
            publisher=publisher,
        )

    def add(self, operation: Operation, acks: tuple[CommitId, ...]) -> None:
        """Keep an accepted operation."""
        settled = self.at(acks).settled if acks else Settled()
        said = operation.body
        is_noted = isinstance(said, DeviceBody) and is_signed(self._repo_id, operation)
        if isinstance(said, Hide | MembersCheckpoint) and self._is_admin(operation.author, acks):
            # The verdict was that on an unknown body; to count, it needs more.
            operation, is_noted = replace(operation, needs=Permission.ADMIN), True
        elif isinstance(said, Offer):
            operation = replace(operation, body=without_text(said))
        elif isinstance(said, UnknownBody):
            operation = replace(operation, body=_UNKNOWN)
        elif not isinstance(said, _LOOKED_AT) or (
            isinstance(said, LobbyAdd) and not self._is_admin(operation.author, acks)
        ):
            operation = replace(operation, body=ErasedBody(body_kind(said)))
        if isinstance(said, Remove) and operation.is_leave:
            # Nobody looks at what a leave says of feeds: it voids nothing.
            operation = replace(operation, body=Remove(said.user, said.keeps, ()))
        elif operation.is_contestable:
            settled = Settled(settled.count + 1, settled.overruled)
        self.restore(Added(operation, settled, said, is_noted=is_noted), acks)

    def restore(self, added: "Added", acks: tuple[CommitId, ...]) -> None:
        """Keep an operation as it was kept before. What it needs of its past (`add`) is known."""
        self.operations.add(added.operation, acks)
        made = self.operations[added.operation.commit_id]
        # As the graph keeps them: each once, so that what is restored from a snapshot is kept alike.
        self.epochs.add(made, tuple(self.operations.previous(made.commit_id)))
        self._settled_after.append(added.settled)
        self._touched.update(_find_touched(made))
        if isinstance(added.said, Offer):
            self.offers.add(made, added.said, self.operations)
            return
        match made.body:
            case Answer():
                self.offers.add_answer(made, self.operations)
            case Profile():
                self.profiles.add(made, self.operations)
            case Hide() if added.is_noted:
                self.hides.append(made)
            case MembersCheckpoint() if added.is_noted:
                self.checkpoints.add(made, self.operations)
            case Lobby() | LobbyAdd() | LobbyAnswer():
                self.lobbies.add(made)
            case _ if added.is_noted:
                self.device_statements.append(made)
            case _:
                pass

    def describe_added(self, operation: Operation) -> "Added":
        """Return what `restore` takes to keep this operation again."""
        body = operation.body
        said = self.offers.find_body(operation.commit_id) if isinstance(body, Offer) else None
        is_noted = (isinstance(body, Hide | MembersCheckpoint) and operation.needs == Permission.ADMIN) or (
            isinstance(body, DeviceBody) and is_signed(self._repo_id, operation)
        )
        return Added(operation, self._settled_after[operation.num], said or body, is_noted=is_noted)

    def settled_after(self, commit_id: CommitId) -> Settled:
        """Return which rights hold the removals in the past of an operation, with the operation itself."""
        return self._settled_after[self.operations[commit_id].num]

    def settle_restored(self, overruled: Mapping[CommitId, frozenset[Right]]) -> None:
        """Take over which removals are overruled among all that was restored, so that none of them is asked about again."""
        settled = Settled(len(self.operations.contestable), overruled)
        self._now, self._touched = Resolution(self.operations, self.operations.heads(), settled), set()
        self._epoch_count = len(self.operations.epochs)

    # --- rules ---

    def _is_admin(self, author: UserId, acks: tuple[CommitId, ...]) -> bool:
        return (self.at(acks).permission(author) or 0) >= Permission.ADMIN

    def _check_starter(self, held: Permission | None, before: Resolution) -> Permission:
        if self.epochs.is_due(before):
            require_permission(
                held, Permission.WRITE, "M9: starting an epoch that is due needs the permission to write"
            )
            return Permission.WRITE
        require_permission(
            held, Permission.ADMIN, "M9: starting an epoch that is not due needs the permission of an admin"
        )
        return Permission.ADMIN

    def _check_init(self, commit: Commit, body: RepoInit, key: EpochKey | None) -> None:
        if commit.acks:
            raise CommitRefused("not_permitted", "M1: an init acks nothing")
        if commit.content.author not in body.owners:
            raise CommitRefused("not_permitted", "M1: an init is authored by a founding owner")
        try:
            verify_certificate(self._repo_id, body)
            for owner in body.owners:
                verify_public_key(owner)
        except BadSignature as error:
            raise CommitRefused("bad_certificate", f"M1: {error}") from None
        count = len(set(body.owners))
        if isinstance(body, CouncilInit) and not count < 2 * body.council <= 2 * count:
            raise CommitRefused(
                "bad_quorum", "M1: a council is more than half of the owners, and at most all"
            )
        assert key is not None, "it waits for it"
        check_statement(self._repo_id, body.states, key)

    def _check_branch(self, before: Resolution, body: BranchAdd) -> None:
        if body.branch != branch_begun_by(CommitId(body.root.object_id)):
            raise CommitRefused("bad_branch", "M2: a branch's id is that of its first commit")
        added = any(
            self.operations.is_within(one, before.heads) for one in self.operations.branch_adds(body.branch)
        )
        if added or body.branch == root_branch(self._repo_id):
            raise CommitRefused("branch_exists", "M2: the branch was added before")

    def _check_answer(
        self, author: UserId, held: Permission | None, body: Answer, before: Resolution
    ) -> Permission | None:
        offer = self.operations.find(body.offer)
        if offer is None or not isinstance(offer.body, Offer) or not before.is_within(offer):
            raise CommitRefused("unknown_offer", "M12: no such offer in the commit's past")
        if offer.author == author and not body.accepts:
            return None
        require_permission(held, Permission.ADMIN, "M12: answering needs the permission of an admin")
        return Permission.ADMIN


def without_text(body: Offer) -> Offer:
    """Return what stays in memory of each offer; of those that are considered, `OfferStatements` has the rest."""
    return Offer(body.branch, body.pulls, "", b"")


def _find_touched(operation: Operation) -> Collection[UserId]:
    """Return the users whose permissions an operation may change by itself."""
    body = operation.body
    match body:
        case RepoInit():
            return body.owners
        case Grant() | DeviceGrant() | RecoveryGrant() | Remove():
            return (body.user,)
        case Move():
            return body.user, operation.author
        case Join():
            return (operation.author,)
    return ()


def _name(permission: Permission) -> str:
    return permission.name.lower()
