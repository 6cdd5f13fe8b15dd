"""A person of a history: a node with its services, which others meet, stop, restart and wipe.

All of it runs in one thread, and nothing waits for a real clock.
"""

from itertools import count
from pathlib import Path
from unittest.mock import patch

import trio
from trio.testing import wait_all_tasks_blocked

from node.authoring.author import Author
from node.content.compacting import Compacting
from node.content.documents import Documents
from node.content.merging import Merging
from node.content.texts import Texts
from node.ingest.acceptance import retry_kept
from node.ingest.replica import Replica
from node.membership.joining import Joiner
from node.membership.key_rotation import KeyRotation
from node.membership.member_checkpoints import MemberCheckpoints
from node.membership.members import Members
from node.membership.promotion import Promotion
from node.membership.quorums import Quorums
from node.membership.recovery import Recovery
from node.relay.relay import RelayService
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.crypto.signing import check_claims
from protocol.formats.text import id_text
from protocol.ids import CommitId, UserId
from storage.commits.commits import iterate_arrivals
from storage.relay.quotas import RelayQuotas
from storage.repos.repos import Branch, Repo
from tests.support.blocking import inline
from tests.support.builders import STORE_KEY
from tests.support.editors import Editor
from tests.support.nodes import Node

_PLENTY = RelayQuotas(
    total=1 << 30,
    topic=1 << 30,
    peer=1 << 30,
    subnet=1 << 30,
    topic_count=10_000,
    peer_topic_count=10_000,
    subnet_topic_count=10_000,
)
"""More than any history keeps."""


def _still() -> float:
    """Count no time of the processor, so that no slice of work ends by it."""
    return 0.0


class Person(Node):
    """A node that keeps no time of its own, and its services."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.name = name
        self.editors: dict[str, Editor] = {}
        """By branch: of its text."""
        self.is_running = False
        self._life = trio.CancelScope()
        super().__init__(folder, f"{name} {seed}")

    def open(self, now: int | None = None) -> None:
        """Open the store, and make the services."""
        if now is not None:
            self._clock = count(now)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.replica = Replica(self.folder, STORE_KEY)
        self.hub = Hub(self.replica, inline(), lambda: next(self._clock), cpu_clock=_still)
        self.author = Author(self.replica, self.user_seed, lambda: next(self._clock))
        self.joiner = Joiner(self.hub, self.author)
        hub, author = self.hub, self.author
        self.members = Members(hub, author, self._find_repo, self.find_branch)
        self.promotion = Promotion(hub, author, None)  # type: ignore[arg-type]  # one repo: nothing is handed on
        self.recovery = Recovery(hub, author)
        self.rotation = KeyRotation(hub, author, self._find_repo, self.find_branch)
        self.quorums = Quorums(hub, author, self._find_repo, self.find_branch)
        self.checkpoints = MemberCheckpoints(hub, author, self._find_repo, self.find_branch)
        self.merging = Merging(hub, author, self.find_branch)
        self.documents = Documents(hub, author, self.find_branch)
        self.texts = Texts(hub, author, self.find_branch)
        self.compacting = Compacting(hub, author, self.documents, self.texts, self.find_branch)

    @property
    def user(self) -> UserId:
        """Whom the node writes for."""
        return self.author.user

    @property
    def has_repo(self) -> bool:
        """Whether the node follows the repo."""
        return bool(self.replica.repos)

    def _find_repo(self, _: str) -> Repo:
        return self.repo()

    def find_branch(self, text: str) -> Branch:
        """Find a branch by its id, or REPO:BRANCH."""
        wanted = text.rpartition(":")[2]
        for branch in self.replica.branches.values():
            if id_text(branch.branch_id) == wanted:
                return branch
        raise ServiceError("not_found", f"no branch {wanted}")

    def content_branches(self) -> list[Branch]:
        """Return the branches that are no root branch, sorted."""
        found = [one for one in self.replica.branches.values() if not one.facts.is_root_branch]
        return sorted(found, key=lambda one: one.branch_id)

    def roots(self) -> list[CommitId]:
        """Return the commits of the root branch that are accepted here, as they came."""
        root = self.replica.root_branch(self.repo())
        with self.replica.database.read() as connection:
            return [row.commit_id for row in iterate_arrivals(connection, [root.num])]

    def become_relay(self) -> None:
        """Keep the topics of others from now on."""
        self.hub.relay = RelayService(
            self.replica.database, _PLENTY, inline(), lambda: 0, check_claims, cpu_clock=_still
        )

    # --- life ---

    def start(self, nursery: trio.Nursery) -> None:
        """Do what falls due, until stopped."""
        if self.is_running:
            return
        self.is_running = True
        self._life = trio.CancelScope()

        async def live(life: trio.CancelScope) -> None:
            with life:
                await self.joiner.run()

        nursery.start_soon(live, self._life)

    async def stop(self) -> None:
        """Do nothing any more, and meet nobody."""
        if self.is_running:
            self.is_running = False
            self._life.cancel()
            await wait_all_tasks_blocked()

    def reopen(self) -> None:
        """Close the store, and open it again, as after a restart."""
        is_relay = self.hub.relay is not None
        with patch("node.ingest.replica.SAVED_AT_STOP_FROM", 1):
            self.replica.close()
        self.open()
        self.take_up()
        if is_relay:
            self.become_relay()

    def take_up(self) -> None:
        """Judge what the last run left, as a daemon does when it starts."""
        retry_kept(self.replica, next(self._clock))
