"""Memberships beside those that are restored from their snapshots: all that they hold, compared."""

from collections.abc import Iterable
from typing import Any

from protocol.ids import RepoId
from verifier.membership import Membership
from verifier.membership_snapshots import encode_parts, restore

_CACHES = {
    "_operations",
    "_epochs",
    "_graph",
    "_heads",
    "_opened",
    "_clean",
    "_unseen",
    "_unknown",
    "_names",
    "_reach",
    "_possible",
    "_sure",
    "numbers",
}
"""What is remembered of answers, or compared below by what it answers."""


def state_of(membership: Membership) -> dict[str, Any]:
    """All that a membership holds and says, by name."""
    operations, epochs, now = membership.operations, membership.epochs, membership.now()
    every = operations.since(0)
    return {
        "operations": _fields(operations),
        "numbers": vars(operations.numbers),
        "acks": {one.commit_id: tuple(operations.previous(one.commit_id)) for one in every},
        "places": [operations.place(one) for one in every],
        "epochs": _fields(epochs),
        "holders": [_fields(one) for one in (epochs._reach, epochs._possible, epochs._sure)],
        "settled": {one.commit_id: membership.settled_after(one.commit_id) for one in every},
        "devices": membership.device_statements,
        "profiles": vars(membership.profiles),
        "hides": membership.hides,
        "lobbies": vars(membership.lobbies),
        "offers": vars(membership.offers),
        "checkpoints": membership.checkpoints.considered(operations),
        "now": (now.heads, now.settled, now.members(), now.holders(), now.counting, now.epoch_tips()),
        "counts": [now.counts(one) for one in every],
        "acts": [now.acts_of(one) for one in every],
        "clean": epochs.find_clean(now),
    }


def _fields(thing: object) -> dict[str, Any]:
    return {name: value for name, value in vars(thing).items() if name not in _CACHES}


class Saver:
    """Saves a membership part by part as it grows."""

    def __init__(self, membership: Membership, repo_id: RepoId) -> None:
        self._membership = membership
        self._repo_id = repo_id
        self._saved_count = 0
        self.parts: list[bytes] = []

    def save(self) -> None:
        """Save what has come since."""
        self.parts += [part for _, part in encode_parts(self._membership, self._repo_id, self._saved_count)]
        self._saved_count = len(self._membership.operations)

    def check(self) -> Membership:
        """Save the rest, and compare what is restored from all parts; return that."""
        self.save()
        found = restored(self._repo_id, self.parts)
        assert state_of(found) == state_of(self._membership)
        return found


def restored(repo_id: RepoId, parts: Iterable[bytes]) -> Membership:
    """Return a membership made of parts."""
    membership = Membership(repo_id)
    for part in parts:
        restore(membership, repo_id, part)
    return membership
