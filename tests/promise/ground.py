"""Ground of a forged commit: what a right one would stand on, for an adversary who breaks one rule at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from protocol.crypto.keys import InvitationSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Body, BranchLink, Permission
from protocol.formats.commit import TanglePlace
from protocol.formats.content import Post
from protocol.formats.epochs import EpochStatement
from protocol.ids import BranchId, EpochId, UserId
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch
from tests.promise.forging import Forge, Known, Signer
from verifier.epoch_commits import epoch_statement
from verifier.resolution import Resolution

WORDS: Final = Post("forged")


@dataclass(frozen=True, slots=True)
class Ground:
    """Facts on which a right commit would stand."""

    forge: Forge
    name: str
    epoch: Epoch
    """In use."""
    roots: list[Known]
    """Heads of the root branch."""
    branch: Branch
    heads: list[Known]
    """Heads of that branch."""

    @property
    def root_id(self) -> BranchId:
        """The root branch."""
        return self.forge.root_facts.branch_id

    def post(
        self,
        acks: Sequence[Known] | None = None,
        *,
        epoch: Epoch | None = None,
        seen: Sequence[Known] | None = None,
        rank: int | None = None,
        body: Body = WORDS,
        why: str = "",
        tangles: tuple[TanglePlace, ...] | None = None,
        says: dict[str, object] | None = None,
    ) -> Known:
        """Forge a commit of the branch, right but for what is said."""
        place = self.roots if seen is None else seen
        self.forge.write(
            why or f"rule: {self.name}",
            self.branch.branch_id,
            epoch or self.epoch,
            body,
            self.heads if acks is None else acks,
            seen=[one.commit_id for one in place],
            rank=rank,
            tangles=tangles,
            says=says,
        )
        return self.forge.made[-1]

    def act(
        self,
        body: Body,
        acks: Sequence[Known] | None = None,
        *,
        epoch: Epoch | None = None,
        why: str = "",
        gives: Sequence[EpochId] = (),
        tangles: tuple[TanglePlace, ...] | None = None,
        says: dict[str, object] | None = None,
        by: Signer | None = None,
    ) -> Known:
        """Forge a commit of the root branch, right but for what is said."""
        self.forge.write(
            why or f"rule: {self.name}",
            self.root_id,
            epoch or self.epoch,
            body,
            self.roots if acks is None else acks,
            gives=gives,
            tangles=tangles,
            says=says,
            by=by,
        )
        return self.forge.made[-1]

    def right_act(self) -> Known:
        """Forge something right in the root branch."""
        return self.act(BranchLink(self.branch.branch_id), why="a branch's link")

    def closed(self) -> Epoch:
        """Choose an epoch that does not open all that a commit follows now. Raises IndexError where there is none."""
        person = self.forge.person
        replica, repo = person.replica, person.repo()
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            heads = tuple(one.commit_id for one in self.roots)
            found = [
                one
                for epoch, one in sorted(replica.tables.held_epochs(repo.num).items())
                if membership.epochs.is_within(epoch, heads)
                and membership.epochs.find_unopened({epoch}, heads)
            ]
        return self.forge.rng.choice(found)

    def states_of(self, epoch: Epoch) -> EpochStatement:
        """Return the statement of an epoch's init. Raises IndexError where it is not here."""
        replica = self.forge.person.replica
        with replica.membership_lock:
            found = replica.membership(self.forge.root_facts.repo_id).epochs.find(epoch.epoch_id)
        if found is None:
            raise IndexError
        return epoch_statement(found)

    def members(self) -> dict[UserId, Permission]:
        """Return the members and their permissions."""
        return dict(self.forge.person.replica.members(self.forge.person.repo()))

    def resolution(self) -> Resolution:
        """Return the resolution of all that is here."""
        replica = self.forge.person.replica
        with replica.membership_lock:
            return replica.membership(self.forge.root_facts.repo_id).now()

    def stranger(self) -> UserId:
        """A key of nobody."""
        return UserId(key_pair(InvitationSeed(self.forge.rng.randbytes(32)))[0])
