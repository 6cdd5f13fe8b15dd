"""Start of a command, and memory of an idle daemon.

python -m benchmarks.bench_processes [rounds]

A command runs in an interpreter of its own, as a person starts it, with its modules compiled. The rounds go through all
commands in turn, and of each the quickest counts: other work on the machine only adds. Beside them stand an interpreter
that does nothing and one that imports httpx: a client of HTTP that Ravel could use. The daemon is one of an empty home,
ready and then left alone. Its resident memory includes pages of libraries that other processes share; its proportional
memory has its share of these. Processes that it has started count by themselves.
"""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.common import figure, note, timed
from benchmarks.daemons import running
from tests.e2e.cluster import Peer
from tests.support.processes import RAVEL

_IDLE_SECONDS: Final = 3.0
_INTERPRETER: Final = "interpreter"
_HTTPX: Final = "httpx"


def _starts(peer: Peer, rounds: int) -> dict[str, float]:
    """Name of each command -> the seconds of its quickest run."""
    at = [*RAVEL, "--home", str(peer.home)]
    commands = {
        _INTERPRETER: [sys.executable, "-c", "pass"],
        _HTTPX: [sys.executable, "-c", "import httpx"],
        "status": [*at, "status"],
        "version": [*RAVEL, "--version"],
        "help": [*RAVEL, "--help"],
    }
    # Where compiled modules are not written, each start compiles anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds + 1):  # the first compiles what is not compiled yet
        for name, command in commands.items():
            seconds[name].append(
                timed(partial(subprocess.run, command, check=True, capture_output=True, env=environment))
            )
    return {name: min(found[1:]) for name, found in seconds.items()}


def _megabytes(pid: int) -> dict[str, float]:
    """Resident (`Rss`) and proportional (`Pss`) memory of a process, in MB of 10^6 bytes."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, *_ = line.split()
        found[name.rstrip(":")] = int(size) * 1024 / 1e6
    return found


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def main() -> None:
    """Print the figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        peer = Peer(Path(name) / "empty")
        with running(peer):
            time.sleep(_IDLE_SECONDS)  # it works on for a moment after it is ready
            memory = _megabytes(peer.pid)
            figure("idle_resident", memory["Rss"], "MB", goal=60)
            figure("idle_proportional", memory["Pss"], "MB")
            for child in _children(peer.pid):
                command = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                note(f"a process that the daemon has started: {command}")
                figure("idle_child_resident", _megabytes(child)["Rss"], "MB")
            starts = _starts(peer, rounds)
    for name, seconds in starts.items():
        figure(f"start_{name}", seconds, "s", rounds=rounds)
    figure("start_status_to_interpreter", starts["status"] / starts[_INTERPRETER], "ratio")
    figure("start_status_to_httpx", starts["status"] / starts[_HTTPX], "ratio")


if __name__ == "__main__":
    main()
