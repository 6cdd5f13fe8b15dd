"""Two members write without each other, and meet: what it costs until both have the same timeline.

python -m benchmarks.bench_offline [commits of each ...]

Each writes a chain of so many commits on the same commit; then they are connected over loopback: real stores, sessions,
encryption and signatures, each side in a process of its own with the reader of a daemon. What else a daemon does
with new commits (its search index, its API's followers) is left out. Both timelines are read. The figure is the processor's
time of both sides for each commit of either, and `to_smallest` its ratio to that of the first count: 1
where the cost is linear.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import structlog
import trio

from benchmarks.common import clock_ms, figure
from benchmarks.meeting import ALICE, BOB, Side, build, meet
from node.home.config_sections import WORKERS_DEFAULT
from node.ingest.native_reading import make_reader
from node.runtime.blocking import threads, tune_interpreter
from node.sync.connection import Connection
from node.sync.hub import Hub
from node.wire.transport import accept, dial
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key
from storage.commits.commits import count_commits, digest_timeline

_DELAY_SECONDS = 0.001
_LOOK_SECONDS = 0.05
_SEEDS = {"alice": ALICE, "bob": BOB}


def _measure(folder: Path, count: int) -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    build(folder / "base", 1)
    for name in _SEEDS:
        shutil.copytree(folder / "base" / "store", folder / name)
    alice, bob = Side(folder / "alice", ALICE), Side(folder / "bob", BOB)
    trio.run(meet, alice, bob, _DELAY_SECONDS)
    for side in (alice, bob):
        side.write_tail(count)
        side.replica.close()
    processes = [_start_side("alice", folder, 0, 2 * count)]
    processes.append(_start_side("bob", folder, _hear(processes[0])["port"], 2 * count))
    _hear(processes[1])
    began = time.perf_counter()
    for process in processes:
        _tell(process)
    met = [_hear(process) for process in processes]
    seconds = time.perf_counter() - began
    for process in processes:  # each serves the other until both are done
        _tell(process)
    spent = [_hear(process) for process in processes]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    assert met[0]["digest"] == met[1]["digest"]
    assert met[0]["length"] >= 2 * count
    return sum(one["cpu"] for one in spent), seconds


def _start_side(name: str, folder: Path, port: int, expected: int) -> "subprocess.Popen[str]":
    given = ("--side", name, "--port", str(port), "--expected", str(expected), str(folder / name))
    command = (sys.executable, "-m", "benchmarks.bench_offline", *given)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _tell(side: "subprocess.Popen[str]") -> None:
    assert side.stdin is not None
    side.stdin.write("\n")
    side.stdin.flush()


def _hear(side: "subprocess.Popen[str]") -> dict[str, Any]:
    assert side.stdout is not None
    said: dict[str, Any] = json.loads(side.stdout.readline())
    return said


def _say(**said: object) -> None:
    print(json.dumps(said), flush=True)


async def _run_side(name: str, folder: Path, port: int, expected: int) -> None:
    """One side, in its process: says that it is there, what it has in the end, and what it took."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    side = Side(folder, _SEEDS[name])
    side.hub = Hub(side.replica, threads(), clock_ms, make_reader(WORKERS_DEFAULT))
    seed = NodeSeed(side.seed)
    if name == "alice":
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        _say(port=listener.socket.getsockname()[1])
        raw = await listener.accept()
        stream = await accept(raw, seed, AgreementSecret(b"a" * 32))
    else:
        raw = await trio.open_tcp_stream("127.0.0.1", port)
        alice = public_key(NodeSeed(ALICE))
        stream = await dial(raw, seed, alice, AgreementSecret(b"b" * 32))
        _say(port=port)
    await trio.to_thread.run_sync(sys.stdin.readline)
    before = time.process_time()
    connection = Connection(side.hub, stream)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        while not _is_done(side, connection, expected):  # noqa: ASYNC110  # the end of a comparison is no event
            await trio.sleep(_LOOK_SECONDS)
        with side.replica.database.read() as store:
            digest, length = digest_timeline(store, side.branch.num)
        _say(digest=digest, length=length)
        await trio.to_thread.run_sync(sys.stdin.readline)
        _say(cpu=time.process_time() - before)
        nursery.cancel_scope.cancel()
    side.replica.close()


def _is_done(side: Side, connection: Connection, expected: int) -> bool:
    with side.replica.database.read() as store:
        is_all_here = count_commits(store, side.branch.num) >= expected
    return is_all_here and all(one.state == "in sync" for one in connection.topics)


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", default=["1000", "10000", "100000"], help="commits of each")
    parser.add_argument("--side", choices=tuple(_SEEDS), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--expected", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        trio.run(_run_side, given.side, Path(given.counts[0]), given.port, given.expected)
        return
    smallest = 0.0
    for count in map(int, given.counts):
        with tempfile.TemporaryDirectory() as name:
            cpu, clock = _measure(Path(name), count)
        each = cpu / (2 * count)
        smallest = smallest or each
        figure(
            "offline_joined",
            each * 1e6,
            "us/commit",
            commits_of_each=count,
            seconds=round(clock, 2),
            to_smallest=round(each / smallest, 2),
            goal=150,
        )


if __name__ == "__main__":
    main()
