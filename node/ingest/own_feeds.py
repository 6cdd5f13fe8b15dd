"""Blocks local writes to repos where this node may have lost its own commits, to prevent forked feeds.

A place of a feed that was used and lost would be used a second time, which every peer sees as a fork. So nothing is written
until a peer that follows the repo has been met, which has what this node had sent it (`feed_recovery`), or until a person
says that the loss is accepted (`repair.accept_loss`). It is kept in the folder (`storage.engine.losses`), and
outlives restarts.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog

from node.runtime.errors import ServiceError
from protocol.ids import RepoId
from protocol.text import id_text
from storage.engine.errors import StorageError
from storage.engine.losses import note_deletion, read_loss, settle_loss

log = structlog.get_logger()

ADVICE: Final = (
    "let the daemon run, and meet a peer that follows the repo; if there is none: `ravel fsck --accept-loss`"
)


class OwnFeeds:
    """The repos whose own feeds are uncertain. Replaced whole, so that any thread may look."""

    def __init__(self, folder: Path) -> None:
        """Nothing is known before `load`."""
        self._folder = folder
        self.uncertain: frozenset[RepoId] = frozenset()
        self.detail = ""
        """What was lost; empty while nothing is uncertain."""

    def load(self, repo_ids: Iterable[RepoId]) -> None:
        """Read what is written down; these are the repos of the store. Raises StorageError."""
        try:
            loss = read_loss(self._folder)
            if loss is None:
                return
            named = (
                set(repo_ids) if loss.repos is None else {RepoId(bytes.fromhex(raw)) for raw in loss.repos}
            )
            self.uncertain = frozenset(named | {RepoId(bytes.fromhex(raw)) for raw in loss.deleted})
            settle_loss(self._folder, self.uncertain)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error}") from error
        self.detail = loss.detail if self.uncertain else ""
        if loss.is_lost:
            say = log.error if loss.restored_from is None else log.warning
            say("own feeds are uncertain", detail=loss.detail, repos=len(self.uncertain))

    def note_deletion(self, repo_id: RepoId) -> None:
        """Before a repo is deleted: should it come back, a peer is asked before it is written to. Raises StorageError."""
        try:
            noted = note_deletion(self._folder, repo_id)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error}") from error
        self.uncertain |= {repo_id}
        self.detail = noted.detail

    def settle(self, repo_id: RepoId) -> None:
        """The own feeds in a repo are certain again. Raises StorageError."""
        left = self.uncertain - {repo_id}
        try:
            settle_loss(self._folder, left)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error}") from error
        self.uncertain = left
        self.detail = self.detail if left else ""
        log.info("own feeds are certain again", repo=id_text(repo_id), left=len(left))

    def check(self, repo_id: RepoId) -> None:
        """Raises ServiceError `feed_uncertain` where nothing may be written yet."""
        if repo_id in self.uncertain:
            raise ServiceError(
                "feed_uncertain",
                f"this node may lack commits that you wrote ({self.detail}), and has not asked a peer yet",
                ADVICE,
            )
