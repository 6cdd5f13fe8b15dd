"""Asks the published package ScuttleSort for its moves in graphs drawn at random, a line of JSON for each.

    python -m venv /tmp/scuttlesort && /tmp/scuttlesort/bin/pip install scuttlesort==0.0.6
    cd tests/unit/analytics/study && /tmp/scuttlesort/bin/python ask_scuttlesort.py >scuttlesort.jsonl

Prints causes of each commit, names, the order of delivery, how many commands each delivery sends, and the list at the end.
"""

import json
import random
from typing import Any, Final

from scuttlesort import Timeline  # type: ignore[import-not-found]  # in an environment of its own

_GRAPHS: Final = 60
_COMMITS_MAX: Final = 24
_CAUSES_MAX: Final = 3


def ask(seed: int) -> dict[str, Any]:
    """Draw a graph and its delivery, and return what the package does with them."""
    rng = random.Random(seed)  # the same graphs each time
    count = rng.randint(2, _COMMITS_MAX)
    causes = [rng.sample(range(one), min(one, rng.randint(0, _CAUSES_MAX))) for one in range(count)]
    names, delivery = rng.sample(range(count), count), rng.sample(range(count), count)
    commands: list[object] = []
    timeline = Timeline(lambda *command: commands.append(command))
    sent = []
    for one in delivery:
        commands.clear()
        timeline.add(f"{names[one]:02}", [f"{names[cause]:02}" for cause in causes[one]])
        sent.append(len(commands))
    ended = [names.index(int(name)) for name in timeline]
    return {"causes": causes, "names": names, "delivery": delivery, "sent": sent, "ended": ended}


if __name__ == "__main__":
    for seed in range(_GRAPHS):
        print(json.dumps(ask(seed), separators=(",", ":")))
