"""What the benchmarks share: one JSON line per figure, a repo with history, and the machine's own limit."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from nacl import bindings
from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.ingest.replica import Replica
from protocol.content import Post
from protocol.keys import StoreKey, UserSeed
from protocol.limits.peers import BATCH_COUNT_MAX, BATCH_SIZE_TARGET
from storage.repos.repos import Branch, Repo, add_repo
from storage.topics.difference import load_publications, plan_sending

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


STORE_KEY = StoreKey(b"store key".ljust(32, b"-"))


def clock_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


def write_history(
    folder: Path,
    commit_count: int,
    seed: UserSeed = _SEED,
    store_key: StoreKey | None = STORE_KEY,
    text: Callable[[int], str] = "post number {}".format,
) -> tuple[Replica, Repo, Branch]:
    """A node whose branch `main` has `commit_count` small posts (a chain) that say `text` of their numbers, and its root."""
    folder.mkdir(parents=True, exist_ok=True)
    replica = Replica(folder, store_key)
    author = Author(replica, seed, clock_ms)
    repo, _ = author.create_repo("bench")
    branch, _ = author.create_branch(repo, "main")
    for start in range(0, commit_count, 1000):
        texts = [text(number) for number in range(start, min(start + 1000, commit_count))]
        drafts = [Draft(Post(text)) for text in texts]
        author.write_many(branch, partial(_same, drafts), _nothing_more)
    return replica, repo, branch


def _same(drafts: Sequence[Draft], _connection: Connection) -> Sequence[Draft]:
    return drafts


def _nothing_more(_connection: Connection, _written: Sequence[WrittenCommit]) -> None:
    """Nothing else belongs into the transaction."""


def batches(replica: Replica, branch: Branch) -> list[list[bytes]]:
    """All publications of a branch, in batches as they travel."""
    made: list[list[bytes]] = []
    with replica.database.read() as connection:
        nums = plan_sending(connection, branch.topic_num, ()).nums
        done = 0
        while done < len(nums):
            items = load_publications(
                connection, branch, nums[done : done + BATCH_COUNT_MAX], BATCH_SIZE_TARGET
            )
            made.append(items)
            done += len(items)
    return made


def follow(folder: Path, source: Replica, repo: Repo, url: str = "") -> Replica:
    """An empty node that follows the repo of another as a writer; with a URL, its rows are in that database."""
    folder.mkdir(parents=True, exist_ok=True)
    replica = Replica(folder, STORE_KEY, url)
    with replica.change() as change:
        add_repo(replica.database, change.connection, repo, source.writing_epoch(repo))
    return replica


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
