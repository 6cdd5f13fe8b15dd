"""User actions on membership checkpoints: sign one, list them; and which members sign others than are known here.

`verifier.member_checkpoints` has the definitions. A statement is computed when it is asked for, and a few at a time: any
admin may sign any number.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from node.authoring.drafting import Draft
from node.authoring.writing import write_commits
from node.contract.members import CheckpointList, CheckpointView
from node.contract.values import RootCommit
from node.ingest.replica import Replica
from node.membership.repo_actions import RepoActions
from node.runtime.errors import ServiceError
from protocol.formats.body import MembersCheckpoint, Permission
from protocol.formats.text import id_text
from protocol.ids import UserId
from protocol.limits.formats import ACK_COUNT_MAX
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation

CHECKPOINTS_SHOWN_MAX: Final = 64
"""Checkpoints of a repo that are listed and looked at, the newest: eight each of eight admins."""
_COMPUTED_MAX: Final = 4
"""Statements that one question computes: some 50 ms each at 1,000 members, in which nothing else is judged."""


class MemberCheckpoints(RepoActions):
    """Signs and lists membership checkpoints."""

    async def sign(self, repo: str) -> RootCommit:
        """Sign what follows from all of the root branch that is here."""
        target = self._find_repo(repo)
        held = await self._hub.run_blocking(self._hub.replica.permission, target, self._author.user)
        if (held or 0) < Permission.ADMIN:
            raise ServiceError(
                "not_permitted", "signing who is a member needs the permission of an admin", "ask an admin"
            )

        def plan(_connection: Connection) -> Sequence[Draft]:
            with self._hub.replica.membership_lock:
                membership = self._hub.replica.membership(target.repo_id)
                heads = membership.now().heads[:ACK_COUNT_MAX]
                return [Draft(MembersCheckpoint(membership.digest_members(heads)), heads)]

        root = self._hub.replica.root_branch(target)
        [written] = await write_commits(self._hub, self._author, root, plan)
        return {"commit": id_text(written.commit_id), "repo": id_text(target.repo_id)}

    async def list_all(self, repo: str) -> CheckpointList:
        """List the latest checkpoints, with which are true."""
        target = self._find_repo(repo)
        return {"checkpoints": await self._hub.run_blocking(self._list, target)}

    def _list(self, repo: Repo) -> list[CheckpointView]:
        people = self._hub.replica.people
        with self._hub.replica.membership_lock:
            membership = self._hub.replica.membership(repo.repo_id)
            now = membership.now()
            return [
                {
                    "checkpoint": id_text(one.commit_id),
                    "author": id_text(one.author),
                    "author_name": people.name(repo.repo_id, one.author),
                    "time": one.timestamp // 1000,
                    "admin": (now.permission(one.author) or 0) >= Permission.ADMIN,
                    "state": "unchecked" if is_true is None else "true" if is_true else "false",
                }
                for one, is_true in _look(membership)
            ]


def find_false_signers(replica: Replica, repo: Repo) -> list[UserId]:
    """Return the present admins of whom a false checkpoint is considered, sorted. Costs O(checkpoints that are listed)."""
    if not repo.has_members:
        return []
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        now = membership.now()
        signers = {one.author for one, is_true in _look(membership) if is_true is False}
        return sorted(user for user in signers if (now.permission(user) or 0) >= Permission.ADMIN)


def _look(membership: Membership) -> list[tuple[Operation, bool | None]]:
    """Return the newest checkpoints, and of each whether it is true; None of those that are looked at next time."""
    left, found = _COMPUTED_MAX, list[tuple[Operation, bool | None]]()
    for one in islice(membership.checkpoints.considered(membership.operations), CHECKPOINTS_SHOWN_MAX):
        is_true = membership.checkpoints.find(one.commit_id)
        if is_true is None and left:
            left -= 1
            is_true = membership.is_checkpoint_true(one)
        found.append((one, is_true))
    return found
