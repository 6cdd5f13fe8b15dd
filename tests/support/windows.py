"""Windows of told histories, as a newcomer judges them that has a part of a repo."""

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.keys import EpochKey
from protocol.ids import CommitId, EpochId, Mark
from storage.commits.commits import load_facts
from storage.commits.pending import load_rejected
from tests.histories.real_commits import Founded, user_of
from tests.support.builders import give
from verifier.facts import CommitFacts
from verifier.windows import Standing, WindowCommit, confirm, find_witnesses


@dataclass
class _Lookup:
    facts: dict[CommitId, CommitFacts]
    rejected: set[CommitId]

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        return self.facts.get(commit_id)

    def is_rejected(self, commit_id: CommitId) -> bool:
        return commit_id in self.rejected

    def epoch_key(self, epoch: EpochId, mark: Mark) -> EpochKey | None:
        del epoch, mark
        return None


@contextmanager
def open_copy(founded: Founded, folder: Path, items: list[bytes]) -> Iterator[Replica]:
    shutil.copytree(founded.folder, folder)
    replica = Replica(folder)
    try:
        give(replica, items)
        yield replica
    finally:
        replica.close()
        shutil.rmtree(folder)


def confirm_window(
    replica: Replica,
    items: list[bytes],
    branch_name: str,
    malicious: frozenset[str],
    vouched: Collection[CommitId] = (),
) -> Standing:
    """What a replica confirms of these commits, which its store has not, also by the heads that a link names."""
    (branch,) = (one for one in replica.branches.values() if one.name == branch_name)
    window = [
        WindowCommit(opened.signed, topic.facts)
        for topic in replica.topics.values()
        for opened in open_batch(topic, items).opened
    ]
    named = {one.signed.commit.commit_id for one in window}
    for one in window:
        named.update(one.signed.commit.acks)
        named.update(ack for place in one.signed.commit.content.tangles for ack in place.previous)
    with replica.database.read() as connection:
        lookup = _Lookup(load_facts(connection, named), load_rejected(connection, sorted(named)))
    membership = replica.membership(branch.facts.repo_id)
    liars = {user_of(name) for name in malicious}
    witnesses = find_witnesses(membership, ()) - liars
    return confirm(window, branch.facts, lookup, membership, witnesses, vouched)
