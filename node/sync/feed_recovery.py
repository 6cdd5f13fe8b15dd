"""After lost writes, allows writing to a repo again once a peer holds nothing of it that is absent here.

What this node had sent to that peer is back then, and with it the places of the own feeds that others know of.
"""

from collections.abc import Iterator

import structlog
import trio

from node.runtime.backoff import store_backoff
from node.sync.hub import Hub
from node.sync.neighbours import BlockSource
from protocol.ids import RepoId
from protocol.limits.peers import DAMAGED_PAUSE_SECONDS
from storage.commits.pending import has_incomplete
from storage.engine.errors import StorageError
from storage.repos.repos import Repo

log = structlog.get_logger()


class FeedRecovery:
    """Looks at the connected peers while an own feed of a repo that is here is uncertain."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._seen: set[tuple[RepoId, int]] = set()  # repos, and the peers that were level in the last round

    async def run(self) -> None:
        """For as long as the node runs: a repo that was deleted may come back at any time."""
        backoff = store_backoff()
        while True:
            changes = self._hub.changes.count
            try:
                await self.recover()
            except StorageError as error:  # a full disk, say: it goes on when there is room
                log.error("own feeds stay uncertain", error=str(error))
                await trio.sleep(backoff.fail())
                continue
            backoff.succeed()
            await self._hub.changes.wait(changes)

    async def recover(self) -> None:
        """Until the own feeds of all repos that are here are certain."""
        replica = self._hub.replica
        while any(repo_id in replica.tables.roots for repo_id in replica.own_feeds.uncertain):
            level = set(self._find_level())
            # In two rounds: what came in the first may have told of epochs whose topics are not compared yet.
            for repo_id in sorted({repo_id for repo_id, _ in level & self._seen}):
                if not await self._hub.run_blocking(self._is_incomplete, repo_id):
                    await self._hub.run_blocking(replica.own_feeds.settle, repo_id)
                    replica.shown.restate([replica.tables.of_id[repo_id].num])
                    self._hub.topics_changed()  # what was put off is done now
            self._seen = level
            await trio.sleep(DAMAGED_PAUSE_SECONDS)

    def _find_level(self) -> Iterator[tuple[RepoId, int]]:
        replica = self._hub.replica
        for repo in replica.repos.values():
            if repo.repo_id in replica.own_feeds.uncertain:
                for source in self._hub.sources:
                    if self._is_level(source, repo):
                        yield repo.repo_id, id(source)

    def _is_level(self, source: BlockSource, repo: Repo) -> bool:
        tables = self._hub.replica.tables
        joined = {one.topic for one in tables.topics_in(repo.num) if source.has_joined(one.topic)}
        is_here = repo.repo_id in tables.roots
        return is_here and tables.writing_topics(repo.num) <= joined and all(map(source.is_level, joined))

    def _is_incomplete(self, repo_id: RepoId) -> bool:
        """Whether commits of the repo wait for their causes: own ones may be among them."""
        tables = self._hub.replica.tables
        repo = tables.of_id.get(repo_id)
        nums = [] if repo is None else [one.num for one in tables.branches_in(repo.num)]
        with self._hub.replica.database.read() as connection:
            return has_incomplete(connection, nums)
