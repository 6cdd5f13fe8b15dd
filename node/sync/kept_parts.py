"""Branches whose erasable bodies a node keeps: what is said of it to a peer, and what a peer has said (`keeps1`).

Headers of all branches are kept, so digests, orders and verdicts are those of any other node. A relay is told nothing: it
sees no kinds, and sends all that it has.
"""

from collections.abc import Collection, Iterable, Mapping

from node.ingest.publication_reading import branch_mark_in
from node.ingest.replica import Replica
from node.ingest.tables import Tables
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.ids import BranchMark, TopicKey
from protocol.limits.users import KEPT_BRANCHES_MAX
from protocol.session.messages import Keeps
from storage.commits.absent_bodies import await_branch
from storage.repos.epochs import Topic
from storage.repos.repos import Repo, keep_branches


class KeepsPort:
    """Tells one peer which branches' bodies are kept here, once for each topic and change.

    If the peer may have bodies that are missing here, it is first told that none are kept. It sends by the last
    statement, and assumes that this node has the bodies that all statements named. Repeating the statement says that
    those bodies have come.
    """

    def __init__(self, conversation: Conversation, hub: Hub) -> None:
        self._conversation = conversation
        self._hub = hub
        self._said: dict[TopicKey, frozenset[BranchMark]] = {}  # of topics of which less than all is kept
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
            kept, before = self._find(topic), self._said.get(topic)
            is_new, is_opened = topic not in self._told, topic in self._hub.replica.by_topic
            is_behind = is_opened and topic in self._hub.lacking_bodies and (is_new or kept != before)
            self._told.add(topic)
            if is_behind:
                self._behind[topic] = None
                self._conversation.say(Keeps(progress.blind, is_all=False, marks=()))
            if is_behind or kept != before:
                self._say(topic, kept)

    def settle(self, topic: TopicKey | None) -> None:
        """Say the same again of a topic, or of all that lack no bodies now: the peer has no more that are not here."""
        for one in [one for one in self._behind if topic in (None, one)]:
            if topic is not None or one not in self._hub.lacking_bodies:
                del self._behind[one]
                self._say(one, self._said.get(one))

    def _say(self, topic: TopicKey, kept: frozenset[BranchMark] | None) -> None:
        self._said.pop(topic, None)
        if kept is not None:
            self._said[topic] = kept
        progress = self._conversation.session.progress_of(topic)
        if progress is not None:
            self._conversation.say(Keeps(progress.blind, kept is None, tuple(sorted(kept or ()))))

    def tell_changes(self) -> None:
        """Say what has changed of all topics that are joined."""
        tables = self._hub.replica.tables
        if self._said or not all(repo.keeps_all for repo in tables.repos.values()):
            self.tell([one.topic for one in self._conversation.topics])

    def _find(self, topic: TopicKey) -> frozenset[BranchMark] | None:
        tables = self._hub.replica.tables
        followed = tables.by_topic.get(topic)
        if followed is None or tables.repos[followed.repo_num].keeps_all:
            return None
        marks = (mark for mark, num in marks_on(tables, followed).items() if tables.branches[num].is_kept)
        return frozenset(sorted(marks)[:KEPT_BRANCHES_MAX])  # bodies of the others do not come by themselves


def keep_contents(replica: Replica, repo: Repo, kept: Collection[int] | None) -> None:
    """Keep bodies of these branches of a repo alone, beside its root branch, or of all. Raises StorageError.

    Costs O(branches and absent bodies). What is here stays: it may be the only copy.
    """
    with replica.change() as change:
        of_repo = replica.branches_in(repo.num)
        those = [one.num for one in of_repo if kept is None or one.num in kept or one.facts.is_root_branch]
        keep_branches(change.connection, repo.num, None if kept is None else those)
        for branch in of_repo:
            await_branch(change.connection, branch.num, is_kept=branch.num in those)


def marks_on(tables: Tables, topic: Topic) -> Mapping[BranchMark, int]:
    """Return the numbers of the branches on a topic by their marks, without the root branch. Costs O(branches)."""
    return {
        branch_mark_in(epoch.key, branch.branch_id): branch.num
        for epoch in (*topic.epochs, *topic.writers_of)
        for branch in tables.branches_in(epoch.repo_num)
        if not branch.facts.is_root_branch
    }


def find_kept_by(tables: Tables, topic: Topic, keeps: frozenset[BranchMark] | None) -> frozenset[int] | None:
    """Return the numbers of the branches on a topic whose bodies a peer keeps that says so; None: of all."""
    if keeps is None:
        return None
    return frozenset(num for mark, num in marks_on(tables, topic).items() if mark in keeps)


def find_bare(tables: Tables, topic: Topic, keeps: frozenset[BranchMark] | None) -> frozenset[int]:
    """Return the numbers of a topic's branches of which that peer gets headers alone. Costs O(branches)."""
    kept = find_kept_by(tables, topic, keeps)
    return frozenset() if kept is None else frozenset(marks_on(tables, topic).values()) - kept
