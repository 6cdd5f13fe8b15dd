"""User actions on quorums: name signers, propose and approve checkpoints and removals, show the state.

Proposals and approvals are commits of the root branch (`verifier.quorums` has the rules); a checkpoint is a commit of its
branch that every member who may write can make once enough signers have approved.
"""

from collections.abc import Container
from typing import Final

from node.authoring.drafting import Draft
from node.authoring.writing import write_commit, write_commits
from node.ingest.people import People
from node.membership.members import PERMISSIONS, find_user
from node.membership.persons import find_companions, find_persons_in
from node.membership.repo_actions import RepoActions
from node.runtime.errors import ServiceError
from node.runtime.resolve import resolve
from protocol.formats.body import (
    Approve,
    Body,
    Checkpoint,
    Permission,
    ProposeCheckpoint,
    ProposeRemoval,
    Quorum,
)
from protocol.formats.text import id_text
from protocol.ids import CommitId, RepoId, UserId
from protocol.limits.formats import ACK_COUNT_MAX
from ravel.types.quorums import CouncilView, Proposal, ProposalSubject, ProposalView, QuorumState, QuorumView
from ravel.types.values import RootCommit
from storage.commits.checkpoints import load_made_checkpoints
from storage.commits.commits import load_facts
from storage.commits.heads import count_heads, load_heads
from storage.repos.repos import Branch, Repo
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.quorums import (
    check_approval,
    find_approving,
    find_council,
    find_council_signers,
    find_covering,
    find_demands,
    find_in_force,
)
from verifier.refusal import CommitRefused

_PROPOSALS_SHOWN_MAX: Final = 100


class Quorums(RepoActions):
    """Names quorums, proposes and approves."""

    async def show(self, repo: str) -> QuorumState:
        """List the quorums in force, and the latest proposals."""
        return await self._hub.run_blocking(self._show, self._find_repo(repo))

    async def name(self, repo: str, signers: list[str], threshold: int, *, removals: bool) -> RootCommit:
        """Name the signers, and how many of them must approve."""
        target = self._find_repo(repo)
        held = await self._hub.run_blocking(self._hub.replica.members, target)
        users = sorted(
            {await self._hub.run_blocking(find_user, text, self._hub.replica, target) for text in signers}
        )
        strangers = [user for user in users if user not in held]
        if strangers:
            raise ServiceError(
                "bad_request", f"{id_text(strangers[0])} is no member", "`ravel member list` shows members"
            )
        if not 1 <= threshold <= len(users):
            raise ServiceError(
                "bad_request", f"the threshold is from 1 to the number of signers, {len(users)}"
            )
        return await self._write_root(target, Quorum(tuple(users), threshold, removals))

    async def propose_checkpoint(self, branch: str) -> Proposal:
        """Ask the signers for a checkpoint of a branch as it is here now. A signer approves with that.

        What is proposed already is not proposed again, and a branch that ends in a checkpoint has nothing for another.
        """
        target = self._find_branch(branch)
        repo = self._hub.replica.repos[target.repo_num]
        body = await self._hub.run_blocking(self._plan_checkpoint, target)
        found, made = await self._hub.run_blocking(self._find_proposed, repo, target, body)
        if made is not None:
            return self._view(repo, made[0], made[1])
        return await self._propose(repo, body, found)

    async def propose_removal(self, repo: str, user: str, keeps: str, *, person: bool = True) -> Proposal:
        """Ask the signers to lower a member's permission to `keeps`. Empty: to exclude the member.

        With `person`, a proposal for each other device of the same person is made together with it. A signer approves with
        that.
        """
        target, run = self._find_repo(repo), self._hub.run_blocking
        held = await run(self._hub.replica.members, target)
        key = await run(find_user, user, self._hub.replica, target)
        if keeps and keeps not in PERMISSIONS:
            raise ServiceError("bad_request", f"a permission is one of {', '.join(PERMISSIONS)}")
        kept = PERMISSIONS[keeps] if keeps else None
        if (held.get(key) or 0) <= (kept or 0):
            raise ServiceError("bad_request", "the user holds no more than that", "`ravel member list` shows")
        companions = await run(self._find_companions, target, key, kept) if person else {}
        root = self._hub.replica.root_branch(target)
        drafts = [Draft(ProposeRemoval(one, left)) for one, left in {key: kept, **companions}.items()]
        ids = [one.commit_id for one in await write_commits(self._hub, self._author, root, drafts)]
        if await run(self._is_signer, target, ids[0]):
            await write_commits(self._hub, self._author, root, [Draft(Approve(one)) for one in ids])
        return {**self._view(target, ids[0]), "devices": [id_text(one) for one in companions]}

    async def approve(self, repo: str, proposal: str) -> Proposal:
        """Sign a proposal; where that was the last approval that a checkpoint lacked, make it."""
        target = self._find_repo(repo)
        found = await self._hub.run_blocking(self._find_proposal, target, proposal)
        if isinstance(found.body, ProposeCheckpoint):
            await self._hub.run_blocking(self._check_is_here, found.body)
        return await self._approve(target, found.commit_id)

    async def finish(self, repo: str, proposal: str) -> Proposal:
        """Make the checkpoint that enough signers approved."""
        target = self._find_repo(repo)
        found = await self._hub.run_blocking(self._find_proposal, target, proposal)
        if not isinstance(found.body, ProposeCheckpoint):
            raise ServiceError(
                "bad_request",
                "that is no proposal of a checkpoint",
                "removals: `ravel member exclude|revoke`",
            )
        return await self._make(target, found)

    # --- steps ---

    async def _propose(self, repo: Repo, body: Body, proposal: Operation | None = None) -> Proposal:
        if proposal is None:
            written = await self._write_root(repo, body)
            proposal = await self._hub.run_blocking(self._find_proposal, repo, written["commit"])
        if await self._hub.run_blocking(self._is_signer, repo, proposal.commit_id):
            return await self._approve(repo, proposal.commit_id)
        return self._view(repo, proposal.commit_id)

    async def _approve(self, repo: Repo, proposal_id: CommitId) -> Proposal:
        made = await self._hub.run_blocking(self._find_made, repo)
        if proposal_id in made:
            return self._view(repo, proposal_id, made[proposal_id])
        proposal = await self._hub.run_blocking(self._find_proposal, repo, id_text(proposal_id))
        if not await self._hub.run_blocking(self._is_approved, repo, proposal):
            await self._write_root(repo, Approve(proposal_id))
        if isinstance(proposal.body, ProposeCheckpoint) and await self._hub.run_blocking(
            self._may_make, repo, proposal
        ):
            return await self._make(repo, proposal)
        return self._view(repo, proposal_id)

    async def _make(self, repo: Repo, proposal: Operation) -> Proposal:
        body = proposal.body
        assert isinstance(body, ProposeCheckpoint), "looked at"
        branch = self._find_branch(f"{id_text(repo.repo_id)}:{id_text(body.branch)}")
        if not await self._hub.run_blocking(self._is_open, branch, proposal):
            raise ServiceError("already_exists", "that checkpoint was made already")
        draft = Draft(Checkpoint(proposal.commit_id), tuple(body.commits))
        written = await write_commit(self._hub, self._author, branch, draft)
        return self._view(repo, proposal.commit_id, written.commit_id)

    @staticmethod
    def _view(repo: Repo, proposal: CommitId, checkpoint: CommitId | None = None) -> Proposal:
        return {
            "proposal": id_text(proposal),
            "repo": id_text(repo.repo_id),
            "checkpoint": None if checkpoint is None else id_text(checkpoint),
        }

    def _plan_checkpoint(self, branch: Branch) -> ProposeCheckpoint:
        with self._hub.replica.database.read() as connection:
            heads = load_heads(connection, branch.num, ACK_COUNT_MAX)
            if count_heads(connection, branch.num) > len(heads):
                raise ServiceError(
                    "too_large",
                    f"the branch has more than {ACK_COUNT_MAX} heads",
                    "`ravel write` merges that many at a time",
                )
        return ProposeCheckpoint(branch.branch_id, tuple(commit_id for commit_id, _ in heads))

    def _find_proposal(self, repo: Repo, text: str) -> Operation:
        with self._hub.replica.membership_lock:
            proposals = self._hub.replica.membership(repo.repo_id).operations.proposals
        return resolve("proposal", text, [(one.commit_id, "", one) for one in proposals])

    def _find_proposed(
        self, repo: Repo, branch: Branch, body: ProposeCheckpoint
    ) -> tuple[Operation | None, tuple[CommitId, CommitId] | None]:
        """Find the proposal of just this checkpoint; and a checkpoint that the branch ends in, with its proposal."""
        with self._hub.replica.database.read() as connection:
            made = load_made_checkpoints(connection, [branch.num])
        ends = [(proposal, one) for proposal, one in made.items() if body.commits == (one,)]
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            now = membership.now()
            same = [
                one
                for one in membership.operations.proposals
                if isinstance(one.body, ProposeCheckpoint)
                and (one.body.branch, set(one.body.commits)) == (body.branch, set(body.commits))
                and now.counts(one)
            ]
        return min(same, key=lambda one: one.commit_id, default=None), min(ends, default=None)

    def _find_made(self, repo: Repo) -> dict[CommitId, CommitId]:
        nums = [branch.num for branch in self._hub.replica.branches_in(repo.num)]
        with self._hub.replica.database.read() as connection:
            return load_made_checkpoints(connection, nums)

    def _is_approved(self, repo: Repo, proposal: Operation) -> bool:
        """Return True if an approval by this user counts."""
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            given, now = membership.operations.approvals_of(proposal.commit_id), membership.now()
            return any(one.author == self._author.user and now.counts(one) for one in given)

    def _check_is_here(self, body: ProposeCheckpoint) -> None:
        with self._hub.replica.database.read() as connection:
            known = load_facts(connection, body.commits)
        missing = [raw for raw in body.commits if raw not in known]
        if missing:
            raise ServiceError(
                "incomplete",
                f"{len(missing)} of the commits to sign have not come to this node yet",
                "approve when `ravel peer list` says that it is in sync",
            )

    def _find_companions(
        self, repo: Repo, user: UserId, keeps: Permission | None
    ) -> dict[UserId, Permission | None]:
        stated = self._hub.replica.persons(repo.repo_id)
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            persons = find_persons_in(membership, stated)
            return find_companions(membership, persons, self._author.user, user, keeps)

    def _is_signer(self, repo: Repo, proposal: CommitId) -> bool:
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            try:
                check_approval(membership.operations, self._author.user, Approve(proposal), membership.now())
            except CommitRefused:
                return False
        return True

    def _may_make(self, repo: Repo, proposal: Operation) -> bool:
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            held = membership.now().permission(self._author.user)
            return (held or 0) >= Permission.WRITE and not _count_missing(membership, proposal)

    def _is_open(self, branch: Branch, proposal: Operation) -> bool:
        with self._hub.replica.database.read() as connection:
            return proposal.commit_id not in load_made_checkpoints(connection, [branch.num])

    def _show(self, repo: Repo) -> QuorumState:
        replica = self._hub.replica
        of_repo = [branch.num for branch in replica.branches_in(repo.num)]
        with replica.membership_lock, replica.database.read() as connection:
            membership = replica.membership(repo.repo_id)
            made = load_made_checkpoints(connection, of_repo)
            quorums = find_in_force(membership.operations, membership.now())
            latest = membership.operations.proposals[-_PROPOSALS_SHOWN_MAX:]
            return {
                "council": _council_view(replica.people, repo.repo_id, membership),
                "quorums": [_quorum_view(replica.people, repo.repo_id, one) for one in quorums],
                "proposals": [
                    _proposal_view(replica.people, repo.repo_id, membership, one, made)
                    for one in reversed(latest)
                ],
            }


def _count_missing(membership: Membership, proposal: Operation) -> int:
    """Count the approvals of a proposal that the quorums in force still ask for, or else the council."""
    operations, now = membership.operations, membership.now()
    council, body = find_council(operations), proposal.body
    if isinstance(body, ProposeRemoval) and council is not None:
        signers = find_council_signers(operations, now)
        if body.user in signers or not find_covering(operations, now):
            approving = find_approving(operations, proposal, now).intersection(signers)
            return council.council - len(set[UserId]().union(*(signers[user] for user in approving)))
    demands = find_demands(operations, now, proposal, find_in_force(operations, now))
    return max((demand.threshold - len(demand.approvals) for demand in demands), default=0)


def _council_view(people: People, repo_id: RepoId, membership: Membership) -> CouncilView | None:
    council = find_council(membership.operations)
    if council is None:
        return None
    signers = find_council_signers(membership.operations, membership.now())
    return {
        "threshold": council.council,
        "signers": [id_text(user) for user in signers],
        "signer_names": [people.name(repo_id, user) for user in signers],
    }


def _quorum_view(people: People, repo_id: RepoId, one: Operation) -> QuorumView:
    assert isinstance(one.body, Quorum), "it is in force"
    return {
        "quorum": id_text(one.commit_id),
        "author": id_text(one.author),
        "author_name": people.name(repo_id, one.author),
        "threshold": one.body.threshold,
        "signers": [id_text(user) for user in one.body.signers],
        "signer_names": [people.name(repo_id, user) for user in one.body.signers],
        "removals": one.body.removals,
    }


def _proposal_view(
    people: People, repo_id: RepoId, membership: Membership, one: Operation, made: Container[bytes]
) -> ProposalView:
    operations, now = membership.operations, membership.now()
    is_done = one.commit_id in made
    if isinstance(one.body, ProposeRemoval):
        about: ProposalSubject = {
            "kind": "removal",
            "user": id_text(one.body.user),
            "user_name": people.name(repo_id, one.body.user),
            "keeps": one.body.keeps.name.lower() if one.body.keeps is not None else None,
        }
        user = one.body.user
        is_done = any(
            removal.author != user and operations.precedes(one, removal)
            for removal in operations.removals_of(user)
        )
    else:
        assert isinstance(one.body, ProposeCheckpoint), "the other kind of proposal"
        about = {
            "kind": "checkpoint",
            "branch": id_text(one.body.branch),
            "commits": [id_text(raw) for raw in one.body.commits],
        }
    missing = max(0, _count_missing(membership, one))
    approvals = [other for other in operations.approvals_of(one.commit_id) if now.counts(other)]
    signers = sorted({other.author for other in approvals}, key=id_text)
    return {
        "proposal": id_text(one.commit_id),
        "author": id_text(one.author),
        "author_name": people.name(repo_id, one.author),
        **about,
        "approved_by": [id_text(user) for user in signers],
        "approved_by_names": [people.name(repo_id, user) for user in signers],
        "missing": missing,
        "state": "done" if is_done else "void" if not now.counts(one) else "open" if missing else "approved",
    }
