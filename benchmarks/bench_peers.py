"""Measure the same work by Ravel and by other systems, in turns on the same machine.

python -m benchmarks.bench_peers [entries] [rounds] [system ...]

Needs Node.js, git, and the packages of `benchmarks/peers`, which nothing else needs or installs: `make observatory` installs
them there first. A system whose programs are not here is left out, with a note.

Members are processes on the loopback. In each round each system does these, in another order each time:

- *first_posts*: a newcomer joins and reads ten entries, from the request on.
- *first_sync*: a member joins, until it has all entries; *first_to_last*: without what comes before the first of
  them; *first_sync_processor*: the processor time of both for an entry.
- *newest*: the 50 newest entries are read, the median of 20; *memory*: that member's, what it shares counted in parts.
- *catch_up*: the founder writes a fiftieth more while the other is away, until the other has it, from its dialing on.
- *meet*: both write a fiftieth more without each other, until both have all.
- *stored*: by how much the files of the other member grew until the end, for each entry.
- *exclude*: one of 100 members loses the rights, and all others have new keys; durable.

Each figure is the median of the rounds, with the least and the most. These hold the true median with a probability of
1 - 2^(1 - rounds) if rounds do not depend on each other: 97 % for six.
"""

import shutil
import subprocess
import sys
from datetime import UTC, datetime
from statistics import median
from typing import Final

from benchmarks.common import figure, libsodium_verifications_per_second, note
from benchmarks.peers.members import HERE
from benchmarks.peers.workloads import SYSTEMS, UNITS, measure

_COUNT: Final = 3000
_ROUNDS: Final = 6


def _is_here(system: str) -> bool:
    """Return True if what a system needs is installed."""
    if system in ("ravel", "git"):
        return system == "ravel" or shutil.which("git") is not None
    return shutil.which("node") is not None and (HERE / "node_modules").is_dir()


def main() -> None:
    """Print the run, then a line for each figure of each system."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _COUNT
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else _ROUNDS
    wanted = sys.argv[3:] or list(SYSTEMS)
    systems = [system for system in wanted if _is_here(system)]
    if left_out := [system for system in wanted if system not in systems]:
        note(
            f"left out, for its programs are not here (make observatory installs them): {', '.join(left_out)}"
        )
    before = libsodium_verifications_per_second()
    found: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
    for number in range(rounds):
        turn = number % len(systems)
        for system in systems[turn:] + systems[:turn]:
            found[system].append(measure(system, count))
            note(f"round {number + 1}, {system}: {found[system][-1]}")
    rate = min(before, libsodium_verifications_per_second())
    figure("run", rounds, "rounds", entries=count, verifications_per_second=round(rate, -2), **_about())
    for system in systems:
        for name, unit in UNITS.items():
            values = [one[name] for one in found[system] if name in one]
            if values:
                spread = {"least": round(min(values), 4), "most": round(max(values), 4)}
                figure(name, median(values), unit, system=system, **spread)


def _about() -> dict[str, str]:
    """Return the day, and the commit of this code."""
    at = ["git", "-C", str(HERE), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(at, capture_output=True, text=True, check=False)
    return {"day": datetime.now(UTC).date().isoformat(), "commit": done.stdout.strip()}


if __name__ == "__main__":
    main()
