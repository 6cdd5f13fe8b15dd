"""Epochs: what it costs to exclude one of many members with new secrets for all others, and to catch up over many epochs.

python benchmarks/bench_epochs.py [members] [epochs]

Real stores on disk. One member is excluded of a repo whose members were granted their rights, which makes a sealed box
for each other member; the limit is that many bare crypto_boxes in the same run. Catching up: a member who was away takes
in all publications of each topic as it opens, as over a connection, but without one; the limit is a second for ten
epochs.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from nacl import bindings

from benchmarks.common import STORE_KEY, batches, clock_ms, figure, follow, note, timed
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.acceptance import release_more
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from node.membership.epoch_keys import KeyTaker
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.content import Post
from protocol.ids import UserId
from storage.repos.repos import Branch, Repo
from tests.support.batches import accept_whole

_SECONDS_LIMIT = 0.1  # for each epoch that is caught up with


def main() -> None:
    """Print the figures."""
    members = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with tempfile.TemporaryDirectory() as folder:
        note(f"a repo with {members} members")
        spent = exclude_one_of(members, Path(folder) / "members")
        figure("exclude", spent.excluding * 1e3, "ms", members=members)
        figure("start_epoch", spent.starting * 1e3, "ms", members=members)
        bare = round(spent.boxing * 1e3, 1)
        figure("start_epoch_to_bare_boxes", spent.boxing / spent.starting, "ratio", bare_ms=bare)
        _catch_up_over(epochs, Path(folder))


class Exclusion(NamedTuple):
    """Seconds of an exclusion, of the epoch that it starts, and of as many bare boxes as that has."""

    excluding: float
    starting: float
    boxing: float


def exclude_one_of(members: int, folder: Path) -> Exclusion:
    """Exclude one of so many members in a new store, and start the epoch."""
    replica, author, repo, _ = _create(folder)
    users = [key_pair(UserSeed(b"user" + number.to_bytes(28)))[0] for number in range(members - 1)]
    root = replica.root_branch(repo)
    drafts = [Draft(Grant(user, Permission.WRITE)) for user in users]
    author.write_many(root, lambda _: drafts, lambda _connection, _written: None)
    excluding = timed(lambda: author.write(root, Remove(users[0], None, ())))
    starting = timed(lambda: author.preparation.prepare(repo, IngestResult()))
    assert len(replica.tables.epochs) == 2
    secret = bindings.crypto_sign_ed25519_sk_to_curve25519(key_pair(UserSeed(b"s" * 32))[1])
    boxing = timed(lambda: [_seal(user, secret) for user in users])
    replica.close()
    return Exclusion(excluding, starting, boxing)


def _seal(user: UserId, secret: bytes) -> bytes:
    theirs = bindings.crypto_sign_ed25519_pk_to_curve25519(user)
    return bindings.crypto_box(bytes(64), os.urandom(24), theirs, secret)


def _catch_up_over(epochs: int, folder: Path) -> None:
    note(f"a repo with {epochs} epochs")
    replica, author, repo, branch = _create(folder / "source")
    away = Author(replica, UserSeed(b"a" * 32), clock_ms).user
    author.write(replica.root_branch(repo), Grant(away, Permission.WRITE))
    target = follow(folder / "target", replica, repo)
    for _ in range(epochs):
        author.start_epoch(repo)
        author.write(branch, Post("something new"))
    reader = Author(target, UserSeed(b"a" * 32), clock_ms)
    keys = KeyTaker(target, reader)
    seconds = timed(lambda: _catch_up(replica, target, keys))
    assert len(target.tables.epochs) == epochs + 1
    assert target.branches[branch.num].commit_count == replica.branches[branch.num].commit_count
    figure("catch_up", seconds, "s", epochs=epochs)
    figure(
        "catch_up_to_limit",
        _SECONDS_LIMIT * epochs / seconds,
        "ratio",
        limit_s=_SECONDS_LIMIT * epochs,
    )
    for one in (replica, target):
        one.close()


def _catch_up(source: Replica, target: Replica, keys: KeyTaker) -> None:
    done: set[bytes] = set()
    (repo,) = target.repos.values()
    while fresh := [topic for topic in target.topics.values() if topic.topic not in done]:
        for topic in fresh:
            done.add(topic.topic)
            for items in batches(source, source.by_topic[topic.topic]):
                accept_whole(target, topic, open_batch(topic, items), clock_ms())
        while keys.take(repo):
            while release_more(target, clock_ms()).is_unfinished:
                pass


def _create(folder: Path) -> tuple[Replica, Author, Repo, Branch]:
    folder.mkdir(parents=True)
    replica = Replica(folder, STORE_KEY)
    author = Author(replica, UserSeed(b"o" * 32), clock_ms)
    repo, _ = author.founding.create_repo("bench")
    branch, _ = author.founding.create_branch(repo, "main")
    return replica, author, repo, branch


if __name__ == "__main__":
    main()
