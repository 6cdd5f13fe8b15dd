"""Requests of a lobby, and what became of them, computed from what its root branch says (`protocol.formats.lobbies`).

Nothing rests on it: no right, no verdict, no order. All is a function of the set of commits, so all nodes that follow the
lobby show the same.
"""

from dataclasses import dataclass

from protocol.formats.body import RepoInit
from protocol.formats.lobbies import Admission, Lobby, LobbyAdd, LobbyAnswer
from protocol.ids import RepoId, UserId
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution


@dataclass(frozen=True, slots=True)
class FoundRequest:
    """A user's request: the user's first join in canonical order that counts, or did until the user left."""

    operation: Operation
    admissions: tuple[tuple[UserId, Admission], ...]
    """With who gave each, in canonical order."""
    refused_by: UserId | None
    """Admin who refused, the last in canonical order; None also where any admin accepted."""
    is_withdrawn: bool
    is_closed: bool
    """The link was revoked."""

    @property
    def user(self) -> UserId:
        """Return the user who asks."""
        return self.operation.author


class LobbyStatements:
    """Statements about lobbies in one repo's root branch: of itself, where it is one, and of those beside it."""

    def __init__(self) -> None:
        self._own: list[Operation] = []
        self._answers: list[Operation] = []
        self.additions: list[Operation] = []
        """Operations that open lobbies of this repo for its admins."""

    def add(self, operation: Operation) -> None:
        """Note an operation."""
        match operation.body:
            case Lobby():
                self._own.append(operation)
            case LobbyAdd():
                self.additions.append(operation)
            case LobbyAnswer():
                self._answers.append(operation)
            case _:
                pass

    def target(self, operations: Operations) -> RepoId | None:
        """Return the repo that users ask to join here, as the founder said first; None if this is no lobby."""
        if any(True for _ in operations.branches()):
            return None  # nodes forget lobbies by themselves, and nobody is to make them forget content
        for one in operations.in_order(self._own):
            body, founding = one.body, operations.epochs[0]
            if (
                isinstance(body, Lobby)
                and isinstance(founding.body, RepoInit)
                and one.author == founding.author
            ):
                return body.repo
        return None

    def find_requests(self, operations: Operations, now: Resolution) -> list[FoundRequest]:
        """Return all requests of a lobby, in the order in which they came; each user's first in canonical order."""
        found: dict[UserId, FoundRequest] = {}
        joins = {
            join.commit_id: (join, invitation)
            for invitation in operations.invitations
            for join in operations.joins_by(invitation.commit_id)
        }
        for one in operations.in_order(join for join, _ in joins.values()):
            join, invitation = joins[one.commit_id]
            # A join that a revocation or a removal voids never was a request; leaving voids nothing.
            if join.author not in found and now.counts(join):
                is_closed = any(map(now.has_effect, operations.revocations_of(invitation.commit_id)))
                is_withdrawn = now.permission(join.author) is None
                found[join.author] = self._describe(join, operations, now, is_withdrawn, is_closed)
        return sorted(found.values(), key=lambda one: one.operation.num)

    def _describe(
        self, join: Operation, operations: Operations, now: Resolution, is_withdrawn: bool, is_closed: bool
    ) -> FoundRequest:
        admissions: list[tuple[UserId, Admission]] = []
        refused_by = None
        for one in operations.in_order(self._answers):
            body = one.body
            if not isinstance(body, LobbyAnswer) or body.request != join.commit_id or not now.counts(one):
                continue
            if body.admission is None:
                refused_by = one.author
            else:
                admissions.append((one.author, body.admission))
        return FoundRequest(
            join, tuple(admissions), None if admissions else refused_by, is_withdrawn, is_closed
        )
