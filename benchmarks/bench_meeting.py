"""Two whole replicas of one topic meet: bytes and round trips until each knows what to send, and the processor's time.

python benchmarks/bench_meeting.py [commits] [folder]

Both hold so many commits, and have written d more while apart, half on each side: as a chain on the newest (*tail*), or
each on a commit drawn from the whole history (*spread*), so that every one is a head; or one of them wrote all (*alone*).
They meet over a stream on which everything takes two seconds in each direction, so that round trips can be told from
computing, and hold the same after it. The store is made once and kept in the folder (1 GB and 5 minutes for a million), of
which two copies are used.

*Bytes* are of all messages about the topic in both directions before its first publication is asked for (summaries and
reconciliation); on the wire each has FRAME_OVERHEAD more, and its topic was announced by each side in 34. *Round trips*
are counted from the first summary to the last word of who asks. *Processor time* is of both sides together, from the
start of the connection to the first publication; what d = 0 takes is in each of them.
"""

import random
import shutil
import sys
import tempfile
import time
from math import floor
from pathlib import Path

import trio

from benchmarks.common import figure, note
from benchmarks.meeting import ALICE, BOB, FRAME_OVERHEAD, Meeting, Side, build, meet
from node.runtime.blocking import tune_interpreter
from protocol.session.messages import Summary

_DIFFERENCES = (0, 1, 20, 1000, 10_000)
_DELAY_SECONDS = 2.0


def _print(meeting: Meeting, difference: int, shape: str, commit_count: int) -> None:
    compared = meeting.comparing()
    first = min(one.at for one in compared)
    size = sum(one.size for one in compared)
    trips = (max(one.at for one in compared) - first) / (2 * _DELAY_SECONDS)
    if not difference:
        trips = 0.5  # both summaries are said at once, and that is all
        assert all(isinstance(one.message, Summary) for one in compared)
    figure(
        "meeting",
        size,
        "bytes",
        difference=difference,
        shape=shape,
        commits=commit_count,
        wire_bytes=size + FRAME_OVERHEAD * len(compared) + 2 * 34,
        summary_bytes=sum(one.size for one in compared if isinstance(one.message, Summary)),
        bytes_per_difference=round(size / difference, 1) if difference else None,
        round_trips=floor(trips * 2 + 0.1) / 2,
        exact_round_trips=round(trips, 2),
        cpu_ms_before_payload=round(
            1000 * ((meeting.cpu_compared or time.process_time()) - meeting.cpu_began), 1
        ),
        cpu_seconds=round(meeting.cpu_seconds, 2),
        seconds=round(meeting.seconds, 1),
    )


def _compare(alice: Side, bob: Side, commit_count: int) -> None:
    began = time.process_time()
    trio.run(meet, alice, bob, _DELAY_SECONDS)
    figure("meeting_first_ever", time.process_time() - began, "s", commits=commit_count)
    chance = random.Random(1)  # noqa: S311  # the same places in every run
    for shape in ("alone", "tail", "spread"):
        for difference in _DIFFERENCES:
            half = 0 if shape == "alone" else difference // 2
            for side, count in ((alice, difference - half), (bob, half)):
                if shape == "spread":
                    side.write_spread(count, chance, commit_count)
                else:
                    side.write_tail(count)
            _print(trio.run(meet, alice, bob, _DELAY_SECONDS), difference, shape, commit_count)
            if shape == "spread":
                alice.merge()
                trio.run(meet, alice, bob, _DELAY_SECONDS)


def main() -> None:
    """Print the figures."""
    tune_interpreter()
    commit_count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    kept = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.gettempdir()) / "ravel-meeting"
    base = kept / str(commit_count)
    build(base, commit_count)
    with tempfile.TemporaryDirectory(dir=kept) as name:
        for side in ("alice", "bob"):
            shutil.copytree(base / "store", Path(name) / side)
        alice, bob = Side(Path(name) / "alice", ALICE), Side(Path(name) / "bob", BOB)
        note("two copies of the store are there")
        _compare(alice, bob, commit_count)
        for one in (alice, bob):
            one.replica.close()


if __name__ == "__main__":
    main()
