"""Windows of told histories, as a newcomer judges them that has a part of a repo."""

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from node.authoring.drafting import Target
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.keys import EpochKey, SigningKey
from protocol.formats.body import encode_body
from protocol.formats.commit import Content, Links, TanglePlace, create_commit
from protocol.formats.content import Post
from protocol.formats.object import build_object
from protocol.formats.publication import Publication, create_publication
from protocol.ids import CommitId, EpochId, Mark, UserId
from storage.commits.commits import load_facts
from storage.commits.pending import load_rejected
from tests.histories.real_commits import Founded, user_of
from tests.support.builders import give
from tests.support.ids import as_commit_id
from verifier.facts import CommitFacts
from verifier.tangle_kinds import GROUP
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


def forge(
    target: Target,
    author: tuple[UserId, SigningKey],
    init: CommitId,
    rank: int,
    acks: tuple[CommitId, ...] | None = None,
    seen: tuple[CommitId, ...] = (),
) -> Publication:
    """A post that states a rank, and acks what nobody has unless that is given."""
    body, blocks = build_object(encode_body(Post(f"post {rank}")), target.convergence_secret)
    content = Content(
        author=author[0],
        branch=target.facts.branch_id,
        epoch=target.epoch.epoch_id,
        by_writer=target.by_writer,
        whole=True,
        feed_sequence=1,
        feed_previous=None,
        tangles=(TanglePlace(GROUP, init, seen or (init,)),),
        timestamp=rank % 2**40,
        metadata=b"",
        body=body,
    )
    nobody = (as_commit_id(rank.to_bytes(32, "big")),)
    commit, block = create_commit(
        acks or nobody, rank, target.mark, Links(), content, author[1], target.convergence_secret
    )
    return create_publication(target.seed, target.epoch.keys.read_key, commit.key, (block, *blocks))
