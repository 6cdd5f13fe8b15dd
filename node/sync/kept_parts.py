"""Erasable bodies that a node keeps: what is said of it to a peer, and what a peer has said (`keeps1`).

Branches are chosen, and an age of posts. Headers of all commits are kept, so digests, orders and verdicts are those of any
other node. A relay is told nothing: it sees no kinds, and sends all that it has.

A post's age is by its display time (`storage.commits.display`), which the time bounds at which it came here, and its causes:
a newcomer gets old posts today, and their age is not a day. Who asserts a time to come gains at most what passes from then
on; who asserts one long past hides a post until it is opened, and no longer than what it acks.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace

import structlog
import trio
from sqlalchemy import Connection

from node.ingest.publication_reading import branch_mark_in
from node.ingest.replica import Replica
from node.ingest.tables import Tables
from node.runtime.backoff import store_backoff
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.ids import BranchMark, TopicKey, UserId
from protocol.limits.users import KEPT_BRANCHES_MAX
from protocol.session.messages import Keeps
from protocol.session.topic_progress import KEEPS_ALL, KeptPart
from storage.blobs.spared import keep_recent_files
from storage.commits.absent_bodies import await_branch
from storage.engine.database import StorageError
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo, bound_posts, keep_branches, posts_from
from storage.topics.publishing import Unwanted

log = structlog.get_logger()


async def keep_looking(hub: Hub, look: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Look until cancelled: every so many seconds, and after each change of what is kept. `look` may raise StorageError."""
    backoff = store_backoff()
    while True:
        rules = hub.proofs.rules.count
        try:
            await look()
        except StorageError as error:
            log.error("storage failed", error=str(error))
            await trio.sleep(backoff.fail())
        else:
            backoff.reset()
        with trio.move_on_after(seconds):
            await hub.proofs.rules.wait(rules)


class KeepsPort:
    """Tells one peer which branches' bodies are kept here, once for each topic and change.

    If the peer may have bodies that are missing here, it is first told that none are kept. It sends by the last
    statement, and assumes that this node has the bodies that all statements named. Repeating the statement says that
    those bodies have come.
    """

    def __init__(self, conversation: Conversation, hub: Hub) -> None:
        self._conversation = conversation
        self._hub = hub
        self._said: dict[TopicKey, KeptPart] = {}  # of topics of which less than all is kept
        self._told: set[TopicKey] = set()  # topics of which it was said what had to be
        self._behind: dict[
            TopicKey, None
        ] = {}  # of these, such of which the peer may have bodies that are not here

    def tell(self, topics: Iterable[TopicKey]) -> None:
        """Tell the peer what has changed of joined topics. Costs O(branches) for each topic of which not all is kept."""
        if not self._conversation.answers_bodies or self._conversation.peer_is_relay:
            return
        for topic in topics:
            progress = self._conversation.session.progress_of(topic)
            if progress is None or not progress.is_joined:
                continue
            kept, before = self._find(topic), self._said.get(topic, KEEPS_ALL)
            is_new, is_opened = topic not in self._told, topic in self._hub.replica.by_topic
            is_behind = is_opened and topic in self._hub.lacking_bodies and (is_new or kept != before)
            self._told.add(topic)
            if is_behind:
                self._behind[topic] = None
                self._conversation.say(Keeps(progress.blind, is_all=False, marks=(), days=0))
            if is_behind or kept != before:
                self._say(topic, kept)

    def settle(self, topic: TopicKey | None) -> None:
        """Say the same again of a topic, or of all that lack no bodies now: the peer has no more that are not here."""
        for one in [one for one in self._behind if topic in (None, one)]:
            if topic is not None or one not in self._hub.lacking_bodies:
                del self._behind[one]
                self._say(one, self._said.get(one, KEEPS_ALL))

    def _say(self, topic: TopicKey, kept: KeptPart) -> None:
        self._said.pop(topic, None)
        if kept != KEEPS_ALL:
            self._said[topic] = kept
        progress = self._conversation.session.progress_of(topic)
        if progress is not None:
            marks = tuple(sorted(kept.marks or ()))
            self._conversation.say(Keeps(progress.blind, kept.marks is None, marks, kept.days))

    def tell_changes(self) -> None:
        """Say what has changed of all topics that are joined."""
        repos = self._hub.replica.tables.repos.values()
        keeps_all = all(repo.keeps_all and not repo.kept_days for repo in repos)
        if self._said or self._hub.proofs.leaving or not keeps_all:
            self.tell([one.topic for one in self._conversation.topics])

    def _find(self, topic: TopicKey) -> KeptPart:
        tables = self._hub.replica.tables
        followed = tables.by_topic.get(topic)
        if followed is None:
            return KEEPS_ALL
        repo = tables.repos[followed.repo_num]
        if repo.num in self._hub.proofs.leaving:
            return KeptPart(frozenset())
        if repo.keeps_all:
            return KeptPart(None, repo.kept_days)
        marks = (mark for mark, num in marks_on(tables, followed).items() if tables.branches[num].is_kept)
        # Bodies of further ones do not come by themselves.
        return KeptPart(frozenset(sorted(marks)[:KEPT_BRANCHES_MAX]), repo.kept_days)


def keep_contents(
    replica: Replica,
    repo: Repo,
    kept: Collection[int] | None,
    days: int = 0,
    now_ms: int = 0,
    *,
    keeps_files: bool = False,
) -> None:
    """Keep bodies of these branches of a repo alone, beside its root branch, or of all; posts for some days, or (0) all.

    `keeps_files`: contents of files come before they are opened.
    Costs O(branches and absent bodies). What is here stays: it may be the only copy. Raises StorageError.
    """
    with replica.change() as change:
        of_repo = replica.branches_in(repo.num)
        those = [one.num for one in of_repo if kept is None or one.num in kept or one.facts.is_root_branch]
        keep_branches(
            change.connection, repo.num, None if kept is None else those, days, keeps_files=keeps_files
        )
        current = replace(replica.repos.get(repo.num, repo), chosen_days=days)
        _await_posts(change.connection, of_repo, those, posts_from(current.kept_days, now_ms))


def bound_contents(replica: Replica, days: int, now_ms: int) -> None:
    """Keep posts of some days at most in all repos with members, or (0) as this user has chosen for each.

    Costs O(branches and absent bodies). Raises StorageError.
    """
    with replica.change() as change:
        for repo in [one for one in replica.repos.values() if one.has_members and one.bound_days != days]:
            bound_posts(change.connection, repo.num, days)
            of_repo = replica.branches_in(repo.num)
            since = posts_from(replace(repo, bound_days=days).kept_days, now_ms)
            _await_posts(change.connection, of_repo, [one.num for one in of_repo if one.is_kept], since)


def _await_posts(
    connection: Connection, of_repo: Iterable[Branch], kept: Collection[int], since: int
) -> None:
    """Await the absent bodies of the branches that are kept, from a time (unix ms) on, and spare the rest."""
    for branch in of_repo:
        await_branch(connection, branch.num, since if branch.num in kept else None)
        keep_recent_files(connection, branch.num, since)


async def change_keeping(hub: Hub, repo_nums: Collection[int], store: Callable[[], None]) -> None:
    """Let `store` change what is kept of some repos; tell peers, and ask them for bodies. Raises StorageError."""
    tables = hub.replica.tables
    # First, for more may be awaited then: until that is looked at, peers take this node to have less than it keeps.
    hub.lacking_bodies |= {one.topic for num in repo_nums for one in tables.topics_in(num)}
    for num in repo_nums:
        hub.proofs.rule_changed(num)
    await hub.write(store)
    hub.topics_changed()
    # Older bodies may be awaited now than peers were asked for.
    hub.opened |= {one.topic for num in repo_nums for one in hub.replica.tables.topics_in(num)}
    hub.absences.ring()
    for num in repo_nums:
        hub.proofs.rule_changed(num)


def marks_on(tables: Tables, topic: Topic) -> Mapping[BranchMark, int]:
    """Return the numbers of the branches on a topic by their marks, without the root branch. Costs O(branches)."""
    return {
        branch_mark_in(epoch.key, branch.branch_id): branch.num
        for epoch in (*topic.epochs, *topic.writers_of)
        for branch in tables.branches_in(epoch.repo_num)
        if not branch.facts.is_root_branch
    }


def find_kept_by(tables: Tables, topic: Topic, keeps: KeptPart) -> frozenset[int] | None:
    """Return the numbers of the branches on a topic of which a peer keeps bodies that says so; None: of all."""
    marks = keeps.marks
    if marks is None:
        return None
    return frozenset(num for mark, num in marks_on(tables, topic).items() if mark in marks)


def find_keepers(hub: Hub, topic: Topic, branch_num: int | None = None) -> list[tuple[Conversation, UserId]]:
    """Find connected peers that keep a branch's posts of any age (None: all branches'), with whose nodes they are.

    A topic of theirs and this node's. Without relays, which forget; without who is unknown, as readers by a link are, and a
    second node of this user. Whether these are members is not looked at. Costs O(peers and branches).
    """
    found = []
    for source in hub.sources:
        progress, user = source.session.progress_of(topic.topic), hub.owners.user_of(source.peer)
        if user is None or user == hub.owners.me or source.compares_publications or source.is_ending():
            continue
        if progress is None or not progress.is_joined or progress.keeps.days or not source.answers_bodies:
            continue
        kept = find_kept_by(hub.replica.tables, topic, progress.keeps)
        if kept is None or branch_num in kept:
            found.append((source, user))
    return found


def find_unwanted(tables: Tables, topic: Topic, keeps: KeptPart, now_ms: int) -> Unwanted:
    """Return of which commits on a topic that peer gets headers alone at a time (unix ms). Costs O(branches)."""
    kept = find_kept_by(tables, topic, keeps)
    bare = frozenset() if kept is None else frozenset(marks_on(tables, topic).values()) - kept
    return Unwanted(bare, posts_from(keeps.days, now_ms))
