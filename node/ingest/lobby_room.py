"""Bound of what a node takes of a lobby (`protocol.lobbies`): a stranger who holds its link may write into it.

What comes beyond is dropped, and found to be lacking when the topic is compared again.
"""

from node.ingest.replica import Replica
from protocol.body import Permission
from protocol.ids import RepoId, UserId
from protocol.limits.peers import LOBBY_COMMIT_COUNT_MAX, LOBBY_OWN_COUNT_MAX, LOBBY_PENDING_SHARE
from verifier.membership import Membership


def is_full(membership: Membership, author: UserId) -> bool:
    """Return True if this is the membership of a lobby that takes no more of an author. Hold `membership_lock`."""
    count = len(membership.operations)
    if count < LOBBY_COMMIT_COUNT_MAX or membership.lobbies.target(membership.operations) is None:
        return False
    return count >= LOBBY_OWN_COUNT_MAX or (membership.now().permission(author) or 0) < Permission.OWNER


def pending_parts(replica: Replica, repo_id: RepoId) -> int:
    """Return into how many parts the room for what waits is divided, of which a topic of the repo has one."""
    return LOBBY_PENDING_SHARE if repo_id in replica.lobbies else 1
