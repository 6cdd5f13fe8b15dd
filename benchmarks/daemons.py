"""Real daemons for benchmarks: started from a folder, stopped at the end; and what asks them at little cost."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ravel.callers import operation_of
from ravel.home import read_run_file, read_token
from ravel.operations import request_of
from tests.e2e.cluster import Peer


class Caller:
    """One connection with a daemon, which is always asked for the same.

    `ravel.Client` takes a third of what the daemon takes for a write, and both share the cores that are measured.
    """

    def __init__(self, peer: Peer, method: Callable[..., object], arguments: Mapping[str, object]) -> None:
        """`method` of the client; `arguments` of the path, and any for the body."""
        self._operation = operation_of(method)
        self._path = request_of(self._operation, arguments).path
        self._headers = {
            "Authorization": f"Bearer {read_token(peer.home)}",
            "Content-Type": "application/json",
        }
        self._connection = http.client.HTTPConnection(read_run_file(peer.home).api)

    def call(self, body: object = None) -> Any:  # noqa: ANN401  # JSON
        """Return the answer."""
        encoded = None if body is None else json.dumps(body)
        self._connection.request(self._operation.method, self._path, encoded, self._headers)
        return json.loads(self._connection.getresponse().read())

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


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
    """Return the most that was resident of a process since it began, in MB of 10^6 bytes."""
    return _megabytes(pid, "VmHWM")


def _megabytes(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"no {name}")
