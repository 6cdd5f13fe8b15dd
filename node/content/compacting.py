"""Compacts a branch: writes snapshots of its documents, then a compaction that lets old bodies be erased.

Bodies go later, on each replica by its own policy (`erasing`).
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.authoring.writing import write_commits
from node.content.document_operations import find_documents
from node.content.documents import Documents
from node.content.erasing import Erased, find_compactable, find_erasable, find_unneeded
from node.content.texts import Texts
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.body import Permission
from protocol.formats.content import Compaction
from protocol.formats.document_kinds import ValuesKind
from protocol.formats.text import id_text
from protocol.limits.formats import GIVEN_UP_COUNT_MAX
from ravel.types.branches import CompactionResult
from storage.commits.absent_bodies import count_erased, measure_bodies
from storage.commits.commits import TimelineRow
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch

_ANY_TIME: Final = 1 << 62


class Compacting:
    """Compacts branches, which are named as `find_branch` takes them."""

    def __init__(
        self,
        hub: Hub,
        author: Author,
        documents: Documents,
        texts: Texts,
        find_branch: Callable[[str], Branch],
    ) -> None:
        self._hub = hub
        self._author = author
        self._documents = documents
        self._texts = texts
        self._find_branch = find_branch

    async def compact(self, branch: str, *, dry_run: bool, without_missing: bool = False) -> CompactionResult:
        """Write a compaction, where it lets anything go; say how many bodies may go here, and their bytes.

        With `dry_run`, what might go at most, and nothing is written; `without_missing`, bodies that are not here and that
        the documents need are taken to say nothing, for all who get the snapshots. Raises ServiceError `not_permitted` for
        who may not manage branches, and those of snapshotting.
        """
        target = self._find_branch(branch)
        commits: list[str] = []
        if dry_run:
            found = await self._hub.run_blocking(self._measure, target, find_compactable)
        else:
            await self._hub.run_blocking(self._check_permission, target)
            for kind, name in await self._hub.run_blocking(self._find_documents, target):
                made = await self._documents.snapshot(kind, branch, name, without_missing=without_missing)
                commits += made["commits"]
            commits += await self._texts.write_snapshots(branch)
            given_up = await self._texts.find_missing(branch) if without_missing else []
            parts = [Compaction(tuple(part)) for part in chunks(given_up, GIVEN_UP_COUNT_MAX)]
            found = await self._hub.run_blocking(self._measure, target, _find_let_go)
            if parts or await self._hub.run_blocking(self._measure, target, find_unneeded) != found:
                drafts = [Draft(body) for body in parts or [Compaction(())]]
                written = await write_commits(self._hub, self._author, target, drafts)
                commits += [id_text(one.commit_id) for one in written]
                found = await self._hub.run_blocking(self._measure, target, _find_let_go)
        return {
            "branch": id_text(target.branch_id),
            "commits": commits,
            "bodies": found.bodies,
            "size": found.size,
            "erased": await self._hub.run_blocking(self._count_erased, target),
            "dry_run": dry_run,
        }

    def _check_permission(self, branch: Branch) -> None:
        repo = self._hub.replica.repos[branch.repo_num]
        held = self._hub.replica.permission(repo, self._author.user)
        if held is None or held < Permission.MANAGE:
            raise ServiceError("not_permitted", "compacting a branch needs the permission manage (M15)")
        if not branch.is_kept:  # what is given up is given up for everybody
            raise ServiceError(
                "incomplete",
                "the contents of the branch are not kept on this node",
                "`ravel repo keep REPO --branches all` keeps them; compact it once they have come",
            )

    def _measure(
        self, branch: Branch, find: Callable[[Replica, Connection, Branch], list[TimelineRow]]
    ) -> Erased:
        with self._hub.replica.database.read() as connection:
            rows = find(self._hub.replica, connection, branch)
            return Erased(len(rows), measure_bodies(connection, rows))

    def _find_documents(self, branch: Branch) -> list[tuple[ValuesKind, str]]:
        with self._hub.replica.database.read() as connection:
            return find_documents(self._hub.replica, connection, branch)

    def _count_erased(self, branch: Branch) -> int:
        with self._hub.replica.database.read() as connection:
            return count_erased(connection, branch.num)


def _find_let_go(replica: Replica, connection: Connection, branch: Branch) -> list[TimelineRow]:
    return find_erasable(replica, connection, branch, _ANY_TIME)
