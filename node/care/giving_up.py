"""Gives up contents of old posts and files, of repos that keep those of some days, where a member's node shows them.

What it gives up comes again when it is opened. Documents, membership, and who wrote when stay whole. So does

- what this user wrote, so that each author's node keeps the author's posts;
- what a compaction releases: others may erase that for good.

Days that this user has chosen have all older contents go. Those of the bound on the store's size (`node.care.disk_bound`)
have as much go as has to: first files, which somebody has opened and which take most, then posts, as they came. Where rows
are in a database elsewhere, files alone go.

A file is as old as the commit that added it. That commit is shown, for who has it not would collect the blocks as garbage;
then its blocks that are here, one by one. It is marked then, and `node.care.freeing` deletes what no other file needs; a
mark goes when more of the file is fetched.

A body is given up for the sake of one peer. It has sent this body again, after it was asked for it by a node with this rule
(`node.sync.body_proofs`). It has said that it keeps posts of any age in this branch, and nothing else since. Its user and
this node's are members, as the transaction sees it that erases. All of this holds for a file's blocks as for a body.

No two nodes give up the same for each other's sake, and no more of them do so in a circle. Of the nodes that give up a
body, look at the one to which it was shown last. The peer that showed it had no rule then. Had that peer given it up later,
it would have asked for it under a rule that it told all its peers before; so it would have been shown the body later still.
What is told, asked, shown and believed stands in the order of one connection each: no clock is read, and nothing is
remembered.
"""

import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
import trio
from sqlalchemy import Connection

from node.content.erasing import find_declared, find_released, make_erasures
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from node.sync.kept_parts import find_keepers
from protocol.ids import BlockId, CommitId, ObjectId, PeerId, UserId
from protocol.limits.formats import TIMESTAMP_MAX_MS
from protocol.limits.peers import BODIES_LOOK_SECONDS, FETCH_WINDOW_COUNT_MAX
from storage.blobs.spared import HeldBlocks, OldFile, load_old_files, spare_files
from storage.commits.absent_bodies import OldPosts, erase_bodies, load_old_posts, measure_bodies
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import TimelineRow
from storage.commits.own_commits import load_author_num
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo, posts_from

log = structlog.get_logger()

LOOK_SECONDS: Final = 900.0
"""Seconds between two looks: a look reads all posts that have grown old and are here."""
WAKE_LOOKS_MAX: Final = 10
"""Seconds to wait for a peer to join a topic, with a look each second. Then its posts are left for the next look."""
ASKED_AT_ONCE: Final = 256
"""Posts that a peer is asked to show together, and that are given up in one transaction: some 20 ms."""
UNSHOWN_SECONDS: Final = 86_400.0
"""Seconds for which a peer is not asked again for a file that it did not show whole: all of it would cross the line."""
UNSHOWN_MAX: Final = 4096
"""Pairs of a peer and a file that it did not show whole, remembered for UNSHOWN_SECONDS: some 1 MB."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Repo with its rule at the beginning of a look. `count` identifies the rule: files shown under another one do not
    count.

    What is older than `days` goes. `is_bounded`: until the store is small enough.
    """

    repo: Repo
    count: int
    days: int
    is_bounded: bool = False


class PostAges:
    """Looks for posts and files that have grown old."""

    def __init__(self, hub: Hub, user: UserId) -> None:
        self._hub = hub
        self._user = user
        self._unshown: dict[tuple[PeerId, ObjectId], float] = {}  # until when, the latest last

    async def look(self) -> int:
        """Give up what may go now; return how many posts and files. Raises StorageError.

        Costs O(commits and files of the repos that have such a rule), and what is old of these once over the line.
        """
        count, repos = self._hub.proofs.rules.count, list(self._hub.replica.repos.values())
        for source in list(self._hub.sources):
            source.tell_keeps()  # of these rules at least, before anything is asked for under them
        chosen = [_Rule(repo, count, repo.chosen_days) for repo in repos if repo.chosen_days]
        given_up = await self._look_at_all(chosen, self._look_at_files, self._look_at)
        bounded = [_Rule(repo, count, repo.kept_days, is_bounded=True) for repo in repos if repo.bound_days]
        given_up += await self._look_at_all(bounded, self._look_at_files)
        if self._hub.bound.counts_rows:
            given_up += await self._look_at_all(bounded, self._look_at)
        if given_up:
            log.info("old contents given up", count=given_up)
        return given_up

    async def _look_at_all(
        self, rules: Sequence[_Rule], *looks: Callable[[_Rule, Branch], Awaitable[int]]
    ) -> int:
        given_up = 0
        for rule in [one for one in rules if one.repo.has_members]:
            for branch in self._hub.replica.branches_in(rule.repo.num):
                for look in looks if not branch.facts.is_root_branch else ():
                    given_up += await look(rule, branch)
        return given_up

    async def _look_at(self, rule: _Rule, branch: Branch) -> int:
        """Give up what may go of a branch. Nothing is read while nobody is there who could show it."""
        given_up = after = 0
        released: set[CommitId] | None = None
        members: Collection[UserId] = ()
        while self._is_wanted(rule) and self._has_keepers(rule.repo, branch):
            if released is None:
                members = await self._hub.run_blocking(self._find_members, rule)
                if self._user not in members:
                    break
                released = await self._hub.run_blocking(self._find_released, branch)
            rows, declared = await self._hub.run_blocking(self._find, rule, branch, after)
            if not rows:
                break
            after = rows[-1].num
            asked = [row for row in declared if row.commit_id not in released]
            for topic in self._hub.replica.tables.topics_in(rule.repo.num):
                there = [row for row in asked if row.topic_num == topic.num]
                given_up += await self._ask_for(rule, branch, topic, there, members)
        return given_up

    async def _ask_for(
        self,
        rule: _Rule,
        branch: Branch,
        topic: Topic,
        rows: Sequence[TimelineRow],
        members: Collection[UserId],
    ) -> int:
        """Ask one member's node after the other for posts on a topic, and give up what each has shown.

        What is asked for can be given up once it is shown: else it would cross the line at each look.
        """
        left = {row.commit_id for row in rows}
        if left:
            await self._wake(topic, branch)
        for source, user in find_keepers(self._hub, topic, branch.num):
            if user not in members:
                continue
            if not left or not self._is_wanted(rule):
                break
            shown = await self._hub.proofs.ask(source, topic.topic, sorted(left))
            # Asked anew: it may have said since that it keeps less, or have left.
            if shown and (source, user) in find_keepers(self._hub, topic, branch.num):
                gone, size = await self._hub.write(
                    self._give_up, rule, branch, user, shown, self._hub.clock_ms()
                )
                if self._hub.bound.counts_rows:
                    self._hub.bound.note(size)
                left -= gone
        if len(left) < len(rows):
            self._hub.changes.ring()
        return len(rows) - len(left)

    async def _look_at_files(self, rule: _Rule, branch: Branch) -> int:
        """Give up the files that may go of a branch; return how many contents. As `_look_at`."""
        given_up = after = 0
        members: Collection[UserId] = ()
        while self._is_wanted(rule) and self._has_keepers(rule.repo, branch):
            members = members or await self._hub.run_blocking(self._find_members, rule)
            if self._user not in members:
                break
            files, here = await self._hub.run_blocking(self._find_files, rule, branch, after)
            if not files:
                break
            after = files[-1].num
            for file in {one.object_id: one for one in files if one.object_id in here}.values():
                if not self._is_wanted(rule):
                    break
                given_up += await self._ask_for_file(rule, branch, file, members)
        return given_up

    async def _ask_for_file(
        self, rule: _Rule, branch: Branch, file: OldFile, members: Collection[UserId]
    ) -> bool:
        """Ask members' nodes in turn for a file; give it up once one has shown it, and return True."""
        topic = self._hub.replica.topics.get(file.topic_num)
        if topic is None:
            return False
        await self._wake(topic, branch)
        for source, user in find_keepers(self._hub, topic, branch.num):
            unshown = (source.peer, file.object_id)
            if user not in members or self._unshown.get(unshown, -math.inf) > trio.current_time():
                continue
            if not self._is_in_force(rule):
                break
            size = await self._find_shown(source, topic, file)
            if size is None:
                self._note_unshown(unshown)
            # Asked anew: it may have said since that it keeps less, or have left.
            elif (source, user) in find_keepers(self._hub, topic, branch.num) and await self._hub.write(
                self._give_up_file, rule, branch, user, file, self._hub.clock_ms()
            ):
                self._hub.bound.note(size)
                self._hub.changes.ring()
                return True
        return False

    async def _find_shown(self, source: Conversation, topic: Topic, file: OldFile) -> int | None:
        """Return the bytes of a file's blocks that are here, once a peer has shown them all; None if it has not."""
        self._hub.proofs.file = file.object_id
        # A node whose timeline has no commit that adds the file may collect its blocks.
        if not await self._hub.proofs.ask(source, topic.topic, [file.commit_id]):
            return None
        held = HeldBlocks(file.object_id)
        while ids := await self._hub.run_blocking(self._take_blocks, held):
            if not await self._hub.proofs.ask_blocks(source, topic.topic, ids):
                return None
        return held.size

    def _note_unshown(self, unshown: tuple[PeerId, ObjectId]) -> None:
        self._unshown.pop(unshown, None)
        self._unshown[unshown] = trio.current_time() + UNSHOWN_SECONDS
        if len(self._unshown) > UNSHOWN_MAX:
            del self._unshown[next(iter(self._unshown))]

    async def _wake(self, topic: Topic, branch: Branch) -> None:
        """Wake a resting topic of an ended epoch, so that peers join it."""
        for source in list(self._hub.sources):
            source.wake(topic.topic)
        for _ in range(WAKE_LOOKS_MAX):
            if find_keepers(self._hub, topic, branch.num):
                return
            await trio.sleep(BODIES_LOOK_SECONDS)

    def _is_wanted(self, rule: _Rule) -> bool:
        """Return True while a rule is in force and has anything go."""
        return self._is_in_force(rule) and (not rule.is_bounded or self._hub.bound.excess > 0)

    def _is_in_force(self, rule: _Rule) -> bool:
        current, began = self._hub.replica.repos.get(rule.repo.num), rule.repo
        if current is None or self._hub.proofs.rules.count != rule.count:
            return False
        return current.repo_id == began.repo_id and current.kept_days == began.kept_days

    def _has_keepers(self, repo: Repo, branch: Branch) -> bool:
        topics = self._hub.replica.tables.topics_in(repo.num)
        return any(find_keepers(self._hub, topic, branch.num) for topic in topics)

    # --- in threads ---

    def _find_released(self, branch: Branch) -> set[CommitId]:
        with self._hub.replica.database.read() as connection:
            return find_released(connection, branch, TIMESTAMP_MAX_MS)

    def _find_members(self, rule: _Rule) -> Collection[UserId]:
        """Return the members; none where they cannot be told now: their statements are damaged, and asked of peers."""
        try:
            return self._hub.replica.members(rule.repo)
        except DamagedBlock:
            return ()

    def _find(self, rule: _Rule, branch: Branch, after: int) -> tuple[list[TimelineRow], list[TimelineRow]]:
        """Load the next old posts that are held. Return them, and those of them that can be erased."""
        with self._hub.replica.database.read() as connection:
            old = self._name_old(connection, rule, branch, self._hub.clock_ms())
            rows = load_old_posts(connection, old, after, ASKED_AT_ONCE)
            return rows, find_declared(self._hub.replica, connection, rows)

    def _name_old(self, connection: Connection, rule: _Rule, branch: Branch, now_ms: int) -> OldPosts:
        own = load_author_num(connection, self._user)
        return OldPosts(branch.num, own, posts_from(rule.days, now_ms))

    def _give_up(
        self, rule: _Rule, branch: Branch, keeper: UserId, shown: Collection[CommitId], now_ms: int
    ) -> tuple[set[CommitId], int]:
        """Erase the given posts, as far as this transaction finds that they may go.

        Return the erased ones, and the bytes of their bodies.
        """
        replica = self._hub.replica
        with replica.database.write() as connection:
            if not self._may_rely_on(rule, keeper):
                return set(), 0
            old = self._name_old(connection, rule, branch, now_ms)
            found = load_old_posts(connection, old, 0, ASKED_AT_ONCE, shown)
            rows = find_declared(replica, connection, found)
            erasures = list(make_erasures(replica, connection, rows))
            nums = {one.num for one in erasures}
            gone = [row for row in rows if row.num in nums]
            size = measure_bodies(connection, gone)
            erase_bodies(connection, branch.num, erasures, now_ms, is_spared=True)
        return {row.commit_id for row in gone}, size

    def _find_files(
        self, rule: _Rule, branch: Branch, after: int
    ) -> tuple[list[OldFile], Collection[BlockId]]:
        """Load the next old files, and return with them which contents are here, if only in part."""
        with self._hub.replica.database.read() as connection:
            old = self._name_old(connection, rule, branch, self._hub.clock_ms())
            files = load_old_files(connection, old, after, ASKED_AT_ONCE)
            return files, self._hub.replica.packs.find_held(connection, [one.object_id for one in files])

    def _take_blocks(self, held: HeldBlocks) -> Sequence[BlockId]:
        replica = self._hub.replica
        with replica.database.read() as connection:
            return held.take(connection, replica.database.folder, replica.packs, FETCH_WINDOW_COUNT_MAX)

    def _give_up_file(self, rule: _Rule, branch: Branch, keeper: UserId, file: OldFile, now_ms: int) -> bool:
        """Give up a file's content if it may go by what this transaction finds; return True if it did."""
        replica = self._hub.replica
        with replica.database.write() as connection:
            if not self._may_rely_on(rule, keeper) or self._hub.proofs.file != file.object_id:
                return False
            old = self._name_old(connection, rule, branch, now_ms)
            return spare_files(connection, old, file.object_id) > 0

    def _may_rely_on(self, rule: _Rule, keeper: UserId) -> bool:
        return self._is_in_force(rule) and {keeper, self._user} <= self._hub.replica.members(rule.repo).keys()
