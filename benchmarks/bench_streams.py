"""Event streams: from a write to the last of many subscribers, memory for each, and far more than are served.

python -m benchmarks.bench_streams [subscribers] [opened] [writes]

A real daemon, and real HTTP connections of this process, which follow one branch; one write at a time, by a further
connection. A stream looks at the store at most five times a second, so writes keep apart. Then so many streams are asked
for at once (`opened`), while somebody asks for the status: each is served or told to come again, and nothing is lost.
Raise `ulimit -n` before.
"""

import http.client
import json
import resource
import selectors
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.common import figure, note, percentile, timed
from benchmarks.daemons import resident_megabytes, running
from protocol.limits.users import EVENT_STREAMS_MAX
from ravel.home import read_token
from tests.e2e.cluster import Peer

_PAUSE_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 60.0
_STATUS_PAUSE_SECONDS: Final = 0.2


@dataclass(slots=True)
class Subscriber:
    """One connection, and what came by it."""

    connection: socket.socket
    said: bytes = b""
    status: int = 0
    events: int = 0
    arrivals: list[float] = field(default_factory=list)

    def take(self) -> bool:
        """Read what is there; whether the connection is still open."""
        try:
            data = self.connection.recv(1 << 16)
        except ConnectionError:
            return False
        now = time.perf_counter()
        if not data:
            return False
        self.said += data
        if not self.status and b"\r\n" in self.said:
            self.status = int(self.said.split(b" ", 2)[1])
        count = self.said.count(b"event: edit\n")
        if count:
            self.said = self.said[self.said.rindex(b"event: edit\n") + 12 :]
            self.events += count
            self.arrivals += [now] * count
        return True


class Subscribers:
    """Many of them, read by one loop."""

    def __init__(self, peer: Peer, branch: str, since: str) -> None:
        self.all: list[Subscriber] = []
        host, _, port = peer.client.url.removeprefix("http://").rpartition(":")
        self._at = (host, int(port))
        lines = [f"GET /api/v1/branches/{branch}/edits?since={since} HTTP/1.1", f"Host: {host}:{port}"]
        lines += [f"Authorization: Bearer {read_token(peer.home)}", "Accept: text/event-stream", "", ""]
        self._request = "\r\n".join(lines).encode()
        self._ready = selectors.DefaultSelector()

    def open(self) -> None:
        """One more."""
        made = Subscriber(socket.create_connection(self._at, _WAIT_SECONDS))
        made.connection.sendall(self._request)
        self.all.append(made)
        self._ready.register(made.connection, selectors.EVENT_READ, made)

    def read(self, seconds: float) -> None:
        """Take what comes within so long."""
        for key, _ in self._ready.select(seconds):
            if not key.data.take():
                self._ready.unregister(key.fileobj)
                key.data.connection.close()

    def until(self, events: int) -> None:
        """Read until all that are served have so many events."""
        deadline = time.perf_counter() + _WAIT_SECONDS
        while any(one.events < events for one in self.all if one.status in (0, 200)):
            assert time.perf_counter() < deadline, "some subscribers got nothing"
            self.read(0.05)

    def close(self) -> None:
        """Close all."""
        for one in self.all:
            one.connection.close()
        self._ready.close()


def _make(folder: Path) -> tuple[Peer, str]:
    peer = Peer(folder / "node")
    with running(peer):
        repo = str(peer.client.create_repo("bench")["repo"])
        return peer, str(peer.client.list_branches(repo)["branches"][0]["branch"])


def fan_out(folder: Path, count: int, writes: int) -> None:
    """One writer, and so many that follow."""
    peer, branch = _make(folder)
    with ExitStack() as stack:
        stack.enter_context(running(peer))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        since = str(peer.client.follow_edits(branch, since="", limit=1)["last"])
        empty = resident_megabytes(peer.pid)
        subscribers = Subscribers(peer, branch, since)
        stack.callback(subscribers.close)
        began = time.perf_counter()
        for _ in range(count):
            subscribers.open()
        peer.client.write_post(branch, "first")
        subscribers.until(1)
        note(f"{count} subscribers in {time.perf_counter() - began:.1f} s")
        figure(
            "stream_memory",
            (resident_megabytes(peer.pid) - empty) * 1000 / count,
            "KB each",
            subscribers=count,
        )
        middle: list[float] = []
        last: list[float] = []
        answered: list[float] = []
        for number in range(writes):
            time.sleep(_PAUSE_SECONDS)  # streams look at the store at most five times a second
            subscribers.read(0)
            began = time.perf_counter()
            writing = pool.submit(timed, partial(peer.client.write_post, branch, f"write {number}"))
            subscribers.until(number + 2)
            answered.append(writing.result())
            arrivals = sorted(one.arrivals[-1] - began for one in subscribers.all)
            middle.append(arrivals[len(arrivals) // 2])
            last.append(arrivals[-1])
        for name, found in (("answered", answered), ("middle", middle), ("last", last)):
            for share in (0.5, 0.99):
                figure(
                    f"stream_{name}_p{share * 100:.0f}",
                    percentile(found, share) * 1000,
                    "ms",
                    subscribers=count,
                    writes=writes,
                )
        figure("stream_memory_after", resident_megabytes(peer.pid) - empty, "MB", subscribers=count)


def overload(folder: Path, count: int) -> None:
    """Far more streams than are served."""
    peer, branch = _make(folder)
    with ExitStack() as stack:
        stack.enter_context(running(peer))
        since = str(peer.client.follow_edits(branch, since="", limit=1)["last"])
        empty = resident_megabytes(peer.pid)
        subscribers = Subscribers(peer, branch, since)
        stack.callback(subscribers.close)
        is_over = threading.Event()
        waits: list[float] = []

        def ask() -> None:
            host, _, port = peer.client.url.removeprefix("http://").rpartition(":")
            while not is_over.is_set():
                began = time.perf_counter()
                asked = http.client.HTTPConnection(host, int(port), timeout=_WAIT_SECONDS)
                asked.request(
                    "GET", "/api/v1/status", headers={"Authorization": f"Bearer {read_token(peer.home)}"}
                )
                assert json.loads(asked.getresponse().read())["node"]
                asked.close()
                waits.append(time.perf_counter() - began)
                is_over.wait(_STATUS_PAUSE_SECONDS)

        asking = threading.Thread(target=ask)
        asking.start()
        began = time.perf_counter()
        for _ in range(count):
            subscribers.open()
            subscribers.read(0)
        while any(not one.status for one in subscribers.all):
            subscribers.read(0.05)
        seconds = time.perf_counter() - began
        is_over.set()
        asking.join()
        statuses = Counter(one.status for one in subscribers.all)
        figure("streams_asked", count / seconds, "answers/s", opened=count, statuses=dict(statuses))
        figure("streams_asked_status_p50", percentile(waits, 0.5) * 1000, "ms")
        figure("streams_asked_status_worst", max(waits) * 1000, "ms", asked=len(waits))
        figure("streams_asked_memory", resident_megabytes(peer.pid) - empty, "MB")
        peer.client.write_post(branch, "after all of them")
        subscribers.until(1)
        assert statuses[200] == min(count, EVENT_STREAMS_MAX), statuses


def main() -> None:
    """Print the figures."""
    subscribers = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    opened = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    writes = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as name:
        fan_out(Path(name) / "fan", subscribers, writes)
        overload(Path(name) / "over", opened)


if __name__ == "__main__":
    main()
