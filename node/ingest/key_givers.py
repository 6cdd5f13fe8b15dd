"""`KeyGivingCommits`: commits that were not accepted and may give keys of epochs. Their keys count all the same (E7)."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from node.ingest.publication_reading import DecodedCommit
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen
from protocol.ids import CommitId, RepoId
from protocol.limits.peers import KEY_GIVERS_SIZE_MAX
from verifier.verify import SignedCommit


class Giver(NamedTuple):
    """A commit that may give keys."""

    decoded: DecodedCommit
    size: int
    is_rejected: bool


class KeyGivingCommits:
    """Commits in memory, by repo, that were not accepted and may give keys of epochs. Thread-safe.

    Beyond KEY_GIVERS_SIZE_MAX bytes the oldest leave. A pending one is also read from the store, or comes again when topics
    are compared. A rejected one does not come again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._givers: OrderedDict[tuple[RepoId, CommitId], Giver] = OrderedDict()
        self._size = 0

    def note(self, repo_id: RepoId, signed: SignedCommit, size: int, *, is_rejected: bool) -> bool:
        """Keep a commit of the root branch until its keys were taken; return False if it gives none."""
        if not isinstance(signed.body, EpochInit | EpochOpen | EpochHand):
            return False
        decoded = DecodedCommit(signed.commit, signed.body, signed.parts)
        with self._lock:
            self._discard((repo_id, signed.commit.commit_id))
            self._givers[repo_id, signed.commit.commit_id] = Giver(decoded, size, is_rejected)
            self._size += size
            while self._size > KEY_GIVERS_SIZE_MAX:
                self._discard(next(iter(self._givers)))
        return True

    def find(self, repo_id: RepoId) -> dict[CommitId, Giver]:
        """Return the givers of a repo, in order of arrival."""
        with self._lock:
            return {commit_id: one for (of, commit_id), one in self._givers.items() if of == repo_id}

    def discard(self, repo_id: RepoId, ids: Iterable[CommitId]) -> None:
        """Forget commits of which all keys were taken."""
        with self._lock:
            for commit_id in ids:
                self._discard((repo_id, commit_id))

    def _discard(self, place: tuple[RepoId, CommitId]) -> None:
        giver = self._givers.pop(place, None)
        self._size -= 0 if giver is None else giver.size
