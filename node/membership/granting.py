"""The grant of a permission, with the secret that it takes to write."""

from node.authoring.outbound import Author
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.body import Grant, Permission
from storage.repos.repos import Repo


def sealed_grant(replica: Replica, author: Author, repo: Repo, user: bytes, wanted: Permission) -> Grant:
    """What gives a user a permission: who is to write gets the write secret of the epoch that is written in, sealed.

    Raises ServiceError where that secret is not here.
    """
    if wanted < Permission.WRITE:
        return Grant(user, wanted, None)
    epoch = replica.writing_epoch(repo)
    if epoch.write_secret is None:
        raise ServiceError("not_permitted", "this node may read the repo and not write to it")
    return Grant(user, wanted, author.seal_secret(repo, user, epoch.write_secret))
