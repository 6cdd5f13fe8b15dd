"""Asks others anew for a repo before it is deleted here: that somebody was seen to hold all of it may be long ago.

This node tells all peers first that it keeps no contents of the repo, so that nobody counts on it any more. Then one peer
has to hold all: a relay that this node compares the repo with now, or a node that keeps all, and has answered since it was
told. A node whose user is known to be no member does not count. A peer tells a relay nothing of what it keeps, so a relay's
own node, which cannot ask for commits either, finds none.

Who deletes a repo too, or keeps a part, has told so before that answer, on the same connection. So of two nodes that delete
a repo for each other's sake at most one goes on; and who gives contents up by age (`node.care.giving_up`) relies on none
that has said this.

Commits are compared all the time. Of files nothing is, so each that is here is shown block by block, as when it is given up;
or a connected relay has said to keep it.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio

from node.observe.standing import Standings
from node.runtime.errors import ServiceError
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.ids import BlockId, CommitId, ObjectId, PeerId, UserId
from protocol.limits.formats import TIMESTAMP_MAX_MS
from protocol.limits.peers import BODIES_LOOK_SECONDS, FETCH_WINDOW_COUNT_MAX
from protocol.session.deposits import short_file
from storage.blobs.relayed_files import find_keeping_relays
from storage.blobs.spared import HeldBlocks, load_old_files
from storage.commits.absent_bodies import OldPosts
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import load_newest_whole
from storage.repos.epochs import Topic
from storage.repos.repos import Repo

WAIT_SECONDS: Final = 5.0
"""Seconds for which a peer may still be compared, or say whose it is, when a repo is to be deleted."""
_LOADED_AT_ONCE: Final = 256
_ASKED: Final = 16
"""Commits of which a peer answers for one: of some it may have erased the bodies."""
_ADVICE: Final = (
    "connect to a computer that has all of it (`ravel repo holders`) and try again, or keep a copy: "
    "`ravel backup`; `ravel repo forget REPO --accept-loss` deletes it all the same"
)


class LastCopies:
    """Guard of what may be the last copy."""

    def __init__(self, hub: Hub, standings: Standings) -> None:
        self._hub = hub
        self._standings = standings
        self._turn = (
            trio.Lock()
        )  # the end of one would have others told that the repo is kept, while the next goes on

    @asynccontextmanager
    async def leaving(self, repo: Repo) -> AsyncIterator[None]:
        """Keep nothing of a repo meanwhile, which others show to have. Raises ServiceError `last_copy`, StorageError.

        Waits until no other one is left. Costs the line as many bytes as the files have that are here, and are on no relay.
        """
        async with self._turn:
            self._tell(repo, is_leaving=True)
            try:
                holders = await self._find_holders(repo)
                if holders is None:
                    raise _nobody_holds_all()
                relays = {peer for peer, is_relay in self._find_level(repo).items() if is_relay}
                relied_on = relays | {source.peer for source, _ in holders}
                await self._check_files(repo, holders)
                # Once more: that may have taken hours, in which commits came here.
                if relied_on and not relied_on & self._find_level(repo).keys():
                    raise _nobody_holds_all()
                yield
            finally:
                self._tell(repo, is_leaving=False)

    def _tell(self, repo: Repo, *, is_leaving: bool) -> None:
        (self._hub.proofs.leaving.add if is_leaving else self._hub.proofs.leaving.discard)(repo.num)
        if not is_leaving and repo.num in self._hub.replica.repos:  # what came bare meanwhile is lacking
            self._hub.lacking_bodies |= {one.topic for one in self._hub.replica.tables.topics_in(repo.num)}
            self._hub.absences.ring()
        self._hub.proofs.rules.ring()
        for source in list(self._hub.sources):
            source.tell_keeps()

    async def _find_holders(self, repo: Repo) -> list[tuple[Conversation, Topic]] | None:
        """Return the nodes that hold and keep all, each with a topic; None where not even a relay does."""
        found = await self._hub.run_blocking(self._find_topic, repo)
        if found is None:
            return []
        topic, newest = found
        members = await self._hub.run_blocking(self._find_members, repo)
        deadline = trio.current_time() + WAIT_SECONDS
        while True:
            level = self._find_level(repo)
            answered = []
            for source in list(self._hub.sources):
                user = self._hub.owners.user_of(source.peer)
                may_count = source.answers_bodies and (user is None or user in members)
                if (
                    level.get(source.peer) is False
                    and may_count
                    and await self._hub.proofs.ask(source, topic.topic, newest)
                ):
                    answered.append(source)
            level = self._find_level(repo)  # again: it may have said since that it keeps less
            holders = [(source, topic) for source in answered if source.peer in level]
            if holders or any(level.values()):
                return holders
            if trio.current_time() >= deadline:
                return None
            await trio.sleep(BODIES_LOOK_SECONDS)

    def _find_level(self, repo: Repo) -> dict[PeerId, bool]:
        """Return the peers that hold all of a repo now, and whether they are relays."""
        return {link.peer: link.is_relay for link in self._standings.outlook(repo).links if link.has_all}

    async def _check_files(self, repo: Repo, holders: Sequence[tuple[Conversation, Topic]]) -> None:
        """Raise ServiceError `last_copy` unless each file that is here is shown, or kept by a connected relay."""
        relays = {source.peer for source in self._hub.sources if source.peer_is_relay}
        for branch in self._hub.replica.branches_in(repo.num):
            after = 0
            while True:
                ids, after = await self._hub.run_blocking(self._find_files, branch.num, after, relays)
                for one in ids:
                    if not await self._is_shown(one, holders):
                        raise ServiceError(
                            "last_copy", "no peer shows, and no relay keeps all files that are here", _ADVICE
                        )
                if not after:
                    break

    async def _is_shown(self, file: ObjectId, holders: Sequence[tuple[Conversation, Topic]]) -> bool:
        for source, topic in holders:
            held = HeldBlocks(file)
            while ids := await self._hub.run_blocking(self._take_blocks, held):
                if not await self._hub.proofs.ask_blocks(source, topic.topic, ids):
                    break
            else:
                return True
        return False

    # --- in threads ---

    def _find_members(self, repo: Repo) -> Collection[UserId]:
        try:
            return self._hub.replica.members(repo)
        except DamagedBlock:
            return ()

    def _find_topic(self, repo: Repo) -> tuple[Topic, list[CommitId]] | None:
        """Return the latest topic with commits that have bodies, and its newest ones; None where there are none."""
        with self._hub.replica.database.read() as connection:
            for topic in reversed(self._hub.replica.tables.topics_in(repo.num)):
                newest = load_newest_whole(connection, topic.num, _ASKED)
                if newest:
                    return topic, newest
        return None

    def _find_files(self, branch_num: int, after: int, relays: set[PeerId]) -> tuple[list[ObjectId], int]:
        """Load the next contents that are here and on none of these relays, and the number of the last; 0 at the end."""
        with self._hub.replica.database.read() as connection:
            rows = load_old_files(
                connection, OldPosts(branch_num, None, TIMESTAMP_MAX_MS + 1), after, _LOADED_AT_ONCE
            )
            ids = list(dict.fromkeys(one.object_id for one in rows))
            here = self._hub.replica.packs.find_held(connection, ids)
            kept = find_keeping_relays(connection, ids)
        left = [one for one in ids if one in here and not relays & kept.get(short_file(one), set())]
        return left, rows[-1].num if rows else 0

    def _take_blocks(self, held: HeldBlocks) -> Sequence[BlockId]:
        replica = self._hub.replica
        with replica.database.read() as connection:
            return held.take(connection, replica.database.folder, replica.packs, FETCH_WINDOW_COUNT_MAX)


def _nobody_holds_all() -> ServiceError:
    return ServiceError(
        "last_copy", "nobody who is connected now holds all of the repo and keeps it", _ADVICE
    )
