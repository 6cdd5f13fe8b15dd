"""Time from `repo join LINK` to the first commit, and to the path that lasts, in networks that ask for each.

python benchmarks/bench_join.py [rounds]

Real daemons in network namespaces (as root; see `tests.networks.cases`), 50 ms there and back between public addresses. Each
round makes new nodes. Seconds count from the start of the command, whose interpreter takes some of them.

- *lan*: both behind one router.
- *relayed*: both behind symmetric routers.
- *punched*: both behind port-restricted ones.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.common import figure, note
from tests.networks.cases import ONE_HOME, PAIRS, Found, join, members
from tests.networks.routers import RouterKind

_CASES = {
    "lan": ONE_HOME,
    "relayed": PAIRS[RouterKind.SYMMETRIC, RouterKind.SYMMETRIC],
    "punched": PAIRS[RouterKind.PORT_RESTRICTED, RouterKind.PORT_RESTRICTED],
}
_WAITED_SECONDS = 60.0


def main() -> None:
    """Measure each."""
    try:
        _measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    except (pytest.skip.Exception, pytest.fail.Exception) as error:  # the others of `make bench` go on
        note(str(error))


def _measure(rounds: int) -> None:
    for name, case in _CASES.items():
        found: list[Found] = []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder, members(Path(folder), case) as made:
                found.append(join(case, made, _WAITED_SECONDS))
                note(f"{name}: {found[-1]}")
        first = sorted(one.first_commit_seconds for one in found)
        path = sorted(one.path_seconds for one in found)
        figure(f"join_{name}_first_commit", statistics.median(first), "s", least=first[0], most=first[-1])
        figure(
            f"join_{name}_path",
            statistics.median(path),
            "s",
            least=path[0],
            most=path[-1],
            paths=sorted({one.path for one in found}),
        )


if __name__ == "__main__":
    main()
