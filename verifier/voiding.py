"""Which content commits are void: their author was removed without the removal having them, or never rightly a member.

A void commit was accepted, and stays in its branch's graph; it leaves every view. Rules (docs/membership.md):

  N1  A content commit is void when its author, by the operations in its own past that count now, may not write.
  N2  It is void when a removal of its author counts that leaves no right to write, is not in its past, and does not name
      it: a removal names the commits of the removed member's feeds up to the ends that it states.
  N3  It is not void when a commit that adopts it counts.

What counts now may change when a removal arrives, and with it what is void; nothing else changes it.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from protocol.body import FeedEnd, Join, Permission, Remove, Revoke
from verifier.membership import Membership
from verifier.operations import Operation
from verifier.resolution import supports


@dataclass(frozen=True, slots=True)
class Void:
    """Why a commit is void: the rule, and the operations that make it so (none where rights are missing)."""

    rule: str
    operations: tuple[Operation, ...] = ()


def find_void(
    membership: Membership,
    commit_id: bytes,
    branch: bytes,
    author: bytes,
    seen: tuple[bytes, ...],
    is_in_feed: Callable[[FeedEnd], bool],
) -> Void | None:
    """Whether an accepted content commit is void now. `is_in_feed` says whether the feed that ends so contains it."""
    now = membership.now()
    if not now.counting:
        return None
    operations = membership.operations
    if any(now.counts(adoption) for adoption in operations.adoptions_of(commit_id)):
        return None  # N3
    removals = tuple(
        removal
        for removal in now.counting_removals_of(author)
        if isinstance(removal.body, Remove)
        and (removal.body.keeps or 0) < Permission.WRITE
        and not operations.is_within(removal, seen)
        and not any(end.branch == branch and is_in_feed(end) for end in removal.body.feeds)
    )
    if removals:
        return Void("N2", removals)
    held = now.permission(author, seen)
    if held is None or held < Permission.WRITE:
        return Void("N1")
    return None


def find_affected(membership: Membership, removals: Collection[bytes]) -> set[bytes]:
    """Users whose commits may become void or cease to be when these removals start or cease to count."""
    operations = membership.operations
    targets: set[bytes] = set()
    invitations: set[bytes] = set()
    for removal in (operations[commit_id] for commit_id in removals):
        if isinstance(removal.body, Remove):
            targets.add(removal.body.user)
        elif isinstance(removal.body, Revoke):
            invitations.add(removal.body.invitation)
    affected = set(targets)
    for user in operations.users():
        ahead = list(operations.grants_of(user))
        looked_at = {one.commit_id for one in ahead}
        for one in ahead:  # grows while it is read
            is_join = isinstance(one.body, Join) and one.body.invitation in invitations
            if one.author in targets or is_join:
                affected.add(user)
                break
            more = [other for other in supports(operations, one) if other.commit_id not in looked_at]
            looked_at.update(other.commit_id for other in more)
            ahead += more
    return affected
