"""Writes over the API: until they are durable (the answer) and visible to who follows the branch, of one client and more.

python -m benchmarks.bench_writes [writes] [clients]

A real daemon with its store on disk; each client has one connection and writes its next commit when the last was
answered. One more follows the branch by an event stream. A stream pauses after each look at the store, so a single client
waits between writes until it has ended, and finds a daemon whose caches are cold; then one, and several, write without
waiting. Then 50 times as many posts come by one request, or as many as it may bring, and as many by a writer. A folder of
five times as many files of 10 KiB goes in as `ravel file add` sends it. Beside it, in the same run: a write and an fsync of
as many bytes to a file of the same disk, which is what a durable write cannot do without; for the files, the bytes of their
pack.
"""

import math
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.common import figure, libsodium_verifications_per_second, percentile, timed
from benchmarks.daemons import Caller, running
from node.cli.uploads import Skipped, Uploader, find_files, name_paths
from protocol.limits.formats import KIB
from protocol.limits.users import POSTS_COUNT_MAX
from ravel import connect
from ravel.calls.branches import BranchesCalls
from tests.e2e.cluster import Peer

_PAUSE_SECONDS: Final = 0.25
_WAIT_SECONDS: Final = 60.0
_FILE_SIZE: Final = 10 * KIB
_FOLDER_COUNT: Final = 3
_COMMIT_SIZE: Final = 4096
"""Bytes that a small commit adds to the log, about: a few pages."""


class _Follower:
    """Notes when each commit came by an event stream."""

    def __init__(self, peer: Peer, branch: str, since: str) -> None:
        self.seen: dict[str, float] = {}
        self.is_open = threading.Event()
        self._arrived = threading.Condition()
        self._of = (peer.home, branch, since)
        self._is_over = False

    def run(self) -> None:
        """Follow until `stop`."""
        home, branch, since = self._of
        with closing(connect(home)) as client, client.watch_edits(branch, since=since) as events:
            self.is_open.set()
            for event in events:
                if self._is_over:
                    return
                if event.name == "edit":
                    with self._arrived:
                        self.seen[event.data["commit"]] = time.perf_counter()
                        self._arrived.notify_all()

    def wait(self, commits: set[str]) -> None:
        """Wait until all of them have come."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: commits <= self.seen.keys(), _WAIT_SECONDS)

    def stop(self) -> None:
        """Note the next event."""
        self._is_over = True


def _write(peer: Peer, branch: str, count: int, pause: float) -> dict[str, tuple[float, float]]:
    """Commits, when each was asked for and when answered."""
    made: dict[str, tuple[float, float]] = {}
    with closing(Caller(peer, BranchesCalls.write_post, {"branch": branch, "text": ""})) as caller:
        for number in range(count):
            began = time.perf_counter()
            answer = caller.call({"text": f"write {number}"})
            made[answer["commit"]] = (began, time.perf_counter())
            if pause:
                time.sleep(pause)  # until the stream has paused
    return made


def measure(folder: Path, count: int, client_count: int, pause: float) -> None:
    """Print the figures of so many writes of each of so many clients."""
    peer = Peer(folder / f"of-{client_count}-{pause}")
    with ExitStack() as stack:
        stack.enter_context(running(peer))
        repo = str(peer.client.create_repo("bench")["repo"])
        branch = str(peer.client.list_branches(repo)["branches"][0]["branch"])
        follower = _Follower(peer, branch, str(peer.client.follow_edits(branch, since="", limit=1)["last"]))
        pool = stack.enter_context(ThreadPoolExecutor(client_count + 1))
        following = pool.submit(follower.run)
        assert follower.is_open.wait(_WAIT_SECONDS)
        began = time.perf_counter()
        writing = [pool.submit(_write, peer, branch, count, pause) for _ in range(client_count)]
        made = {commit: times for one in writing for commit, times in one.result().items()}
        seconds = time.perf_counter() - began
        follower.wait(set(made))
        follower.stop()
        peer.client.write_post(branch, "the last")
        following.result()
    durable = [answered - asked for asked, answered in made.values()]
    visible = [follower.seen[commit] - asked for commit, (asked, _) in made.items()]
    for name, found in (("durable", durable), ("visible", visible)):
        for share in (0.5, 0.99):
            figure(
                f"write_{name}_p{share * 100:.0f}",
                percentile(found, share) * 1000,
                "ms",
                clients=client_count,
                pause=pause,
                writes=len(made),
            )
    if not pause:
        figure("write_rate", len(made) / seconds, "writes/s", clients=client_count)


def measure_batch(folder: Path, count: int) -> float:
    """Print the rate of so many posts by one request, and give it; and of as many by a writer, 256 of them unanswered."""
    peer = Peer(folder / "of-batch")
    with running(peer):
        repo = str(peer.client.create_repo("batch")["repo"])
        branch = str(peer.client.list_branches(repo)["branches"][0]["branch"])
        texts = [f"post {number}" for number in range(count)]
        seconds = timed(lambda: peer.client.write_posts(branch, texts))
        streamed = timed(lambda: _stream(peer, branch, texts))
    figure("write_stream_rate", count / streamed, "posts/s", posts=count)
    figure("write_batch_rate", count / seconds, "posts/s", posts=count)
    figure(
        "write_batch_to_bare_verification", count / seconds / libsodium_verifications_per_second(), "ratio"
    )
    return count / seconds


def _stream(peer: Peer, branch: str, texts: list[str]) -> None:
    with peer.client.writer(branch) as writer:
        for text in texts:
            writer.post(text)


def measure_files(folder: Path, count: int, posts_per_second: float) -> None:
    """Print the rate of so many files of a folder, the best of a few folders."""
    peer, best, best_bare = Peer(folder / "of-files"), math.inf, math.inf
    with running(peer):
        branch = str(peer.client.create_repo("files")["repo"]) + ":main"
        for number in range(_FOLDER_COUNT):
            files = folder / f"files {number}"
            files.mkdir()
            for name in range(count):
                (files / str(name)).write_bytes(os.urandom(_FILE_SIZE))
            best = min(best, timed(partial(_add_folder, peer, branch, files, count)))
            best_bare = min(best_bare, timed(partial(_write_pack, folder / f"pack {number}", count)))
    figure("write_files_rate", count / best, "files/s", files=count, size=_FILE_SIZE)
    figure("write_files_to_posts", count / best / posts_per_second, "ratio")
    figure("write_files_to_bare_pack", best_bare / best, "ratio")


def _add_folder(peer: Peer, branch: str, folder: Path, count: int) -> None:
    found = find_files(name_paths([folder]), Skipped())
    added = Uploader(lambda body: peer.client.add_files(branch, body), found, lambda done: None).run()
    assert added.new_count == count


def _write_pack(path: Path, count: int) -> None:
    with path.open("wb") as file:
        content = bytes(_FILE_SIZE)
        for _ in range(count):
            file.write(content)
        file.flush()
        os.fsync(file.fileno())


def measure_disk(folder: Path, count: int) -> None:
    """Measure the bare limit."""
    with (folder / "bare").open("wb", buffering=0) as file:

        def write() -> None:
            file.write(bytes(_COMMIT_SIZE))
            os.fsync(file.fileno())

        found = [timed(write) for _ in range(count)]
    for share in (0.5, 0.99):
        figure(f"write_bare_fsync_p{share * 100:.0f}", percentile(found, share) * 1000, "ms", writes=count)


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    client_count = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory() as name:
        measure_disk(Path(name), count)
        measure(Path(name), count, 1, _PAUSE_SECONDS)
        measure(Path(name), 10 * count, 1, 0)
        if client_count > 1:
            measure(Path(name), count, client_count, 0)
        rate = measure_batch(Path(name), min(50 * count, POSTS_COUNT_MAX))
        measure_files(Path(name), 5 * count, rate)


if __name__ == "__main__":
    main()
