"""Real daemons for benchmarks: started from a folder, stopped at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.cluster import Peer


@contextmanager
def running(*peers: Peer) -> Iterator[None]:
    """Start some peers; leave no process behind."""
    try:
        for peer in peers:
            peer.start()
        yield
    finally:
        for peer in peers:
            peer.close()


def resident_megabytes(pid: int) -> float:
    """Resident memory of a process (not of its children), in MB of 10^6 bytes."""
    return _megabytes(pid, "VmRSS")


def peak_megabytes(pid: int) -> float:
    """The most that was resident of a process since it began, in MB of 10^6 bytes."""
    return _megabytes(pid, "VmHWM")


def _megabytes(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"no {name}")
