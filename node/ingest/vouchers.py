"""Vouchers of the links by which repos are being joined (`formats.links.Voucher`): whose word the newest posts rest on.

A link is kept until the join is accepted. Its voucher is remembered after that, until the node stops: posts rest on it until
their past is here.

A link states heads and not who is a member: what stands before an accepted head is accepted, whoever wrote it. So nothing is
judged by a statement of members, which would take 160 KB of a link's repo of 1,000 and a second form of each rule.
"""

import threading
from functools import lru_cache
from typing import Final, NamedTuple

from sqlalchemy import Connection

from node.ingest.replica import Replica
from node.ingest.tables import Tables
from protocol.codec import DecodeError
from protocol.crypto.signing import BadSignature
from protocol.formats.links import NewestPosts, decode_kept_link, find_kept_ask
from protocol.formats.proofs import verify_voucher
from protocol.ids import CommitId, EpochId, RepoId, TopicKey, root_branch
from storage.commits.pending import load_rejected
from storage.repos.epochs import Epoch, Topic
from verifier.membership import Membership

_REMEMBERED_MAX: Final = 1024
"""Links that were looked at: one signature each."""
PROMISED_NUM: Final = 0
"""Number for a topic that a link names and the repo has not stated yet. No row has it."""


class Vouched(NamedTuple):
    """Newest posts, as the link of an invitation states them, signed by whom it names."""

    invitation: CommitId
    epoch: EpochId
    states: NewestPosts

    @property
    def topics(self) -> dict[EpochId, TopicKey]:
        """Writers' topics of epochs, as the link names them."""
        earlier = self.states.earlier
        named = {} if earlier is None else {earlier.epoch.epoch: earlier.topic}
        return {**named, self.epoch: self.states.topic}


class Vouchers:
    """Vouchers of links, by repo. Thread-safe."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._lock = threading.Lock()
        self._found: dict[int, Vouched] = {}  # by number of the repo

    def find(self, repo_num: int) -> Vouched | None:
        """Return what the link of a repo states, if its signature holds."""
        repo = self._replica.repos.get(repo_num)
        with self._lock:
            if repo is None:
                self._found.pop(repo_num, None)
                return None
            if repo.invitation is not None:
                found = find_vouched(repo.repo_id, repo.invitation)
                if found is None:
                    self._found.pop(repo_num, None)
                else:
                    self._found[repo_num] = found
            return self._found.get(repo_num)

    def find_false(self, connection: Connection, repo_num: int) -> Vouched | None:
        """Return what the link of a repo states if that is false: a commit was rejected that it says was accepted."""
        vouched = self.find(repo_num)
        if vouched is None or not load_rejected(connection, sorted(vouched.states.heads)):
            return None
        return vouched

    def promised(self) -> list[Topic]:
        """Return the topics that links name and that are not known by the repo's own word yet. Costs O(links)."""
        tables, found = self._replica.tables, list[Topic]()
        for num in tables.invited:
            vouched = self.find(num)
            epoch = None if vouched is None else tables.find_epoch(num, vouched.epoch)
            if vouched is None or epoch is None or not has_its_topics(vouched, num, tables):
                continue
            named, earlier = [(vouched.states.topic, epoch)], vouched.states.earlier
            if earlier is not None:
                given = earlier.epoch
                named.append((earlier.topic, Epoch(0, num, epoch.repo_id, given.epoch, given.key)))
            found += [
                Topic(PROMISED_NUM, topic, num, (), (of,))
                for topic, of in named
                if topic not in tables.by_topic
            ]
        return found

    def find_promised(self, topic: TopicKey) -> Topic | None:
        """Return the promised topic with this key; None if there is none."""
        return next((one for one in self.promised() if one.topic == topic), None)


@lru_cache(maxsize=_REMEMBERED_MAX)
def find_vouched(repo_id: RepoId, kept_link: bytes) -> Vouched | None:
    """Return what a link states that is kept with its repo, if its signature holds."""
    try:
        if find_kept_ask(kept_link) is not None:
            return None
        link, _ = decode_kept_link(kept_link)
        if link.voucher is None or link.voucher.states.branch == root_branch(repo_id):
            return None
        verify_voucher(repo_id, link.invitation, link.voucher)
    except (DecodeError, BadSignature):
        return None
    return Vouched(link.invitation, link.epoch, link.voucher.states)


def has_its_topics(vouched: Vouched, repo_num: int, tables: Tables) -> bool:
    """Return True unless an epoch is known to have another writers' topic than the link says: who reads can make one up."""
    known = ((tables.find_epoch(repo_num, epoch_id), topic) for epoch_id, topic in vouched.topics.items())
    return all(epoch is None or epoch.writers_topic in (None, topic) for epoch, topic in known)


def is_believed(vouched: Vouched, membership: Membership) -> bool:
    """Return True unless the root branch, as far as it is here, says that the maker is none or was removed."""
    invitation = membership.operations.find(vouched.invitation)
    if invitation is not None and invitation.author != vouched.states.maker:
        return False
    return not membership.now().counting_removals_of(vouched.states.maker)
