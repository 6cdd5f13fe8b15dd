"""A daemon's start with a very long history in its store: time until it is ready, and its memory then.

python -m benchmarks.bench_start [commits]

A real `ravel run` of a copy of a kept store of real commits (`long_home`); ready is its answer to `GET /readyz`, asked for
every 5 ms, and the beginning is the start of the process, interpreter and imports included. *Cold*: the operating system has
dropped the store's file from its memory. Memory is the process's own (resident, and at its peak), after the timeline's end
was read once.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx

from benchmarks.common import figure, percentile
from benchmarks.daemons import peak_megabytes, resident_megabytes, running
from benchmarks.long_home import REPO, copy_long_home
from node.runtime.errors import ServiceError
from ravel.home import read_run_file
from storage.engine.sqlite import DATABASE_NAME
from tests.e2e.cluster import Peer
from tests.support.processes import RAVEL

_ROUNDS: Final = 5
_POLL_SECONDS: Final = 0.005
_MIB: Final = 1024 * 1024 / 1e6
"""Megabytes in a MiB."""


def _start(home: Path) -> float:
    """Seconds from the start of a daemon to its being ready; it is ended."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [*RAVEL, "--home", str(home), "run"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx.Client() as client:
            while True:
                with suppress(ServiceError, httpx.TransportError):
                    if client.get(f"http://{read_run_file(home).api}/readyz").status_code == 200:
                        return time.perf_counter() - began
                assert process.poll() is None, "the daemon has ended"
                time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for
    finally:
        process.terminate()
        process.wait()


def _forget(path: Path) -> None:
    """Have the system drop a file from its memory."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _memory(peer: Peer) -> tuple[float, float]:
    """MiB resident once the timeline's end was read, and at the most until then."""
    with running(peer):
        peer.client.show_timeline(f"{REPO}:main", after_position=-1, limit=100)
        return resident_megabytes(peer.pid) / _MIB, peak_megabytes(peer.pid) / _MIB


def measure(commit_count: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        peer = copy_long_home(Path(name), commit_count)
        os.sync()  # what was copied is not written while a daemon starts
        for name in ("start_cold", "start"):
            seconds = []
            for _ in range(_ROUNDS):
                if name == "start_cold":
                    _forget(peer.home / DATABASE_NAME)
                seconds.append(_start(peer.home))
            figure(name, percentile(seconds, 0.5), "s", commits=commit_count, goal=2, slowest=max(seconds))
        resident, most = _memory(peer)
        figure("start_resident", resident, "MiB", commits=commit_count, goal=150)
        figure("start_resident_most", most, "MiB", commits=commit_count, goal=150)


def main() -> None:
    """Print the figures."""
    for commit_count in [int(one) for one in sys.argv[1:]] or [100_000]:
        measure(commit_count)


if __name__ == "__main__":
    main()
