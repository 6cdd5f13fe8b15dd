"""Blocks local writes to repos where this node may lack commits of its own user, to prevent forked feeds.

A place of a feed that was used and is not known here would be used a second time, which every peer sees as a fork. So
nothing is written until a peer that follows the repo was compared (`feed_recovery`), or until a person says that the loss
is accepted (`repair.accept_loss`). One mark serves all causes: lost writes, a restored or copied folder, a user that came
by words or a file, a deleted repo that comes back. It is kept in the folder (`storage.engine.losses`), and outlives
restarts.
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import structlog

from node.runtime.errors import ServiceError
from protocol.formats.text import id_text
from protocol.ids import RepoId, UserId
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
        """Create it knowing nothing: `load` comes next."""
        self._folder = folder
        self._lock = threading.Lock()
        self._has_past = False
        self._unwritten: set[RepoId] = set()  # uncertain here alone: that could not be written down
        self.user: UserId | None = None
        """Whose feeds they are, once an author writes here."""
        self.elsewhere_at: int | None = None
        """Unix milliseconds when a peer last brought own commits that nothing had announced to be absent."""
        self.uncertain: frozenset[RepoId] = frozenset()
        self.detail = ""
        """Why; empty while nothing is uncertain."""
        self.is_over = False
        """True once another user's key was put in place: nothing more is signed with the one before."""
        self.noted_count = 0
        """Times that a repo was noted to be uncertain. While it stays the same, what was found out since holds."""

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
        """Note in the transaction that deletes a repo: should it come back, a peer is asked before it is written to.

        So it is with the other notes. Who holds `Replica.membership_lock` sees a repo and its mark go and come together.
        Raises StorageError.
        """
        self._note(note_deletion, repo_id)

    def note_return(self, repo_id: RepoId) -> None:
        """Note in the transaction that brings a repo by a link: its user may have written there. Raises StorageError."""
        if self._has_past:
            self._note(note_return, repo_id)

    def note_elsewhere(self, repo_id: RepoId, now_ms: int) -> None:
        """Note in the transaction that stores own commits from a peer: the store was set back, or another node uses the key.

        There may be more of them, so a peer is compared before the next write. Where that cannot be written down, it holds
        until the next start, and is written down with the next that come.
        """
        if repo_id in self.uncertain and repo_id not in self._unwritten:
            return  # they are what is waited for
        self.elsewhere_at = now_ms
        self._has_past = True
        log.warning("own commits came from a peer", repo=id_text(repo_id))
        try:
            self._note(note_elsewhere, repo_id)
        except StorageError as error:
            log.error("that own feeds are uncertain is not written down", error=str(error))
            with self._lock:
                self._unwritten.add(repo_id)
                self._mark(repo_id, self.detail or Loss(None, None, cause="elsewhere").detail)

    def _note(self, note: Callable[[Path, RepoId], Loss], repo_id: RepoId) -> None:
        with self._lock:
            try:
                noted = note(self._folder, repo_id)
            except OSError as error:
                raise StorageError(f"{self._folder}: {error}") from error
            self._unwritten.discard(repo_id)
            self._mark(repo_id, noted.detail)

    def _mark(self, repo_id: RepoId, detail: str) -> None:
        self.uncertain |= {repo_id}
        self.detail = detail
        self.noted_count += 1

    def settle(self, repo_id: RepoId) -> None:
        """Mark the own feeds in a repo as certain again. Raises StorageError."""
        with self._lock:
            left = self.uncertain - {repo_id}
            try:
                settle_loss(self._folder, left)
            except OSError as error:
                raise StorageError(f"{self._folder}: {error}") from error
            self.uncertain = left
            self._unwritten.discard(repo_id)
            self.detail = self.detail if left else ""
        log.info("own feeds are certain again", repo=id_text(repo_id), left=len(left))

    def why_uncertain(self, repo_id: RepoId) -> str:
        """Explain why commits that this user wrote to a repo may be absent here; empty if none are."""
        return self.detail if repo_id in self.uncertain else ""

    def check_user(self) -> None:
        """Raise ServiceError `feed_uncertain` where this user's key was replaced a moment ago."""
        if self.is_over:
            raise ServiceError(
                "feed_uncertain",
                "this node takes up another user's key, and starts anew",
                "try again in a second",
            )

    def check(self, repo_id: RepoId) -> None:
        """Raise ServiceError `feed_uncertain` where nothing may be written yet."""
        if why := self.why_uncertain(repo_id):
            raise ServiceError(
                "feed_uncertain",
                f"this node may lack commits that you wrote ({why}), and looks for them at peers first",
                ADVICE,
            )
