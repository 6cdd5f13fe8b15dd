"""First sync beside other programs, in turns on the same machine: Scuttlebutt's ssb-db2 with ssb-ebt.

python -m benchmarks.bench_peers [commits] [rounds]

Needs Node.js, and the packages of `benchmarks/peers`, which nothing else needs or installs:
npm ci --prefix benchmarks/peers --ignore-scripts
Without them nothing is measured. Both programs run in two processes on the loopback. One has a chain of small signed posts
of one author; a newcomer gets all of them. Rates are from the first post in the newcomer's store to the last; beside
them stand the seconds from the newcomer's request, connecting included. Ravel's posts are encrypted, and durable
(fsync) when they count; ssb-db2's are neither. Each round runs both, and the ratio is the median of the rounds'.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.bench_replication import first_sync
from benchmarks.common import figure, note

_PEERS: Final = Path(__file__).parent / "peers"
_INSTALL: Final = "npm ci --prefix benchmarks/peers --ignore-scripts"
_RUN_SECONDS: Final = 600.0


def is_installed() -> bool:
    """Return True if Node.js and the packages of the other programs are here."""
    return shutil.which("node") is not None and (_PEERS / "node_modules" / "ssb-ebt").is_dir()


def ssb_first_sync(message_count: int) -> dict[str, Any]:
    """Return what `ssb_first_sync.js` prints: `rate` in messages a second, `first_seconds` and `last_seconds` since the
    dial.
    """
    command = ["node", str(_PEERS / "ssb_first_sync.js"), str(message_count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_RUN_SECONDS, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    if not is_installed():
        note(f"nothing was measured: Node.js or the other programs are not here ({_INSTALL})")
        return
    ours, theirs = [], []
    for number in range(rounds):
        theirs.append(ssb_first_sync(count))
        ours.append(first_sync(count))
        note(f"round {number + 1}: ssb-ebt {theirs[-1]['rate']:.0f}/s, Ravel {ours[-1].rate:.0f}/s")
    rates = [(one.rate, other["rate"]) for one, other in zip(ours, theirs, strict=True)]
    spans = [(one.seconds, other["last_seconds"]) for one, other in zip(ours, theirs, strict=True)]
    more = {"commits": count, "rounds": rounds}
    for name, values in (("ravel", [rate for rate, _ in rates]), ("ssb_ebt", [rate for _, rate in rates])):
        figure(
            f"first_sync_{name}",
            median(values),
            "commits/s",
            least=round(min(values)),
            most=round(max(values)),
            **more,
        )
    figure("first_sync_to_ssb_ebt", median(one / other for one, other in rates), "ratio", goal=1.5)
    for name, values in (("ravel", [span for span, _ in spans]), ("ssb_ebt", [span for _, span in spans])):
        figure(f"first_sync_{name}_from_request", median(values), "s", **more)
    figure("first_sync_speed_from_request_to_ssb_ebt", median(other / one for one, other in spans), "ratio")


if __name__ == "__main__":
    main()
