"""Tries all pairs of routers, and some more: which path two daemons find, and how soon. `make nets-table`.

python -m tests.networks.nets_table [--json FILE] [--only TEXT]

Prints a table in Markdown; the figures are those of `tests.networks.cases`. Needs root, nftables and miniupnpd. Exits 1
if a pair has found another path than theory allows.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest

from tests.networks.cases import CASES, Case, Found, join, members
from tests.networks.internet import ROUND_TRIP

_SECONDS: Final = 40.0
"""How long a path is waited for: the first two rounds of punching."""


def main() -> int:
    """Try the cases one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--only", default="", help="try the cases alone whose names contain this")
    options = parser.parse_args()
    tried: list[tuple[Case, Found]] = []
    for case in CASES:
        if options.only in case.name:
            print(f"# {case.name}", file=sys.stderr, flush=True)
            try:
                with tempfile.TemporaryDirectory() as folder, members(Path(folder), case) as found:
                    tried.append((case, join(case, found, _SECONDS)))
            except (pytest.skip.Exception, pytest.fail.Exception) as error:
                sys.exit(str(error))
    print("\n".join(_markdown(tried)))
    if options.json is not None:
        rows = [{"routers": case.name, "possible": case.paths, **asdict(found)} for case, found in tried]
        text = json.dumps({"round_trip_seconds": ROUND_TRIP, "rows": rows}, indent=2)
        options.json.write_text(text + "\n")
    return int(any(found.path not in case.paths for case, found in tried))


def _markdown(tried: Sequence[tuple[Case, Found]]) -> list[str]:
    lines = ["| between them | path | first commit after | path after |", "|---|---|---|---|"]
    for case, found in tried:
        note = "" if found.path in case.paths else f" (possible: {', '.join(case.paths)})"
        seconds = f"{found.first_commit_seconds:.1f} s | {found.path_seconds:.1f} s"
        lines.append(f"| {case.name} | {found.path}{note} | {seconds} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
