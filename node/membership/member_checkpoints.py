"""User actions on membership checkpoints: sign one, list them; and which members sign others than are known here.

`verifier.member_checkpoints` has the definitions. A statement is computed when it is asked for, and a few at a time: any
admin may sign any number.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from node.authoring.drafting import Draft
from node.authoring.writing import write_commits
from node.ingest.replica import Replica
from node.membership.repo_actions import RepoActions
from node.runtime.errors import ServiceError
from protocol.formats.body import MembersCheckpoint, Permission
from protocol.formats.text import id_text
from protocol.ids import CommitId, UserId
from protocol.limits.formats import ACK_COUNT_MAX
from ravel.types.members import CheckpointList, CheckpointView
from ravel.types.values import RootCommit
from storage.repos.repos import Repo
from verifier.member_checkpoints import StatementTooLarge
from verifier.operations import Operation

CHECKPOINTS_SHOWN_MAX: Final = 64
"""Checkpoints of a repo that are listed, the newest: eight each of eight admins."""
_COMPUTED_MAX: Final = 4
"""Statements that one question computes: some 50 ms each at 1,000 members, in which nothing else of any repo is judged."""


class MemberCheckpoints(RepoActions):
    """Signs and lists membership checkpoints."""

    async def sign(self, repo: str) -> RootCommit:
        """Sign what follows from all of the root branch that is here; once, while nothing comes after it."""
        target = self._find_repo(repo)
        held = await self._hub.run_blocking(self._hub.replica.permission, target, self._author.user)
        if (held or 0) < Permission.ADMIN:
            raise ServiceError(
                "not_permitted", "signing who is a member needs the permission of an admin", "ask an admin"
            )

        me, signed = self._author.user, list[CommitId]()

        def plan(_connection: Connection) -> Sequence[Draft]:
            with self._hub.replica.membership_lock:
                membership = self._hub.replica.membership(target.repo_id)
                heads = membership.now().heads[:ACK_COUNT_MAX]
                last = membership.operations.find(heads[0]) if len(heads) == 1 else None
                if last is not None and last.author == me and isinstance(last.body, MembersCheckpoint):
                    signed.append(last.commit_id)
                    return []
                try:
                    return [Draft(MembersCheckpoint(membership.digest_members(heads)), heads)]
                except StatementTooLarge:
                    raise ServiceError(
                        "too_large",
                        "too much follows from what is here to be signed",
                        "revoke links that are over",
                    ) from None

        root = self._hub.replica.root_branch(target)
        written = await write_commits(self._hub, self._author, root, plan)
        signed += [one.commit_id for one in written]
        return {"commit": id_text(signed[-1]), "repo": id_text(target.repo_id)}

    async def list_all(self, repo: str) -> CheckpointList:
        """List the latest checkpoints, and say which are true."""
        target = self._find_repo(repo)
        return {"checkpoints": await self._hub.run_blocking(self._list, target)}

    def _list(self, repo: Repo) -> list[CheckpointView]:
        people = self._hub.replica.people
        found, _ = _look(self._hub.replica, repo, admins_alone=False)
        return [
            {
                "checkpoint": id_text(one.commit_id),
                "author": id_text(one.author),
                "author_name": people.name(repo.repo_id, one.author),
                "time": one.timestamp // 1000,
                "admin": is_admin,
                "state": "unchecked" if is_true is None else "true" if is_true else "false",
            }
            for one, is_true, is_admin in found
        ]


def find_false_signers(replica: Replica, repo: Repo) -> tuple[list[UserId], bool]:
    """Return the present admins of whom a false checkpoint is considered, sorted; and True if all have been looked at.

    Costs O(checkpoints that are considered), and a statement for each of the first _COMPUTED_MAX that are new.
    """
    if not repo.has_members:
        return [], True
    found, is_whole = _look(replica, repo, admins_alone=True)
    return sorted({one.author for one, is_true, _ in found if is_true is False}), is_whole


def _look(
    replica: Replica, repo: Repo, *, admins_alone: bool
) -> tuple[list[tuple[Operation, bool | None, bool]], bool]:
    """Look at the newest checkpoints, or at all of present admins: the others cannot keep them out.

    Returns:
        Each with True if it is true, and True if its author is an admin now; and True if all have been looked at.
    """
    left = _COMPUTED_MAX
    while True:
        with replica.membership_lock:  # others may take it between two statements
            membership = replica.membership(repo.repo_id)
            now, statements = membership.now(), membership.checkpoints
            considered = statements.considered(membership.operations)
            chosen = [(one, (now.permission(one.author) or 0) >= Permission.ADMIN) for one in considered]
            chosen = [one for one in chosen if one[1]] if admins_alone else chosen[:CHECKPOINTS_SHOWN_MAX]
            fresh = next((one for one, _ in chosen if not statements.is_known(one.commit_id)), None)
            if fresh is None or not left:
                found = [(one, statements.find(one.commit_id), is_admin) for one, is_admin in chosen]
                return found, fresh is None
            membership.is_checkpoint_true(fresh)
        left -= 1
