"""Blocks local writes to repos where this node may lack commits of its own user, to prevent forked feeds.

A place of a feed that was used and is not known here would be used a second time, which every peer sees as a fork. So
nothing is written until a peer that follows the repo was compared (`feed_recovery`), or until a person says that the loss
is accepted (`repair.accept_loss`). One mark serves all causes: lost writes, a restored or copied folder, a user that came
by words or a file, a deleted repo that comes back. It is kept in the folder (`storage.engine.losses`), and outlives
restarts.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from node.runtime.errors import ServiceError
from protocol.ids import RepoId, UserId
from protocol.text import id_text
from storage.engine.errors import StorageError
from storage.engine.losses import Loss, note_deletion, note_elsewhere, note_return, read_loss, settle_loss

log = structlog.get_logger()

ADVICE: Final = (
    "let the daemon run: it takes some seconds with a peer that follows the repo; if there is none: "
    "`ravel fsck --accept-loss`"
)


class OwnFeeds:
    """The repos whose own feeds are uncertain. Replaced whole, so that any thread may look."""

    def __init__(self, folder: Path) -> None:
        """Nothing is known before `load`."""
        self._folder = folder
        self._lock = threading.Lock()
        self._has_past = False
        self.user: UserId | None = None
        """Whose feeds they are, once an author writes here."""
        self.elsewhere_at: int | None = None
        """Unix milliseconds when a peer last brought own commits that nothing had announced to be absent."""
        self.uncertain: frozenset[RepoId] = frozenset()
        self.detail = ""
        """Why; empty while nothing is uncertain."""

    def load(self, repo_ids: Iterable[RepoId]) -> None:
        """Read what is written down; these are the repos of the store. Raises StorageError."""
        try:
            loss = read_loss(self._folder)
            if loss is None:
                return
            named = (
                set(repo_ids) if loss.repos is None else {RepoId(bytes.fromhex(raw)) for raw in loss.repos}
            )
            others = {RepoId(bytes.fromhex(raw)) for raw in (*loss.deleted, *loss.returned)}
            self.uncertain = frozenset(named | others)
            settle_loss(self._folder, self.uncertain)
        except OSError as error:
            raise StorageError(f"{self._folder}: {error}") from error
        self._has_past = loss.has_past
        self.detail = loss.detail if self.uncertain else ""
        if loss.is_lost:
            say = log.error if loss.is_damage else log.warning
            say("own feeds are uncertain", detail=loss.detail, repos=len(self.uncertain))

    def note_deletion(self, repo_id: RepoId) -> None:
        """Before a repo is deleted: should it come back, a peer is asked before it is written to. Raises StorageError."""
        self._note(note_deletion, repo_id)

    def note_return(self, repo_id: RepoId) -> None:
        """Before a repo comes by a link: its user may have written to it elsewhere. Raises StorageError."""
        if self._has_past:
            self._note(note_return, repo_id)

    def note_elsewhere(self, repo_id: RepoId, now_ms: int) -> None:
        """After a peer brought own commits that were absent: the store was set back, or another node uses the user's key.

        There may be more of them, so a peer is compared before the next write. Nothing is lost if that cannot be written
        down: what came is here.
        """
        if repo_id in self.uncertain:
            return  # they are what is waited for
        self.elsewhere_at = now_ms
        self._has_past = True
        log.warning("own commits came from a peer", repo=id_text(repo_id))
        with suppress(StorageError):
            self._note(note_elsewhere, repo_id)

    def _note(self, note: Callable[[Path, RepoId], Loss], repo_id: RepoId) -> None:
        with self._lock:
            try:
                noted = note(self._folder, repo_id)
            except OSError as error:
                raise StorageError(f"{self._folder}: {error}") from error
            self.uncertain |= {repo_id}
            self.detail = noted.detail

    def settle(self, repo_id: RepoId) -> None:
        """The own feeds in a repo are certain again. Raises StorageError."""
        with self._lock:
            left = self.uncertain - {repo_id}
            try:
                settle_loss(self._folder, left)
            except OSError as error:
                raise StorageError(f"{self._folder}: {error}") from error
            self.uncertain = left
            self.detail = self.detail if left else ""
        log.info("own feeds are certain again", repo=id_text(repo_id), left=len(left))

    def why_uncertain(self, repo_id: RepoId) -> str:
        """Why commits that this user wrote to a repo may be absent here; empty where none are."""
        return self.detail if repo_id in self.uncertain else ""

    def check(self, repo_id: RepoId) -> None:
        """Raise ServiceError `feed_uncertain` where nothing may be written yet."""
        if why := self.why_uncertain(repo_id):
            raise ServiceError(
                "feed_uncertain",
                f"this node may lack commits that you wrote ({why}), and looks for them at peers first",
                ADVICE,
            )
