"""After lost writes, allows writing to a repo again once a peer holds nothing of it that is absent here.

What this node had sent to that peer is back then, and with it the places of the own feeds that others know of. Another one
that is connected may hold more, so what that brings is awaited, for a while: it may state what never comes.
"""

from collections import Counter
from typing import Final

import structlog
import trio

from node.ingest.tables import Tables
from node.runtime.backoff import store_backoff
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.ids import RepoId
from protocol.limits.peers import DAMAGED_PAUSE_SECONDS
from storage.commits.pending import has_incomplete
from storage.engine.errors import StorageError
from storage.repos.repos import Repo

log = structlog.get_logger()
_Level = tuple[RepoId, Conversation]
"""A repo, and a peer that is level in it."""
_LAGGING_ROUNDS_MAX: Final = 24
"""Rounds for which lagging peers are awaited once another peer is level: two minutes."""


class FeedRecovery:
    """Looks at the connected peers while an own feed of a repo that is here is uncertain."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def run(self) -> None:
        """Recover for as long as the node runs: a repo that was deleted may come back at any time."""
        backoff = store_backoff()
        while True:
            changes = self._hub.changes.count
            try:
                await self.settle_all()
            except StorageError as error:  # a full disk, say: it goes on when there is room
                log.error("own feeds stay uncertain", error=str(error))
                await trio.sleep(backoff.fail())
                continue
            backoff.reset()
            await self._hub.changes.wait(changes)

    async def settle_all(self) -> None:
        """Look at connected peers again and again until the own feeds of all repos here are certain."""
        replica, own_feeds = self._hub.replica, self._hub.replica.own_feeds
        seen, noted, waited = set[_Level](), own_feeds.noted_count, Counter[RepoId]()
        while any(repo_id in replica.tables.roots for repo_id in own_feeds.uncertain):
            if noted != own_feeds.noted_count:  # what was seen may be of a repo that has gone and come back
                seen, noted, waited = set[_Level](), own_feeds.noted_count, Counter[RepoId]()
            level, behind = self._compare()
            # In two rounds: what came in the first may have told of epochs whose topics are not compared yet.
            for repo_id in sorted({repo_id for repo_id, _ in level & seen}):
                if repo_id in behind and waited[repo_id] < _LAGGING_ROUNDS_MAX:
                    waited[repo_id] += 1
                elif await self._hub.run_blocking(self._settle, repo_id, noted):
                    self._hub.topics_changed()  # what was put off is done now
            seen = level
            await trio.sleep(DAMAGED_PAUSE_SECONDS)

    def _settle(self, repo_id: RepoId, noted: int) -> bool:
        """Settle the feeds that peers were compared for; return True if that worked. Blocks. Raises StorageError.

        Repos that are gone, or were noted again since, are left out: their mark is for their return.
        """
        replica = self._hub.replica
        if self._is_incomplete(repo_id):
            return False
        with replica.membership_lock:  # no transaction deletes or brings a repo meanwhile
            repo = replica.tables.of_id.get(repo_id)
            if repo is None or noted != replica.own_feeds.noted_count:
                return False
            replica.own_feeds.settle(repo_id)
            replica.shown.restate([repo.num])
        return True

    def _compare(self) -> tuple[set[_Level], set[RepoId]]:
        """Find the peers that are level in an uncertain repo, and the repos in which other peers are not."""
        level, behind = set[_Level](), set[RepoId]()
        tables, uncertain = self._hub.replica.tables, self._hub.replica.own_feeds.uncertain
        for repo in tables.repos.values():
            for source in self._hub.sources if repo.repo_id in uncertain else ():
                if self._is_level(source, tables, repo):
                    level.add((repo.repo_id, source))
                elif any(map(source.has_joined, tables.writing_topics(repo.num))):
                    behind.add(repo.repo_id)
        return level, behind

    @staticmethod
    def _is_level(source: Conversation, tables: Tables, repo: Repo) -> bool:
        topics = [one.topic for one in tables.topics_in(repo.num)]
        joined = {topic for topic in topics if source.has_joined(topic)}
        is_here = repo.repo_id in tables.roots and not any(map(source.is_waiting, topics))
        return is_here and tables.writing_topics(repo.num) <= joined and all(map(source.is_level, joined))

    def _is_incomplete(self, repo_id: RepoId) -> bool:
        """Return True if commits of the repo wait for their causes: own ones may be among them."""
        tables = self._hub.replica.tables
        repo = tables.of_id.get(repo_id)
        nums = [] if repo is None else [one.num for one in tables.branches_in(repo.num)]
        with self._hub.replica.database.read() as connection:
            return has_incomplete(connection, nums)
