"""Age: what a repo's membership costs a node, at its start and at each join, as members, removals and epochs add up.

python -m benchmarks.bench_age [MEMBERS:EPOCHS ...]

A store on disk of one repo whose members join by one invitation with keys of their own. Each epoch begins when some of them
are excluded, nine of ten in the end. *Start* opens the store with what
the node has kept of its verdicts; *judged* is the same membership from its commits alone. *Join* takes in one member more,
and looks for the duties that come of that. Processor time, each size in a process of its own, interpreter excluded.
"""

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Final

from benchmarks.common import STORE_KEY, clock_ms, figure, note, percentile
from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica, load_membership
from node.membership.epoch_duties import EpochDuties
from node.membership.epoch_keys import KeyTaker
from protocol.crypto.keys import InvitationSeed, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Invite, Join, Permission, Remove
from protocol.formats.proofs import prove_invitation
from storage.repos.repos import Repo

_SIZES: Final = ("100:10", "400:60", "1000:200")
_LEAVING: Final = 0.9
"""Share of the members who are gone in the end."""
_JOINS: Final = 40
_INVITATION: Final = InvitationSeed(b"i" * 32)


def _seed(number: int) -> UserSeed:
    return UserSeed(b"user" + number.to_bytes(28))


def make_store(folder: Path, members: int, epochs: int) -> None:
    """Write a store in which so many have joined over so many epochs, and most have gone again."""
    folder.mkdir(parents=True, exist_ok=True)
    replica = Replica(folder, STORE_KEY)
    owner = Author(replica, UserSeed(b"o" * 32), clock_ms)
    repo, _ = owner.founding.create_repo("age")
    root = replica.root_branch(repo)
    invitation = Invite(key_pair(_INVITATION)[0], Permission.WRITE, members, 2**50)
    written, _ = owner.write(root, invitation)
    here: list[int] = []
    joined = gone = 0
    for epoch in range(1, epochs + 1):
        while joined < members * epoch // epochs:
            author = Author(replica, _seed(joined), clock_ms)
            proof = prove_invitation(_INVITATION, repo.repo_id, author.user)
            author.write(root, Join(written.commit_id, proof))
            here.append(joined)
            joined += 1
        leaving = here[: max(int(members * _LEAVING * epoch / epochs) - gone, 0)]
        del here[: len(leaving)]
        gone += len(leaving)
        if leaving:
            owner.write_many(root, [Draft(Remove(key_pair(_seed(one))[0], None, ())) for one in leaving])
        owner.start_epoch(replica.repos[repo.num])
    replica.close()


def _measure(folder: str) -> None:
    """Print what a store costs this process: seconds, and MiB that Python holds for its membership."""
    began = time.process_time()
    replica = Replica(Path(folder), STORE_KEY)
    start = time.process_time() - began
    (repo,) = replica.repos.values()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gc.collect()
    tracemalloc.start()
    with replica.membership_lock:
        replica.forget_membership(repo.repo_id)
        operations = replica.membership(repo.repo_id).operations
    held = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    counts = len(operations), len(operations.epochs)
    began = time.process_time()
    with replica.database.read() as connection:
        load_membership(connection, replica.tables, repo.repo_id)
    judged = time.process_time() - began
    print(json.dumps([start, judged, _join(replica, repo), held, most, *counts]))
    replica.close()


def _join(replica: Replica, repo: Repo) -> float:
    """Seconds for one join of several, the middle one."""
    root, owner = replica.root_branch(repo), Author(replica, UserSeed(b"o" * 32), clock_ms)
    invitation = Invite(key_pair(_INVITATION)[0], Permission.WRITE, 2 * _JOINS, 2**50)
    written, _ = owner.write(root, invitation)
    keys, duties = KeyTaker(replica, owner), EpochDuties(replica, owner)
    taken = []
    for number in range(_JOINS):
        author = Author(replica, _seed(1_000_000 + number), clock_ms)
        join = Join(written.commit_id, prove_invitation(_INVITATION, repo.repo_id, author.user))
        began = time.process_time()
        author.write(root, join)
        keys.take(replica.repos[repo.num])
        duties.perform(replica.repos[repo.num], 0.0, IngestResult())
        taken.append(time.process_time() - began)
    return percentile(taken, 0.5)


def main() -> None:
    """Print the figures."""
    for size in sys.argv[1:] or _SIZES:
        members, epochs = map(int, size.split(":"))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "store"
            note(f"{members} members, {epochs} epochs")
            make_store(folder, members, epochs)
            ran = subprocess.run(
                [sys.executable, "-m", "benchmarks.bench_age", "--open", str(folder)],
                check=True,
                capture_output=True,
                text=True,
            )
            start, judged, join, held, most, operations, started = json.loads(ran.stdout)
            what = {"members": members, "epochs": started, "root_commits": operations}
            figure("start", start * 1e3, "ms", **what)
            figure("judged", judged * 1e3, "ms", **what)
            figure("join", join * 1e3, "ms", **what)
            figure("membership_memory", held, "MiB", resident_most=most, **what)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--open"]:
        _measure(sys.argv[2])
    else:
        main()
