"""Exports: commits per second out of SQLite, and what a writer's commits wait while one runs.

python benchmarks/bench_export.py [commits, 100,000 by default]

The goals are 50,000 commits a second, and a 99th percentile of commit latency that no more than doubles. The rate is also
that of an export with blocks, which reads every block and hashes those of bodies. A writer writes one post after another,
each a durable transaction, in this process; the export runs beside it as it does beside a daemon, in a process of its own,
again and again from the beginning. Then the same with a real daemon: posts and exports are asked for by its API. Quiet and
exporting spans alternate, so that a machine that slows down slows both.
"""

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import msgspec

from benchmarks.common import clock_ms, figure, note, percentile, timed, write_history
from benchmarks.daemons import running
from node.authoring.author import Author
from node.exports.export_rights import open_rights
from node.exports.export_worker import ExportAnswer, ExportRequest
from node.home.identity import open_keys
from node.ingest.replica import Replica
from node.runtime.blocking import tune_interpreter
from protocol.crypto.keys import StoreKey
from protocol.formats.content import Post
from ravel import connect
from storage.export.destinations import LocalFolder
from storage.export.export import ExportPlan, export_store
from storage.export.space_accounting import count_holdings
from tests.e2e.cluster import Peer
from tests.support.keys import no_passphrase

_ROUNDS = 4
_SPAN_SECONDS = 8.0
"""Of each round: quiet, and with exports."""


def export_rate(
    replica: Replica, home: Path, folder: Path, commit_count: int, *, blocks: bool = False
) -> tuple[float, float]:
    """Commits a second of an export in this process: the best of three, by the clock and by processor time."""
    walls, works = [], []
    holdings = partial(count_holdings, folder=home)
    for run in range(3):
        plan = ExportPlan("node", run, rights=open_rights, holdings=holdings, blocks=blocks)
        began = time.process_time()
        walls.append(
            timed(partial(export_store, replica.database.read, LocalFolder(folder / f"rate-{run}"), plan))
        )
        works.append(time.process_time() - began)
    return commit_count / min(walls), commit_count / min(works)


def start_export(home: Path, folder: Path, store_key: StoreKey) -> subprocess.Popen[bytes]:
    """Return the process that a daemon starts."""
    request = ExportRequest(
        home=str(home),
        destination=str(folder),
        options={},
        node="node",
        created_at=1,
        keep_seconds=0,
        parts_max=32,
        has_bodies=False,
        has_blocks=False,
        pseudonym_key="",
        storage_url="",
        store_key=store_key.hex(),
        quotas=None,
    )
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "node.exports.export_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert worker.stdin is not None, "it was asked for"
    worker.stdin.write(msgspec.json.encode(request))
    worker.stdin.close()
    return worker


def finish(worker: subprocess.Popen[bytes]) -> ExportAnswer:
    """Return what it answers."""
    assert worker.stdout is not None, "it was asked for"
    answer = msgspec.json.decode(worker.stdout.read(), type=ExportAnswer)
    worker.wait()
    return answer


def write_for(write: Callable[[], object], seconds: float, meanwhile: Callable[[], None]) -> list[float]:
    """Latencies of commits, one after another."""
    latencies = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        meanwhile()
        latencies.append(timed(write))
    return latencies


class Exporting:
    """Keeps one export running, each to a folder of its own."""

    def __init__(self, home: Path, folder: Path, store_key: StoreKey) -> None:
        self._home = home
        self._folder = folder
        self._store_key = store_key
        self._numbers = count()
        self._worker: subprocess.Popen[bytes] | None = None
        self.finished = 0

    def keep_on(self) -> None:
        """Start the next when one has ended."""
        if self._worker is not None and self._worker.poll() is None:
            return
        self.stop()
        self._worker = start_export(self._home, self._folder / str(next(self._numbers)), self._store_key)

    def stop(self) -> None:
        """Wait for the one that runs."""
        if self._worker is not None:
            answer = finish(self._worker)
            assert answer.summary is not None, answer.error
            self.finished += 1
            self._worker = None


class Asking:
    """Asks a daemon for one export after the other, each from the beginning, in a thread."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._thread: threading.Thread | None = None
        self.finished = 0

    def keep_on(self) -> None:
        """Ask for the next when one has ended."""
        if self._thread is not None and self._thread.is_alive():
            return
        self.stop()
        shutil.rmtree(self._peer.home / "exports", ignore_errors=True)
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        client = connect(self._peer.home)  # the writer's is in use
        client.export_store()
        client.close()
        self.finished += 1

    def stop(self) -> None:
        """Wait for the one that runs."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def compare(name: str, write: Callable[[], object], exporting: Exporting | Asking) -> None:
    """Print what commits wait without and with exports."""
    quiet: list[float] = []
    busy: list[float] = []
    for round_number in range(_ROUNDS):
        note(f"{name}: round {round_number + 1} of {_ROUNDS}")
        quiet += write_for(write, _SPAN_SECONDS, lambda: None)
        busy += write_for(write, _SPAN_SECONDS, exporting.keep_on)
        exporting.stop()
    for share in (0.5, 0.99):
        alone, beside = percentile(quiet, share), percentile(busy, share)
        figure(
            f"{name} p{share * 100:.0f} while exporting",
            beside / alone,
            "times the quiet one",
            quiet_ms=round(alone * 1000, 2),
            exporting_ms=round(beside * 1000, 2),
            writes=len(quiet) + len(busy),
            exports=exporting.finished,
        )


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    commit_count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peer = Peer(folder / "home")
        keys = open_keys(peer.home, no_passphrase)
        note(f"writing {commit_count} commits")
        replica, _, branch = write_history(peer.home, commit_count, keys.user_seed, keys.store_key)
        wall, work = export_rate(replica, peer.home, folder, commit_count)
        figure("export", wall, "commits/s", by_processor_time=round(work), commits=commit_count)
        wall, work = export_rate(replica, peer.home, folder / "blocks", commit_count, blocks=True)
        parts = (folder / "blocks" / "rate-0" / "blocks").iterdir()
        figure(
            "export with blocks",
            wall,
            "commits/s",
            by_processor_time=round(work),
            bytes_of_blocks_per_commit=round(sum(part.stat().st_size for part in parts) / commit_count),
        )
        seconds = timed(lambda: finish(start_export(peer.home, folder / "process", keys.store_key)))
        figure(
            "export in a process of its own", commit_count / seconds, "commits/s", seconds=round(seconds, 2)
        )
        author = Author(replica, keys.user_seed, clock_ms)
        exporting = Exporting(peer.home, folder / "exports", keys.store_key)
        compare("commit latency", lambda: author.write(branch, Post("a post")), exporting)
        replica.close()
        with running(peer):
            text_id = str(peer.client.list_branches("bench")["branches"][0]["branch"])
            seconds = timed(peer.client.export_store)
            figure("export by a daemon", commit_count / seconds, "commits/s", seconds=round(seconds, 2))
            compare("commit latency by API", lambda: peer.client.write_post(text_id, "a post"), Asking(peer))


if __name__ == "__main__":
    main()
