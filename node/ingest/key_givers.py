"""`KeyGivingCommits`: commits that wait and may give keys of epochs, also where there is no room to wait (E7)."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from node.ingest.publication_reading import DecodedCommit
from protocol.formats.epochs import EpochHand, EpochInit, EpochOpen
from protocol.ids import CommitId, RepoId
from protocol.limits.peers import KEY_GIVERS_SIZE_MAX
from verifier.verify import SignedCommit

KEY_GIVING: Final = (EpochInit, EpochOpen, EpochHand)
"""Bodies that may give keys of epochs."""


class _Giver(NamedTuple):
    decoded: DecodedCommit
    size: int


class KeyGivingCommits:
    """Pending commits in memory, by repo, that may give keys of epochs. Thread-safe.

    Beyond KEY_GIVERS_SIZE_MAX bytes the oldest leave. Each is also read from the store, or comes again when topics are
    compared. Rejected ones are kept in the store (`storage.commits.rejected_givers`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._givers: OrderedDict[tuple[RepoId, CommitId], _Giver] = OrderedDict()
        self._size = 0

    def note(self, repo_id: RepoId, signed: SignedCommit, size: int) -> None:
        """Keep a commit of the root branch, whose body is KEY_GIVING, until its keys were taken."""
        decoded = DecodedCommit(signed.commit, signed.body, signed.parts)
        with self._lock:
            self._discard((repo_id, signed.commit.commit_id))
            self._givers[repo_id, signed.commit.commit_id] = _Giver(decoded, size)
            self._size += size
            while self._size > KEY_GIVERS_SIZE_MAX:
                self._discard(next(iter(self._givers)))

    def find(self, repo_id: RepoId) -> dict[CommitId, DecodedCommit]:
        """Return the givers of a repo, in order of arrival."""
        with self._lock:
            return {commit_id: one.decoded for (of, commit_id), one in self._givers.items() if of == repo_id}

    def discard(self, repo_id: RepoId, ids: Iterable[CommitId]) -> None:
        """Forget commits of which all keys were taken."""
        with self._lock:
            for commit_id in ids:
                self._discard((repo_id, commit_id))

    def _discard(self, place: tuple[RepoId, CommitId]) -> None:
        giver = self._givers.pop(place, None)
        self._size -= 0 if giver is None else giver.size
