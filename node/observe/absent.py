"""Commits and keys that a repo lacks here, epochs that members have to start, and who can help."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from node.ingest.replica import Replica
from protocol.formats.body import Permission
from protocol.ids import UserId
from protocol.limits.users import HELPERS_MAX
from storage.commits.pending import load_keyless, load_waiting_authors
from storage.engine.id_keys import id_key
from storage.repos.repos import Repo


@dataclass(frozen=True, slots=True)
class Absence:
    """Absent commits and keys of a repo, and who can help, as far as this node knows."""

    waiting: int = 0
    """Commits that wait for earlier ones, or for a key."""
    holders: tuple[UserId, ...] = ()
    """Members who can help: authors of waiting commits had their past, and holders of the epoch can hand it over."""
    is_due: bool = False
    """True if an epoch is due, which members start before they write on."""
    starters: tuple[UserId, ...] = ()
    """Members who can start the epoch: admins, or else other writers."""
    behind_since: int | None = None
    """Unix seconds since when an epoch is known here whose key is not, and which members write in, as far as can be told."""


NOTHING_ABSENT: Final = Absence()


def find_absence(replica: Replica, repo: Repo, me: UserId) -> Absence:
    """Look what is absent of a repo. Raises StorageError.

    Costs O(members) where the root branch has grown since the last look, or anything is absent.
    """
    if not repo.has_members:
        return Absence(replica.waiting_in(repo.num))
    waiting = replica.waiting_in(repo.num)
    authors: set[int] = set()
    keyless: list[tuple[int, int]] = []
    if waiting:
        with replica.database.read() as connection:
            authors = load_waiting_authors(connection, replica.tables.topics_of_repo.get(repo.num, ()))
            keyless = load_keyless(connection, replica.root_branch(repo).num)
    with replica.membership_lock:
        membership = replica.membership(repo.repo_id)
        now, epochs = membership.now(), membership.epochs
        is_due = epochs.is_due(now)
        if not (waiting or is_due):
            return NOTHING_ABSENT
        others = {user: held for user, held in now.members().items() if user != me}
        holders = [user for user in others if id_key(user) in authors]
        writers = [user for user, held in now.members().items() if held >= Permission.WRITE]
        admins = [user for user in writers if (now.permission(user) or 0) >= Permission.ADMIN]
    # Anyone who holds an older epoch can publish an init: what counts is who may start one (E9), as far as is known here.
    may_start = {id_key(user) for user in (writers if is_due else admins)}
    since = min((at // 1000 for author, at in keyless if author in may_start), default=None)
    return Absence(waiting, _first(holders), is_due, _first(writers) if is_due else (), since)


def _first(users: Iterable[UserId]) -> tuple[UserId, ...]:
    return tuple(sorted(set(users))[:HELPERS_MAX])
