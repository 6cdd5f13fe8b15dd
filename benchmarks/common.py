"""Parts that benchmarks share: one JSON line per figure, a repo with history, and the machine's own limit."""

import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from nacl import bindings
from sqlalchemy import Connection, select

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Replica
from protocol.crypto.keys import StoreKey, UserSeed
from protocol.formats.content import Post
from protocol.formats.document_kinds import SET, ValuesKind
from protocol.ids import CommitId
from protocol.limits.peers import BATCH_COUNT_MAX, BATCH_SIZE_TARGET
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo, add_repo
from storage.schema.schema import commits
from storage.topics.difference import plan_sending
from storage.topics.publishing import load_publications
from tests.support.batches import accept_whole

_SEED = UserSeed(b"b" * 32)


def figure(name: str, value: float, unit: str, **more: object) -> None:
    """Print one figure."""
    line = {"figure": name, "value": round(value, 4), "unit": unit, **more}
    print(json.dumps(line), flush=True)


def note(text: str) -> None:
    """Say what is going on, beside the figures."""
    print(f"# {text}", file=sys.stderr, flush=True)


def libsodium_verifications_per_second(seconds: float = 2.0) -> float:
    """Bare Ed25519 verification, one thread, 32-byte messages: the limit that ingest is held against."""
    key, secret = bindings.crypto_sign_seed_keypair(os.urandom(32))
    signed = bindings.crypto_sign(os.urandom(32), secret)
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for _ in range(100):
            bindings.crypto_sign_open(signed, key)
        count += 100
    return count / (time.perf_counter() - began)


KEYS = 200
"""Keys or items of a document that many commits make."""
STORE_KEY = StoreKey(b"store key".ljust(32, b"-"))


def clock_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


def fill(author: Author, branch: Branch, kind: ValuesKind, count: int) -> None:
    """Write a document: in turn one of some keys, each time in place of what it had before."""
    last: dict[str, CommitId] = {}
    for start in range(0, count, KEYS):
        keys = [f"key {number}" for number in range(min(KEYS, count - start))]
        drafts = [
            Draft(
                kind.edit.make(
                    {key: "" if kind is SET else f"value {start}"},
                    (),
                    {key: [last[key]] if key in last else ()},
                ),
                document="bench",
            )
            for key in keys
        ]
        written, _ = author.write_many(branch, drafts)
        last = dict(zip(keys, (one.commit_id for one in written), strict=True))


def write_history(
    folder: Path,
    commit_count: int,
    seed: UserSeed = _SEED,
    store_key: StoreKey | None = STORE_KEY,
    text: Callable[[int], str] = "post number {}".format,
) -> tuple[Replica, Repo, Branch]:
    """Return a node whose branch `main` has `commit_count` small posts (a chain) that say `text` of their numbers, and its
    root.
    """
    folder.mkdir(parents=True, exist_ok=True)
    replica = Replica(folder, store_key)
    author = Author(replica, seed, clock_ms)
    repo, _ = author.founding.create_repo("bench")
    branch, _ = author.founding.create_branch(repo, "main")
    write_posts(author, branch, commit_count, text)
    return replica, repo, branch


def write_posts(
    author: Author, branch: Branch, commit_count: int, text: Callable[[int], str] = "post number {}".format
) -> None:
    """Write so many posts, each on the one before, that say `text` of their numbers."""
    for start in range(0, commit_count, 1000):
        texts = [text(number) for number in range(start, min(start + 1000, commit_count))]
        drafts = [Draft(Post(text)) for text in texts]
        author.write_many(branch, partial(_same, drafts), _nothing_more)


def _same(drafts: Sequence[Draft], _connection: Connection) -> Sequence[Draft]:
    return drafts


def _nothing_more(_connection: Connection, _written: Sequence[WrittenCommit]) -> None:
    """Time one transaction and nothing else."""


def writers_topic(replica: Replica, repo: Repo) -> Topic:
    """Return the topic on which writers publish in the epoch that is written in."""
    stated = replica.writing_epoch(repo).writers_topic
    assert stated is not None, "the epoch's init is here"
    return replica.by_topic[stated]


def batches(replica: Replica, topic: Topic, branch: Branch | None = None) -> list[list[bytes]]:
    """Return all publications of a topic, or those of one branch on it, in batches as they travel."""
    made: list[list[bytes]] = []
    with replica.database.read() as connection:
        nums = plan_sending(connection, topic.num, ()).nums
        if branch is not None:
            of_branch = select(commits.c.num).where(commits.c.branch_num == branch.num)
            chosen = set(connection.execute(of_branch).scalars())
            nums = array("q", [num for num in nums if num in chosen])
        done = 0
        while done < len(nums):
            items = load_publications(
                connection, topic, nums[done : done + BATCH_COUNT_MAX], BATCH_SIZE_TARGET
            )
            made.append(items)
            done += len(items)
    return made


def follow(folder: Path, source: Replica, repo: Repo, url: str = "") -> Replica:
    """Return a node that follows the repo of another as a writer, and has its inits; with a URL, its rows are in that
    database.
    """
    folder.mkdir(parents=True, exist_ok=True)
    replica = Replica(folder, STORE_KEY, url)
    with replica.change() as change:
        add_repo(
            replica.database, change.connection, repo, replace(source.writing_epoch(repo), writers_topic=None)
        )
    own = source.by_topic[source.writing_epoch(repo).topic]
    for items in batches(source, own):
        topic = replica.by_topic[own.topic]
        accept_whole(replica, topic, open_batch(topic, items), clock_ms())
    return replica


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
