"""The long run: each attack at full speed on a real daemon, one JSON line each.

    python -m tests.hostile.run [--seconds 60] [--calm 10] [--commits 6000] [--attack NAME ...]

Before each attack the same daemon is measured without one for the calm seconds. Ratios say what the attack costs its user.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hostile.attacks import ATTACKS
from tests.hostile.daemons import Field, Outcome


def main() -> int:
    """Run what is asked for; 1 where a promise that a script asserts did not hold."""
    parser = argparse.ArgumentParser(description="Attack a real daemon at full speed.")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each attack")
    parser.add_argument("--calm", type=float, default=10.0, help="seconds before each, without it")
    parser.add_argument("--commits", type=int, default=6000, help="of the branch that is attacked")
    parser.add_argument(
        "--attack", action="append", choices=sorted(ATTACKS), help="one of them; all if absent"
    )
    asked = parser.parse_args()
    has_failed = False
    with tempfile.TemporaryDirectory() as folder:
        field = Field(Path(folder), asked.commits)
        for name in asked.attack or sorted(ATTACKS):
            try:
                outcome = field.attack(name, calm_seconds=asked.calm, seconds=asked.seconds)
            except (
                AssertionError
            ) as error:  # the daemon did not start, or has ended: the next one is run all the same
                print(json.dumps({"attack": name, "failures": [str(error)[-500:]]}), flush=True)
                has_failed = True
                continue
            print(json.dumps(line_of(outcome)), flush=True)
            has_failed |= bool(outcome.raided.failures)
    return int(has_failed)


def line_of(outcome: Outcome) -> dict[str, Any]:
    """An outcome as one JSON object. Times are milliseconds, sizes MiB of 2^20 bytes unless the name says bytes."""
    raided, sent = outcome.raided, outcome.raided.sent.get("bytes", 0)
    return {
        "attack": outcome.name,
        "role": ATTACKS[outcome.name].role.value if outcome.name else "",
        "seconds": round(outcome.seconds, 1),
        "runs": raided.runs,
        "connections": raided.connections,
        "frames": raided.sent.get("frames", 0),
        "sent_bytes": sent,
        "publications": raided.sent.get("publications", 0),
        "goodbyes": raided.reasons,
        "failures": [*raided.failures, *outcome.meanwhile.failures[:3]],
        "failed_calls": len(outcome.meanwhile.failures),
        "writes": len(outcome.meanwhile.writes),
        "write_ms": spread(outcome.meanwhile.writes),
        "write_calm_ms": spread(outcome.before.writes),
        "write_cpu_ms": spread(outcome.meanwhile.write_cpu),
        "write_cpu_calm_ms": spread(outcome.before.write_cpu),
        "reads": len(outcome.meanwhile.reads),
        "read_ms": spread(outcome.meanwhile.reads),
        "read_calm_ms": spread(outcome.before.reads),
        "memory_growth_mib": round(outcome.memory_growth / 2**20, 1),
        "disk_growth_mib": round(outcome.disk_growth / 2**20, 2),
        "cpu_seconds": round(outcome.cpu_seconds, 1),
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, p99 and the largest, in milliseconds."""
    ordered = sorted(values) or [0.0]
    places = {"p50": len(ordered) // 2, "p99": int(0.99 * len(ordered)), "max": len(ordered) - 1}
    return {name: round(ordered[place] * 1000, 1) for name, place in places.items()}


if __name__ == "__main__":
    sys.exit(main())
