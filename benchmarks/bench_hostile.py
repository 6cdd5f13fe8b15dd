"""Cost of an attacker at full speed to the user of a daemon: writes, reads, memory and disk, beside the same without one.

python -m benchmarks.bench_hostile [seconds] [calm seconds] [commits] [attack ...]

Attacks are those of `tests/hostile`, each from a process of its own and on a fresh copy of the same store; `nobody` is a run
without any, which shows how much of a ratio is chance. Two clients use the API all the time: one writes, one reads. Ratios
are to the calm seconds of the same daemon. On a machine of two cores the attacker takes part of one.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.common import figure, percentile
from tests.hostile.attacks import ATTACKS
from tests.hostile.daemons import Field, Outcome

_NOBODY: Final = "nobody"
_CHOSEN: Final = (
    "keep_alives",
    "empty_announcements",
    "idle_strangers",
    "half_open_connections",
    "dripping_requests",
    "questions_for_ranges",
    "questions_for_single_symbols",
    "merges_with_an_old_ack",
    "wide_merges",
    "merges_of_the_excluded",
    "merges_of_a_reader",
    "waiting_for_many_causes",
    "causes_that_do_not_exist",
    "backdated_commits",
    "tiny_batches",
    "huge_posts",
    "the_same_publications",
    "wants_of_nothing",
    "deposits_of_many_topics",
    "a_relay_that_is_filled",
)
"""One or more of each kind of work that a peer can cause; any other may be named."""
_SENT_SIZE_MIN: Final = 1 << 20
"""Bytes that must have been sent for a share of them to say anything: the database grows by pages."""


def _print(outcome: Outcome, per_write: float) -> None:
    name, calm, felt = outcome.name or _NOBODY, outcome.before, outcome.meanwhile
    sent = outcome.raided.sent.get("bytes", 0)
    for share in (0.5, 0.99):
        was, now = percentile(calm.writes, share), percentile(felt.writes, share)
        figure(
            f"hostile_write_p{share * 100:.0f}",
            now * 1000,
            "ms",
            attack=name,
            writes=len(felt.writes),
            calm_ms=round(was * 1000, 1),
            ratio=round(now / was, 2),
            **({"goal": 500, "goal_ratio": 5} if share > 0.5 else {}),
        )
    read, calm_read = percentile(felt.reads, 0.99), percentile(calm.reads, 0.99)
    figure("hostile_read_p99", read * 1000, "ms", attack=name, calm_ms=round(calm_read * 1000, 1), goal=250)
    figure("hostile_failed_calls", len(felt.failures), "calls", attack=name, goal=0)
    figure("hostile_memory", outcome.memory_growth / 2**20, "MiB", attack=name, goal=64)
    grown = outcome.disk_growth - per_write * (len(calm.writes) + len(felt.writes))
    share_of_sent = {"share_of_sent": round(grown / sent, 2), "goal": 2} if sent >= _SENT_SIZE_MIN else {}
    figure(
        "hostile_disk", grown / 2**20, "MiB", attack=name, sent_mib=round(sent / 2**20, 2), **share_of_sent
    )
    figure("hostile_cpu", outcome.cpu_seconds / outcome.seconds, "cores", attack=name)


def main() -> None:
    """Print the figures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    calm_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    commit_count = int(sys.argv[3]) if len(sys.argv) > 3 else 6000
    names = sys.argv[4:] or list(_CHOSEN)
    assert ATTACKS.keys() >= set(names), f"no such attack: {sorted(set(names) - ATTACKS.keys())}"
    with tempfile.TemporaryDirectory() as folder:
        field = Field(Path(folder), commit_count)
        alone = field.attack("", calm_seconds=calm_seconds, seconds=seconds)
        per_write = alone.disk_growth / (len(alone.before.writes) + len(alone.meanwhile.writes))
        _print(alone, per_write)
        for name in names:
            outcome = field.attack(name, calm_seconds=calm_seconds, seconds=seconds)
            for felt in (outcome.before, outcome.meanwhile):
                assert felt.writes, "there was time for a write"
                assert felt.reads, "there was time for a read"
            _print(outcome, per_write)


if __name__ == "__main__":
    main()
