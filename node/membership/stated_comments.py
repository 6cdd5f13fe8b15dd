"""Keeps what a document's branch says of its comments level with what became of them.

Offers stand in the root branch, which the followers of a branch's link have not. So a dict of the document's own branch,
`.comments`, holds the last accepted offer of each comment. Who answers an offer writes that at once. A withdrawal by an
author who may not write there, the exclusion of one, and answers that crossed are for the nodes of admins, one after the
other in the order of their ids: so it is done once where nodes are connected, and by those left where they are not.
"""

import math
from typing import Final, NamedTuple

import structlog
import trio

from node.authoring.author import Author
from node.content.documents import Documents
from node.membership.epoch_duties import ADMIN_STEP_SECONDS
from node.membership.offers import STATED_COMMENTS, AcceptedOffer, decode_link, load_stripped
from node.runtime.backoff import store_backoff
from node.runtime.errors import ServiceError
from node.runtime.scheduling import rest_after
from node.sync.hub import Hub
from protocol.formats.body import Permission
from protocol.formats.document_kinds import DICT
from protocol.formats.text import id_text
from protocol.ids import BranchId, CommitId, RepoId, UserId
from storage.engine.database import StorageError
from storage.engine.id_keys import chunks
from storage.repos.repos import Repo
from verifier.resolution import Settled

log = structlog.get_logger()

_READ_AT_ONCE: Final = 500
"""Comments whose entries are read by one job: some 5 ms."""
_ADMINS_COUNTED: Final = 10
"""Of the admins that precede, so many are waited for: more may be away for good."""
_Comment = tuple[BranchId, UserId, BranchId]
"""What offers of one comment have alike: the document's branch, the author, and the comment's own branch."""


class _Wanted(NamedTuple):
    """The value that is to stand of an offer, and what it was found by: the dict may have been written meanwhile."""

    value: str | None
    answers: tuple[CommitId, ...]
    """To all offers of the comment."""
    settled: Settled
    """Removals: what an excluded admin wrote may be void."""


class StatedComments:
    """The dicts `.comments` of documents. `run` owns the work that nobody asked for."""

    def __init__(self, hub: Hub, author: Author, documents: Documents) -> None:
        self._hub = hub
        self._author = author
        self._documents = documents
        self._level: dict[RepoId, dict[str, _Wanted]] = {}
        """By offer's key, what was found to be stated of it as it is to be: each is looked at when any of it has changed."""
        self._due: dict[int, float] = {}
        """When repos are to be made level, in trio's seconds."""

    async def run(self) -> None:
        """Keep up what the answers of others change where this user is an admin, until cancelled."""
        tick: int | None = None
        backoff = store_backoff()
        while True:
            count, began = self._hub.changes.count, trio.current_time()
            try:
                tick = await self._look(tick)
                backoff.reset()
                wait = min(self._due.values(), default=math.inf) - trio.current_time()
            except StorageError as error:
                log.error("comments cannot be stated, to be tried again", error=str(error))
                tick, wait = None, backoff.fail()
            ended = trio.current_time()
            with trio.move_on_after(max(0.0, wait)):
                await self._hub.changes.wait(count)
            await rest_after(began, ended)

    async def keep_level(self, repo: Repo, answered: AcceptedOffer | None = None) -> None:
        """Write the statements about comments on a repo's documents that are missing: for all comments, or for the
        answered one.

        Costs O(offers), and one look at each that has changed since the last time. Raises StorageError.
        """
        for branch_id, wanted in (await self._hub.run_blocking(self._find_changed, repo, answered)).items():
            document = f"{id_text(repo.repo_id)}:{id_text(branch_id)}"
            try:
                for part in chunks(list(wanted), _READ_AT_ONCE):
                    stated = await self._documents.read_entries(DICT, document, part, STATED_COMMENTS)
                    there = {key: entry.values[0].value for key, entry in stated.items() if entry.values}
                    edit = {key: wanted[key].value for key in part if wanted[key].value != there.get(key)}
                    if edit:
                        await self._documents.edit(DICT, document, edit, STATED_COMMENTS)
                    self._level.setdefault(repo.repo_id, {}).update((key, wanted[key]) for key in part)
            except ServiceError as error:  # a dict that cannot be read keeps nobody from deciding
                log.warning("comments not stated to followers of the branch", reason=error.message)

    async def _look(self, tick: int | None) -> int:
        """Make level what is due, and take note of repos that have changed after a tick; return the present one."""
        present, changed = self._hub.replica.shown.roots_since(tick)
        for num in changed:
            turn = await self._hub.run_blocking(self._find_turn, num)
            if turn is not None:
                self._due.setdefault(num, trio.current_time() + turn)
        now = trio.current_time()
        for num in [num for num, at in self._due.items() if at <= now]:
            del self._due[num]
            if (repo := self._hub.replica.repos.get(num)) is not None:
                await self.keep_level(repo)
        return present

    def _find_turn(self, repo_num: int) -> float | None:
        """Return the seconds until this user's turn; None where it is no admin, or all is level."""
        replica, me = self._hub.replica, self._author.user
        repo = replica.repos.get(repo_num)
        if repo is None or not repo.has_members or repo.repo_id in replica.lobbies:
            return None
        if (replica.permission(repo, me) or 0) < Permission.ADMIN or not self._find_changed(repo, None):
            return None
        with replica.membership_lock:
            members = replica.membership(repo.repo_id).now().members()
        before = [user for user, held in members.items() if held >= Permission.ADMIN and user < me]
        return ADMIN_STEP_SECONDS * (1 + len(before) % _ADMINS_COUNTED)

    def _find_changed(self, repo: Repo, answered: AcceptedOffer | None) -> dict[BranchId, dict[str, _Wanted]]:
        """Find what is to be stated, by document and offer's key, that is not known to be."""
        replica = self._hub.replica
        if (replica.permission(repo, self._author.user) or 0) < Permission.WRITE:
            return {}
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now = membership.now()
            offers = membership.offers.find_answered(membership.operations, now)
        whole = load_stripped(replica, offers)
        if len(whole) < len(offers):  # one is damaged: an earlier offer would be taken for its comment's last
            return {}
        last: dict[_Comment, AcceptedOffer] = {}
        keys: dict[_Comment, set[str]] = {}
        answers: dict[_Comment, tuple[CommitId, ...]] = {}
        for found in whole:
            offer = AcceptedOffer.of(found)
            comment = _comment_of(offer)
            if comment is not None:
                keys.setdefault(comment, set()).add(offer.key)
                answers[comment] = (*answers.get(comment, ()), *found.answers)
                if found.is_accepted:
                    last[comment] = offer
        level = self._level.get(repo.repo_id, {})
        changed: dict[BranchId, dict[str, _Wanted]] = {}
        asked = None if answered is None else _comment_of(answered)
        for comment in [one for one in keys if answered is None or one == asked]:
            shown = last.get(comment)
            for key in sorted(keys[comment]):
                value = shown.state() if shown is not None and shown.key == key else None
                wanted = _Wanted(value, answers[comment], now.settled)
                is_here = replica.tables.find_branch(repo.num, comment[0]) is not None
                if is_here and level.get(key) != wanted:
                    changed.setdefault(comment[0], {})[key] = wanted
        return changed


def _comment_of(offer: AcceptedOffer) -> _Comment | None:
    """Return what the offers of one comment have alike; None for offers of commits and links that cannot be read."""
    link = None if offer.body.pulls else decode_link(offer.body)
    return None if link is None else (offer.body.branch, offer.author, link.branch)
